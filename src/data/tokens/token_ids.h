/* A growing array of numbers of tokens. Start with {0}. */
#ifndef QN_DATA_TOKENS_TOKEN_IDS_H
#define QN_DATA_TOKENS_TOKEN_IDS_H

#include "base/error.h"

typedef struct qn__token_ids {
    uint32_t *number; /* free() releases it */
    size_t count, capacity;
} qn__token_ids;

/* Makes room for `more` numbers after those that are there. */
qn_status qn__token_ids_reserve(qn__token_ids *ids, size_t more, qn_error *err);
void qn__token_ids_release(qn__token_ids *ids);

/* Appends one; the room was reserved. */
static inline void qn__token_ids_add(qn__token_ids *ids, uint32_t number) {
    ids->number[ids->count++] = number;
}

#endif
