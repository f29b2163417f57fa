/* Columns of whole numbers that name items, such as customers or orders, and measure nothing. */
#ifndef QN_DATA_CELLS_ID_NUMBERS_H
#define QN_DATA_CELLS_ID_NUMBERS_H

#include "data/table/data.h"

/* Whether feature k holds numbers that look like ids: docs/formats.md has the rule. `name` is the
 * column's; it may be NULL. It is 0 when memory is short. */
int qn__looks_like_ids(const qn_data *data, uint32_t k, const char *name);

#endif
