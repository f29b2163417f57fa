/* Converts the columns of an Arrow table to those of a data set: takes the values of each portion,
 * and at the end decides types and categories. */
#ifndef QN_DATA_ARROW_ARROW_COLUMNS_H
#define QN_DATA_ARROW_ARROW_COLUMNS_H

#include "data/arrow/arrow_dates.h"
#include "data/arrow/arrow_table.h"
#include "data/cells/text_set.h"
#include "data/cells/wide_gather.h"

typedef enum qn__arrow_use { QN__ARROW_FEATURE, QN__ARROW_LABEL, QN__ARROW_WEIGHT } qn__arrow_use;

/* The first members are the caller's, the others begin as 0. */
struct qn__arrow_column {
    const qn__arrow_table *table;
    qn_data *data;
    uint64_t column;
    qn__arrow_use use;
    uint32_t feature; /* its number, of a FEATURE */
    int category; /* not 0: an option says that the column holds categories or texts (prose.h) */
    qn__arrow_kind kind;
    int scale; /* of a DECIMAL */
    const qn_data_options *options;
    qn__arrow_dates dates;   /* of DATE, and of texts that may be dates */
    qn__wide_gather *gather; /* of a FEATURE that may be wide; else NULL */
    qn__exact exact;         /* what is kept exactly, once it is settled */
    qn__wide_value *value;   /* of each item, from qn__alloc; NULL: nothing is kept */
    int not_bytes;           /* some value is not a whole number from 0 to 255, so far */
    int there;               /* the values of this portion are in the data set already */
    int regress;             /* labels are targets */
    int listed;              /* texts go to the list of the data set */
    char *replaced;          /* space for a text in which U+FFFD stands for U+0000 */
    size_t replaced_size;
    uint64_t zeros, zeroed; /* characters U+0000, and the item of the first one */
    qn__text_set texts;     /* different ones, in the order of appearance */
    double *number;         /* labels of FLOAT, and of DECIMAL with a scale */
    uint32_t *order;        /* a category's number by its place in that order, once it is settled */
};

/* Finds out what the column holds, from the schema. Fails with QN_INPUT where that cannot be what
 * it is used for. */
qn_status qn__arrow_column_begin(qn__arrow_column *column, const char *task, qn_error *err);

/* Makes space for labels and weights of data->items items. */
qn_status qn__arrow_column_make_space(qn__arrow_column *column, qn_error *err);

/* Sets `not_bytes` from the values of this portion. */
qn_status qn__arrow_column_look(qn__arrow_column *column, qn_error *err);

/* Takes the values of this portion, unless they are there. Those of a category are numbers in the
 * order of appearance. Fails with QN_INPUT, with item and column. */
qn_status qn__arrow_column_take(qn__arrow_column *column, qn_error *err);

/* After the last portion. The values of a category must then be replaced by those in `order`. */
qn_status qn__arrow_column_settle(qn__arrow_column *column, const char *task, qn_error *err);

void qn__arrow_column_release(qn__arrow_column *column);

#endif
