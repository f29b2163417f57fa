/* Scores of sets, from what the jobs count. */
#ifndef QN_PREDICT_SCORE_H
#define QN_PREDICT_SCORE_H

#include "job/train_job.h"
#include <quern/score.h>

/* Loss and right answers; what is about real labels is NaN. */
qn_score qn__score_of(const qn__tally *tally);

void qn__score_errors(qn_score *score, const qn__target_errors *errors);

/* What the loss of an epoch of training tells of the errors of real labels. Nothing for classes. */
void qn__score_running(qn_score *score, const qn__train_job *job);

#endif
