/* Numbers with a decimal comma, in text (docs/exactness.md 23.22). */
#ifndef QN_DATA_CELLS_COMMAS_H
#define QN_DATA_CELLS_COMMAS_H

#include "data/cells/cell.h"
#include "data/table/schema.h"

/* What a number of this notation has. */
enum {
    QN__COMMA_DECIMAL = 1,  /* a comma before decimals */
    QN__COMMA_GROUPED = 2,  /* points between thousands */
    QN__COMMA_THOUSANDS = 4 /* its comma may be a separator of thousands, as in 1,500 */
};
enum { QN__COMMA_BYTES = 128 };

/* Reads the whole cell as a number of this notation, and writes it with a decimal point and without
 * other marks: *size bytes. Returns -1 if it is not such a number or is longer than `number`; else
 * the QN__COMMA_ bits. */
int qn__comma_read(const qn__cell *cell, char number[QN__COMMA_BYTES], size_t *size);

/* A remedy for a text in a column of numbers, in a file that is read for a model. NULL unless the
 * text would be a missing value or a number in a file that is read without a model. */
const char *qn__text_remedy(const char *text);

/* A text such as "1,5" of a column whose texts may all be numbers; NULL: it has none. */
const char *qn__comma_example(const qn__feature *feature);

/* 1 + the first column that has such a text; 0: none has. `schema` may be NULL. */
uint32_t qn__comma_column(const qn__schema *schema);

#endif
