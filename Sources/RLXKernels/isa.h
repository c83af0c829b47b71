/* isa.h - which instruction set the kernels use, and how one source is compiled for each.
 *
 * A family of kernels is a body, "softmax_body.h", of static functions named RLXK_FN(softmax), and a .c file:
 *     #define RLXK_BODY "softmax_body.h"
 *     #include "isa_each.h"                  // the body once per instruction set; RLXK_LANES is 4, 8 or 16 floats
 *     RLXK_DISPATCH(rlxk_softmax, softmax)   // the public rlxk_kernel, which calls the chosen softmax
 * Include headers before isa_each.h, never in a body: its functions would be compiled for one set only.
 */
#ifndef RLXK_ISA_H
#define RLXK_ISA_H

#include <stdatomic.h>

#include "include/rlxk.h"

#define RLXK_JOIN_(a, b) a##_##b
#define RLXK_JOIN(a, b) RLXK_JOIN_(a, b)

/* The functions `name` of all instruction sets, in the order of rlxk_isa_index(). */
#if defined(__x86_64__)
#define RLXK_VARIANTS(name) { name##_baseline, name##_avx2, name##_avx512 }
#elif defined(__aarch64__)
#define RLXK_VARIANTS(name) { name##_neon }
#else
#define RLXK_VARIANTS(name) { name##_baseline }
#endif

/* A negative worker asks for a variant; see rlxk_variant(). */
#define RLXK_DISPATCH(public, name)                                                    \
    void public(const void *arguments, int32_t worker, int32_t workers) {              \
        static const rlxk_kernel variants[] = RLXK_VARIANTS(name);                     \
        if (worker < 0) {                                                              \
            *(rlxk_kernel *)(uintptr_t)arguments = variants[workers];                  \
            return;                                                                    \
        }                                                                              \
        variants[rlxk_isa_index()](arguments, worker, workers);                        \
    }

extern _Atomic int32_t rlxk_isa_chosen; /* -1 until the first use */
int32_t rlxk_isa_choose(void);

static inline int32_t rlxk_isa_index(void) {
    int32_t chosen = atomic_load_explicit(&rlxk_isa_chosen, memory_order_relaxed);
    return chosen >= 0 ? chosen : rlxk_isa_choose();
}

#endif
