/* The normaliser of a tokenizer.json: steps that rewrite a text before it is cut to words
 * (docs/exactness.md 25.58). Start with {0}. */
#ifndef QN_DATA_TOKENS_STEPS_NORMALIZER_H
#define QN_DATA_TOKENS_STEPS_NORMALIZER_H

#include "data/tokens/steps/bert_text.h"
#include "data/tokens/steps/charsmap.h"
#include "data/tokens/steps/expression.h"

typedef struct qn__normalizer_step {
    const struct qn__normalizer_kind *kind;
    qn__expression expression; /* what is replaced */
    char *content;             /* by what; what is put before a text */
    qn__charsmap map;
    qn__bert_normalizer bert;
    int left, right; /* where white space is dropped */
} qn__normalizer_step;

enum { QN__NORMALIZER_STEPS = 16 };

typedef struct qn__normalizer {
    qn__normalizer_step step[QN__NORMALIZER_STEPS];
    size_t count;
} qn__normalizer;

/* Reads `normalizer`, NULL where there is none. Fails with QN_FORMAT, QN_UNSUPPORTED, by name, or
 * QN_MEMORY. */
qn_status qn__normalizer_read(qn__normalizer *normalizer, const qn__json_node *node, qn_error *err);
/* Writes it in its canonical form. */
void qn__normalizer_write(const qn__normalizer *normalizer, qn__text *json);
void qn__normalizer_release(qn__normalizer *normalizer);
/* Whether a text can be cut before a space between two letters of ASCII, and its parts normalised.
 */
int qn__normalizer_is_local(const qn__normalizer *normalizer);
/* The character for a space, as of SentencePiece: "" where there is none. *before: one is put
 * before a text. */
const char *qn__normalizer_mark(const qn__normalizer *normalizer, int *before);

/* What one thread needs. Start with {0}. */
typedef struct qn__normalizer_worker {
    void *match[QN__NORMALIZER_STEPS];
    qn__byte_buffer text[2];
} qn__normalizer_worker;
qn_status qn__normalizer_worker_make(const qn__normalizer *normalizer,
                                     qn__normalizer_worker *worker, qn_error *err);
void qn__normalizer_worker_release(qn__normalizer_worker *worker);

/* Replaces *text and *size by the normal form, which the worker has until the next call. `goes_on`:
 * the text has something before it. Fails with QN_MEMORY, or QN_INPUT where an expression takes too
 * many steps. */
qn_status qn__normalize(const qn__normalizer *normalizer, qn__normalizer_worker *worker,
                        int goes_on, const uint8_t **text, size_t *size, qn_error *err);

#endif
