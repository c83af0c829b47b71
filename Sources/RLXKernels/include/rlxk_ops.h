/* rlxk_ops.h - the operations of a chain on one element: the only list of them.
 *
 * X(NAME, expression): operands are x, y, z, w, the step's parameters p and q. The enumeration, the loops for every
 * instruction set and the tables of the loops are all made from these lists. Booleans are 0 and 1 in 32 bits.
 */
#ifndef RLXK_OPS_H
#define RLXK_OPS_H

/* f32 -> f32 */
#define RLXK_UNARY_F32(X)                                                   \
    X(NEGATE, -x)                                                           \
    X(ABS, rlxk_abs(x))                                                     \
    X(SIGN, rlxk_sign(x))                                                   \
    X(SQUARE, x * x)                                                        \
    X(EXP, rlxk_exp(x))                                                     \
    X(EXP2, rlxk_exp2(x))                                                   \
    X(LOG, rlxk_log(rlxk_shift(x, p)))                                      \
    X(TANH, rlxk_tanh(x))                                                   \
    X(SIGMOID, rlxk_sigmoid(x))                                             \
    X(SILU, rlxk_silu(x))                                                   \
    X(SOFTPLUS, rlxk_softplus(x))                                           \
    X(SOFTSIGN, x / (1.0f + rlxk_abs(x)))                                   \
    X(RELU, rlxk_relu(x))                                                   \
    X(LEAKY_RELU, x < 0.0f ? x * p : x)                                     \
    X(ELU, x < 0.0f ? p * rlxk_expm1(x) : x)                                \
    X(THRESHOLDED_RELU, x < p ? 0.0f : x)                                   \
    X(HARD_SIGMOID, rlxk_clip(p * x + q, 0.0f, 1.0f))                       \
    X(GELU, rlxk_gelu(x))                                                   \
    X(GELU_TANH, rlxk_gelu_tanh(x))                                         \
    X(GELU_SIGMOID, x * rlxk_sigmoid(1.702f * x))                           \
    X(ERF, rlxk_erf(x))                                                     \
    X(CLIP, rlxk_clip(x, p, q))                                             \
    X(LINEAR, x * p + q)                                                    \
    X(FLOOR, __builtin_elementwise_floor(x))                                \
    X(CEIL, __builtin_elementwise_ceil(x))                                  \
    X(ROUND, __builtin_elementwise_roundeven(x))                            \
    X(ROUND_F16, RLXK_FROM_HALF(RLXK_TO_HALF(x)))

/* f32 -> f32, bound by the divider */
#define RLXK_ROOT_F32(X)                         \
    X(SQRT, rlxk_sqrt(x))                        \
    X(RSQRT, 1.0f / rlxk_sqrt(rlxk_shift(x, p))) \
    X(INVERSE, 1.0f / rlxk_shift(x, p))          \
    X(ASIN, rlxk_asin(x))                        \
    X(ACOS, rlxk_acos(x))                        \
    X(ATAN, rlxk_atan(x))                        \
    X(SINH, rlxk_sinh(x))                        \
    X(COSH, rlxk_cosh(x))                        \
    X(ATANH, rlxk_atanh(x))

/* f32 -> f32: the formula where |x| < RLXK_TRIGONOMETRIC_LIMIT, and libm's function, one at a time, elsewhere */
#define RLXK_TRIGONOMETRIC_F32(X)      \
    X(SIN, rlxk_sine(x, 0), sinf)      \
    X(COS, rlxk_sine(x, 1), cosf)      \
    X(TAN, rlxk_tangent(x), tanf)

/* f32, f32 -> f32 */
#define RLXK_BINARY_F32(X) \
    X(ADD, x + y)          \
    X(SUB, x - y)          \
    X(MUL, x * y)          \
    X(MAX, rlxk_max(x, y)) \
    X(MIN, rlxk_min(x, y)) \
    X(POW, rlxk_pow(x, y))

/* f32, f32 -> f32: the formula where rlxk_divides_near(x, y), and the function, one at a time, elsewhere */
#define RLXK_REMAINDER_F32(X)                               \
    X(FLOOR_DIV, rlxk_near_floor_div(x, y), rlxk_floor_div) \
    X(MOD, rlxk_near_mod(x, y), rlxk_mod)

/* f32, f32 -> bool */
#define RLXK_COMPARE_F32(X) \
    X(GT, x > y)            \
    X(GE, x >= y)           \
    X(EQ, x == y)           \
    X(NE, x != y)

/* f32, f32, f32 -> f32 */
#define RLXK_TERNARY_F32(X) \
    X(MUL_ADD, x * y + z)   \
    X(MUL_SUB, x * y - z)   \
    X(MUL_RSUB, z - x * y)

/* f32, f32, f32, f32 -> f32; x and z, and no others, may be one element for all, each alone or both */
#define RLXK_PRODUCTS_F32(X)      \
    X(MUL_MUL_ADD, x * y + z * w) \
    X(MUL_MUL_SUB, x * y - z * w) \
    X(MUL_SQUARE_ADD, x * y + z * (w * w))

/* f32, f32, f32, f32 -> f32; x and y are one element for all */
#define RLXK_SHRINK_F32(X) X(SHRINK_SUB, (w - x * w) - y * z)

/* f32, f32, f32, f32 -> f32; z and w are one element for all */
#define RLXK_ROOT_DIV_F32(X) X(ROOT_DIV, x / (rlxk_sqrt(y) * z + w))

/* i32 -> i32 */
#define RLXK_UNARY_I32(X)                                  \
    X(ABS_I32, x < 0 ? (int32_t)(0u - (uint32_t)x) : x)    \
    X(SIGN_I32, (x > 0) - (x < 0))                         \
    X(SQUARE_I32, (int32_t)((uint32_t)x * (uint32_t)x))    \
    X(NOT, x == 0)                                         \
    X(I32_TO_BOOL, x != 0)

/* i32, i32 -> i32 */
#define RLXK_BINARY_I32(X)                               \
    X(ADD_I32, (int32_t)((uint32_t)x + (uint32_t)y))     \
    X(SUB_I32, (int32_t)((uint32_t)x - (uint32_t)y))     \
    X(MUL_I32, (int32_t)((uint32_t)x * (uint32_t)y))     \
    X(MAX_I32, x > y ? x : y)                            \
    X(MIN_I32, x < y ? x : y)                            \
    X(GT_I32, x > y)                                     \
    X(GE_I32, x >= y)                                    \
    X(EQ_I32, x == y)                                    \
    X(NE_I32, x != y)                                    \
    X(AND, x & y)                                        \
    X(OR, x | y)                                         \
    X(XOR, x ^ y)

/* i32, i32 -> i32, bound by the divider */
#define RLXK_DIVISION_I32(X)                   \
    X(DIV_I32, rlxk_int_div(x, y))             \
    X(FLOOR_DIV_I32, rlxk_int_floor_div(x, y)) \
    X(MOD_I32, rlxk_int_mod(x, y))

/* i32, i32 -> i32, one at a time */
#define RLXK_POWER_I32(X) X(POW_I32, rlxk_int_pow(x, y))

#endif
