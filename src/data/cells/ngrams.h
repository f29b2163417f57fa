/* The words of a text and their pairs as counts in buckets: docs/exactness.md 25.62. */
#ifndef QN_DATA_CELLS_NGRAMS_H
#define QN_DATA_CELLS_NGRAMS_H

#include "base/error.h"
#include <stdint.h>

typedef struct qn__ngram {
    uint32_t bucket, count;
} qn__ngram;

/* Those of one text, by ascending bucket. Begins as {0}; its memory serves one text after the
 * other. */
typedef struct qn__ngrams {
    qn__ngram *gram;
    uint32_t *found; /* the bucket of each word and pair */
    char *folded;
    uint32_t count;                   /* of `gram` */
    size_t capacity, folded_capacity; /* of the three arrays */
} qn__ngrams;

/* *number: words and pairs of words that a text has. 0 where memory is short (err says so). */
int qn__ngrams_number(qn__ngrams *space, const char *text, uint64_t *number, qn_error *err);

/* The `s` of a text, by which texts differ from addresses and identifiers: 25.61. */
uint64_t qn__ngrams_spoken(const char *text);

/* Finds those of a text in 2^bits buckets. Fails with QN_MEMORY. */
qn_status qn__ngrams_find(qn__ngrams *space, const char *text, uint32_t bits, qn_error *err);
void qn__ngrams_release(qn__ngrams *space);

#endif
