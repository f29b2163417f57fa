#include "data/numpy/npy_several.h"

#include <math.h>
#include <string.h>

/* What others write for a token whose label does not count. */
enum { IGNORED_ELSEWHERE = -100 };

typedef struct taking {
    const qn__npy_bytes *in;
    const qn__npy *array;
    const qn__npy *first; /* of all arrays */
    uint64_t before;      /* items in the arrays before */
    int tags;             /* 1: classes of tokens: 25.39 */
    qn__several *several;
} taking;

int qn__npy_is_several(const qn__npy *array) { return array->features > 1; }

qn_status qn__npy_check_several(const qn__npy_bytes *in, const qn__npy *a, qn_error *err) {
    if (a->dimensions <= 3 && a->kind <= QN__NPY_FLOAT)
        return QN_OK;
    qn__fail(err, QN_INPUT, "the array of labels has %llu elements for each item%s",
             (unsigned long long)a->features,
             a->kind > QN__NPY_FLOAT ? ", which are not numbers" : "");
    return qn__npy_refuse(
        in, a->begin,
        "give items x labels, each 0 or 1, or the classes of pixels, items x rows "
        "x columns",
        err);
}

/* Where element `at` of the file belongs: rows run slowest there, unless the first index runs
 * fastest. */
static size_t place_of(const taking *t, uint64_t at) {
    const qn__npy *a = t->array;
    const uint64_t rows = a->shape[1], columns = a->dimensions > 2 ? a->shape[2] : 1;
    if (!a->fortran)
        return (size_t)(t->before * t->several->each + at);
    const uint64_t item = at % a->items, row = at / a->items % rows;
    const uint64_t column = at / a->items / rows;
    return (size_t)((t->before + item) * t->several->each + row * columns + column);
}

static qn_status refuse_number(const taking *t, uint64_t at, qn_error *err) {
    qn__fail(err, QN_INPUT, "a label of item %llu (from 0) is not a whole number from 0 to 255%s",
             (unsigned long long)(t->before + (t->array->fortran ? at % t->array->items
                                                                 : at / t->several->each)),
             t->tags ? ", nor -100 for a token that does not count" : "");
    return qn__npy_refuse(t->in, t->array->begin + at * t->array->size,
                          "classes count from 0; 255 says that a pixel or a label does not count",
                          err);
}

static qn_status take_numbers(void *user, uint64_t first, size_t count, const void *numbers,
                              qn_error *err) {
    const taking *t = user;
    const int real = t->array->kind == QN__NPY_FLOAT;
    for (size_t i = 0; i < count; i++) {
        const double x = real ? ((const double *)numbers)[i] : 0;
        int64_t n = real ? -1 : ((const int64_t *)numbers)[i];
        if (t->tags && !real && (n == IGNORED_ELSEWHERE || n == UINT16_MAX))
            n = QN__NO_TARGET;
        if (real ? !(x >= 0 && x <= 255 && x == floor(x)) : n < 0 || n > 255)
            return refuse_number(t, first + i, err);
        t->several->target[place_of(t, first + i)] = real ? (uint8_t)x : (uint8_t)n;
    }
    return QN_OK;
}

static qn_status take_array(void *user, const qn__npy_bytes *in, const qn__npy *array,
                            uint64_t before, qn_error *err) {
    taking *t = user;
    t->in = in;
    t->array = array;
    t->before = before;
    if (array->dimensions == t->first->dimensions && array->shape[1] == t->first->shape[1])
        return qn__npy_each(in, array, take_numbers, t, err);
    qn__fail(err, QN_INPUT,
             "the labels of an item have another shape than those of the first file");
    return qn__npy_refuse(in, 0, "give all arrays items of one shape, as with numpy.reshape", err);
}

qn_status qn__npy_note_one_hot(qn_data *data, qn_error *err) {
    const qn__several *several = data->several;
    if (several->height || several->each < 2)
        return QN_OK;
    for (uint64_t i = 0; i < data->items; i++) {
        const uint8_t *target = several->target + (size_t)i * several->each;
        uint32_t ones = 0;
        for (uint32_t k = 0; k < several->each; k++)
            ones += target[k] != 0;
        if (ones != 1)
            return QN_OK;
    }
    return qn__data_add_note(data,
                             "each item has exactly one of the labels; if they are classes, "
                             "numpy.argmax(labels, axis=1) makes class numbers of them",
                             err);
}

qn_status qn__npy_read_several(qn__npy_joined *j, const char *task, qn_data *data, qn_error *err) {
    const qn__npy *first = &j->first;
    const int mask = first->dimensions > 2;
    /* A class for each token. */
    const int tags = !mask && qn__element_is_token(data->type) && data->context == 0 &&
                     first->features == data->features;
    taking t = {.first = first, .tags = tags};
    if (task && strcmp(task, "regress") == 0) {
        qn__fail(err, QN_INPUT, "an item has %llu labels, and regression is for one number",
                 (unsigned long long)first->features);
        qn__at(err, "`data.task`");
        return qn__remedy(err, QN_INPUT, "leave it out");
    }
    t.several = data->several = qn__several_create(
        data->items, (uint32_t)first->features, mask ? (uint32_t)first->shape[1] : (uint32_t)tags,
        mask   ? (uint32_t)first->shape[2]
        : tags ? data->features
               : 0,
        err);
    if (!t.several)
        return QN_MEMORY;
    qn_status status = qn__npy_joined_each(j, take_array, &t, err);
    if (status == QN_OK)
        status = qn__several_check(t.several, data->items, err);
    return status == QN_OK ? qn__npy_note_one_hot(data, err) : status;
}
