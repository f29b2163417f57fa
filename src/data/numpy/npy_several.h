/* Several labels of each item, or the classes of its pixels, from arrays of NumPy
 * (docs/exactness.md 24.75). */
#ifndef QN_DATA_NUMPY_NPY_SEVERAL_H
#define QN_DATA_NUMPY_NPY_SEVERAL_H

#include "data/numpy/npy_arrays.h"

/* Whether an item has more than one element: n x labels, or n x rows x columns. */
int qn__npy_is_several(const qn__npy *array);

/* Refuses elements that are not numbers, other dimensions, and a task of labels. */
qn_status qn__npy_check_several(const qn__npy_bytes *in, const qn__npy *array, qn_error *err);

/* Reads the elements into data->several. */
qn_status qn__npy_read_several(qn__npy_joined *joined, const char *task, qn_data *data,
                               qn_error *err);

/* Adds a note to data whose items have exactly one label of several each: they may be classes,
 * one-hot. Fails with QN_MEMORY. */
qn_status qn__npy_note_one_hot(qn_data *data, qn_error *err);

#endif
