#include "statistics/turned_columns.h"

#include <string.h>

/* Bytes of rows at a time: they stay in memory, and the ends of all columns, too. Columns at a
 * time: each has a line of the cache. */
enum { ROWS = 1 << 22, COLUMNS = 64 };

/* Rows from .. end - 1. */
static void turn(const qn_data *data, uint64_t from, uint64_t end, uint8_t *to) {
    const size_t size = qn__element_of(data->type)->size;
    for (uint32_t first = 0; first < data->features; first += COLUMNS) {
        const uint32_t left = data->features - first, count = left < COLUMNS ? left : COLUMNS;
        for (uint64_t i = from; i < end; i++) {
            const uint8_t *row = (const uint8_t *)qn__data_item(data, i) + first * size;
            for (uint32_t k = 0; k < count; k++)
                memcpy(to + ((first + k) * data->items + i) * size, row + k * size, size);
        }
    }
}

qn_status qn__turned_columns_make(const qn_data *data, const qn__table_space *space, qn_data *out,
                                  qn_error *err) {
    *out = (qn_data){.type = data->type, .features = 1, .buffer = space};
    out->items = data->items * data->features;
    if (!data->in_file)
        return QN_OK;
    const qn_status status = qn__table_space_make(out, err);
    const uint64_t rows = ROWS / qn__data_stride(data) + 1;
    for (uint64_t i = 0; status == QN_OK && i < data->items; i += rows)
        turn(data, i, data->items - i < rows ? data->items : i + rows, qn__table_space_values(out));
    return status;
}

void qn__turned_columns_release(qn_data *turned) {
    if (turned->release)
        turned->release(turned->memory);
}

void qn__turned_columns_gather(const qn_data *turned, const uint64_t *order, uint64_t items,
                               uint32_t column, float *out) {
    const uint8_t *bytes = turned->values + column * items;
    const float *number = (const float *)(const void *)turned->values + column * items;
    for (uint64_t i = 0; i < items; i++) {
        const uint64_t at = order ? order[i] : i;
        out[i] = turned->type == QN_U8 ? (float)bytes[at] : number[at] + 0.0f;
    }
}
