/* Scores of sets, from what the jobs count. */
#ifndef QN_PREDICT_SCORE_H
#define QN_PREDICT_SCORE_H

#include "job/train_job.h"
#include <quern/score.h>

/* The score with loss and correct answers; members for real labels are NaN. */
qn_score qn__score_of(const qn__tally *tally);

/* Of networks with several answers to an item: `items` becomes the targets that count, so that the
 * accuracy is a share of them. Of `set`; NULL: of the items that an epoch trained on so far. Does
 * nothing for others. Fails with QN_MEMORY. */
qn_status qn__score_targets(qn_score *score, const qn__train_job *job, const qn_data *set,
                            qn_error *err);

void qn__score_errors(qn_score *score, const qn__target_errors *errors);

/* Sets those errors of real labels that follow from the loss of a training epoch. Does nothing for
 * classes. */
void qn__score_running(qn_score *score, const qn__train_job *job);

#endif
