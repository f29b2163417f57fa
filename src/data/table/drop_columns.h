/* Leaving out columns of a table that is being read. */
#ifndef QN_DATA_TABLE_DROP_COLUMNS_H
#define QN_DATA_TABLE_DROP_COLUMNS_H

#include "data/table/data.h"

/* Removes the features k with drop[k] from the values, the schema, and what is kept beside both.
 * One feature or more stays, and the table has a schema. Where only the others made it a table of
 * floats, it becomes one of bytes. The digest is computed after it. */
void qn__data_drop_columns(qn_data *data, const uint8_t *drop);

#endif
