/* gemm_body.h - one worker's share of a batch of products, for one instruction set (a body for isa_each.h). */
#include "tile_body.h"

/* MARK: Packing panels of B */

#if RLXK_LANES == 16
#define SHUFFLE(x, y, at, h)                                                                                       \
    __builtin_shufflevector(x, y, at(0, h), at(1, h), at(2, h), at(3, h), at(4, h), at(5, h), at(6, h), at(7, h), \
                            at(8, h), at(9, h), at(10, h), at(11, h), at(12, h), at(13, h), at(14, h), at(15, h))
#elif RLXK_LANES == 8
#define SHUFFLE(x, y, at, h) \
    __builtin_shufflevector(x, y, at(0, h), at(1, h), at(2, h), at(3, h), at(4, h), at(5, h), at(6, h), at(7, h))
#else
#define SHUFFLE(x, y, at, h) __builtin_shufflevector(x, y, at(0, h), at(1, h), at(2, h), at(3, h))
#endif
#define FIRST_HALVES(lane, h) ((lane) & (h) ? RLXK_LANES + (lane) - (h) : (lane))
#define SECOND_HALVES(lane, h) ((lane) & (h) ? RLXK_LANES + (lane) : (lane) + (h))

/* Exchanges the off-diagonal quarters of all blocks of 2h x 2h. */
#define EXCHANGE(x, h)                                         \
    UNROLL for (int i = 0; i < RLXK_LANES; i++) {              \
        if (i & (h)) continue;                                 \
        VEC upper = x[i], lower = x[i + (h)];                  \
        x[i] = SHUFFLE(upper, lower, FIRST_HALVES, h);         \
        x[i + (h)] = SHUFFLE(upper, lower, SECOND_HALVES, h);  \
    }

INLINE void RLXK_FN(transpose)(VEC *x) {
#if RLXK_LANES > 8
    EXCHANGE(x, 8)
#endif
#if RLXK_LANES > 4
    EXCHANGE(x, 4)
#endif
    EXCHANGE(x, 2)
    EXCHANGE(x, 1)
}

#undef EXCHANGE
#undef SECOND_HALVES
#undef FIRST_HALVES
#undef SHUFFLE

/* to[p][0 ..< PANEL] = from[p * row + j * col] for p < k, j < columns. */
static void RLXK_FN(pack)(float *to, const float *from, int64_t k, int64_t columns, int64_t row, int64_t col) {
    if (col == 1 && columns == PANEL) {
        for (int64_t p = 0; p < k; p++, from += row, to += PANEL) {
            UNROLL for (int v = 0; v < TILE_VECTORS; v++) {
                RLXK_FN(store)(to + v * RLXK_LANES, RLXK_FN(load)(from + v * RLXK_LANES));
                __builtin_prefetch(from + 16 * row + v * RLXK_LANES);
            }
        }
        return;
    }
    int64_t j = 0, whole = row == 1 ? k / RLXK_LANES * RLXK_LANES : 0;
    for (; j + RLXK_LANES <= columns; j += RLXK_LANES) {
        for (int64_t p = 0; p < whole; p += RLXK_LANES) {
            VEC x[RLXK_LANES];
            UNROLL for (int i = 0; i < RLXK_LANES; i++) x[i] = RLXK_FN(load)(from + p + (j + i) * col);
            RLXK_FN(transpose)(x);
            UNROLL for (int i = 0; i < RLXK_LANES; i++) RLXK_FN(store)(to + (p + i) * PANEL + j, x[i]);
        }
        for (int64_t p = whole; p < k; p++) {
            for (int64_t i = j; i < j + RLXK_LANES; i++) to[p * PANEL + i] = from[p * row + i * col];
        }
    }
    for (; j < columns; j++) {
        for (int64_t p = 0; p < k; p++) to[p * PANEL + j] = from[p * row + j * col];
    }
}

/* MARK: Tiles */

/* One batch's A, B, C, bias and gate, as pointers. */
#define PRODUCT RLXK_FN(product)
typedef struct PRODUCT {
    const rlxk_gemm *g;
    const float *a, *b, *gate;
    float *c;
    float *packed; /* or NULL: B is used where it is */
} PRODUCT;

/* Rows x columns, over k's part [k_begin, k_end). */
static void RLXK_FN(block)(const PRODUCT *x, int64_t row_begin, int64_t row_end, int64_t column_begin,
                           int64_t column_end, int64_t k_begin, int64_t k_end) {
    static const int64_t no_offset = 0;
    const rlxk_gemm *g = x->g;
    const bool first = k_begin == 0, last = k_end == g->k;
    const int64_t k = k_end - k_begin;
    const float *b = x->b + k_begin * g->b_row;
    if (x->packed) {
        for (int64_t j = column_begin; j < column_end; j += PANEL) {
            int64_t columns = column_end - j < PANEL ? column_end - j : PANEL;
            RLXK_FN(pack)(x->packed + (j - column_begin) * k, b + j * g->b_col, k, columns, g->b_row, g->b_col);
        }
    }

    rlxk_tile tile = {
        .a_row = g->a_row, .a_col = g->a_col, .a_runs = &no_offset, .runs = 1, .k = k,
        .b_row = x->packed ? PANEL : g->b_row, .c_row = g->c_row, .alpha = g->alpha,
        .accumulate = g->accumulate || !first, .relu = last && g->activation == RLXK_ACT_RELU,
    };
    int64_t rows = row_end - row_begin, row_blocks = (rows + TILE_ROWS - 1) / TILE_ROWS;
    for (int64_t block = 0; block < row_blocks; block++) {
        int64_t i = row_begin + rows * block / row_blocks, next = row_begin + rows * (block + 1) / row_blocks;
        tile.a = x->a + i * g->a_row + k_begin * g->a_col;
        for (int64_t j = column_begin; j < column_end; j += PANEL) {
            tile.b = x->packed ? x->packed + (j - column_begin) * k : b + j;
            tile.c = x->c + i * g->c_row + j;
            tile.bias = last && g->bias ? g->bias + j : NULL;
            tile.gate = last && g->gate ? x->gate + i * g->c_row + j : NULL;
            RLXK_FN(tile_run)(&tile, next - i, column_end - j < PANEL ? column_end - j : PANEL);
        }
    }
}

/* Rows x columns, in blocks whose part of B stays in the second-level cache. */
static void RLXK_FN(rectangle)(const PRODUCT *x, int64_t row_begin, int64_t row_end, int64_t column_begin,
                               int64_t column_end) {
    const int64_t k = x->g->k, width = rlxk_gemm_group(x->g);
    int64_t k_begin = 0;
    do { /* also when k is 0 */
        int64_t k_end = k - k_begin > RLXK_GEMM_DEPTH ? k_begin + RLXK_GEMM_DEPTH : k;
        for (int64_t j = column_begin; j < column_end; j += width) {
            int64_t next = column_end - j < width ? column_end : j + width;
            RLXK_FN(block)(x, row_begin, row_end, j, next, k_begin, k_end);
        }
        k_begin = k_end;
    } while (k_begin < k);
}

static void RLXK_FN(gemm)(const void *arguments, int32_t worker, int32_t workers) {
    const rlxk_gemm *g = arguments;
    const int64_t batches = g->batch[0] * g->batch[1] * g->batch[2];
    const int64_t panels = (g->n + PANEL - 1) / PANEL;
    /* A worker reads all of the operand that is not split: split the longer one. */
    const bool by_rows = g->m >= g->n || batches * panels < workers;
    const int64_t units = by_rows ? g->m : panels;
    int64_t unit, end;
    rlxk_share(batches * units, worker, workers, &unit, &end);

    PRODUCT x = { .g = g };
    if (rlxk_gemm_packs(g)) x.packed = g->workspace + worker * rlxk_gemm_packed_floats(g);
    while (unit < end && g->n > 0) {
        int64_t batch = unit / units, begin = unit % units;
        int64_t stop = end - unit < units - begin ? begin + (end - unit) : units;
        unit += stop - begin;

        int64_t offset[3] = { 0, 0, 0 };
        for (int axis = 2; axis >= 0; axis--) {
            int64_t index = batch % g->batch[axis];
            batch /= g->batch[axis];
            offset[0] += index * g->a_batch[axis];
            offset[1] += index * g->b_batch[axis];
            offset[2] += index * g->c_batch[axis];
        }
        x.a = g->a + offset[0];
        x.b = g->b + offset[1];
        x.c = g->c + offset[2];
        x.gate = g->gate ? g->gate + offset[2] : NULL;
        if (by_rows) {
            RLXK_FN(rectangle)(&x, begin, stop, 0, g->n);
        } else {
            RLXK_FN(rectangle)(&x, 0, g->m, begin * PANEL, stop * PANEL < g->n ? stop * PANEL : g->n);
        }
    }
}
