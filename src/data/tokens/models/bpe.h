/* A byte-pair encoding of a tokenizer.json, on bytes or characters (docs/exactness.md 25.53). */
#ifndef QN_DATA_TOKENS_MODELS_BPE_H
#define QN_DATA_TOKENS_MODELS_BPE_H

#include "data/tokens/models/merges.h"
#include "data/tokens/models/text_path.h"
#include "data/tokens/models/vocabulary.h"
#include <string.h>

/* Bytes of an affix of words, at most. */
enum { QN__AFFIX_MOST = 32 };

typedef struct qn__bpe {
    qn__vocabulary vocabulary; /* also of the added tokens */
    qn__text_path path;
    qn__merges merges;
    int whole_words;  /* a word that is in the vocabulary is one token, whatever the merges say */
    int fuse_unknown; /* unknown bytes that follow one another are one token */
    uint32_t unknown; /* QN__WORD_NONE: bytes that are not in the vocabulary are dropped */
    int fallback;     /* a character that is not in the vocabulary becomes its bytes */
    /* The token of each; QN__WORD_NONE: it has none. By qn__bpe_place. */
    uint32_t byte[4][256];
    char *prefix, *suffix; /* of all but the first character of a word, and of its last; "": none */
    /* Of the character for a space, before which words are cut; 0: they are not. */
    size_t mark_size;
    int drops_space;    /* decoding leaves out the one that was put before the text */
    uint8_t *not_model; /* of each token: 1 where it is an added one that the model does not have */
    char *bytes;        /* of all tokens, one after the other */
    size_t *begin;      /* of each token in `bytes`, and the end of the last */
    qn__word_table
        words; /* with `whole_words`: the tokens by their bytes; counts are 1 + numbers */
} qn__bpe;

/* Where a character of a word stands, as a number below 4. */
static inline unsigned qn__bpe_place(int is_first, int is_last) {
    return (is_first ? 0u : 1u) | (is_last ? 2u : 0u);
}

/* Whether a text of the model ends with the suffix of words. */
static inline int qn__bpe_ends_word(const qn__bpe *bpe, const char *text, size_t size) {
    const size_t suffix = strlen(bpe->suffix);
    return suffix && size >= suffix && memcmp(text + size - suffix, bpe->suffix, suffix) == 0;
}

/* Makes it from the root of a JSON text. *bpe is released by the caller, also after a failure. */
qn_status qn__bpe_read(const qn__json_node *root, void **bpe, qn_error *err);
/* Its canonical text, which is a tokenizer.json, too. */
void qn__bpe_write(const void *bpe, const qn__token_frame *frame, qn__text *json);
void qn__bpe_release(void *bpe);

#endif
