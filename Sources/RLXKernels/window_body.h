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

#undef FOR_EACH_ROW
