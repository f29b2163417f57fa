/* Pieces of a text, such as its words and their pairs, as counts in buckets:
 * docs/exactness.md 25.62 and 24.84. */
#ifndef QN_DATA_CELLS_NGRAMS_H
#define QN_DATA_CELLS_NGRAMS_H

#include "base/error.h"
#include "data/table/grams.h"
#include <stdint.h>

typedef struct qn__ngram {
    uint32_t bucket, count;
} qn__ngram;

/* Those of one text, by ascending bucket. Begins as {0}; its memory serves one text after the
 * other. */
typedef struct qn__ngrams {
    qn__ngram *gram;
    uint32_t *found; /* the bucket of each piece, and as much space for sorting */
    char *folded;
    uint32_t count;                   /* of `gram` */
    size_t capacity, folded_capacity; /* of the three arrays */
} qn__ngrams;

/* *number: pieces that a text has; the bits of `which` do not count. 0 where memory is short (err
 * says so). */
int qn__ngrams_number(qn__ngrams *space, const char *text, const qn__grams *which, uint64_t *number,
                      qn_error *err);

/* The `s` of a text, by which texts differ from addresses and identifiers: 25.61. */
uint64_t qn__ngrams_spoken(const char *text);

/* Finds those of a text. Fails with QN_MEMORY. */
qn_status qn__ngrams_find(qn__ngrams *space, const char *text, const qn__grams *which,
                          qn_error *err);
void qn__ngrams_release(qn__ngrams *space);

#endif
