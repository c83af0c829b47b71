/* conv_lone_body.h - sweeps whose groups are one channel that makes one (depthwise convolutions): no product, each pixel
 * is a sum over the taps, columns side by side in a vector (a body, after conv_unfold_body.h). */

/* A worker's room, and how a block of rows lies there. */
#define LONE RLXK_FN(lone)
typedef struct LONE {
    const conv_sweep *s;
    int64_t groups;
    int64_t *starts; /* of the taps, from a pixel on */
    float *weights;
    const float *planes;
    int64_t stride_of_3x3; /* or 0 */
    int64_t rows;
    conv_planes at;
} LONE;

/* Sums of columns j ... of `rows` output rows, to their pixels. */
INLINE void RLXK_FN(lone_finish)(const conv_sweep *s, VEC *sum, float bias, float *c, int64_t j, int rows) {
    const int64_t width = s->source.axis[1].out, c_row = s->c_step[0] * s->c_width;
    const int32_t n = (int32_t)conv_min(width - j, RLXK_LANES);
    const VEC zero = 0;
    UNROLL for (int i = 0; i < rows; i++) {
        if (s->bias) sum[i] += bias;
        if (s->relu) sum[i] = zero > sum[i] ? zero : sum[i]; /* NaN is not below zero */
        if (s->clip) sum[i] = RLXK_FN(clip)(sum[i], s->clip);
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

/* `rows` output rows from the bordered planes. The order of a sum is that of a tile. What lies behind a row is read, but
 * not stored. */
INLINE void RLXK_FN(lone_rows)(const LONE *l, const float *x, float bias, float *c, int rows) {
    const conv_source *source = &l->s->source;
    const int64_t taps = conv_taps(source), width = source->axis[1].out, x_row = l->at.width;
    for (int64_t j = 0; j < width; j += RLXK_LANES) {
        VEC sum[LONE_ROWS];
        UNROLL for (int i = 0; i < rows; i++) sum[i] = 0;
        for (int64_t t = 0; t < taps; t++) {
            const float *from = x + l->starts[t] + j;
            const VEC weight = l->weights[t];
            UNROLL for (int i = 0; i < rows; i++) sum[i] += RLXK_FN(load)(from + i * x_row) * weight;
        }
        RLXK_FN(lone_finish)(l->s, sum, bias, c, j, rows);
    }
}

/* The same for 3 x 3 taps side by side: each input row is loaded once for all output rows that it meets. */
INLINE void RLXK_FN(lone_rows_3x3)(const LONE *l, const float *x, float bias, float *c, int rows, int stride) {
    const int64_t width = l->s->source.axis[1].out, x_row = l->at.width, phase = l->at.phase;
    for (int64_t j = 0; j < width; j += RLXK_LANES) {
        VEC sum[LONE_ROWS];
        UNROLL for (int i = 0; i < rows; i++) sum[i] = 0;
        UNROLL for (int row = 0; row < (rows - 1) * stride + 3; row++) {
            UNROLL for (int q = 0; q < 3; q++) {
                const int64_t plane = row % stride * stride + q % stride;
                VEC from = RLXK_FN(load)(x + plane * phase + row / stride * x_row + q / stride + j);
                UNROLL for (int p = 0; p < 3; p++) {
                    if (row < p || (row - p) % stride || (row - p) / stride >= rows) continue;
                    sum[(row - p) / stride] += from * l->weights[3 * p + q];
                }
            }
        }
        RLXK_FN(lone_finish)(l->s, sum, bias, c, j, rows);
    }
}

static void RLXK_FN(lone_some)(const LONE *l, const float *x, float bias, float *c, int64_t rows) {
    const int64_t stride = l->stride_of_3x3;
    if (rows == LONE_ROWS && stride == 1) return RLXK_FN(lone_rows_3x3)(l, x, bias, c, LONE_ROWS, 1);
    if (rows == LONE_ROWS && stride == 2) return RLXK_FN(lone_rows_3x3)(l, x, bias, c, LONE_ROWS, 2);
    if (rows == 7 && stride == 1) return RLXK_FN(lone_rows_3x3)(l, x, bias, c, 7, 1);
    if (rows == 7 && stride == 2) return RLXK_FN(lone_rows_3x3)(l, x, bias, c, 7, 2);
    switch (rows) {
    case 1: return RLXK_FN(lone_rows)(l, x, bias, c, 1);
    case 2: return RLXK_FN(lone_rows)(l, x, bias, c, 2);
    case 3: return RLXK_FN(lone_rows)(l, x, bias, c, 3);
    case 4: return RLXK_FN(lone_rows)(l, x, bias, c, 4);
    case 5: return RLXK_FN(lone_rows)(l, x, bias, c, 5);
    case 6: return RLXK_FN(lone_rows)(l, x, bias, c, 6);
    case 7: return RLXK_FN(lone_rows)(l, x, bias, c, 7);
    default: return RLXK_FN(lone_rows)(l, x, bias, c, LONE_ROWS);
    }
}

static void RLXK_FN(lone_block)(const LONE *l, float bias, float *c) {
    for (int64_t i = 0; i < l->rows; i += LONE_ROWS) {
        /* The last rows are taken with some of those before, which get the same values again. */
        const int64_t row = conv_max(conv_min(i, l->rows - LONE_ROWS), 0);
        RLXK_FN(lone_some)(l, l->planes + row * l->at.width, bias, c + row * l->s->c_step[0] * l->s->c_width,
                           conv_min(l->rows, LONE_ROWS));
    }
}

/* The stride of both axes of 3 x 3 taps side by side, if it is 1 or 2; else 0. */
static int64_t RLXK_FN(lone_stride)(const conv_axis axis[2]) {
    for (int i = 0; i < 2; i++) {
        if (axis[i].taps != 3 || axis[i].dilation != 1 || axis[i].stride > 2 || axis[i].stride != axis[0].stride) return 0;
    }
    return axis[0].stride;
}

/* Where the taps meet a block of so many rows. */
static void RLXK_FN(lone_lay_out)(LONE *l, int64_t rows) {
    const conv_source *source = &l->s->source;
    l->rows = rows;
    l->at = conv_planes_of(source, rows);
    for (int64_t p = 0; p < source->axis[0].taps; p++) {
        for (int64_t q = 0; q < source->axis[1].taps; q++) {
            l->starts[p * source->axis[1].taps + q] = conv_tap_start(source, &l->at, p, q);
        }
    }
}

/* One group of one image; its planes are bordered already. */
static void RLXK_FN(lone_sums)(const LONE *l, int64_t unit, int64_t row) {
    const conv_sweep *s = l->s;
    const conv_axis *axis = s->source.axis;
    const int64_t group = unit % l->groups, image = unit / l->groups;
    const float *w = s->a + s->a_start + group * s->a_row;
    for (int64_t p = 0; p < axis[0].taps; p++) {
        for (int64_t q = 0; q < axis[1].taps; q++) {
            l->weights[p * axis[1].taps + q] = w[p * s->a_tap[0] + q * s->a_tap[1]];
        }
    }
    RLXK_FN(lone_block)(l, s->bias ? s->bias[group] : 0,
                        s->c + s->c_start + group * s->c_row + image * s->c_image + row * s->c_step[0] * s->c_width);
}

/* A worker's share of all groups and images of a sweep over the first group. */
static void RLXK_FN(lone_sweep)(const conv_sweep *s, int64_t groups, float *workspace, int32_t worker, int32_t workers) {
    const conv_room room = conv_lone_room(&s->source);
    const conv_axis *axis = s->source.axis;
    float *planes = workspace + room.planes;
    LONE l = { .s = s, .groups = groups, .starts = (int64_t *)(void *)(workspace + room.runs) };
    l.stride_of_3x3 = RLXK_FN(lone_stride)(axis);
    l.weights = (float *)(l.starts + conv_taps(&s->source));
    const bool whole = room.most_rows == axis[0].out;
    bool is_cleared = false; /* by the units before */
    int64_t unit, end, count;
    rlxk_share(groups * s->batch, worker, workers, &unit, &end);
    for (; unit < end; unit += count) {
        count = whole ? conv_min(end - unit, LONE_UNITS) : 1;
        for (int64_t row = 0; row < axis[0].out; row += room.most_rows) {
            const int64_t rows = conv_min(room.most_rows, axis[0].out - row);
            if (l.rows != rows) RLXK_FN(lone_lay_out)(&l, rows);
            for (int64_t n = 0; n < count; n++) {
                const float *x = s->source.base + (unit + n) % groups * s->source.plane + (unit + n) / groups * s->source.image;
                RLXK_FN(border)(planes + n * room.unit, &l.at, x, row, axis, is_cleared);
            }
            for (int64_t n = 0; n < count; n++) {
                l.planes = planes + n * room.unit;
                RLXK_FN(lone_sums)(&l, unit + n, row);
            }
        }
        is_cleared = whole && count == LONE_UNITS;
    }
}
