/* The values of a table that lies in a file, column by column in another one. Columns of the first
 * file would be read with all others, again and again where memory does not hold them. */
#ifndef QN_STATISTICS_TURNED_COLUMNS_H
#define QN_STATISTICS_TURNED_COLUMNS_H

#include "data/table/data.h"
#include "data/table/table_space.h"

/* *out gets the values: those of column k begin at element k * data->items. For
 * qn__turned_columns_release. It stays without values where `data` is in memory. Fails as
 * qn__table_space_make. */
qn_status qn__turned_columns_make(const qn_data *data, const qn__table_space *space, qn_data *out,
                                  qn_error *err);
void qn__turned_columns_release(qn_data *turned);

/* As qn__columns_gather, of one column and all `items` items. */
void qn__turned_columns_gather(const qn_data *turned, const uint64_t *order, uint64_t items,
                               uint32_t column, float *out);

#endif
