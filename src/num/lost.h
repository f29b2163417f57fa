/* How many values lost all their bits when they became integers (docs/exactness.md 15): they were
 * not zero, and their integer is 0. People are told; no result depends on it. */
#ifndef QN_NUM_LOST_H
#define QN_NUM_LOST_H

#include <stdint.h>

typedef struct qn__lost {
    uint64_t values; /* that are not zero */
    uint64_t lost;   /* of those, the ones whose integer is 0 */
} qn__lost;

/* By what the values are, and by the products they became integers for. */
typedef struct qn__losses {
    /* Forward and backward: the items' blocks, and the outputs' of weights (15.4, 15.5). */
    qn__lost inputs, activations, weights, errors;
    /* Gradients of weights: one block of the whole grain for each of them (15.6). */
    qn__lost grain_inputs, grain_activations, grain_errors;
} qn__losses;

/* Counts the values of one block, which holds all of them. A block that is not finite counts
 * nothing. */
void qn__lost_block(int bits, uint64_t count, const float *values, qn__lost *to);

#endif
