/* index.c - gather, scatter, arg, cumulative sum and sort; see include/rlxk_index.h for what they mean. */
#include "include/rlxk_index.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "isa.h"
#include "vmath.h"

static inline int64_t nearest(int32_t index, int64_t size) {
    const int64_t i = index < 0 ? index + size : index;
    return i < 0 ? 0 : i >= size ? size - 1 : i;
}

/* -1 where the index is out of range */
static inline int64_t exact(int32_t index, int64_t size) {
    const int64_t i = index < 0 ? index + size : index;
    return i < 0 || i >= size ? -1 : i;
}

static inline int64_t clamped(int64_t x, int64_t low, int64_t high) { return x < low ? low : x > high ? high : x; }

/* The index as it counts from the front, if it is in range. */
static inline int64_t from_front(int32_t index, int64_t size) { return index < 0 ? index + size : index; }

/* A key whose order as an unsigned number is that of the elements: NaN last, both zeros equal. */
static inline uint32_t float_key(float x) {
    if (x != x) return UINT32_MAX;
    const uint32_t u = x == 0.0f ? 0 : rlxk_bits(x);
    return u & 0x80000000u ? ~u : u | 0x80000000u;
}

static inline uint32_t int_key(int32_t x) { return (uint32_t)x ^ 0x80000000u; }

/* Keys whose order as signed numbers is that of the elements, or the opposite, without a difference between zeros; NaN
 * is largest in both. */
static inline int32_t float_rank(float x, bool smallest) {
    const uint32_t signed_bits = smallest ? rlxk_bits(x) ^ 0x80000000u : rlxk_bits(x);
    const int32_t bits = (int32_t)(signed_bits == 0x80000000u ? 0 : signed_bits);
    const int32_t key = bits ^ ((bits >> 31) & INT32_MAX);
    return x != x ? INT32_MAX : key;
}

static inline int32_t int_rank(int32_t x, bool smallest) { return smallest ? ~x : x; }

/* What scatters to rows low ..< high: `width` indices in each of `count` rows of them. */
typedef struct points {
    const int32_t *index;
    int64_t index_step, count, width, low, high;
} points;

typedef struct scatter_functions {
    void (*run)(void *out, const void *updates, int64_t n);
    void (*points)(const rlxk_scatter *s, int64_t to, int64_t from, points p);
} scatter_functions;

/* Sorts by the high half; the low half holds the old place, so equal keys keep their order. `other` has room for n. */
static void sort_keys(uint64_t *keys, uint64_t *other, int64_t n) {
    if (n <= 64) {
        for (int64_t i = 1; i < n; i++) {
            const uint64_t key = keys[i];
            int64_t j = i;
            for (; j > 0 && keys[j - 1] > key; j--) keys[j] = keys[j - 1];
            keys[j] = key;
        }
        return;
    }
    for (int shift = 32; shift < 64; shift += 8) {
        int64_t start[257] = { 0 };
        for (int64_t i = 0; i < n; i++) start[((keys[i] >> shift) & 255) + 1]++;
        for (int b = 0; b < 256; b++) start[b + 1] += start[b];
        for (int64_t i = 0; i < n; i++) other[start[(keys[i] >> shift) & 255]++] = keys[i];
        uint64_t *swap = keys;
        keys = other, other = swap;
    }
}

#define RLXK_BODY "index_body.h"
#include "isa_each.h"
RLXK_DISPATCH(rlxk_gather_run, gather)
RLXK_DISPATCH(rlxk_gather_along_run, gather_along)
RLXK_DISPATCH(rlxk_index_check_run, index_check)
RLXK_DISPATCH(rlxk_window_move_run, window_move)
RLXK_DISPATCH(rlxk_window_check_run, window_check)
RLXK_DISPATCH(rlxk_scatter_run, scatter)
RLXK_DISPATCH(rlxk_arg_run, arg)
RLXK_DISPATCH(rlxk_cumsum_run, cumsum)
RLXK_DISPATCH(rlxk_sort_run, sort)
