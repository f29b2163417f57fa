/* The inputs of several requests as one table, and space for the results of all. The memory stays
 * for the next batch. */
#ifndef QN_SERVE_BATCH_JOINED_H
#define QN_SERVE_BATCH_JOINED_H

#include "predict/item_batches.h"

typedef struct qn__joined {
    const qn_data *inputs;
    qn_data table; /* what `inputs` is, where they are those of several requests */
    void *values;
    uint64_t bytes, items; /* of the memory: of values; of results */
    int32_t *classes;
    float *scores, *outputs;
    uint8_t *answers;
} qn__joined;

/* Sets `inputs` to the `count` tables one after the other, all of one type and number of features.
 * Fails with QN_MEMORY. */
qn_status qn__join_inputs(qn__joined *joined, const qn_data *const *each, uint64_t count,
                          qn_error *err);

/* Sets the places of the results of `inputs`. Fails with QN_MEMORY. */
qn_status qn__join_results(qn__joined *joined, const qn__batch_form *form, int with_outputs,
                           qn__model_results *results, qn_error *err);

/* Where the results from item `first` on are. */
qn__model_results qn__results_from(const qn__model_results *results, const qn__batch_form *form,
                                   uint64_t first);

void qn__joined_release(qn__joined *joined);

#endif
