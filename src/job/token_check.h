/* Items of numbers of tokens. */
#ifndef QN_JOB_TOKEN_CHECK_H
#define QN_JOB_TOKEN_CHECK_H

#include "data/table/data.h"

/* Checks that all values are whole numbers below `tokens`, the size of a vocabulary, or say that
 * there is no token. Fails with QN_INPUT, and names the first one that is not; `what` says which
 * table it is. */
qn_status qn__check_tokens(const qn_data *data, uint32_t tokens, const char *what, qn_error *err);

/* The values of item i after its first that are tokens: the targets that count (25.14). */
uint64_t qn__next_count(const qn_data *data, uint64_t i, uint32_t tokens);

#endif
