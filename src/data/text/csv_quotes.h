/* Where rows end although quoted cells hold line ends: pieces of a text can be walked before it is
 * known whether they begin within quotes, so that threads share a file. */
#ifndef QN_DATA_TEXT_CSV_QUOTES_H
#define QN_DATA_TEXT_CSV_QUOTES_H

#include <stdint.h>

/* What was read of a row so far; the same cells as qn__cell_read has. */
typedef enum qn__csv_state {
    QN__CSV_CELL,   /* a cell begins; perhaps blanks were read */
    QN__CSV_PLAIN,  /* in a cell without quotes */
    QN__CSV_QUOTED, /* within quotes */
    QN__CSV_QUOTE,  /* a quote within quotes: they end, or it is half of a doubled one */
    QN__CSV_CLOSED, /* after the quotes, before the cell's end */
    QN__CSV_STATES
} qn__csv_state;

/* What a piece of text does to each state at its beginning. */
typedef struct qn__csv_piece {
    uint64_t rows[QN__CSV_STATES]; /* that end in it */
    uint64_t line_ends;            /* in it, also within quotes */
    uint8_t after[QN__CSV_STATES]; /* the state at its end */
} qn__csv_piece;

void qn__csv_piece_walk(const char *at, const char *end, char separator, qn__csv_piece *out);

/* The first line end that ends a row, where the text at `at` is read in this state; `end`: none. */
const char *qn__csv_row_end(const char *at, const char *end, char separator, qn__csv_state state);

/* The line ends in a text. */
uint64_t qn__csv_line_ends(const char *at, const char *end);

#endif
