/* A growing array of numbers of tokens. Start with {0}. */
#ifndef QN_DATA_TOKENS_MODELS_TOKEN_IDS_H
#define QN_DATA_TOKENS_MODELS_TOKEN_IDS_H

#include "base/error.h"
#include <quern/data.h>

typedef struct qn__token_ids {
    uint32_t *number; /* free() releases it */
    size_t count, capacity;
} qn__token_ids;

/* Makes room for `more` numbers after those that are there. */
qn_status qn__token_ids_reserve(qn__token_ids *ids, size_t more, qn_error *err);
void qn__token_ids_release(qn__token_ids *ids);

/* Writes them as item `item` of `values`, which has items of `features` tokens of this type: the
 * first ones, and what is not a token after them. */
void qn__token_ids_put(const qn__token_ids *ids, qn_data_type type, void *values, uint64_t item,
                       uint32_t features);

/* Appends one; the room was reserved. */
static inline void qn__token_ids_add(qn__token_ids *ids, uint32_t number) {
    ids->number[ids->count++] = number;
}

#endif
