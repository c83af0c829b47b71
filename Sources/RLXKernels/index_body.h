/* index_body.h - the kernels of index.c for one instruction set. */

static void RLXK_FN(gather)(const void *arguments, int32_t worker, int32_t workers) {
    const rlxk_gather *g = arguments;
    int64_t begin, end;
    rlxk_share(g->batches * g->outer * g->count, worker, workers, &begin, &end);
    for (int64_t task = begin; task < end; task++) {
        const int64_t k = task % g->count, outer = task / g->count, batch = outer / g->outer;
        const int64_t from = outer * g->size + nearest(g->index[batch * g->count + k], g->size);
        memcpy((char *)g->out + task * g->bytes, (const char *)g->x + from * g->bytes, (size_t)g->bytes);
    }
}

#define GATHER_ALONG(TYPE)                                                                   \
    for (int64_t row = begin; row < end; row++) {                                            \
        const int32_t *index = g->index + row * g->inner;                                    \
        const TYPE *x = (const TYPE *)g->x + row / g->count * g->size * g->inner;            \
        TYPE *out = (TYPE *)g->out + row * g->inner;                                         \
        for (int64_t i = 0; i < g->inner; i++) out[i] = x[nearest(index[i], g->size) * g->inner + i]; \
    }

static void RLXK_FN(gather_along)(const void *arguments, int32_t worker, int32_t workers) {
    const rlxk_gather_along *g = arguments;
    int64_t begin, end;
    rlxk_share(g->outer * g->count, worker, workers, &begin, &end);
    if (g->bytes == 4) {
        GATHER_ALONG(uint32_t)
    } else if (g->bytes == 2) {
        GATHER_ALONG(uint16_t)
    } else {
        GATHER_ALONG(uint8_t)
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
#define SCATTER_RUN(NAME, TYPE, EXPRESSION)                                            \
    static void RLXK_FN(NAME)(TYPE *out, const TYPE *updates, int64_t n) {             \
        for (int64_t i = 0; i < n; i++) {                                              \
            const TYPE x = out[i], y = updates[i];                                     \
            (void)x;                                                                   \
            out[i] = EXPRESSION;                                                       \
        }                                                                              \
    }
SCATTER_RUN(update_f32, float, y)
SCATTER_RUN(add_f32, float, x + y)
SCATTER_RUN(sub_f32, float, x - y)
SCATTER_RUN(mul_f32, float, x * y)
SCATTER_RUN(div_f32, float, x / y)
SCATTER_RUN(max_f32, float, rlxk_max(x, y))
SCATTER_RUN(min_f32, float, rlxk_min(x, y))
SCATTER_RUN(update_i32, int32_t, y)
SCATTER_RUN(add_i32, int32_t, (int32_t)((uint32_t)x + (uint32_t)y))
SCATTER_RUN(sub_i32, int32_t, (int32_t)((uint32_t)x - (uint32_t)y))
SCATTER_RUN(mul_i32, int32_t, (int32_t)((uint32_t)x * (uint32_t)y))
SCATTER_RUN(div_i32, int32_t, rlxk_int_div(x, y))
SCATTER_RUN(max_i32, int32_t, x > y ? x : y)
SCATTER_RUN(min_i32, int32_t, x < y ? x : y)

static void RLXK_FN(scatter_run)(const rlxk_scatter *s, int64_t to, int64_t from, int64_t n) {
    float *f = (float *)s->out + to;
    const float *g = (const float *)s->updates + from;
    int32_t *i = (int32_t *)s->out + to;
    const int32_t *j = (const int32_t *)s->updates + from;
    switch (s->mode) {
    case RLXK_SCATTER_UPDATE: s->is_float ? RLXK_FN(update_f32)(f, g, n) : RLXK_FN(update_i32)(i, j, n); break;
    case RLXK_SCATTER_ADD: s->is_float ? RLXK_FN(add_f32)(f, g, n) : RLXK_FN(add_i32)(i, j, n); break;
    case RLXK_SCATTER_SUB: s->is_float ? RLXK_FN(sub_f32)(f, g, n) : RLXK_FN(sub_i32)(i, j, n); break;
    case RLXK_SCATTER_MUL: s->is_float ? RLXK_FN(mul_f32)(f, g, n) : RLXK_FN(mul_i32)(i, j, n); break;
    case RLXK_SCATTER_DIV: s->is_float ? RLXK_FN(div_f32)(f, g, n) : RLXK_FN(div_i32)(i, j, n); break;
    case RLXK_SCATTER_MAX: s->is_float ? RLXK_FN(max_f32)(f, g, n) : RLXK_FN(max_i32)(i, j, n); break;
    case RLXK_SCATTER_MIN: s->is_float ? RLXK_FN(min_f32)(f, g, n) : RLXK_FN(min_i32)(i, j, n); break;
    }
}

/* A worker owns rows (o, n) of the output and looks for its own among all indices. */
static void RLXK_FN(scatter_rows)(const rlxk_scatter *s, int32_t worker, int32_t workers) {
    int64_t begin, end;
    rlxk_share(s->outer * s->size, worker, workers, &begin, &end);
    if (begin == end) return;
    for (int64_t outer = begin / s->size; outer <= (end - 1) / s->size; outer++) {
        for (int64_t k = 0; k < s->count; k++) {
            const int64_t n = exact(s->index[k], s->size), row = outer * s->size + n;
            if (n < 0 || row < begin || row >= end) continue;
            RLXK_FN(scatter_run)(s, row * s->inner, (outer * s->count + k) * s->inner, s->inner);
        }
    }
}

/* A worker owns columns (o, i). */
static void RLXK_FN(scatter_columns)(const rlxk_scatter *s, int32_t worker, int32_t workers) {
    int64_t begin, end;
    rlxk_share(s->outer * s->inner, worker, workers, &begin, &end);
    for (int64_t column = begin; column < end; column++) {
        const int64_t outer = column / s->inner, i = column % s->inner;
        for (int64_t k = 0; k < s->count; k++) {
            const int64_t from = (outer * s->count + k) * s->inner + i;
            const int64_t n = exact(s->index[from], s->size);
            if (n >= 0) RLXK_FN(scatter_run)(s, (outer * s->size + n) * s->inner + i, from, 1);
        }
    }
}

static void RLXK_FN(scatter)(const void *arguments, int32_t worker, int32_t workers) {
    const rlxk_scatter *s = arguments;
    if (s->along) RLXK_FN(scatter_columns)(s, worker, workers);
    else RLXK_FN(scatter_rows)(s, worker, workers);
}

#define ARG(NAME, TYPE, IS_BETTER)                                                            \
    static int32_t RLXK_FN(NAME)(const TYPE *x, int64_t n, int64_t stride, bool smallest) {   \
        TYPE best = x[0];                                                                     \
        int64_t index = 0;                                                                    \
        for (int64_t i = 1; i < n; i++) {                                                     \
            const TYPE v = x[i * stride];                                                     \
            if (IS_BETTER) {                                                                  \
                best = v;                                                                     \
                index = i;                                                                    \
            }                                                                                 \
        }                                                                                     \
        return (int32_t)index;                                                                \
    }
ARG(arg_f32, float, (smallest ? v < best : v > best) || (v != v && best == best))
ARG(arg_i32, int32_t, smallest ? v < best : v > best)

static void RLXK_FN(arg)(const void *arguments, int32_t worker, int32_t workers) {
    const rlxk_arg *a = arguments;
    int64_t begin, end;
    rlxk_share(a->outer * a->inner, worker, workers, &begin, &end);
    for (int64_t task = begin; task < end; task++) {
        const int64_t from = task / a->inner * a->size * a->inner + task % a->inner;
        a->index[task] = a->is_float
            ? RLXK_FN(arg_f32)((const float *)a->x + from, a->size, a->inner, a->smallest)
            : RLXK_FN(arg_i32)((const int32_t *)a->x + from, a->size, a->inner, a->smallest);
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

#undef GATHER_ALONG
#undef SCATTER_RUN
#undef ARG
#undef CUMSUM
