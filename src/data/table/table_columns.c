#include "data/table/table_columns.h"

/* Items at a time: their rows stay in the cache while the columns are taken out of them. */
enum { ROWS = 16 };

static inline float value_of(const qn_data *data, const void *item, uint32_t column) {
    return data->type == QN_U8    ? (float)((const uint8_t *)item)[column]
           : data->type == QN_F32 ? ((const float *)item)[column] + 0.0f
                                  : (float)qn__element_number(data->type, item, column);
}

static void gather_rows(const qn_data *data, const uint64_t *items, size_t rows, uint32_t first,
                        uint32_t columns, float *out, size_t stride) {
    const void *item[ROWS];
    for (size_t r = 0; r < rows; r++)
        item[r] = qn__data_item(data, items[r]);
    for (uint32_t k = 0; k < columns; k++, out += stride)
        if (first + k == data->features)
            for (size_t r = 0; r < rows; r++)
                out[r] = data->targets[items[r]] + 0.0f;
        else
            for (size_t r = 0; r < rows; r++)
                out[r] = value_of(data, item[r], first + k);
}

void qn__columns_gather(const qn_data *data, const uint64_t *order, uint64_t from, uint64_t to,
                        uint32_t first, uint32_t columns, float *out, size_t stride) {
    uint64_t items[ROWS];
    for (uint64_t i = from; i < to; i += ROWS, out += ROWS) {
        const size_t rows = to - i < ROWS ? (size_t)(to - i) : ROWS;
        for (size_t r = 0; r < rows; r++)
            items[r] = order ? order[i + r] : i + r;
        gather_rows(data, items, rows, first, columns, out, stride);
    }
}
