/* Pairs of neighbours in the words of a corpus: how often each occurs, and the most frequent one.
 * Start with {0}. */
#ifndef QN_DATA_TOKENS_MODELS_PAIR_COUNTS_H
#define QN_DATA_TOKENS_MODELS_PAIR_COUNTS_H

#include "base/error.h"

typedef struct qn__pair_count {
    uint64_t pair; /* left and right */
    int64_t count;
    uint32_t *word; /* words in which it may be */
    uint32_t words, capacity;
    uint32_t step;    /* the one in which it last became more frequent */
    uint32_t is_used; /* 0: the slot is free */
} qn__pair_count;

typedef struct qn__pair_entry {
    int64_t count;
    uint64_t pair;
} qn__pair_entry;

typedef struct qn__pair_counts {
    qn__pair_count *slot;
    uint32_t used, slots;
    qn__pair_entry *heap; /* the most frequent one first; counts may be old */
    size_t heaped, heap_capacity;
    uint64_t *more; /* pairs that became more frequent in this step */
    size_t more_count, more_capacity;
    uint32_t step;
} qn__pair_counts;

/* Adds to the count of a pair. Where `change` is above 0, it is also in word `word`. Fails with
 * QN_MEMORY. */
qn_status qn__pair_counts_add(qn__pair_counts *counts, uint32_t left, uint32_t right,
                              int64_t change, uint32_t word, qn_error *err);
/* Ends the step in which `merged` became one token: it occurs nowhere, and the pairs that became
 * more frequent can be the next ones. UINT64_MAX: none did. Fails with QN_MEMORY. */
qn_status qn__pair_counts_step(qn__pair_counts *counts, uint64_t merged, qn_error *err);
/* The most frequent pair, that with the lowest numbers of several (left ones first). Its words
 * are the caller's, for free(). 0: there is none that occurs twice. */
int qn__pair_counts_next(qn__pair_counts *counts, uint64_t *pair, uint32_t **word, uint32_t *words);
void qn__pair_counts_release(qn__pair_counts *counts);

#endif
