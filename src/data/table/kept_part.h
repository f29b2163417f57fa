/* Exact values of a part of a table. */
#ifndef QN_DATA_TABLE_KEPT_PART_H
#define QN_DATA_TABLE_KEPT_PART_H

#include "data/table/data.h"

/* Gives a part of a table its exact values: its item i is item[i] of `from`. `part` has its items,
 * values, features and schema. Its columns are wide, or kept (kept.h), as those of a file with
 * these items alone. */
qn_status qn__kept_part(const qn_data *from, const uint64_t *item, qn_data *part, qn_error *err);

#endif
