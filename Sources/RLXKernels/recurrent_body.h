/* recurrent_body.h - the kernel of recurrent.c for one instruction set. */

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

static void RLXK_FN(gru_step)(const rlxk_recurrent *r, float *gates, float *h, float *other) {
    const int64_t n = r->size, row = 3 * n;
    float *reset = gates, *candidate = gates + n, *update = gates + 2 * n;
    RLXK_FN(accumulate)(reset, h, r->weight, n, row, n);
    RLXK_FN(accumulate)(update, h, r->weight + 2 * n, n, row, n);
    RLXK_FN(apply)(r->recurrent, reset, n);
    RLXK_FN(apply)(r->recurrent, update, n);
    if (r->cell == RLXK_GRU_RESET_AFTER) {
        for (int64_t i = 0; i < n; i++) other[i] = r->bias ? r->bias[i] : 0.0f;
        RLXK_FN(accumulate)(other, h, r->weight + n, n, row, n);
        for (int64_t i = 0; i < n; i++) candidate[i] += reset[i] * other[i];
    } else {
        for (int64_t i = 0; i < n; i++) other[i] = reset[i] * h[i];
        RLXK_FN(accumulate)(candidate, other, r->weight + n, n, row, n);
    }
    RLXK_FN(apply)(r->inner, candidate, n);
    for (int64_t i = 0; i < n; i++) h[i] = (1.0f - update[i]) * candidate[i] + update[i] * h[i];
}

static void RLXK_FN(lstm_step)(const rlxk_recurrent *r, float *gates, float *h, float *c) {
    const int64_t n = r->size;
    float *input = gates, *forget = gates + n, *output = gates + 2 * n, *candidate = gates + 3 * n;
    const float *p = r->peephole;
    RLXK_FN(accumulate)(gates, h, r->weight, n, 4 * n, 4 * n);
    for (int64_t i = 0; p && i < n; i++) {
        input[i] += p[i] * c[i];
        forget[i] += p[n + i] * c[i];
    }
    RLXK_FN(apply)(r->recurrent, input, 2 * n);
    RLXK_FN(apply)(r->inner, candidate, n);
    for (int64_t i = 0; i < n; i++) c[i] = rlxk_clip(forget[i] * c[i] + input[i] * candidate[i], -r->clip, r->clip);
    for (int64_t i = 0; p && i < n; i++) output[i] += p[2 * n + i] * c[i];
    RLXK_FN(apply)(r->recurrent, output, n);
    memcpy(h, c, (size_t)n * sizeof(float));
    RLXK_FN(apply)(r->outer, h, n);
    for (int64_t i = 0; i < n; i++) h[i] *= output[i];
}

static void RLXK_FN(recurrent)(const void *arguments, int32_t worker, int32_t workers) {
    const rlxk_recurrent *r = arguments;
    const int64_t n = r->size, gates = r->cell == RLXK_RNN ? 1 : r->cell == RLXK_LSTM ? 4 : 3;
    float *values = r->scratch + worker * r->scratch_stride, *h = values + gates * n, *other = h + n;
    const size_t bytes = (size_t)n * sizeof(float);
    int64_t begin, end;
    rlxk_share(r->batch, worker, workers, &begin, &end);
    for (int64_t row = begin; row < end; row++) {
        memcpy(h, r->h0 + row * n, bytes);
        if (r->cell == RLXK_LSTM) memcpy(other, r->c0 + row * n, bytes);
        for (int64_t step = 0; step < r->steps; step++) {
            const int64_t t = r->reverse ? r->steps - 1 - step : step;
            memcpy(values, r->inputs + (t * r->batch + row) * gates * n, bytes * (size_t)gates);
            if (r->cell == RLXK_LSTM) {
                RLXK_FN(lstm_step)(r, values, h, other);
            } else if (r->cell == RLXK_RNN) {
                RLXK_FN(accumulate)(values, h, r->weight, n, n, n);
                RLXK_FN(apply)(r->inner, values, n);
                memcpy(h, values, bytes);
            } else {
                RLXK_FN(gru_step)(r, values, h, other);
            }
            if (r->keeps_all) memcpy(r->sequence + (step * r->batch + row) * n, h, bytes);
        }
        if (!r->keeps_all) memcpy(r->sequence + row * n, h, bytes);
        memcpy(r->h + row * n, h, bytes);
        if (r->cell == RLXK_LSTM) memcpy(r->c + row * n, other, bytes);
    }
}
