/* window.c - convolution and its transpose over unfolded windows; see include/rlxk_window.h for what they mean. */
#include "include/rlxk_window.h"

#include <string.h>

#include "isa.h"
#include "vmath.h"

static inline int64_t volume(const int64_t size[3]) { return size[0] * size[1] * size[2]; }
static inline int64_t minimum(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t maximum(int64_t a, int64_t b) { return a > b ? a : b; }

/* The windows [*first, *last) along dimension d whose element `k` lies on the image. */
static inline void inside(const rlxk_window *w, int d, int64_t k, int64_t *first, int64_t *last) {
    const int64_t shift = k * w->dilation[d] - w->before[d]; /* where window 0 has it */
    *first = shift >= 0 ? 0 : (-shift + w->stride[d] - 1) / w->stride[d];
    *last = shift >= w->image[d] ? 0 : minimum(w->windows[d], (w->image[d] - 1 - shift) / w->stride[d] + 1);
    if (*last < *first) *last = *first;
}

/* A run of windows of one row. */
typedef struct run {
    int64_t position[3]; /* of the first window */
    int64_t count;
} run;

/* The runs of whole or partial rows that make up windows [at, end). */
static inline run next_run(const rlxk_window *w, int64_t at, int64_t end) {
    run r;
    r.position[2] = at % w->windows[2];
    r.position[1] = at / w->windows[2] % w->windows[1];
    r.position[0] = at / w->windows[2] / w->windows[1];
    r.count = minimum(w->windows[2] - r.position[2], end - at);
    return r;
}

/* Offset in the image of element (k0, k1) of the windows of a run, at column 0 of the image; -1 outside. */
static inline int64_t row_offset(const rlxk_window *w, const run *r, int64_t k0, int64_t k1) {
    const int64_t i0 = r->position[0] * w->stride[0] - w->before[0] + k0 * w->dilation[0];
    const int64_t i1 = r->position[1] * w->stride[1] - w->before[1] + k1 * w->dilation[1];
    if (i0 < 0 || i0 >= w->image[0] || i1 < 0 || i1 >= w->image[1]) return -1;
    return (i0 * w->image[1] + i1) * w->image[2];
}

static rlxk_gemm forward_product(const rlxk_conv *c, int64_t columns) {
    const int64_t depth = c->ci * volume(c->window.kernel);
    rlxk_gemm g = { .m = c->co, .n = columns, .k = depth, .alpha = 1.0f, .batch = { 1, 1, 1 } };
    g.a_row = depth, g.a_col = 1;
    g.b_row = columns, g.b_col = 1;
    g.c_row = volume(c->window.windows);
    return g;
}

static rlxk_gemm transpose_product(const rlxk_conv *c, int64_t columns) {
    const int64_t rows = c->co * volume(c->window.kernel);
    rlxk_gemm g = { .m = rows, .n = columns, .k = c->ci, .alpha = 1.0f, .batch = { 1, 1, 1 } };
    g.a_row = 1, g.a_col = rows;
    g.b_row = volume(c->window.windows), g.b_col = 1;
    g.c_row = columns;
    return g;
}

static size_t workspace_of(rlxk_gemm whole) { return rlxk_gemm_workspace(&whole, 1); }

/* The last block of columns is smaller, and smaller products may want more workspace. */
static size_t largest_workspace(const rlxk_conv *c, rlxk_gemm (*product)(const rlxk_conv *, int64_t)) {
    const int64_t windows = volume(c->window.windows), rest = windows % c->block;
    const size_t whole = workspace_of(product(c, minimum(c->block, windows)));
    const size_t last = rest ? workspace_of(product(c, rest)) : 0;
    return whole > last ? whole : last;
}

static int64_t rounded(int64_t floats) { return (floats + 15) / 16 * 16; }

size_t rlxk_conv_scratch(const rlxk_conv *c) {
    return (size_t)rounded(c->ci * volume(c->window.kernel) * c->block) + largest_workspace(c, forward_product);
}

size_t rlxk_conv_transpose_scratch(const rlxk_conv *c) {
    return (size_t)rounded(c->co * volume(c->window.kernel) * c->block) + largest_workspace(c, transpose_product);
}

#define RLXK_BODY "window_body.h"
#include "isa_each.h"
RLXK_DISPATCH(rlxk_conv_run, conv)
RLXK_DISPATCH(rlxk_conv_transpose_run, conv_transpose)
