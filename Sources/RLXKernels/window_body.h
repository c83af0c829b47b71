/* window_body.h - the kernels of window.c for one instruction set. */

/* Row (k0, k1, k2) of the unfolded image: the element k of each window in [at, end), zero outside of the image. */
static void RLXK_FN(unfold_row)(
    const rlxk_window *w, const float *image, int64_t k0, int64_t k1, int64_t k2, int64_t at, int64_t end, float *row) {
    int64_t first, last;
    inside(w, 2, k2, &first, &last);
    const int64_t stride = w->stride[2], shift = k2 * w->dilation[2] - w->before[2];
    while (at < end) {
        const run r = next_run(w, at, end);
        const int64_t offset = row_offset(w, &r, k0, k1), left = r.position[2], right = left + r.count;
        int64_t from = minimum(maximum(first, left), right), to = maximum(minimum(last, right), from);
        if (offset < 0) from = to = right;
        memset(row, 0, (size_t)(from - left) * sizeof(float));
        if (from < to) {
            const float *x = image + offset + from * stride + shift;
            if (stride == 1) {
                memcpy(row + (from - left), x, (size_t)(to - from) * sizeof(float));
            } else {
                for (int64_t i = 0; i < to - from; i++) row[from - left + i] = x[i * stride];
            }
        }
        memset(row + (to - left), 0, (size_t)(right - to) * sizeof(float));
        row += r.count;
        at += r.count;
    }
}

/* The opposite: adds the row to the elements k of the windows. */
static void RLXK_FN(fold_row)(
    const rlxk_window *w, float *image, int64_t k0, int64_t k1, int64_t k2, int64_t at, int64_t end, const float *row) {
    int64_t first, last;
    inside(w, 2, k2, &first, &last);
    const int64_t stride = w->stride[2], shift = k2 * w->dilation[2] - w->before[2];
    while (at < end) {
        const run r = next_run(w, at, end);
        const int64_t offset = row_offset(w, &r, k0, k1), left = r.position[2], right = left + r.count;
        const int64_t from = minimum(maximum(first, left), right), to = maximum(minimum(last, right), from);
        if (offset >= 0 && from < to) {
            float *restrict x = image + offset + from * stride + shift;
            const float *restrict y = row + (from - left);
            for (int64_t i = 0; i < to - from; i++) x[i * stride] += y[i];
        }
        row += r.count;
        at += r.count;
    }
}

/* Calls ROW(channel row, k0, k1, k2) for every channel and element of the kernel, in their order. */
#define FOR_EACH_ROW(CHANNELS, ROW)                                                      \
    for (int64_t channel = 0, at_row = 0; channel < (CHANNELS); channel++)               \
        for (int64_t k0 = 0; k0 < w->kernel[0]; k0++)                                    \
            for (int64_t k1 = 0; k1 < w->kernel[1]; k1++)                                \
                for (int64_t k2 = 0; k2 < w->kernel[2]; k2++, at_row++) ROW;

static void RLXK_FN(conv)(const void *arguments, int32_t worker, int32_t workers) {
    const rlxk_conv *c = arguments;
    const rlxk_window *w = &c->window;
    const int64_t windows = volume(w->windows), blocks = (windows + c->block - 1) / c->block;
    const int64_t depth = c->ci * volume(w->kernel), pixels = volume(w->image);
    float *columns = c->scratch + worker * c->scratch_stride;
    int64_t begin, end;
    rlxk_share(c->batch * c->groups * blocks, worker, workers, &begin, &end);
    for (int64_t task = begin; task < end; task++) {
        const int64_t plane = task / blocks, group = plane % c->groups;
        const int64_t at = task % blocks * c->block, count = minimum(c->block, windows - at);
        const float *x = c->x + plane * c->ci * pixels;
        FOR_EACH_ROW(c->ci, RLXK_FN(unfold_row)(w, x + channel * pixels, k0, k1, k2, at, at + count, columns + at_row * count))
        rlxk_gemm product = forward_product(c, count);
        product.a = c->weight + group * c->co * depth;
        product.b = columns;
        product.c = c->out + plane * c->co * windows + at;
        product.workspace = columns + rounded(depth * c->block);
        rlxk_gemm_run(&product, 0, 1);
    }
}

static void RLXK_FN(conv_transpose)(const void *arguments, int32_t worker, int32_t workers) {
    const rlxk_conv_transpose *c = arguments;
    const rlxk_window *w = &c->window;
    const int64_t windows = volume(w->windows), rows = c->co * volume(w->kernel), pixels = volume(w->image);
    float *columns = c->scratch + worker * c->scratch_stride;
    int64_t begin, end;
    rlxk_share(c->batch * c->groups, worker, workers, &begin, &end);
    for (int64_t plane = begin; plane < end; plane++) {
        const int64_t group = plane % c->groups;
        float *out = c->out + plane * c->co * pixels;
        memset(out, 0, (size_t)(c->co * pixels) * sizeof(float));
        for (int64_t at = 0; at < windows; at += c->block) {
            const int64_t count = minimum(c->block, windows - at);
            rlxk_gemm product = transpose_product(c, count);
            product.a = c->weight + group * c->ci * rows;
            product.b = c->x + plane * c->ci * windows + at;
            product.c = columns;
            product.workspace = columns + rounded(rows * c->block);
            rlxk_gemm_run(&product, 0, 1);
            FOR_EACH_ROW(c->co, RLXK_FN(fold_row)(w, out + channel * pixels, k0, k1, k2, at, at + count, columns + at_row * count))
        }
    }
}

static void RLXK_FN(pool_row)(const rlxk_pool *p, const float *image, const run *r, float *out) {
    const rlxk_window *w = &p->window;
    const int64_t stride = w->stride[2];
    const int is_max = p->pooling == RLXK_POOL_MAX;
    for (int64_t i = 0; i < r->count; i++) out[i] = is_max ? -INFINITY : 0.0f;
    for (int64_t k0 = 0; k0 < w->kernel[0]; k0++) {
        for (int64_t k1 = 0; k1 < w->kernel[1]; k1++) {
            const int64_t offset = row_offset(w, r, k0, k1);
            for (int64_t k2 = 0; k2 < w->kernel[2] && offset >= 0; k2++) {
                int64_t first, last;
                inside(w, 2, k2, &first, &last);
                const float *x = image + offset + k2 * w->dilation[2] - w->before[2];
                if (is_max) {
                    for (int64_t i = first; i < last; i++) out[i] = rlxk_max(out[i], x[i * stride]);
                } else {
                    for (int64_t i = first; i < last; i++) out[i] += x[i * stride];
                }
            }
        }
    }
    if (is_max) return;
    const float divisor = p->divisor[0][r->position[0]] * p->divisor[1][r->position[1]];
    for (int64_t i = 0; i < r->count; i++) out[i] /= divisor * p->divisor[2][i];
}

static void RLXK_FN(pool)(const void *arguments, int32_t worker, int32_t workers) {
    const rlxk_pool *p = arguments;
    const rlxk_window *w = &p->window;
    const int64_t rows = w->windows[0] * w->windows[1];
    int64_t begin, end;
    rlxk_share(p->planes * rows, worker, workers, &begin, &end);
    for (int64_t task = begin; task < end; task++) {
        const int64_t at = task % rows * w->windows[2];
        const run r = next_run(w, at, at + w->windows[2]);
        RLXK_FN(pool_row)(p, p->x + task / rows * volume(w->image), &r, p->out + task * w->windows[2]);
    }
}

static void RLXK_FN(winner_row)(const rlxk_winner *w, const float *x, const float *y, const float *g, float *out) {
    for (int64_t column = 0; column < w->columns; column++, x += w->column_step, out += w->column_step) {
        for (int64_t k = 0; k < w->count; k++) {
            if (x[w->offset[k]] == y[column]) {
                out[w->offset[k]] += g[column];
                break;
            }
        }
    }
}

/* Windows of 2 x 2 that do not meet, without branches. */
static void RLXK_FN(winner_row_2x2)(
    const float *restrict x, int64_t below, const float *restrict y, const float *restrict g, float *restrict out, int64_t n) {
#pragma clang loop vectorize(enable)
    for (int64_t i = 0; i < n; i++) {
        const float v = g[i], top = y[i];
        const int a = x[2 * i] == top, b = x[2 * i + 1] == top;
        const int c = x[below + 2 * i] == top, d = x[below + 2 * i + 1] == top;
        out[2 * i] = a ? v : 0.0f;
        out[2 * i + 1] = (b & !a) ? v : 0.0f;
        out[below + 2 * i] = (c & !(a | b)) ? v : 0.0f;
        out[below + 2 * i + 1] = (d & !(a | b | c)) ? v : 0.0f;
    }
}

static void RLXK_FN(winner)(const void *arguments, int32_t worker, int32_t workers) {
    const rlxk_winner *w = arguments;
    const int is_2x2 = w->count == 4 && w->column_step == 2 && w->row_step == 2 * w->offset[2] && w->offset[0] == 0
        && w->offset[1] == 1 && w->offset[2] >= 2 * w->columns && w->offset[3] == w->offset[2] + 1;
    int64_t begin, end;
    rlxk_share(w->planes, worker, workers, &begin, &end);
    for (int64_t plane = begin; plane < end; plane++) {
        memset(w->out + plane * w->plane_step, 0, (size_t)w->plane_step * sizeof(float));
        for (int64_t row = 0; row < w->rows; row++) {
            const int64_t at = plane * w->plane_step + row * w->row_step;
            const int64_t window = (plane * w->rows + row) * w->columns;
            const float *x = w->x + at, *y = w->y + window, *g = w->g + window;
            float *out = w->out + w->out_start + at;
            if (is_2x2) RLXK_FN(winner_row_2x2)(x, w->offset[2], y, g, out, w->columns);
            else RLXK_FN(winner_row)(w, x, y, g, out);
        }
    }
}

#undef FOR_EACH_ROW
