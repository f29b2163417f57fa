/* The columns of a data set: features, and then the real labels. */
#ifndef QN_DATA_TABLE_TABLE_COLUMNS_H
#define QN_DATA_TABLE_TABLE_COLUMNS_H

#include "data/table/data.h"

static inline uint32_t qn__columns_of(const qn_data *data) {
    return data->features + (data->targets != NULL);
}

/* Categories of a column; 0: it has numbers. */
static inline uint32_t qn__column_categories(const qn_data *data, uint32_t column) {
    return column < data->features && data->schema ? data->schema->feature[column].categories : 0;
}

/* Copies `columns` columns from `first` on, of items from .. to - 1, to `out`: column k begins at k
 * * stride, with item `from`. Item i of the result is item order[i]; NULL: item i. -0 becomes +0.
 */
void qn__columns_gather(const qn_data *data, const uint64_t *order, uint64_t from, uint64_t to,
                        uint32_t first, uint32_t columns, float *out, size_t stride);

#endif
