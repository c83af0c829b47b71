/* memory.c - aligned, zeroed memory, and its half-precision elements. */
#include "include/rlxk_memory.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vmath.h"

enum { ALIGNMENT = 64 };

/* More than this cannot be filled: the system would end the process instead of refusing. */
static size_t physical_memory(void) {
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (size_t)pages * (size_t)page : SIZE_MAX / 2;
}

void *rlxk_allocate(size_t size) {
    if (size > physical_memory()) return NULL;
    size_t rounded = (size / ALIGNMENT + 1) * ALIGNMENT;
    void *memory = NULL;
    if (posix_memalign(&memory, ALIGNMENT, rounded) != 0) return NULL;
    return memset(memory, 0, rounded);
}

void rlxk_deallocate(void *memory) { free(memory); }

float rlxk_half_to_float(uint16_t half) { return rlxk_from_half(half); }

uint16_t rlxk_float_to_half(float value) { return rlxk_to_half(value); }
