/* The elements of an NPY array as labels (docs/exactness.md 2.1.8). */
#include "base/memory.h"
#include "data/cells/label_values.h"
#include "data/numpy/npy_several.h"
#include "data/cells/text_column.h"
#include <math.h>
#include <string.h>

typedef struct labelling {
    const qn__npy_bytes *in;
    const qn__npy *array;
    uint64_t before; /* items in the arrays before */
    qn_data *data;
    double *number;     /* FLOAT: all of them; else NULL */
    qn__text_set texts; /* of UNICODE and ASCII */
} labelling;

static qn_status refuse_label(const labelling *l, uint64_t item, const char *remedy,
                              qn_error *err) {
    return qn__npy_refuse(l->in, l->array->begin + item * l->array->size, remedy, err);
}

static qn_status refuse_range(const labelling *l, uint64_t item, qn_error *err) {
    qn__fail(err, QN_INPUT, "the label of item %llu (from 0) is 2^31 or more",
             (unsigned long long)item);
    return refuse_label(l, item, QN__LABEL_RANGE_REMEDY, err);
}

static qn_status take_integers(void *user, uint64_t first, size_t count, const void *numbers,
                               qn_error *err) {
    labelling *l = user;
    const int64_t *from = numbers;
    const int is_signed = l->array->kind == QN__NPY_INT;
    for (size_t i = 0; i < count; i++) {
        const uint64_t item = l->before + first + i;
        if (l->data->targets)
            l->data->targets[item] = is_signed ? (float)from[i] : (float)(uint64_t)from[i];
        else if (from[i] < (is_signed ? -(int64_t)INT32_MAX : 0) || from[i] > INT32_MAX)
            return refuse_range(l, first + i, err);
        else
            l->data->labels[item] = (int32_t)from[i];
    }
    return QN_OK;
}

static qn_status take_floats(void *user, uint64_t first, size_t count, const void *numbers,
                             qn_error *err) {
    labelling *l = user;
    const double *from = numbers;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite((float)from[i])) {
            qn__fail(err, QN_INPUT,
                     isnan(from[i])   ? "the label of item %llu (from 0) is missing (NaN)"
                     : isinf(from[i]) ? "the label of item %llu (from 0) is infinite"
                                      : "the label of item %llu (from 0) is beyond the range of "
                                        "float32",
                     (unsigned long long)(first + i));
            return refuse_label(l, first + i, "correct it, or leave the item out of both arrays",
                                err);
        }
        l->number[l->before + first + i] = from[i];
    }
    return QN_OK;
}

/* The text of an element without the NULs after it, in UTF-8; `buffer` holds 4 bytes for each of
 * its characters. 0 for what is not text. */
static int to_utf8(const uint8_t *at, size_t characters, char *buffer, size_t *size) {
    char *to = buffer;
    while (characters > 0 && memcmp(at + 4 * (characters - 1), "\0\0\0\0", 4) == 0)
        characters--;
    for (size_t i = 0; i < characters; i++, at += 4) {
        const uint32_t c =
            at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
        if (c == 0 || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
            return 0;
        const int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
        static const uint8_t lead[] = {0, 0xC0, 0xE0, 0xF0};
        *to++ = (char)(lead[more] | c >> 6 * more);
        for (int k = more - 1; k >= 0; k--)
            *to++ = (char)(0x80 | (c >> 6 * k & 0x3F));
    }
    *size = (size_t)(to - buffer);
    return 1;
}

static qn_status add_text(labelling *l, uint64_t item, const char *text, size_t size,
                          qn_error *err) {
    uint32_t number = 0;
    if (size == 0) {
        qn__fail(err, QN_INPUT, "the label of item %llu (from 0) is an empty text",
                 (unsigned long long)item);
        return refuse_label(l, item, "correct it, or leave the item out of both arrays", err);
    }
    const qn_status status = qn__text_column_add(&l->texts, text, size, 1, &number, err);
    if (status == QN_INPUT)
        return refuse_label(l, item, "labels are the names of classes in UTF-8", err);
    l->data->labels[l->before + item] = (int32_t)number;
    return status;
}

static qn_status take_texts(void *user, uint64_t first, size_t count, const void *bytes,
                            qn_error *err) {
    labelling *l = user;
    const size_t size = l->array->size;
    const int wide = l->array->kind == QN__NPY_UNICODE;
    char *buffer = qn__alloc(size + 1, 1, err);
    qn_status status = buffer ? QN_OK : QN_MEMORY;
    for (size_t i = 0; i < count && status == QN_OK; i++) {
        const uint8_t *at = (const uint8_t *)bytes + i * size;
        size_t length = size;
        while (!wide && length > 0 && at[length - 1] == 0)
            length--;
        if (!wide) {
            status = add_text(l, first + i, (const char *)at, length, err);
        } else if (to_utf8(at, size / 4, buffer, &length)) {
            status = add_text(l, first + i, buffer, length, err);
        } else {
            qn__fail(err, QN_INPUT, "the label of item %llu (from 0) holds what is not a character",
                     (unsigned long long)(first + i));
            status = refuse_label(l, first + i, "write the labels again with numpy.save", err);
        }
    }
    qn__free(buffer);
    return status;
}

/* ------------------------------------------------------------------ what they are */

/* The arrays are closed: the place of a label is told by its number. */
static qn_status settle_floats(const qn__npy_arrays *arrays, const labelling *l, const char *task,
                               qn_error *err) {
    uint64_t item = 0;
    const qn_status status = qn__labels_from_numbers(l->data, l->number, task, &item, err);
    if (status != QN_INPUT)
        return status;
    size_t i = 0;
    uint64_t left = item;
    for (; left >= arrays->files->items[i]; i++)
        left -= arrays->files->items[i];
    qn__at(err, "%s, item %llu (from 0)", arrays->list->file[i].path, (unsigned long long)left);
    return qn__remedy(err, QN_INPUT, "%s", QN__LABEL_RANGE_REMEDY);
}

static qn_status check_shape(const qn__npy_arrays *arrays, size_t i, const qn__npy_bytes *in,
                             const qn__npy *a, qn_error *err) {
    const qn__part_files *files = arrays->files;
    if (qn__npy_is_several(a) && qn__npy_check_several(in, a, err) != QN_OK)
        return QN_INPUT;
    if (a->items == files->items[i])
        return QN_OK;
    const int one = qn__part_files_are_one(files);
    qn__fail(err, QN_INPUT, "there are %llu labels for %llu items%s%.200s",
             (unsigned long long)a->items, (unsigned long long)files->items[i], one ? "" : " of ",
             one ? "" : files->list->file[i].path);
    return qn__npy_refuse(in, a->begin, "give the array of labels that belongs to the items", err);
}

static int are_texts(const qn__npy *a) {
    return a->kind == QN__NPY_UNICODE || a->kind == QN__NPY_ASCII;
}

static qn_status take_array(void *user, const qn__npy_bytes *in, const qn__npy *array,
                            uint64_t before, qn_error *err) {
    labelling *l = user;
    l->in = in;
    l->array = array;
    l->before = before;
    return qn__npy_each(in, array,
                        are_texts(array)               ? take_texts
                        : array->kind == QN__NPY_FLOAT ? take_floats
                                                       : take_integers,
                        l, err);
}

/* Memory for what the labels are. */
static qn_status prepare(labelling *l, const qn__npy_joined *j, int regress, qn_error *err) {
    const int texts = are_texts(&j->first);
    if (texts && regress) {
        qn__fail(err, QN_INPUT, "the labels are texts, and regression needs numbers");
        qn__at(err, "%s", j->arrays->list->file[0].path);
        return qn__remedy(err, QN_INPUT, "leave `data.task` out, or set it to classify");
    }
    if (!texts && j->first.kind == QN__NPY_FLOAT) {
        l->number = qn__alloc(l->data->items, sizeof *l->number, err);
        return l->number ? QN_OK : QN_MEMORY;
    }
    return regress ? qn__data_need_targets(l->data, err) : qn__data_need_labels(l->data, err);
}

qn_status qn__npy_read_labels(const qn__npy_arrays *arrays, const char *task, qn_data *data,
                              qn_error *err) {
    qn__npy_joined j;
    qn_status status = qn__npy_joined_begin(arrays, check_shape, &j, err);
    if (status != QN_OK)
        return status;
    labelling l = {.data = data};
    if (qn__npy_is_several(&j.first)) {
        status = qn__npy_read_several(&j, task, data, err);
        qn__npy_joined_end(&j);
        return status;
    }
    status = prepare(&l, &j, task && strcmp(task, "regress") == 0, err);
    if (status == QN_OK)
        status = qn__npy_joined_each(&j, take_array, &l, err);
    if (status == QN_OK && l.number)
        status = settle_floats(arrays, &l, task ? task : "auto", err);
    else if (status == QN_OK && are_texts(&j.first))
        status = qn__labels_from_texts(data, &l.texts, err);
    qn__npy_joined_end(&j);
    qn__text_set_release(&l.texts);
    qn__free(l.number);
    return status;
}
