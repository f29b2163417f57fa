/* A user kernel as a job of a team: its grains are ranges of items, computed by all cores and
 * ranks. What it computes does not depend on how it is divided. */
#ifndef QN_USERKERNEL_EXECUTION_USER_RUN_H
#define QN_USERKERNEL_EXECUTION_USER_RUN_H

#include "team/team.h"
#include "userkernel/execution/user_job.h"
#include "userkernel/execution/user_sums.h"

/* Gives job->device the arrays and numbers of the job. qn__user_job_run does so; a team for the
 * job's devices needs it before. */
void qn__user_job_bind(qn__user_job *job);

/* Computes all items, with a team that was made without a program. Fills the outputs and, of the
 * other results, total[part], which was all zeros. Collective among ranks, which have equal jobs:
 * every rank gets everything. Fails with QN_NUMERIC, for the first item with a fault: a NaN in a
 * result, an infinity in a sum, a division by zero, an index out of range; with QN_INTERRUPTED
 * after a stop, among ranks that of qn_cluster_stop; or as qn__team_run does.
 *
 * With several steps the arrays that NEXT pairs are read as they were before, and written once.
 * QN_NUMERIC names no item then: run them one by one. */
qn_status qn__user_job_run(qn__user_job *job, qn__team *team, qn__user_total *total, qn_error *err);

/* Copies to the host those results of earlier iterations that the job reads and only a device has.
 * The job is that of the next iteration. Fails as qn__team_run does. */
qn_status qn__user_job_bring(qn__user_job *job, qn__team *team, qn_error *err);

#endif
