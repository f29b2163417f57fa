/* Extremes of a user kernel's values. */
#ifndef QN_USERKERNEL_EXECUTION_USER_EXTREME_H
#define QN_USERKERNEL_EXECUTION_USER_EXTREME_H

#include "userkernel/language/user_source.h"

/* The place of the first least or greatest value of those that items took part with, or -1 where
 * took[i] is 0 for all. *taken becomes their number. No value is NaN; zeros are equal. */
int64_t qn__user_extreme_of(const qn__user_part *part, const void *values, const uint8_t *took,
                            int64_t count, uint64_t *taken);

/* -1, 0 or 1: number a is less than b, equal or greater. */
int qn__user_compare(qn__user_type type, const void *a, const void *b);

#endif
