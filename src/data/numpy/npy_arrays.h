/* The arrays of NumPy of one file or of several, as values, labels and weights. */
#ifndef QN_DATA_NUMPY_NPY_ARRAYS_H
#define QN_DATA_NUMPY_NPY_ARRAYS_H

#include "data/numpy/npy.h"
#include "data/bytes/part_files.h"

/* Arrays whose items follow one another as those of one; often there is only one. */
typedef struct qn__npy_arrays {
    /* The bytes of the array in file `i`, from its header on. One is open at a time. Where there
     * are several files, each is opened twice; a single one only once. */
    qn_status (*begin)(void *self, size_t i, qn__npy_bytes *bytes, qn_error *err);
    /* Closes them after they were read with `status`, and returns that or a failure. */
    qn_status (*end)(void *self, qn__npy_bytes *bytes, qn_status status, qn_error *err);
    void *self;
    const qn__file_list *list; /* of their files */
    qn__part_files *files; /* of the items, whose numbers (files->items) are known or found out */
    int values;            /* 1: these are the values of the items; 0: their labels or weights */
} qn__npy_arrays;

/* Checks the header of the array in file `i`. */
typedef qn_status qn__npy_check(const qn__npy_arrays *arrays, size_t i, const qn__npy_bytes *in,
                                const qn__npy *array, qn_error *err);
/* Takes the elements of an array by qn__npy_each; `before` items are in those before. */
typedef qn_status qn__npy_take_array(void *user, const qn__npy_bytes *in, const qn__npy *array,
                                     uint64_t before, qn_error *err);

/* Arrays whose headers were read. */
typedef struct qn__npy_joined {
    const qn__npy_arrays *arrays;
    qn__npy first;       /* the header of the first one */
    uint64_t items;      /* of all */
    qn__npy_bytes bytes; /* of a single array, open after its header */
    int open;
} qn__npy_joined;

/* Reads all headers. The arrays have elements of one type; texts may differ in their length. The
 * items of values have one shape, and are counted. Fails with QN_INPUT or as begin does; then
 * nothing is open. */
qn_status qn__npy_joined_begin(const qn__npy_arrays *arrays, qn__npy_check *check,
                               qn__npy_joined *joined, qn_error *err);
/* Reads all elements: once. */
qn_status qn__npy_joined_each(qn__npy_joined *joined, qn__npy_take_array *take, void *user,
                              qn_error *err);
/* Closes what was not read. */
void qn__npy_joined_end(qn__npy_joined *joined);

/* Reads the elements into items x features of `data` (type, items, features, values, missing, wide
 * columns, and rows and columns of an array of three dimensions), by the `expected_rules` and
 * `keep_doubles` of the options. */
qn_status qn__npy_read_values(const qn__npy_arrays *arrays, const qn_data_options *options,
                              qn_data *data, qn_error *err);

/* Reads one label for each item that is already in `data`: labels, targets, or labels and the
 * names of classes in its schema. `task` as in qn_data_options. */
qn_status qn__npy_read_labels(const qn__npy_arrays *arrays, const char *task, qn_data *data,
                              qn_error *err);

/* Reads one weight for each item that is already in `data`. Fails with QN_INPUT too where one is
 * out of range. */
qn_status qn__npy_read_weights(const qn__npy_arrays *arrays, qn_data *data, qn_error *err);

#endif
