/* transpose_body.h - a square of vectors, turned in registers (a body, after tile_body.h). */

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

#undef EXCHANGE
#undef SECOND_HALVES
#undef FIRST_HALVES
#undef SHUFFLE
