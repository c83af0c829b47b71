/* conv.c - 2-D convolutions and their gradients as sweeps; see include/rlxk_conv.h for what they mean.
 *
 * Forward: y = w x unfolded x. Input gradient: dx = flipped w x unfolded dy, once for each phase of the strides, since
 * input pixels of one phase meet the same taps. Weight gradient: unfolded x x dy', turned.
 */
#include "conv.h"

#include "isa.h"

static inline conv_axis forward_axis(const rlxk_conv_shape *s, int i) {
    return (conv_axis){
        .in = i ? s->in_width : s->in_height, .out = i ? s->out_width : s->out_height,
        .taps = i ? s->kernel_width : s->kernel_height, .stride = s->stride[i], .dilation = s->dilation[i],
        .pad = s->pad[i],
    };
}

static inline conv_source forward_source(const rlxk_conv_shape *s, const float *x) {
    const int64_t plane = s->in_height * s->in_width;
    return (conv_source){
        .base = x, .image = s->in_channels * plane, .plane = plane, .channels = s->in_channels / s->groups,
        .axis = { forward_axis(s, 0), forward_axis(s, 1) },
    };
}

static inline conv_sweep forward_sweep(const rlxk_conv_forward *f, int64_t group) {
    const rlxk_conv_shape *s = &f->shape;
    const int64_t taps = s->kernel_height * s->kernel_width, plane = s->out_height * s->out_width;
    const int64_t rows = s->out_channels / s->groups, channels = s->in_channels / s->groups;
    conv_sweep sweep = {
        .source = forward_source(s, f->x), .batch = s->batch, .rows = rows,
        .a = f->w, .a_start = group * rows * channels * taps, .a_row = channels * taps, .a_channel = taps,
        .a_tap = { s->kernel_width, 1 },
        .c = f->y, .c_start = group * rows * plane, .c_image = s->out_channels * plane, .c_row = plane,
        .c_step = { 1, 1 }, .c_width = s->out_width,
        .bias = f->bias ? f->bias + group * rows : NULL, .relu = f->activation == RLXK_ACT_RELU,
        .clip = f->activation == RLXK_ACT_CLIP ? f->clip : NULL,
    };
    sweep.source.base += group * channels * sweep.source.plane;
    return sweep;
}

/* MARK: Input gradient */

/* Input pixel i = phase + q * stride meets the taps t with (phase + pad - t * dilation) % stride == 0, at output pixel
 * q + (phase + pad - t * dilation) / stride. Such taps lie `step` apart; the last of them meets the lowest output pixel. */
typedef struct phase_taps {
    int64_t first, step, count;
} phase_taps;

static inline phase_taps taps_of_phase(const conv_axis *x, int64_t phase) {
    phase_taps taps = { 0 };
    for (int64_t t = 0; t < x->taps && taps.count < 2; t++) {
        if ((phase + x->pad - t * x->dilation) % x->stride) continue;
        if (taps.count == 0) taps.first = t;
        if (taps.count == 1) taps.step = t - taps.first;
        taps.count++;
    }
    if (taps.count == 2) taps.count = (x->taps - 1 - taps.first) / taps.step + 1;
    return taps;
}

/* The axis of the sweep over dy that gives one phase of dx; tap 0 is the last of the phase's taps. */
static inline conv_axis phase_axis(const conv_axis *x, phase_taps taps, int64_t phase) {
    const int64_t last = taps.first + (taps.count - 1) * taps.step;
    return (conv_axis){
        .in = x->out, .out = (x->in - phase + x->stride - 1) / x->stride, .taps = taps.count, .stride = 1,
        .dilation = taps.step * x->dilation / x->stride,
        .pad = taps.count ? -(phase + x->pad - last * x->dilation) / x->stride : 0,
    };
}

static inline conv_sweep input_gradient_sweep(const rlxk_conv_input_gradient *g, int64_t group, int64_t i, int64_t j) {
    const rlxk_conv_shape *s = &g->shape;
    const int64_t taps = s->kernel_height * s->kernel_width, plane = s->in_height * s->in_width;
    const int64_t channels = s->out_channels / s->groups, rows = s->in_channels / s->groups;
    const int64_t dy_plane = s->out_height * s->out_width, phase[2] = { i, j };
    conv_sweep sweep = {
        .source = { .base = g->dy + group * channels * dy_plane, .image = s->out_channels * dy_plane, .plane = dy_plane,
                    .channels = channels },
        .batch = s->batch, .rows = rows,
        .a = g->w, .a_start = group * channels * rows * taps, .a_row = taps, .a_channel = rows * taps,
        .c = g->dx, .c_start = group * rows * plane + i * s->in_width + j, .c_image = s->in_channels * plane,
        .c_row = plane, .c_step = { s->stride[0], s->stride[1] }, .c_width = s->in_width,
        .bias = g->bias ? g->bias + group * rows : NULL, .relu = g->activation == RLXK_ACT_RELU,
        .clip = g->activation == RLXK_ACT_CLIP ? g->clip : NULL,
    };
    for (int d = 0; d < 2; d++) {
        const conv_axis axis = forward_axis(s, d);
        const phase_taps met = taps_of_phase(&axis, phase[d]);
        const int64_t line = d ? 1 : s->kernel_width;
        sweep.source.axis[d] = phase_axis(&axis, met, phase[d]);
        sweep.a_tap[d] = -met.step * line;
        if (met.count) sweep.a_start += (met.first + (met.count - 1) * met.step) * line;
    }
    return sweep;
}

/* For one worker: the most that a phase needs. */
static inline int64_t input_gradient_floats(const rlxk_conv_shape *s) {
    const rlxk_conv_input_gradient g = { .shape = *s };
    int64_t floats = 0;
    for (int64_t i = 0; i < conv_min(s->stride[0], s->in_height); i++) {
        for (int64_t j = 0; j < conv_min(s->stride[1], s->in_width); j++) {
            const conv_sweep sweep = input_gradient_sweep(&g, 0, i, j);
            floats = conv_max(floats, conv_sweep_room(&sweep).total);
        }
    }
    return floats;
}

/* MARK: Weight gradient */

static inline conv_gradient gradient_of(const rlxk_conv_shape *s) {
    conv_gradient g = {
        .source = forward_source(s, NULL), .batch = s->batch, .groups = s->groups, .columns = s->out_channels / s->groups,
    };
    g.depth = g.source.channels * conv_taps(&g.source);
    /* Enough independent sums for many threads, when they are small. */
    const int64_t floats = g.groups * g.depth * g.columns, units = g.groups * conv_parts(&g.source);
    const int64_t wanted = conv_min(conv_quotient_up(GRADIENT_SUMS, units), 1 + GRADIENT_FLOATS / floats);
    g.chunks = conv_max(conv_min(wanted, s->batch * s->out_height), 1);
    g.sums_floats = conv_round_up(g.chunks * floats, 16);
    return g;
}

static inline conv_gradient weight_gradient(const rlxk_conv_weight_gradient *w) {
    conv_gradient g = gradient_of(&w->shape);
    g.source.base = w->x;
    g.source.image = w->x_stride[0];
    g.source.plane = w->x_stride[2];
    return g;
}

#define RLXK_BODY "conv_body.h"
#include "isa_each.h"

RLXK_DISPATCH(rlxk_conv_forward_run, conv_forward)
RLXK_DISPATCH(rlxk_conv_input_gradient_run, conv_input_gradient)
RLXK_DISPATCH(rlxk_conv_weight_gradient_sums, conv_weight_gradient_sums)
RLXK_DISPATCH(rlxk_conv_weight_gradient_run, conv_weight_gradient)

size_t rlxk_conv_forward_workspace(const rlxk_conv_shape *shape, int32_t workers) {
    const rlxk_conv_forward forward = { .shape = *shape };
    const conv_sweep sweep = forward_sweep(&forward, 0);
    return (size_t)(conv_sweep_room(&sweep).total * workers);
}

size_t rlxk_conv_input_gradient_workspace(const rlxk_conv_shape *shape, int32_t workers) {
    return (size_t)(input_gradient_floats(shape) * workers);
}

size_t rlxk_conv_weight_gradient_workspace(const rlxk_conv_shape *shape, int32_t workers) {
    const conv_gradient g = gradient_of(shape);
    return (size_t)(g.sums_floats + conv_gradient_room(&g).total * workers);
}

void rlxk_conv_weight_gradient_contiguous(rlxk_conv_weight_gradient *gradient) {
    const rlxk_conv_shape *s = &gradient->shape;
    const int64_t ins = s->in_channels / s->groups, outs = s->out_channels / s->groups;
    const int64_t taps = s->kernel_height * s->kernel_width;
    int64_t *x = gradient->x_stride, *dy = gradient->dy_stride, *dw = gradient->dw_stride;
    x[2] = s->in_height * s->in_width;
    x[1] = ins * x[2];
    x[0] = s->groups * x[1];
    dy[2] = s->out_height * s->out_width;
    dy[1] = outs * dy[2];
    dy[0] = s->groups * dy[1];
    dw[2] = taps;
    dw[1] = ins * taps;
    dw[0] = outs * dw[1];
}
