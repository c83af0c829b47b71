/* vec_body.h - vectors of floats, and how a body asks for a tile (a body for isa_each.h). */

#undef TILE_ROWS
#if RLXK_LANES == 16
#define TILE_ROWS 14 /* 28 sums, 2 vectors of B and a broadcast in 32 registers */
#elif defined(__aarch64__)
#define TILE_ROWS 12
#else
#define TILE_ROWS 6 /* of 16 registers */
#endif
#undef ROW_PITCH
#define ROW_PITCH ((TILE_ROWS + RLXK_LANES - 1) / RLXK_LANES * RLXK_LANES)
#undef TILE_VECTORS
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

/* NaN stays: it is neither below nor above. */
INLINE VEC RLXK_FN(clip)(VEC x, const float *bounds) {
    x = x < bounds[0] ? bounds[0] : x;
    return x > bounds[1] ? bounds[1] : x;
}

/* Vector v of a row of the panel; `full` says that the last one is whole too. */
INLINE VEC RLXK_FN(load_of)(const float *row, int v, int vectors, bool full, int32_t tail) {
    const float *p = row + v * RLXK_LANES;
    return full || v + 1 < vectors ? RLXK_FN(load)(p) : RLXK_FN(load_first)(p, tail);
}

/* [vectors - 1][whether the last vector is full][rows - 1] */
typedef void (*const RLXK_FN(tile_table)[TILE_VECTORS][2][TILE_ROWS])(const rlxk_tile *);
extern RLXK_FN(tile_table) RLXK_FN(rlxk_tiles);

/* Computes `columns` (at most PANEL) of `rows` (at most TILE_ROWS); sets the tile's tail. */
INLINE void RLXK_FN(tile_run)(rlxk_tile *t, int64_t rows, int64_t columns) {
    int64_t before_last = (columns - 1) / RLXK_LANES;
    t->tail = (int32_t)(columns - before_last * RLXK_LANES);
    RLXK_FN(rlxk_tiles)[before_last][t->tail == RLXK_LANES][rows - 1](t);
}
