/* The parts of the CSV reader: cells and numbers (cell.h), rows (csv_rows.c), the first lines
 * (csv_header.h), what columns hold (csv_survey.h), the whole (csv.c). */
#ifndef QN_DATA_TEXT_CSV_H
#define QN_DATA_TEXT_CSV_H

#include "base/error.h"
#include "base/system/threads.h"
#include "data/bytes/source.h"
#include "data/cells/cell.h"
#include "data/cells/columns.h"
#include <quern/data.h>
#include <stddef.h>
#include <stdint.h>

/* An invalid row, kept until the whole text is parsed: the first row is reported. */
typedef struct qn__row_failure {
    qn__row_fault fault;
    uint64_t line;   /* its first one, from 0, after the header */
    uint64_t column; /* cell from 0, or the number of cells found (FEW, MANY) */
    char text[64];   /* the cell */
} qn__row_failure;

/* What was seen in the cells of a column. */
typedef enum qn__cell_seen {
    QN__SEEN_NOT_BYTE = 1, /* a cell that is not a byte */
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

/* Parses the row at `at` into `features` bytes, a label and a weight. Returns the beginning of the
 * next row. NULL: a cell of a feature is not a byte (digits alone, at most 255), or the row is
 * malformed. */
const char *qn__row_bytes(const qn__row_shape *shape, const char *at, const char *end,
                          uint8_t *values, const qn__row_places *places);
/* The same for float32; NULL means that `failure` says what is wrong (its line is the caller's). */
const char *qn__row_floats(const qn__row_shape *shape, const char *at, const char *end,
                           float *values, const qn__row_places *places, qn__row_failure *failure);
/* Takes the whole numbers of `count` columns, by ascending column, of a line that the function
 * before has parsed: that of column[j] goes to to[j][row], which a missing one leaves as it is. */
const char *qn__row_whole(const qn__row_shape *shape, const char *at, const char *end,
                          const uint64_t *column, uint32_t count, int64_t *const *to, uint64_t row);
/* Adds the text of one column of a line to a list; a malformed line is left for the parser to
 * report. NULL: out of memory. */
const char *qn__row_listed(const qn__row_shape *shape, const char *at, const char *end,
                           const qn__special *listed, qn__text_list *list, qn_error *err);
/* Takes no values: NULL where the line has another number of cells than the shape. */
const char *qn__row_count(const qn__row_shape *shape, const char *at, const char *end,
                          qn__row_failure *failure);
/* The end of the line at `at`: its line end, or `end`. */
const char *qn__line_end(const char *at, const char *end);
/* The end of the row at `at`, likewise: a row is a line, but for line ends in quoted cells. */
const char *qn__row_end(const qn__row_shape *shape, const char *at, const char *end);

#endif
