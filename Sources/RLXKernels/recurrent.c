/* recurrent.c - the steps of recurrent layers; see include/rlxk_recurrent.h for what they mean. */
#include "include/rlxk_recurrent.h"

#include <string.h>

#include "isa.h"
#include "tile.h"
#include "vmath.h"

/* Rows of one direction that are walked together, and where their values are: [rows][...] each. */
typedef struct walk {
    const rlxk_direction *d;
    int64_t rows;
    const float *packed; /* the weights, unless the batch is 1 */
    float *gates, *h, *other; /* `other` is an LSTM's cell state, and scratch of a GRU */
} walk;

/* Columns of the weights that are not multiplied at once: a GRU's candidate comes after its other gates. */
static inline int64_t parts(const rlxk_direction *d) {
    return d->cell == RLXK_GRU || d->cell == RLXK_GRU_RESET_AFTER ? 3 : 1;
}

static inline int64_t part_columns(const rlxk_direction *d) { return d->cell == RLXK_LSTM ? 4 * d->size : d->size; }

/* Of a part. */
static inline int64_t packed_floats(const rlxk_direction *d) {
    return (part_columns(d) + RLXK_RECURRENT_PANEL - 1) / RLXK_RECURRENT_PANEL * RLXK_RECURRENT_PANEL * d->size;
}

#define RLXK_BODY "recurrent_body.h"
#include "isa_each.h"
RLXK_DISPATCH(rlxk_recurrent_run, recurrent)
