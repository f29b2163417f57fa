/* How many bytes of a text each token stands for. */
#ifndef QN_DATA_TOKENS_TOKEN_LENGTHS_H
#define QN_DATA_TOKENS_TOKEN_LENGTHS_H

#include <quern/status.h>
#include <stdint.h>

typedef struct qn__token_lengths {
    uint32_t *bytes; /* of each token; NULL: not every token stands for bytes of its own */
    uint32_t count;
    uint32_t unknown; /* the token that stands for any bytes; `count`: there is none */
} qn__token_lengths;

/* Of the tokenizer with the text `json` (docs/exactness.md 25.66). The token for the end of a text
 * stands for no bytes. Release it also after a failure. */
qn_status qn__token_lengths_of(const char *json, qn__token_lengths *out, qn_error *err);
void qn__token_lengths_release(qn__token_lengths *lengths);

#endif
