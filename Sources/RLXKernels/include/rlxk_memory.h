/* rlxk_memory.h - memory and elements of arrays, as the kernels want them. */
#ifndef RLXK_MEMORY_H
#define RLXK_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zeroed bytes at a multiple of 64, or NULL; NULL for more than the machine's memory. */
void *rlxk_allocate(size_t size);
void rlxk_deallocate(void *memory);

/* Gives memory that was freed back to the system, where the C library keeps it otherwise. */
void rlxk_return_freed(void);

/* Half precision is stored as its bits. */
float rlxk_half_to_float(uint16_t half);
uint16_t rlxk_float_to_half(float value);

#ifdef __cplusplus
}
#endif
#endif
