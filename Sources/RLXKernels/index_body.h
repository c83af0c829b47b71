/* index_body.h - the kernels of index.c for one instruction set. */

/* out[k] = x[index[k] * step + k * shift], for elements of a known size */
#define PICK(NAME, TYPE)                                                                                          \
    static void RLXK_FN(NAME)(                                                                                    \
        TYPE *restrict out, const TYPE *restrict x, const int32_t *restrict index, int64_t n, int64_t size,       \
        int64_t step, int64_t shift) {                                                                            \
        for (int64_t k = 0; k < n; k++) out[k] = x[nearest(index[k], size) * step + k * shift];                   \
    }
PICK(pick_8, uint8_t)
PICK(pick_16, uint16_t)
PICK(pick_32, uint32_t)

static void RLXK_FN(pick)(
    char *out, const char *x, const int32_t *index, int64_t n, int64_t size, int64_t step, int64_t shift, int64_t bytes) {
    if (bytes == 4) {
        RLXK_FN(pick_32)((uint32_t *)(void *)out, (const uint32_t *)(const void *)x, index, n, size, step, shift);
    } else if (bytes == 2) {
        RLXK_FN(pick_16)((uint16_t *)(void *)out, (const uint16_t *)(const void *)x, index, n, size, step, shift);
    } else {
        RLXK_FN(pick_8)((uint8_t *)out, (const uint8_t *)x, index, n, size, step, shift);
    }
}

static void RLXK_FN(gather)(const void *arguments, int32_t worker, int32_t workers) {
    const rlxk_gather *g = arguments;
    int64_t task, end;
    rlxk_share(g->batches * g->outer * g->count, worker, workers, &task, &end);
    while (task < end) {
        const int64_t outer = task / g->count, k = task % g->count;
        const int64_t n = g->count - k < end - task ? g->count - k : end - task;
        const int32_t *index = g->index + outer / g->outer * g->count + k;
        const char *x = (const char *)g->x + outer * g->size * g->bytes;
        char *out = (char *)g->out + task * g->bytes;
        if (g->bytes == 1 || g->bytes == 2 || g->bytes == 4) {
            RLXK_FN(pick)(out, x, index, n, g->size, 1, 0, g->bytes);
        } else {
            for (int64_t i = 0; i < n; i++) {
                memcpy(out + i * g->bytes, x + nearest(index[i], g->size) * g->bytes, (size_t)g->bytes);
            }
        }
        task += n;
    }
}

static void RLXK_FN(gather_along)(const void *arguments, int32_t worker, int32_t workers) {
    const rlxk_gather_along *g = arguments;
    int64_t row, end;
    rlxk_share(g->outer * g->count, worker, workers, &row, &end);
    while (row < end) {
        const int64_t outer = row / g->count, left = g->count - row % g->count;
        const char *x = (const char *)g->x + outer * g->size * g->inner * g->bytes;
        char *out = (char *)g->out + row * g->inner * g->bytes;
        const int64_t rows = g->inner > 1 ? 1 : left < end - row ? left : end - row;
        const int64_t n = rows * g->inner, step = g->inner;
        RLXK_FN(pick)(out, x, g->index + row * g->inner, n, g->size, step, g->inner > 1, g->bytes);
        row += rows;
    }
}

static void RLXK_FN(index_check)(const void *arguments, int32_t worker, int32_t workers) {
    const rlxk_index_check *c = arguments;
    (void)workers;
    if (worker != 0) return;
    *c->failure = 0;
    for (int64_t i = 0; i < c->count; i++) {
        if (exact(c->index[i], c->size) >= 0) continue;
        *c->failure = (int32_t)(i < INT32_MAX ? i + 1 : INT32_MAX);
        return;
    }
}

static void RLXK_FN(window_move)(const void *arguments, int32_t worker, int32_t workers) {
    const rlxk_window_move *m = arguments;
    const rlxk_window_place *p = &m->place;
    int64_t start[RLXK_DIMS];
    for (int32_t a = 0; a < p->rank; a++) {
        const bool first = p->from_start >> a & 1;
        start[a] = first ? 0 : clamped(from_front(p->begin[a], p->size[a]), 0, p->size[a] - p->count[a]);
    }
    /* The last axes stand together, up to one of which only a part is taken. */
    int32_t outer = p->rank;
    int64_t unit = m->bytes, block = m->bytes, offset = 0;
    while (outer > 0) {
        outer--;
        offset = start[outer] * unit;
        block = p->count[outer] * unit;
        unit *= p->size[outer];
        if (p->count[outer] != p->size[outer]) break;
    }
    int64_t rows = 1, begin, end;
    for (int32_t a = 0; a < outer; a++) rows *= p->count[a];
    rlxk_share(rows, worker, workers, &begin, &end);
    for (int64_t row = begin; row < end; row++) {
        int64_t rest = row, at = 0, stride = 1;
        for (int32_t a = outer - 1; a >= 0; a--) {
            at += (rest % p->count[a] + start[a]) * stride;
            rest /= p->count[a];
            stride *= p->size[a];
        }
        char *whole = (char *)m->whole + at * unit + offset, *part = (char *)m->part + row * block;
        memcpy(m->is_update ? whole : part, m->is_update ? part : whole, (size_t)block);
    }
}

static void RLXK_FN(window_check)(const void *arguments, int32_t worker, int32_t workers) {
    const rlxk_window_check *c = arguments;
    const rlxk_window_place *p = &c->place;
    (void)workers;
    if (worker != 0) return;
    *c->failure = 0;
    for (int32_t a = 0; a < p->rank && !*c->failure; a++) {
        const int64_t size = p->size[a];
        int64_t start = p->from_start >> a & 1 ? 0 : from_front(p->begin[a], size);
        bool fits;
        if (!c->end || c->lone >> a & 1) {
            fits = start >= 0 && start <= size - p->count[a];
        } else {
            const int64_t stop = c->to_end >> a & 1 ? size : clamped(from_front(c->end[a], size), 0, size);
            start = clamped(start, 0, size);
            fits = stop - start == p->count[a];
        }
        if (!fits) *c->failure = a + 1;
    }
}

/* x is the old element, y the update. */
/* A run lies together; points lie where their indices say, and those of other rows than low ..< high go to `aside`
 * rather than around a branch that nothing foretells. */
#define SCATTER(NAME, TYPE, EXPRESSION)                                                                       \
    static void RLXK_FN(run_##NAME)(void *out, const void *updates, int64_t n) {                              \
        TYPE *xs = out;                                                                                       \
        const TYPE *ys = updates;                                                                             \
        for (int64_t i = 0; i < n; i++) {                                                                     \
            const TYPE x = xs[i], y = ys[i];                                                                  \
            (void)x;                                                                                          \
            xs[i] = EXPRESSION;                                                                               \
        }                                                                                                     \
    }                                                                                                         \
    static void RLXK_FN(points_##NAME)(const rlxk_scatter *s, int64_t to, int64_t from, points p) {           \
        TYPE *out = (TYPE *)s->out + to, aside[1] = { 0 };                                                    \
        const TYPE *updates = (const TYPE *)s->updates + from;                                                \
        for (int64_t k = 0; k < p.count; k++, updates += s->inner, p.index += p.index_step) {                 \
            for (int64_t i = 0; i < p.width; i++) {                                                           \
                const int64_t n = exact(p.index[i], s->size);                                                 \
                TYPE *at = ((n >= p.low) & (n < p.high)) ? out + n * s->inner + i : aside;                      \
                const TYPE x = *at, y = updates[i];                                                           \
                (void)x;                                                                                      \
                *at = EXPRESSION;                                                                             \
            }                                                                                                 \
        }                                                                                                     \
    }
SCATTER(update_f32, float, y)
SCATTER(add_f32, float, x + y)
SCATTER(sub_f32, float, x - y)
SCATTER(mul_f32, float, x * y)
SCATTER(div_f32, float, x / y)
SCATTER(max_f32, float, rlxk_max(x, y))
SCATTER(min_f32, float, rlxk_min(x, y))
SCATTER(update_i32, int32_t, y)
SCATTER(add_i32, int32_t, (int32_t)((uint32_t)x + (uint32_t)y))
SCATTER(sub_i32, int32_t, (int32_t)((uint32_t)x - (uint32_t)y))
SCATTER(mul_i32, int32_t, (int32_t)((uint32_t)x * (uint32_t)y))
SCATTER(div_i32, int32_t, rlxk_int_div(x, y))
SCATTER(max_i32, int32_t, x > y ? x : y)
SCATTER(min_i32, int32_t, x < y ? x : y)

#define SCATTERS(MODE, NAME)                                                            \
    [RLXK_SCATTER_##MODE] = {                                                           \
        { RLXK_FN(run_##NAME##_i32), RLXK_FN(points_##NAME##_i32) },                    \
        { RLXK_FN(run_##NAME##_f32), RLXK_FN(points_##NAME##_f32) },                    \
    }
static const scatter_functions RLXK_FN(scatters)[][2] = {
    SCATTERS(UPDATE, update), SCATTERS(ADD, add), SCATTERS(SUB, sub), SCATTERS(MUL, mul),
    SCATTERS(DIV, div),       SCATTERS(MAX, max), SCATTERS(MIN, min),
};

/* A worker owns rows (o, n) of the output and looks for its own among all indices. */
static void RLXK_FN(scatter_rows)(const rlxk_scatter *s, scatter_functions f, int32_t worker, int32_t workers) {
    int64_t begin, end;
    rlxk_share(s->outer * s->size, worker, workers, &begin, &end);
    if (begin == end) return;
    for (int64_t outer = begin / s->size; outer <= (end - 1) / s->size; outer++) {
        const int64_t first = outer * s->size, from = outer * s->count * s->inner;
        const int64_t low = begin > first ? begin - first : 0, high = end - first < s->size ? end - first : s->size;
        if (s->inner == 1) {
            const int32_t *index = s->along ? s->index + from : s->index;
            f.points(s, first, from, (points){ index, 1, s->count, 1, low, high });
            continue;
        }
        for (int64_t k = 0; k < s->count; k++) {
            const int64_t n = exact(s->index[k], s->size);
            if (n < low || n >= high) continue;
            f.run((uint32_t *)s->out + (first + n) * s->inner, (const uint32_t *)s->updates + from + k * s->inner, s->inner);
        }
    }
}

/* A worker owns columns (o, i). */
static void RLXK_FN(scatter_columns)(const rlxk_scatter *s, scatter_functions f, int32_t worker, int32_t workers) {
    int64_t column, end;
    rlxk_share(s->outer * s->inner, worker, workers, &column, &end);
    while (column < end) {
        const int64_t outer = column / s->inner, i = column % s->inner;
        const int64_t width = s->inner - i < end - column ? s->inner - i : end - column;
        const int64_t from = outer * s->count * s->inner + i;
        const points p = { s->index + from, s->inner, s->count, width, 0, s->size };
        f.points(s, outer * s->size * s->inner + i, from, p);
        column += width;
    }
}

static void RLXK_FN(scatter)(const void *arguments, int32_t worker, int32_t workers) {
    const rlxk_scatter *s = arguments;
    const scatter_functions f = RLXK_FN(scatters)[s->mode][s->is_float != 0];
    if (s->along && s->inner > 1) RLXK_FN(scatter_columns)(s, f, worker, workers);
    else RLXK_FN(scatter_rows)(s, f, worker, workers);
}

/* MARK: Arg */

enum { RLXK_FN(ARG_BLOCK) = 256 };

/* The first n at which the key of x[n] is largest: block by block first, then in the best of the blocks. */
#define ARG(NAME, TYPE, KEY)                                                                                  \
    static int32_t RLXK_FN(row_##NAME)(const TYPE *x, int64_t size, bool smallest) {                          \
        int32_t best = KEY(x[0], smallest);                                                                   \
        int64_t block = 0;                                                                                    \
        for (int64_t at = 0; at < size; at += RLXK_FN(ARG_BLOCK)) {                                           \
            const int64_t n = size - at < RLXK_FN(ARG_BLOCK) ? size - at : RLXK_FN(ARG_BLOCK);                \
            int32_t top = INT32_MIN;                                                                          \
            for (int64_t i = 0; i < n; i++) {                                                                 \
                const int32_t key = KEY(x[at + i], smallest);                                                 \
                top = key > top ? key : top;                                                                  \
            }                                                                                                 \
            block = top > best ? at : block;                                                                  \
            best = top > best ? top : best;                                                                   \
        }                                                                                                     \
        const int64_t n = size - block < RLXK_FN(ARG_BLOCK) ? size - block : RLXK_FN(ARG_BLOCK);              \
        int32_t first = RLXK_FN(ARG_BLOCK);                                                                   \
        for (int32_t i = 0; i < (int32_t)n; i++) {                                                            \
            const int32_t at = KEY(x[block + i], smallest) == best ? i : RLXK_FN(ARG_BLOCK);                  \
            first = at < first ? at : first;                                                                  \
        }                                                                                                     \
        return (int32_t)block + first;                                                                        \
    }                                                                                                         \
    static void RLXK_FN(columns_##NAME)(                                                                      \
        const TYPE *x, int32_t *restrict index, int64_t size, int64_t inner, int64_t width, bool smallest) {  \
        int32_t best[RLXK_FN(ARG_BLOCK)];                                                                     \
        for (int64_t i = 0; i < width; i++) {                                                                 \
            best[i] = KEY(x[i], smallest);                                                                    \
            index[i] = 0;                                                                                     \
        }                                                                                                     \
        for (int64_t n = 1; n < size; n++) {                                                                  \
            const TYPE *restrict row = x + n * inner;                                                         \
            for (int64_t i = 0; i < width; i++) {                                                             \
                const int32_t key = KEY(row[i], smallest), better = key > best[i];                            \
                best[i] = better ? key : best[i];                                                             \
                index[i] = better ? (int32_t)n : index[i];                                                    \
            }                                                                                                 \
        }                                                                                                     \
    }
ARG(f32, float, float_rank)
ARG(i32, int32_t, int_rank)

static void RLXK_FN(arg)(const void *arguments, int32_t worker, int32_t workers) {
    const rlxk_arg *a = arguments;
    int64_t task, end;
    rlxk_share(a->outer * a->inner, worker, workers, &task, &end);
    while (task < end) {
        const int64_t left = a->inner - task % a->inner, rest = left < end - task ? left : end - task;
        const int64_t width = rest < RLXK_FN(ARG_BLOCK) ? rest : RLXK_FN(ARG_BLOCK);
        const int64_t from = task / a->inner * a->size * a->inner + task % a->inner;
        const float *f = (const float *)a->x + from;
        const int32_t *i = (const int32_t *)a->x + from;
        int32_t *index = a->index + task;
        if (a->inner == 1) {
            *index = a->is_float ? RLXK_FN(row_f32)(f, a->size, a->smallest) : RLXK_FN(row_i32)(i, a->size, a->smallest);
        } else if (a->is_float) {
            RLXK_FN(columns_f32)(f, index, a->size, a->inner, width, a->smallest);
        } else {
            RLXK_FN(columns_i32)(i, index, a->size, a->inner, width, a->smallest);
        }
        task += a->inner == 1 ? 1 : width;
    }
}

#define CUMSUM(TYPE, WIDE)                                                       \
    for (int64_t task = begin; task < end; task++) {                             \
        const int64_t from = task / c->inner * c->size * c->inner + task % c->inner; \
        const TYPE *x = (const TYPE *)c->x + from;                               \
        TYPE *out = (TYPE *)c->out + from;                                       \
        WIDE sum = 0;                                                            \
        for (int64_t n = 0; n < c->size; n++) {                                  \
            const int64_t i = (c->reverse ? c->size - 1 - n : n) * c->inner;     \
            const WIDE v = (WIDE)x[i];                                           \
            if (c->exclusive) out[i] = (TYPE)sum;                                \
            sum += v;                                                            \
            if (!c->exclusive) out[i] = (TYPE)sum;                               \
        }                                                                        \
    }

static void RLXK_FN(cumsum)(const void *arguments, int32_t worker, int32_t workers) {
    const rlxk_cumsum *c = arguments;
    int64_t begin, end;
    rlxk_share(c->outer * c->inner, worker, workers, &begin, &end);
    if (c->is_float) {
        CUMSUM(float, float)
    } else {
        CUMSUM(int32_t, uint32_t)
    }
}

static void RLXK_FN(sort)(const void *arguments, int32_t worker, int32_t workers) {
    const rlxk_sort *s = arguments;
    int64_t begin, end;
    rlxk_share(s->outer * s->inner, worker, workers, &begin, &end);
    uint64_t *keys = (uint64_t *)(void *)(s->scratch + worker * s->scratch_stride);
    for (int64_t task = begin; task < end; task++) {
        const int64_t outer = task / s->inner, i = task % s->inner;
        const int64_t from = outer * s->size * s->inner + i;
        for (int64_t n = 0; n < s->size; n++) {
            const uint32_t u = s->is_float ? float_key(((const float *)s->x)[from + n * s->inner])
                                           : int_key(((const int32_t *)s->x)[from + n * s->inner]);
            keys[n] = (uint64_t)(s->descending ? ~u : u) << 32 | (uint32_t)n;
        }
        sort_keys(keys, keys + s->size, s->size);
        for (int64_t k = 0; k < s->k; k++) {
            const int64_t to = (outer * s->k + k) * s->inner + i;
            const uint32_t n = (uint32_t)keys[k];
            if (s->index) s->index[to] = (int32_t)n;
            if (s->values) ((uint32_t *)s->values)[to] = ((const uint32_t *)s->x)[from + n * s->inner];
        }
    }
}

#undef PICK
#undef SCATTER
#undef SCATTERS
#undef ARG
#undef CUMSUM
