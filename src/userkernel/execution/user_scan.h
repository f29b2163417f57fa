/* Prefix sums of what the items of a user kernel assign (SCAN): each element becomes the exact sum
 * up to it, or of those before it, rounded once. */
#ifndef QN_USERKERNEL_EXECUTION_USER_SCAN_H
#define QN_USERKERNEL_EXECUTION_USER_SCAN_H

#include "base/system/threads.h"
#include "userkernel/execution/user_run.h"

/* Replaces `count` > 0 numbers of a type (double, float, int64_t or uint64_t, no NaN) by their
 * prefix sums; `exclusive`: without the number itself. *faulty becomes the first item whose number
 * is infinite or whose sum is beyond the range of the type (the numbers are then undefined), or -1.
 * Fails with QN_MEMORY. */
qn_status qn__user_scan(qn__user_type type, int exclusive, void *numbers, int64_t count,
                        qn__pool *pool, int64_t *faulty, qn_error *err);

/* Does so with each SCAN of a job whose items are computed. Fails with QN_NUMERIC, for the first
 * item that is not possible, or QN_MEMORY. */
qn_status qn__user_job_scan(const qn__user_job *job, qn__pool *pool, qn_error *err);

#endif
