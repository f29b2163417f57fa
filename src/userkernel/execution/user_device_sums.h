/* Sums, extremes, counts and bins of a user kernel that a device itself makes of its items' values,
 * so that they need not come to the host: the program for it, and its words. */
#ifndef QN_USERKERNEL_EXECUTION_USER_DEVICE_SUMS_H
#define QN_USERKERNEL_EXECUTION_USER_DEVICE_SUMS_H

#include "kernels/kernels.h"
#include "userkernel/execution/user_sums.h"

/* 1: the device makes the total of this part. Arrays of so many bins that their words are more than
 * the values of a launch, and those of extremes, are left to the host. */
int qn__user_device_sums_part(const qn__user_part *part);

/* Words of a part's total: those of qn__user_total_words, and after them for an extreme a value
 * and its item + 1 of each group, 0 where a group has none. */
uint64_t qn__user_device_sums_words(const qn__user_part *part);

/* Writes the program for a language, with the kernel qn_user_totals (device/device.h); equal parts
 * have the same one. */
void qn__user_device_sums_write(const qn__user_part *part, qn__language language, qn__text *out);

/* Adds the words, of all these parts one after the other, to the totals of a thread. */
void qn__user_device_sums_take(const qn__user_source *source, const int64_t *words,
                               qn__user_total *total);

#endif
