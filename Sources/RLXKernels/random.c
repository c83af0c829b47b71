/* random.c - random numbers; see include/rlxk_random.h for what they mean. */
#include "include/rlxk_random.h"

#include <math.h>

#include "isa.h"

/* The finaliser of splitmix64. */
static inline uint64_t mixed(uint64_t x) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/* In [0, 1), 24 bits. */
static inline float unit(uint64_t bits) { return (float)(bits >> 40) * 0x1p-24f; }

static inline float normal(uint64_t bits) {
    const float u = ((float)(bits >> 40) + 0.5f) * 0x1p-24f, v = (float)(bits & 0xFFFFFFu) * 0x1p-24f;
    return sqrtf(-2.0f * logf(u)) * cosf(0x1.921fb6p2f * v);
}

static inline float category(const float *weights, int64_t count, float u) {
    float total = 0.0f, sum = 0.0f;
    for (int64_t i = 0; i < count; i++) total += weights[i];
    for (int64_t i = 0; i < count; i++) {
        sum += weights[i];
        if (u * total < sum) return (float)i;
    }
    return (float)(count - 1);
}

#define RLXK_BODY "random_body.h"
#include "isa_each.h"
RLXK_DISPATCH(rlxk_random_run, random)
