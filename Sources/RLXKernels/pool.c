/* pool.c - runs a list of instructions on one process-wide pool of threads.
 *
 * Knows kernels only as functions. Barriers cut a list into segments, a segment has a share for each worker, and whoever
 * comes first claims a share: first each its own, then those whose workers are late, so that nobody waits for a thread
 * that sleeps or lost its core. What a share computes does not depend on who runs it.
 */
#define _GNU_SOURCE
#include "include/rlxk.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum {
    MAX_WORKERS = 256,
    CACHE_LINE = 128, /* two lines of x86, which are prefetched as a pair; one of Apple's */
    PAUSES_BEFORE_YIELD = 256,
    IDLE_SPIN_NS = 300000,
    ASK_NS = 20000000,    /* between two questions whether to stop */
    ANSWER_SHARE = 16,    /* an answer may wait for a lock: this many times as long goes to the work before the next */
    SERIALS_PER_LOOK = 32 /* serial instructions are short */
};

/* MARK: Waiting */

static inline void pause_or_yield(uint32_t turn) {
    /* A waiter that only spins takes the core from the one it waits for when cores are short. */
    if (turn >= PAUSES_BEFORE_YIELD) {
        sched_yield();
        return;
    }
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* A word that is watched until it changes. */
typedef struct gate {
    _Atomic uint32_t word;
    _Atomic uint32_t sleepers;
} gate;

#if defined(__linux__)

static void sleep_while(gate *g, uint32_t seen) {
    syscall(SYS_futex, &g->word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void wake_sleepers(gate *g) { syscall(SYS_futex, &g->word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0); }

static void reset_sleep(void) {}

#else

static pthread_mutex_t sleep_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t sleep_over = PTHREAD_COND_INITIALIZER;

static void sleep_while(gate *g, uint32_t seen) {
    pthread_mutex_lock(&sleep_lock);
    if (atomic_load(&g->word) == seen) pthread_cond_wait(&sleep_over, &sleep_lock);
    pthread_mutex_unlock(&sleep_lock);
}

static void wake_sleepers(gate *g) {
    (void)g;
    pthread_mutex_lock(&sleep_lock);
    pthread_cond_broadcast(&sleep_over);
    pthread_mutex_unlock(&sleep_lock);
}

static void reset_sleep(void) {
    sleep_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    sleep_over = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
}

#endif

/* Returns once the word is not `seen`: spins for about `spin_ns`, then sleeps. */
static void gate_wait(gate *g, uint32_t seen, int64_t spin_ns) {
    int64_t deadline = spin_ns ? now_ns() + spin_ns : 0;
    for (uint32_t turn = 0; spin_ns; turn++) {
        if (atomic_load_explicit(&g->word, memory_order_acquire) != seen) return;
        pause_or_yield(turn);
        if (turn % 32 == 31 && now_ns() >= deadline) break;
    }
    atomic_fetch_add(&g->sleepers, 1);
    while (atomic_load(&g->word) == seen) sleep_while(g, seen);
    atomic_fetch_sub(&g->sleepers, 1);
}

static void gate_open(gate *g) {
    atomic_fetch_add(&g->word, 1);
    if (atomic_load(&g->sleepers)) wake_sleepers(g);
}

/* MARK: Subnormal results */

/* Subnormal results become zero during a walk: an optimizer's decaying averages would slow each step several times.
 * Every worker and the caller do the same, so the number of workers changes nothing. */
#if defined(__x86_64__)
static uint64_t flush_subnormals(void) {
    uint32_t mode = _mm_getcsr();
    _mm_setcsr(mode | _MM_FLUSH_ZERO_ON);
    return mode;
}
static void restore_mode(uint64_t mode) { _mm_setcsr((uint32_t)mode); }
#elif defined(__aarch64__)
static void restore_mode(uint64_t mode) { __asm__ volatile("msr fpcr, %0" ::"r"(mode)); }
static uint64_t flush_subnormals(void) {
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    restore_mode(mode | (uint64_t)1 << 24);
    return mode;
}
#else
static uint64_t flush_subnormals(void) { return 0; }
static void restore_mode(uint64_t mode) { (void)mode; }
#endif

/* MARK: Being asked to stop */

static struct {
    int32_t (*_Atomic ask)(void);
    _Atomic uint64_t thread;
    int64_t next; /* this and what follows: of that thread alone */
    bool asking;
} stop;

static bool is_asked_thread(void) {
    return atomic_load_explicit(&stop.thread, memory_order_relaxed) == (uint64_t)(uintptr_t)pthread_self();
}

void rlxk_set_stop(int32_t (*ask)(void), uint64_t thread) {
    atomic_store(&stop.ask, NULL);
    atomic_store(&stop.thread, thread);
    atomic_store(&stop.ask, ask);
}

bool rlxk_asked_to_stop(void) {
    int32_t (*ask)(void) = atomic_load_explicit(&stop.ask, memory_order_acquire);
    if (!ask || !is_asked_thread() || stop.asking) return false;
    const int64_t now = now_ns();
    if (now < stop.next) return false;
    stop.asking = true;
    const int32_t answer = ask();
    stop.asking = false;
    const int64_t end = now_ns();
    stop.next = end + ASK_NS + ANSWER_SHARE * (end - now);
    return answer != 0;
}

bool rlxk_is_asking(void) { return is_asked_thread() && stop.asking; }

/* As rlxk_asked_to_stop, from inside a walk: others' code computes in the mode of who called. */
static bool asked_to_stop_in(uint64_t callers_mode) {
    restore_mode(callers_mode);
    bool answer = rlxk_asked_to_stop();
    flush_subnormals();
    return answer;
}

/* MARK: The pool */

typedef struct member {
    _Alignas(CACHE_LINE) gate start;
    int32_t worker;
} member;

/* A walk and one of its segments, in one word. */
typedef uint64_t position;

enum { OVER = -1 }; /* the segment after the last */

static inline position position_at(uint32_t walk, int64_t segment) { return (uint64_t)walk << 32 | (uint32_t)segment; }

typedef struct claim {
    _Alignas(CACHE_LINE) _Atomic position next; /* the segment whose share is free */
} claim;

static struct {
    /* Callers take turns in the order in which they come. */
    _Alignas(CACHE_LINE) _Atomic uint32_t next_turn;
    gate turn;

    /* The walk; written by the caller whose turn it is while nobody holds a share. To be read by who holds one. */
    _Alignas(CACHE_LINE) const rlxk_instruction *list;
    size_t count, stoppable;
    uint64_t callers_mode;
    _Atomic bool stopped; /* set by worker 0 while it holds a share that may be left undone */
    _Atomic int32_t workers;
    int32_t members; /* threads that exist, and the caller */
    uint32_t walks;

    _Alignas(CACHE_LINE) _Atomic position progress; /* the segment that is being run */
    _Alignas(CACHE_LINE) _Atomic int32_t arrived;   /* shares of it that are done */
    claim claims[MAX_WORKERS];
    member member[MAX_WORKERS];
} pool = { .members = 1 };

/* Where the segment that starts at `begin` ends. */
static size_t segment_end(const rlxk_instruction *list, size_t count, size_t begin) {
    bool owed = false;   /* a barrier was asked for and not held yet */
    bool shared = false; /* other workers may still be busy with something since the last barrier */
    for (size_t i = begin; i + 1 < count; i++) {
        shared |= !(list[i].flags & RLXK_SERIAL);
        owed |= (list[i].flags & RLXK_BARRIER) != 0;
        bool stays_on_worker_0 = !shared && list[i + 1].flags & RLXK_SERIAL;
        if (owed && !stays_on_worker_0) return i + 1;
    }
    return count;
}

/* How far a thread has read the list. */
typedef struct cursor {
    int64_t segment;
    size_t begin, end;
} cursor;

static void run_share(const cursor *at, int32_t share, int32_t workers) {
    const rlxk_instruction *list = pool.list;
    for (size_t i = at->begin; i < at->end; i++) {
        if (!(list[i].flags & RLXK_SERIAL)) {
            list[i].run(list[i].arguments, share, workers);
        } else if (share == 0) {
            list[i].run(list[i].arguments, 0, 1);
        }
    }
}

/* Runs a share of a segment; false when someone else has it. The caller looks whether to stop. */
static bool take_share(uint32_t walk, cursor *at, int64_t segment, int32_t share, bool is_caller) {
    position free = position_at(walk, segment);
    _Atomic position *next = &pool.claims[share].next;
    if (atomic_load_explicit(next, memory_order_relaxed) != free
        || !atomic_compare_exchange_strong(next, &free, position_at(walk, segment + 1))) return false;

    const rlxk_instruction *list = pool.list;
    const size_t count = pool.count;
    const int32_t workers = atomic_load_explicit(&pool.workers, memory_order_relaxed);
    while (at->segment < segment) {
        at->begin = at->end;
        at->end = segment_end(list, count, at->begin);
        at->segment++;
    }
    if (is_caller && at->end <= pool.stoppable && asked_to_stop_in(pool.callers_mode)) {
        atomic_store_explicit(&pool.stopped, true, memory_order_relaxed);
    }
    if (!atomic_load_explicit(&pool.stopped, memory_order_relaxed)) run_share(at, share, workers);
    if (atomic_fetch_add_explicit(&pool.arrived, 1, memory_order_acq_rel) + 1 == workers) {
        atomic_store_explicit(&pool.arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&pool.progress, position_at(walk, at->end == count ? OVER : segment + 1), memory_order_release);
    }
    return true;
}

/* Takes part in the walk until it is over. */
static void take_part(uint32_t walk, int32_t worker) {
    cursor at = { .segment = -1 };
    for (;;) {
        const position now = atomic_load_explicit(&pool.progress, memory_order_acquire);
        if (now >> 32 != walk || now == position_at(walk, OVER)) return;
        const int64_t segment = (uint32_t)now;
        const int32_t workers = atomic_load_explicit(&pool.workers, memory_order_relaxed);
        bool took = false;
        for (int32_t i = 0; i < workers && !took; i++) {
            took = take_share(walk, &at, segment, (worker + i) % workers, worker == 0);
        }
        /* A share that is taken is not given back: nothing is left to do here until all of them are done. */
        for (uint32_t turn = 0; !took && atomic_load_explicit(&pool.progress, memory_order_acquire) == now; turn++) {
            pause_or_yield(turn);
        }
    }
}

static void *member_main(void *argument) {
    member *self = argument;
    flush_subnormals();
    for (uint32_t seen = 0;;) {
        gate_wait(&self->start, seen, IDLE_SPIN_NS);
        seen = atomic_load(&self->start.word);
        take_part((uint32_t)(atomic_load_explicit(&pool.progress, memory_order_acquire) >> 32), self->worker);
    }
    return NULL;
}

/* A forked child has none of its parent's threads, and whose turn it was is of no matter. */
static void forget_threads(void) {
    reset_sleep();
    atomic_store(&pool.next_turn, 0);
    pool.turn = (gate){ 0 };
    for (int32_t i = 1; i < pool.members; i++) pool.member[i].start = (gate){ 0 };
    pool.members = 1;
    atomic_store(&pool.arrived, 0);
}

/* The threads outlive a client that closes this library, so their code must too. */
static void stay_loaded(void) {
    Dl_info self;
    if (dladdr(&pool, &self) && self.dli_fname) dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

static void prepare_process(void) {
    stay_loaded();
    pthread_atfork(NULL, NULL, forget_threads);
}

static bool add_member(void) {
    member *added = &pool.member[pool.members];
    added->worker = pool.members;

    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
#if defined(__APPLE__)
    pthread_attr_set_qos_class_np(&attributes, QOS_CLASS_USER_INITIATED, 0);
#endif
    sigset_t all, before; /* signals belong to the program's own threads */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    int failure = pthread_create(&thread, &attributes, member_main, added);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);

    pool.members += failure == 0;
    return failure == 0;
}

/* As many of `wanted` workers as threads can be had for. */
static int32_t raise_members(int32_t wanted) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare_process);
    if (wanted > MAX_WORKERS) wanted = MAX_WORKERS;
    while (pool.members < wanted && add_member()) {}
    return wanted < pool.members ? wanted : pool.members;
}

/* Whether all was done. */
static bool walk_together(
    const rlxk_instruction *list, size_t count, size_t stoppable, int32_t wanted, uint64_t callers_mode) {
    uint32_t mine = atomic_fetch_add(&pool.next_turn, 1);
    for (uint32_t now; (now = atomic_load(&pool.turn.word)) != mine;) gate_wait(&pool.turn, now, 0);

    int32_t workers = raise_members(wanted);
    pool.list = list;
    pool.count = count;
    pool.stoppable = stoppable;
    pool.callers_mode = callers_mode;
    atomic_store_explicit(&pool.stopped, false, memory_order_relaxed);
    atomic_store_explicit(&pool.workers, workers, memory_order_relaxed);
    uint32_t walk = ++pool.walks;
    for (int32_t i = 0; i < workers; i++) atomic_store_explicit(&pool.claims[i].next, position_at(walk, 0), memory_order_relaxed);
    atomic_store_explicit(&pool.progress, position_at(walk, 0), memory_order_release);
    for (int32_t i = 1; i < workers; i++) gate_open(&pool.member[i].start);
    take_part(walk, 0);
    bool whole = !atomic_load_explicit(&pool.stopped, memory_order_relaxed);

    gate_open(&pool.turn);
    return whole;
}

/* Instructions from the list's beginning that the caller runs alone; `*whole` is made false when it was told to stop. */
static size_t walk_alone(
    const rlxk_instruction *list, size_t count, size_t stoppable, int32_t workers, uint64_t callers_mode, bool *whole) {
    int32_t serials = 0;
    for (size_t i = 0; i < count; i++) {
        const bool serial = list[i].flags & RLXK_SERIAL;
        if (workers > 1 && !serial) return i;
        if (i < stoppable && (!serial || ++serials % SERIALS_PER_LOOK == 0) && asked_to_stop_in(callers_mode)) {
            *whole = false;
            return count;
        }
        list[i].run(list[i].arguments, 0, 1);
    }
    return count;
}

bool rlxk_execute_unless_stopped(const rlxk_instruction *list, size_t count, size_t stoppable, int32_t workers) {
    bool whole = true;
    if (rlxk_is_asking()) workers = 1; /* the walk that asks has the pool */
    uint64_t mode = flush_subnormals();
    size_t done = walk_alone(list, count, stoppable, workers, mode, &whole);
    if (done < count) {
        whole = walk_together(list + done, count - done, stoppable > done ? stoppable - done : 0, workers, mode);
    }
    restore_mode(mode);
    return whole;
}

void rlxk_execute(const rlxk_instruction *list, size_t count, int32_t workers) {
    rlxk_execute_unless_stopped(list, count, 0, workers);
}

int32_t rlxk_default_workers(void) {
    const char *asked = getenv("RLX_NUM_THREADS");
    long count = asked ? strtol(asked, NULL, 10) : 0;
#if defined(__linux__)
    cpu_set_t allowed;
    if (count <= 0 && sched_getaffinity(0, sizeof allowed, &allowed) == 0) count = CPU_COUNT(&allowed);
#elif defined(__APPLE__)
    int32_t fast = 0; /* an efficiency core would make the others wait for it at each barrier */
    size_t size = sizeof fast;
    if (count <= 0 && sysctlbyname("hw.perflevel0.physicalcpu", &fast, &size, NULL, 0) == 0) count = fast;
#endif
    if (count <= 0) count = sysconf(_SC_NPROCESSORS_ONLN);
    return count < 1 ? 1 : count > MAX_WORKERS ? MAX_WORKERS : (int32_t)count;
}
