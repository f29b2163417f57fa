/* The parts of the CSV reader: cells and numbers (cell.h), rows (csv_rows.c), the first lines
 * (csv_header.h), what columns hold (csv_survey.h), the whole (csv.c). */
#ifndef QN_DATA_TEXT_CSV_H
#define QN_DATA_TEXT_CSV_H

#include "base/error.h"
#include "base/system/threads.h"
#include "data/bytes/source.h"
#include "data/cells/cell.h"
#include <quern/data.h>
#include <stddef.h>
#include <stdint.h>

/* How the cells of a special column are read. All other columns hold a finite number in each line.
 */
typedef enum qn__column_kind {
    QN__COLUMN_SKIP,     /* it is left out */
    QN__COLUMN_GAPS,     /* a feature of numbers, some of them missing */
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
    uint32_t dates; /* DATE: the parts that a network gets (date_parts.h) */
    int time, zone; /* DATE: its cells have times, and zones */
    union qn__wide_value
        *exact; /* the exact values of all rows (wide.h); NULL: they are not kept */
} qn__special;

/* What every line must look like. */
typedef struct qn__csv_shape {
    char separator;
    uint64_t columns;           /* cells in a line, the label's included */
    uint64_t label;             /* the label's cell from 0; == columns when there is none */
    uint64_t weight;            /* the weight's, likewise */
    uint32_t features;          /* columns that are read beside the label */
    int dates;                  /* 1: columns of dates are not categories */
    const char *date_format;    /* of dates; NULL: ISO 8601 */
    int marks, commas;          /* 1: QN__RULE_NONE holds, QN__RULE_COMMAS may apply */
    int known;                  /* 1: the table is read for a model */
    const qn__special *special; /* by ascending column; `column` of the last is UINT64_MAX */
} qn__csv_shape;

/* An invalid row, kept until the whole text is parsed: the first row is reported. */
typedef struct qn__row_failure {
    qn__row_fault fault;
    uint64_t row;    /* from 0, after the header */
    uint64_t column; /* cell from 0, or the number of cells found (FEW, MANY) */
    char text[64];   /* the cell */
} qn__row_failure;

/* What was seen in the cells of a column. */
typedef enum qn__cell_seen {
    QN__SEEN_ODD = 1,      /* a cell that is not a byte */
    QN__SEEN_FRACTION = 2, /* a number that is not whole, or 2^63 or more in magnitude */
    QN__SEEN_WIDE = 4      /* a whole number that is not a float */
} qn__cell_seen;

/* Where the cells of a line go that are not features. */
typedef struct qn__row_places {
    uint64_t row;
    void *label; /* int32_t or float as the shape says; not written when it has none */
    float *weight;
    uint8_t *seen; /* of each feature, qn__cell_seen of its cells; NULL: that is of no interest */
} qn__row_places;

/* Parses the line at `at` into `features` bytes, a label and a weight. Returns the beginning of the
 * next line. NULL: a cell of a feature is not a byte (digits alone, at most 255), or the line is
 * malformed. */
const char *qn__row_bytes(const qn__csv_shape *shape, const char *at, const char *end,
                          uint8_t *values, const qn__row_places *places);
/* The same for float32; NULL means that `failure` says what is wrong (its row is the caller's). */
const char *qn__row_floats(const qn__csv_shape *shape, const char *at, const char *end,
                           float *values, const qn__row_places *places, qn__row_failure *failure);
/* Takes the whole numbers of `count` columns, by ascending column, of a line that the function
 * before has parsed: that of column[j] goes to to[j][row], which a missing one leaves as it is. */
const char *qn__row_whole(const qn__csv_shape *shape, const char *at, const char *end,
                          const uint64_t *column, uint32_t count, int64_t *const *to, uint64_t row);
/* Takes no values: NULL where the line has another number of cells than the shape. */
const char *qn__row_count(const qn__csv_shape *shape, const char *at, const char *end,
                          qn__row_failure *failure);
/* The end of the line at `at`: its line end, or `end`. */
const char *qn__line_end(const char *at, const char *end);

#endif
