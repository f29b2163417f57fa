#include "data/cells/label_values.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "data/cells/labels.h"
#include "data/cells/text_column.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

qn_status qn__data_need_labels(qn_data *data, qn_error *err) {
    data->labels = qn__alloc(data->items, sizeof *data->labels, err);
    return data->labels ? QN_OK : QN_MEMORY;
}

qn_status qn__data_need_targets(qn_data *data, qn_error *err) {
    if (qn__data_need_schema(data, err) != QN_OK)
        return QN_MEMORY;
    data->schema->target = QN__TARGET_REAL;
    data->targets = qn__alloc(data->items, sizeof *data->targets, err);
    return data->targets ? QN_OK : QN_MEMORY;
}

qn_status qn__labels_from_texts(qn_data *data, qn__text_set *texts, qn_error *err) {
    if (qn__data_need_schema(data, err) != QN_OK)
        return QN_MEMORY;
    uint32_t *order = qn__text_column_sort(texts, 1, err);
    if (!order)
        return QN_MEMORY;
    for (uint64_t i = 0; i < data->items; i++)
        data->labels[i] = (int32_t)order[data->labels[i]];
    qn__free(order);
    data->schema->target = QN__TARGET_CLASS;
    qn__text_column_take(texts, &data->schema->classes, &data->schema->class_name);
    return QN_OK;
}

/* The text that names a number as a class. */
static void name_number(double value, char text[40]) {
    if (value == floor(value))
        snprintf(text, 40, "%d", (int)value);
    else
        qn__float_text((float)value, text);
}

static qn_status name_numbers(qn_data *data, const double *number, uint64_t *item, qn_error *err) {
    qn__text_set texts = {0};
    qn_status status = QN_OK;
    for (uint64_t i = 0; i < data->items && status == QN_OK; i++) {
        char text[40];
        uint32_t at = 0;
        name_number(number[i], text);
        status = qn__text_column_add(&texts, text, strlen(text), 1, &at, err);
        data->labels[i] = (int32_t)at;
        *item = i;
    }
    if (status == QN_OK)
        status = qn__labels_from_texts(data, &texts, err);
    qn__text_set_release(&texts);
    return status;
}

qn_status qn__labels_from_numbers(qn_data *data, const double *number, const char *task,
                                  uint64_t *item, qn_error *err) {
    int whole = 1;
    for (uint64_t i = 0; i < data->items && whole; i++)
        whole = number[i] == floor(number[i]);
    const int regress = task && strcmp(task, "regress") == 0;
    if (regress || (!whole && !(task && strcmp(task, "classify") == 0))) {
        const qn_status status = qn__data_need_targets(data, err);
        for (uint64_t i = 0; status == QN_OK && i < data->items; i++)
            data->targets[i] = (float)number[i];
        return status;
    }
    if (qn__data_need_labels(data, err) != QN_OK)
        return QN_MEMORY;
    for (*item = 0; *item < data->items; ++*item) {
        if (fabs(number[*item]) > INT32_MAX)
            return qn__fail(err, QN_INPUT, "the label of item %llu (from 0) is 2^31 or more",
                            (unsigned long long)*item);
        data->labels[*item] = (int32_t)number[*item];
    }
    return whole ? QN_OK : name_numbers(data, number, item, err);
}
