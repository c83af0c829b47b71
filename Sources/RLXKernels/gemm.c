/* gemm.c - matrix products: which way each is computed, and what it needs; see include/rlxk_gemm.h for what they mean.
 *
 * A worker takes rows or columns of the batch, cuts them into blocks whose part of B fits in the second-level cache, and
 * a block into tiles (tile_body.h). A is read through its strides; B too, unless its columns are strided or its rows lie
 * so far apart that a panel of it does not stay in the first-level cache: then the block's panels are packed first. A
 * tile's rows of A are packed when they lie so far apart that they push each other out of the cache. Products with few
 * rows or columns go other ways (gemm_thin_body.h). The way depends on the shape alone, and an element of C is the same
 * sum in the same order whichever tile it falls into, so that shares may be cut anywhere.
 */
#include "include/rlxk_gemm.h"

#include "isa.h"
#include "tile.h"

enum {
    DEEPEST = 512,          /* part of k between two visits of C: a tile's rows of A stay in the first-level cache */
    GROUP_FLOATS = 1 << 18, /* of B in a block: half of a second-level cache of 2 MB */
    WIDEST_PANEL = 32,      /* of any instruction set */
    LINE_FLOATS = 16,       /* of a cache line */

    LONGEST_UNPACKED_PANEL = 1 << 18, /* floats from a panel's first row to its last */
    FEWEST_ROWS_TO_PACK = 96,         /* below, packing costs more than it gains */
    FEWEST_COLUMNS_TO_PACK = 256,     /* the same for rows of A */
    FAR_APART = 512,                  /* rows of B so many floats apart meet in a few sets of the first-level cache: */
    MANY_ROWS_TO_PACK = 192,          /* for so many rows packing gains even then */
    PAGE_FLOATS = 1024,               /* rows or columns of A so far apart meet in few sets of a cache */
    MOST_TILE_ROWS = 16,              /* of any instruction set, in whole vectors */
    MOST_ROWS_IN_A_SET = 8,           /* of the first-level cache */

    FEW_DOTS = 4,        /* rows or columns that are dot products however short */
    MOST_DOTS = 128,     /* ... however long */
    DEPTH_OF_DOTS = 8,   /* times as long as there are rows or columns, they gain over packing */
    MOST_FLIPPED_COLUMNS = 16,
};

static inline int64_t min(int64_t x, int64_t y) { return x < y ? x : y; }

typedef enum gemm_way {
    BY_TILES,
    BY_DOTS_OF_ROWS,    /* few columns; A's rows are contiguous */
    BY_DOTS_OF_COLUMNS, /* few rows, contiguous; B's columns too */
    BY_COLUMNS_OF_A,    /* few columns; A's columns are contiguous */
    BY_ACCELERATE,
} gemm_way;

/* One product of the batch. */
typedef struct product {
    const rlxk_gemm *g;
    const float *a, *b, *gate;
    float *c;
    float *packed; /* panels of B in this worker's workspace, or NULL */
    float *rows;   /* a tile's rows of A there, or NULL */
} product;

static inline void select_batch(product *x, int64_t batch) {
    const rlxk_gemm *g = x->g;
    int64_t a = 0, b = 0, c = 0;
    for (int axis = 2; axis >= 0; axis--) {
        int64_t index = batch % g->batch[axis];
        batch /= g->batch[axis];
        a += index * g->a_batch[axis];
        b += index * g->b_batch[axis];
        c += index * g->c_batch[axis];
    }
    x->a = g->a + a;
    x->b = g->b + b;
    x->c = g->c + c;
    x->gate = g->gate ? g->gate + c : NULL;
}

#if defined(__APPLE__)
#include "gemm_accelerate.h"
#else
static inline bool is_for_accelerate(const rlxk_gemm *g) { return (void)g, false; }
static inline void run_accelerate(product *x, int64_t batches) { (void)x, (void)batches; }
#endif

static inline bool is_for_dots(int64_t lines, int64_t k) {
    return lines <= FEW_DOTS || lines <= min(k / DEPTH_OF_DOTS, MOST_DOTS);
}

static inline gemm_way way_of(const rlxk_gemm *g) {
    if (is_for_accelerate(g)) return BY_ACCELERATE;
    if (g->n <= FEW_DOTS && g->a_col == 1) return BY_DOTS_OF_ROWS;
    if (g->a_col == 1 && g->b_row == 1) {
        if (is_for_dots(g->m, g->k) && g->m <= g->n) return BY_DOTS_OF_COLUMNS;
        if (is_for_dots(g->n, g->k)) return BY_DOTS_OF_ROWS;
    }
    if (g->n <= MOST_FLIPPED_COLUMNS && g->a_row == 1) return BY_COLUMNS_OF_A;
    return BY_TILES;
}

/* Equal parts of k, each of at most DEEPEST; one when k is 0. */
static inline int64_t depth_parts(const rlxk_gemm *g) { return g->k > DEEPEST ? (g->k + DEEPEST - 1) / DEEPEST : 1; }

static inline int64_t depth(const rlxk_gemm *g) { return (g->k + depth_parts(g) - 1) / depth_parts(g); }

/* Columns of B that are worked on together. */
static inline int64_t group_columns(const rlxk_gemm *g) {
    int64_t columns = GROUP_FLOATS / (depth(g) + 1) / WIDEST_PANEL * WIDEST_PANEL;
    return columns > WIDEST_PANEL ? columns : WIDEST_PANEL;
}

static inline bool packs_panels(const rlxk_gemm *g) {
    if (g->b_col != 1) return true;
    if (g->m >= FEWEST_ROWS_TO_PACK && depth(g) * g->b_row > LONGEST_UNPACKED_PANEL) return true;
    return g->m >= MANY_ROWS_TO_PACK && g->b_row >= FAR_APART;
}

/* Whether A's rows, or its columns where those are contiguous, lie so far apart that a tile's part of A does not stay in
 * the first-level cache. */
static inline bool packs_rows(const rlxk_gemm *g) {
    const int64_t apart = g->a_row > g->a_col ? g->a_row : g->a_col;
    return g->n >= FEWEST_COLUMNS_TO_PACK && apart >= PAGE_FLOATS;
}

static inline int64_t rows_floats(const rlxk_gemm *g) {
    return way_of(g) == BY_TILES && packs_rows(g) ? (depth(g) + MOST_TILE_ROWS) * MOST_TILE_ROWS : 0;
}

/* What one worker packs of B; 0 when it reads B where it is. */
static inline int64_t packed_floats(const rlxk_gemm *g) {
    switch (way_of(g)) {
    case BY_DOTS_OF_ROWS: return g->b_row == 1 ? 0 : (g->k * g->n + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
    case BY_DOTS_OF_COLUMNS:
    case BY_COLUMNS_OF_A:
    case BY_ACCELERATE: return 0;
    case BY_TILES: break;
    }
    const int64_t columns = (min(g->n, group_columns(g)) + WIDEST_PANEL - 1) / WIDEST_PANEL * WIDEST_PANEL;
    return packs_panels(g) ? depth(g) * columns : 0;
}

/* Rows of equal parts of what lies on and above the diagonal. */
static inline void triangle_share(int64_t n, int32_t worker, int32_t workers, int64_t *begin, int64_t *end) {
    *begin = n - (int64_t)((double)n * __builtin_sqrt((double)(workers - worker) / workers));
    *end = n - (int64_t)((double)n * __builtin_sqrt((double)(workers - worker - 1) / workers));
}

#define RLXK_BODY "gemm_body.h"
#include "isa_each.h"

RLXK_DISPATCH(rlxk_gemm_run, gemm)
RLXK_DISPATCH(rlxk_mirror_run, mirror)

size_t rlxk_gemm_workspace(const rlxk_gemm *gemm, int32_t workers) {
    return (size_t)(packed_floats(gemm) + rows_floats(gemm)) * (size_t)workers;
}
