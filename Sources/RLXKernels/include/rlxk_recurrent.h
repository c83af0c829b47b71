/* rlxk_recurrent.h - the steps of recurrent layers; what the inputs contribute comes as one product, made before.
 *
 * Arrays are f32; but for the results they are dense. Gates are rows of the weights: r, o, z of a GRU; i, f, o, z of
 * an LSTM.
 */
#ifndef RLXK_RECURRENT_H
#define RLXK_RECURRENT_H

#include "rlxk.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rlxk_cell { RLXK_RNN, RLXK_GRU, RLXK_GRU_RESET_AFTER, RLXK_LSTM } rlxk_cell;

typedef enum rlxk_gate_function {
    RLXK_GATE_LINEAR,
    RLXK_GATE_RELU,
    RLXK_GATE_TANH,
    RLXK_GATE_SIGMOID,
    RLXK_GATE_HARD_SIGMOID /* 0.2 x + 0.5 between 0 and 1 */
} rlxk_gate_function;

/* One direction of a layer. */
typedef struct rlxk_direction {
    rlxk_cell cell;
    int32_t reverse;   /* the last step first */
    int32_t by_time;   /* `sequence` is in the order of time, else in that of the walk */
    int32_t keeps_all; /* `sequence` has every step, else the last one */
    rlxk_gate_function recurrent, inner, outer; /* of the gates, of the candidate, of an LSTM's output */
    float clip;        /* bound of an LSTM's cell state; infinity for none */
    int64_t steps, batch, size;
    const float *inputs;   /* [steps][batch][gates * size], with all biases but `bias` */
    const float *weight;   /* [size][gates * size]: transposed */
    const float *bias;     /* [size]: of a GRU's candidate inside of the reset, or NULL */
    const float *peephole; /* [3 * size]: i, f, o; or NULL */
    const float *h0, *c0;  /* [batch][size] */
    float *sequence, *h, *c; /* rows of `size`, one for each row of the batch, `pitch` floats apart */
    int64_t pitch;
} rlxk_direction;

enum {
    RLXK_RECURRENT_ROWS = 8,  /* of the batch that a worker walks with at once */
    RLXK_RECURRENT_PANEL = 32 /* columns of the weights */
};

/* Walks the steps of all directions, which have one batch. Scratch of a worker: for each of its rows, of which there
 * are as many as the batch has and at most RLXK_RECURRENT_ROWS, (gates + 2) * size floats; and, unless the batch is 1,
 * the weights, with the columns (of each gate of a GRU) in whole panels. */
typedef struct rlxk_recurrent {
    const rlxk_direction *list;
    int32_t count;
    float *scratch;
    int64_t scratch_stride;
} rlxk_recurrent;

void rlxk_recurrent_run(const void *recurrent, int32_t worker, int32_t workers);

#ifdef __cplusplus
}
#endif
#endif
