/* rlxk_index.h - kernels that read or write where an index says, or that compute indices.
 *
 * Arrays are dense. Indices are i32; a negative one counts from the end. One that is out of range reads the nearest
 * element and writes nothing: no index can touch memory outside of the arrays.
 */
#ifndef RLXK_INDEX_H
#define RLXK_INDEX_H

#include "rlxk_chain.h"

#ifdef __cplusplus
extern "C" {
#endif

/* out[b][o][k] = x[b][o][index[b][k]], blocks of `bytes` */
typedef struct rlxk_gather {
    const void *x;
    const int32_t *index;
    void *out;
    int64_t batches, outer, size, count, bytes;
} rlxk_gather;

void rlxk_gather_run(const void *gather, int32_t worker, int32_t workers);

/* out[o][k][i] = x[o][index[o][k][i]][i], elements of `bytes` 1, 2 or 4 */
typedef struct rlxk_gather_along {
    const void *x;
    const int32_t *index;
    void *out;
    int64_t outer, size, count, inner, bytes;
} rlxk_gather_along;

void rlxk_gather_along_run(const void *gather, int32_t worker, int32_t workers);

/* *failure = 1 + the place of the first index that is out of range, or 0. One worker does it. */
typedef struct rlxk_index_check {
    const int32_t *index;
    int64_t count, size;
    int32_t *failure;
} rlxk_index_check;

void rlxk_index_check_run(const void *check, int32_t worker, int32_t workers);

/* A window of fixed size in an array, whose place comes with the run: along axis a it takes `count[a]` of `size[a]`
 * elements from `begin[a]` on, or from the first on where bit a of `from_start` is set. */
typedef struct rlxk_window_place {
    const int32_t *begin;
    int32_t rank; /* up to RLXK_DIMS */
    uint32_t from_start;
    int64_t size[RLXK_DIMS], count[RLXK_DIMS];
} rlxk_window_place;

/* part = the window of whole, or, `is_update`, the window of whole = part; elements of `bytes`. What would be outside of
 * the array is moved inside. */
typedef struct rlxk_window_move {
    rlxk_window_place place;
    void *whole;
    void *part;
    int64_t bytes;
    int32_t is_update;
} rlxk_window_move;

void rlxk_window_move_run(const void *move, int32_t worker, int32_t workers);

/* *failure = 1 + the first axis along which Python's begin:end is not the window, or 0. `to_end`: axes whose end is that
 * of the array; `lone`: those where only `begin` counts. `end` may be NULL: only the beginnings count, along all axes. One
 * worker does it. */
typedef struct rlxk_window_check {
    rlxk_window_place place;
    const int32_t *end;
    uint32_t to_end, lone;
    int32_t *failure;
} rlxk_window_check;

void rlxk_window_check_run(const void *check, int32_t worker, int32_t workers);

typedef enum rlxk_scatter_mode {
    RLXK_SCATTER_UPDATE,
    RLXK_SCATTER_ADD,
    RLXK_SCATTER_SUB,
    RLXK_SCATTER_MUL,
    RLXK_SCATTER_DIV,
    RLXK_SCATTER_MAX,
    RLXK_SCATTER_MIN
} rlxk_scatter_mode;

/* Over k in order: out[o][index[k]][i] op= updates[o][k][i]; or, `along`, out[o][index[o][k][i]][i] op= ...
 * Elements are f32 or i32. */
typedef struct rlxk_scatter {
    void *out;
    const int32_t *index;
    const void *updates;
    int64_t outer, size, count, inner;
    rlxk_scatter_mode mode;
    int32_t along;
    int32_t is_float;
} rlxk_scatter;

void rlxk_scatter_run(const void *scatter, int32_t worker, int32_t workers);

/* index[o][i] = the first n at which x[o][n][i] is largest (or smallest); a NaN counts as both */
typedef struct rlxk_arg {
    const void *x; /* f32 or i32 */
    int32_t *index;
    int64_t outer, size, inner;
    int32_t smallest;
    int32_t is_float;
} rlxk_arg;

void rlxk_arg_run(const void *arg, int32_t worker, int32_t workers);

/* out[o][n][i] = the sum of x[o][0 ... n][i], without x[o][n][i] if exclusive, from the end if reverse */
typedef struct rlxk_cumsum {
    const void *x; /* f32 or i32 */
    void *out;
    int64_t outer, size, inner;
    int32_t exclusive, reverse;
    int32_t is_float;
} rlxk_cumsum;

void rlxk_cumsum_run(const void *cumsum, int32_t worker, int32_t workers);

/* The first k of x[o][...][i] in order, and where they stood; equal elements keep their order, NaN counts as largest.
 * Scratch: 4 * size floats for each worker. */
typedef struct rlxk_sort {
    const void *x; /* f32 or i32 */
    void *values;  /* [outer][k][inner], or NULL */
    int32_t *index; /* [outer][k][inner], or NULL */
    int64_t outer, size, inner, k;
    int32_t descending;
    int32_t is_float;
    float *scratch;
    int64_t scratch_stride;
} rlxk_sort;

void rlxk_sort_run(const void *sort, int32_t worker, int32_t workers);

#ifdef __cplusplus
}
#endif
#endif
