/* isa.c - finds the best instruction set of the machine, or takes the one that RLX_ISA asks for. */
#include "isa.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) ((int32_t)(sizeof(array) / sizeof *(array)))

#if defined(__x86_64__)
static const char *const names[] = { "baseline", "avx2", "avx512" };
#elif defined(__aarch64__)
static const char *const names[] = { "neon" };
#else
static const char *const names[] = { "baseline" };
#endif

_Atomic int32_t rlxk_isa_chosen = -1;

static bool is_present(int32_t index) {
#if defined(__x86_64__)
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c")
        && __builtin_cpu_supports("bmi2");
    if (index == 1) return avx2;
    if (index == 2) {
        return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
            && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    }
#endif
    return index == 0;
}

static int32_t find(const char *name) {
    for (int32_t i = 0; name && i < COUNT(names); i++) {
        if (strcmp(name, names[i]) == 0 && is_present(i)) return i;
    }
    return -1;
}

int32_t rlxk_isa_choose(void) {
    int32_t index = find(getenv("RLX_ISA"));
    if (index < 0) {
        index = COUNT(names) - 1;
        while (!is_present(index)) index--;
    }
    atomic_store_explicit(&rlxk_isa_chosen, index, memory_order_relaxed);
    return index;
}

const char *rlxk_isa(void) { return names[rlxk_isa_index()]; }

rlxk_kernel rlxk_variant(rlxk_kernel kernel, const char *isa) {
    int32_t index = find(isa);
    rlxk_kernel variant = NULL;
    if (index >= 0) kernel(&variant, -1, index);
    return variant;
}
