/* From a text to the words that a model of tokens takes: the pre-tokeniser of a tokenizer.json as
 * steps, each of which cuts what the one before left (docs/exactness.md 25.54, 25.58). */
#ifndef QN_DATA_TOKENS_STEPS_SPLITTER_H
#define QN_DATA_TOKENS_STEPS_SPLITTER_H

#include "data/tokens/unicode/byte_buffer.h"
#include "data/tokens/steps/expression.h"
#include "data/tokens/steps/scanner.h"

/* What becomes of the parts of a text that match, and of those between. */
typedef enum qn__split_kept {
    QN__SPLIT_ALL,      /* each is a part: Isolated */
    QN__SPLIT_MATCHES,  /* what is between them is dropped: Removed, inverted */
    QN__SPLIT_BETWEEN,  /* the matches are dropped: Removed */
    QN__SPLIT_PREVIOUS, /* a match belongs to what is before it */
    QN__SPLIT_NEXT,     /* a match belongs to what is after it */
    QN__SPLIT_TOGETHER  /* matches that follow one another are one part: Contiguous */
} qn__split_kept;

/* Where a mark is put before a part that does not begin with it. */
typedef enum qn__split_prefix {
    QN__PREFIX_ALWAYS,
    QN__PREFIX_FIRST,
    QN__PREFIX_NEVER
} qn__split_prefix;

typedef struct qn__split_step {
    qn__expression expression;  /* what matches */
    int (*matches)(uint32_t c); /* or a character by itself; NULL: the expression */
    const qn__scanner *scanner; /* of a known expression */
    qn__split_kept kept;
    int is_metaspace; /* spaces become the pattern first, at which the text is cut if `cuts` */
    int cuts;
    qn__split_prefix prefix;
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
/* Adds one that looks for characters. */
qn_status qn__splitter_add_class(qn__splitter *splitter, int (*matches)(uint32_t c),
                                 qn__split_kept kept, qn_error *err);
/* Adds one that writes spaces as a mark. */
qn_status qn__splitter_add_metaspace(qn__splitter *splitter, const char *mark,
                                     qn__split_prefix prefix, int cuts, qn_error *err);
/* Where a text can be cut, or its size; only where all steps are known. */
size_t qn__splitter_cut(const qn__splitter *splitter, const uint8_t *text, size_t size, size_t at);
void qn__splitter_release(qn__splitter *splitter);

/* What one thread needs. */
typedef struct qn__split_worker {
    void *match[QN__SPLIT_STEPS];
    qn__byte_buffer marked[QN__SPLIT_STEPS]; /* parts with marks */
    const uint8_t *begin;                    /* of a text; NULL: none is its first part */
} qn__split_worker;
qn_status qn__split_worker_make(const qn__splitter *splitter, qn__split_worker *worker,
                                qn_error *err);
void qn__split_worker_release(qn__split_worker *worker);

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
