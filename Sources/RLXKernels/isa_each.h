/* isa_each.h - compiles RLXK_BODY once for each instruction set of the target; see isa.h. No include guard. */
#define RLXK_FN(name) RLXK_JOIN(name, RLXK_SUFFIX)

#if defined(__aarch64__)
#define RLXK_SUFFIX neon
#else
#define RLXK_SUFFIX baseline
#endif
#define RLXK_LANES 4
#include RLXK_BODY
#undef RLXK_LANES
#undef RLXK_SUFFIX

#if defined(__x86_64__)

#define RLXK_SUFFIX avx2
#define RLXK_LANES 8
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,bmi2"))), apply_to = function)
#include RLXK_BODY
#pragma clang attribute pop
#undef RLXK_LANES
#undef RLXK_SUFFIX

#define RLXK_SUFFIX avx512
#define RLXK_LANES 16
#pragma clang attribute push(                                                                              \
    __attribute__((target("avx2,fma,f16c,bmi2,avx512f,avx512bw,avx512dq,avx512vl"))), apply_to = function)
#include RLXK_BODY
#pragma clang attribute pop
#undef RLXK_LANES
#undef RLXK_SUFFIX

#endif

#undef RLXK_FN
#undef RLXK_BODY
