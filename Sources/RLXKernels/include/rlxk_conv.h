/* rlxk_conv.h - 2-D convolutions of f32 arrays and their gradients, as instructions of a plan.
 *
 * x is [batch][in_channels][in_height][in_width], w [out_channels][in_channels / groups][kernel_height][kernel_width],
 * y [batch][out_channels][out_height][out_width], all contiguous. Output pixel (i, j) and tap (p, q) meet at input pixel
 * (i * stride[0] + p * dilation[0] - pad[0], j * stride[1] + q * dilation[1] - pad[1]); outside of the input lie zeros.
 * pad is what lies before the input and may be negative; the padding behind it follows from the output's size.
 * Every size but batch is at least 1. The order of every sum depends on the shapes and the instruction set alone.
 */
#ifndef RLXK_CONV_H
#define RLXK_CONV_H

#include "rlxk.h"
#include "rlxk_gemm.h" /* RLXK_ACT_... */

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rlxk_conv_shape {
    int64_t batch, groups; /* groups divide both numbers of channels */
    int64_t in_channels, in_height, in_width;
    int64_t out_channels, out_height, out_width;
    int64_t kernel_height, kernel_width;
    int64_t stride[2], dilation[2], pad[2]; /* of height, width */
} rlxk_conv_shape;

/* Each workspace below: rlxk_conv_..._workspace() floats at a multiple of 64 bytes, not shared with a concurrent run. */

/* y = activation(conv(x, w) + bias[out_channel]) */
typedef struct rlxk_conv_forward {
    rlxk_conv_shape shape;
    const float *x, *w;
    const float *bias; /* or NULL */
    float *y;
    int32_t activation;
    float clip[2]; /* of RLXK_ACT_CLIP */
    float *workspace;
} rlxk_conv_forward;

size_t rlxk_conv_forward_workspace(const rlxk_conv_shape *shape, int32_t workers);
void rlxk_conv_forward_run(const void *forward, int32_t worker, int32_t workers);

/* dx = the gradient of sum(dy * conv(x, w)) in x; with bias[in_channel] and the activation it is a transposed
 * convolution of dy. */
typedef struct rlxk_conv_input_gradient {
    rlxk_conv_shape shape;
    const float *dy, *w;
    const float *bias; /* or NULL */
    float *dx;
    int32_t activation;
    float clip[2]; /* of RLXK_ACT_CLIP */
    float *workspace;
} rlxk_conv_input_gradient;

size_t rlxk_conv_input_gradient_workspace(const rlxk_conv_shape *shape, int32_t workers);
void rlxk_conv_input_gradient_run(const void *gradient, int32_t worker, int32_t workers);

/* dw = the gradient of sum(dy * conv(x, w)) in w: two instructions over the same arguments, `sums` with RLXK_BARRIER
 * and then `run`, which writes dw. Planes of x and dy and the taps of dw are contiguous, the other strides are free.
 * So a convolution with few output pixels and a large kernel, which is slow, can be such a gradient: its batch is then
 * in_channels, its channels are batch, its kernel is dy, its dilation and stride change places. */
typedef struct rlxk_conv_weight_gradient {
    rlxk_conv_shape shape;
    const float *x, *dy;
    int64_t x_stride[3], dy_stride[3]; /* of image, group, channel of the group; in elements */
    float *dw;
    int64_t dw_stride[3]; /* of group, out channel of the group, in channel */
    float *workspace;
} rlxk_conv_weight_gradient;

/* Sets the strides that the shape's contiguous arrays have. */
void rlxk_conv_weight_gradient_contiguous(rlxk_conv_weight_gradient *gradient);

size_t rlxk_conv_weight_gradient_workspace(const rlxk_conv_shape *shape, int32_t workers);
void rlxk_conv_weight_gradient_sums(const void *gradient, int32_t worker, int32_t workers);
void rlxk_conv_weight_gradient_run(const void *gradient, int32_t worker, int32_t workers);

#ifdef __cplusplus
}
#endif
#endif
