/* chain_body.h - a chain's walk over its tiles for one instruction set; compiled by isa_each.h from chain.c. Knows
 * nothing of what a step computes. */

#if defined(__aarch64__)
#define RLXK_NATIVE_HALF 1
#else
#define RLXK_NATIVE_HALF (RLXK_LANES > 4)
#endif

#if RLXK_NATIVE_HALF
#define RLXK_FROM_HALF(h) FROM_NATIVE_HALF(h)
#define RLXK_TO_HALF(x) TO_NATIVE_HALF(x)
#else
#define RLXK_FROM_HALF(h) rlxk_from_half(h)
#define RLXK_TO_HALF(x) rlxk_to_half(x)
#endif

#include "chain_steps_body.h"

/* MARK: Moving between memory and slots */

#define MOVE(NAME, FROM, TO, CONVERT)                                                                         \
    static void RLXK_FN(NAME)(const FROM *restrict from, int64_t from_stride, TO *restrict to, int64_t to_stride, int64_t n) { \
        if (from_stride == 1 && to_stride == 1) {                                                             \
            for (int64_t i = 0; i < n; i++) {                                                                 \
                const FROM x = from[i];                                                                       \
                to[i] = (TO)(CONVERT);                                                                        \
            }                                                                                                 \
        } else if (from_stride == 0 && to_stride == 1) {                                                      \
            const FROM x = from[0];                                                                           \
            for (int64_t i = 0; i < n; i++) to[i] = (TO)(CONVERT);                                            \
        } else if (from_stride == -1 && to_stride == 1) {                                                     \
            for (int64_t i = 0; i < n; i++) {                                                                 \
                const FROM x = from[-i];                                                                      \
                to[i] = (TO)(CONVERT);                                                                        \
            }                                                                                                 \
        } else if (from_stride == 2 && to_stride == 1) {                                                      \
            for (int64_t i = 0; i < n; i++) {                                                                 \
                const FROM x = from[2 * i];                                                                   \
                to[i] = (TO)(CONVERT);                                                                        \
            }                                                                                                 \
        } else {                                                                                              \
            for (int64_t i = 0; i < n; i++) {                                                                 \
                const FROM x = from[i * from_stride];                                                         \
                to[i * to_stride] = (TO)(CONVERT);                                                            \
            }                                                                                                 \
        }                                                                                                     \
    }

MOVE(move_word, uint32_t, uint32_t, x)
MOVE(load_half, uint16_t, float, RLXK_FROM_HALF(x))
MOVE(load_u8, uint8_t, int32_t, x)
MOVE(load_i8, int8_t, int32_t, x)
MOVE(load_u16, uint16_t, int32_t, x)
MOVE(load_i16, int16_t, int32_t, x)
MOVE(store_half, float, uint16_t, RLXK_TO_HALF(x))
MOVE(store_bool, int32_t, uint8_t, x != 0)
MOVE(store_u8, int32_t, uint8_t, x < 0 ? 0 : x > 255 ? 255 : x)
MOVE(store_i8, int32_t, int8_t, x < -128 ? -128 : x > 127 ? 127 : x)
MOVE(store_u16, int32_t, uint16_t, x < 0 ? 0 : x > 65535 ? 65535 : x)
MOVE(store_i16, int32_t, int16_t, x < -32768 ? -32768 : x > 32767 ? 32767 : x)

static void RLXK_FN(load_run)(const rlxk_operand *o, int64_t offset, int64_t stride, void *to, int64_t n) {
    switch (o->type) {
    case RLXK_F32:
    case RLXK_I32: RLXK_FN(move_word)((const uint32_t *)o->data + offset, stride, to, 1, n); break;
    case RLXK_F16: RLXK_FN(load_half)((const uint16_t *)o->data + offset, stride, to, 1, n); break;
    case RLXK_BOOL:
    case RLXK_U8: RLXK_FN(load_u8)((const uint8_t *)o->data + offset, stride, to, 1, n); break;
    case RLXK_I8: RLXK_FN(load_i8)((const int8_t *)o->data + offset, stride, to, 1, n); break;
    case RLXK_U16: RLXK_FN(load_u16)((const uint16_t *)o->data + offset, stride, to, 1, n); break;
    case RLXK_I16: RLXK_FN(load_i16)((const int16_t *)o->data + offset, stride, to, 1, n); break;
    }
}

static void RLXK_FN(store_run)(const rlxk_operand *o, int64_t offset, int64_t stride, const void *from, int64_t n) {
    switch (o->type) {
    case RLXK_F32:
    case RLXK_I32: RLXK_FN(move_word)(from, 1, (uint32_t *)o->data + offset, stride, n); break;
    case RLXK_F16: RLXK_FN(store_half)(from, 1, (uint16_t *)o->data + offset, stride, n); break;
    case RLXK_BOOL: RLXK_FN(store_bool)(from, 1, (uint8_t *)o->data + offset, stride, n); break;
    case RLXK_U8: RLXK_FN(store_u8)(from, 1, (uint8_t *)o->data + offset, stride, n); break;
    case RLXK_I8: RLXK_FN(store_i8)(from, 1, (int8_t *)o->data + offset, stride, n); break;
    case RLXK_U16: RLXK_FN(store_u16)(from, 1, (uint16_t *)o->data + offset, stride, n); break;
    case RLXK_I16: RLXK_FN(store_i16)(from, 1, (int16_t *)o->data + offset, stride, n); break;
    }
}

/* Moves the operand's part of a tile, in dimensions split ..< end. */
static void RLXK_FN(move_tile)(const tile *t, const rlxk_operand *o, int64_t offset, int32_t end, void *slot, int store) {
    const int32_t inner = end - 1;
    int64_t index[RLXK_DIMS] = { 0 };
    uint32_t *lanes = slot;
    if (inner < t->split) {
        if (store) RLXK_FN(store_run)(o, offset, 0, lanes, 1);
        else RLXK_FN(load_run)(o, offset, 0, lanes, 1);
        return;
    }
    const int64_t run = t->size[inner], stride = o->stride[inner];
    for (;;) {
        if (store) RLXK_FN(store_run)(o, offset, stride, lanes, run);
        else RLXK_FN(load_run)(o, offset, stride, lanes, run);
        lanes += run;
        int32_t d = inner - 1;
        for (; d >= t->split; d--) {
            offset += o->stride[d];
            if (++index[d] < t->size[d]) break;
            offset -= o->stride[d] * t->size[d];
            index[d] = 0;
        }
        if (d < t->split) return;
    }
}

/* Folds the slot's dimensions split ..< end into the sink. */
static void RLXK_FN(fold_tile)(const tile *t, const rlxk_sink *s, uint32_t *data, int32_t end, const void *slot) {
    const int32_t inner = end - 1;
    const fold_functions *fold = &RLXK_FN(folds)[s->fold];
    int64_t index[RLXK_DIMS] = { 0 }, offset = 0;
    const uint32_t *lanes = slot;
    const int64_t run = t->size[inner];
    for (;;) {
        fold->fold(data + offset, s->stride[inner], lanes, run);
        lanes += run;
        int32_t d = inner - 1;
        for (; d >= t->split; d--) {
            offset += s->stride[d];
            if (++index[d] < t->size[d]) break;
            offset -= s->stride[d] * t->size[d];
            index[d] = 0;
        }
        if (d < t->split) return;
    }
}

/* MARK: The walk */

/* A step as the tiles find it: what does not change from one to the next is looked up once. */
typedef struct RLXK_FN(bound_step) {
    step_function run;
    const rlxk_step *step;
    const int64_t *count; /* of elements of its first result */
} RLXK_FN(bound_step);

/* What a worker walks with. */
typedef struct RLXK_FN(walk) {
    _Alignas(64) char *at[RLXK_MAX_SLOTS]; /* where the slots are in this tile */
    int64_t advance[RLXK_MAX_SLOTS];       /* by how many bytes they move to the tile beside it along the split */
    RLXK_FN(bound_step) step[RLXK_MAX_SLOTS];
    int32_t steps;
    int moves_inputs, moves_outputs;
} RLXK_FN(walk);

static void RLXK_FN(place_operands)(const rlxk_operand *list, int32_t count, const tile *t, char **at) {
    for (int32_t i = 0; i < count; i++) {
        const rlxk_operand *o = &list[i];
        if (o->access == RLXK_DIRECT) at[o->slot] = (char *)o->data + tile_offset(t, o->stride) * 4;
    }
}

static void RLXK_FN(place_slots)(const rlxk_chain *c, const tile *t, char **at) {
    RLXK_FN(place_operands)(c->input, c->inputs, t, at);
    RLXK_FN(place_operands)(c->output, c->outputs, t, at);
}

static RLXK_FN(bound_step) RLXK_FN(bind)(const rlxk_chain *c, const tile *t, const rlxk_step *s) {
    return (RLXK_FN(bound_step)){ RLXK_FN(steps)[s->op][s->scalars], s, &t->count[c->slot[s->slot[0]].extent] };
}

static void RLXK_FN(run_by_row)(const rlxk_chain *c, const tile *t, const RLXK_FN(bound_step) *b, char *const *at) {
    const int64_t pitch[] = { [RLXK_LANES_EXTENT] = t->row_lanes * 4, [RLXK_ROWS_EXTENT] = 4, [RLXK_ONE_EXTENT] = 0 };
    enum { SLOTS = 5 }; /* the result and x, y, z, w: what has more operands does not go by row */
    rlxk_step step = *b->step;
    char *row_at[SLOTS];
    int64_t advance[SLOTS];
    for (int32_t i = 0; i < SLOTS; i++) {
        row_at[i] = at[step.slot[i]];
        advance[i] = pitch[c->slot[step.slot[i]].extent];
        step.slot[i] = i;
    }
    for (int64_t row = 0; row < t->rows; row++) {
        b->run(&step, row_at, t->row_lanes);
        for (int32_t i = 0; i < SLOTS; i++) row_at[i] += advance[i];
    }
}

static inline void RLXK_FN(run_step)(const rlxk_chain *c, const tile *t, const RLXK_FN(bound_step) *b, char *const *at) {
    if (b->step->by_row) RLXK_FN(run_by_row)(c, t, b, at);
    else b->run(b->step, at, *b->count);
}

static void RLXK_FN(move_operands)(
    const rlxk_chain *c, const tile *t, const rlxk_operand *list, int32_t count, char *const *at, int store) {
    for (int32_t i = 0; i < count; i++) {
        const rlxk_operand *o = &list[i];
        if (o->access != RLXK_MOVED) continue;
        const int32_t end = c->slot[o->slot].extent == RLXK_LANES_EXTENT ? c->dims : c->row;
        RLXK_FN(move_tile)(t, o, tile_offset(t, o->stride), end, at[o->slot], store);
    }
}

static void RLXK_FN(run_tile)(const rlxk_chain *c, const tile *t, int64_t chunk, const RLXK_FN(walk) *w) {
    if (w->moves_inputs) RLXK_FN(move_operands)(c, t, c->input, c->inputs, w->at, 0);
    for (int32_t i = 0; i < w->steps; i++) RLXK_FN(run_step)(c, t, &w->step[i], w->at);
    if (w->moves_outputs) RLXK_FN(move_operands)(c, t, c->output, c->outputs, w->at, 1);
    for (int32_t i = 0; i < c->sinks; i++) {
        const rlxk_sink *s = &c->sink[i];
        const int32_t end = c->slot[s->slot].extent == RLXK_LANES_EXTENT ? c->dims : c->row;
        uint32_t *data = (uint32_t *)s->data + chunk * s->shift + tile_offset(t, s->stride);
        RLXK_FN(fold_tile)(t, s, data, end, w->at[s->slot]);
    }
}

/* What is the same for all tiles of the walk of `t`, which is at a full one. */
static void RLXK_FN(prepare)(const rlxk_chain *c, const tile *t, float *scratch, RLXK_FN(walk) *w) {
    for (int32_t i = 0; i < c->slots; i++) {
        w->at[i] = (char *)(scratch + c->slot[i].offset);
        w->advance[i] = 0;
    }
    w->moves_inputs = w->moves_outputs = 0;
    for (int32_t i = 0; i < c->inputs; i++) {
        const rlxk_operand *o = &c->input[i];
        if (o->access == RLXK_DIRECT) w->advance[o->slot] = o->stride[c->split] * c->step * 4;
        w->moves_inputs |= o->access == RLXK_MOVED;
        if (o->access != RLXK_ONCE || c->tiles == 0) continue;
        const rlxk_extent extent = c->slot[o->slot].extent;
        const int32_t dims = extent == RLXK_LANES_EXTENT ? c->dims : extent == RLXK_ROWS_EXTENT ? c->row : 0;
        RLXK_FN(move_tile)(t, o, 0, dims, w->at[o->slot], 0);
    }
    for (int32_t i = 0; i < c->outputs; i++) {
        const rlxk_operand *o = &c->output[i];
        if (o->access == RLXK_DIRECT) w->advance[o->slot] = o->stride[c->split] * c->step * 4;
        w->moves_outputs |= o->access == RLXK_MOVED;
    }
    for (int32_t i = 0; i < c->prologue && c->tiles > 0; i++) {
        const RLXK_FN(bound_step) once = RLXK_FN(bind)(c, t, &c->program[i]);
        RLXK_FN(run_step)(c, t, &once, w->at);
    }
    w->steps = c->steps - c->prologue;
    for (int32_t i = 0; i < w->steps; i++) w->step[i] = RLXK_FN(bind)(c, t, &c->program[c->prologue + i]);
}

static void RLXK_FN(chain)(const void *arguments, int32_t worker, int32_t workers) {
    const rlxk_chain *c = arguments;
    const int64_t chunks = c->tiles == 0 ? 1 : (c->tiles + c->chunk_tiles - 1) / c->chunk_tiles;
    int64_t begin, end;
    rlxk_share(chunks, worker, workers, &begin, &end);
    if (begin == end) return;

    RLXK_FN(walk) w;
    tile t;
    tile_start(&t, c, 0); /* a full tile: a later one may be cut */
    RLXK_FN(prepare)(c, &t, c->scratch + worker * c->scratch_stride, &w);
    tile_start(&t, c, begin * c->chunk_tiles);
    RLXK_FN(place_slots)(c, &t, w.at);
    for (int64_t chunk = begin; chunk < end; chunk++) {
        for (int32_t i = 0; i < c->sinks; i++) {
            const rlxk_sink *s = &c->sink[i];
            const int64_t first = chunk * s->begin;
            const int64_t count = s->count < s->total - first ? s->count : s->total - first;
            RLXK_FN(folds)[s->fold].neutral((uint32_t *)s->data + chunk * s->shift + first, count);
        }
        const int64_t after = (chunk + 1) * c->chunk_tiles, last = after < c->tiles ? after : c->tiles;
        for (int64_t i = chunk * c->chunk_tiles; i < last; i++) {
            RLXK_FN(run_tile)(c, &t, chunk, &w);
            tile_next(&t, c);
            if (t.at[c->split] == 0) {
                RLXK_FN(place_slots)(c, &t, w.at);
            } else {
                for (int32_t k = 0; k < c->slots; k++) w.at[k] += w.advance[k];
            }
        }
    }
}

static void RLXK_FN(combine_one)(const rlxk_combine *c, int32_t worker, int32_t workers) {
    const fold_functions *fold = &RLXK_FN(folds)[c->fold];
    int64_t begin, end;
    rlxk_share((c->count + RLXK_TILE - 1) / RLXK_TILE, worker, workers, &begin, &end);
    for (int64_t first = begin * RLXK_TILE; first < c->count && first < end * RLXK_TILE; first += RLXK_TILE) {
        const int64_t n = c->count - first < RLXK_TILE ? c->count - first : RLXK_TILE;
        uint32_t *result = (uint32_t *)c->result + first;
        fold->neutral(result, n);
        for (int64_t chunk = 0; chunk < c->chunks; chunk++) {
            fold->fold(result, 1, (const uint32_t *)c->partials + chunk * c->count + first, n);
        }
    }
}

static void RLXK_FN(combine)(const void *arguments, int32_t worker, int32_t workers) {
    const rlxk_combines *c = arguments;
    for (int32_t i = 0; i < c->count; i++) RLXK_FN(combine_one)(&c->list[i], worker, workers);
}

#undef MOVE
#undef RLXK_NATIVE_HALF
#undef RLXK_FROM_HALF
#undef RLXK_TO_HALF
