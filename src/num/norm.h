/* Constants of the normalisation layers (docs/exactness.md 17.8, 17.9). */
#ifndef QN_NUM_NORM_H
#define QN_NUM_NORM_H

#include <math.h>

/* Where the layer's text says nothing (24.11). */
#define QN__NORM_EPSILON 1e-5f
#define QN__RUNNING_RATE 0.1f
/* A grain's mean and variance are summed in multiples of 2^-32; `unit` does not matter for them. */
#define QN__RUNNING_UNIT 0x1p32f

/* r: what deviations from the mean are multiplied by. */
static inline float qn__norm_inverse(float variance, float epsilon) {
    return 1.0f / sqrtf(variance + epsilon);
}

/* The sum of squares, or 0 where rounding has made it negative; a NaN stays NaN. */
static inline float qn__norm_squares(float w) { return w <= 0.0f ? 0.0f : w; }

#endif
