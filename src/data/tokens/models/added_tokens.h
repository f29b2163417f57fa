/* The added tokens of a tokenizer.json, which are found in a text before all else. Start with {0}.
 */
#ifndef QN_DATA_TOKENS_MODELS_ADDED_TOKENS_H
#define QN_DATA_TOKENS_MODELS_ADDED_TOKENS_H

#include "data/tokens/steps/normalizer.h"
#include "data/tokens/models/vocabulary.h"

typedef struct qn__added_token {
    char *text;    /* as in the file */
    char *pattern; /* what is looked for: of `normalized` its normal form */
    size_t size;   /* of the pattern */
    uint32_t number;
    int left, right; /* white space beside it belongs to it */
    int normalized;  /* it is looked for after the normaliser, else before */
    int special;
    int single; /* no character of a word stands beside it */
} qn__added_token;

typedef struct qn__added_tokens {
    qn__added_token *token; /* by their first byte, long ones first */
    uint32_t count;
    uint32_t first[257]; /* where those with a first byte begin in `token` */
    int cuttable;        /* 0: a cut of qn__scanner_cut may be in one of them */
} qn__added_tokens;

/* Reads the array `added_tokens`, which may be NULL, and adds them to the vocabulary. `normalizer`
 * was read before. Fails with QN_FORMAT, QN_UNSUPPORTED or QN_MEMORY. */
qn_status qn__added_tokens_read(qn__added_tokens *added, const qn__json_node *array,
                                const qn__normalizer *normalizer, qn__vocabulary *vocabulary,
                                qn_error *err);
void qn__added_tokens_write(const qn__added_tokens *added, qn__text *json);
void qn__added_tokens_release(qn__added_tokens *added);

/* The first added token from `at` on, the longest of several: of those that are `normalized`, or
 * of the others. It covers bytes *begin to *end; white space before `at` is not taken. NULL: there
 * is none. */
const qn__added_token *qn__added_tokens_find(const qn__added_tokens *added, int normalized,
                                             const uint8_t *text, size_t size, size_t at,
                                             size_t *begin, size_t *end);

#endif
