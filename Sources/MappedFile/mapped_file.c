/* The mappings, and the handler of SIGBUS that looks after them. */
#define _GNU_SOURCE
#define _DARWIN_C_SOURCE
#include "mapped_file.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_FILES = 1024 };

/* The handler reads these without a lock: `start` is written last when a place is taken, and first when it is left. */
struct mapped_file {
    _Atomic uintptr_t start;
    _Atomic size_t size;
    atomic_bool is_torn;
};

static struct mapped_file files[MOST_FILES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction before;
static atomic_flag passing_on = ATOMIC_FLAG_INIT;
static uintptr_t page_size;

static struct mapped_file *holding(uintptr_t address) {
    for (int i = 0; i < MOST_FILES; i++) {
        uintptr_t start = atomic_load(&files[i].start);
        if (start != 0 && address >= start && address - start < atomic_load(&files[i].size)) return &files[i];
    }
    return NULL;
}

/* Puts zeros from the page of `address` to the end of the file's pages. */
static bool fill(struct mapped_file *file, uintptr_t address) {
    uintptr_t page = address & ~(page_size - 1);
    uintptr_t end = atomic_load(&file->start) + atomic_load(&file->size);
    atomic_store(&file->is_torn, true);
    return mmap((void *)page, end - page, PROT_READ, MAP_PRIVATE | MAP_ANON | MAP_FIXED, -1, 0) != MAP_FAILED;
}

static void pass_on(int number, siginfo_t *info, void *context) {
    bool has_handler = before.sa_flags & SA_SIGINFO || (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN);
    if (!has_handler || atomic_flag_test_and_set(&passing_on)) {
        struct sigaction end = {.sa_handler = SIG_DFL};
        sigaction(number, &end, NULL); /* the fault comes again, and this time ends the process */
        return;
    }
    if (before.sa_flags & SA_SIGINFO) {
        before.sa_sigaction(number, info, context);
    } else {
        before.sa_handler(number);
    }
    atomic_flag_clear(&passing_on);
}

static void on_fault(int number, siginfo_t *info, void *context) {
    int saved = errno;
    struct mapped_file *file = holding((uintptr_t)info->si_addr);
    if (file == NULL || !fill(file, (uintptr_t)info->si_addr)) pass_on(number, info, context);
    errno = saved;
}

/* Again with each file, since others may have put their own handler in the place of this one. */
static void watch(void) {
    struct sigaction now;
    if (sigaction(SIGBUS, NULL, &now) != 0 || (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_fault)) return;
    before = now;
    struct sigaction ours = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&ours.sa_mask);
    sigaction(SIGBUS, &ours, NULL);
}

mapped_file *mapped_file_open(int descriptor, size_t size) {
    struct mapped_file *file = NULL;
    pthread_mutex_lock(&lock);
    page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
    watch();
    for (int i = 0; i < MOST_FILES && file == NULL; i++) {
        if (atomic_load(&files[i].start) == 0) file = &files[i];
    }
    void *bytes = MAP_FAILED;
    if (file == NULL) {
        errno = EMFILE;
    } else {
        bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    }
    if (bytes != MAP_FAILED) {
        atomic_store(&file->is_torn, false);
        atomic_store(&file->size, size);
        atomic_store(&file->start, (uintptr_t)bytes);
    }
    pthread_mutex_unlock(&lock);
    return bytes == MAP_FAILED ? NULL : file;
}

const void *mapped_file_bytes(const mapped_file *file) { return (const void *)atomic_load(&file->start); }

bool mapped_file_is_whole(const mapped_file *file) { return !atomic_load(&file->is_torn); }

void mapped_file_close(mapped_file *file) {
    pthread_mutex_lock(&lock);
    uintptr_t start = atomic_load(&file->start);
    size_t size = atomic_load(&file->size);
    atomic_store(&file->start, 0);
    munmap((void *)start, size);
    pthread_mutex_unlock(&lock);
}
