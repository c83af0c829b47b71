/* chain.c - runs a chain; see include/rlxk_chain.h for what it is. Geometry here, loops in chain_body.h. */
#include "include/rlxk_chain.h"
#include "isa.h"
#include "vmath.h"

#define STEP_PARAMETERS const rlxk_step *step, char *const *at, int64_t n
typedef void (*step_function)(STEP_PARAMETERS);

#define SLOT(INDEX) ((void *)at[step->slot[INDEX]])
#define UNPACK(IN, OUT)                                                              \
    OUT *out = SLOT(0);                                                              \
    const IN *xs = SLOT(1), *ys = SLOT(2), *zs = SLOT(3), *ws = SLOT(4);             \
    const float p = step->p, q = step->q;                                            \
    (void)out, (void)xs, (void)ys, (void)zs, (void)ws, (void)p, (void)q

typedef struct fold_functions {
    void (*fold)(void *data, int64_t stride, const void *lanes, int64_t n);
    void (*neutral)(void *data, int64_t n);
} fold_functions;

static inline float FROM_NATIVE_HALF(uint16_t bits) {
    _Float16 half;
    memcpy(&half, &bits, sizeof half);
    return (float)half;
}

static inline uint16_t TO_NATIVE_HALF(float x) {
    const _Float16 half = (_Float16)x;
    uint16_t bits;
    memcpy(&bits, &half, sizeof bits);
    return bits;
}

/* Where a walk stands. `size` are the dimensions of this tile: below `split` they are not used. */
typedef struct tile {
    int32_t dims, split;
    int64_t at[RLXK_DIMS];
    int64_t size[RLXK_DIMS];
    int64_t count[RLXK_ONE_EXTENT + 1]; /* elements of a slot of each extent */
    int64_t rows, row_lanes;
} tile;

static inline int64_t tile_offset(const tile *t, const int64_t *stride) {
    int64_t offset = 0;
    for (int32_t d = 0; d <= t->split; d++) offset += t->at[d] * stride[d];
    return offset;
}

static inline void tile_measure(tile *t, const rlxk_chain *c) {
    const int32_t split = c->split;
    const int64_t left = c->size[split] - t->at[split];
    t->size[split] = left < c->step ? left : c->step;
    int64_t lanes = 1;
    t->row_lanes = 1;
    for (int32_t d = c->row; d < c->dims; d++) t->row_lanes *= t->size[d];
    for (int32_t d = split; d < c->dims; d++) lanes *= t->size[d];
    t->rows = t->row_lanes == 0 ? 0 : lanes / t->row_lanes;
    t->count[RLXK_LANES_EXTENT] = lanes;
    t->count[RLXK_ROWS_EXTENT] = t->rows;
    t->count[RLXK_ONE_EXTENT] = 1;
}

static inline void tile_start(tile *t, const rlxk_chain *c, int64_t index) {
    t->dims = c->dims;
    t->split = c->split;
    for (int32_t d = c->split + 1; d < c->dims; d++) t->size[d] = c->size[d];
    const int64_t along = (c->size[c->split] + c->step - 1) / c->step;
    t->at[c->split] = along == 0 ? 0 : index % along * c->step;
    if (along != 0) index /= along;
    for (int32_t d = c->split - 1; d >= 0; d--) {
        t->at[d] = c->size[d] == 0 ? 0 : index % c->size[d];
        if (c->size[d] != 0) index /= c->size[d];
    }
    tile_measure(t, c);
}

static inline void tile_next(tile *t, const rlxk_chain *c) {
    int32_t d = c->split;
    t->at[d] += c->step;
    while (t->at[d] >= c->size[d] && d > 0) {
        t->at[d--] = 0;
        t->at[d]++;
    }
    if (t->at[c->split] == 0 || t->at[c->split] + c->step > c->size[c->split]) tile_measure(t, c);
}

#define RLXK_BODY "chain_body.h"
#include "isa_each.h"
RLXK_DISPATCH(rlxk_chain_run, chain)
RLXK_DISPATCH(rlxk_combine_run, combine)
