/* rlxk_window.h - kernels over sliding windows: convolution, its transpose, pooling and its derivative. Up to three spatial dimensions.
 *
 * Arrays are f32 and dense, [n][channels][spatial]; unused leading spatial dimensions have size 1, stride 1, padding 0.
 */
#ifndef RLXK_WINDOW_H
#define RLXK_WINDOW_H

#include "rlxk_gemm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How windows lie on an image: window o covers o * stride - before + i * dilation for i < kernel. */
typedef struct rlxk_window {
    int64_t image[3], windows[3], kernel[3], stride[3], dilation[3], before[3];
} rlxk_window;

/* out[n][g * co + o][w] = sum over c, k of x[n][g * ci + c][window w, k] weight[g * co + o][c][k] */
typedef struct rlxk_conv {
    rlxk_window window;
    int64_t batch, groups, ci, co; /* channels of one group */
    const float *x, *weight;
    float *out;
    int64_t block; /* windows that are unfolded at once */
    float *scratch;
    int64_t scratch_stride;
} rlxk_conv;

/* Floats of scratch for each worker. */
size_t rlxk_conv_scratch(const rlxk_conv *conv);
void rlxk_conv_run(const void *conv, int32_t worker, int32_t workers);

/* The transpose: out[n][g * co + o][window w, k] += x[n][g * ci + c][w] weight[g * ci + c][o][k], from zeros on;
 * `image` is the output's size, `windows` the input's. */
typedef struct rlxk_conv rlxk_conv_transpose;

size_t rlxk_conv_transpose_scratch(const rlxk_conv *conv);
void rlxk_conv_transpose_run(const void *conv, int32_t worker, int32_t workers);

typedef enum rlxk_pooling { RLXK_POOL_MAX, RLXK_POOL_SUM } rlxk_pooling;

/* out[plane][w] = the largest element of window w, or the sum divided by divisor[0][w0] divisor[1][w1] divisor[2][w2] */
typedef struct rlxk_pool {
    rlxk_window window;
    int64_t planes;
    const float *x;
    float *out;
    const float *divisor[3]; /* of sums */
    rlxk_pooling pooling;
    float *scratch;
    int64_t scratch_stride;
} rlxk_pool;

/* Floats of scratch for each worker. */
size_t rlxk_pool_scratch(const rlxk_pool *pool);
void rlxk_pool_run(const void *pool, int32_t worker, int32_t workers);

/* The derivative of a maximum over windows. Window (plane, row, column) lies at plane * plane_step + row * row_step +
 * column * column_step and has `count` elements at offsets from there, both in x and in out. Where an element of x is
 * the first of its window that equals y[plane][row][column], g[plane][row][column] is added to out, which is zero else.
 * Each plane's windows stay in its plane_step elements of out, counted from `out`. */
typedef struct rlxk_winner {
    const float *x; /* the first window's first element */
    const float *y, *g;
    float *out;
    int64_t out_start; /* of the first window's first element */
    int64_t planes, rows, columns;
    int64_t plane_step, row_step, column_step;
    int64_t count;
    const int64_t *offset;
} rlxk_winner;

void rlxk_winner_run(const void *winner, int32_t worker, int32_t workers);

#ifdef __cplusplus
}
#endif
#endif
