/* rlxk.h - the loop that runs a plan, and the pool of threads it runs on.
 *
 * Knows nothing of MIL, Swift or files. A plan is a flat list of instructions, each one call of a
 * kernel over prepared pointers; every worker walks the same list and takes its share of each
 * instruction's tiles. Tiles depend on shapes alone, so results do not depend on the number of workers.
 */
#ifndef RLXK_H
#define RLXK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Does the share of `worker` (0 ..< workers) of one instruction. */
typedef void (*rlxk_kernel)(const void *arguments, int32_t worker, int32_t workers);

enum {
    RLXK_BARRIER = 1, /* wait for all workers after this instruction */
    RLXK_SERIAL = 2   /* worker 0 alone runs it, as (0, 1) */
};

typedef struct rlxk_instruction {
    rlxk_kernel run;
    const void *arguments;
    uint32_t flags;
} rlxk_instruction;

/* Walks the list with `workers` workers of the process-wide pool (the calling thread is worker 0).
 * Allocates and locks nothing when the pool is warm; concurrent callers take turns, in their order. Safe in a forked
 * child. Runs with fewer workers when threads cannot be had (and at most 256). Subnormal results are flushed to zero.
 * A kernel must not call it. */
void rlxk_execute(const rlxk_instruction *list, size_t count, int32_t workers);

/* As rlxk_execute, but the walk may be given up, as rlxk_asked_to_stop() says, among the first `stoppable` instructions:
 * then none of the others has run. Whether all have run. */
bool rlxk_execute_unless_stopped(const rlxk_instruction *list, size_t count, size_t stoppable, int32_t workers);

/* Has `ask` asked, by walks and loops on the thread `thread` (a pthread_t), whether to give them up: anything but 0 says
 * so. NULL: nobody is asked. */
void rlxk_set_stop(int32_t (*ask)(void), uint64_t thread);

/* Asks, unless that was done a moment ago. */
bool rlxk_asked_to_stop(void);

/* Whether this thread is inside of `ask`. What it calls then must not wait for others, who may wait for its walk; walks
 * are done by it alone. */
bool rlxk_is_asking(void);

/* Cores that the process may use, or RLX_NUM_THREADS when that is set to a positive number. */
int32_t rlxk_default_workers(void);

/* "avx512", "avx2", "neon" or "baseline": the best that is present, or what RLX_ISA asks for. */
const char *rlxk_isa(void);

/* The form of a kernel of this library for one instruction set, by name, whatever rlxk_isa() says; NULL when the
 * processor does not have that set. For tests. */
rlxk_kernel rlxk_variant(rlxk_kernel kernel, const char *isa);

/* The tiles [*begin, *end) of `tiles` that belong to `worker`. */
static inline void rlxk_share(int64_t tiles, int32_t worker, int32_t workers, int64_t *begin, int64_t *end) {
    *begin = tiles * worker / workers;
    *end = tiles * (worker + 1) / workers;
}

#ifdef __cplusplus
}
#endif
#endif
