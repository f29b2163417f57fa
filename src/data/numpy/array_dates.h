/* Columns of dates in arrays of a caller. */
#ifndef QN_DATA_NUMPY_ARRAY_DATES_H
#define QN_DATA_NUMPY_ARRAY_DATES_H

#include "data/table/data.h"

/* Whether feature k of the arrays is a column of dates. */
int qn__array_is_date(const qn_data_arrays *arrays, uint32_t k);

/* Describes them in the schema of `data`, which has values and names, and takes their moments.
 * Fails with QN_USAGE for members that contradict each other, QN_INPUT for a value that is not a
 * day, or QN_MEMORY. */
qn_status qn__array_dates_take(qn_data *data, const qn_data_arrays *arrays, qn_error *err);

#endif
