/* pooling.c - the largest or the sum of each window, and the derivative of the largest; see include/rlxk_window.h. */
#include <math.h>
#include <string.h>

#include "include/rlxk_window.h"
#include "isa.h"
#include "tile.h"

static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* How far the windows of a row reach. */
static inline int64_t line_floats(const rlxk_window *w) {
    return (w->windows[2] - 1) * w->stride[2] + (w->kernel[2] - 1) * w->dilation[2] + 1;
}

size_t rlxk_pool_scratch(const rlxk_pool *p) { return (size_t)line_floats(&p->window); }

#define RLXK_BODY "pooling_body.h"
#include "isa_each.h"
RLXK_DISPATCH(rlxk_pool_run, pool)
RLXK_DISPATCH(rlxk_winner_run, winner)
