/* conv.h - a convolution or one of its gradients as products of tiles. Knows tiles and shapes; conv.c makes sweeps from
 * shapes, conv_body.h runs them.
 *
 * The output is made in blocks of rows of a few images, a block in parts of a few input channels. A part is first copied
 * with its border of zeros, as one plane for each phase of the strides. Then every tap meets the output's pixels as one
 * line of memory, which also has the border's columns; a line is a row of the product's B as it is. Where that would
 * waste too much, B is made: unfolded, with a row for each channel and tap and a column for each pixel.
 */
#ifndef RLXK_CONV_INTERNAL_H
#define RLXK_CONV_INTERNAL_H

#include <stdbool.h>

#include "include/rlxk_conv.h"
#include "tile.h"

enum {
    DEEPEST_PART = 512,        /* channels and taps in a part, unless a channel has more taps */
    BLOCK_FLOATS = 1 << 18,    /* of each matrix of a block: half of a second-level cache of 2 MB */
    WIDEST_PANEL = 32,         /* of any instruction set */
    WIDEST_ROWS = 16,          /* of a tile of any instruction set, in whole vectors */
    MOST_STRIPS = 64,          /* of a block */
    SLACK = 16,                /* floats behind a row that a copy by whole vectors may touch */
    FEWEST_PIXELS = 128,       /* of a worker's share; with fewer */
    FEWEST_ROWS = 64,          /* it takes at least so many of A's rows */
    LEAST_LANES_USED = 40,     /* per cent, or B is unfolded */
    SHALLOW = 16,              /* channels and taps that cost less to unfold than the output costs to spread */
    FEWEST_CHANNELS = 6,       /* that fill a tile of a weight gradient; fewer are unfolded */
    LONE_ROWS = 8,             /* of a depthwise convolution that are summed together */
    LONE_UNITS = 4,            /* of one whose planes are bordered before they are read: stores take their time */
    LONE_FLOATS = 1 << 13,     /* of its bordered planes: most of a first-level cache */
    GRADIENT_SUMS = 16,        /* partial sums of a weight gradient: work for so many threads */
    GRADIENT_FLOATS = 1 << 20, /* of all partial sums beyond the first */
};

static inline int64_t conv_min(int64_t x, int64_t y) { return x < y ? x : y; }
static inline int64_t conv_max(int64_t x, int64_t y) { return x > y ? x : y; }
static inline int64_t conv_quotient_up(int64_t x, int64_t y) { return (x + y - 1) / y; }
static inline int64_t conv_round_up(int64_t x, int64_t step) { return conv_quotient_up(x, step) * step; }

/* Output pixel o and tap t meet at input pixel o * stride + t * dilation - pad. */
typedef struct conv_axis {
    int64_t in, out, taps, stride, dilation, pad;
} conv_axis;

/* Channels of an array [batch][...][height][width]. */
typedef struct conv_source {
    const float *base;
    int64_t image, plane; /* strides */
    int64_t channels;
    conv_axis axis[2];
} conv_source;

static inline int64_t conv_taps(const conv_source *s) { return s->axis[0].taps * s->axis[1].taps; }

/* MARK: Parts of the channels */

static inline int64_t conv_parts(const conv_source *s) {
    int64_t channels = conv_max(DEEPEST_PART / conv_max(conv_taps(s), 1), 1);
    return conv_max(conv_quotient_up(s->channels, channels), 1);
}

static inline int64_t conv_part_channels(const conv_source *s) { return conv_quotient_up(s->channels, conv_parts(s)); }

/* MARK: Channels with their border, as planes of phases */

/* Rows or columns of a phase's plane. */
static inline int64_t conv_phase_length(const conv_axis *x, int64_t out) {
    return conv_quotient_up((out - 1) * x->stride + (x->taps - 1) * x->dilation + 1, x->stride);
}

/* Whether a tap falls on the phase. */
static inline bool conv_meets_phase(const conv_axis *x, int64_t phase) {
    if (x->stride == 1) return true;
    for (int64_t t = 0; t < conv_min(x->taps, x->stride); t++) {
        if (t * x->dilation % x->stride == phase) return true;
    }
    return false;
}

typedef struct conv_planes {
    int64_t height, width; /* of a phase's plane */
    int64_t phase, channel; /* strides */
} conv_planes;

static inline conv_planes conv_planes_of(const conv_source *s, int64_t rows) {
    conv_planes p = { .height = conv_phase_length(&s->axis[0], rows), .width = conv_phase_length(&s->axis[1], s->axis[1].out) };
    p.phase = p.height * p.width;
    p.channel = p.phase * s->axis[0].stride * s->axis[1].stride;
    return p;
}

/* Where the output's first pixel meets a tap, from the start of a channel. */
static inline int64_t conv_tap_start(const conv_source *s, const conv_planes *planes, int64_t p, int64_t q) {
    const int64_t row = p * s->axis[0].dilation, column = q * s->axis[1].dilation;
    if (s->axis[0].stride == 1 && s->axis[1].stride == 1) return row * planes->width + column; /* divisions are slow */
    const int64_t phase = row % s->axis[0].stride * s->axis[1].stride + column % s->axis[1].stride;
    return phase * planes->phase + row / s->axis[0].stride * planes->width + column / s->axis[1].stride;
}

/* MARK: Blocks of the output */

/* Some whole rows of one image's output. */
typedef struct conv_strip {
    int64_t image, row, rows;
    int64_t column; /* of the block's matrices */
    int64_t planes; /* where its channels start among the block's bordered planes */
} conv_strip;

typedef struct conv_block {
    conv_strip strip[MOST_STRIPS];
    int64_t strips, rows, columns;
    int64_t pitch;      /* of matrices with the block's columns */
    conv_planes planes; /* of any strip */
} conv_block;

/* Where a strip's matrices start when it shares no panel with another. */
static inline int64_t conv_panel_start(int64_t column) { return conv_round_up(column, WIDEST_PANEL); }

static inline int64_t conv_pitch(int64_t columns) { return conv_round_up(columns, 16) + SLACK; }

/* Rows of a block that takes `line` columns a row and `floats` floats a column. */
static inline int64_t conv_block_rows(int64_t line, int64_t floats) {
    return conv_max(BLOCK_FLOATS / conv_max(floats, 1) / line, 1);
}

/* The next block of the output rows [*row, end), counted through all images; `apart` keeps strips out of each other's
 * panels. */
static inline void conv_take_block(conv_block *block, const conv_source *s, int64_t *row, int64_t end, int64_t line,
                                   bool apart, int64_t most_rows) {
    const int64_t height = s->axis[0].out;
    int64_t longest = 0;
    block->strips = block->rows = block->columns = 0;
    while (*row < end && block->strips < MOST_STRIPS && block->rows < most_rows) {
        conv_strip *strip = &block->strip[block->strips++];
        strip->image = *row / height;
        strip->row = *row % height;
        strip->rows = conv_min(conv_min(height - strip->row, end - *row), most_rows - block->rows);
        strip->column = apart ? conv_panel_start(block->columns) : block->columns;
        block->columns = strip->column + strip->rows * line;
        longest = conv_max(longest, strip->rows);
        block->rows += strip->rows;
        *row += strip->rows;
    }
    block->pitch = conv_pitch(block->columns);
    block->planes = conv_planes_of(s, longest);
    for (int64_t n = 0; n < block->strips; n++) {
        block->strip[n].planes = n * conv_part_channels(s) * block->planes.channel;
    }
}

static inline int64_t conv_most_strips(const conv_source *s, int64_t most_rows) {
    return conv_min(conv_quotient_up(most_rows, conv_min(s->axis[0].out, most_rows)) + 1, MOST_STRIPS);
}

/* Floats of the bordered planes of a block, at most. */
static inline int64_t conv_planes_floats(const conv_source *s, int64_t most_rows) {
    const int64_t longest = conv_min(s->axis[0].out, most_rows);
    return conv_round_up(conv_most_strips(s, most_rows) * conv_part_channels(s) * conv_planes_of(s, longest).channel + SLACK, 16);
}

/* MARK: Sweeps */

typedef enum conv_way {
    CONV_POINTWISE, /* one tap and no border: B is the source */
    CONV_BORDERED,
    CONV_UNFOLDED, /* into panels */
} conv_way;

/* rows x pixels = A x source; the output of a forward pass, or one phase of an input gradient. */
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
    const float *clip;          /* the lowest and the highest value, or NULL */
    bool relu;
} conv_sweep;

/* Of the lanes that a stretch of columns takes, how many per cent hold one of its pixels. */
static inline int64_t conv_lanes_used(int64_t pixels, int64_t columns) {
    return 100 * pixels / conv_max(conv_round_up(columns, 16), 1);
}

static inline conv_way conv_way_of(const conv_source *s) {
    const conv_axis *h = &s->axis[0], *w = &s->axis[1];
    const int64_t pixels = h->out * w->out, width = conv_phase_length(w, w->out);
    bool plain = true;
    for (int i = 0; i < 2; i++) {
        const conv_axis *x = &s->axis[i];
        plain &= x->taps == 1 && x->stride == 1 && x->pad == 0 && x->in == x->out;
    }
    if (plain && conv_lanes_used(pixels, pixels) >= LEAST_LANES_USED) return CONV_POINTWISE;
    const bool wasteful = conv_lanes_used(pixels, (h->out - 1) * width + w->out) < LEAST_LANES_USED;
    return w->stride > 1 || s->channels * conv_taps(s) <= SHALLOW || wasteful ? CONV_UNFOLDED : CONV_BORDERED;
}

/* Columns that a row of the output takes in a block. */
static inline int64_t conv_line(const conv_source *s, conv_way way) {
    return way == CONV_BORDERED ? conv_phase_length(&s->axis[1], s->axis[1].out) : s->axis[1].out;
}

/* Whether tiles cannot be written where they belong. */
static inline bool conv_spreads(const conv_sweep *s, conv_way way) {
    const conv_axis *axis = s->source.axis;
    const int64_t pixels = axis[0].out * axis[1].out;
    if (s->c_step[0] != 1 || s->c_step[1] != 1) return true;
    return way == CONV_UNFOLDED ? conv_lanes_used(pixels, pixels) < LEAST_LANES_USED /* images share vectors */
                                : conv_line(&s->source, way) != axis[1].out;
}

/* Whether workers share the rows of A instead of the pixels. */
static inline bool conv_splits_rows(const conv_sweep *s, int32_t workers) {
    const int64_t pixels = s->batch * s->source.axis[0].out * s->source.axis[1].out;
    return pixels < FEWEST_PIXELS * workers && s->rows >= FEWEST_ROWS * workers;
}

/* Whether the sweep is of one channel that makes one. Its work is shared by images and groups. */
static inline bool conv_is_lone(const conv_sweep *s) {
    return s->source.channels == 1 && s->rows == 1 && conv_taps(&s->source) > 0;
}

/* What a worker needs, in floats from the start of its room. */
typedef struct conv_room {
    int64_t runs, packed, planes, unfolded, product, total;
    int64_t unit;      /* planes of a lone channel */
    int64_t most_rows; /* of a block */
} conv_room;

static inline conv_room conv_lone_room(const conv_source *s) {
    const int64_t row = conv_planes_of(s, 1).width * s->axis[0].stride * s->axis[1].stride;
    conv_room room = { .planes = conv_round_up(4 * conv_taps(s), 16) };
    room.most_rows = conv_min(conv_round_up(conv_max(LONE_FLOATS / row, 1), LONE_ROWS), s->axis[0].out);
    room.unit = conv_round_up(conv_planes_of(s, room.most_rows).channel + SLACK, 16);
    room.total = room.planes + LONE_UNITS * room.unit;
    return room;
}

static inline conv_room conv_sweep_room(const conv_sweep *s) {
    const conv_source *source = &s->source;
    if (conv_is_lone(s)) return conv_lone_room(source);
    const conv_way way = conv_way_of(source);
    const int64_t depth = conv_part_channels(source) * conv_taps(source), line = conv_line(source, way);
    const int64_t phases = source->axis[0].stride * source->axis[1].stride;
    const int64_t b = way == CONV_UNFOLDED ? depth : conv_part_channels(source) * phases;
    conv_room room = { .most_rows = conv_block_rows(line, conv_max(b, conv_spreads(s, way) ? s->rows : 0)) };
    const int64_t columns = conv_panel_start(room.most_rows * line + conv_most_strips(source, room.most_rows) * WIDEST_PANEL);
    const int64_t pitch = conv_pitch(columns);
    int64_t at = 0;
    room.runs = at; /* two of int64_t */
    at += conv_round_up(4 * conv_max(depth, 1), 16);
    room.packed = at;
    at += (depth + WIDEST_ROWS) * WIDEST_ROWS;
    room.planes = at;
    if (way != CONV_POINTWISE) at += conv_planes_floats(source, room.most_rows);
    room.unfolded = at;
    if (way == CONV_UNFOLDED) at += depth * columns;
    room.product = at;
    if (conv_spreads(s, way)) at += s->rows * pitch;
    room.total = at;
    return room;
}

/* MARK: Weight gradients */

/* First partial sums over chunks of the output rows: [chunks][groups][depth][columns] at the start of the workspace. */
typedef struct conv_gradient {
    conv_source source; /* of one group */
    int64_t batch, groups;
    int64_t columns; /* out channels of a group */
    int64_t depth;   /* channels and taps of a group */
    int64_t chunks;  /* of the output rows of the batch */
    int64_t sums_floats;
} conv_gradient;

static inline bool conv_gradient_unfolds(const conv_source *s) {
    return s->channels < FEWEST_CHANNELS || s->axis[1].out < FEWEST_CHANNELS;
}

static inline conv_room conv_gradient_room(const conv_gradient *g) {
    const conv_source *source = &g->source;
    const int64_t depth = conv_part_channels(source) * conv_taps(source), columns = conv_round_up(g->columns, 32);
    const int64_t width = source->axis[1].out, phases = source->axis[0].stride * source->axis[1].stride;
    const int64_t a = conv_gradient_unfolds(source) ? depth : conv_part_channels(source) * phases;
    conv_room room = { .most_rows = conv_block_rows(width, conv_max(a, columns)) };
    int64_t at = 0;
    room.runs = at; /* two of int64_t */
    at += conv_round_up(4 * room.most_rows, 16);
    room.planes = at;
    at += conv_planes_floats(source, room.most_rows);
    room.unfolded = at;
    if (conv_gradient_unfolds(source)) at += depth * conv_pitch(room.most_rows * width);
    room.product = at; /* panels of dy */
    at += columns * room.most_rows * width;
    room.total = at;
    return room;
}

#endif
