/* A table of different strings of bytes, each with a number from 0 in the order in which they came,
 * and a count. Start with {0}. */
#ifndef QN_DATA_TOKENS_MODELS_WORD_TABLE_H
#define QN_DATA_TOKENS_MODELS_WORD_TABLE_H

#include "base/error.h"
#include <string.h>

typedef struct qn__word {
    size_t at; /* its bytes in `bytes` */
    uint64_t count;
    uint32_t size, hash;
} qn__word;

typedef struct qn__word_table {
    qn__word *word;
    char *bytes;
    uint32_t *slot; /* 1 + a number; 0: free */
    size_t bytes_used, bytes_capacity;
    uint32_t count, capacity, slots; /* slots: a power of two, more than twice `count` */
} qn__word_table;

#define QN__WORD_NONE UINT32_MAX

/* The number of a string; QN__WORD_NONE: it is not there. Any number of threads may look for one
 * while none adds. */
uint32_t qn__word_find(const qn__word_table *table, const char *bytes, size_t size);
/* Adds `times` to the count of a string, which is added where it is not there. Its number in
 * *number, which may be NULL. Fails with QN_MEMORY. */
qn_status qn__word_add(qn__word_table *table, const char *bytes, size_t size, uint64_t times,
                       uint32_t *number, qn_error *err);
/* Puts the words in the order of `before` (as of qsort, and never 0 for two words) and drops those
 * from `most` on. */
qn_status qn__word_order(qn__word_table *table,
                         int (*before)(const qn__word_table *table, const qn__word *a,
                                       const qn__word *b),
                         uint32_t most, qn_error *err);
void qn__word_table_release(qn__word_table *table);

static inline const char *qn__word_bytes(const qn__word_table *table, const qn__word *word) {
    return table->bytes + word->at;
}

/* As memcmp; of two strings of which one begins the other, the shorter one is first. */
static inline int qn__word_compare(const char *a, size_t a_size, const char *b, size_t b_size) {
    const size_t both = a_size < b_size ? a_size : b_size;
    const int differs = both ? memcmp(a, b, both) : 0;
    return differs ? differs : (a_size > b_size) - (a_size < b_size);
}

#endif
