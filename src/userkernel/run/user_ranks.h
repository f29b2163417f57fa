/* What the ranks of a user kernel compare before they compute, and how they write its files. */
#ifndef QN_USERKERNEL_RUN_USER_RANKS_H
#define QN_USERKERNEL_RUN_USER_RANKS_H

#include "userkernel/run/user_kernel.h"

/* Compares all that the results follow from, the digests of the inputs included, which must be
 * there. `recipe`: one is written. `status` is the result of this rank's own checks, with `err`
 * (not NULL) filled if it is not QN_OK. Without ranks it returns `status`. */
qn_status qn__user_agree(const qn_kernel *kernel, const qn_kernel_options *options, int recipe,
                         qn_status status, qn_error *err);

/* Calls write(context, err) on the writer rank, the next one if it dies, and returns its status on
 * all ranks. Without ranks it calls it. `err` is not NULL. */
qn_status qn__user_ranks_write(qn_cluster *cluster,
                               qn_status (*write)(void *context, qn_error *err), void *context,
                               qn_error *err);

#endif
