/* gemm.c - matrix products; see include/rlxk_gemm.h for what they mean.
 *
 * A worker takes rows or columns of the batch, cuts them into blocks whose part of B fits in the second-level cache, and
 * a block into tiles (tile_body.h). A is read through its strides, B too unless its columns are strided or its rows lie
 * so far apart that a panel of it would touch too many pages: then a panel is packed first. An element of C is the same
 * sum in the same order whichever tile it falls into, so that shares may be cut anywhere.
 */
#include "include/rlxk_gemm.h"

#include "isa.h"
#include "tile.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum {
    RLXK_GEMM_DEPTH = 2048,         /* longest part of k between two visits of C */
    GROUP_FLOATS = 1 << 18,         /* of B: half of a second-level cache of 2 MB */
    WIDEST_PANEL = 32,
    FEWEST_ROWS_TO_PACK = 32,
    LONGEST_UNPACKED_PANEL = 1 << 18, /* floats from a panel's first row to its last */
};

static inline int64_t min(int64_t x, int64_t y) { return x < y ? x : y; }

/* Columns of B that are worked on together. */
static inline int64_t rlxk_gemm_group(const rlxk_gemm *g) {
    int64_t depth = min(g->k, RLXK_GEMM_DEPTH);
    int64_t columns = GROUP_FLOATS / (depth ? depth : 1) / WIDEST_PANEL * WIDEST_PANEL;
    return columns > WIDEST_PANEL ? columns : WIDEST_PANEL;
}

static inline bool rlxk_gemm_packs(const rlxk_gemm *g) {
    if (g->b_col != 1) return true;
    return g->m >= FEWEST_ROWS_TO_PACK && min(g->k, RLXK_GEMM_DEPTH) * g->b_row > LONGEST_UNPACKED_PANEL;
}

/* For one worker. */
static inline int64_t rlxk_gemm_packed_floats(const rlxk_gemm *g) {
    int64_t columns = (min(g->n, rlxk_gemm_group(g)) + WIDEST_PANEL - 1) / WIDEST_PANEL * WIDEST_PANEL;
    return min(g->k, RLXK_GEMM_DEPTH) * columns;
}

#define RLXK_BODY "gemm_body.h"
#include "isa_each.h"

RLXK_DISPATCH(rlxk_gemm_run, gemm)

size_t rlxk_gemm_workspace(const rlxk_gemm *gemm, int32_t workers) {
    return rlxk_gemm_packs(gemm) ? (size_t)(rlxk_gemm_packed_floats(gemm) * workers) : 0;
}
