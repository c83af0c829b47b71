/* vmath.h - elementary functions of one float, free of branches and calls so that loops over them vectorise.
 *
 * Knows nothing of arrays. All of them pass NaN through, and are right at zeros, infinities and denormals;
 * errors in units in the last place stand beside each. Polynomials are minimax fits of our own.
 */
#ifndef RLXK_VMATH_H
#define RLXK_VMATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t rlxk_bits(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline float rlxk_float(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static inline uint64_t rlxk_bits64(double x) {
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline double rlxk_double(uint64_t u) {
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* Comparisons that let a NaN in either operand through, as IEEE maximum and minimum do. */
static inline float rlxk_max(float x, float y) { return ((x > y) | (x != x)) ? x : y; }
static inline float rlxk_min(float x, float y) { return ((x < y) | (x != x)) ? x : y; }
static inline float rlxk_abs(float x) { return __builtin_elementwise_abs(x); }
static inline float rlxk_sqrt(float x) { return __builtin_elementwise_sqrt(x); } /* sqrtf sets errno: stays scalar */

/* x + epsilon, even where the processor flushes the tiny sum of tiny numbers to zero; x itself for an epsilon of 0,
 * since -0 + 0 is 0. */
static inline float rlxk_shift(float x, float epsilon) {
    const float y = x + epsilon;
    const float larger = x > epsilon ? x : epsilon;
    const float sum = ((y == 0.0f) & (x >= 0.0f)) ? larger : y;
    return rlxk_bits(epsilon) == 0 ? x : sum;
}

static inline float rlxk_relu(float x) { return x < 0.0f ? 0.0f : x; }

static inline float rlxk_sign(float x) {
    const float s = (float)(x > 0.0f) - (float)(x < 0.0f);
    return x == x ? s : x;
}

static inline float rlxk_clip(float x, float low, float high) {
    const float y = x < low ? low : x;
    return y > high ? high : y;
}

/* Adding it rounds to an integer, which the low bits of the sum then hold. */
#define RLXK_ROUNDING 0x1.8p23f

static inline int32_t rlxk_rounded(float sum) { return (int32_t)(rlxk_bits(sum) - rlxk_bits(RLXK_ROUNDING)); }

/* x * 2^i in two steps: 2^i alone leaves the range at both ends. */
static inline float rlxk_scaled(float x, int32_t i) {
    const int32_t half = i >> 1;
    const uint32_t rest = (uint32_t)i - (uint32_t)half;
    return x * rlxk_float(((uint32_t)half + 127u) << 23) * rlxk_float((rest + 127u) << 23);
}

/* The factor of exp(x) between 2^-1/2 and 2^1/2; *k holds the exponent of the other one, of 2, in its low bits. */
static inline float rlxk_exp_part(float x, float *k) {
    *k = x * 0x1.715476p+0f + RLXK_ROUNDING;
    const float n = *k - RLXK_ROUNDING;
    float r = x - n * 0x1.62e4p-1f;
    r = r - n * 0x1.7f7d1cp-20f;
    float p = 0x1.9f07f2p-13f;
    p = p * r + 0x1.6d8dbp-10f;
    p = p * r + 0x1.111272p-7f;
    p = p * r + 0x1.55548ep-5f;
    p = p * r + 0x1.555554p-3f;
    p = p * r + 0.5f;
    p = p * (r * r) + r;
    return p + 1.0f;
}

/* exp(x) * 2^exponent, for an exponent of -1 ... 1; 1.0 ulp */
static inline float rlxk_exp_scaled(float x, int32_t exponent) {
    float t = x > 90.0f ? 90.0f : x;
    t = t < -104.0f ? -104.0f : t;
    float k;
    const float e = rlxk_exp_part(t, &k);
    return rlxk_scaled(e, rlxk_rounded(k) + exponent);
}

/* 1.0 ulp */
static inline float rlxk_exp(float x) { return rlxk_exp_scaled(x, 0); }

/* The same for -87 < x < 88. */
static inline float rlxk_exp_inside(float x) {
    float k;
    const float e = rlxk_exp_part(x, &k);
    return e * rlxk_float(((uint32_t)rlxk_rounded(k) + 127u) << 23);
}

/* exp(x) - 1 for x <= 0; 1.5 ulp */
static inline float rlxk_expm1(float x) {
    float p = 0x1.9f07f2p-13f;
    p = p * x + 0x1.6d8dbp-10f;
    p = p * x + 0x1.111272p-7f;
    p = p * x + 0x1.55548ep-5f;
    p = p * x + 0x1.555554p-3f;
    p = p * x + 0.5f;
    const float small = p * (x * x) + x;
    return x > -0x1.62e43p-2f ? small : rlxk_exp(x) - 1.0f;
}

/* 0.9 ulp */
static inline float rlxk_log(float x) {
    const int tiny = x < 0x1p-126f;
    const float y = tiny ? x * 0x1p23f : x;
    const uint32_t root = 0x3f3504f3u; /* sqrt(1/2): the mantissa goes into [sqrt(1/2), sqrt(2)) */
    const uint32_t u = rlxk_bits(y) - root;
    const float e = (float)((int32_t)u >> 23) - (tiny ? 23.0f : 0.0f);
    const float f = rlxk_float((u & 0x007fffffu) + root) - 1.0f;
    float p = 0x1.145df6p-4f;
    p = p * f - 0x1.de3ed2p-4f;
    p = p * f + 0x1.e6ef22p-4f;
    p = p * f - 0x1.fc218p-4f;
    p = p * f + 0x1.233774p-3f;
    p = p * f - 0x1.555c52p-3f;
    p = p * f + 0x1.99a4b4p-3f;
    p = p * f - 0x1.000006p-2f;
    p = p * f + 0x1.555548p-2f;
    const float z = f * f;
    float r = p * f * z + e * 0x1.7f7d1cp-20f;
    r = r - 0.5f * z;
    r = r + f;
    r = r + e * 0x1.62e4p-1f;
    r = x == INFINITY ? x : r;
    r = x == 0.0f ? -INFINITY : r;
    r = x < 0.0f ? NAN : r;
    return x != x ? x : r;
}

/* 1.2 ulp for x in [0, 1] */
static inline float rlxk_log1p(float x) {
    const float w = 1.0f + x;
    return rlxk_log(w) + (x - (w - 1.0f)) / w;
}

/* 1.5 ulp */
static inline float rlxk_tanh(float x) {
    const float a = rlxk_abs(x);
    const float z = x * x;
    float p = 0x1.18e2p-9f;
    p = p * z - 0x1.0bf508p-7f;
    p = p * z + 0x1.638b5ap-6f;
    p = p * z - 0x1.b9ee9p-5f;
    p = p * z + 0x1.111066p-3f;
    p = p * z - 0x1.555554p-2f;
    const float small = p * z * x + x;
    const float large = 1.0f - 2.0f / (rlxk_exp_inside(a > 10.0f ? 20.0f : a + a) + 1.0f);
    return __builtin_copysignf(a < 0.625f ? small : large, x);
}

/* 1.3 ulp */
static inline float rlxk_erf(float x) {
    const float a = rlxk_abs(x);
    const float z = x * x;
    float p = 0x1.496a3ep-14f;
    p = p * z - 0x1.a3f702p-11f;
    p = p * z + 0x1.5405b2p-8f;
    p = p * z - 0x1.b7f90cp-6f;
    p = p * z + 0x1.ce2cf8p-4f;
    p = p * z - 0x1.81273ep-2f;
    p = p * z + 0x1.06eba8p-3f; /* 2/sqrt(pi) - 1 */
    const float t = a > 4.0f ? 4.0f : a;
    float q = -0x1.6c05dp-16f;
    q = q * t + 0x1.ceea54p-12f;
    q = q * t - 0x1.1398c6p-8f;
    q = q * t + 0x1.9d0bbp-6f;
    q = q * t - 0x1.bc18cp-4f;
    q = q * t - 0x1.4434f2p-1f;
    q = q * t - 0x1.212c2cp+0f;
    q = q * t + 0x1.8b3acep-13f; /* log(erfc(t)) on [1, 4] */
    const float large = 1.0f - rlxk_exp_inside(q);
    return a < 1.0f ? p * x + x : __builtin_copysignf(large, x);
}

/* 2.6 ulp */
static inline float rlxk_sigmoid(float x) {
    const float e = rlxk_exp(-rlxk_abs(x));
    const float d = 1.0f / (1.0f + e);
    return x >= 0.0f ? d : e * d;
}

static inline float rlxk_silu(float x) { return x * rlxk_sigmoid(x); }

static inline float rlxk_softplus(float x) {
    return rlxk_max(x, 0.0f) + rlxk_log1p(rlxk_exp(-rlxk_abs(x)));
}

/* max(x, 0) - |x| Phi(-|x|), by the logarithm of the normal distribution function on [0, 5.75]; beyond it is nothing
 * left of the last term. 2.4 ulp where x is positive, 5e-8 where it is negative. */
static inline float rlxk_gelu(float x) {
    const float a = rlxk_abs(x);
    const float t = a > 5.75f ? 5.75f : a;
    float q = 0x1.c5845p-30f;
    q = q * t - 0x1.0a8ae2p-24f;
    q = q * t + 0x1.164a7cp-20f;
    q = q * t - 0x1.50dfb4p-17f;
    q = q * t + 0x1.faed16p-15f;
    q = q * t - 0x1.ae748cp-13f;
    q = q * t + 0x1.f7c2c6p-19f;
    q = q * t + 0x1.3c6d2ap-8f;
    q = q * t - 0x1.29ec46p-5f;
    q = q * t - 0x1.45f038p-2f;
    q = q * t - 0x1.988482p-1f;
    q = q * t - 0x1.62e42ep-1f;
    const float tail = a > 5.75f ? 0.0f : rlxk_exp_inside(q);
    /* An infinity meets the zero on the left side only. */
    return __builtin_copysignf(rlxk_relu(x) - (x < 0.0f ? a : t) * tail, x);
}

static inline float rlxk_gelu_tanh(float x) {
    return 0.5f * x * (1.0f + rlxk_tanh(0x1.988454p-1f * (x + 0.044715f * x * x * x)));
}

/* Below this the reduction by quarter turns is exact enough; above it, libm has to do it. */
#define RLXK_TRIGONOMETRIC_LIMIT 0x1p22f

/* What is left of x after whole quarter turns, whose count the low bits of `quarters` become. */
static inline float rlxk_reduced(float x, uint64_t *quarters) {
    const double shift = 0x1.8p52;
    const double k = (double)x * 0x1.45f306dc9c883p-1 + shift;
    const double n = k - shift;
    *quarters = rlxk_bits64(k);
    /* The high part has 30 bits: its product with n is exact without a fused multiply-add. */
    return (float)(((double)x - n * 0x1.921fb544p+0) - n * 0x1.0b4611a626331p-34);
}

/* sin(x + quarters * pi/2) for |x| < RLXK_TRIGONOMETRIC_LIMIT; 1.5 ulp */
static inline float rlxk_sine(float x, uint64_t quarters) {
    uint64_t quadrant;
    const float r = rlxk_reduced(x, &quadrant);
    quadrant += quarters;
    const float z = r * r;
    float s = 0x1.6ccf5ep-19f;
    s = s * z - 0x1.a00f74p-13f;
    s = s * z + 0x1.111108p-7f;
    s = s * z - 0x1.555556p-3f;
    s = __builtin_copysignf(s * z * r + r, r); /* 0 - -0 is 0 */
    float c = -0x1.241ca8p-22f;
    c = c * z + 0x1.a010d6p-16f;
    c = c * z - 0x1.6c16b8p-10f;
    c = c * z + 0x1.555556p-5f;
    c = c * z * z - 0.5f * z + 1.0f;
    const float y = quadrant & 1 ? c : s;
    return rlxk_float(rlxk_bits(y) ^ ((uint32_t)(quadrant & 2) << 30));
}

/* tan(x) for |x| < RLXK_TRIGONOMETRIC_LIMIT; 2.5 ulp */
static inline float rlxk_tangent(float x) {
    uint64_t quadrant;
    const float r = rlxk_reduced(x, &quadrant);
    const float z = r * r;
    float p = 0x1.1ece02p-8f;
    p = p * z + 0x1.7758a6p-14f;
    p = p * z + 0x1.6311c6p-7f;
    p = p * z + 0x1.5cafep-6f;
    p = p * z + 0x1.badbep-5f;
    p = p * z + 0x1.110d8ep-3f;
    p = p * z + 0x1.55556p-2f;
    const float t = p * z * r + r;
    return quadrant & 1 ? -1.0f / t : t;
}

/* The angle below pi/4 whose sine is s, with z = s * s */
static inline float rlxk_small_asin(float s, float z) {
    float p = 0x1.596d28p-5f;
    p = p * z + 0x1.8c283cp-6f;
    p = p * z + 0x1.747e4ap-5f;
    p = p * z + 0x1.3301e4p-4f;
    p = p * z + 0x1.5555c8p-3f;
    return p * z * s + s;
}

#define RLXK_HALF_PI 0x1.921fb6p+0f
#define RLXK_HALF_PI_REST -0x1.777a5cp-25f

/* Above 1/2 the sine of half the complement gives it; 2.4 ulp */
static inline float rlxk_asin(float x) {
    const float a = rlxk_abs(x);
    const int large = a > 0.5f;
    const float z = large ? 0.5f - 0.5f * a : a * a;
    const float y = rlxk_small_asin(large ? rlxk_sqrt(z) : a, z);
    const float complement = RLXK_HALF_PI - (2.0f * y - RLXK_HALF_PI_REST);
    return __builtin_copysignf(large ? complement : y, x);
}

/* 1.2 ulp */
static inline float rlxk_acos(float x) {
    const float a = rlxk_abs(x);
    const int large = a > 0.5f;
    const float z = large ? 0.5f - 0.5f * a : a * a;
    const float y = rlxk_small_asin(large ? rlxk_sqrt(z) : x, z);
    const float obtuse = 2.0f * RLXK_HALF_PI - (2.0f * y - 2.0f * RLXK_HALF_PI_REST);
    const float right = RLXK_HALF_PI - (y - RLXK_HALF_PI_REST);
    return large ? (x < 0.0f ? obtuse : 2.0f * y) : right;
}

/* Turned by -pi/4 or -pi/2 where that makes it small; 2.1 ulp */
static inline float rlxk_atan(float x) {
    const float a = rlxk_abs(x);
    const int large = a > 0x1.3504f4p+1f, middle = a > 0x1.a8279ap-2f;
    const float t = (large ? -1.0f : middle ? a - 1.0f : a) / (large ? a : middle ? a + 1.0f : 1.0f);
    const float z = t * t;
    float p = -0x1.f1ed8ap-5f;
    p = p * z + 0x1.b1ec3p-4f;
    p = p * z - 0x1.23b522p-3f;
    p = p * z + 0x1.999196p-3f;
    p = p * z - 0x1.55554ap-2f;
    const float y = p * z * t + t;
    const float turn = large ? RLXK_HALF_PI : middle ? 0.5f * RLXK_HALF_PI : 0.0f;
    const float rest = large ? RLXK_HALF_PI_REST : middle ? 0.5f * RLXK_HALF_PI_REST : 0.0f;
    return __builtin_copysignf(turn + (y + rest), x);
}

/* Half of exp(x) first: exp(x) leaves the range earlier; 1.7 ulp */
static inline float rlxk_sinh(float x) {
    const float a = rlxk_abs(x);
    const float z = x * x;
    float p = 0x1.7a15b6p-19f;
    p = p * z + 0x1.9ffe92p-13f;
    p = p * z + 0x1.111134p-7f;
    p = p * z + 0x1.555556p-3f;
    const float half = rlxk_exp_scaled(a, -1);
    return a < 1.0f ? p * z * x + x : __builtin_copysignf(half - 0.25f / half, x);
}

/* 1.5 ulp */
static inline float rlxk_cosh(float x) {
    const float half = rlxk_exp_scaled(rlxk_abs(x), -1);
    return half + 0.25f / half;
}

/* 1.4 ulp */
static inline float rlxk_atanh(float x) {
    const float a = rlxk_abs(x);
    const float z = x * x;
    float p = 0x1.69dd04p-3f;
    p = p * z + 0x1.a4ba3p-5f;
    p = p * z + 0x1.e44cc6p-4f;
    p = p * z + 0x1.23483cp-3f;
    p = p * z + 0x1.99a6cep-3f;
    p = p * z + 0x1.55554p-2f;
    const float large = 0.5f * rlxk_log((1.0f + a) / (1.0f - a));
    return a < 0.5f ? p * z * x + x : __builtin_copysignf(large, x);
}

/* log2 of a positive finite float, in double */
static inline double rlxk_log2_wide(float x) {
    const uint64_t root = 0x3fe6a09e667f3bcdu;
    const uint64_t u = rlxk_bits64((double)x) - root;
    const double e = (double)(int32_t)((int64_t)u >> 52);
    const double m = rlxk_double((u & 0x000fffffffffffffu) + root);
    const double s = (m - 1.0) / (m + 1.0);
    const double z = s * s;
    double p = 0.242951188151017346;
    p = p * z + 0.261441311982982743;
    p = p * z + 0.320616480010086848;
    p = p * z + 0.412198400728597735;
    p = p * z + 0.577078017254858752;
    p = p * z + 0.961796693924314508;
    p = p * z + 2.88539008177792732;
    return p * s + e;
}

/* 2^x as a float, for any x */
static inline float rlxk_exp2_wide(double x) {
    const double shift = 0x1.8p52;
    double t = x > 200.0 ? 200.0 : x;
    t = t < -200.0 ? -200.0 : t;
    const double k = t + shift;
    const double f = t - (k - shift);
    double p = 1.31758905109168829e-6;
    p = p * f + 0.0000153097370506298407;
    p = p * f + 0.000154038516002446291;
    p = p * f + 0.00133334520639020696;
    p = p * f + 0.00961812854306643393;
    p = p * f + 0.0555041093933978555;
    p = p * f + 0.24022650698879453;
    p = p * f + 0.693147180546514675;
    p = p * f + 0.999999999999762469;
    return (float)(p * rlxk_double((rlxk_bits64(k) - rlxk_bits64(shift) + 1023u) << 52));
}

/* 1.2 ulp */
static inline float rlxk_exp2(float x) {
    float t = x > 129.0f ? 129.0f : x;
    t = t < -151.0f ? -151.0f : t;
    const float k = t + RLXK_ROUNDING;
    const float f = t - (k - RLXK_ROUNDING);
    float p = 0x1.41fbbcp-13f;
    p = p * f + 0x1.5f3e54p-10f;
    p = p * f + 0x1.3b2d4cp-7f;
    p = p * f + 0x1.c6aee8p-5f;
    p = p * f + 0x1.ebfbdcp-3f;
    p = p * f + 0x1.62e43p-1f;
    const float e = p * f + 1.0f;
    return rlxk_scaled(e, rlxk_rounded(k));
}

/* 0.5 ulp, with C's rules for the special cases */
static inline float rlxk_pow(float x, float y) {
    const float a = rlxk_abs(x);
    double l = rlxk_log2_wide(a);
    l = a == 0.0f ? -(double)INFINITY : l;
    l = a == INFINITY ? (double)INFINITY : l;
    l = x != x ? (double)x : l;
    float r = rlxk_exp2_wide((double)y * l);
    const float floor = __builtin_elementwise_floor(y);
    const float half = 0.5f * y;
    const int whole = floor == y;
    const int odd = whole & (__builtin_elementwise_floor(half) != half);
    const int negative = (int)(rlxk_bits(x) >> 31);
    r = (odd & negative) ? -r : r;
    r = ((!whole) & (x < 0.0f) & (a != INFINITY)) ? NAN : r;
    r = ((a == 1.0f) & (rlxk_abs(y) == INFINITY)) ? 1.0f : r;
    return ((y == 0.0f) | (x == 1.0f)) ? 1.0f : r;
}

/* Python's rules: the remainder has the sign of the divisor, and the quotient is the one that goes with it. */
static inline float rlxk_mod(float x, float y) {
    const float r = fmodf(x, y);
    if (r == 0.0f) return __builtin_copysignf(0.0f, y);
    return (r < 0.0f) != (y < 0.0f) ? r + y : r;
}

static inline float rlxk_floor_div(float x, float y) {
    if (y == 0.0f) return x / y;
    const float r = fmodf(x, y);
    float quotient = (x - r) / y; /* whole but for rounding */
    if (r != 0.0f && (r < 0.0f) != (y < 0.0f)) quotient -= 1.0f;
    if (quotient == 0.0f) return __builtin_copysignf(0.0f, x / y);
    const float floor = __builtin_elementwise_floor(quotient);
    return quotient - floor > 0.5f ? floor + 1.0f : floor;
}

/* Whether the quotient is so small that x - quotient * y is exact in double, and the quotient's own rounding never
 * reaches the next whole number. */
static inline int rlxk_divides_near(float x, float y) {
    const int is_near = rlxk_abs(x) < rlxk_abs(y) * 0x1p28f, is_finite = rlxk_abs(y) < INFINITY;
    return is_near & is_finite;
}

/* rlxk_mod of what divides near; in double until the end, where the remainder is no denormal. */
static inline float rlxk_near_mod(float x, float y) {
    const double quotient = __builtin_elementwise_trunc((double)x / (double)y);
    const double r = (double)x - quotient * (double)y;
    const double moved = ((r < 0.0) != (y < 0.0f)) ? r + (double)y : r;
    return r == 0.0 ? __builtin_copysignf(0.0f, y) : (float)moved;
}

/* rlxk_floor_div of what divides near */
static inline float rlxk_near_floor_div(float x, float y) {
    const double quotient = (double)x / (double)y;
    const double floor = __builtin_elementwise_floor(quotient);
    return quotient == 0.0 ? x / y : (float)floor;
}

/* Truncation that saturates, with NaN to zero. */
static inline int32_t rlxk_to_int(float x) {
    const float low = x < -0x1p31f ? -0x1p31f : x;
    const float in_range = low >= 0x1p31f ? 0.0f : low;
    const int32_t i = (int32_t)(in_range == in_range ? in_range : 0.0f);
    return x >= 0x1p31f ? INT32_MAX : i;
}

/* C leaves these undefined where a divisor is zero or a quotient does not fit; here zero, and wrapping. A quotient of
 * 32-bit numbers that is not whole stays so in double. */
static inline int32_t rlxk_int_quotient(int32_t x, int32_t y) {
    const int32_t divisor = ((y == 0) | (y == -1)) ? 1 : y;
    return (int32_t)((double)x / (double)divisor);
}

static inline int32_t rlxk_int_div(int32_t x, int32_t y) {
    const int32_t quotient = y == -1 ? (int32_t)(0u - (uint32_t)x) : rlxk_int_quotient(x, y);
    return y == 0 ? 0 : quotient;
}

static inline int32_t rlxk_int_rest(int32_t x, int32_t y) {
    const int32_t rest = (int32_t)((uint32_t)x - (uint32_t)rlxk_int_quotient(x, y) * (uint32_t)y);
    return ((y == 0) | (y == -1)) ? 0 : rest;
}

static inline int32_t rlxk_int_mod(int32_t x, int32_t y) {
    const int32_t rest = rlxk_int_rest(x, y);
    return ((rest != 0) & ((rest < 0) != (y < 0))) ? (int32_t)((uint32_t)rest + (uint32_t)y) : rest;
}

static inline int32_t rlxk_int_floor_div(int32_t x, int32_t y) {
    const int32_t down = (rlxk_int_rest(x, y) != 0) & ((x < 0) != (y < 0));
    return rlxk_int_div(x, y) - down;
}

static inline int32_t rlxk_int_pow(int32_t x, int32_t y) {
    if (y < 0) return x == 1 ? 1 : x == -1 ? (y & 1 ? -1 : 1) : 0;
    uint32_t result = 1, base = (uint32_t)x;
    for (uint32_t n = (uint32_t)y; n != 0; n >>= 1) {
        if (n & 1) result *= base;
        base *= base;
    }
    return (int32_t)result;
}

static inline float rlxk_from_half(uint16_t h) {
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    const uint32_t body = (uint32_t)(h & 0x7fffu) << 13;
    const float normal = rlxk_float(body + 0x38000000u);        /* bias 127 - 15 */
    const float special = rlxk_float(body | 0x7f800000u);       /* infinities and NaN */
    const float subnormal = rlxk_float(body + 0x38800000u) - 0x1p-14f;
    const float finite = (h & 0x7c00u) == 0 ? subnormal : normal;
    const float y = (h & 0x7c00u) == 0x7c00u ? special : finite;
    return rlxk_float(rlxk_bits(y) | sign);
}

static inline uint16_t rlxk_to_half(float x) {
    const uint32_t u = rlxk_bits(x), sign = (u >> 16) & 0x8000u, a = u & 0x7fffffffu;
    /* Normal: round to nearest even on the 13 bits that go; a carry moves into the exponent as it should. */
    const uint32_t normal = (a - 0x38000000u + 0x0fffu + ((a >> 13) & 1u)) >> 13;
    /* Subnormal: adding 0.5 aligns the mantissa so that the hardware rounds it. */
    const uint32_t subnormal = rlxk_bits(rlxk_float(a) + 0.5f) - 0x3f000000u;
    const uint32_t special = a > 0x7f800000u ? 0x7e00u | ((a >> 13) & 0x3ffu) : 0x7c00u;
    uint32_t h = a < 0x38800000u ? subnormal : normal;
    h = a >= 0x477ff000u ? special : h;
    return (uint16_t)(h | sign);
}

#endif
