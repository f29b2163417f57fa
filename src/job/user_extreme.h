/* The extreme of a piece of a user kernel's values. */
#ifndef QN_JOB_USER_EXTREME_H
#define QN_JOB_USER_EXTREME_H

#include "job/user_source.h"

/* The place of the first least or greatest value of those that items took part with, or -1 where
 * took[i] is 0 for all. *taken becomes their number. No value is NaN; zeros are equal. */
int64_t qn__user_extreme_of(const qn__user_part *part, const void *values, const uint8_t *took,
                            int64_t count, uint64_t *taken);

#endif
