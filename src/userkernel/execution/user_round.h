/* Exact sums as numbers of a real type, rounded once. */
#ifndef QN_USERKERNEL_EXECUTION_USER_ROUND_H
#define QN_USERKERNEL_EXECUTION_USER_ROUND_H

#include "num/exact_sum.h"
#include "userkernel/language/user_types.h"

/* Rounds bits * 2^place, and a smaller remainder if `rest` is 1, to a number of a real type, ties
 * to even. `bits` is not 0; it has at least 62 bits where there is a remainder. 0: the number is
 * beyond the range. */
int qn__user_round(uint64_t bits, int place, int rest, int negative, qn__user_type type,
                   uint64_t *value);

/* Rounds a sum in the same way; +0 for zero. */
int qn__user_round_sum(qn__exact_sum *sum, qn__user_type type, uint64_t *value);

#endif
