/* The iterations of a user kernel: what NEXT(output, input) carries from one to the next, and the
 * results of every iteration, where they were asked for. */
#ifndef QN_USERKERNEL_RUN_USER_ITERATE_H
#define QN_USERKERNEL_RUN_USER_ITERATE_H

#include "userkernel/run/user_kernel.h"

/* Checks that the options' number of iterations suits the kernel, and sets k->iterations. */
qn_status qn__user_iterations_set(qn_kernel *k, uint64_t iterations, qn_error *err);

/* Computes the iterations of k->job, whose arrays are those of the first. Outputs and totals
 * (QN__USER_PARTS of them, all zeros) become those of the last one; arrays that are read keep their
 * numbers. Fails as qn__user_job_run does; QN_NUMERIC also where a series has no number. */
qn_status qn__user_iterate(qn_kernel *k, qn__team *team, qn__user_total *total, qn_error *err);

/* Makes the first iteration read the checkpoint's state. A device gets this state when it is
 * prepared, instead of the inputs of iteration 0, which are not read. */
void qn__user_iterate_from(qn_kernel *k);

/* Makes the arrays of all series that are asked for. */
qn_status qn__user_series_make(qn_kernel *k, qn_error *err);

/* 1: a result of this use can have a series. */
int qn__user_has_series(const qn__user_part *part);
void qn__user_series_release(qn__user_bound *bound);

#endif
