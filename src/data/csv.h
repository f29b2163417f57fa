/* The parts of the CSV reader: cells and numbers (csv_cells.c), rows (csv_rows.c), the whole
 * (csv.c). */
#ifndef QN_DATA_CSV_H
#define QN_DATA_CSV_H

#include "base/error.h"
#include "base/threads.h"
#include "data/source.h"
#include <quern/data.h>
#include <stddef.h>
#include <stdint.h>

/* ------------------------------------------------------------------ cells */

/* What stands between two separators, without blanks around it or its quotes. */
typedef struct qn__cell {
    const char *text;
    size_t size;
    int quoted;
    int broken; /* a quote that is not closed, or text behind a closed one */
} qn__cell;

/* Reads the cell that begins at `at` and returns where it ends: at a separator, a line's end ('\n')
 * or `end`. `multiline` lets a quoted cell hold line ends (the header only). */
const char *qn__cell_read(const char *at, const char *end, char separator, int multiline,
                          qn__cell *cell);

/* A decimal number: (-1)^negative * mantissa * 10^exponent. */
typedef struct qn__decimal {
    uint64_t mantissa;
    int exponent;
    int negative;
    int cut; /* digits other than zero did not fit into `mantissa` */
} qn__decimal;

/* Reads [+-]digits[.digits][e[+-]digits] at `at`; returns its end, or NULL when there is no number.
 */
const char *qn__decimal_read(const char *at, const char *end, qn__decimal *out);
/* The nearest float32, where a few operations give it for certain; 0 when they do not. */
int qn__decimal_to_float(const qn__decimal *decimal, float *out);
/* 1 when the whole cell is a number; then *decimal is it. */
int qn__cell_number(const qn__cell *cell, qn__decimal *decimal);
/* 1 when the cell is empty or stands for a value that is missing or not finite: NaN, inf, NA, null.
 */
int qn__cell_is_gap(const qn__cell *cell);
/* The cell's text for a message: at most 40 bytes, valid UTF-8, no control characters. */
void qn__cell_show(const qn__cell *cell, char text[64]);

/* ------------------------------------------------------------------ rows */

/* What every line must look like. */
typedef struct qn__csv_shape {
    char separator;
    uint64_t columns; /* cells in a line, the label's included */
    uint64_t label;   /* the label's cell from 0; == columns when there is none */
    uint32_t features;
} qn__csv_shape;

typedef enum qn__row_fault {
    QN__ROW_FINE = 0,
    QN__ROW_FEW,      /* fewer cells than the first line */
    QN__ROW_MANY,     /* more */
    QN__ROW_BLANK,    /* nothing at all */
    QN__ROW_QUOTE,    /* quotes that do not pair */
    QN__ROW_TEXT,     /* text where a number is due */
    QN__ROW_EMPTY,    /* a cell without a value */
    QN__ROW_INFINITE, /* nan, inf */
    QN__ROW_RANGE,    /* beyond float32 */
    QN__ROW_NO_LABEL, /* the label's cell is empty */
    QN__ROW_LABEL_TEXT,
    QN__ROW_LABEL_BROKEN, /* not whole */
    QN__ROW_LABEL_SIGN,   /* negative */
    QN__ROW_LABEL_RANGE   /* 2^31 or more */
} qn__row_fault;

/* Where and how a row is wrong, kept until the whole text is parsed: the first row counts. */
typedef struct qn__row_failure {
    qn__row_fault fault;
    uint64_t row;    /* from 0, behind the header */
    uint64_t column; /* cell from 0, or the number of cells there were (FEW, MANY) */
    char text[64];   /* the cell */
} qn__row_failure;

/* Parses the line at `at` into `features` bytes and a label (not written when the shape has none).
 * Returns the beginning of the next line, or NULL when any cell is no plain whole number up to 255,
 * or the line is wrong in whatever way. */
const char *qn__row_bytes(const qn__csv_shape *shape, const char *at, const char *end,
                          uint8_t *values, int32_t *label);
/* The same for float32; NULL means that `failure` says what is wrong (its row is the caller's). */
const char *qn__row_floats(const qn__csv_shape *shape, const char *at, const char *end,
                           float *values, int32_t *label, qn__row_failure *failure);

#endif
