/* How many values lost all their bits when they became integers (docs/exactness.md 15): they were
 * not zero, and their integer is 0. For reports only; no result depends on it. */
#ifndef QN_LAYER_LOST_H
#define QN_LAYER_LOST_H

#include "num/program.h"

typedef struct qn__lost {
    uint64_t values; /* that are not zero */
    uint64_t lost;   /* of those, the ones whose integer is 0 */
} qn__lost;

/* By the kind of values, and by the products for which they became integers. */
typedef struct qn__lost_kinds {
    /* Forward and backward: blocks of items, and blocks of the weights of an output (15.4,
     * 15.5). */
    qn__lost inputs, activations, weights, errors;
    /* Gradients of weights: one block for the whole grain (15.6). */
    qn__lost grain_inputs, grain_activations, grain_errors;
} qn__lost_kinds;

/* Counts the values of one block, which must be complete. A block that is not finite counts
 * nothing. */
void qn__lost_block(int bits, uint64_t count, const float *values, qn__lost *to);

/* The same of `count` values in blocks of `size`, which divides them. */
void qn__lost_blocks(int bits, uint64_t count, uint64_t size, const float *values, qn__lost *to);

/* The number of items that a report looks at: a grain, or less for large networks; 0 where one
 * item takes too long. */
uint32_t qn__lost_items(const qn__program *program);

#endif
