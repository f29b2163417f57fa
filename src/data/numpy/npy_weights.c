/* The elements of an NPY array as weights of items (docs/exactness.md 2.1.8). */
#include "base/memory.h"
#include "data/numpy/npy_arrays.h"

typedef struct weighing {
    const qn__npy *array;
    float *weight; /* of the first item of the array */
} weighing;

static qn_status take(void *user, uint64_t first, size_t count, const void *numbers,
                      qn_error *err) {
    const weighing *w = user;
    const double *real = numbers;
    const int64_t *whole = numbers;
    const int is_unsigned = w->array->kind == QN__NPY_UINT;
    (void)err; /* what is out of range is found by qn__data_check_weights */
    for (size_t i = 0; i < count; i++)
        w->weight[first + i] = w->array->kind == QN__NPY_FLOAT ? (float)real[i]
                               : is_unsigned                   ? (float)(uint64_t)whole[i]
                                                               : (float)whole[i];
    return QN_OK;
}

static qn_status check_array(const qn__npy_arrays *arrays, size_t i, const qn__npy_bytes *in,
                             const qn__npy *a, qn_error *err) {
    const uint64_t items = arrays->files->items[i];
    if (a->kind == QN__NPY_UNICODE || a->kind == QN__NPY_ASCII)
        qn__fail(err, QN_INPUT, "the array of weights holds texts");
    else if (a->features > 1 || a->items != items)
        qn__fail(err, QN_INPUT, "there are %llu x %llu weights for %llu items",
                 (unsigned long long)a->items, (unsigned long long)a->features,
                 (unsigned long long)items);
    else
        return QN_OK;
    return qn__npy_refuse(in, a->begin, "name an array of one number for each item", err);
}

static qn_status take_array(void *user, const qn__npy_bytes *in, const qn__npy *array,
                            uint64_t before, qn_error *err) {
    const qn_data *data = user;
    weighing w = {.array = array, .weight = data->weights + before};
    return qn__npy_each(in, array, take, &w, err);
}

qn_status qn__npy_read_weights(const qn__npy_arrays *arrays, qn_data *data, qn_error *err) {
    qn__npy_joined j;
    qn_status status = qn__npy_joined_begin(arrays, check_array, &j, err);
    if (status != QN_OK)
        return status;
    data->weights = qn__alloc(data->items, sizeof *data->weights, err);
    status = data->weights ? qn__npy_joined_each(&j, take_array, data, err) : QN_MEMORY;
    qn__npy_joined_end(&j);
    return status == QN_OK
               ? qn__data_check_weights(data->weights, data->items, arrays->files->name, err)
               : status;
}
