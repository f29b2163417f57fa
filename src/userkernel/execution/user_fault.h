/* Faults of items of a user kernel, and their messages. */
#ifndef QN_USERKERNEL_EXECUTION_USER_FAULT_H
#define QN_USERKERNEL_EXECUTION_USER_FAULT_H

#include "userkernel/execution/user_job.h"
#include <stdatomic.h>

/* Beyond the bits of qn__user_grain: a value of a sum is infinite; with the part's number. */
#define QN__USER_FAULT_INFINITE(part) ((uint64_t)1 << 63 | (part))
/* The sum of a SCAN up to the item is beyond its type. */
#define QN__USER_FAULT_RANGE(part) ((uint64_t)1 << 62 | (part))

/* Records that an item failed: *first becomes the lowest number so far. Several threads may call
 * this. */
void qn__user_fault_note(atomic_int_fast64_t *first, int64_t item);

/* Fails with QN_NUMERIC: `fault`, which is not 0, at an item. */
qn_status qn__user_fault_tell(const qn__user_job *job, uint64_t fault, int64_t item, qn_error *err);

#endif
