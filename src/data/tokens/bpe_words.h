/* The words of a text as a byte-level tokenizer cuts it: between added tokens, by the
 * pre-tokeniser. */
#ifndef QN_DATA_TOKENS_BPE_WORDS_H
#define QN_DATA_TOKENS_BPE_WORDS_H

#include "data/tokens/bpe.h"

/* Who gets them, in their order, and what one thread needs. */
typedef struct qn__bpe_words {
    const qn__bpe *bpe;
    qn_status (*word)(void *user, const uint8_t *word, size_t size, qn_error *err);
    qn_status (*added)(void *user, uint32_t token, qn_error *err);
    void *user;
    qn__split_worker split;
    uint8_t *copy; /* a text with a space before it */
    size_t copied;
} qn__bpe_words;

qn_status qn__bpe_words_make(qn__bpe_words *words, const qn__bpe *bpe, qn_error *err);
void qn__bpe_words_release(qn__bpe_words *words);
qn_status qn__bpe_words_each(qn__bpe_words *words, const uint8_t *text, size_t size, qn_error *err);
/* A place from `at` on where a text can be cut, so that its parts have the words of the whole. */
size_t qn__bpe_words_cut(const qn__bpe *bpe, const uint8_t *text, size_t size, size_t at);

#endif
