/* recurrent_body.h - the kernel of recurrent.c for one instruction set. */
#include "vec_body.h"
#include "pack_body.h"

static void RLXK_FN(apply)(rlxk_gate_function function, float *x, int64_t n) {
    switch (function) {
    case RLXK_GATE_LINEAR: break;
    case RLXK_GATE_RELU:
        for (int64_t i = 0; i < n; i++) x[i] = rlxk_relu(x[i]);
        break;
    case RLXK_GATE_TANH:
        for (int64_t i = 0; i < n; i++) x[i] = rlxk_tanh(x[i]);
        break;
    case RLXK_GATE_SIGMOID:
        for (int64_t i = 0; i < n; i++) x[i] = rlxk_sigmoid(x[i]);
        break;
    case RLXK_GATE_HARD_SIGMOID:
        for (int64_t i = 0; i < n; i++) x[i] = rlxk_clip(0.2f * x[i] + 0.5f, 0.0f, 1.0f);
        break;
    }
}

/* out[j] += sum over k of h[k] weight[k][j], j < n */
static void RLXK_FN(accumulate)(
    float *restrict out, const float *restrict h, const float *restrict weight, int64_t size, int64_t row, int64_t n) {
    int64_t k = 0;
    for (; k + 4 <= size; k += 4) {
        const float *w = weight + k * row;
        const float a = h[k], b = h[k + 1], c = h[k + 2], d = h[k + 3];
        for (int64_t j = 0; j < n; j++)
            out[j] += (a * w[j] + b * w[row + j]) + (c * w[2 * row + j] + d * w[3 * row + j]);
    }
    for (; k < size; k++)
        for (int64_t j = 0; j < n; j++) out[j] += h[k] * weight[k * row + j];
}

/* The panels of each part of the weights' columns, one after another. */
static void RLXK_FN(pack_weights)(const rlxk_direction *d, float *packed) {
    const int64_t n = part_columns(d), row = parts(d) * n;
    for (int64_t part = 0; part < parts(d); part++) {
        float *to = packed + part * packed_floats(d);
        for (int64_t j = 0; j < n; j += PANEL, to += d->size * PANEL) {
            RLXK_FN(pack)(to, d->weight + part * n + j, d->size, n - j < PANEL ? n - j : PANEL, row, 1);
        }
    }
}

/* out += h times a part of the weights, for each row: `out` has rows of `pitch`, `h` of `size`. */
static void RLXK_FN(multiply)(const walk *w, float *out, int64_t pitch, const float *h, int64_t part) {
    const rlxk_direction *d = w->d;
    const int64_t size = d->size, n = part_columns(d);
    /* By the batch, not by the rows of this worker: the order of the sums must not depend on how many there are. */
    if (d->batch == 1) {
        RLXK_FN(accumulate)(out, h, d->weight + part * n, size, parts(d) * n, n);
        return;
    }
    rlxk_tile tile = {
        .a_row = size, .a_col = 1, .runs = 1, .a_runs = rlxk_one_run, .b_runs = rlxk_one_run, .k = size,
        .b_row = PANEL, .c_row = pitch, .alpha = 1, .accumulate = true,
    };
    for (int64_t j = 0; j < n; j += PANEL) {
        const int64_t columns = n - j < PANEL ? n - j : PANEL;
        tile.b = w->packed + part * packed_floats(d) + j * size;
        for (int64_t i = 0; i < w->rows; i += TILE_ROWS) {
            tile.a = h + i * size;
            tile.c = out + i * pitch + j;
            RLXK_FN(tile_run)(&tile, w->rows - i < TILE_ROWS ? w->rows - i : TILE_ROWS, columns);
        }
    }
}

static void RLXK_FN(rnn_step)(const walk *w) {
    const int64_t n = w->d->size;
    RLXK_FN(multiply)(w, w->gates, n, w->h, 0);
    RLXK_FN(apply)(w->d->inner, w->gates, w->rows * n);
    memcpy(w->h, w->gates, (size_t)(w->rows * n) * sizeof(float));
}

static void RLXK_FN(gru_step)(const walk *w) {
    const rlxk_direction *d = w->d;
    const int64_t n = d->size, row = 3 * n;
    const bool resets_after = d->cell == RLXK_GRU_RESET_AFTER;
    float *h = w->h, *other = w->other;
    RLXK_FN(multiply)(w, w->gates, row, h, 0);
    RLXK_FN(multiply)(w, w->gates + 2 * n, row, h, 2);
    for (int64_t i = 0; i < w->rows; i++) {
        float *reset = w->gates + i * row;
        RLXK_FN(apply)(d->recurrent, reset, n);
        RLXK_FN(apply)(d->recurrent, reset + 2 * n, n);
        for (int64_t j = 0; j < n; j++) {
            other[i * n + j] = !resets_after ? reset[j] * h[i * n + j] : d->bias ? d->bias[j] : 0.0f;
        }
    }
    if (resets_after) {
        RLXK_FN(multiply)(w, other, n, h, 1);
    } else {
        RLXK_FN(multiply)(w, w->gates + n, row, other, 1);
    }
    for (int64_t i = 0; i < w->rows; i++, h += n, other += n) {
        float *reset = w->gates + i * row, *candidate = reset + n, *update = candidate + n;
        for (int64_t j = 0; resets_after && j < n; j++) candidate[j] += reset[j] * other[j];
        RLXK_FN(apply)(d->inner, candidate, n);
        for (int64_t j = 0; j < n; j++) h[j] = (1.0f - update[j]) * candidate[j] + update[j] * h[j];
    }
}

static void RLXK_FN(lstm_step)(const walk *w) {
    const rlxk_direction *d = w->d;
    const int64_t n = d->size;
    const float *p = d->peephole;
    RLXK_FN(multiply)(w, w->gates, 4 * n, w->h, 0);
    for (int64_t row = 0; row < w->rows; row++) {
        float *input = w->gates + row * 4 * n, *forget = input + n, *output = forget + n, *candidate = output + n;
        float *h = w->h + row * n, *c = w->other + row * n;
        for (int64_t i = 0; p && i < n; i++) {
            input[i] += p[i] * c[i];
            forget[i] += p[n + i] * c[i];
        }
        RLXK_FN(apply)(d->recurrent, input, p ? 2 * n : 3 * n);
        RLXK_FN(apply)(d->inner, candidate, n);
        for (int64_t i = 0; i < n; i++) c[i] = rlxk_clip(forget[i] * c[i] + input[i] * candidate[i], -d->clip, d->clip);
        for (int64_t i = 0; p && i < n; i++) output[i] += p[2 * n + i] * c[i];
        if (p) RLXK_FN(apply)(d->recurrent, output, n);
        memcpy(h, c, (size_t)n * sizeof(float));
        RLXK_FN(apply)(d->outer, h, n);
        for (int64_t i = 0; i < n; i++) h[i] *= output[i];
    }
}

/* Stores rows of `size` from `from` to rows that lie `pitch` apart. */
static void RLXK_FN(store_rows)(const walk *w, float *to, const float *from) {
    const int64_t n = w->d->size;
    for (int64_t i = 0; i < w->rows; i++) memcpy(to + i * w->d->pitch, from + i * n, (size_t)n * sizeof(float));
}

/* All steps for the rows of the batch from `first` on. */
static void RLXK_FN(walk_rows)(const walk *w, int64_t first, int64_t gates) {
    const rlxk_direction *d = w->d;
    const int64_t n = d->size, start = first * d->pitch, step_floats = d->batch * d->pitch;
    const size_t bytes = (size_t)(w->rows * n) * sizeof(float);
    memcpy(w->h, d->h0 + first * n, bytes);
    if (d->cell == RLXK_LSTM) memcpy(w->other, d->c0 + first * n, bytes);
    for (int64_t step = 0; step < d->steps; step++) {
        const int64_t t = d->reverse ? d->steps - 1 - step : step;
        memcpy(w->gates, d->inputs + (t * d->batch + first) * gates * n, bytes * (size_t)gates);
        if (d->cell == RLXK_LSTM) {
            RLXK_FN(lstm_step)(w);
        } else if (d->cell == RLXK_RNN) {
            RLXK_FN(rnn_step)(w);
        } else {
            RLXK_FN(gru_step)(w);
        }
        if (d->keeps_all) RLXK_FN(store_rows)(w, d->sequence + (d->by_time ? t : step) * step_floats + start, w->h);
    }
    if (!d->keeps_all) RLXK_FN(store_rows)(w, d->sequence + start, w->h);
    RLXK_FN(store_rows)(w, d->h + start, w->h);
    if (d->cell == RLXK_LSTM) RLXK_FN(store_rows)(w, d->c + start, w->other);
}

static void RLXK_FN(recurrent)(const void *arguments, int32_t worker, int32_t workers) {
    const rlxk_recurrent *r = arguments;
    const int64_t batch = r->list[0].batch;
    const rlxk_direction *packed = NULL;
    float *scratch = r->scratch + worker * r->scratch_stride;
    int64_t row, end;
    rlxk_share(r->count * batch, worker, workers, &row, &end);
    while (row < end) {
        const rlxk_direction *d = &r->list[row / batch];
        const int64_t first = row % batch, n = d->size, gates = d->cell == RLXK_RNN ? 1 : d->cell == RLXK_LSTM ? 4 : 3;
        int64_t rows = batch - first < end - row ? batch - first : end - row;
        if (rows > RLXK_RECURRENT_ROWS) rows = RLXK_RECURRENT_ROWS;
        float *values = scratch + (batch > 1 ? parts(d) * packed_floats(d) : 0), *h = values + rows * gates * n;
        if (batch > 1 && packed != d) RLXK_FN(pack_weights)(packed = d, scratch);
        const walk w = { d, rows, scratch, values, h, h + rows * n };
        RLXK_FN(walk_rows)(&w, first, gates);
        row += rows;
    }
}
