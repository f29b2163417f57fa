/* Which columns of a table are read, and as what: the same rules in every format that has columns
 * (docs/exactness.md 2.1.4). */
#ifndef QN_DATA_CELLS_COLUMNS_H
#define QN_DATA_CELLS_COLUMNS_H

#include "base/error.h"
#include "data/table/data.h"
#include <stdint.h>

/* How the cells of a special column are read. All other columns hold a finite number in each line.
 */
typedef enum qn__column_kind {
    QN__COLUMN_SKIP,     /* it is left out */
    QN__COLUMN_MISSING,  /* a feature of numbers, some of them missing */
    QN__COLUMN_CATEGORY, /* a feature: the number of its text in `texts`, or missing */
    QN__COLUMN_DATE,     /* a feature: the days of its date, or missing */
    QN__COLUMN_INDEX,    /* the label: a whole number, as int32_t */
    QN__COLUMN_CLASS,    /* the label: the number of its text in `texts`, as int32_t */
    QN__COLUMN_REAL,     /* the label: a finite number, as float */
    QN__COLUMN_WEIGHT    /* the weight: a finite number from 0, as float */
} qn__column_kind;

typedef struct qn__special {
    uint64_t column; /* from 0 */
    qn__column_kind kind;
    int marks;  /* 1: of a feature: cells that are marks (qn__cell_is_mark) are missing */
    int commas; /* 1: its numbers have a decimal comma (data/cells/commas.h) */
    struct qn__text_set *texts;
    int listed;     /* CATEGORY: its texts go to the list of the data set, and `texts` is NULL */
    uint32_t dates; /* DATE: the parts that a network gets (date_parts.h) */
    int time, zone; /* DATE: its cells have times, and zones */
    union qn__wide_value
        *exact; /* the exact values of all rows (wide.h); NULL: they are not kept */
} qn__special;

/* The form of every row: how many cells it has, and what they are. */
typedef struct qn__row_shape {
    char separator;             /* of text; 0: the format has types */
    uint64_t columns;           /* cells in a row, the label's included */
    uint64_t label;             /* the label's cell from 0; == columns when there is none */
    uint64_t weight;            /* the weight's, likewise */
    uint32_t features;          /* columns that are read beside the label */
    int spread;                 /* 1: some quoted cells of a text hold line ends */
    int dates;                  /* 1: columns of dates are not categories */
    const char *date_format;    /* of dates; NULL: ISO 8601 */
    int marks, commas;          /* 1: QN__RULE_NONE holds, QN__RULE_COMMAS may apply */
    int known;                  /* 1: the table is read for a model */
    const qn__special *special; /* by ascending column; `column` of the last is UINT64_MAX */
} qn__row_shape;

typedef struct qn__columns {
    const char *path; /* for messages */
    qn__row_shape shape;
    qn__special *special; /* what shape.special points to: the label and what is left out */
    char **names;         /* of the columns, or NULL when there is no header */
    uint8_t *categories; /* columns that are known to hold categories or texts: QN__SAID_CATEGORY or
                            QN__SAID_TEXT of prose.h, else 0; NULL: none is known */
    uint8_t *index;      /* 1 for each column that is the index of pandas; NULL: none is. After
                            qn__columns_choose: 1 for those that are left out for this reason */
    uint64_t last;       /* the last column that is not an index, from 1 */
    int left_index;      /* 1: the index changed which columns are read */
    qn__label_columns *labels; /* columns that are labels together, and are read as features; NULL:
                                  not several are */
    int whole;                 /* 1: the text that names the label could also be a list of labels */
} qn__columns;

/* Fills shape.label, shape.weight, shape.features, shape.dates and the list of special columns from
 * the options, with the label as a number. Before: path, shape.columns, shape.separator, names and
 * index. Fails with QN_INPUT or QN_MEMORY. Release in any case. */
qn_status qn__columns_choose(qn__columns *columns, const qn_data_options *options, qn_error *err);
void qn__columns_release(qn__columns *columns);
/* The name of a column moves to *to; NULL when it has none. */
void qn__columns_take_name(const qn__columns *columns, uint64_t column, char **to);
/* Notes in `data` what was decided in doubt. Fails with QN_MEMORY. */
qn_status qn__columns_note(const qn__columns *columns, qn_data *data, qn_error *err);
/* The columns that are labels together move to `data`. */
void qn__columns_give_labels(qn__columns *columns, qn_data *data);
/* Says in `where` which column is meant. */
void qn__columns_at(const qn__columns *columns, uint64_t column, qn_error *err);

#endif
