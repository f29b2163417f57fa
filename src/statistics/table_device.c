#include "statistics/table_device.h"

#include "base/memory.h"
#include "kernels/kernels.h"
#include "data/table/table_columns.h"
#include <string.h>

static uint32_t size_of(const qn__table_device *t) { return t->bytes ? 1 : sizeof(float); }

qn_status qn__table_device_make(const qn_data *data, const uint64_t *order, qn__table_device *out,
                                qn_error *err) {
    const size_t stride = qn__data_stride(data);
    *out = (qn__table_device){.values = data->values,
                              .bytes = data->type == QN_U8 && !data->targets,
                              .rows = data->items,
                              .columns = qn__columns_of(data)};
    const int gathers = data->targets || qn__element_is_token(data->type);
    if (!order && !data->index && !gathers)
        return QN_OK;
    out->copy = qn__alloc(data->items, (uint64_t)out->columns * size_of(out), err);
    out->values = out->copy;
    if (!out->copy)
        return QN_MEMORY;
    for (uint64_t i = 0; i < data->items; i++) {
        const uint64_t item = order ? order[i] : i;
        if (gathers)
            qn__columns_gather(data, &item, 0, 1, 0, out->columns,
                               (float *)out->copy + i * out->columns, 1);
        else
            memcpy((char *)out->copy + i * stride, qn__data_item(data, item), stride);
    }
    return QN_OK;
}

void qn__table_device_release(qn__table_device *table) {
    for (int language = 0; language < 2; language++)
        qn__text_release(&table->text[language]);
    qn__free(table->copy);
    table->copy = NULL;
}

qn__kernel_array qn__table_device_array(const qn__table_device *table) {
    const uint32_t each = size_of(table);
    return (qn__kernel_array){.use = QN__KERNEL_WHOLE,
                              .each = each,
                              .bytes = table->rows * table->columns * each,
                              .data = table->values};
}

qn_status qn__table_device_program(qn__table_device *table, const char *macros, const char *kernel,
                                   qn__kernel_job *job, qn_error *err) {
    for (int language = 0; language < 2; language++) {
        qn__text *text = &table->text[language];
        qn__text_add(text, "%s%s%s%s", qn__exact_text((qn__language)language),
                     table->bytes ? "#define QN_TABLE_BYTES 1\n" : "", macros, kernel);
        if (text->failed)
            return qn__fail_memory(err, 1, text->size);
        job->text[language] = text->data;
    }
    job->smaller = "leave the device out: it takes a table that fits in its memory";
    return QN_OK;
}

float qn__table_device_value(const qn__table_device *table, uint64_t row, uint32_t column) {
    const uint64_t at = row * table->columns + column;
    return table->bytes ? (float)((const uint8_t *)table->values)[at]
                        : ((const float *)table->values)[at];
}

void qn__table_device_add(const uint64_t *words, int count, int power, qn__exact_sum *sum) {
    const int negative = words[count - 1] >> 63 != 0;
    uint64_t carry = (uint64_t)negative;
    for (int i = 0; i < count; i++) {
        const uint64_t word = (negative ? ~words[i] : words[i]) + carry;
        carry = carry && word == 0;
        if (word)
            qn__exact_add_scaled(sum, word, power + 64 * i, negative);
    }
}
