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
    if (g->gate) sum *= RLXK_FN(load_first)(x->gate + i * g->c_row + j, n) > zero ? one : zero;
    RLXK_FN(store_first)(c, sum, n);
}

/* MARK: Dot products: both operands are contiguous along k */

INLINE float RLXK_FN(total)(VEC x) {
#if RLXK_LANES == 16
    return _mm512_reduce_add_ps((__m512)x);
#else
    float sum[RLXK_LANES];
    RLXK_FN(store)(sum, x);
    for (int width = RLXK_LANES / 2; width > 0; width /= 2) {
        for (int i = 0; i < width; i++) sum[i] += sum[i + width];
    }
    return sum[0];
#endif
}

/* out[r * out_x + s * out_y] = x's line r . y's line s */
INLINE void RLXK_FN(dots)(float *out, int out_x, int out_y, const float *x, int64_t x_line, int x_lines,
                          const float *y, int64_t y_line, int y_lines, int64_t k) {
    VEC sum[FEW][FEW];
    UNROLL for (int r = 0; r < x_lines; r++) {
        UNROLL for (int s = 0; s < y_lines; s++) sum[r][s] = 0;
    }
    int64_t p = 0;
    for (; p + RLXK_LANES <= k; p += RLXK_LANES) {
        UNROLL for (int r = 0; r < x_lines; r++) {
            VEC xr = RLXK_FN(load)(x + r * x_line + p);
            UNROLL for (int s = 0; s < y_lines; s++) sum[r][s] += xr * RLXK_FN(load)(y + s * y_line + p);
        }
    }
    if (p < k) {
        const int32_t tail = (int32_t)(k - p);
        UNROLL for (int r = 0; r < x_lines; r++) {
            VEC xr = RLXK_FN(load_first)(x + r * x_line + p, tail);
            UNROLL for (int s = 0; s < y_lines; s++) sum[r][s] += xr * RLXK_FN(load_first)(y + s * y_line + p, tail);
        }
    }
    UNROLL for (int r = 0; r < x_lines; r++) {
        UNROLL for (int s = 0; s < y_lines; s++) out[r * out_x + s * out_y] = RLXK_FN(total)(sum[r][s]);
    }
}

/* The same for 1 ... FEW lines of y. */
INLINE void RLXK_FN(few_dots)(float *out, int out_x, int out_y, const float *x, int64_t x_line, int x_lines,
                              const float *y, int64_t y_line, int64_t y_lines, int64_t k) {
    switch (y_lines) {
    case 1: RLXK_FN(dots)(out, out_x, out_y, x, x_line, x_lines, y, y_line, 1, k); break;
    case 2: RLXK_FN(dots)(out, out_x, out_y, x, x_line, x_lines, y, y_line, 2, k); break;
    case 3: RLXK_FN(dots)(out, out_x, out_y, x, x_line, x_lines, y, y_line, 3, k); break;
    default: RLXK_FN(dots)(out, out_x, out_y, x, x_line, x_lines, y, y_line, 4, k); break;
    }
}

/* At most FEW columns, rows of A contiguous. */
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
    for (int64_t i = begin; i < end;) {
        float out[FEW * FEW + RLXK_LANES];
        const float *rows = x->a + i * g->a_row;
        int64_t count = end - i < FEW ? 1 : FEW;
        if (count == FEW) {
            RLXK_FN(few_dots)(out, FEW, 1, rows, g->a_row, FEW, columns, column_line, g->n, g->k);
        } else {
            RLXK_FN(few_dots)(out, FEW, 1, rows, g->a_row, 1, columns, column_line, g->n, g->k);
        }
        for (int64_t r = 0; r < count; r++, i++) {
            RLXK_FN(finish)(x, i, 0, RLXK_FN(load_first)(out + r * FEW, (int32_t)g->n), (int32_t)g->n);
        }
    }
}

/* At most FEW rows, contiguous as the columns of B. */
static void RLXK_FN(dots_of_columns)(const product *x, int64_t begin, int64_t end) {
    const rlxk_gemm *g = x->g;
    for (int64_t j = begin; j < end;) {
        float out[FEW * FEW + RLXK_LANES];
        const float *columns = x->b + j * g->b_col;
        int32_t count = end - j < FEW ? 1 : FEW;
        if (count == FEW) {
            RLXK_FN(few_dots)(out, 1, FEW, columns, g->b_col, FEW, x->a, g->a_row, g->m, g->k);
        } else {
            RLXK_FN(few_dots)(out, 1, FEW, columns, g->b_col, 1, x->a, g->a_row, g->m, g->k);
        }
        for (int64_t i = 0; i < g->m; i++) {
            RLXK_FN(finish)(x, i, j, RLXK_FN(load_first)(out + i * FEW, count), count);
        }
        j += count;
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
