/* rlxk_chain.h - a chain: a block program of elementwise steps and reductions that runs over one space, tile by tile.
 *
 * The space is a box of up to RLXK_DIMS dimensions. A tile takes `step` indices of dimension `split` and all of the
 * dimensions inside it: its elements are the lanes, in row-major order. Every value of the program lives in a slot:
 * of one element a lane, of one a row (dimensions row ..< dims make up a row), or of one for all. Slots are either
 * the memory of an operand itself or scratch that stays in the first-level cache.
 */
#ifndef RLXK_CHAIN_H
#define RLXK_CHAIN_H

#include "rlxk.h"
#include "rlxk_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { RLXK_DIMS = 8, RLXK_TILE = 512 };

/* Element types in memory; in slots all are f32 or i32. */
typedef enum rlxk_type {
    RLXK_F32,
    RLXK_I32,
    RLXK_F16,
    RLXK_BOOL,
    RLXK_I8,
    RLXK_U8,
    RLXK_I16,
    RLXK_U16
} rlxk_type;

#define RLXK_ENUM(NAME, ...) RLXK_##NAME,
typedef enum rlxk_op {
    RLXK_COPY,
    RLXK_SELECT, /* x is a bool; y and z any */
    RLXK_DIV,
    RLXK_F32_TO_I32,
    RLXK_I32_TO_F32,
    RLXK_F32_TO_BOOL,
    RLXK_ROW_SUM, /* lanes -> rows */
    RLXK_ROW_MAX,
    RLXK_ROW_MIN,
    /* w - r * (m / (sqrt(v) * s + e)), m = a * m0 + b * g and v = c * v0 + d * (g * g): three results, and the operands
     * a, m0, b, g, c, v0, d, s, e, r, w; all but m0, g, v0, w are one element for all. */
    RLXK_MOMENTS,
    RLXK_MOMENTS_SHRINK, /* the same of w - h * w in place of w; the last operand is h */
    RLXK_UNARY_F32(RLXK_ENUM) RLXK_ROOT_F32(RLXK_ENUM) RLXK_TRIGONOMETRIC_F32(RLXK_ENUM) RLXK_BINARY_F32(RLXK_ENUM)
        RLXK_REMAINDER_F32(RLXK_ENUM)
        RLXK_COMPARE_F32(RLXK_ENUM) RLXK_TERNARY_F32(RLXK_ENUM) RLXK_PRODUCTS_F32(RLXK_ENUM) RLXK_SHRINK_F32(RLXK_ENUM)
        RLXK_ROOT_DIV_F32(RLXK_ENUM) RLXK_UNARY_I32(RLXK_ENUM) RLXK_BINARY_I32(RLXK_ENUM)
        RLXK_DIVISION_I32(RLXK_ENUM) RLXK_POWER_I32(RLXK_ENUM) RLXK_OP_COUNT
} rlxk_op;
#undef RLXK_ENUM

typedef enum rlxk_extent { RLXK_LANES_EXTENT, RLXK_ROWS_EXTENT, RLXK_ONE_EXTENT } rlxk_extent;

typedef struct rlxk_slot {
    int64_t offset; /* in the worker's scratch, in elements; not used when an operand's memory is the slot */
    rlxk_extent extent;
} rlxk_slot;

typedef enum rlxk_access {
    RLXK_DIRECT, /* the operand's memory is the slot */
    RLXK_MOVED,  /* copied between memory and the slot at every tile */
    RLXK_ONCE    /* read before the first tile: it is the same for all of them */
} rlxk_access;

typedef struct rlxk_operand {
    void *data;
    int64_t stride[RLXK_DIMS]; /* elements per index of the space; 0 broadcasts */
    rlxk_type type;
    rlxk_access access;
    int32_t slot;
} rlxk_operand;

enum { RLXK_STEP_SLOTS = 16 };

typedef struct rlxk_step {
    rlxk_op op;
    int64_t slot[RLXK_STEP_SLOTS]; /* the results, then the operands; the rest repeats the first */
    float p, q;
    uint8_t scalars; /* bit i: operand i (0 x, 1 y, 2 z, 3 w) has one element for all that the loop writes */
    uint8_t by_row;  /* the loop writes one row at a time: an operand with one element a row counts as scalar */
} rlxk_step;

/* What a sink does with the lanes that meet in one of its elements. */
typedef enum rlxk_fold {
    RLXK_SUM,
    RLXK_MAXIMUM,
    RLXK_MINIMUM,
    RLXK_PRODUCT,
    RLXK_SUM_I32,
    RLXK_MAXIMUM_I32,
    RLXK_MINIMUM_I32,
    RLXK_PRODUCT_I32
} rlxk_fold;

/* A reduction of a slot of lanes or rows into 32-bit elements. A chunk first sets the `count` elements from chunk * `begin`
 * on to the fold's neutral value and then adds its tiles at chunk * `shift`, so that chunks never meet. */
typedef struct rlxk_sink {
    void *data;
    int64_t stride[RLXK_DIMS]; /* 0 reduces the dimension */
    int64_t begin, count, total, shift;
    rlxk_fold fold;
    int32_t slot;
} rlxk_sink;

typedef struct rlxk_chain {
    int32_t dims, split, row;
    int64_t size[RLXK_DIMS];
    int64_t step;        /* indices of dimension `split` in a tile */
    int64_t tiles;       /* of the whole space */
    int64_t chunk_tiles; /* what a worker takes at once */
    int32_t prologue;    /* the first steps of the program, which have one element and run once */
    int32_t inputs, steps, outputs, sinks, slots;
    const rlxk_operand *input;
    const rlxk_step *program;
    const rlxk_operand *output;
    const rlxk_sink *sink;
    const rlxk_slot *slot;
    float *scratch; /* of all workers */
    int64_t scratch_stride;
} rlxk_chain;

enum { RLXK_MAX_SLOTS = 256 };

/* An rlxk_kernel over an rlxk_chain. */
void rlxk_chain_run(const void *chain, int32_t worker, int32_t workers);

/* Joins the partial results of a sink's chunks: result[i] = fold over c of partials[c * count + i]. */
typedef struct rlxk_combine {
    const void *partials;
    void *result;
    int64_t chunks, count;
    rlxk_fold fold;
} rlxk_combine;

typedef struct rlxk_combines {
    const rlxk_combine *list;
    int32_t count;
} rlxk_combines;

/* An rlxk_kernel over an rlxk_combines. */
void rlxk_combine_run(const void *combines, int32_t worker, int32_t workers);

#ifdef __cplusplus
}
#endif
#endif
