/* Cells: the texts of a table, and the numbers and dates that they are. Readers of CSV, and of all
 * other formats where a value is a text, read them here. */
#ifndef QN_DATA_CELLS_CELL_H
#define QN_DATA_CELLS_CELL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The text between two separators, without surrounding blanks or quotes. */
typedef struct qn__cell {
    const char *text;
    size_t size;
    int quoted;
    int broken; /* a quote that is not closed, or text after a closing one */
} qn__cell;

/* The cell of a text that ends in NUL. */
static inline qn__cell qn__cell_of(const char *text) {
    return (qn__cell){.text = text, .size = strlen(text)};
}

/* Reads the cell that begins at `at` and returns its end: a separator, a line end ('\n') or `end`.
 * Within quotes both are text. */
const char *qn__cell_read(const char *at, const char *end, char separator, qn__cell *cell);

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
/* 1 if the number is whole and below 2^63 in magnitude. */
int qn__decimal_to_whole(const qn__decimal *decimal, int64_t *out);
/* 1 if the whole cell is a number, which is stored in *decimal. */
int qn__cell_number(const qn__cell *cell, qn__decimal *decimal);

/* What a cell holds. */
typedef enum qn__content {
    QN__CONTENT_NUMBER,
    QN__CONTENT_GAP,      /* a missing value: an empty cell, a sign alone, NaN, NA, null, ? */
    QN__CONTENT_NONE,     /* the word none: missing among numbers, a text among texts and labels */
    QN__CONTENT_INFINITE, /* inf: refused among numbers */
    QN__CONTENT_TEXT
} qn__content;
qn__content qn__cell_content(const qn__cell *cell);
/* 1 when a cell of content TEXT or NONE means a missing value by the rule QN__RULE_NONE. */
int qn__cell_is_mark(const qn__cell *cell);

/* 1 when the cell is well-formed UTF-8 without a NUL. */
int qn__cell_is_utf8(const qn__cell *cell);
/* The cell's text for a message: at most 40 bytes, valid UTF-8, no control characters. */
void qn__cell_show(const qn__cell *cell, char text[64]);
void qn__cell_show_text(const char *text, char shown[64]);

struct qn__moment;
/* 1 when the whole cell is a date, perhaps with a time; `format` may be NULL: ISO 8601. */
int qn__cell_moment(const qn__cell *cell, const char *format, struct qn__moment *out);

/* What is wrong with a row of cells. */
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
    QN__ROW_LABEL_BROKEN, /* not whole */
    QN__ROW_LABEL_RANGE,  /* 2^31 or more */
    QN__ROW_WEIGHT,       /* the weight is missing, or no finite number from 0 */
    QN__ROW_ENCODING      /* a text that is not UTF-8 */
} qn__row_fault;

/* The label of a number: whole and below 2^31, with either sign; "3.0" and "3e0" are 3. */
qn__row_fault qn__decimal_to_label(const qn__decimal *decimal, int32_t *label);

/* What is wrong with a text as one word, such as "a word is empty". NULL: nothing. */
const char *qn__word_fault(const char *text, size_t size);

#endif
