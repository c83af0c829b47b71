/* pack_body.h - squares turned in registers, panels of B and rows of A made contiguous (a body, after vec_body.h). */

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

/* Lane j of x[i] becomes lane i of x[j]. */
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

#define ADD_HALVES(x, h) \
    UNROLL for (int i = 0; i < (h); i++) x[i] = SHUFFLE(x[i], x[i + (h)], FIRST_HALVES, h) + SHUFFLE(x[i], x[i + (h)], SECOND_HALVES, h);

/* Lane i is the total of x[i], all of them in the same order; x is spent. */
INLINE VEC RLXK_FN(totals)(VEC *x) {
#if RLXK_LANES > 8
    ADD_HALVES(x, 8)
#endif
#if RLXK_LANES > 4
    ADD_HALVES(x, 4)
#endif
    ADD_HALVES(x, 2)
    ADD_HALVES(x, 1)
    return x[0];
}

#undef ADD_HALVES
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

/* to[p * ROW_PITCH + i] = from[i * row + p * col] for p < k, i < rows, at most TILE_ROWS; what lies between is undefined. */
static inline void RLXK_FN(pack_rows)(float *to, const float *from, int64_t rows, int64_t k, int64_t row, int64_t col) {
    int64_t p = 0;
    if (row == 1) {
        for (; p < k; p++, from += col, to += ROW_PITCH) {
            for (int64_t i = 0; i < rows; i += RLXK_LANES) {
                const int32_t n = (int32_t)(rows - i < RLXK_LANES ? rows - i : RLXK_LANES);
                RLXK_FN(store)(to + i, RLXK_FN(load_first)(from + i, n));
            }
            __builtin_prefetch(from + 16 * col);
        }
        return;
    }
    for (; col == 1 && p + RLXK_LANES <= k; p += RLXK_LANES) {
        for (int64_t first = 0; first < rows; first += RLXK_LANES) {
            VEC x[RLXK_LANES];
            UNROLL for (int i = 0; i < RLXK_LANES; i++) {
                x[i] = first + i < rows ? RLXK_FN(load)(from + p + (first + i) * row) : 0;
            }
            RLXK_FN(transpose)(x);
            UNROLL for (int i = 0; i < RLXK_LANES; i++) RLXK_FN(store)(to + (p + i) * ROW_PITCH + first, x[i]);
        }
    }
    for (; p < k; p++) {
        for (int64_t i = 0; i < rows; i++) to[p * ROW_PITCH + i] = from[p * col + i * row];
    }
}
