/* Several answers to an item (docs/exactness.md 24.70 to 24.73): the scalar reference of what the
 * loss does with the last layer's sums z, one item at a time. */
#ifndef QN_LAYER_ANSWERS_H
#define QN_LAYER_ANSWERS_H

#include "layer/embedding.h"

/* The targets of an item: bytes, or of a program with `next` the values of the item. */
typedef struct qn__targets {
    const uint8_t *bytes; /* program->answers of them; NULL: `values` */
    const float *values;  /* as the network reads them: one more than positions */
    uint32_t tokens;      /* of the last layer */
} qn__targets;

/* A target, or QN__NO_ANSWER. */
static inline uint32_t qn__target_at(const qn__targets *of, size_t k) {
    if (!of->bytes)
        return qn__next_token(of->values[k + 1], of->tokens);
    return of->bytes[k] == QN__IGNORED ? QN__NO_ANSWER : of->bytes[k];
}

/* The outputs y of the last layer: softmax of the channels of each pixel, or sigmoid. */
void qn__answers_outputs(const qn__program *program, const float *z, float *y);

/* The loss of an item without its share (24.71), from z and y. Adds to *right the answers
 * that are right. */
float qn__answers_loss(const qn__program *program, const float *z, const float *y,
                       const qn__targets *targets, uint64_t *right);

/* The errors of the last layer (24.73); `factor`: the share in units. */
void qn__answers_errors(const qn__program *program, const float *y, const qn__targets *targets,
                        float factor, float *delta);

/* The answer that the outputs of a pixel give: of the pixel's answers number `at`. */
uint32_t qn__answers_class(const qn__program *program, const float *y, uint32_t at);

/* The share of an item of which `count` targets count, and which has the share `share` (24.72). */
float qn__answers_share(float share, uint64_t count);

#endif
