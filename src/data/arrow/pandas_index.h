/* The columns that pandas' metadata of a table name as its index: names of rows, which are not
 * features (docs/exactness.md 23). pandas writes such metadata into Parquet and Arrow IPC files,
 * and into Arrow schemas, with the key "pandas". */
#ifndef QN_DATA_ARROW_PANDAS_INDEX_H
#define QN_DATA_ARROW_PANDAS_INDEX_H

#include "data/arrow/arrow_parts.h"

/* Puts the metadata of pandas, `size` bytes of JSON, into a schema, as the C interface has them.
 * Fails with QN_MEMORY. */
qn_status qn__pandas_put(struct ArrowSchema *schema, qn__pile *pile, const void *json, size_t size,
                         qn_error *err);

/* Marks the columns of a table that are an index: (*index)[column] is 1; for qn__free. NULL: none
 * is. Metadata of another form are ignored. Fails with QN_MEMORY. */
qn_status qn__pandas_index(const struct ArrowSchema *schema, uint8_t **index, qn_error *err);

#endif
