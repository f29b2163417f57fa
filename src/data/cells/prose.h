/* Columns of texts whose words tell something, such as reviews: docs/exactness.md 25.61. */
#ifndef QN_DATA_CELLS_PROSE_H
#define QN_DATA_CELLS_PROSE_H

#include "data/table/data.h"

/* Different texts that a column of texts may have: a float holds their numbers. */
enum { QN__PROSE_MAX = 1 << 24 };

/* What somebody says of a column. */
enum { QN__SAID_NOTHING, QN__SAID_CATEGORY, QN__SAID_TEXT };

/* Marks the columns of texts of a table that was read: those that are said to be, and unless
 * `finds` is 0 those that look so. A network gets `features` of them (qn__grams_read). Then checks
 * that no other column has more than QN__TEXTS_MAX texts. `path` is for messages, "" without a
 * file. Fails with QN_USAGE (features), QN_INPUT or QN_MEMORY. */
qn_status qn__prose_find(qn_data *data, int finds, const char *features, const char *path,
                         qn_error *err);

/* The same for column k, whose texts are those of the whole, where the data are a part of it:
 * `values` of the whole are not missing. A part alone needs no column of texts. */
qn_status qn__prose_find_column(qn_data *data, uint32_t k, uint64_t values, int finds,
                                const char *features, const char *path, qn_error *err);

/* Fails with QN_INPUT: features of texts are given, and a table has none. */
qn_status qn__prose_refuse_none(const char *path, qn_error *err);

/* 1 when category `k` looks so. 0 also where memory is short. */
int qn__prose_looks(const qn_data *data, uint32_t k);

/* Whether columns of texts are to be found: not for a model that has none, nor where the options
 * say so. */
int qn__prose_wanted(const qn_data_options *options);

#endif
