/* conv.h - a convolution or one of its gradients as products over blocks of unfolded pixels. Knows tiles and shapes;
 * conv.c makes sweeps from shapes, conv_body.h runs them.
 *
 * Unfolded, a block is a matrix with a row for each channel and tap and a column for each output pixel. It is made in
 * parts of a few channels, in the second-level cache, from a copy of each channel that has its border of zeros.
 */
#ifndef RLXK_CONV_INTERNAL_H
#define RLXK_CONV_INTERNAL_H

#include <stdbool.h>

#include "include/rlxk_conv.h"
#include "tile.h"

enum {
    DEEPEST_PART = 512,       /* rows of the unfolded matrix that are made at a time, when a channel has fewer */
    BLOCK_FLOATS = 1 << 17,   /* of the unfolded matrix: a quarter of a second-level cache of 2 MB */
    MOST_STRIPS = 64,         /* of a block */
    SLACK = 16,               /* floats behind a row that a copy by whole vectors may overwrite */
    GRADIENT_SUMS = 16,       /* partial sums of a weight gradient, for so many workers at most */
    GRADIENT_FLOATS = 1 << 20, /* of all partial sums beyond the first */
};

/* Output pixel o and tap t meet at input pixel o * stride + t * dilation - pad. */
typedef struct conv_axis {
    int64_t in, out, taps, stride, dilation, pad;
} conv_axis;

/* What is unfolded: channels of an array [batch][...][height][width]. */
typedef struct conv_source {
    const float *base;
    int64_t image, plane; /* strides */
    int64_t channels;
    conv_axis axis[2];
} conv_source;

/* Some whole rows of one image's output. */
typedef struct conv_strip {
    int64_t image, row, rows;
    int64_t column; /* of the unfolded matrix */
} conv_strip;

typedef struct conv_block {
    conv_strip strip[MOST_STRIPS];
    int64_t strips, pixels;
    int64_t pitch; /* of the unfolded matrix */
} conv_block;

static inline int64_t conv_min(int64_t x, int64_t y) { return x < y ? x : y; }
static inline int64_t conv_max(int64_t x, int64_t y) { return x > y ? x : y; }
static inline int64_t conv_round_up(int64_t x, int64_t step) { return (x + step - 1) / step * step; }

static inline int64_t conv_taps(const conv_source *s) { return s->axis[0].taps * s->axis[1].taps; }

/* A product over the plane itself needs no unfolding. */
static inline bool conv_is_pointwise(const conv_source *s) {
    bool plain = true;
    for (int i = 0; i < 2; i++) {
        const conv_axis *x = &s->axis[i];
        plain &= x->taps == 1 && x->stride == 1 && x->pad == 0 && x->in == x->out;
    }
    return plain;
}

/* Channels are worked on in equal parts. */
static inline int64_t conv_parts(const conv_source *s) {
    int64_t taps = conv_max(conv_taps(s), 1), channels = conv_max(DEEPEST_PART / taps, 1);
    return conv_max((s->channels + channels - 1) / channels, 1);
}

static inline int64_t conv_depth(const conv_source *s) {
    int64_t parts = conv_parts(s);
    return (s->channels + parts - 1) / parts * conv_taps(s);
}

/* Pixels of a block whose matrices have at most `floats` floats a pixel; at least one row of the output. */
static inline int64_t conv_block_pixels(const conv_source *s, int64_t floats) {
    int64_t row = s->axis[1].out, rows = BLOCK_FLOATS / conv_max(floats, 1) / row;
    return conv_max(rows, 1) * row;
}

static inline int64_t conv_pitch(int64_t pixels) { return conv_round_up(pixels, 16) + SLACK; }

static inline int64_t conv_bordered_width(const conv_source *s) {
    const conv_axis *x = &s->axis[1];
    return (x->out - 1) * x->stride + (x->taps - 1) * x->dilation + 1;
}

static inline int64_t conv_bordered_height(const conv_source *s, int64_t rows) {
    const conv_axis *x = &s->axis[0];
    return (rows - 1) * x->stride + (x->taps - 1) * x->dilation + 1;
}

/* The next block of the output rows [*row, end), counted through all images. */
static inline void conv_take_block(conv_block *block, const conv_source *s, int64_t *row, int64_t end, int64_t pixels) {
    const int64_t height = s->axis[0].out, width = s->axis[1].out;
    block->strips = block->pixels = 0;
    while (*row < end && block->strips < MOST_STRIPS && block->pixels + width <= pixels) {
        conv_strip *strip = &block->strip[block->strips++];
        strip->image = *row / height;
        strip->row = *row % height;
        strip->rows = conv_min(conv_min(height - strip->row, end - *row), (pixels - block->pixels) / width);
        strip->column = block->pixels;
        block->pixels += strip->rows * width;
        *row += strip->rows;
    }
    block->pitch = conv_pitch(block->pixels);
}

/* rows x pixels = A x unfolded source; the output of a forward pass, or one phase of an input gradient. */
typedef struct conv_sweep {
    conv_source source;
    int64_t batch;
    int64_t rows;
    const float *a;
    int64_t a_start, a_row, a_channel, a_tap[2];
    float *c;
    int64_t c_start, c_image, c_row;
    int64_t c_step[2], c_width; /* pixel (i, j) is written at i * c_step[0] * c_width + j * c_step[1] */
    const float *bias;          /* of the rows, or NULL */
    bool relu;
} conv_sweep;

/* What a worker needs for a sweep, in floats from the start of its workspace. */
typedef struct conv_room {
    int64_t bordered, unfolded, spread, runs, total;
    int64_t pixels; /* of a block */
} conv_room;

static inline bool conv_spreads(const conv_sweep *s) { return s->c_step[0] != 1 || s->c_step[1] != 1; }

static inline conv_room conv_sweep_room(const conv_sweep *s) {
    const conv_source *source = &s->source;
    const int64_t depth = conv_depth(source);
    conv_room room = { .pixels = conv_block_pixels(source, conv_max(depth, conv_spreads(s) ? s->rows : 0)) };
    const int64_t strip_rows = conv_min(room.pixels / source->axis[1].out, source->axis[0].out);
    const int64_t channels = depth / conv_max(conv_taps(source), 1);
    int64_t at = 0;
    room.runs = at; /* int64_t each */
    at += conv_round_up(2 * channels * source->axis[0].taps, 16);
    if (!conv_is_pointwise(source)) {
        room.bordered = at;
        at += conv_round_up(conv_bordered_height(source, strip_rows) * conv_bordered_width(source) + SLACK, 16);
        room.unfolded = at;
        at += conv_round_up(depth * conv_pitch(room.pixels) + SLACK, 16);
    }
    if (conv_spreads(s)) {
        room.spread = at;
        at += s->rows * conv_pitch(room.pixels);
    }
    room.total = at;
    return room;
}

/* A weight gradient: partial sums over some output rows, of [groups][channels and taps][out channels], then their sum. */
typedef struct conv_gradient {
    conv_source source; /* of one group */
    const float *dy;
    int64_t batch, groups;
    int64_t columns; /* out channels of a group */
    int64_t chunks;  /* of the output rows of the batch */
    int64_t depth;   /* channels and taps of a group */
    float *sums;     /* [chunks][groups][depth][columns] */
    int64_t sums_floats;
} conv_gradient;

static inline conv_room conv_gradient_room(const conv_gradient *g) {
    const conv_source *source = &g->source;
    const int64_t depth = conv_depth(source), columns = conv_round_up(g->columns, 32);
    conv_room room = { .pixels = conv_block_pixels(source, conv_max(depth, columns)) };
    const int64_t strip_rows = conv_min(room.pixels / source->axis[1].out, source->axis[0].out);
    int64_t at = 0;
    room.bordered = at;
    at += conv_round_up(conv_bordered_height(source, strip_rows) * conv_bordered_width(source) + SLACK, 16);
    room.unfolded = at;
    at += conv_round_up(depth * conv_pitch(room.pixels) + SLACK, 16);
    room.spread = at; /* panels of dy */
    at += columns * room.pixels;
    room.total = at;
    return room;
}

#endif
