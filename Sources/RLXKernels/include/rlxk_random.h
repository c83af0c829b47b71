/* rlxk_random.h - random numbers: element i of run n is a hash of (seed, n, i). */
#ifndef RLXK_RANDOM_H
#define RLXK_RANDOM_H

#include "rlxk.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rlxk_distribution {
    RLXK_UNIFORM,     /* p + (q - p) u, u in [0, 1) */
    RLXK_NORMAL,      /* mean p, deviation q */
    RLXK_BERNOULLI,   /* 1 with probability p, else 0 */
    RLXK_CATEGORICAL  /* for each row of `probabilities` the places of `draws` draws */
} rlxk_distribution;

typedef struct rlxk_random {
    rlxk_distribution distribution;
    int32_t continues; /* each run draws other numbers */
    float p, q;
    uint64_t seed;
    uint64_t *runs; /* counts them; only a serial instruction may do that */
    int64_t count;
    float *out;
    const float *probabilities; /* [count / draws][classes], in any unit */
    int64_t classes, draws;
} rlxk_random;

void rlxk_random_run(const void *random, int32_t worker, int32_t workers);

#ifdef __cplusplus
}
#endif
#endif
