/* The inputs of wide columns: their differences from a number near the mean (docs/exactness.md
 * 23.6), which float32 can hold. */
#ifndef QN_DATA_PREPARE_OFFSETS_H
#define QN_DATA_PREPARE_OFFSETS_H

#include "data/prepare/inputs.h"

/* What is subtracted from a wide column: the sum of two floats, which binary64 holds. */
typedef struct qn__offset {
    float high, low;
} qn__offset;

static inline double qn__offset_of(const qn__offset *offset) {
    return (double)offset->high + (double)offset->low;
}

/* Wide columns of a model's table; 0 for NULL. */
uint32_t qn__wide_features(const qn__schema *table);

/* Fits the offsets of the wide columns of `table`, in their order, to training items, whose columns
 * are those of `table`. */
void qn__offsets_fit(const qn_data *train, const qn__schema *table, qn__offset *offset);

/* The offsets of another model, for the wide columns of `table`; a column that is not wide there
 * has the offset 0. `other` is the table of that model, with as many columns. */
void qn__offsets_keep(const qn__schema *other, const qn__offset *kept, const qn__schema *table,
                      qn__offset *offset);

/* Bytes of the matrix that qn__subtract_offsets makes. */
double qn__narrow_bytes(const qn_data *raw);

/* Makes a table in which each wide column of the model holds its differences, and none but moments
 * of dates is wide any more; the caller closes it, and it needs `raw` alive. *out is NULL where the
 * model subtracts nothing. Fails with QN_INPUT (a difference is beyond float32; the message names
 * column and item) or QN_MEMORY. */
qn_status qn__subtract_offsets(const qn__encoding *how, const qn_data *raw,
                               const qn__encoding_notes *notes, qn_data **out, qn_error *err);

#endif
