/* Data sets over a caller's arrays: the values stay where they are when they can be used there. */
#include "base/argument.h"
#include "base/float_state.h"
#include "base/memory.h"
#include "base/sized.h"
#include "data/data.h"
#include <string.h>
#include <unistd.h>

/* The owner of values that are used in place. */
typedef struct lent {
    void *owner;
    void (*release)(void *owner);
} lent;

static void end_loan(void *memory) {
    lent *loan = memory;
    if (loan->release)
        loan->release(loan->owner);
    qn__free(loan);
}

/* 1 when the values can be read as they lie. Kernels read up to QN__DATA_MARGIN bytes behind the
 * last one. In the same page these are readable, whoever owns them; the page behind may not be. */
static int is_usable(const qn_data *data, const void *values) {
    const uintptr_t first = (uintptr_t)values;
    const uintptr_t end = first + (size_t)data->items * qn__data_stride(data);
    const long page = sysconf(_SC_PAGESIZE);
    const uintptr_t aligned = data->type == QN_F32 ? first % sizeof(float) : 0;
    return aligned == 0 && page > 0 && end % (uintptr_t)page != 0 &&
           end % (uintptr_t)page <= (uintptr_t)page - QN__DATA_MARGIN;
}

static qn_status take_values(qn_data *data, const qn_data_arrays *a, qn_error *err) {
    const size_t items = (size_t)data->items, stride = qn__data_stride(data);
    if (!is_usable(data, a->values)) {
        data->memory = qn__alloc(items, stride, err);
        if (!data->memory)
            return QN_MEMORY;
        data->release = qn__free;
        data->values = memcpy(data->memory, a->values, items * stride);
        return QN_OK;
    }
    /* The release is set last, when nothing can fail any more: until then the caller owns them. */
    lent *loan = qn__alloc(1, sizeof *loan, err);
    if (!loan)
        return QN_MEMORY;
    data->memory = loan;
    data->release = end_loan;
    data->values = a->values;
    return QN_OK;
}

static qn_status take_labels(qn_data *data, const qn_data_arrays *a, qn_error *err) {
    if (!a->labels)
        return QN_OK;
    data->labels = qn__alloc(data->items, sizeof *data->labels, err);
    if (!data->labels)
        return QN_MEMORY;
    memcpy(data->labels, a->labels, (size_t)data->items * sizeof *data->labels);
    return QN_OK;
}

static int copy_name(char **to, const char *from, qn_error *err) {
    *to = from ? qn__copy_text(from, err) : NULL;
    return !from || *to;
}

static qn_status take_names(qn_data *data, const qn_data_arrays *a, qn_error *err) {
    if (!a->feature_name && !a->label_name && !a->class_name)
        return QN_OK;
    qn__schema *s = data->schema = qn__schema_create(data->features, err);
    if (!s || !copy_name(&s->label, a->label_name, err))
        return QN_MEMORY;
    for (uint32_t i = 0; a->feature_name && i < data->features; i++)
        if (!copy_name(&s->feature[i].name, a->feature_name[i], err))
            return QN_MEMORY;
    s->target = !a->labels ? QN__TARGET_NONE : a->class_name ? QN__TARGET_CLASS : QN__TARGET_INDEX;
    if (s->target != QN__TARGET_CLASS)
        return QN_OK;
    s->class_name = qn__alloc(a->classes, sizeof *s->class_name, err);
    if (!s->class_name)
        return QN_MEMORY;
    for (s->classes = 0; s->classes < a->classes; s->classes++)
        if (!copy_name(&s->class_name[s->classes], a->class_name[s->classes], err))
            return QN_MEMORY;
    return QN_OK;
}

/* Names of classes, one for each label. */
static qn_status check_classes(const qn_data_arrays *a, qn_error *err) {
    if (!a->class_name)
        return QN_OK;
    for (uint32_t i = 0; i < a->classes; i++)
        if (!a->class_name[i])
            return qn__fail(err, QN_INPUT, "class %u has no name", (unsigned)i);
    for (uint64_t i = 0; a->labels && i < a->items; i++) {
        if ((uint32_t)a->labels[i] >= a->classes) {
            qn__fail(err, QN_INPUT, "the label %d is not one of %u classes", (int)a->labels[i],
                     (unsigned)a->classes);
            qn__at(err, "item %llu", (unsigned long long)i);
            return QN_INPUT;
        }
    }
    return QN_OK;
}

static qn_status fill(qn_data *data, const qn_data_arrays *a, qn_error *err) {
    data->type = a->type;
    data->items = a->items;
    data->features = a->features;
    data->format = "array";
    qn_status status = take_values(data, a, err);
    if (status == QN_OK)
        status = take_labels(data, a, err);
    if (status == QN_OK)
        status = take_names(data, a, err);
    if (status == QN_OK)
        status = qn__data_finish(data, NULL, err);
    return status;
}

void qn_data_arrays_init(qn_data_arrays *arrays) {
    if (arrays)
        *arrays = (qn_data_arrays){.size = sizeof *arrays, .type = QN_F32};
}

qn_status qn_data_lend(const qn_data_arrays *arrays, qn_data **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(arrays, err);
    qn_data_arrays a;
    qn_data_arrays_init(&a);
    qn_status status = qn__sized_take(QN__SIZED("arrays", qn_data_arrays), arrays, &a, err);
    if (status == QN_OK && !a.values)
        return qn__fail_null(err, __func__, "arrays->values");
    if (status == QN_OK)
        status = qn__data_check_arrays(a.type, a.items, a.features, a.values, a.labels, err);
    if (status == QN_OK)
        status = check_classes(&a, err);
    if (status != QN_OK)
        return status;
    qn_data *data = qn__alloc(1, sizeof *data, err);
    if (!data)
        return QN_MEMORY;
    status = fill(data, &a, err);
    if (status != QN_OK) {
        qn_data_close(data);
        return status;
    }
    if (data->release == end_loan)
        *(lent *)data->memory = (lent){a.owner, a.release};
    else if (a.release)
        a.release(a.owner);
    *out = data;
    return QN_OK;
}
