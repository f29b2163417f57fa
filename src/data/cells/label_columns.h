/* Columns of a table that are the labels of its items together (docs/exactness.md 24.15). */
#ifndef QN_DATA_CELLS_LABEL_COLUMNS_H
#define QN_DATA_CELLS_LABEL_COLUMNS_H

#include "data/table/data.h"

/* Makes labels of the features in data->label_columns, if there are any: data->several, with their
 * names in the schema. Such a column has numbers 0 and 1, or two texts, of which the first in the
 * order of bytes is 0. A missing value is a target that does not count. Fails with QN_MEMORY, or
 * with QN_INPUT where a column has something else; `path` is for messages. */
qn_status qn__label_columns_take(qn_data *data, const qn_data_options *options, const char *path,
                                 qn_error *err);

/* 0 or 1 where the text is the first or the second of a pair such as "no" and "yes", else -1. */
int qn__label_text_value(const char *text);

/* The names as one text, a list in which each can be found (qn_model_label_name), for qn__free.
 * NULL if out of memory. */
char *qn__label_list(char *const *name, uint32_t count, qn_error *err);

#endif
