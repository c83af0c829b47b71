/* conv_body.h - one worker's share of a convolution or of one of its gradients (a body for isa_each.h). */
#include "vec_body.h"
#include "pack_body.h"
#include "conv_unfold_body.h"
#include "conv_lone_body.h"

/* MARK: Forward and input gradient */

/* Rows of A over `channels` channels and their taps, from `a` on. */
static void RLXK_FN(pack_a)(float *to, const float *a, const conv_sweep *s, int64_t rows, int64_t channels) {
    const int64_t down = s->source.axis[0].taps, across = s->source.axis[1].taps, taps = down * across;
    const bool lines = (across == 1 || s->a_tap[1] == 1) && (down == 1 || s->a_tap[0] == across);
    if (lines && s->a_channel == taps) {
        RLXK_FN(pack_rows)(to, a, rows, channels * taps, s->a_row, 1);
    } else if (taps == 1) {
        RLXK_FN(pack_rows)(to, a, rows, channels, s->a_row, s->a_channel);
    } else {
        for (int64_t channel = 0; channel < channels; channel++, a += s->a_channel) {
            for (int64_t p = 0; p < down; p++) {
                for (int64_t q = 0; q < across; q++, to += ROW_PITCH) {
                    const float *tap = a + p * s->a_tap[0] + q * s->a_tap[1];
                    for (int64_t i = 0; i < rows; i++) to[i] = tap[i * s->a_row];
                }
            }
        }
    }
}

/* Strides of A: as it is, or packed. */
typedef struct RLXK_FN(a_strides) {
    int64_t row, channel, tap[2];
} RLXK_FN(a_strides);

/* The runs of A and B over `channels` channels and their taps: what lies evenly in both is one run. */
static void RLXK_FN(set_runs)(rlxk_tile *tile, int64_t *a_runs, int64_t *b_runs, const RLXK_FN(a_strides) *a,
                              const conv_source *source, conv_way way, const conv_block *block, int64_t channels) {
    const int64_t down = source->axis[0].taps, across = source->axis[1].taps;
    tile->a_row = a->row;
    tile->a_col = a->tap[1];
    tile->a_runs = a_runs;
    tile->b_runs = b_runs;
    tile->runs = 0;
    if (way == CONV_POINTWISE) {
        tile->a_col = a->channel;
        tile->b_row = source->plane;
        tile->k = channels;
        a_runs[0] = b_runs[0] = 0;
        tile->runs = 1;
    } else if (way == CONV_UNFOLDED) {
        const bool lines = a->tap[0] == across * a->tap[1];
        const bool all = lines && a->channel == down * across * a->tap[1];
        const int64_t runs_of_channel = lines ? 1 : down;
        tile->b_row = PANEL;
        tile->k = down * across / runs_of_channel * (all ? channels : 1);
        for (int64_t channel = 0; channel < (all ? 1 : channels); channel++) {
            for (int64_t p = 0; p < runs_of_channel; p++, tile->runs++) {
                a_runs[tile->runs] = channel * a->channel + p * a->tap[0];
                b_runs[tile->runs] = tile->runs * tile->k * PANEL;
            }
        }
    } else {
        const int64_t runs_of_line = source->axis[1].stride == 1 ? 1 : across; /* else neighbours are of other phases */
        tile->b_row = source->axis[1].dilation;
        tile->k = across / runs_of_line;
        for (int64_t channel = 0; channel < channels; channel++) {
            for (int64_t p = 0; p < down; p++) {
                for (int64_t q = 0; q < runs_of_line; q++, tile->runs++) {
                    a_runs[tile->runs] = channel * a->channel + p * a->tap[0] + q * a->tap[1];
                    b_runs[tile->runs] = channel * block->planes.channel + conv_tap_start(source, &block->planes, p, q);
                }
            }
        }
    }
}

/* Rows of a block's product to the output's pixels. */
static void RLXK_FN(spread)(const conv_sweep *s, const conv_block *block, const float *product, int64_t line, int64_t row,
                            int64_t end) {
    const int64_t width = s->source.axis[1].out;
    for (; row < end; row++) {
        for (int64_t n = 0; n < block->strips; n++) {
            const conv_strip *strip = &block->strip[n];
            const float *pixel = product + row * block->pitch + strip->column;
            float *plane = s->c + s->c_start + strip->image * s->c_image + row * s->c_row;
            for (int64_t i = strip->row; i < strip->row + strip->rows; i++, pixel += line) {
                float *to = plane + i * s->c_step[0] * s->c_width;
                if (s->c_step[1] == 1) {
                    RLXK_FN(copy)(to, pixel, width);
                } else {
                    for (int64_t j = 0; j < width; j++) to[j * s->c_step[1]] = pixel[j];
                }
            }
        }
    }
}

/* What a worker computes a sweep with. */
#define SWEEPER RLXK_FN(sweeper)
typedef struct SWEEPER {
    const conv_sweep *s;
    conv_way way;
    bool spreads;
    int64_t line;
    conv_room room;
    int64_t *a_runs, *b_runs;
    float *packed, *planes, *unfolded, *product;
} SWEEPER;

/* A tile's rows over a stretch of columns; panels of B lie `panel` floats apart. */
INLINE void RLXK_FN(stretch)(rlxk_tile *tile, int64_t rows, const float *b, int64_t panel, float *c, int64_t columns) {
    for (int64_t j = 0; j < columns; j += PANEL, b += panel) {
        tile->b = b;
        tile->c = c + j;
        RLXK_FN(tile_run)(tile, rows, conv_min(columns - j, PANEL));
    }
}

/* Rows [row, end) of A over one part of the channels of one block. */
static void RLXK_FN(multiply)(const SWEEPER *x, const conv_block *block, int64_t begin, int64_t end, int64_t row,
                              int64_t end_row) {
    const conv_sweep *s = x->s;
    const conv_source *source = &s->source;
    const bool last = end == source->channels, empty = conv_taps(source) == 0;
    const int64_t width = source->axis[1].out;
    const int64_t taps = conv_taps(source);
    const bool packs = block->columns >= FEWEST_PIXELS;
    RLXK_FN(a_strides) a = { s->a_row, s->a_channel, { s->a_tap[0], s->a_tap[1] } };
    if (packs) a = (RLXK_FN(a_strides)){ 1, taps * ROW_PITCH, { source->axis[1].taps * ROW_PITCH, ROW_PITCH } };
    rlxk_tile tile = {
        .c_row = x->spreads ? block->pitch : s->c_row, .alpha = 1,
        .accumulate = begin > 0, .relu = last && s->relu, .clip = last ? s->clip : NULL,
    };
    if (!empty) {
        RLXK_FN(set_runs)(&tile, x->a_runs, x->b_runs, &a, source, x->way, block, end - begin);
        if (x->way != CONV_POINTWISE) RLXK_FN(borders)(x->planes, source, block, begin, end);
        if (x->way == CONV_UNFOLDED) RLXK_FN(unfold_panels)(x->unfolded, x->planes, source, block, end - begin);
    }
    const int64_t panel = x->way == CONV_UNFOLDED ? (end - begin) * taps * PANEL : PANEL;
    const int64_t row_blocks = conv_quotient_up(end_row - row, TILE_ROWS);
    for (int64_t row_block = 0; row_block < row_blocks; row_block++) {
        const int64_t i = row + (end_row - row) * row_block / row_blocks;
        const int64_t next = row + (end_row - row) * (row_block + 1) / row_blocks, rows = next - i;
        tile.a = s->a + s->a_start + i * s->a_row + begin * s->a_channel;
        if (packs && !empty) {
            RLXK_FN(pack_a)(x->packed, tile.a, s, rows, end - begin);
            tile.a = x->packed;
        }
        tile.row_bias = last && s->bias ? s->bias + i : NULL;
        float *product = x->product + i * block->pitch;
        if (x->way == CONV_UNFOLDED && x->spreads) {
            RLXK_FN(stretch)(&tile, rows, x->unfolded, panel, product, block->columns);
        } else {
            for (int64_t n = 0; n < block->strips; n++) {
                const conv_strip *strip = &block->strip[n];
                const int64_t first = strip->row * width;
                const float *plane = source->base + strip->image * source->image + begin * source->plane;
                const float *b = x->way == CONV_POINTWISE ? plane + first
                    : x->way == CONV_BORDERED             ? x->planes + strip->planes
                                                          : x->unfolded + strip->column / PANEL * panel;
                float *c = s->c + s->c_start + strip->image * s->c_image + i * s->c_row;
                RLXK_FN(stretch)(&tile, rows, b, panel, x->spreads ? product + strip->column : c + first,
                                 (strip->rows - 1) * x->line + width);
            }
        }
        if (last && x->spreads) RLXK_FN(spread)(s, block, x->product, x->line, i, next);
    }
}

/* A worker's share is of the pixels, or of A's rows where pixels are few. */
static void RLXK_FN(sweep)(const conv_sweep *s, float *workspace, int32_t worker, int32_t workers) {
    const conv_source *source = &s->source;
    const conv_way way = conv_way_of(source);
    SWEEPER x = { .s = s, .way = way, .spreads = conv_spreads(s, way), .line = conv_line(source, way), .room = conv_sweep_room(s) };
    x.a_runs = (int64_t *)(void *)(workspace + x.room.runs);
    x.b_runs = x.a_runs + conv_max(conv_part_channels(source) * conv_taps(source), 1);
    x.packed = workspace + x.room.packed;
    x.planes = workspace + x.room.planes;
    x.unfolded = workspace + x.room.unfolded;
    x.product = workspace + x.room.product;
    const int64_t parts = conv_parts(source);
    int64_t line = 0, end = s->batch * source->axis[0].out, row = 0, end_row = s->rows;
    if (conv_splits_rows(s, workers)) rlxk_share(s->rows, worker, workers, &row, &end_row);
    else rlxk_share(end, worker, workers, &line, &end);
    if (row == end_row) return;
    while (line < end) {
        conv_block block;
        conv_take_block(&block, source, &line, end, x.line, way == CONV_UNFOLDED && !x.spreads, x.room.most_rows);
        for (int64_t part = 0; part < parts; part++) {
            RLXK_FN(multiply)(&x, &block, source->channels * part / parts, source->channels * (part + 1) / parts, row,
                              end_row);
        }
    }
}

static void RLXK_FN(conv_forward)(const void *arguments, int32_t worker, int32_t workers) {
    const rlxk_conv_forward *f = arguments;
    conv_sweep sweep = forward_sweep(f, 0);
    float *workspace = f->workspace + worker * conv_sweep_room(&sweep).total;
    if (conv_is_lone(&sweep)) {
        RLXK_FN(lone_sweep)(&sweep, f->shape.groups, workspace, worker, workers);
        return;
    }
    for (int64_t group = 0; group < f->shape.groups; group++) {
        sweep = forward_sweep(f, group);
        RLXK_FN(sweep)(&sweep, workspace, worker, workers);
    }
}

static void RLXK_FN(conv_input_gradient)(const void *arguments, int32_t worker, int32_t workers) {
    const rlxk_conv_input_gradient *g = arguments;
    const rlxk_conv_shape *shape = &g->shape;
    float *workspace = g->workspace + worker * input_gradient_floats(shape);
    for (int64_t i = 0; i < conv_min(shape->stride[0], shape->in_height); i++) {
        for (int64_t j = 0; j < conv_min(shape->stride[1], shape->in_width); j++) {
            conv_sweep sweep = input_gradient_sweep(g, 0, i, j);
            if (conv_is_lone(&sweep)) {
                RLXK_FN(lone_sweep)(&sweep, shape->groups, workspace, worker, workers);
                continue;
            }
            for (int64_t group = 0; group < shape->groups; group++) {
                sweep = input_gradient_sweep(g, group, i, j);
                RLXK_FN(sweep)(&sweep, workspace, worker, workers);
            }
        }
    }
}

/* MARK: Weight gradient */

/* The panels of dy over a block's pixels, one after another. */
static void RLXK_FN(pack_dy)(float *panels, const rlxk_conv_weight_gradient *w, int64_t group, int64_t columns,
                             const conv_block *block) {
    const int64_t width = w->shape.out_width;
    for (int64_t j = 0; j < columns; j += PANEL) {
        for (int64_t n = 0; n < block->strips; n++) {
            const conv_strip *strip = &block->strip[n];
            const float *dy = w->dy + strip->image * w->dy_stride[0] + group * w->dy_stride[1] + j * w->dy_stride[2];
            RLXK_FN(pack)(panels + j * block->columns + strip->column * PANEL, dy + strip->row * width,
                          strip->rows * width, conv_min(columns - j, PANEL), 1, w->dy_stride[2]);
        }
    }
}

/* sums[channels begin ... end and taps][columns] over the output rows [row, end_row) */
static void RLXK_FN(gradient_sums)(const conv_gradient *g, const rlxk_conv_weight_gradient *w, int64_t group, int64_t begin,
                                   int64_t end, int64_t row, int64_t end_row, float *sums, float *workspace) {
    conv_source source = g->source;
    source.base += group * w->x_stride[1];
    const conv_room room = conv_gradient_room(g);
    const bool unfolds = conv_gradient_unfolds(&source);
    const int64_t channels = end - begin, taps = conv_taps(&source), width = source.axis[1].out;
    /* The rows of a tile are channels and taps of the unfolded matrix, or the channels at one tap. */
    const int64_t rows = unfolds ? channels * taps : channels, row_blocks = conv_quotient_up(rows, TILE_ROWS);
    int64_t *a_runs = (int64_t *)(void *)(workspace + room.runs), *b_runs = a_runs + room.most_rows;
    float *planes = workspace + room.planes, *unfolded = workspace + room.unfolded, *panels = workspace + room.product;
    rlxk_tile tile = {
        .a_col = 1, .b_row = PANEL, .runs = 1, .a_runs = rlxk_one_run, .b_runs = rlxk_one_run, .accumulate = true,
        .c_row = unfolds ? g->columns : taps * g->columns, .alpha = 1,
    };
    for (int64_t i = 0; i < channels * taps * g->columns; i++) sums[i] = 0;
    while (row < end_row) {
        conv_block block;
        conv_take_block(&block, &source, &row, end_row, width, false, room.most_rows);
        RLXK_FN(pack_dy)(panels, w, group, g->columns, &block);
        RLXK_FN(borders)(planes, &source, &block, begin, end);
        if (unfolds) {
            RLXK_FN(unfold)(unfolded, planes, &source, &block, channels);
            tile.a_row = block.pitch;
            tile.k = block.columns;
        } else {
            tile.runs = 0;
            for (int64_t n = 0; n < block.strips; n++) {
                for (int64_t i = 0; i < block.strip[n].rows; i++, tile.runs++) {
                    a_runs[tile.runs] = block.strip[n].planes + i * block.planes.width;
                    b_runs[tile.runs] = tile.runs * width * PANEL;
                }
            }
            tile.a_runs = a_runs;
            tile.b_runs = b_runs;
            tile.a_row = block.planes.channel;
            tile.k = width;
        }
        for (int64_t row_block = 0; row_block < row_blocks; row_block++) {
            const int64_t i = rows * row_block / row_blocks, next = rows * (row_block + 1) / row_blocks;
            for (int64_t tap = 0; tap < (unfolds ? 1 : taps); tap++) {
                const int64_t p = tap / source.axis[1].taps, q = tap % source.axis[1].taps;
                tile.a = planes + i * block.planes.channel + conv_tap_start(&source, &block.planes, p, q);
                if (unfolds) tile.a = unfolded + i * block.pitch;
                float *c = sums + i * tile.c_row + tap * g->columns;
                for (int64_t j = 0; j < g->columns; j += PANEL) {
                    tile.b = panels + j * block.columns;
                    tile.c = c + j;
                    RLXK_FN(tile_run)(&tile, next - i, conv_min(g->columns - j, PANEL));
                }
            }
        }
    }
}

static void RLXK_FN(conv_weight_gradient_sums)(const void *arguments, int32_t worker, int32_t workers) {
    const rlxk_conv_weight_gradient *w = arguments;
    const conv_gradient g = weight_gradient(w);
    float *room = w->workspace + g.sums_floats + worker * conv_gradient_room(&g).total;
    const int64_t parts = conv_parts(&g.source), rows = g.batch * g.source.axis[0].out;
    int64_t unit, end;
    rlxk_share(g.chunks * g.groups * parts, worker, workers, &unit, &end);
    for (; unit < end; unit++) {
        const int64_t part = unit % parts, group = unit / parts % g.groups, chunk = unit / parts / g.groups;
        const int64_t begin = g.source.channels * part / parts, stop = g.source.channels * (part + 1) / parts;
        const int64_t line = (chunk * g.groups + group) * g.depth + begin * conv_taps(&g.source);
        RLXK_FN(gradient_sums)(&g, w, group, begin, stop, rows * chunk / g.chunks, rows * (chunk + 1) / g.chunks,
                               w->workspace + line * g.columns, room);
    }
}

/* A square of dw, out channels x channels and taps, from the partial sums' square, turned. */
static void RLXK_FN(gradient_square)(float *dw, int64_t dw_row, const float *sums, int64_t columns_of, int64_t chunks,
                                     int64_t chunk_floats, int32_t lines, int32_t columns) {
    VEC square[RLXK_LANES];
    for (int32_t i = 0; i < RLXK_LANES; i++) square[i] = 0;
    for (int32_t i = 0; i < lines; i++) {
        for (int64_t chunk = 0; chunk < chunks; chunk++) {
            square[i] += RLXK_FN(load_first)(sums + chunk * chunk_floats + i * columns_of, columns);
        }
    }
    RLXK_FN(transpose)(square);
    for (int32_t j = 0; j < columns; j++) RLXK_FN(store_first)(dw + j * dw_row, square[j], lines);
}

static void RLXK_FN(conv_weight_gradient)(const void *arguments, int32_t worker, int32_t workers) {
    const rlxk_conv_weight_gradient *w = arguments;
    const conv_gradient g = weight_gradient(w);
    /* What is contiguous in a row of dw: all channels and taps, or the taps of one channel. */
    const int64_t taps = conv_taps(&g.source), length = w->dw_stride[2] == taps ? g.depth : taps;
    const int64_t pieces = g.depth / length, down = conv_quotient_up(length, RLXK_LANES);
    const int64_t across = conv_quotient_up(g.columns, RLXK_LANES);
    int64_t unit, end;
    rlxk_share(g.groups * pieces * across * down, worker, workers, &unit, &end);
    for (; unit < end; unit++) {
        const int64_t depth = unit % down * RLXK_LANES, column = unit / down % across * RLXK_LANES;
        const int64_t piece = unit / down / across % pieces, group = unit / down / across / pieces;
        const float *sums = w->workspace + (group * g.depth + piece * length + depth) * g.columns + column;
        float *dw = w->dw + group * w->dw_stride[0] + column * w->dw_stride[1] + piece * w->dw_stride[2] + depth;
        RLXK_FN(gradient_square)(dw, w->dw_stride[1], sums, g.columns, g.chunks, g.groups * g.depth * g.columns,
                                 (int32_t)conv_min(length - depth, RLXK_LANES),
                                 (int32_t)conv_min(g.columns - column, RLXK_LANES));
    }
}
