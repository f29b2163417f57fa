/* The parts of the CSV reader: cells and numbers (csv_cells.c), rows (csv_rows.c), the file
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

/* The text between two separators, without surrounding blanks or quotes. */
typedef struct qn__cell {
    const char *text;
    size_t size;
    int quoted;
    int broken; /* a quote that is not closed, or text after a closing one */
} qn__cell;

/* Reads the cell that begins at `at` and returns its end: a separator, a line end ('\n') or `end`.
 * `multiline` allows line ends in a quoted cell (the header only). */
const char *qn__cell_read(const char *at, const char *end, char separator, int multiline,
                          qn__cell *cell);

/* A decimal number: (-1)^negative * mantissa * 10^exponent. */
typedef struct qn__decimal {
    uint64_t mantissa;
    int exponent;
    int negative;
    int cut; /* digits other than zero did not fit into `mantissa` */
} qn__decimal;

/* Reads [+-]digits[.digits][e[+-]digits] at `at`; returns its end, or NULL if there is no
 * number. */
const char *qn__decimal_read(const char *at, const char *end, qn__decimal *out);
/* The nearest float32, if a few exact operations give it; otherwise 0. */
int qn__decimal_to_float(const qn__decimal *decimal, float *out);
/* 1 if the whole cell is a number, which is stored in *decimal. */
int qn__cell_number(const qn__cell *cell, qn__decimal *decimal);
/* 1 if the cell is empty or means a missing or non-finite value: NaN, inf, NA, null. */
int qn__cell_is_gap(const qn__cell *cell);
/* The cell's text for a message: at most 40 bytes, valid UTF-8, no control characters. */
void qn__cell_show(const qn__cell *cell, char text[64]);

/* ------------------------------------------------------------------ rows */

/* The format of every line. */
typedef struct qn__csv_shape {
    char separator;
    uint64_t columns; /* cells in a line, including the label's */
    uint64_t label;   /* index of the label's cell; == columns if there is none */
    uint32_t features;
} qn__csv_shape;

typedef enum qn__row_fault {
    QN__ROW_FINE = 0,
    QN__ROW_FEW,      /* fewer cells than the first line */
    QN__ROW_MANY,     /* more */
    QN__ROW_BLANK,    /* empty */
    QN__ROW_QUOTE,    /* unbalanced quotes */
    QN__ROW_TEXT,     /* text instead of a number */
    QN__ROW_EMPTY,    /* a cell without a value */
    QN__ROW_INFINITE, /* nan, inf */
    QN__ROW_RANGE,    /* beyond float32 */
    QN__ROW_NO_LABEL, /* the label's cell is empty */
    QN__ROW_LABEL_TEXT,
    QN__ROW_LABEL_BROKEN, /* not a whole number */
    QN__ROW_LABEL_SIGN,   /* negative */
    QN__ROW_LABEL_RANGE   /* 2^31 or more */
} qn__row_fault;

/* An invalid row, kept until the whole text is parsed: the first row is reported. */
typedef struct qn__row_failure {
    qn__row_fault fault;
    uint64_t row;    /* from 0, after the header */
    uint64_t column; /* cell from 0, or the number of cells found (FEW, MANY) */
    char text[64];   /* the cell */
} qn__row_failure;

/* Parses the line at `at` into `features` bytes and a label (not written if the shape has none).
 * Returns the start of the next line, or NULL if a cell is not a whole number up to 255 or the line
 * is otherwise invalid. */
const char *qn__row_bytes(const qn__csv_shape *shape, const char *at, const char *end,
                          uint8_t *values, int32_t *label);
/* The same for float32; NULL: `failure` describes the error, except its row, which the caller
 * sets. */
const char *qn__row_floats(const qn__csv_shape *shape, const char *at, const char *end,
                           float *values, int32_t *label, qn__row_failure *failure);

#endif
