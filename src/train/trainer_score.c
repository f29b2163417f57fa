/* The scores of a training's sets. */
#include "base/system/clock.h"
#include "predict/score.h"
#include "train/trainer_state.h"
#include <string.h>

/* The score of a set, or an empty one if it is NULL. */
static qn_status evaluate(qn_train *t, const qn_data *set, uint64_t *confusion, qn_score *score,
                          qn_error *err) {
    const double begun = qn__now();
    qn__tally tally = {0};
    qn_status status = QN_OK;
    qn__target_errors errors;
    const int real = t->job.recipe.task == QN__TASK_REGRESS;
    qn__judged_set *const judged = &t->sets.judged[set == t->sets.test];
    float *const last = t->job.step == t->job.steps ? judged->output : NULL;
    if (set && real)
        status = qn__train_job_compare(&t->job, &t->sets.real[set == t->sets.test], &tally, &errors,
                                       err);
    else if (set)
        status = qn__train_job_evaluate(&t->job, set, &tally, confusion, last, err);
    if (status == QN_NUMERIC)
        qn__at(err, "evaluation after step %llu", (unsigned long long)t->job.step);
    if (status == QN_OK)
        *score = qn__score_of(&tally);
    if (status == QN_OK && set)
        status = qn__score_targets(score, &t->job, set, err);
    if (status == QN_OK && set && real)
        qn__score_errors(score, &errors);
    if (status == QN_OK && set == t->sets.valid)
        t->scores.valid_loss = tally.loss;
    if (status == QN_OK && set && last)
        judged->step = t->job.step;
    if (set)
        qn__train_span(t, set == t->sets.valid ? "validation" : "test", begun);
    return status;
}

qn_status qn__train_score(qn_train *t, qn_error *err) {
    const size_t outputs = qn__program_classes(&t->job.program);
    t->scores.train = qn__score_of(&t->job.running);
    qn__score_running(&t->scores.train, &t->job);
    qn_status status = qn__score_targets(&t->scores.train, &t->job, NULL, err);
    if (status != QN_OK || t->scores.step == t->job.step)
        return status;
    const int shows = t->sets.valid || t->sets.test;
    status = shows ? qn__train_job_show(&t->job, err) : QN_OK;
    if (status != QN_OK)
        return status;
    status = evaluate(t, t->sets.valid, NULL, &t->scores.valid, err);
    if (t->scores.confusion)
        memset(t->scores.confusion, 0, outputs * outputs * sizeof *t->scores.confusion);
    if (status == QN_OK)
        status = evaluate(t, t->sets.test, t->scores.confusion, &t->scores.test, err);
    const qn_status hidden =
        shows ? qn__train_job_hide(&t->job, status == QN_OK ? err : NULL) : QN_OK;
    status = status == QN_OK ? hidden : status;
    if (status == QN_OK)
        t->scores.step = t->job.step;
    return status;
}
