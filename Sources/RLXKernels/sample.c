/* sample.c - images sampled at points; see include/rlxk_sample.h for what they mean. */
#include "include/rlxk_sample.h"

#include <math.h>
#include <stdbool.h>

#include "isa.h"

static inline float mirrored(float x, float low, float high) {
    const float span = high - low;
    if (span <= 0.0f) return low;
    const float distance = fabsf(x - low), rest = fmodf(distance, span);
    return fmodf(floorf(distance / span), 2.0f) == 0.0f ? low + rest : high - rest;
}

static inline float between(float x, float low, float high) { return x < low ? low : x > high ? high : x; }

/* A coordinate on an axis of `size` pixels, moved to where the border says; NaN stays. The nearest pixel is that of the
 * coordinate before it is moved. */
static inline float placed(float x, int64_t size, rlxk_border border, int32_t nearest) {
    const float last = (float)(size - 1);
    if (x != x) return x;
    if (nearest) x = floorf(x + 0.5f);
    switch (border) {
    case RLXK_BORDER_EDGE: return between(x, 0.0f, last);
    case RLXK_BORDER_REFLECT: return between(mirrored(x, 0.0f, last), 0.0f, last);
    case RLXK_BORDER_SYMMETRIC: return between(mirrored(x, -0.5f, last + 0.5f), 0.0f, last);
    default: return between(x, -2.0f, last + 2.0f); /* all that is outside of the image is alike */
    }
}

static inline float pixel(const rlxk_sample *s, const float *plane, int64_t i, int64_t j) {
    if (i >= 0 && i < s->height && j >= 0 && j < s->width) return plane[i * s->width + j];
    return s->value;
}

static inline float sampled(const rlxk_sample *s, const float *plane, float x, float y) {
    if (x != x || y != y) return x + y;
    if (s->border == RLXK_BORDER_CUT && (x < 0 || y < 0 || x > (float)(s->width - 1) || y > (float)(s->height - 1)))
        return s->value;
    if (s->nearest) return pixel(s, plane, (int64_t)y, (int64_t)x);
    const float left = floorf(x), top = floorf(y), a = x - left, b = y - top;
    const int64_t i = (int64_t)top, j = (int64_t)left;
    /* A pixel of weight zero may be infinite, or lie outside. */
    float upper = (1.0f - a) * pixel(s, plane, i, j), lower = 0.0f;
    if (a != 0.0f) upper += a * pixel(s, plane, i, j + 1);
    if (b == 0.0f) return upper;
    lower = (1.0f - a) * pixel(s, plane, i + 1, j);
    if (a != 0.0f) lower += a * pixel(s, plane, i + 1, j + 1);
    return (1.0f - b) * upper + b * lower;
}

#define RLXK_BODY "sample_body.h"
#include "isa_each.h"
RLXK_DISPATCH(rlxk_sample_run, sample)
