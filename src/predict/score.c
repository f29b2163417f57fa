#include "predict/score.h"

#include "job/shown_targets.h"
#include "job/token_check.h"
#include <math.h>

qn_score qn__score_of(const qn__tally *tally) {
    const double items = (double)tally->items;
    return (qn_score){.items = tally->items,
                      .correct = tally->correct,
                      .loss = tally->items ? (double)tally->loss * 0x1p-32 / items : (double)NAN,
                      .mae = (double)NAN,
                      .rmse = (double)NAN,
                      .r2 = (double)NAN};
}

qn_status qn__score_targets(qn_score *score, const qn__train_job *job, const qn_data *set,
                            qn_error *err) {
    if (!job->program.answers)
        return QN_OK;
    if (!set)
        return qn__shown_targets(job, &score->items, err);
    const uint32_t tokens = job->program.next ? qn__program_classes(&job->program) : 0;
    score->items = tokens ? 0 : qn__several_count_all(set);
    for (uint64_t i = 0; tokens && i < set->items; ++i)
        score->items += qn__next_count(set, i, tokens);
    return QN_OK;
}

void qn__score_errors(qn_score *score, const qn__target_errors *errors) {
    score->mae = errors->mae;
    score->rmse = errors->rmse;
    score->r2 = errors->r2;
}

/* Scaled labels have the deviation 1, so the mean squared error of all training items is what is
 * left of their variance. */
void qn__score_running(qn_score *score, const qn__train_job *job) {
    const double deviation = (double)job->target_deviation;
    if (job->recipe.task != QN__TASK_REGRESS || job->recipe.loss != QN__LOSS_MSE)
        return;
    score->rmse = sqrt(score->loss) * deviation;
    score->r2 = deviation > 0 ? 1 - score->loss : (double)NAN;
}
