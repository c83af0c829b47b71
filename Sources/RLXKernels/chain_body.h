/* chain_body.h - the loops of a chain for one instruction set; compiled by isa_each.h from chain.c. */

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
        const INX *xx = (const INX *)(const void *)xs;      \
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
#define X(NAME, EXPRESSION) UNARY(NAME, float, float, SERIAL_LOOP, EXPRESSION)
RLXK_LIBM_F32(X)
#undef X
#define X(NAME, EXPRESSION) UNARY(NAME, int32_t, int32_t, LOOP, EXPRESSION)
RLXK_UNARY_I32(X)
#undef X
#define X(NAME, EXPRESSION) BINARY(NAME, float, float, LOOP, EXPRESSION)
RLXK_BINARY_F32(X)
#undef X
#define X(NAME, EXPRESSION) BINARY(NAME, float, float, SERIAL_LOOP, EXPRESSION)
RLXK_REMAINDER_F32(X)
#undef X
#define X(NAME, EXPRESSION) BINARY(NAME, float, int32_t, LOOP, EXPRESSION)
RLXK_COMPARE_F32(X)
#undef X
#define X(NAME, EXPRESSION) BINARY(NAME, int32_t, int32_t, LOOP, EXPRESSION)
RLXK_BINARY_I32(X)
#undef X
#define X(NAME, EXPRESSION) BINARY(NAME, int32_t, int32_t, SERIAL_LOOP, EXPRESSION)
RLXK_DIVISION_I32(X)
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

#define TRIGONOMETRIC(NAME, QUARTERS, EXACT)                                        \
    STEP(step_##NAME) {                                                             \
        UNPACK(float, float);                                                       \
        int32_t far = 0;                                                            \
        LOOP far |= !(rlxk_abs(xs[i]) < RLXK_TRIGONOMETRIC_LIMIT);                  \
        if (far) {                                                                  \
            for (int64_t i = 0; i < n; i++) out[i] = EXACT(xs[i]);                  \
        } else {                                                                    \
            LOOP out[i] = rlxk_sine(xs[i], QUARTERS);                               \
        }                                                                           \
    }
TRIGONOMETRIC(SIN, 0, sinf)
TRIGONOMETRIC(COS, 1, cosf)

/* MARK: Folds */

static float RLXK_FN(sum)(const float *x, int64_t n) {
#pragma clang fp reassociate(on)
    float sum = 0.0f;
#pragma clang loop vectorize(enable) interleave_count(4)
    for (int64_t i = 0; i < n; i++) sum += x[i];
    return sum;
}

typedef float RLXK_FN(floats) __attribute__((ext_vector_type(RLXK_LANES)));

/* Written with vectors: as a loop it stays scalar, for NaN has to get through. */
static float RLXK_FN(maximum)(const float *x, int64_t n, float sign) {
    float best = -INFINITY;
    int64_t i = 0;
    if (n >= 2 * RLXK_LANES) {
        RLXK_FN(floats) a, b, u, v;
        memcpy(&a, x, sizeof a);
        memcpy(&b, x + RLXK_LANES, sizeof b);
        a *= sign, b *= sign;
        for (i = 2 * RLXK_LANES; i + 2 * RLXK_LANES <= n; i += 2 * RLXK_LANES) {
            memcpy(&u, x + i, sizeof u);
            memcpy(&v, x + i + RLXK_LANES, sizeof v);
            u *= sign, v *= sign;
            a = ((a > u) | (a != a)) ? a : u;
            b = ((b > v) | (b != b)) ? b : v;
        }
        a = ((a > b) | (a != a)) ? a : b;
        for (int lane = 0; lane < RLXK_LANES; lane++) best = rlxk_max(best, a[lane]);
    }
    for (; i < n; i++) best = rlxk_max(best, sign * x[i]);
    return sign * best;
}

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
FOLD(MAXIMUM, float, -INFINITY, RLXK_FN(maximum)(v, n, 1.0f), rlxk_max(x, y))
FOLD(MINIMUM, float, INFINITY, RLXK_FN(maximum)(v, n, -1.0f), rlxk_min(x, y))
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
    out[0] = RLXK_FN(maximum)(xs, n, 1.0f);
}
STEP(step_ROW_MIN) {
    UNPACK(float, float);
    out[0] = RLXK_FN(maximum)(xs, n, -1.0f);
}

/* MARK: Table of steps */

#define ONE(NAME) [RLXK_##NAME] = { RLXK_FN(step_##NAME) }
#define UNARY_ENTRY(NAME, EXPRESSION) ONE(NAME),
#define BINARY_ENTRY(NAME, EXPRESSION) \
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
    ONE(SIN),
    ONE(COS),
    ONE(F32_TO_I32),
    ONE(I32_TO_F32),
    ONE(F32_TO_BOOL),
    ONE(ROW_SUM),
    ONE(ROW_MAX),
    ONE(ROW_MIN),
    BINARY_ENTRY(DIV, )
    TERNARY_ENTRY(SELECT, )
    RLXK_UNARY_F32(UNARY_ENTRY) RLXK_ROOT_F32(UNARY_ENTRY) RLXK_LIBM_F32(UNARY_ENTRY) RLXK_UNARY_I32(UNARY_ENTRY)
    RLXK_BINARY_F32(BINARY_ENTRY) RLXK_REMAINDER_F32(BINARY_ENTRY) RLXK_COMPARE_F32(BINARY_ENTRY)
    RLXK_TERNARY_F32(TERNARY_ENTRY) RLXK_PRODUCTS_F32(PRODUCTS_ENTRY) RLXK_SHRINK_F32(SHRINK_ENTRY)
    RLXK_ROOT_DIV_F32(ROOT_ENTRY) RLXK_BINARY_I32(BINARY_ENTRY) RLXK_DIVISION_I32(BINARY_ENTRY)
};

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

static void RLXK_FN(run_step)(const rlxk_chain *c, const tile *t, const rlxk_step *s, void *const *at) {
    const step_function run = RLXK_FN(steps)[s->op][s->scalars];
    const rlxk_slot *slot = c->slot;
    if (!s->by_row) {
        const rlxk_extent extent = slot[s->out].extent;
        const int64_t n = extent == RLXK_LANES_EXTENT ? t->lanes : extent == RLXK_ROWS_EXTENT ? t->rows : 1;
        run(s, at[s->out], at[s->x], at[s->y], at[s->z], at[s->w], n);
        return;
    }
    const int64_t advance[] = {
        [RLXK_LANES_EXTENT] = t->row_lanes * 4, [RLXK_ROWS_EXTENT] = 4, [RLXK_ONE_EXTENT] = 0
    };
    const int64_t out = advance[slot[s->out].extent], x = advance[slot[s->x].extent];
    const int64_t y = advance[slot[s->y].extent], z = advance[slot[s->z].extent], w = advance[slot[s->w].extent];
    for (int64_t row = 0; row < t->rows; row++) {
        run(s, (char *)at[s->out] + row * out, (char *)at[s->x] + row * x, (char *)at[s->y] + row * y,
            (char *)at[s->z] + row * z, (char *)at[s->w] + row * w, t->row_lanes);
    }
}

static void RLXK_FN(run_tile)(const rlxk_chain *c, const tile *t, int64_t chunk, void **at) {
    for (int32_t i = 0; i < c->inputs; i++) {
        const rlxk_operand *o = &c->input[i];
        if (o->access == RLXK_DIRECT) at[o->slot] = (uint32_t *)o->data + tile_offset(t, o->stride);
        if (o->access == RLXK_MOVED) {
            const int32_t end = c->slot[o->slot].extent == RLXK_LANES_EXTENT ? c->dims : c->row;
            RLXK_FN(move_tile)(t, o, tile_offset(t, o->stride), end, at[o->slot], 0);
        }
    }
    for (int32_t i = 0; i < c->outputs; i++) {
        const rlxk_operand *o = &c->output[i];
        if (o->access == RLXK_DIRECT) at[o->slot] = (uint32_t *)o->data + tile_offset(t, o->stride);
    }
    for (int32_t i = c->prologue; i < c->steps; i++) RLXK_FN(run_step)(c, t, &c->program[i], at);
    for (int32_t i = 0; i < c->outputs; i++) {
        const rlxk_operand *o = &c->output[i];
        if (o->access == RLXK_DIRECT) continue;
        const int32_t end = c->slot[o->slot].extent == RLXK_LANES_EXTENT ? c->dims : c->row;
        RLXK_FN(move_tile)(t, o, tile_offset(t, o->stride), end, at[o->slot], 1);
    }
    for (int32_t i = 0; i < c->sinks; i++) {
        const rlxk_sink *s = &c->sink[i];
        const int32_t end = c->slot[s->slot].extent == RLXK_LANES_EXTENT ? c->dims : c->row;
        uint32_t *data = (uint32_t *)s->data + chunk * s->shift + tile_offset(t, s->stride);
        RLXK_FN(fold_tile)(t, s, data, end, at[s->slot]);
    }
}

static void RLXK_FN(prepare)(const rlxk_chain *c, const tile *t, void **at) {
    for (int32_t i = 0; i < c->inputs; i++) {
        const rlxk_operand *o = &c->input[i];
        if (o->access != RLXK_ONCE) continue;
        const rlxk_extent extent = c->slot[o->slot].extent;
        const int32_t dims = extent == RLXK_LANES_EXTENT ? c->dims : extent == RLXK_ROWS_EXTENT ? c->row : 0;
        RLXK_FN(move_tile)(t, o, 0, dims, at[o->slot], 0);
    }
    for (int32_t i = 0; i < c->prologue; i++) RLXK_FN(run_step)(c, t, &c->program[i], at);
}

static void RLXK_FN(chain)(const void *arguments, int32_t worker, int32_t workers) {
    const rlxk_chain *c = arguments;
    const int64_t chunks = c->tiles == 0 ? 1 : (c->tiles + c->chunk_tiles - 1) / c->chunk_tiles;
    int64_t begin, end;
    rlxk_share(chunks, worker, workers, &begin, &end);
    if (begin == end) return;

    void *at[RLXK_MAX_SLOTS];
    float *scratch = c->scratch + worker * c->scratch_stride;
    for (int32_t i = 0; i < c->slots; i++) at[i] = scratch + c->slot[i].offset;

    tile t;
    tile_start(&t, c, 0); /* a full tile: a later one may be cut */
    if (c->tiles > 0) RLXK_FN(prepare)(c, &t, at);
    tile_start(&t, c, begin * c->chunk_tiles);
    for (int64_t chunk = begin; chunk < end; chunk++) {
        for (int32_t i = 0; i < c->sinks; i++) {
            const rlxk_sink *s = &c->sink[i];
            const int64_t first = chunk * s->begin;
            const int64_t count = s->count < s->total - first ? s->count : s->total - first;
            RLXK_FN(folds)[s->fold].neutral((uint32_t *)s->data + chunk * s->shift + first, count);
        }
        const int64_t after = (chunk + 1) * c->chunk_tiles, last = after < c->tiles ? after : c->tiles;
        for (int64_t i = chunk * c->chunk_tiles; i < last; i++) {
            RLXK_FN(run_tile)(c, &t, chunk, at);
            tile_next(&t, c);
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
#undef MOVE
#undef RLXK_NATIVE_HALF
#undef RLXK_FROM_HALF
#undef RLXK_TO_HALF
