/* rlxk_gemm.h - matrix products of strided f32 arrays, as instructions of a plan.
 *
 *     C[i][j] = epilogue(alpha * sum over p of A[i][p] B[p][j])        for each batch, i < m, j < n, p < k
 *
 * A and B may have any strides, so a transpose is free and a broadcast is a stride of 0; C's columns are contiguous.
 * C must not overlap A, B, bias or gate. The epilogue is, in this order: + bias[j], + the old C[i][j] when
 * `accumulate`, the activation, * (gate[i][j] > 0 ? 1 : 0). With k = 0 the sum is 0. NaN and infinities propagate.
 * The order of every sum depends on the shapes and the instruction set alone.
 */
#ifndef RLXK_GEMM_H
#define RLXK_GEMM_H

#include "rlxk.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    RLXK_ACT_NONE = 0,
    RLXK_ACT_RELU = 1, /* NaN stays NaN */
    RLXK_ACT_CLIP = 2  /* between clip[0] and clip[1]; the same */
};

typedef struct rlxk_gemm {
    int64_t m, n, k;
    const float *a;
    int64_t a_row, a_col; /* strides, in elements */
    const float *b;
    int64_t b_row, b_col;
    float *c;
    int64_t c_row;
    int64_t batch[3];                          /* sizes of the batch axes, outermost first; 1 where there is none */
    int64_t a_batch[3], b_batch[3], c_batch[3]; /* their strides; 0 broadcasts A or B */
    const float *bias;                          /* n contiguous values, or NULL */
    const float *gate;                          /* laid out as C (the input of a relu, in its backward), or NULL */
    int32_t activation;
    float clip[2];
    int32_t accumulate;
    int32_t symmetric; /* m = n, one batch, and C[i][j] is C[j][i]: what lies below the diagonal may be left as it was */
    float alpha;
    float *workspace; /* rlxk_gemm_workspace() floats at a multiple of 64 bytes; not shared with a concurrent run */
} rlxk_gemm;

/* Floats of workspace that the product needs with up to `workers` workers; may be 0. Pointers are not looked at. */
size_t rlxk_gemm_workspace(const rlxk_gemm *gemm, int32_t workers);

/* An rlxk_kernel over an rlxk_gemm. */
void rlxk_gemm_run(const void *gemm, int32_t worker, int32_t workers);

/* c[j][i] = c[i][j] for i < j < n. */
typedef struct rlxk_mirror {
    float *c;
    int64_t n, row;
} rlxk_mirror;

/* An rlxk_kernel over an rlxk_mirror. */
void rlxk_mirror_run(const void *mirror, int32_t worker, int32_t workers);

#ifdef __cplusplus
}
#endif
#endif
