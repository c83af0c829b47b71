/* memory.c - aligned, zeroed memory, and its half-precision elements. */
#include "include/rlxk_memory.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "vmath.h"

enum { ALIGNMENT = 64 };

/* More than this cannot be filled: the system would end the process instead of refusing. */
static size_t physical_memory(void) {
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (size_t)pages * (size_t)page : SIZE_MAX / 2;
}

/* Large memory from calloc is zero without being touched. Where its block begins stands before what the caller gets. */
void *rlxk_allocate(size_t size) {
    if (size > physical_memory()) return NULL;
    char *block = calloc(1, size + 2 * ALIGNMENT);
    if (block == NULL) return NULL;
    char *memory = block + ALIGNMENT - (uintptr_t)block % ALIGNMENT;
    if (memory - block < (ptrdiff_t)sizeof block) memory += ALIGNMENT;
    memcpy(memory - sizeof block, &block, sizeof block);
    return memory;
}

void rlxk_deallocate(void *memory) {
    if (memory == NULL) return;
    void *block;
    memcpy(&block, (char *)memory - sizeof block, sizeof block);
    free(block);
}

void rlxk_return_freed(void) {
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
}

float rlxk_half_to_float(uint16_t half) { return rlxk_from_half(half); }

uint16_t rlxk_float_to_half(float value) { return rlxk_to_half(value); }
