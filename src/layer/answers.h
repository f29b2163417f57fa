/* Several answers to an item (docs/exactness.md 24.70 to 24.73): the scalar reference of what the
 * loss does with the last layer's sums z, one item at a time. */
#ifndef QN_LAYER_ANSWERS_H
#define QN_LAYER_ANSWERS_H

#include "num/program.h"

/* The outputs y of the last layer: softmax of the channels of each pixel, or sigmoid. */
void qn__answers_outputs(const qn__program *program, const float *z, float *y);

/* The loss of an item without its share (24.71), from z and y. `target`: program->answers bytes.
 * Adds to *right the answers that are right. */
float qn__answers_loss(const qn__program *program, const float *z, const float *y,
                       const uint8_t *target, uint64_t *right);

/* The errors of the last layer (24.73); `factor`: the share in units. */
void qn__answers_errors(const qn__program *program, const float *y, const uint8_t *target,
                        float factor, float *delta);

/* The answer that the outputs of a pixel give: of the pixel's answers number `at`. */
uint8_t qn__answers_class(const qn__program *program, const float *y, uint32_t at);

/* The share of an item of which `count` targets count, and which has the share `share` (24.72). */
float qn__answers_share(float share, uint64_t count);

#endif
