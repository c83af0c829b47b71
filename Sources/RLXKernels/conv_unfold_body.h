/* conv_unfold_body.h - copies a part of a block's channels with their borders, and unfolds them (a body, after
 * vec_body.h). */

/* to[0 ..< n] = from; whole vectors, so that up to RLXK_LANES - 1 floats behind are read and overwritten. */
INLINE void RLXK_FN(copy_loosely)(float *to, const float *from, int64_t n) {
    for (int64_t j = 0; j < n; j += RLXK_LANES) RLXK_FN(store)(to + j, RLXK_FN(load)(from + j));
}

INLINE void RLXK_FN(clear_loosely)(float *to, int64_t n) {
    for (int64_t j = 0; j < n; j += RLXK_LANES) RLXK_FN(store)(to + j, 0);
}

INLINE void RLXK_FN(copy)(float *to, const float *from, int64_t n) {
    int64_t j = 0;
    for (; j + RLXK_LANES <= n; j += RLXK_LANES) RLXK_FN(store)(to + j, RLXK_FN(load)(from + j));
    if (j < n) RLXK_FN(store_first)(to + j, RLXK_FN(load_first)(from + j, (int32_t)(n - j)), (int32_t)(n - j));
}

#if RLXK_LANES == 16
#define EVENS 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#elif RLXK_LANES == 8
#define EVENS 0, 2, 4, 6, 8, 10, 12, 14
#else
#define EVENS 0, 2, 4, 6
#endif

/* to[j] = from[2 * j] for j < n; from[2 * n - 1] need not exist. */
INLINE void RLXK_FN(copy_evens)(float *to, const float *from, int64_t n) {
    int64_t j = 0;
    for (; j + RLXK_LANES < n; j += RLXK_LANES) {
        VEC low = RLXK_FN(load)(from + 2 * j), high = RLXK_FN(load)(from + 2 * j + RLXK_LANES);
        RLXK_FN(store)(to + j, __builtin_shufflevector(low, high, EVENS));
    }
    if (j == n) return;
    const int64_t left = 2 * (n - j) - 1;
    VEC low = RLXK_FN(load_first)(from + 2 * j, (int32_t)conv_min(left, RLXK_LANES)), high = 0;
    if (left > RLXK_LANES) high = RLXK_FN(load_first)(from + 2 * j + RLXK_LANES, (int32_t)(left - RLXK_LANES));
    RLXK_FN(store_first)(to + j, __builtin_shufflevector(low, high, EVENS), (int32_t)(n - j));
}
#undef EVENS

/* Rows of one phase of the columns: `width` columns that lie `stride` apart, the first of them at input column `at`. A
 * row's loose end is overwritten by what follows it. */
static void RLXK_FN(phase)(float *to, int64_t height, int64_t width, const float *channel, int64_t top, int64_t down,
                           int64_t at, const conv_axis axis[2], bool is_cleared) {
    const int64_t in = axis[1].in, stride = axis[1].stride;
    const int64_t first = at < 0 ? conv_min(stride == 1 ? -at : conv_quotient_up(-at, stride), width) : 0;
    const int64_t end = in > at ? conv_min(stride == 1 ? in - at : conv_quotient_up(in - at, stride), width) : 0;
    for (int64_t i = 0; i < height; i++, to += width) {
        const int64_t row = top + i * down;
        const bool inside = row >= 0 && row < axis[0].in;
        if (!is_cleared && (!inside || first > 0 || end < width)) RLXK_FN(clear_loosely)(to, width);
        if (!inside) continue;
        const float *x = channel + row * in;
        if (stride == 1) {
            if (first < end) RLXK_FN(copy)(to + first, x + (at + first), end - first);
        } else if (stride == 2) {
            RLXK_FN(copy_evens)(to + first, x + (at + 2 * first), end - first);
        } else {
            for (int64_t j = first; j < end; j++) to[j] = x[at + stride * j];
        }
    }
}

/* The planes of one channel of a strip; `is_cleared` says that the border's zeros are there. */
static void RLXK_FN(border)(float *to, const conv_planes *planes, const float *channel, int64_t first_row,
                            const conv_axis axis[2], bool is_cleared) {
    const int64_t top = first_row * axis[0].stride - axis[0].pad;
    for (int64_t p = 0; p < axis[0].stride; p++) {
        for (int64_t q = 0; q < axis[1].stride; q++, to += planes->phase) {
            if (!conv_meets_phase(&axis[0], p) || !conv_meets_phase(&axis[1], q)) continue;
            RLXK_FN(phase)(to, planes->height, planes->width, channel, top + p, axis[0].stride, q - axis[1].pad,
                           axis, is_cleared);
        }
    }
}

/* The planes of channels [begin, end) of all strips. */
static void RLXK_FN(borders)(float *to, const conv_source *s, const conv_block *block, int64_t begin, int64_t end) {
    for (int64_t n = 0; n < block->strips; n++) {
        const conv_strip *strip = &block->strip[n];
        const float *image = s->base + strip->image * s->image;
        float *planes = to + strip->planes;
        for (int64_t channel = begin; channel < end; channel++, planes += block->planes.channel) {
            RLXK_FN(border)(planes, &block->planes, image + channel * s->plane, strip->row, s->axis, false);
        }
    }
}

/* A row for each channel and tap, a column for each pixel, from bordered planes. A row's loose end falls on pixels that
 * are written later, or into the slack of the pitch. */
static void RLXK_FN(unfold)(float *to, const float *bordered, const conv_source *s, const conv_block *block,
                            int64_t channels) {
    const int64_t width = s->axis[1].out;
    for (int64_t n = 0; n < block->strips; n++) {
        const conv_strip *strip = &block->strip[n];
        float *line = to + strip->column;
        for (int64_t channel = 0; channel < channels; channel++) {
            const float *plane = bordered + strip->planes + channel * block->planes.channel;
            for (int64_t p = 0; p < s->axis[0].taps; p++) {
                for (int64_t q = 0; q < s->axis[1].taps; q++, line += block->pitch) {
                    const float *x = plane + conv_tap_start(s, &block->planes, p, q);
                    for (int64_t i = 0; i < strip->rows; i++) {
                        RLXK_FN(copy_loosely)(line + i * width, x + i * block->planes.width, width);
                    }
                }
            }
        }
    }
}

/* The same as panels of columns, for the tiles of a product. Each row of a panel is written whole before the next. */
static void RLXK_FN(unfold_panels)(float *to, const float *bordered, const conv_source *s, const conv_block *block,
                                   int64_t channels) {
    const int64_t width = s->axis[1].out, depth = channels * conv_taps(s);
    for (int64_t n = 0; n < block->strips; n++) {
        const conv_strip *strip = &block->strip[n];
        int64_t row = 0;
        for (int64_t channel = 0; channel < channels; channel++) {
            const float *plane = bordered + strip->planes + channel * block->planes.channel;
            for (int64_t p = 0; p < s->axis[0].taps; p++) {
                for (int64_t q = 0; q < s->axis[1].taps; q++, row++) {
                    const float *x = plane + conv_tap_start(s, &block->planes, p, q);
                    int64_t lane = strip->column % PANEL;
                    float *line = to + strip->column / PANEL * PANEL * depth + row * PANEL;
                    for (int64_t i = 0; i < strip->rows; i++, x += block->planes.width) {
                        for (int64_t j = 0; j < width;) {
                            const int64_t n = conv_min(width - j, PANEL - lane);
                            RLXK_FN(copy)(line + lane, x + j, n);
                            j += n;
                            lane += n;
                            if (lane == PANEL) {
                                lane = 0;
                                line += PANEL * depth;
                            }
                        }
                    }
                }
            }
        }
    }
}
