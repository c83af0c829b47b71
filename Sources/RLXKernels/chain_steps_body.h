/* chain_steps_body.h - what each step of a chain does to its slots, and the folds; part of chain_body.h. Knows nothing
 * of tiles. */

/* MARK: Steps */

/* A step may write over its operand, element by element: the loops are safe to vectorise all the same. */
#define SERIAL_LOOP for (int64_t i = 0; i < n; i++)
#define LOOP _Pragma("clang loop vectorize(assume_safety)") SERIAL_LOOP
/* A division of 16 floats takes longer than two of 8. */
#define DIVIDER_LOOP _Pragma("clang loop vectorize(assume_safety) vectorize_width(8)") SERIAL_LOOP
#define STEP(NAME) static void RLXK_FN(NAME)(STEP_PARAMETERS)

#define UNARY(NAME, IN, OUT, FOR, EXPRESSION) \
    STEP(step_##NAME) {                       \
        UNPACK(IN, OUT);                      \
        FOR {                                 \
            const IN x = xs[i];               \
            out[i] = (OUT)(EXPRESSION);       \
        }                                     \
    }

/* 1 in SX means that x is one element for all lanes. */
#define BINARY_FORM(NAME, IN, OUT, FOR, EXPRESSION, SX, SY) \
    STEP(step_##NAME##_##SX##SY) {                          \
        UNPACK(IN, OUT);                                    \
        const IN x0 = xs[0], y0 = ys[0];                    \
        FOR {                                               \
            const IN x = SX ? x0 : xs[i];                   \
            const IN y = SY ? y0 : ys[i];                   \
            out[i] = (OUT)(EXPRESSION);                     \
        }                                                   \
    }
#define BINARY(NAME, IN, OUT, FOR, EXPRESSION)            \
    BINARY_FORM(NAME, IN, OUT, FOR, EXPRESSION, 0, 0)     \
    BINARY_FORM(NAME, IN, OUT, FOR, EXPRESSION, 1, 0)     \
    BINARY_FORM(NAME, IN, OUT, FOR, EXPRESSION, 0, 1)

#define TERNARY_FORM(NAME, INX, IN, EXPRESSION, SX, SY, SZ) \
    STEP(step_##NAME##_##SX##SY##SZ) {                      \
        UNPACK(IN, IN);                                     \
        const INX *xx = (const INX *)(const void *)xs;                                  \
        const INX x0 = xx[0];                               \
        const IN y0 = ys[0], z0 = zs[0];                    \
        LOOP {                                              \
            const INX x = SX ? x0 : xx[i];                  \
            const IN y = SY ? y0 : ys[i];                   \
            const IN z = SZ ? z0 : zs[i];                   \
            out[i] = (EXPRESSION);                          \
        }                                                   \
    }
#define TERNARY(NAME, INX, IN, EXPRESSION)              \
    TERNARY_FORM(NAME, INX, IN, EXPRESSION, 0, 0, 0)    \
    TERNARY_FORM(NAME, INX, IN, EXPRESSION, 1, 0, 0)    \
    TERNARY_FORM(NAME, INX, IN, EXPRESSION, 0, 1, 0)    \
    TERNARY_FORM(NAME, INX, IN, EXPRESSION, 1, 1, 0)    \
    TERNARY_FORM(NAME, INX, IN, EXPRESSION, 0, 0, 1)    \
    TERNARY_FORM(NAME, INX, IN, EXPRESSION, 1, 0, 1)    \
    TERNARY_FORM(NAME, INX, IN, EXPRESSION, 0, 1, 1)

#define QUATERNARY_FORM(NAME, FOR, EXPRESSION, SX, SY, SZ, SW)        \
    STEP(step_##NAME##_##SX##SY##SZ##SW) {                            \
        UNPACK(float, float);                                         \
        const float x0 = xs[0], y0 = ys[0], z0 = zs[0], w0 = ws[0];   \
        FOR {                                                         \
            const float x = SX ? x0 : xs[i], y = SY ? y0 : ys[i];     \
            const float z = SZ ? z0 : zs[i], w = SW ? w0 : ws[i];     \
            out[i] = (EXPRESSION);                                    \
        }                                                             \
    }
#define PRODUCTS(NAME, EXPRESSION)                      \
    QUATERNARY_FORM(NAME, LOOP, EXPRESSION, 0, 0, 0, 0) \
    QUATERNARY_FORM(NAME, LOOP, EXPRESSION, 1, 0, 0, 0) \
    QUATERNARY_FORM(NAME, LOOP, EXPRESSION, 0, 0, 1, 0) \
    QUATERNARY_FORM(NAME, LOOP, EXPRESSION, 1, 0, 1, 0)
#define SHRINK(NAME, EXPRESSION) QUATERNARY_FORM(NAME, LOOP, EXPRESSION, 1, 1, 0, 0)
#define ROOT(NAME, EXPRESSION) QUATERNARY_FORM(NAME, DIVIDER_LOOP, EXPRESSION, 0, 0, 1, 1)

#define X(NAME, EXPRESSION) UNARY(NAME, float, float, LOOP, EXPRESSION)
RLXK_UNARY_F32(X)
#undef X
#define X(NAME, EXPRESSION) UNARY(NAME, float, float, DIVIDER_LOOP, EXPRESSION)
RLXK_ROOT_F32(X)
#undef X
#define X(NAME, EXPRESSION) UNARY(NAME, int32_t, int32_t, LOOP, EXPRESSION)
RLXK_UNARY_I32(X)
#undef X
#define X(NAME, EXPRESSION) BINARY(NAME, float, float, LOOP, EXPRESSION)
RLXK_BINARY_F32(X)
#undef X
#define X(NAME, EXPRESSION) BINARY(NAME, float, int32_t, LOOP, EXPRESSION)
RLXK_COMPARE_F32(X)
#undef X
#define X(NAME, EXPRESSION) BINARY(NAME, int32_t, int32_t, LOOP, EXPRESSION)
RLXK_BINARY_I32(X)
#undef X
#define X(NAME, EXPRESSION) BINARY(NAME, int32_t, int32_t, DIVIDER_LOOP, EXPRESSION)
RLXK_DIVISION_I32(X)
#undef X
#define X(NAME, EXPRESSION) BINARY(NAME, int32_t, int32_t, SERIAL_LOOP, EXPRESSION)
RLXK_POWER_I32(X)
#undef X
#define X(NAME, EXPRESSION) TERNARY(NAME, float, float, EXPRESSION)
RLXK_TERNARY_F32(X)
#undef X

RLXK_PRODUCTS_F32(PRODUCTS)
RLXK_SHRINK_F32(SHRINK)
RLXK_ROOT_DIV_F32(ROOT)

UNARY(COPY, uint32_t, uint32_t, LOOP, x)
UNARY(F32_TO_I32, float, int32_t, LOOP, rlxk_to_int(x))
UNARY(I32_TO_F32, int32_t, float, LOOP, (float)x)
UNARY(F32_TO_BOOL, float, int32_t, LOOP, x != 0.0f)
TERNARY(SELECT, int32_t, uint32_t, x != 0 ? y : z)

BINARY_FORM(DIV, float, float, DIVIDER_LOOP, x / y, 0, 0)
BINARY_FORM(DIV, float, float, DIVIDER_LOOP, x / y, 1, 0)

/* Where the inverse is exact, a product is the same quotient and several times faster. */
STEP(step_DIV_01) {
    UNPACK(float, float);
    const float y = ys[0], inverse = 1.0f / y;
    const uint32_t exponent = rlxk_bits(y) >> 23 & 255;
    if ((rlxk_bits(y) & 0x007fffffu) == 0 && exponent > 1 && exponent < 253) {
        LOOP out[i] = xs[i] * inverse;
    } else {
        DIVIDER_LOOP out[i] = xs[i] / y;
    }
}

STEP(step_COPY_1) {
    UNPACK(uint32_t, uint32_t);
    const uint32_t x = xs[0];
    LOOP out[i] = x;
}

/* Loops whose formula holds for most elements: where it does not for one, each of them is asked. */
#define TRIGONOMETRIC(NAME, FORMULA, EXACT)                                                          \
    STEP(step_##NAME) {                                                                              \
        UNPACK(float, float);                                                                        \
        int32_t far = 0;                                                                             \
        LOOP far |= !(rlxk_abs(xs[i]) < RLXK_TRIGONOMETRIC_LIMIT);                                   \
        if (far) {                                                                                   \
            SERIAL_LOOP {                                                                            \
                const float x = xs[i];                                                               \
                out[i] = rlxk_abs(x) < RLXK_TRIGONOMETRIC_LIMIT ? (FORMULA) : EXACT(x);              \
            }                                                                                        \
        } else {                                                                                     \
            LOOP {                                                                                   \
                const float x = xs[i];                                                               \
                out[i] = (FORMULA);                                                                  \
            }                                                                                        \
        }                                                                                            \
    }
RLXK_TRIGONOMETRIC_F32(TRIGONOMETRIC)

#define REMAINDER_FORM(NAME, FORMULA, EXACT, SX, SY)                                                 \
    STEP(step_##NAME##_##SX##SY) {                                                                   \
        UNPACK(float, float);                                                                        \
        const float x0 = xs[0], y0 = ys[0];                                                          \
        int32_t far = 0;                                                                             \
        LOOP far |= !rlxk_divides_near(SX ? x0 : xs[i], SY ? y0 : ys[i]);                            \
        if (far) {                                                                                   \
            SERIAL_LOOP {                                                                            \
                const float x = SX ? x0 : xs[i], y = SY ? y0 : ys[i];                                \
                out[i] = rlxk_divides_near(x, y) ? (FORMULA) : EXACT(x, y);                          \
            }                                                                                        \
        } else {                                                                                     \
            DIVIDER_LOOP {                                                                           \
                const float x = SX ? x0 : xs[i], y = SY ? y0 : ys[i];                                \
                out[i] = (FORMULA);                                                                  \
            }                                                                                        \
        }                                                                                            \
    }
#define REMAINDER(NAME, FORMULA, EXACT)           \
    REMAINDER_FORM(NAME, FORMULA, EXACT, 0, 0)    \
    REMAINDER_FORM(NAME, FORMULA, EXACT, 1, 0)    \
    REMAINDER_FORM(NAME, FORMULA, EXACT, 0, 1)
RLXK_REMAINDER_F32(REMAINDER)

/* MARK: Moments */

/* Both moments of a gradient and the step that they make, in one pass: its speed is the memory's, where the divider's
 * and the memory's time would add up in steps of their own. */
#define MOMENTS(NAME, SHRUNK)                                                                             \
    STEP(step_##NAME) {                                                                                   \
        float *new_w = SLOT(0), *new_m = SLOT(1), *new_v = SLOT(2);                                             \
        const float *ms = SLOT(4), *gs = SLOT(6), *vs = SLOT(8), *ws = SLOT(13);                                  \
        const float keep_m = *(const float *)SLOT(3), take_m = *(const float *)SLOT(5);                                   \
        const float keep_v = *(const float *)SLOT(7), take_v = *(const float *)SLOT(9);                                   \
        const float scale = *(const float *)SLOT(10), epsilon = *(const float *)SLOT(11), rate = *(const float *)SLOT(12);        \
        const float decay = *(const float *)SLOT(14);                                                             \
        (void)step, (void)decay;                                                                          \
        DIVIDER_LOOP {                                                                                    \
            const float g = gs[i], w = ws[i];                                                             \
            const float m = keep_m * ms[i] + take_m * g;                                                  \
            const float v = keep_v * vs[i] + take_v * (g * g);                                            \
            new_m[i] = m;                                                                                 \
            new_v[i] = v;                                                                                 \
            new_w[i] = (SHRUNK) - rate * (m / (rlxk_sqrt(v) * scale + epsilon));                          \
        }                                                                                                 \
    }
MOMENTS(MOMENTS, w)
MOMENTS(MOMENTS_SHRINK, w - decay * w)

/* MARK: Folds */

static float RLXK_FN(sum)(const float *x, int64_t n) {
#pragma clang fp reassociate(on)
    float sum = 0.0f;
#pragma clang loop vectorize(enable) interleave_count(4)
    for (int64_t i = 0; i < n; i++) sum += x[i];
    return sum;
}

typedef float RLXK_FN(floats) __attribute__((ext_vector_type(RLXK_LANES)));

/* Written with vectors: as a loop it stays scalar, for NaN has to get through. Here NaN is looked for beside. */
#define EXTREME(NAME, NEUTRAL, BETTER, SCALAR)                                                       \
    static float RLXK_FN(NAME)(const float *x, int64_t n) {                                          \
        float best = NEUTRAL;                                                                        \
        if (n < RLXK_LANES) {                                                                        \
            for (int64_t i = 0; i < n; i++) best = SCALAR(best, x[i]);                               \
            return best;                                                                             \
        }                                                                                            \
        RLXK_FN(floats) top[4], v;                                                                   \
        for (int j = 0; j < 4; j++) top[j] = NEUTRAL;                                                \
        RLXK_FN(whole) unordered = 0;                                                                \
        int64_t i = 0;                                                                               \
        for (; i + 4 * RLXK_LANES <= n; i += 4 * RLXK_LANES) {                                       \
            _Pragma("clang loop unroll(full)") for (int j = 0; j < 4; j++) {                         \
                memcpy(&v, x + i + j * RLXK_LANES, sizeof v);                                        \
                top[j] = v BETTER top[j] ? v : top[j];                                               \
                unordered |= v != v;                                                                 \
            }                                                                                        \
        }                                                                                            \
        for (; i < n; i += RLXK_LANES) { /* the last vector overlaps */                              \
            memcpy(&v, x + (i + RLXK_LANES <= n ? i : n - RLXK_LANES), sizeof v);                    \
            top[0] = v BETTER top[0] ? v : top[0];                                                   \
            unordered |= v != v;                                                                     \
        }                                                                                            \
        for (int j = 1; j < 4; j++) top[0] = top[j] BETTER top[0] ? top[j] : top[0];                 \
        float lanes[RLXK_LANES];                                                                     \
        memcpy(lanes, &top[0], sizeof lanes);                                                        \
        _Pragma("clang loop unroll(full)") for (int half = RLXK_LANES / 2; half > 0; half /= 2) {    \
            _Pragma("clang loop unroll(full)") for (int j = 0; j < half; j++) {                      \
                lanes[j] = lanes[j + half] BETTER lanes[j] ? lanes[j + half] : lanes[j];             \
            }                                                                                        \
        }                                                                                            \
        return __builtin_reduce_or(unordered) ? NAN : lanes[0];                                      \
    }
typedef int32_t RLXK_FN(whole) __attribute__((ext_vector_type(RLXK_LANES)));
EXTREME(maximum, -INFINITY, >, rlxk_max)
EXTREME(minimum, INFINITY, <, rlxk_min)

#define FOLD(NAME, TYPE, NEUTRAL, ALL, COMBINE)                                       \
    static void RLXK_FN(fold_##NAME)(void *data, int64_t stride, const void *lanes, int64_t n) { \
        TYPE *out = data;                                                             \
        const TYPE *v = lanes;                                                        \
        if (stride == 0) {                                                            \
            const TYPE x = out[0], y = ALL;                                           \
            out[0] = COMBINE;                                                         \
        } else if (stride == 1) {                                                     \
            LOOP {                                                                    \
                const TYPE x = out[i], y = v[i];                                      \
                out[i] = COMBINE;                                                     \
            }                                                                         \
        } else {                                                                      \
            for (int64_t i = 0; i < n; i++) {                                         \
                const TYPE x = out[i * stride], y = v[i];                             \
                out[i * stride] = COMBINE;                                            \
            }                                                                         \
        }                                                                             \
    }                                                                                 \
    static void RLXK_FN(neutral_##NAME)(void *data, int64_t n) {                      \
        TYPE *out = data;                                                             \
        LOOP out[i] = NEUTRAL;                                                        \
    }

#define SERIAL_FOLD(NAME, TYPE, NEUTRAL, COMBINE)                        \
    static TYPE RLXK_FN(all_##NAME)(const TYPE *v, int64_t n) {          \
        TYPE x = NEUTRAL;                                                \
        for (int64_t i = 0; i < n; i++) {                                \
            const TYPE y = v[i];                                         \
            x = COMBINE;                                                 \
        }                                                                \
        return x;                                                        \
    }                                                                    \
    FOLD(NAME, TYPE, NEUTRAL, RLXK_FN(all_##NAME)(v, n), COMBINE)

FOLD(SUM, float, 0.0f, RLXK_FN(sum)(v, n), x + y)
FOLD(MAXIMUM, float, -INFINITY, RLXK_FN(maximum)(v, n), rlxk_max(x, y))
FOLD(MINIMUM, float, INFINITY, RLXK_FN(minimum)(v, n), rlxk_min(x, y))
SERIAL_FOLD(PRODUCT, float, 1.0f, x * y)
SERIAL_FOLD(SUM_I32, int32_t, 0, (int32_t)((uint32_t)x + (uint32_t)y))
SERIAL_FOLD(MAXIMUM_I32, int32_t, INT32_MIN, x > y ? x : y)
SERIAL_FOLD(MINIMUM_I32, int32_t, INT32_MAX, x < y ? x : y)
SERIAL_FOLD(PRODUCT_I32, int32_t, 1, (int32_t)((uint32_t)x * (uint32_t)y))

#define FOLD_ENTRY(NAME) [RLXK_##NAME] = { RLXK_FN(fold_##NAME), RLXK_FN(neutral_##NAME) }
static const fold_functions RLXK_FN(folds)[] = {
    FOLD_ENTRY(SUM),     FOLD_ENTRY(MAXIMUM),     FOLD_ENTRY(MINIMUM),     FOLD_ENTRY(PRODUCT),
    FOLD_ENTRY(SUM_I32), FOLD_ENTRY(MAXIMUM_I32), FOLD_ENTRY(MINIMUM_I32), FOLD_ENTRY(PRODUCT_I32),
};

STEP(step_ROW_SUM) {
    UNPACK(float, float);
    out[0] = RLXK_FN(sum)(xs, n);
}
STEP(step_ROW_MAX) {
    UNPACK(float, float);
    out[0] = RLXK_FN(maximum)(xs, n);
}
STEP(step_ROW_MIN) {
    UNPACK(float, float);
    out[0] = RLXK_FN(minimum)(xs, n);
}

/* MARK: Table of steps */

#define ONE(NAME) [RLXK_##NAME] = { RLXK_FN(step_##NAME) }
#define UNARY_ENTRY(NAME, ...) ONE(NAME),
#define BINARY_ENTRY(NAME, ...) \
    [RLXK_##NAME] = { RLXK_FN(step_##NAME##_00), RLXK_FN(step_##NAME##_10), RLXK_FN(step_##NAME##_01) },
#define TERNARY_ENTRY(NAME, EXPRESSION)                                                               \
    [RLXK_##NAME] = { RLXK_FN(step_##NAME##_000), RLXK_FN(step_##NAME##_100), RLXK_FN(step_##NAME##_010), \
                      RLXK_FN(step_##NAME##_110), RLXK_FN(step_##NAME##_001), RLXK_FN(step_##NAME##_101), \
                      RLXK_FN(step_##NAME##_011) },

#define PRODUCTS_ENTRY(NAME, EXPRESSION)                                                          \
    [RLXK_##NAME] = { [0] = RLXK_FN(step_##NAME##_0000), [1] = RLXK_FN(step_##NAME##_1000), \
                      [4] = RLXK_FN(step_##NAME##_0010), [5] = RLXK_FN(step_##NAME##_1010) },
#define SHRINK_ENTRY(NAME, EXPRESSION) [RLXK_##NAME] = { [3] = RLXK_FN(step_##NAME##_1100) },
#define ROOT_ENTRY(NAME, EXPRESSION) [RLXK_##NAME] = { [12] = RLXK_FN(step_##NAME##_0011) },

/* By operation and by which operands are scalar. */
static const step_function RLXK_FN(steps)[RLXK_OP_COUNT][13] = {
    [RLXK_COPY] = { RLXK_FN(step_COPY), RLXK_FN(step_COPY_1) },
    ONE(F32_TO_I32),
    ONE(I32_TO_F32),
    ONE(F32_TO_BOOL),
    ONE(ROW_SUM),
    ONE(ROW_MAX),
    ONE(ROW_MIN),
    ONE(MOMENTS),
    ONE(MOMENTS_SHRINK),
    BINARY_ENTRY(DIV, )
    TERNARY_ENTRY(SELECT, )
    RLXK_UNARY_F32(UNARY_ENTRY) RLXK_ROOT_F32(UNARY_ENTRY) RLXK_TRIGONOMETRIC_F32(UNARY_ENTRY) RLXK_UNARY_I32(UNARY_ENTRY)
    RLXK_BINARY_F32(BINARY_ENTRY) RLXK_REMAINDER_F32(BINARY_ENTRY) RLXK_COMPARE_F32(BINARY_ENTRY)
    RLXK_TERNARY_F32(TERNARY_ENTRY) RLXK_PRODUCTS_F32(PRODUCTS_ENTRY) RLXK_SHRINK_F32(SHRINK_ENTRY)
    RLXK_ROOT_DIV_F32(ROOT_ENTRY) RLXK_BINARY_I32(BINARY_ENTRY) RLXK_DIVISION_I32(BINARY_ENTRY)
    RLXK_POWER_I32(BINARY_ENTRY)
};

#undef SERIAL_LOOP
#undef LOOP
#undef DIVIDER_LOOP
#undef STEP
#undef UNARY
#undef BINARY_FORM
#undef BINARY
#undef TERNARY_FORM
#undef TERNARY
#undef QUATERNARY_FORM
#undef PRODUCTS
#undef SHRINK
#undef ROOT
#undef TRIGONOMETRIC
#undef REMAINDER_FORM
#undef REMAINDER
#undef MOMENTS
#undef EXTREME
#undef FOLD
#undef SERIAL_FOLD
#undef FOLD_ENTRY
#undef ONE
#undef UNARY_ENTRY
#undef BINARY_ENTRY
#undef TERNARY_ENTRY
#undef PRODUCTS_ENTRY
#undef SHRINK_ENTRY
#undef ROOT_ENTRY
