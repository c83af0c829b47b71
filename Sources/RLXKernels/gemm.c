/* gemm.c - matrix products; see include/rlxk_gemm.h for what they mean. */
#include "include/rlxk_gemm.h"

size_t rlxk_gemm_workspace(const rlxk_gemm *gemm, int32_t workers) {
    (void)gemm;
    (void)workers;
    return 0;
}

void rlxk_gemm_run(const void *gemm, int32_t worker, int32_t workers) {
    const rlxk_gemm *g = gemm;
    int64_t batches = g->batch[0] * g->batch[1] * g->batch[2], begin, end;
    rlxk_share(batches * g->m, worker, workers, &begin, &end);
    for (int64_t row = begin; row < end; row++) {
        int64_t i = row % g->m, rest = row / g->m;
        const float *a = g->a + i * g->a_row, *b = g->b;
        int64_t c_start = i * g->c_row;
        for (int axis = 2; axis >= 0; axis--) {
            int64_t index = rest % g->batch[axis];
            rest /= g->batch[axis];
            a += index * g->a_batch[axis];
            b += index * g->b_batch[axis];
            c_start += index * g->c_batch[axis];
        }
        for (int64_t j = 0; j < g->n; j++) {
            float sum = 0;
            for (int64_t p = 0; p < g->k; p++) sum += a[p * g->a_col] * b[p * g->b_row + j * g->b_col];
            float value = g->alpha * sum;
            if (g->bias) value += g->bias[j];
            if (g->accumulate) value += g->c[c_start + j];
            if (g->activation == RLXK_ACT_RELU && value < 0) value = 0;
            if (g->gate) value *= g->gate[c_start + j] > 0 ? 1.0f : 0.0f;
            g->c[c_start + j] = value;
        }
    }
}
