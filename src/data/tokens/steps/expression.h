/* A pattern of a tokenizer.json: a text, or a regular expression through PCRE2. Start with {0}. */
#ifndef QN_DATA_TOKENS_STEPS_EXPRESSION_H
#define QN_DATA_TOKENS_STEPS_EXPRESSION_H

#include "base/text/json.h"
#include "base/text/text.h"

typedef struct qn__expression {
    char *pattern; /* as in the file */
    int is_string; /* the pattern is a text */
    void *code;    /* of a regular expression */
} qn__expression;

/* Takes a pattern. Regular expressions are compiled unless `known`. `whose` is for messages: "the
 * pre-tokeniser". Fails with QN_FORMAT (it is wrong), QN_UNSUPPORTED (PCRE2 is not installed) or
 * QN_MEMORY. */
qn_status qn__expression_make(qn__expression *expression, const char *pattern, int is_string,
                              int known, const char *whose, qn_error *err);
/* Writes {"String": T} or {"Regex": T}. */
void qn__expression_write(const qn__expression *expression, qn__text *json);
void qn__expression_release(qn__expression *expression);

/* What one thread needs, for qn__expression_worker_release; NULL where that is nothing. */
qn_status qn__expression_worker(const qn__expression *expression, void **worker, qn_error *err);
void qn__expression_worker_release(void *worker);

/* The first match from `from` on, at place[0] to place[1], in well-formed UTF-8; *found: there is
 * one. Fails with QN_INPUT where it takes too many steps. */
qn_status qn__expression_match(const qn__expression *expression, void *worker, const uint8_t *text,
                               size_t size, size_t from, size_t place[2], int *found,
                               qn_error *err);

#endif
