/* A set of texts, each with a number: the categories of a column, or classes. */
#ifndef QN_DATA_CELLS_TEXT_SET_H
#define QN_DATA_CELLS_TEXT_SET_H

#include "base/error.h"
#include "data/cells/cell.h"
#include "data/table/depot.h"
#include <stdint.h>

/* Begins as {0}; released in any case. */
typedef struct qn__text_set {
    char **text;    /* by number */
    uint32_t *hash; /* of each text */
    uint32_t count, capacity;
    uint32_t *slot; /* of a hash table: number + 1; 0: free */
    uint32_t slots; /* a power of two, or 0 */
    /* Where the texts are, from the beginning on, for sets of many texts; NULL: each in a block. */
    qn__depot *depot;
    char *space; /* of the depot, for the next texts */
    size_t left, piece;
} qn__text_set;

#define QN__NO_TEXT UINT32_MAX

/* Adds the text of a cell, of which doubled quotes are one; a text that is there stays as it was.
 * Fails with QN_MEMORY. */
qn_status qn__text_set_add(qn__text_set *set, const qn__cell *cell, qn_error *err);
/* The same of all texts of another set, which has the same depot, without copies. */
qn_status qn__text_set_join(qn__text_set *set, const qn__text_set *other, qn_error *err);
/* The number of a cell's text, or QN__NO_TEXT. */
uint32_t qn__text_set_find(const qn__text_set *set, const qn__cell *cell);
/* Numbers the texts anew, from 0: numbers by value, then texts ascending bytewise. With `numbers`
 * 0 numbers are texts like others. Fails with QN_MEMORY. */
qn_status qn__text_set_sort(qn__text_set *set, int numbers, qn_error *err);
void qn__text_set_release(qn__text_set *set);

/* The text of a number that is a class, the same for all ways to write it: of a whole number its
 * digits ("-1"), else the shortest text of a float (docs/exactness.md 1.6). 0 when it has none: it
 * is whole and 2^31 or more, or beyond float. The result points into `text`. */
int qn__class_number(const qn__cell *cell, char text[40], qn__cell *out);
/* The value of that text; 0 where the cell has none. */
int qn__class_value(const qn__cell *cell, double *value);

#endif
