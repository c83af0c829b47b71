/* tile_body.h - tiles of a matrix product, all in registers: rows x vectors of sums, one broadcast of A at a time.
 * A body for isa_each.h (RLXK_FN, RLXK_LANES); gives tile_run(), TILE_ROWS and PANEL to the body that includes it. */

#undef TILE_ROWS
#if RLXK_LANES == 16
#define TILE_ROWS 14 /* 28 sums, 2 vectors of B and a broadcast in 32 registers */
#elif defined(__aarch64__)
#define TILE_ROWS 12
#else
#define TILE_ROWS 6 /* of 16 registers */
#endif
#define TILE_VECTORS 2
#define PANEL (TILE_VECTORS * RLXK_LANES)

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("clang loop unroll(full)")
#define VEC RLXK_FN(vec)
#define UNALIGNED_VEC RLXK_FN(unaligned_vec)

typedef float VEC __attribute__((ext_vector_type(RLXK_LANES)));
typedef float UNALIGNED_VEC __attribute__((ext_vector_type(RLXK_LANES), aligned(4)));

INLINE VEC RLXK_FN(load)(const float *p) { return *(const UNALIGNED_VEC *)p; }
INLINE void RLXK_FN(store)(float *p, VEC x) { *(UNALIGNED_VEC *)p = x; }

/* The first n lanes, 1 <= n <= RLXK_LANES; memory behind them is not touched. */
#if RLXK_LANES == 16
INLINE VEC RLXK_FN(load_first)(const float *p, int32_t n) {
    return (VEC)_mm512_maskz_loadu_ps((__mmask16)(0xffffu >> (16 - n)), p);
}
INLINE void RLXK_FN(store_first)(float *p, VEC x, int32_t n) {
    _mm512_mask_storeu_ps(p, (__mmask16)(0xffffu >> (16 - n)), (__m512)x);
}
#elif RLXK_LANES == 8
INLINE __m256i RLXK_FN(first)(int32_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
INLINE VEC RLXK_FN(load_first)(const float *p, int32_t n) { return (VEC)_mm256_maskload_ps(p, RLXK_FN(first)(n)); }
INLINE void RLXK_FN(store_first)(float *p, VEC x, int32_t n) {
    _mm256_maskstore_ps(p, RLXK_FN(first)(n), (__m256)x);
}
#else
INLINE VEC RLXK_FN(load_first)(const float *p, int32_t n) {
    return (VEC){ p[0], n > 1 ? p[1] : 0, n > 2 ? p[2] : 0, n > 3 ? p[3] : 0 };
}
INLINE void RLXK_FN(store_first)(float *p, VEC x, int32_t n) {
    p[0] = x[0];
    if (n > 1) p[1] = x[1];
    if (n > 2) p[2] = x[2];
    if (n > 3) p[3] = x[3];
}
#endif

/* Vector v of a row of the panel; `full` says that the last one is whole too. */
INLINE VEC RLXK_FN(load_of)(const float *row, int v, int vectors, bool full, int32_t tail) {
    const float *p = row + v * RLXK_LANES;
    return full || v + 1 < vectors ? RLXK_FN(load)(p) : RLXK_FN(load_first)(p, tail);
}

INLINE void RLXK_FN(tile)(const rlxk_tile *t, int rows, int vectors, bool full) {
    VEC sum[TILE_ROWS][TILE_VECTORS];
    UNROLL for (int i = 0; i < rows; i++) {
        UNROLL for (int v = 0; v < vectors; v++) sum[i][v] = 0;
    }
    const int32_t tail = t->tail;

    /* A pointer for every fourth row, as hidden bytes: otherwise one pointer walks down the rows, each step waiting
     * for the one before. */
    const int64_t a_row = t->a_row * 4, a_col = t->a_col * 4, b_row = t->b_row;
    int64_t three_rows = 3 * a_row;
    __asm__("" : "+r"(three_rows));
    const float *b = t->b;
    for (int64_t run = 0; run < t->runs; run++) {
        const char *a[(TILE_ROWS + 3) / 4];
        UNROLL for (int q = 0; 4 * q < rows; q++) {
            a[q] = (const char *)(t->a + t->a_runs[run]) + 4 * q * a_row;
            __asm__("" : "+r"(a[q]));
        }
        for (int64_t p = 0; p < t->k; p++) {
            VEC b_of[TILE_VECTORS];
            UNROLL for (int v = 0; v < vectors; v++) {
                b_of[v] = RLXK_FN(load_of)(b, v, vectors, full, tail);
                if (vectors > 1) __builtin_prefetch(b + 12 * b_row + v * RLXK_LANES);
            }
            if (vectors > 1) __builtin_prefetch(a[0] + 8 * a_col);
            UNROLL for (int i = 0; i < rows; i++) {
                int64_t offset = i % 4 == 0 ? 0 : i % 4 == 1 ? a_row : i % 4 == 2 ? 2 * a_row : three_rows;
                VEC x = *(const float *)(a[i / 4] + offset);
                UNROLL for (int v = 0; v < vectors; v++) sum[i][v] += x * b_of[v];
            }
            UNROLL for (int q = 0; 4 * q < rows; q++) a[q] += a_col;
            b += b_row;
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
    if (t->accumulate) {
        EACH_SUM sum[i][v] += RLXK_FN(load_of)(t->c + i * t->c_row, v, vectors, full, tail);
    }
    if (t->relu) {
        const VEC zero = 0;
        EACH_SUM sum[i][v] = zero > sum[i][v] ? zero : sum[i][v]; /* NaN is not below zero */
    }
    if (t->gate) {
        const VEC zero = 0, one = 1;
        EACH_SUM {
            VEC gate = RLXK_FN(load_of)(t->gate + i * t->c_row, v, vectors, full, tail);
            sum[i][v] *= gate > zero ? one : zero;
        }
    }
    EACH_SUM {
        float *p = t->c + i * t->c_row + v * RLXK_LANES;
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

/* Computes `columns` (at most PANEL) of `rows` (at most TILE_ROWS); sets the tile's tail. */
INLINE void RLXK_FN(tile_run)(rlxk_tile *t, int64_t rows, int64_t columns) {
    static void (*const tiles[TILE_VECTORS][2][TILE_ROWS])(const rlxk_tile *) = {
        { { EACH_ROWS(TILE_NAME, 1, 0) }, { EACH_ROWS(TILE_NAME, 1, 1) } },
        { { EACH_ROWS(TILE_NAME, 2, 0) }, { EACH_ROWS(TILE_NAME, 2, 1) } },
    };
    int64_t before_last = (columns - 1) / RLXK_LANES;
    t->tail = (int32_t)(columns - before_last * RLXK_LANES);
    tiles[before_last][t->tail == RLXK_LANES][rows - 1](t);
}

#undef EACH_ROWS
#undef TILE_FUNCTION
#undef TILE_NAME
