/* Texts of like lengths together. A pass computes only up to its longest item (device/shorten.h),
 * and what a network gives for an item does not depend on the others. So a block of items is
 * applied in the order of their lengths, and its results are put back:
 *
 *     items           a: 3   b: 90   c: 5   d: 70   e: 4      passes of three: 90 + 70 positions
 *     by length       b: 90  d: 70   c: 5   e: 4    a: 3                       90 + 4
 *
 * The longest items come first, so that the last pieces of work are short. */
#ifndef QN_JOB_BY_LENGTH_H
#define QN_JOB_BY_LENGTH_H

#include "device/device.h"

typedef struct qn__by_length {
    uint32_t *place; /* [i]: which item of the block is applied as number i */
    /* The items of the block in this order; `feed` has one entry for each. */
    qn__feed feed;
    qn__batch batch;
    /* Of the feed. */
    uint64_t *rows, *answer_rows;
    int32_t *labels;
    float *weights;
} qn__by_length;

/* Whether the order of the items can save work. */
int qn__by_length_gains(const qn__program *program, const qn__batch *batch,
                        const qn__applied *applied);

/* Orders the items of a batch that has no order yet. The batch's feed has to stay as it is
 * until qn__by_length_free, which accepts what failed, too. Fails with QN_MEMORY. */
qn_status qn__by_length_begin(const qn__program *program, const qn__batch *batch,
                              qn__by_length *out, qn_error *err);
void qn__by_length_free(qn__by_length *of);

/* Puts the results that were written in the order of the lengths into the order of the batch.
 * Fails with QN_MEMORY. */
qn_status qn__by_length_back(const qn__program *program, const qn__by_length *of,
                             const qn__applied *applied, qn_error *err);

#endif
