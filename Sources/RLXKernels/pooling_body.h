/* pooling_body.h - one worker's rows of a pooling, or planes of its derivative (a body for isa_each.h). */
#include "vec_body.h"

#if RLXK_LANES == 16
#define EVENS(x, y) __builtin_shufflevector(x, y, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#define LOW_PAIRS(x, y) __builtin_shufflevector(x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define HIGH_PAIRS(x, y) __builtin_shufflevector(x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#elif RLXK_LANES == 8
#define EVENS(x, y) __builtin_shufflevector(x, y, 0, 2, 4, 6, 8, 10, 12, 14)
#define LOW_PAIRS(x, y) __builtin_shufflevector(x, y, 0, 8, 1, 9, 2, 10, 3, 11)
#define HIGH_PAIRS(x, y) __builtin_shufflevector(x, y, 4, 12, 5, 13, 6, 14, 7, 15)
#else
#define EVENS(x, y) __builtin_shufflevector(x, y, 0, 2, 4, 6)
#define LOW_PAIRS(x, y) __builtin_shufflevector(x, y, 0, 4, 1, 5)
#define HIGH_PAIRS(x, y) __builtin_shufflevector(x, y, 2, 6, 3, 7)
#endif

/* The n lanes p[0], p[stride], ...; nothing between or behind them is needed but what lies before the last. */
INLINE VEC RLXK_FN(load_apart)(const float *p, int64_t stride, int32_t n) {
    if (stride == 1) return RLXK_FN(load_first)(p, n);
    if (stride == 2) {
        const VEC low = RLXK_FN(load_first)(p, (int32_t)smaller(2 * n - 1, RLXK_LANES));
        if (2 * n - 1 <= RLXK_LANES) return EVENS(low, low);
        return EVENS(low, RLXK_FN(load_first)(p + RLXK_LANES, 2 * n - 1 - RLXK_LANES));
    }
    float lanes[RLXK_LANES] = { 0 };
    for (int32_t i = 0; i < n; i++) lanes[i] = p[i * stride];
    return RLXK_FN(load)(lanes);
}

/* Adds the first n lanes of x to what load_apart() reads. */
INLINE void RLXK_FN(add_apart)(float *p, int64_t stride, VEC x, int32_t n) {
    const VEC zero = 0;
    if (stride == 1) {
        RLXK_FN(store_first)(p, RLXK_FN(load_first)(p, n) + x, n);
    } else if (stride == 2) {
        const int32_t low = (int32_t)smaller(2 * n - 1, RLXK_LANES), high = 2 * n - 1 - RLXK_LANES;
        RLXK_FN(store_first)(p, RLXK_FN(load_first)(p, low) + LOW_PAIRS(x, zero), low);
        if (high <= 0) return;
        p += RLXK_LANES;
        RLXK_FN(store_first)(p, RLXK_FN(load_first)(p, high) + HIGH_PAIRS(x, zero), high);
    } else {
        float lanes[RLXK_LANES];
        RLXK_FN(store)(lanes, x);
        for (int32_t i = 0; i < n; i++) p[i * stride] += lanes[i];
    }
}

#undef EVENS
#undef LOW_PAIRS
#undef HIGH_PAIRS

/* MARK: Pooling: first over the rows of a row of windows, then within the line that this makes */

INLINE VEC RLXK_FN(pooled)(VEC x, VEC element, bool is_max) {
    if (!is_max) return x + element;
    return ((element > x) | (element != element)) ? element : x; /* a NaN stays */
}

INLINE void RLXK_FN(pool_rows)(
    const rlxk_window *w, const float *image, const int64_t position[2], float *line, bool is_max) {
    const int64_t width = smaller(w->image[2], line_floats(w) - w->before[2]);
    for (int64_t j = 0; j < width; j += RLXK_LANES) {
        const int32_t n = (int32_t)smaller(width - j, RLXK_LANES);
        VEC x = is_max ? -INFINITY : 0;
        for (int64_t k0 = 0; k0 < w->kernel[0]; k0++) {
            const int64_t i0 = position[0] * w->stride[0] - w->before[0] + k0 * w->dilation[0];
            if (i0 < 0 || i0 >= w->image[0]) continue;
            for (int64_t k1 = 0; k1 < w->kernel[1]; k1++) {
                const int64_t i1 = position[1] * w->stride[1] - w->before[1] + k1 * w->dilation[1];
                if (i1 < 0 || i1 >= w->image[1]) continue;
                const float *row = image + (i0 * w->image[1] + i1) * w->image[2];
                x = RLXK_FN(pooled)(x, RLXK_FN(load_first)(row + j, n), is_max);
            }
        }
        RLXK_FN(store_first)(line + w->before[2] + j, x, n);
    }
}

INLINE void RLXK_FN(pool_line)(
    const rlxk_pool *p, const float *line, int64_t stride, const int64_t position[2], float *out, bool is_max) {
    const rlxk_window *w = &p->window;
    const float divisor = is_max ? 1 : p->divisor[0][position[0]] * p->divisor[1][position[1]];
    for (int64_t i = 0; i < w->windows[2]; i += RLXK_LANES) {
        const int32_t n = (int32_t)smaller(w->windows[2] - i, RLXK_LANES);
        VEC x = is_max ? -INFINITY : 0;
        for (int64_t k = 0; k < w->kernel[2]; k++) {
            const VEC element = RLXK_FN(load_apart)(line + i * stride + k * w->dilation[2], stride, n);
            x = RLXK_FN(pooled)(x, element, is_max);
        }
        if (!is_max) x /= divisor * RLXK_FN(load_first)(p->divisor[2] + i, n);
        RLXK_FN(store_first)(out + i, x, n);
    }
}

INLINE void RLXK_FN(pool_planes)(const rlxk_pool *p, int32_t worker, int32_t workers, bool is_max) {
    const rlxk_window *w = &p->window;
    const int64_t pixels = w->image[0] * w->image[1] * w->image[2], rows = w->windows[0] * w->windows[1];
    float *line = p->scratch + worker * p->scratch_stride;
    for (int64_t j = 0; j < line_floats(w); j++) line[j] = is_max ? -INFINITY : 0; /* what lies beside the image */
    int64_t row, end;
    rlxk_share(p->planes * rows, worker, workers, &row, &end);
    for (; row < end; row++) {
        const int64_t position[2] = { row % rows / w->windows[1], row % w->windows[1] };
        float *out = p->out + row * w->windows[2];
        RLXK_FN(pool_rows)(w, p->x + row / rows * pixels, position, line, is_max);
        if (w->stride[2] == 1) RLXK_FN(pool_line)(p, line, 1, position, out, is_max);
        else if (w->stride[2] == 2) RLXK_FN(pool_line)(p, line, 2, position, out, is_max);
        else RLXK_FN(pool_line)(p, line, w->stride[2], position, out, is_max);
    }
}

static void RLXK_FN(pool)(const void *arguments, int32_t worker, int32_t workers) {
    const rlxk_pool *p = arguments;
    if (p->pooling == RLXK_POOL_MAX) RLXK_FN(pool_planes)(p, worker, workers, true);
    else RLXK_FN(pool_planes)(p, worker, workers, false);
}

/* MARK: Where the largest came from */

INLINE void RLXK_FN(winner_row)(
    const rlxk_winner *w, const float *x, const float *y, const float *g, float *out, int64_t step) {
    for (int64_t column = 0; column < w->columns; column += RLXK_LANES) {
        const int32_t n = (int32_t)smaller(w->columns - column, RLXK_LANES);
        const VEC zero = 0, largest = RLXK_FN(load_first)(y + column, n);
        VEC left = RLXK_FN(load_first)(g + column, n); /* zero once an element has won */
        for (int64_t k = 0; k < w->count; k++) {
            const int64_t at = column * step + w->offset[k];
            const VEC element = RLXK_FN(load_apart)(x + at, step, n);
            RLXK_FN(add_apart)(out + at, step, element == largest ? left : zero, n);
            left = element == largest ? zero : left;
        }
    }
}

static void RLXK_FN(winner)(const void *arguments, int32_t worker, int32_t workers) {
    const rlxk_winner *w = arguments;
    int64_t plane, end;
    rlxk_share(w->planes, worker, workers, &plane, &end);
    for (; plane < end; plane++) {
        memset(w->out + plane * w->plane_step, 0, (size_t)w->plane_step * sizeof(float));
        for (int64_t row = 0; row < w->rows; row++) {
            const int64_t at = plane * w->plane_step + row * w->row_step;
            const int64_t window = (plane * w->rows + row) * w->columns;
            const float *x = w->x + at, *y = w->y + window, *g = w->g + window;
            float *out = w->out + w->out_start + at;
            if (w->column_step == 1) RLXK_FN(winner_row)(w, x, y, g, out, 1);
            else if (w->column_step == 2) RLXK_FN(winner_row)(w, x, y, g, out, 2);
            else RLXK_FN(winner_row)(w, x, y, g, out, w->column_step);
        }
    }
}
