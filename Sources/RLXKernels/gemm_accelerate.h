/* gemm_accelerate.h - large products on Apple systems, where Accelerate reaches the matrix units that we cannot. */
#include <stdbool.h>
#include <stdint.h>

enum { NO_TRANSPOSE = 111, TRANSPOSE = 112, ROW_MAJOR = 101 };
void cblas_sgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float *a, int lda,
                 const float *b, int ldb, float beta, float *c, int ldc);

enum { FEWEST_LINES = 5 }; /* of A and of B */
static const double LEAST_WORK_FOR_ACCELERATE = 64.0 * 64 * 64;

/* A matrix as cblas takes it; false when it has no unit stride, overlapping lines or a size beyond int. */
static inline bool cblas_form(int64_t rows, int64_t columns, int64_t row, int64_t col, int *transpose, int *line) {
    bool plain = col == 1 && row >= columns, turned = row == 1 && col >= rows;
    *transpose = plain ? NO_TRANSPOSE : TRANSPOSE;
    *line = (int)(plain ? row : col);
    return (plain || turned) && rows < INT32_MAX && columns < INT32_MAX && (plain ? row : col) < INT32_MAX;
}

static inline bool is_for_accelerate(const rlxk_gemm *g) {
    int transpose, line;
    return (double)g->m * (double)g->n * (double)g->k >= LEAST_WORK_FOR_ACCELERATE && g->m >= FEWEST_LINES
        && g->n >= FEWEST_LINES
        && cblas_form(g->m, g->k, g->a_row, g->a_col, &transpose, &line)
        && cblas_form(g->k, g->n, g->b_row, g->b_col, &transpose, &line) && g->c_row >= g->n && g->c_row < INT32_MAX;
}

static inline void run_accelerate(product *x, int64_t batches) {
    const rlxk_gemm *g = x->g;
    int a_transpose, b_transpose, a_line, b_line;
    cblas_form(g->m, g->k, g->a_row, g->a_col, &a_transpose, &a_line);
    cblas_form(g->k, g->n, g->b_row, g->b_col, &b_transpose, &b_line);
    for (int64_t batch = 0; batch < batches; batch++) {
        select_batch(x, batch);
        cblas_sgemm(ROW_MAJOR, a_transpose, b_transpose, (int)g->m, (int)g->n, (int)g->k, g->alpha, x->a, a_line, x->b,
                    b_line, g->accumulate ? 1 : 0, x->c, (int)g->c_row);
        if (!g->bias && !g->gate && g->activation == RLXK_ACT_NONE) continue;
        for (int64_t i = 0; i < g->m; i++) {
            for (int64_t j = 0; j < g->n; j++) {
                float *c = x->c + i * g->c_row + j;
                if (g->bias) *c += g->bias[j];
                if (g->activation == RLXK_ACT_RELU) *c = 0 > *c ? 0 : *c;
                if (g->activation == RLXK_ACT_CLIP) *c = *c < g->clip[0] ? g->clip[0] : *c > g->clip[1] ? g->clip[1] : *c;
                if (g->gate) *c *= x->gate[i * g->c_row + j] > 0 ? 1 : 0;
            }
        }
    }
}
