/* The self-test of the totals that a device makes (user_device_sums.h): chosen values, and the
 * totals that this processor computes from them. */
#ifndef QN_USERKERNEL_EXECUTION_USER_DEVICE_TRIAL_H
#define QN_USERKERNEL_EXECUTION_USER_DEVICE_TRIAL_H

#include "device/device.h"
#include "userkernel/language/user_source.h"

/* qn__kernel_total.sample and .check, with a qn__user_part as `part`. */
void qn__user_device_trial_sample(const void *part, uint64_t count, void *values, void *marks);
qn_status qn__user_device_trial_check(const void *part, uint64_t count, const void *values,
                                      const void *marks, const int64_t *words, int *right,
                                      qn_error *err);

#endif
