/* rlxk_sample.h - images sampled at points that are values. */
#ifndef RLXK_SAMPLE_H
#define RLXK_SAMPLE_H

#include "rlxk.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What lies outside of an image. */
typedef enum rlxk_border {
    RLXK_BORDER_CONSTANT,  /* `value`, pixel by pixel */
    RLXK_BORDER_CUT,       /* points outside of the pixels' centres are `value` as a whole */
    RLXK_BORDER_EDGE,
    RLXK_BORDER_REFLECT,   /* about the outermost pixels' centres */
    RLXK_BORDER_SYMMETRIC  /* about the image's edges */
} rlxk_border;

/* out[n][c][p] = image index[n] of x, channel c, at the pixel coordinates (x, y) points[n][p]. */
typedef struct rlxk_sample {
    const float *x; /* [images][channels][height][width] */
    const float *points;
    const int32_t *index; /* NULL: n */
    float *out;
    int64_t images, channels, height, width;
    int64_t samples, count; /* n and p */
    rlxk_border border;
    int32_t nearest; /* else bilinear */
    float value;
} rlxk_sample;

void rlxk_sample_run(const void *sample, int32_t worker, int32_t workers);

#ifdef __cplusplus
}
#endif
#endif
