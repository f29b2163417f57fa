/* The readers behind qn_data_open: each turns an opened source into the fields of a table. */
#ifndef QN_DATA_READERS_H
#define QN_DATA_READERS_H

#include "data/data.h"
#include "data/source.h"

/* Fills type, items, features, values, memory, release and, for CSV, labels; for IDX, the image
 * size. The caller sets digest, classes and format. After a failure qn_data_close releases what is
 * in `data`. `pool` is never NULL. */
qn_status qn__csv_read(qn__source *source, const qn_data_options *options, qn__pool *pool,
                       qn_data *data, qn_error *err);
qn_status qn__idx_read(qn__source *source, qn_data *data, qn_error *err);

/* Reads a file of labels, IDX with one dimension, for the items already in `data`. */
qn_status qn__idx_read_labels(const char *path, qn_data *data, qn_error *err);

#endif
