/* tile.h - what a tile of a matrix product is; tile_body.h computes it, vec_body.h asks for it. Knows nothing of whole products or convolutions. */
#ifndef RLXK_TILE_H
#define RLXK_TILE_H

#include <stdbool.h>
#include <stdint.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* c[i][j] = epilogue(sum over runs r and p < k of a[a_runs[r] + i * a_row + p * a_col] * b[b_runs[r] + p * b_row + j])
 * for a few rows i and one panel of columns j. */
typedef struct rlxk_tile {
    const float *a;
    int64_t a_row, a_col;
    const float *b;
    int64_t b_row;
    int64_t runs, k;
    const int64_t *a_runs, *b_runs; /* where A and B start in each run */
    float *c;
    int64_t c_row;
    const float *bias;     /* of the panel's columns, or NULL */
    const float *row_bias; /* of the tile's rows, or NULL */
    const float *gate; /* laid out as c, or NULL */
    float alpha;
    const float *clip; /* the lowest and the highest value, or NULL */
    bool accumulate, relu;
    int32_t tail; /* columns in the panel's last vector, 1 ... RLXK_LANES */
} rlxk_tile;

/* The start of the only run. */
static const int64_t rlxk_one_run[1] = { 0 };

#endif
