/* A kind of tokenizers, one row of a table for each (token_kinds.c), and what all have in common.
 */
#ifndef QN_DATA_TOKENS_MODELS_TOKEN_KIND_H
#define QN_DATA_TOKENS_MODELS_TOKEN_KIND_H

#include <quern/tokenizer.h>
#include "base/text/json.h"
#include "base/text/span.h"
#include "base/text/text.h"
#include "data/tokens/models/token_frame.h"
#include "data/tokens/models/token_ids.h"
#include "data/tokens/models/word_table.h"

/* Numbers of tokens are below this, so that float32 has each of them. */
enum { QN__TOKENS_MOST = 1 << 24 };

/* A part of a corpus: a file, or memory of the caller. No token crosses from one to the next. */
typedef qn__span qn__token_text;

/* Bytes that a decoder writes: those that fit in `capacity`, and the number of all. */
typedef struct qn__token_output {
    char *text;
    size_t capacity, size;
} qn__token_output;
void qn__token_write(qn__token_output *output, const char *bytes, size_t size);

/* What a tokenizer knows is `state`, a struct of its kind. */
typedef struct qn__token_kind {
    const char *name;  /* in JSON, and the text before a colon */
    const char *model; /* the type of its model in a tokenizer.json; NULL: its text is none */
    const char *takes; /* what may stand after the colon, for messages; NULL: nothing */
    int ends;          /* 1: it may have a token that stands between two documents */
    int keeps_bytes;   /* 1: the bytes of a text are those of its tokens, but for the unknown one */
    int is_file;       /* 1: a file with its text stands after the colon, unless it is a number */

    /* Counts in a corpus what `learn` needs; `words` is {0} before, and the caller's in any case.
     * Counts of several corpora may be added. `after` is the text after the colon, NULL where there
     * is none. NULL: nothing is learned. */
    qn_status (*count)(const char *after, const qn__token_text *corpus, size_t count,
                       uint32_t threads, qn__word_table *words, qn_error *err);
    /* Makes the state from counts, whose order does not matter; it may take their memory. After a
     * failure the caller frees what *state is then. NULL: there is no state. */
    qn_status (*learn)(const char *after, qn__word_table *words, void **state, qn_error *err);
    /* Makes it from the root of a JSON text, of which everything is checked. */
    qn_status (*read)(const qn__json_node *root, void **state, qn_error *err);
    /* Writes the canonical text, with what is put around a text. */
    void (*write)(const void *state, const qn__token_frame *frame, qn__text *json);
    void (*release)(void *state); /* accepts NULL */
    uint32_t (*size)(const void *state);
    /* The number of the unknown token; the size where there is none. */
    uint32_t (*unknown)(const void *state);
    /* A place from `at` on where the text may be cut, so that its parts, encoded alone, give the
     * tokens of the whole; `size` where there is none. Any number of threads may call it. */
    size_t (*cut)(const void *state, const uint8_t *text, size_t size, size_t at);
    /* What one thread needs for `encode`, such as the words that came before. NULL with a message;
     * the function is NULL where nothing is needed. */
    void *(*worker)(const void *state, qn_error *err);
    void (*worker_free)(const void *state, void *worker); /* accepts NULL */
    /* Appends the tokens of a text. `goes_on`: it is a part after a cut. Any number of threads may
     * call it, each with its worker. */
    qn_status (*encode)(const void *state, void *worker, const uint8_t *text, size_t size,
                        int goes_on, qn__token_ids *ids, qn_error *err);
    /* All numbers are in the vocabulary. */
    void (*decode)(const void *state, const uint32_t *tokens, uint64_t count,
                   qn__token_output *output);
} qn__token_kind;

extern const qn__token_kind qn__token_bytes_kind, qn__token_chars_kind, qn__token_words_kind,
    qn__token_bpe_kind, qn__token_wordpiece_kind, qn__token_unigram_kind;

/* The rows; the last is NULL. */
extern const qn__token_kind *const qn__token_kinds[];

/* QN_FORMAT with what is wrong in a tokenizer's JSON. */
qn_status qn__token_json_wrong(qn_error *err, const char *what);

#endif
