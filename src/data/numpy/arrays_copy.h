/* Values of a caller that do not have the layout of a table: doubles, or values with strides. */
#ifndef QN_DATA_NUMPY_ARRAYS_COPY_H
#define QN_DATA_NUMPY_ARRAYS_COPY_H

#include "data/table/data.h"

/* 1 when the values must be copied by qn__arrays_copy. */
int qn__arrays_differ(const qn_data_arrays *arrays);

/* Copies the values to items x features floats; a double is rounded once. *finite becomes 1 when
 * all of them are finite. Fails with QN_USAGE for members that contradict each other, QN_MEMORY. */
qn_status qn__arrays_copy(const qn_data_arrays *arrays, float *to, int *finite, qn_error *err);

#endif
