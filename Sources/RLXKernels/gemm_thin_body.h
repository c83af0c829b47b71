/* gemm_thin_body.h - products with so few rows or columns that a tile would be mostly empty (a body, after
 * vec_body.h and pack_body.h). */

/* C[i][j ..< j + n] from one vector of sums, n <= RLXK_LANES. */
INLINE void RLXK_FN(finish)(const product *x, int64_t i, int64_t j, VEC sum, int32_t n) {
    const rlxk_gemm *g = x->g;
    const VEC zero = 0, one = 1;
    float *c = x->c + i * g->c_row + j;
    sum *= g->alpha;
    if (g->bias) sum += RLXK_FN(load_first)(g->bias + j, n);
    if (g->accumulate) sum += RLXK_FN(load_first)(c, n);
    if (g->activation == RLXK_ACT_RELU) sum = zero > sum ? zero : sum;
    if (g->activation == RLXK_ACT_CLIP) sum = RLXK_FN(clip)(sum, g->clip);
    if (g->gate) sum *= RLXK_FN(load_first)(x->gate + i * g->c_row + j, n) > zero ? one : zero;
    RLXK_FN(store_first)(c, sum, n);
}

/* MARK: Dot products: both operands are contiguous along k */

/* Lines of the operand that is read once, and of the other, whose products are in registers together. */
#undef MANY
#undef FEW
#if RLXK_LANES == 16 || defined(__aarch64__)
#define MANY 6
#define FEW 4
#else
#define MANY 4
#define FEW 3
#endif
#undef WHOLE_VECTORS
#define WHOLE_VECTORS(n) (((n) + RLXK_LANES - 1) / RLXK_LANES * RLXK_LANES)

/* out[r * out_x + s * out_y] = x's line r . y's line s, without gaps; the last vector's other lanes are undefined. */
INLINE void RLXK_FN(dots)(float *out, int out_x, int out_y, const float *x, int64_t x_line, int x_lines,
                          const float *y, int64_t y_line, int y_lines, int64_t k) {
    VEC sum[WHOLE_VECTORS(MANY * FEW)];
    UNROLL for (int i = 0; i < WHOLE_VECTORS(x_lines * y_lines); i++) sum[i] = 0;
#define ADD_PRODUCTS(LOAD)                                                                          \
    VEC of_y[FEW];                                                                                  \
    UNROLL for (int s = 0; s < y_lines; s++) of_y[s] = LOAD(y + s * y_line + p);                    \
    UNROLL for (int r = 0; r < x_lines; r++) {                                                      \
        VEC of_x = LOAD(x + r * x_line + p);                                                        \
        UNROLL for (int s = 0; s < y_lines; s++) sum[r * out_x + s * out_y] += of_x * of_y[s];      \
    }
#define LOAD_FIRST(from) RLXK_FN(load_first)(from, tail)
    int64_t p = 0;
    for (; p + RLXK_LANES <= k; p += RLXK_LANES) { ADD_PRODUCTS(RLXK_FN(load)) }
    if (p < k) {
        const int32_t tail = (int32_t)(k - p);
        ADD_PRODUCTS(LOAD_FIRST)
    }
#undef LOAD_FIRST
#undef ADD_PRODUCTS
    UNROLL for (int i = 0; i < x_lines * y_lines; i += RLXK_LANES) RLXK_FN(store)(out + i, RLXK_FN(totals)(sum + i));
}

/* The same for 1 ... FEW lines of y, whose sums lie side by side if `y_inside`, else those of x. */
INLINE void RLXK_FN(few_dots)(float *out, bool y_inside, const float *x, int64_t x_line, int x_lines, const float *y,
                              int64_t y_line, int64_t y_lines, int64_t k) {
#define DOTS(n) RLXK_FN(dots)(out, y_inside ? n : 1, y_inside ? 1 : x_lines, x, x_line, x_lines, y, y_line, n, k)
    switch (y_lines) {
    case 1: DOTS(1); break;
    case 2: DOTS(2); break;
#if FEW > 3
    case 3: DOTS(3); break;
#endif
    default: DOTS(FEW); break;
    }
#undef DOTS
}

/* The same for MANY lines of x, or for one. */
INLINE void RLXK_FN(many_or_one)(float *out, bool y_inside, bool many, const float *x, int64_t x_line, const float *y,
                                 int64_t y_line, int64_t y_lines, int64_t k) {
    if (many) RLXK_FN(few_dots)(out, y_inside, x, x_line, MANY, y, y_line, y_lines, k);
    else RLXK_FN(few_dots)(out, y_inside, x, x_line, 1, y, y_line, y_lines, k);
}

/* Rows of A, contiguous, by the few columns of B. */
static void RLXK_FN(dots_of_rows)(const product *x, int64_t begin, int64_t end) {
    const rlxk_gemm *g = x->g;
    const float *columns = x->b;
    int64_t column_line = g->b_col;
    if (g->b_row != 1) {
        for (int64_t j = 0; j < g->n; j++) {
            for (int64_t p = 0; p < g->k; p++) x->packed[j * g->k + p] = x->b[p * g->b_row + j * g->b_col];
        }
        columns = x->packed;
        column_line = g->k;
    }
    const int64_t groups = (g->n + FEW - 1) / FEW;
    for (int64_t i = begin, next; i < end; i = next) {
        /* The last rows again with those before, so that they too are MANY. */
        const int64_t first = g->m < MANY ? i : min(i, g->m - MANY);
        next = g->m < MANY ? i + 1 : min(first + MANY, end);
        for (int64_t group = 0; group < groups; group++) {
            float out[WHOLE_VECTORS(MANY * FEW) + RLXK_LANES];
            const int64_t j = g->n * group / groups, count = g->n * (group + 1) / groups - j;
            const float *rows = x->a + first * g->a_row, *y = columns + j * column_line;
            RLXK_FN(many_or_one)(out, true, g->m >= MANY, rows, g->a_row, y, column_line, count, g->k);
            for (int64_t r = i; r < next; r++) {
                RLXK_FN(finish)(x, r, j, RLXK_FN(load_first)(out + (r - first) * count, (int32_t)count), (int32_t)count);
            }
        }
    }
}

/* Columns of B, contiguous, by the few rows of A. */
static void RLXK_FN(dots_of_columns)(const product *x, int64_t begin, int64_t end) {
    const rlxk_gemm *g = x->g;
    const int64_t groups = (g->m + FEW - 1) / FEW;
    for (int64_t j = begin, next; j < end; j = next) {
        const int64_t first = g->n < MANY ? j : min(j, g->n - MANY);
        next = g->n < MANY ? j + 1 : min(first + MANY, end);
        for (int64_t group = 0; group < groups; group++) {
            float out[WHOLE_VECTORS(MANY * FEW) + RLXK_LANES];
            const int64_t i = g->m * group / groups, count = g->m * (group + 1) / groups - i;
            const float *columns = x->b + first * g->b_col, *y = x->a + i * g->a_row;
            RLXK_FN(many_or_one)(out, false, g->n >= MANY, columns, g->b_col, y, g->a_row, count, g->k);
            for (int64_t s = 0; s < count; s++) {
                const float *sums = out + s * (g->n < MANY ? 1 : MANY) + (j - first);
                RLXK_FN(finish)(x, i + s, j, RLXK_FN(load_first)(sums, (int32_t)(next - j)), (int32_t)(next - j));
            }
        }
    }
}

/* MARK: Few columns, columns of A contiguous: tiles of C', turned */

static void RLXK_FN(flipped)(const product *x, int64_t begin, int64_t end) {
    const rlxk_gemm *g = x->g;
    float turned[MOST_FLIPPED_COLUMNS][PANEL];
    for (int64_t i = begin; i < end; i += PANEL) {
        int64_t rows = min(end - i, PANEL);
        for (int64_t j = 0; j < g->n; j += TILE_ROWS) {
            rlxk_tile tile = {
                .a = x->b + j * g->b_col, .a_row = g->b_col, .a_col = g->b_row, .runs = 1, .a_runs = rlxk_one_run, .b_runs = rlxk_one_run,
                .k = g->k, .b = x->a + i, .b_row = g->a_col, .c = turned[j], .c_row = PANEL, .alpha = 1,
            };
            RLXK_FN(tile_run)(&tile, min(g->n - j, TILE_ROWS), rows);
        }
        for (int64_t j = 0; j < g->n; j += RLXK_LANES) {
            int32_t columns = (int32_t)min(g->n - j, RLXK_LANES);
            for (int64_t block = 0; block < rows; block += RLXK_LANES) {
                VEC square[RLXK_LANES];
                UNROLL for (int r = 0; r < RLXK_LANES; r++) {
                    square[r] = r < columns ? RLXK_FN(load)(turned[j + r] + block) : 0;
                }
                RLXK_FN(transpose)(square);
                int64_t in_block = min(rows - block, RLXK_LANES);
                for (int64_t r = 0; r < in_block; r++) RLXK_FN(finish)(x, i + block + r, j, square[r], columns);
            }
        }
    }
}
