/* Columns of dates in a table. Their values are days since 1970-01-01; those with times have their
 * exact moments too. */
#ifndef QN_DATA_CELLS_DATE_COLUMN_H
#define QN_DATA_CELLS_DATE_COLUMN_H

#include "data/table/data.h"

/* The moment at which a day begins. A fraction of a day, as of a mean, is dropped; days out of
 * range become the nearest day in range. */
int64_t qn__moment_of_days(float days);

/* The nearest moment of the years 1 to 9999: another process that shares the data may have written
 * anything. */
int64_t qn__moment_in_range(int64_t moment);

/* The moment of an item in a column of dates, whose value is not missing. */
int64_t qn__data_moment(const qn_data *data, uint64_t item, uint32_t feature);

#endif
