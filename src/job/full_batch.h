/* Training by L-BFGS: each iteration evaluates loss and gradient over all training items, with the
 * grains and integer sums of any other step (docs/exactness.md 17.14). */
#ifndef QN_JOB_FULL_BATCH_H
#define QN_JOB_FULL_BATCH_H

#include "job/train_job.h"

/* The most items that a worker computes at a time, where a gradient is that of `items` items: whole
 * grains. `lists`: of items that are lists. No result depends on it. */
uint32_t qn__full_batch_slice(const qn__layer *layer, uint32_t layers, uint32_t grain, int lists,
                              uint64_t items);

/* The job's `lbfgs`, for a job whose recipe has that optimiser. QN_MEMORY. */
qn_status qn__full_batch_create(qn__train_job *job, qn_error *err);
void qn__full_batch_destroy(qn__train_job *job);

/* One iteration. job->step does not change where there was nothing left to do; job->steps is then
 * job->step. Fails as qn__team_gradient does. */
qn_status qn__full_batch_step(qn__train_job *job, qn_error *err);

/* Makes the trial point equal to the current point again, after a failure in the middle of an
 * iteration. */
void qn__full_batch_salvage(qn__train_job *job);

/* Writes how the iterations ended: "converged after 12 iterations: ..."; "" where they did not end,
 * or the optimiser is another. */
void qn__full_batch_describe(const qn__train_job *job, char *text, size_t size);

#endif
