/* tile_body.h - tiles of a matrix product, all in registers: rows x vectors of sums, one broadcast of A at a time (a body
 * for isa_each.h). */
#include "vec_body.h"

INLINE void RLXK_FN(tile)(const rlxk_tile *t, int rows, int vectors, bool full) {
    VEC sum[TILE_ROWS][TILE_VECTORS];
    UNROLL for (int i = 0; i < rows; i++) {
        UNROLL for (int v = 0; v < vectors; v++) sum[i][v] = 0;
    }
    const int32_t tail = t->tail;

    /* A pointer for every fourth row, as hidden bytes, again in every step: otherwise the compiler keeps a pointer for
     * each row, more than there are registers, or walks one down the rows, each step waiting for the one before. */
    const int64_t a_row = t->a_row * 4, a_col = t->a_col * 4, b_row = t->b_row;
    int64_t three_rows = 3 * a_row;
    __asm__("" : "+r"(three_rows));
    for (int64_t run = 0; run < t->runs; run++) {
        const float *b = t->b + t->b_runs[run];
        const float *ahead = run + 4 < t->runs ? t->b + t->b_runs[run + 4] : b + 12 * b_row;
        const char *a[(TILE_ROWS + 3) / 4];
        UNROLL for (int q = 0; 4 * q < rows; q++) {
            a[q] = (const char *)(t->a + t->a_runs[run]) + 4 * q * a_row;
            __asm__("" : "+r"(a[q]));
        }
        for (int64_t p = 0; p < t->k; p++) {
            VEC b_of[TILE_VECTORS];
            UNROLL for (int v = 0; v < vectors; v++) {
                b_of[v] = RLXK_FN(load_of)(b, v, vectors, full, tail);
                if (vectors > 1) __builtin_prefetch(ahead + v * RLXK_LANES);
            }
            if (vectors > 1) __builtin_prefetch(a[0] + 8 * a_col);
            UNROLL for (int i = 0; i < rows; i++) {
                int64_t offset = i % 4 == 0 ? 0 : i % 4 == 1 ? a_row : i % 4 == 2 ? 2 * a_row : three_rows;
                VEC x = *(const float *)(a[i / 4] + offset);
                UNROLL for (int v = 0; v < vectors; v++) sum[i][v] += x * b_of[v];
            }
            UNROLL for (int q = 0; 4 * q < rows; q++) {
                a[q] += a_col;
                __asm__("" : "+r"(a[q]));
            }
            b += b_row;
            ahead += b_row;
        }
    }

#define EACH_SUM                          \
    UNROLL for (int i = 0; i < rows; i++) \
    UNROLL for (int v = 0; v < vectors; v++)

    if (t->alpha != 1) {
        EACH_SUM sum[i][v] *= t->alpha;
    }
    if (t->bias) {
        EACH_SUM sum[i][v] += RLXK_FN(load_of)(t->bias, v, vectors, full, tail);
    }
    if (t->row_bias) {
        EACH_SUM sum[i][v] += t->row_bias[i];
    }
    if (t->accumulate) {
        EACH_SUM sum[i][v] += RLXK_FN(load_of)(t->c + i * t->c_row, v, vectors, full, tail);
    }
    if (t->relu) {
        const VEC zero = 0;
        EACH_SUM sum[i][v] = zero > sum[i][v] ? zero : sum[i][v]; /* NaN is not below zero */
    }
    if (t->clip) {
        EACH_SUM sum[i][v] = RLXK_FN(clip)(sum[i][v], t->clip);
    }
    if (t->gate) {
        const VEC zero = 0, one = 1;
        EACH_SUM {
            VEC gate = RLXK_FN(load_of)(t->gate + i * t->c_row, v, vectors, full, tail);
            sum[i][v] *= gate > zero ? one : zero;
        }
    }
    float *const c = t->c; /* the stores do not change the tile */
    const int64_t c_row = t->c_row;
    EACH_SUM {
        float *p = c + i * c_row + v * RLXK_LANES;
        if (full || v + 1 < vectors) {
            RLXK_FN(store)(p, sum[i][v]);
        } else {
            RLXK_FN(store_first)(p, sum[i][v], tail);
        }
    }
#undef EACH_SUM
}

/* MARK: One function for each number of rows */

#if TILE_ROWS == 6
#define EACH_ROWS(X, ...) X(1, __VA_ARGS__) X(2, __VA_ARGS__) X(3, __VA_ARGS__) X(4, __VA_ARGS__) X(5, __VA_ARGS__) X(6, __VA_ARGS__)
#elif TILE_ROWS == 12
#define EACH_ROWS(X, ...)                                                                                            \
    X(1, __VA_ARGS__) X(2, __VA_ARGS__) X(3, __VA_ARGS__) X(4, __VA_ARGS__) X(5, __VA_ARGS__) X(6, __VA_ARGS__)      \
    X(7, __VA_ARGS__) X(8, __VA_ARGS__) X(9, __VA_ARGS__) X(10, __VA_ARGS__) X(11, __VA_ARGS__) X(12, __VA_ARGS__)
#else
#define EACH_ROWS(X, ...)                                                                                            \
    X(1, __VA_ARGS__) X(2, __VA_ARGS__) X(3, __VA_ARGS__) X(4, __VA_ARGS__) X(5, __VA_ARGS__) X(6, __VA_ARGS__)      \
    X(7, __VA_ARGS__) X(8, __VA_ARGS__) X(9, __VA_ARGS__) X(10, __VA_ARGS__) X(11, __VA_ARGS__) X(12, __VA_ARGS__)   \
    X(13, __VA_ARGS__) X(14, __VA_ARGS__)
#endif
#define TILE_FUNCTION(rows, vectors, full) \
    static void RLXK_FN(tile_##rows##_##vectors##_##full)(const rlxk_tile *t) { RLXK_FN(tile)(t, rows, vectors, full); }
#define TILE_NAME(rows, vectors, full) RLXK_FN(tile_##rows##_##vectors##_##full),

EACH_ROWS(TILE_FUNCTION, 1, 0)
EACH_ROWS(TILE_FUNCTION, 1, 1)
EACH_ROWS(TILE_FUNCTION, 2, 0)
EACH_ROWS(TILE_FUNCTION, 2, 1)

RLXK_FN(tile_table) RLXK_FN(rlxk_tiles) = {
    { { EACH_ROWS(TILE_NAME, 1, 0) }, { EACH_ROWS(TILE_NAME, 1, 1) } },
    { { EACH_ROWS(TILE_NAME, 2, 0) }, { EACH_ROWS(TILE_NAME, 2, 1) } },
};

#undef EACH_ROWS
#undef TILE_FUNCTION
#undef TILE_NAME
