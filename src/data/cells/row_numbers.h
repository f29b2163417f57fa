/* Columns that only number or name the rows of a table, as some programs write them. */
#ifndef QN_DATA_CELLS_ROW_NUMBERS_H
#define QN_DATA_CELLS_ROW_NUMBERS_H

#include "base/text/text.h"
#include "data/table/data.h"

/* A column, as a user sees it. */
typedef struct qn__seen_column {
    uint64_t number;  /* in the file, from 1 */
    const char *name; /* NULL or "": it has none */
    int named;        /* 1: other columns have names */
    int is_label;     /* 1: it is the label, by default; 0: it is feature `feature` */
    uint32_t feature;
} qn__seen_column;

/* Adds a line, after a line end, where the column has no name though others have, where its values
 * are 0, 1, 2 and so on, or 1, 2, 3, and where they look like ids (id_numbers.h): what to do about
 * it. `data` has its values and labels. */
void qn__note_row_numbers(const qn_data *data, const qn__seen_column *column, qn__text *text);

#endif
