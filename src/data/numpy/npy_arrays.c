#include "data/numpy/npy_arrays.h"
#include "base/files/file_stamp.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* "float32", "texts of bytes" */
static const char *show_type(const qn__npy *a, char text[32]) {
    static const char *const names[] = {
        [QN__NPY_INT] = "int", [QN__NPY_UINT] = "uint", [QN__NPY_FLOAT] = "float"};
    if (a->kind == QN__NPY_UNICODE || a->kind == QN__NPY_ASCII)
        snprintf(text, 32, "texts of %s", a->kind == QN__NPY_ASCII ? "bytes" : "characters");
    else if (a->kind == QN__NPY_BOOL)
        snprintf(text, 32, "bool");
    else
        snprintf(text, 32, "%s%u", names[a->kind], (unsigned)(8 * a->size));
    return text;
}

/* The dimensions after the first: "(28, 28)"; of many, the first ones. */
static const char *show_shape(const qn__npy *a, char text[64]) {
    size_t at = (size_t)snprintf(text, 64, "(");
    for (uint32_t k = 1; k < a->dimensions && at < 40; k++)
        at += (size_t)snprintf(text + at, 64 - at, "%s%" PRIu64, k > 1 ? ", " : "", a->shape[k]);
    snprintf(text + at, 64 - at, a->dimensions == 2 ? ",)" : at < 40 ? ")" : ", ...)");
    return text;
}

static int is_text(const qn__npy *a) {
    return a->kind == QN__NPY_UNICODE || a->kind == QN__NPY_ASCII;
}

static const char *first_path(const qn__npy_joined *j) { return j->arrays->list->file[0].path; }

static qn_status check_type(const qn__npy_joined *j, const qn__npy_bytes *in, const qn__npy *a,
                            qn_error *err) {
    char own[32], other[32];
    if (a->kind == j->first.kind && (a->size == j->first.size || is_text(a)))
        return QN_OK;
    qn__fail(err, QN_INPUT, "the elements of the array are %s, and those of %.200s are %s",
             show_type(a, own), first_path(j), show_type(&j->first, other));
    return qn__npy_refuse(in, 0, "give all arrays one type, as with array.astype('float32')", err);
}

static qn_status check_shape(const qn__npy_joined *j, const qn__npy_bytes *in, const qn__npy *a,
                             qn_error *err) {
    char own[64], other[64];
    const size_t bytes = (a->dimensions - 1) * sizeof a->shape[0];
    if (a->dimensions == j->first.dimensions &&
        memcmp(a->shape + 1, j->first.shape + 1, bytes) == 0)
        return QN_OK;
    qn__fail(err, QN_INPUT, "an item of the array has the shape %s, and one of %.200s has %s",
             show_shape(a, own), first_path(j), show_shape(&j->first, other));
    return qn__npy_refuse(in, 0, "give all arrays items of one shape, as with numpy.reshape", err);
}

static qn_status look(qn__npy_joined *j, size_t i, const qn__npy_bytes *in, qn__npy_check *check,
                      qn_error *err) {
    qn__npy array;
    qn_status status = qn__npy_read_header(in, &array, err);
    if (status == QN_OK)
        status = check(j->arrays, i, in, &array, err);
    if (status == QN_OK && i == 0)
        j->first = array;
    if (status == QN_OK)
        status = check_type(j, in, &array, err);
    if (status == QN_OK && j->arrays->values)
        status = check_shape(j, in, &array, err);
    if (status != QN_OK)
        return status;
    if (j->arrays->values)
        j->arrays->files->items[i] = array.items;
    j->items += array.items;
    if (j->items <= QN__ITEMS_MAX)
        return QN_OK;
    qn__fail(err, QN_INPUT, "the files up to this one hold more than 2^48 items");
    return qn__npy_refuse(in, 0, "name fewer files", err);
}

qn_status qn__npy_joined_begin(const qn__npy_arrays *arrays, qn__npy_check *check,
                               qn__npy_joined *j, qn_error *err) {
    *j = (qn__npy_joined){.arrays = arrays};
    for (size_t i = 0; i < arrays->list->count; i++) {
        qn_status status = arrays->begin(arrays->self, i, &j->bytes, err);
        if (status != QN_OK)
            return status;
        status = look(j, i, &j->bytes, check, err);
        j->open = status == QN_OK && arrays->list->count == 1;
        if (!j->open)
            status = arrays->end(arrays->self, &j->bytes, status, err);
        if (status != QN_OK)
            return status;
    }
    return QN_OK;
}

/* Opens an array again, whose header is not as it was only where the file changed. */
static qn_status begin_again(qn__npy_joined *j, size_t i, qn__npy *array, qn_error *err) {
    const qn__npy_arrays *arrays = j->arrays;
    qn_status status = arrays->begin(arrays->self, i, &j->bytes, err);
    if (status != QN_OK)
        return status;
    status = qn__npy_read_header(&j->bytes, array, err);
    if (status == QN_OK)
        status = check_type(j, &j->bytes, array, err);
    if (status == QN_OK &&
        (array->features != j->first.features || array->items != arrays->files->items[i]))
        status = qn__file_stamp_refuse(arrays->list->file[i].path, QN_INPUT, err);
    return status == QN_OK ? QN_OK : arrays->end(arrays->self, &j->bytes, status, err);
}

qn_status qn__npy_joined_each(qn__npy_joined *j, qn__npy_take_array *take, void *user,
                              qn_error *err) {
    const qn__npy_arrays *arrays = j->arrays;
    uint64_t before = 0;
    qn_status status = QN_OK;
    for (size_t i = 0; status == QN_OK && i < arrays->list->count; i++) {
        qn__npy array = j->first;
        if (!j->open)
            status = begin_again(j, i, &array, err);
        if (status != QN_OK)
            return status;
        status = take(user, &j->bytes, &array, before, err);
        status = arrays->end(arrays->self, &j->bytes, status, err);
        j->open = 0;
        before += array.items;
    }
    return status;
}

void qn__npy_joined_end(qn__npy_joined *j) {
    if (j->open)
        (void)j->arrays->end(j->arrays->self, &j->bytes, QN_OK, NULL);
    j->open = 0;
}
