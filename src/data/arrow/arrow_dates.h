/* Columns of dates in an Arrow table: those of its types, and texts that are all dates
 * (docs/exactness.md 23.10). */
#ifndef QN_DATA_ARROW_ARROW_DATES_H
#define QN_DATA_ARROW_ARROW_DATES_H

#include "data/arrow/arrow_table.h"

/* What is known of a column so far; begins as 0. */
typedef struct qn__arrow_dates {
    uint64_t found, zones; /* dates, and those that name a zone */
    int others;            /* 1: some text is not a date, or they are not looked at */
    int uncounted;         /* 1: there were too many different texts to number them all */
    int time, hour;        /* 1: some date names a time, and one that is not midnight */
} qn__arrow_dates;

typedef struct qn__arrow_column qn__arrow_column;

/* Before the first value. Fails with QN_INPUT where a column of dates is the label or a weight. */
qn_status qn__arrow_dates_begin(qn__arrow_column *column, qn_error *err);

/* Fails with QN_INPUT where the cell of a type of dates is beyond the years 1 to 9999. */
qn_status qn__arrow_dates_range(const qn__arrow_column *column, uint64_t item,
                                const qn__arrow_cell *cell, qn_error *err);

/* Takes a cell of a column of dates, as qn__arrow_each hands it out; `user` is the column. */
qn_status qn__arrow_dates_put(void *user, uint64_t item, const qn__arrow_cell *cell, qn_error *err);

/* Looks at a text that is not missing. *taken is 1 where it need not be numbered, since all must be
 * dates. Fails with QN_INPUT where they are not, or QN_MEMORY. */
qn_status qn__arrow_dates_look(qn__arrow_column *column, uint64_t item, const qn__arrow_cell *cell,
                               int *taken, qn_error *err);

/* Whether the column holds dates, after the last portion. */
int qn__arrow_dates_hold(const qn__arrow_column *column);
/* Then describes it in the schema. The days of texts are put into the values. */
qn_status qn__arrow_dates_settle(qn__arrow_column *column, qn_error *err);

#endif
