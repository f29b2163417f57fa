/* Where the words of a text begin among its tokens (docs/exactness.md 25.47). */
#ifndef QN_DATA_TABLE_TEXT_WORDS_H
#define QN_DATA_TABLE_TEXT_WORDS_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

typedef struct qn__text_words {
    uint32_t each; /* numbers of an item: one for each position, and one after them */
    /* Of a position where a word begins: how many words there are up to it, that one included,
     * after the one before that has a position; else 0. The last number: words after them. */
    uint32_t *gap;
    int mapped; /* 1: the numbers belong to someone else */
} qn__text_words;

/* Space for items of `positions` each, all 0. NULL, with QN_MEMORY in err: out of memory. */
qn__text_words *qn__text_words_create(uint64_t items, uint32_t positions, qn_error *err);
void qn__text_words_free(qn__text_words *words); /* accepts NULL */

static inline uint32_t *qn__text_words_of(const qn__text_words *words, uint64_t item) {
    return words->gap + (size_t)item * words->each;
}

#endif
