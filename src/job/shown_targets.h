/* Targets that count in the part of an epoch that was trained on (docs/exactness.md 24.77). */
#ifndef QN_JOB_SHOWN_TARGETS_H
#define QN_JOB_SHOWN_TARGETS_H

#include "job/train_job.h"

/* Of job->running.items items, whose targets may move with their pictures. Fails with
 * QN_MEMORY. */
qn_status qn__shown_targets(const qn__train_job *job, uint64_t *count, qn_error *err);

#endif
