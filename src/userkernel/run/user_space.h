/* The index space of a run, and what must be bound before it. */
#ifndef QN_USERKERNEL_RUN_USER_SPACE_H
#define QN_USERKERNEL_RUN_USER_SPACE_H

#include "userkernel/run/user_kernel.h"

/* The shape that the arrays of the index space have, or that was set. Fails with QN_USAGE or QN_IO:
 * a scalar or an array is missing, shapes differ, none is known. */
qn_status qn__user_space_find(const qn_kernel *kernel, uint64_t shape[QN_KERNEL_DIMENSIONS],
                              qn_error *err);

/* Fails with QN_USAGE if memory of the caller for an output overlaps another array. */
qn_status qn__user_overlaps_check(const qn_kernel *kernel, qn_error *err);
/* Fails with QN_USAGE if a file that is written is also another one's. */
qn_status qn__user_paths_check(const qn_kernel *kernel, qn_error *err);

#endif
