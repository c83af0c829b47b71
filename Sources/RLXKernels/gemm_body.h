/* gemm_body.h - one worker's share of a batch of products, for one instruction set (a body for isa_each.h). */
#include "vec_body.h"
#include "pack_body.h"
#include "gemm_thin_body.h"

/* Rows x columns, over k's part [k_begin, k_end). */
static void RLXK_FN(block)(const product *x, int64_t row_begin, int64_t row_end, int64_t column_begin,
                           int64_t column_end, int64_t k_begin, int64_t k_end) {
    const rlxk_gemm *g = x->g;
    const bool first = k_begin == 0, last = k_end == g->k;
    const int64_t k = k_end - k_begin;
    const float *b = x->b + k_begin * g->b_row;
    if (g->symmetric) column_begin += (row_begin > column_begin ? row_begin - column_begin : 0) / PANEL * PANEL;
    if (x->packed) {
        for (int64_t j = column_begin; j < column_end; j += PANEL) {
            int64_t columns = min(column_end - j, PANEL);
            RLXK_FN(pack)(x->packed + (j - column_begin) * k, b + j * g->b_col, k, columns, g->b_row, g->b_col);
        }
    }

    rlxk_tile tile = {
        .a_row = g->a_row, .a_col = g->a_col, .runs = 1, .a_runs = rlxk_one_run, .b_runs = rlxk_one_run, .k = k,
        .b_row = x->packed ? PANEL : g->b_row, .c_row = g->c_row, .alpha = g->alpha,
        .accumulate = g->accumulate || !first, .relu = last && g->activation == RLXK_ACT_RELU,
        .clip = last && g->activation == RLXK_ACT_CLIP ? g->clip : NULL,
    };
    int64_t rows = row_end - row_begin, row_blocks = (rows + TILE_ROWS - 1) / TILE_ROWS;
    for (int64_t block = 0; block < row_blocks; block++) {
        int64_t i = row_begin + rows * block / row_blocks, next = row_begin + rows * (block + 1) / row_blocks;
        tile.a = x->a + i * g->a_row + k_begin * g->a_col;
        if (x->rows) {
            RLXK_FN(pack_rows)(x->rows, tile.a, next - i, k, g->a_row, g->a_col);
            tile.a = x->rows;
            tile.a_row = 1;
            tile.a_col = ROW_PITCH;
        }
        const int64_t above = g->symmetric && i > column_begin ? (i - column_begin) / PANEL * PANEL : 0;
        for (int64_t j = column_begin + above; j < column_end; j += PANEL) {
            tile.b = x->packed ? x->packed + (j - column_begin) * k : b + j;
            tile.c = x->c + i * g->c_row + j;
            tile.bias = last && g->bias ? g->bias + j : NULL;
            tile.gate = last && g->gate ? x->gate + i * g->c_row + j : NULL;
            RLXK_FN(tile_run)(&tile, next - i, min(column_end - j, PANEL));
        }
    }
}

/* Rows x columns, in blocks whose part of B stays in the second-level cache. */
static void RLXK_FN(rectangle)(const product *x, int64_t row_begin, int64_t row_end, int64_t column_begin,
                               int64_t column_end) {
    const int64_t k = x->g->k, parts = depth_parts(x->g), width = group_columns(x->g);
    for (int64_t part = 0; part < parts; part++) {
        for (int64_t j = column_begin; j < column_end; j += width) {
            RLXK_FN(block)(x, row_begin, row_end, j, min(j + width, column_end), k * part / parts, k * (part + 1) / parts);
        }
    }
}

static void RLXK_FN(gemm)(const void *arguments, int32_t worker, int32_t workers) {
    const rlxk_gemm *g = arguments;
    const gemm_way way = way_of(g);
    const int64_t batches = g->batch[0] * g->batch[1] * g->batch[2];
    const int64_t panels = (g->n + PANEL - 1) / PANEL;
    /* A worker reads all of the operand that is not split: split the longer one. */
    const bool by_rows = way == BY_TILES ? g->m >= g->n || batches * panels < workers : way != BY_DOTS_OF_COLUMNS;
    const int64_t units = by_rows ? g->m : panels;
    int64_t unit, end;
    if (g->symmetric && way == BY_TILES) triangle_share(g->m, worker, workers, &unit, &end);
    else rlxk_share(batches * units, worker, workers, &unit, &end);

    product x = { .g = g };
    if (way == BY_ACCELERATE) { /* has threads of its own */
        if (worker == 0) run_accelerate(&x, batches);
        return;
    }
    float *workspace = g->workspace + worker * (packed_floats(g) + rows_floats(g));
    if (packed_floats(g)) x.packed = workspace;
    /* Few rows at strides of whole pages fit the ways of a cache set. */
    if (rows_floats(g) && (g->a_row == 1 || TILE_ROWS > MOST_ROWS_IN_A_SET)) x.rows = workspace + packed_floats(g);
    while (unit < end && g->n > 0) {
        int64_t batch = unit / units, begin = unit % units;
        int64_t stop = end - unit < units - begin ? begin + (end - unit) : units;
        unit += stop - begin;
        select_batch(&x, batch);
        if (way == BY_DOTS_OF_ROWS) {
            RLXK_FN(dots_of_rows)(&x, begin, stop);
        } else if (way == BY_COLUMNS_OF_A) {
            RLXK_FN(flipped)(&x, begin, stop);
        } else if (way == BY_DOTS_OF_COLUMNS) {
            RLXK_FN(dots_of_columns)(&x, begin * PANEL, min(stop * PANEL, g->n));
        } else if (by_rows) {
            RLXK_FN(rectangle)(&x, begin, stop, 0, g->n);
        } else {
            RLXK_FN(rectangle)(&x, 0, g->m, begin * PANEL, min(stop * PANEL, g->n));
        }
    }
}

static void RLXK_FN(mirror)(const void *arguments, int32_t worker, int32_t workers) {
    const rlxk_mirror *m = arguments;
    const int64_t squares = (m->n + RLXK_LANES - 1) / RLXK_LANES;
    int64_t begin, end;
    rlxk_share(squares, worker, workers, &begin, &end);
    /* From both ends, so that shares are alike: the first rows have little before the diagonal. */
    for (int64_t at = begin; at < end; at++) {
        const int64_t j = (at % 2 ? squares - 1 - at / 2 : at / 2) * RLXK_LANES;
        const int64_t rows = min(m->n - j, RLXK_LANES);
        for (int64_t i = 0; i < j && rows == RLXK_LANES; i += RLXK_LANES) {
            VEC x[RLXK_LANES];
            UNROLL for (int l = 0; l < RLXK_LANES; l++) x[l] = RLXK_FN(load)(m->c + (i + l) * m->row + j);
            RLXK_FN(transpose)(x);
            UNROLL for (int l = 0; l < RLXK_LANES; l++) RLXK_FN(store)(m->c + (j + l) * m->row + i, x[l]);
        }
        for (int64_t row = j; row < j + rows; row++) {
            for (int64_t i = rows == RLXK_LANES ? j : 0; i < row; i++) m->c[row * m->row + i] = m->c[i * m->row + row];
        }
    }
}
