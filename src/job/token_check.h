/* Items of numbers of tokens. */
#ifndef QN_JOB_TOKEN_CHECK_H
#define QN_JOB_TOKEN_CHECK_H

#include "data/table/data.h"

/* Checks that all values are whole numbers below `tokens`, the size of a vocabulary. Fails with
 * QN_INPUT, and names the first one that is not; `what` says which table it is. */
qn_status qn__check_tokens(const qn_data *data, uint32_t tokens, const char *what, qn_error *err);

#endif
