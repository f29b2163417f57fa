/* A table in memory as the part of a rank. */
#ifndef QN_DATA_PARTS_PARTS_MEMORY_H
#define QN_DATA_PARTS_PARTS_MEMORY_H

#include "data/parts/parts.h"

/* A table of its own with the rows of `given`, whose values it borrows: `given` must outlive it.
 * Classes become quantities where options->task is "regress". Close it in any case. Fails with
 * QN_UNSUPPORTED for tokens and for tables that are in parts already, with QN_INPUT where the names
 * of classes are texts, or with QN_MEMORY. */
qn_status qn__parts_lend(const qn_data *given, const qn_data_options *options, qn_data **out,
                         qn_error *err);

/* Whether the values of `own` are borrowed, so that they must not change. */
int qn__parts_is_lent(const qn_data *own);

#endif
