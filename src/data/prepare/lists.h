/* The inputs of a table with columns of texts: a list of those that are not 0 for each item, since
 * an item has few of the many words (docs/exactness.md 25.60). Inputs of other columns come first,
 * as inputs.h has them, then those of each column of texts. */
#ifndef QN_DATA_PREPARE_LISTS_H
#define QN_DATA_PREPARE_LISTS_H

#include "data/prepare/inputs.h"

/* How rare each bucket is in the training items (25.64), whose columns are those of `table`: floats
 * of qn__schema_text_inputs. Fails with QN_MEMORY. */
qn_status qn__idf_fit(const qn_data *train, const qn__schema *table, float *idf, qn_error *err);

/* As qn__make_inputs, for any table: of one with columns of texts the type is QN__ELEMENT_LIST. */
qn_status qn__make_lists(const qn__encoding *how, const qn_data *raw,
                         const qn__encoding_notes *notes, qn_data **out, qn_error *err);

/* The first `inputs` inputs of items that are lists as a table of floats; the caller closes it.
 * NULL if out of memory. */
qn_data *qn__lists_begin(const qn_data *lists, uint32_t inputs, qn_error *err);

#endif
