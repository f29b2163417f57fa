/* The way of a text of a tokenizer.json to the words that its model takes: between added tokens,
 * through the normaliser and the pre-tokeniser. Start with {0}. */
#ifndef QN_DATA_TOKENS_MODELS_TEXT_PATH_H
#define QN_DATA_TOKENS_MODELS_TEXT_PATH_H

#include "data/tokens/models/added_tokens.h"
#include "data/tokens/steps/splitter.h"
#include "data/tokens/models/token_frame.h"

typedef struct qn__text_path {
    qn__added_tokens added;
    qn__normalizer normalizer;
    qn__splitter splitter;
    int byte_level;   /* the pre-tokeniser ends with ByteLevel */
    int prefix_space; /* with it, a space is put before a text that has none there */
    int spaces_cut;   /* the model cuts words before spaces, so the text may be cut there */
} qn__text_path;

/* Reads the normaliser, the added tokens, which go into the vocabulary, and the pre-tokeniser.
 * Fails with QN_FORMAT, QN_UNSUPPORTED, by name, or QN_MEMORY. */
qn_status qn__text_path_read(qn__text_path *path, const qn__json_node *root,
                             qn__vocabulary *vocabulary, qn_error *err);
/* Writes the members from `version` to `post_processor`, with what is put around a text. */
void qn__text_path_write(const qn__text_path *path, const qn__token_frame *frame, qn__text *json);
void qn__text_path_release(qn__text_path *path);
/* The character for a space, as of SentencePiece: "" where there is none. *before: one is put
 * before a text. */
const char *qn__text_path_mark(const qn__text_path *path, int *before);
/* A place from `at` on where a text can be cut, so that its parts have the words of the whole. */
size_t qn__text_path_cut(const qn__text_path *path, const uint8_t *text, size_t size, size_t at);

/* Who gets the words, in their order, and what one thread needs. */
typedef struct qn__path_words {
    const qn__text_path *path;
    qn_status (*word)(void *user, const uint8_t *word, size_t size, qn_error *err);
    qn_status (*added)(void *user, uint32_t token, qn_error *err);
    void *user;
    qn__split_worker split;
    qn__normalizer_worker normal;
    qn__byte_buffer copy; /* a text with a space before it */
} qn__path_words;

qn_status qn__path_words_make(qn__path_words *words, const qn__text_path *path, qn_error *err);
void qn__path_words_release(qn__path_words *words);
/* `goes_on`: something of the text stands before, up to a place of qn__text_path_cut. */
qn_status qn__path_words_each(qn__path_words *words, const uint8_t *text, size_t size, int goes_on,
                              qn_error *err);

#endif
