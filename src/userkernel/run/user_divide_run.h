/* What ranks exchange during a run in which each has some rows: totals, rows of neighbours, and
 * digests of arrays that no rank has. */
#ifndef QN_USERKERNEL_RUN_USER_DIVIDE_RUN_H
#define QN_USERKERNEL_RUN_USER_DIVIDE_RUN_H

#include "userkernel/execution/user_sums.h"
#include "userkernel/run/user_divide.h"

/* Collective, after this rank has computed items, with `status`. *left: it has further ones. As
 * long as a rank has some, *left is 1, and the ranks go on, up to item *fault, and call this again;
 * the status is that of this rank. Then the totals are those of all items on each rank. If an item
 * is faulty, all fail for the first one. If ranks were stopped, all fail with QN_INTERRUPTED. Fails
 * with QN_IO where a rank has ended. */
qn_status qn__user_divide_join(qn_kernel *kernel, qn__user_total *total, int *left, int64_t *fault,
                               qn_status status, qn_error *err);

/* The places of what NEXT carries, by turns; `spare` has an array for each part. Not collective,
 * before the first join. */
void qn__user_divide_places(qn_kernel *kernel, const qn__user_array *spare);

/* Gets the rows of other ranks that the next iteration reads, of what the one before wrote to place
 * 0 or 1. Not collective; a join lies before. */
qn_status qn__user_divide_refresh(const qn_kernel *kernel, uint32_t place, qn_error *err);

/* Makes the rows of all ranks the rows of an output here. All ranks have settled their outputs. */
qn_status qn__user_divide_gather(const qn_kernel *kernel, uint32_t part, qn_error *err);

/* Collective. The digests of the inputs in parts and of all outputs. `status` is this rank's own.
 */
qn_status qn__user_divide_digest(qn_kernel *kernel, qn_status status, qn_error *err);

#endif
