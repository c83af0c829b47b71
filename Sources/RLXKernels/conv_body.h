/* conv_body.h - one worker's share of a convolution or of one of its gradients (a body for isa_each.h). */
#include "vec_body.h"
#include "pack_body.h"
#include "conv_unfold_body.h"

/* MARK: Forward and input gradient */

/* Where A's runs start, for `channels` channels, and how long each is: taps that follow each other are one run. */
static int64_t RLXK_FN(runs)(int64_t *start, int64_t *length, const conv_sweep *s, int64_t channels) {
    const conv_axis *axis = s->source.axis;
    const bool joined = s->a_tap[0] == axis[1].taps * s->a_tap[1];
    const int64_t lines = joined ? 1 : axis[0].taps;
    for (int64_t channel = 0; channel < channels; channel++) {
        for (int64_t p = 0; p < lines; p++) start[channel * lines + p] = channel * s->a_channel + p * s->a_tap[0];
    }
    *length = axis[1].taps * (joined ? axis[0].taps : 1);
    return channels * lines;
}

/* From rows of a block's pixels to pixels of an image that lie apart. */
static void RLXK_FN(spread)(const conv_sweep *s, const conv_block *block, const float *from) {
    const int64_t width = s->source.axis[1].out;
    for (int64_t row = 0; row < s->rows; row++, from += block->pitch) {
        for (int64_t n = 0; n < block->strips; n++) {
            const conv_strip *strip = &block->strip[n];
            const float *pixel = from + strip->column;
            float *image = s->c + s->c_start + strip->image * s->c_image + row * s->c_row;
            for (int64_t i = strip->row; i < strip->row + strip->rows; i++, pixel += width) {
                float *to = image + i * s->c_step[0] * s->c_width;
                for (int64_t j = 0; j < width; j++) to[j * s->c_step[1]] = pixel[j];
            }
        }
    }
}

/* One part of the channels of one block. */
static void RLXK_FN(multiply)(const conv_sweep *s, const conv_block *block, int64_t begin, int64_t end,
                              const conv_room *room, float *workspace) {
    const conv_source *source = &s->source;
    const bool pointwise = conv_is_pointwise(source), spreads = conv_spreads(s), last = end == source->channels;
    const bool empty = conv_taps(source) == 0;
    int64_t *starts = (int64_t *)(void *)(workspace + room->runs);
    if (!pointwise && !empty) {
        RLXK_FN(unfold)(workspace + room->unfolded, workspace + room->bordered, source, block, begin, end);
    }
    rlxk_tile tile = {
        .a_row = s->a_row, .a_col = s->a_tap[1], .a_runs = starts,
        .b_row = pointwise ? source->plane : block->pitch, .c_row = spreads ? block->pitch : s->c_row, .alpha = 1,
        .accumulate = begin > 0, .relu = last && s->relu,
    };
    if (!empty) tile.runs = RLXK_FN(runs)(starts, &tile.k, s, end - begin);
    const int64_t row_blocks = (s->rows + TILE_ROWS - 1) / TILE_ROWS, width = source->axis[1].out;
    for (int64_t row_block = 0; row_block < row_blocks; row_block++) {
        const int64_t row = s->rows * row_block / row_blocks, next = s->rows * (row_block + 1) / row_blocks;
        tile.a = s->a + s->a_start + row * s->a_row + begin * s->a_channel;
        tile.row_bias = last && s->bias ? s->bias + row : NULL;
        for (int64_t n = 0; n < block->strips; n++) {
            const conv_strip *strip = &block->strip[n];
            const int64_t first = strip->row * width, pixels = strip->rows * width;
            const float *b = workspace + room->unfolded + strip->column;
            if (pointwise) b = source->base + strip->image * source->image + begin * source->plane + first;
            float *c = workspace + room->spread + row * block->pitch + strip->column;
            if (!spreads) c = s->c + s->c_start + strip->image * s->c_image + row * s->c_row + first;
            for (int64_t j = 0; j < pixels; j += PANEL) {
                tile.b = b + j;
                tile.c = c + j;
                RLXK_FN(tile_run)(&tile, next - row, conv_min(pixels - j, PANEL));
            }
        }
    }
}

static void RLXK_FN(sweep)(const conv_sweep *s, float *workspace, int32_t worker, int32_t workers) {
    const conv_source *source = &s->source;
    const conv_room room = conv_sweep_room(s);
    const int64_t parts = conv_parts(source);
    int64_t row, end;
    rlxk_share(s->batch * source->axis[0].out, worker, workers, &row, &end);
    while (row < end) {
        conv_block block;
        conv_take_block(&block, source, &row, end, room.pixels);
        for (int64_t part = 0; part < parts; part++) {
            RLXK_FN(multiply)(s, &block, source->channels * part / parts, source->channels * (part + 1) / parts, &room,
                              workspace);
        }
        if (conv_spreads(s)) RLXK_FN(spread)(s, &block, workspace + room.spread);
    }
}

static void RLXK_FN(conv_forward)(const void *arguments, int32_t worker, int32_t workers) {
    const rlxk_conv_forward *f = arguments;
    for (int64_t group = 0; group < f->shape.groups; group++) {
        const conv_sweep sweep = forward_sweep(f, group);
        RLXK_FN(sweep)(&sweep, f->workspace + worker * conv_sweep_room(&sweep).total, worker, workers);
    }
}

static void RLXK_FN(conv_input_gradient)(const void *arguments, int32_t worker, int32_t workers) {
    const rlxk_conv_input_gradient *g = arguments;
    float *workspace = g->workspace + worker * input_gradient_floats(&g->shape);
    for (int64_t group = 0; group < g->shape.groups; group++) {
        for (int64_t i = 0; i < conv_min(g->shape.stride[0], g->shape.in_height); i++) {
            for (int64_t j = 0; j < conv_min(g->shape.stride[1], g->shape.in_width); j++) {
                const conv_sweep sweep = input_gradient_sweep(g, group, i, j);
                RLXK_FN(sweep)(&sweep, workspace, worker, workers);
            }
        }
    }
}

/* MARK: Weight gradient */

/* sums[channels and taps begin ... end][columns] over the output rows [row, end_row) */
static void RLXK_FN(gradient_sums)(const conv_gradient *g, int64_t group, int64_t begin, int64_t end, int64_t row,
                                   int64_t end_row, float *sums, float *workspace) {
    conv_source source = g->source;
    source.base += group * source.channels * source.plane;
    const conv_room room = conv_gradient_room(g);
    const int64_t plane = source.axis[0].out * source.axis[1].out, taps = conv_taps(&source);
    const int64_t depth = (end - begin) * taps, row_blocks = (depth + TILE_ROWS - 1) / TILE_ROWS;
    float *unfolded = workspace + room.unfolded, *panels = workspace + room.spread;
    static const int64_t no_offset = 0;
    rlxk_tile tile = { .a_col = 1, .a_runs = &no_offset, .runs = 1, .b_row = PANEL, .c_row = g->columns, .alpha = 1 };
    for (int64_t i = 0; i < depth * g->columns; i++) sums[i] = 0;
    tile.accumulate = true;
    while (row < end_row) {
        conv_block block;
        conv_take_block(&block, &source, &row, end_row, room.pixels);
        RLXK_FN(unfold)(unfolded, workspace + room.bordered, &source, &block, begin, end);
        for (int64_t j = 0; j < g->columns; j += PANEL) {
            for (int64_t n = 0; n < block.strips; n++) {
                const conv_strip *strip = &block.strip[n];
                const float *dy = g->dy + (strip->image * g->groups * g->columns + group * g->columns + j) * plane;
                RLXK_FN(pack)(panels + j * block.pixels + strip->column * PANEL,
                              dy + strip->row * source.axis[1].out, strip->rows * source.axis[1].out,
                              conv_min(g->columns - j, PANEL), 1, plane);
            }
        }
        tile.a_row = block.pitch;
        tile.k = block.pixels;
        for (int64_t row_block = 0; row_block < row_blocks; row_block++) {
            const int64_t i = depth * row_block / row_blocks, next = depth * (row_block + 1) / row_blocks;
            tile.a = unfolded + i * block.pitch;
            for (int64_t j = 0; j < g->columns; j += PANEL) {
                tile.b = panels + j * block.pixels;
                tile.c = sums + i * g->columns + j;
                RLXK_FN(tile_run)(&tile, next - i, conv_min(g->columns - j, PANEL));
            }
        }
    }
}

static void RLXK_FN(conv_weight_gradient_sums)(const void *arguments, int32_t worker, int32_t workers) {
    const conv_gradient g = weight_gradient(arguments);
    float *workspace = g.sums + g.sums_floats + worker * conv_gradient_room(&g).total;
    const int64_t parts = conv_parts(&g.source), rows = g.batch * g.source.axis[0].out;
    int64_t unit, end;
    rlxk_share(g.chunks * g.groups * parts, worker, workers, &unit, &end);
    for (; unit < end; unit++) {
        const int64_t part = unit % parts, group = unit / parts % g.groups, chunk = unit / parts / g.groups;
        const int64_t begin = g.source.channels * part / parts, stop = g.source.channels * (part + 1) / parts;
        const int64_t line = (chunk * g.groups + group) * g.depth + begin * conv_taps(&g.source);
        RLXK_FN(gradient_sums)(&g, group, begin, stop, rows * chunk / g.chunks, rows * (chunk + 1) / g.chunks,
                               g.sums + line * g.columns, workspace);
    }
}

/* dw's square of LANES out channels x LANES channels and taps, from the sums' square, turned. */
static void RLXK_FN(gradient_square)(const conv_gradient *g, int64_t group, int64_t depth, int64_t column, float *dw) {
    const int64_t chunk_floats = g->groups * g->depth * g->columns;
    const int32_t lines = (int32_t)conv_min(g->depth - depth, RLXK_LANES);
    const int32_t columns = (int32_t)conv_min(g->columns - column, RLXK_LANES);
    VEC square[RLXK_LANES];
    for (int32_t i = 0; i < RLXK_LANES; i++) square[i] = 0;
    for (int32_t i = 0; i < lines; i++) {
        const float *sums = g->sums + (group * g->depth + depth + i) * g->columns + column;
        for (int64_t chunk = 0; chunk < g->chunks; chunk++) {
            square[i] += RLXK_FN(load_first)(sums + chunk * chunk_floats, columns);
        }
    }
    RLXK_FN(transpose)(square);
    for (int32_t j = 0; j < columns; j++) {
        RLXK_FN(store_first)(dw + (group * g->columns + column + j) * g->depth + depth, square[j], lines);
    }
}

static void RLXK_FN(conv_weight_gradient)(const void *arguments, int32_t worker, int32_t workers) {
    const rlxk_conv_weight_gradient *arguments_of = arguments;
    const conv_gradient g = weight_gradient(arguments);
    const int64_t across = (g.columns + RLXK_LANES - 1) / RLXK_LANES, down = (g.depth + RLXK_LANES - 1) / RLXK_LANES;
    int64_t unit, end;
    rlxk_share(g.groups * across * down, worker, workers, &unit, &end);
    for (; unit < end; unit++) {
        RLXK_FN(gradient_square)(&g, unit / down / across, unit % down * RLXK_LANES, unit / down % across * RLXK_LANES,
                                 arguments_of->dw);
    }
}
