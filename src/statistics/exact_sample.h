/* The exact values and dates of a sample of a table's items, in the form that qn_data_arrays takes.
 */
#ifndef QN_STATISTICS_EXACT_SAMPLE_H
#define QN_STATISTICS_EXACT_SAMPLE_H

#include "data/table/data.h"
#include "num/permutation.h"

typedef struct qn__exact_sample {
    uint64_t items;
    uint32_t features;
    int64_t **whole; /* of each feature: exact values, from qn__alloc, or NULL */
    double **real;
    void *column; /* the exact values of one column, as they were */
    char (*parts)[QN_DATE_TEXT];
    const char **dates;
    uint8_t *kinds;
} qn__exact_sample;

/* Those of the items item[0] .. item[items-1]. Released in any case. Fails with QN_MEMORY. */
qn_status qn__exact_sample_begin(qn__exact_sample *sample, const qn_data *data,
                                 const uint64_t *item, uint64_t items, qn_error *err);
void qn__exact_sample_release(qn__exact_sample *sample);

/* Sets the members of `arrays` that are about them; `arrays` borrows the sample. */
void qn__exact_sample_lend(const qn__exact_sample *sample, qn_data_arrays *arrays);

/* To shuffle a column: _keep saves its values, _shuffle gives item i the saved value of item
 * order(i), any number of times, and _restore puts the saved values back. */
void qn__exact_sample_keep(qn__exact_sample *sample, uint32_t feature);
void qn__exact_sample_shuffle(qn__exact_sample *sample, uint32_t feature,
                              const qn__permutation *order);
void qn__exact_sample_restore(qn__exact_sample *sample, uint32_t feature);

#endif
