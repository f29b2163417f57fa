/* From a text to the words that a model of tokens takes: the pre-tokeniser of a tokenizer.json as
 * steps, each of which cuts what the one before left (docs/exactness.md 25.54). */
#ifndef QN_DATA_TOKENS_SPLITTER_H
#define QN_DATA_TOKENS_SPLITTER_H

#include "base/error.h"
#include "data/tokens/scanner.h"

/* What becomes of the parts of a text that a pattern matches, and of those between. */
typedef enum qn__split_kept {
    QN__SPLIT_ALL,     /* both are words */
    QN__SPLIT_MATCHES, /* what stands between is dropped */
    QN__SPLIT_BETWEEN  /* the matches are dropped */
} qn__split_kept;

typedef struct qn__split_step {
    char *pattern; /* as in the file */
    int is_string; /* the pattern is a text, not a regular expression */
    qn__split_kept kept;
    const qn__scanner *scanner; /* of a known expression; else `code` is it, compiled */
    void *code;
} qn__split_step;

enum { QN__SPLIT_STEPS = 8 };

typedef struct qn__splitter {
    qn__split_step step[QN__SPLIT_STEPS];
    size_t count;
    const uint8_t *classes;
} qn__splitter;

/* Adds a step. Fails with QN_FORMAT (an expression that is wrong; too many steps), QN_UNSUPPORTED
 * (PCRE2 is not installed) or QN_MEMORY. */
qn_status qn__splitter_add(qn__splitter *splitter, const char *pattern, int is_string,
                           qn__split_kept kept, qn_error *err);
/* Where a text can be cut, or its size; only where all steps are known. */
size_t qn__splitter_cut(const qn__splitter *splitter, const uint8_t *text, size_t size, size_t at);
void qn__splitter_release(qn__splitter *splitter);

/* What one thread needs. */
typedef struct qn__split_worker {
    void *match[QN__SPLIT_STEPS];
} qn__split_worker;
qn_status qn__split_worker_make(const qn__splitter *splitter, qn__split_worker *worker,
                                qn_error *err);
void qn__split_worker_release(const qn__splitter *splitter, qn__split_worker *worker);

/* Who gets the words, in their order. */
typedef struct qn__split_taker {
    qn_status (*word)(void *user, const uint8_t *word, size_t size, qn_error *err);
    void *user;
} qn__split_taker;

/* Cuts well-formed UTF-8. Fails as the taker does, or with QN_INPUT where an expression takes too
 * many steps. */
qn_status qn__split(const qn__splitter *splitter, qn__split_worker *worker, const uint8_t *text,
                    size_t size, const qn__split_taker *taker, qn_error *err);

#endif
