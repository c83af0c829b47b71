/* conv_lone_body.h - sweeps whose groups are one channel that makes one (depthwise convolutions): no product, each pixel
 * is a sum over the taps, columns side by side in a vector (a body, after conv_unfold_body.h). */

/* `rows` output rows of a strip, from its bordered planes. The order of a sum is that of a tile. */
INLINE void RLXK_FN(lone_rows)(const conv_sweep *s, const float *x, int64_t x_row, const int64_t *starts,
                               const float *weights, float bias, float *c, int rows) {
    const int64_t taps = conv_taps(&s->source), width = s->source.axis[1].out, c_row = s->c_step[0] * s->c_width;
    for (int64_t j = 0; j < width; j += RLXK_LANES) {
        VEC sum[LONE_ROWS];
        UNROLL for (int i = 0; i < rows; i++) sum[i] = 0;
        for (int64_t t = 0; t < taps; t++) {
            const float *from = x + starts[t] + j; /* what lies behind a row is read, but not stored */
            const VEC weight = weights[t];
            UNROLL for (int i = 0; i < rows; i++) sum[i] += RLXK_FN(load)(from + i * x_row) * weight;
        }
        const int32_t n = (int32_t)conv_min(width - j, RLXK_LANES);
        UNROLL for (int i = 0; i < rows; i++) {
            const VEC zero = 0;
            if (s->bias) sum[i] += bias;
            if (s->relu) sum[i] = zero > sum[i] ? zero : sum[i]; /* NaN is not below zero */
            float *to = c + i * c_row + j * s->c_step[1];
            if (s->c_step[1] == 1) {
                if (n == RLXK_LANES) RLXK_FN(store)(to, sum[i]);
                else RLXK_FN(store_first)(to, sum[i], n);
            } else {
                float pixels[RLXK_LANES];
                RLXK_FN(store)(pixels, sum[i]);
                for (int32_t k = 0; k < n; k++) to[k * s->c_step[1]] = pixels[k];
            }
        }
    }
}

/* One image of a sweep of one channel and one row. */
static void RLXK_FN(lone_image)(const conv_sweep *s, const conv_room *room, float *workspace, int64_t image) {
    const conv_source *source = &s->source;
    const conv_axis *axis = source->axis;
    int64_t *starts = (int64_t *)(void *)(workspace + room->runs);
    float *weights = (float *)(starts + conv_max(conv_taps(source), 1)), *planes = workspace + room->planes;
    const float *w = s->a + s->a_start, bias = s->bias ? s->bias[0] : 0;
    for (int64_t row = 0; row < axis[0].out; row += room->most_rows) {
        const int64_t end = conv_min(row + room->most_rows, axis[0].out);
        const conv_planes at = conv_planes_of(source, end - row);
        RLXK_FN(border)(planes, &at, source->base + image * source->image, row, axis);
        for (int64_t p = 0; p < axis[0].taps; p++) {
            for (int64_t q = 0; q < axis[1].taps; q++) {
                starts[p * axis[1].taps + q] = conv_tap_start(source, &at, p, q);
                weights[p * axis[1].taps + q] = w[p * s->a_tap[0] + q * s->a_tap[1]];
            }
        }
        for (int64_t i = row, rows; i < end; i += rows) {
            const float *x = planes + (i - row) * at.width;
            float *c = s->c + s->c_start + image * s->c_image + i * s->c_step[0] * s->c_width;
            rows = end - i >= LONE_ROWS ? LONE_ROWS : end - i >= 4 ? 4 : 1;
            if (rows == LONE_ROWS) RLXK_FN(lone_rows)(s, x, at.width, starts, weights, bias, c, LONE_ROWS);
            else if (rows == 4) RLXK_FN(lone_rows)(s, x, at.width, starts, weights, bias, c, 4);
            else RLXK_FN(lone_rows)(s, x, at.width, starts, weights, bias, c, 1);
        }
    }
}
