/* conv_unfold_body.h - makes a block of the unfolded matrix (a body, after vec_body.h). */

/* to[0 ..< n] = from; whole vectors, so that up to RLXK_LANES - 1 floats behind are read and overwritten. */
INLINE void RLXK_FN(copy_loosely)(float *to, const float *from, int64_t n) {
    for (int64_t j = 0; j < n; j += RLXK_LANES) RLXK_FN(store)(to + j, RLXK_FN(load)(from + j));
}

/* Rows [first, first + height) of a plane with its border, a row being `width` floats. */
static void RLXK_FN(border)(float *to, int64_t first, int64_t height, int64_t width, const float *plane,
                            const conv_axis axis[2]) {
    const int64_t left = conv_min(conv_max(axis[1].pad, 0), width), from = conv_max(-axis[1].pad, 0);
    const int64_t inside = conv_max(conv_min(axis[1].in - from, width - left), 0);
    const int64_t whole = inside / RLXK_LANES * RLXK_LANES;
    for (int64_t i = 0; i < height; i++, to += width) {
        const int64_t row = first + i - axis[0].pad;
        const bool outside = row < 0 || row >= axis[0].in;
        if (outside || inside < width) {
            for (int64_t j = 0; j < width; j += RLXK_LANES) RLXK_FN(store)(to + j, 0);
        }
        if (outside || inside == 0) continue;
        const float *x = plane + row * axis[1].in + from;
        for (int64_t j = 0; j < whole; j += RLXK_LANES) RLXK_FN(store)(to + left + j, RLXK_FN(load)(x + j));
        if (whole < inside) {
            const int32_t rest = (int32_t)(inside - whole);
            RLXK_FN(store_first)(to + left + whole, RLXK_FN(load_first)(x + whole, rest), rest);
        }
    }
}

/* The matrix rows of one channel, for one strip. */
static void RLXK_FN(unfold_channel)(float *to, int64_t pitch, const float *bordered, int64_t bordered_width,
                                    int64_t rows, const conv_axis axis[2]) {
    const int64_t n = axis[1].out, stride = axis[1].stride, next_row = axis[0].stride * bordered_width;
    for (int64_t p = 0; p < axis[0].taps; p++) {
        for (int64_t q = 0; q < axis[1].taps; q++, to += pitch) {
            const float *x = bordered + p * axis[0].dilation * bordered_width + q * axis[1].dilation;
            float *pixel = to;
            for (int64_t i = 0; i < rows; i++, pixel += n, x += next_row) {
                if (stride == 1) {
                    RLXK_FN(copy_loosely)(pixel, x, n);
                } else if (stride == 2) {
                    for (int64_t j = 0; j < n; j++) pixel[j] = x[2 * j];
                } else {
                    for (int64_t j = 0; j < n; j++) pixel[j] = x[stride * j];
                }
            }
        }
    }
}

/* Channels [begin, end) of a block. A row's loose end falls on the next row's first pixels before they are written, or
 * into the slack of the pitch. */
static void RLXK_FN(unfold)(float *to, float *bordered, const conv_source *s, const conv_block *block, int64_t begin,
                            int64_t end) {
    const int64_t width = conv_bordered_width(s), taps = conv_taps(s);
    for (int64_t n = 0; n < block->strips; n++) {
        const conv_strip *strip = &block->strip[n];
        const int64_t height = conv_bordered_height(s, strip->rows);
        const float *image = s->base + strip->image * s->image;
        for (int64_t channel = begin; channel < end; channel++) {
            RLXK_FN(border)(bordered, strip->row * s->axis[0].stride, height, width, image + channel * s->plane, s->axis);
            RLXK_FN(unfold_channel)(to + (channel - begin) * taps * block->pitch + strip->column, block->pitch, bordered,
                                    width, strip->rows, s->axis);
        }
    }
}
