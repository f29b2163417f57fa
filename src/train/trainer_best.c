/* The best epoch of a training: which one it is, when to stop for its sake, and its parameters
 * instead of the last ones (docs/exactness.md 7.5). All ranks have the same losses, so all decide
 * alike. */
#include "base/memory.h"
#include "train/trainer_state.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static uint32_t epochs_done(const qn_train *t) {
    return (uint32_t)(t->job.step / t->job.steps_per_epoch);
}

static int is_patient(const qn_train *t) {
    const qn__recipe *r = &t->job.recipe;
    return r->patience == 0 || t->best.epoch == 0 ||
           epochs_done(t) < (uint64_t)t->best.epoch + r->patience;
}

qn_status qn__train_best_open(qn_train *t, qn_error *err) {
    const qn__recipe *r = &t->job.recipe;
    if (r->keep == QN__KEEP_BEST)
        t->best.parameter = qn__alloc(t->job.program.parameters, sizeof(float), err);
    return r->keep != QN__KEEP_BEST || t->best.parameter ? QN_OK : QN_MEMORY;
}

void qn__train_best_resumed(qn_train *t) {
    if (!is_patient(t))
        t->job.steps = t->job.step;
}

static void note_stop(const qn_train *t) {
    char text[256];
    const uint32_t patience = t->job.recipe.patience;
    snprintf(
        text, sizeof text,
        "stopped early, after epoch %" PRIu32 " of %" PRIu32
        ": the validation loss was not below that of epoch %" PRIu32 " for %" PRIu32 " epoch%s",
        epochs_done(t), t->job.recipe.epochs, t->best.epoch, patience, patience == 1 ? "" : "s");
    if (qn__train_is_writer(t))
        qn__train_note(t, text);
}

qn_status qn__train_best_judge(qn_train *t, int64_t loss, qn_error *err) {
    const qn__recipe *r = &t->job.recipe;
    if (!qn__recipe_judges(r))
        return QN_OK;
    if (t->best.epoch == 0 || loss < t->best.loss) {
        const qn_status status = t->best.parameter ? qn__train_job_pull(&t->job, err) : QN_OK;
        if (status != QN_OK)
            return status;
        if (t->best.parameter)
            memcpy(t->best.parameter, qn__train_job_shown(&t->job),
                   t->job.program.parameters * sizeof(float));
        t->best.epoch = epochs_done(t);
        t->best.loss = loss;
    }
    if (is_patient(t) || t->job.step == t->job.steps)
        return QN_OK;
    t->job.steps = t->job.step;
    note_stop(t);
    return QN_OK;
}

void qn__train_best_swap(qn_train *t) {
    float *const last = t->job.state.parameters;
    t->job.state.parameters = t->best.parameter;
    t->best.parameter = last;
    t->best.in_place = !t->best.in_place;
    t->job.settled = t->best.in_place;
}

qn_status qn__train_best_use(qn_train *t, qn_error *err) {
    char text[160];
    if (!t->best.parameter || t->best.in_place || t->best.epoch == epochs_done(t))
        return QN_OK;
    qn_status status = qn__train_job_pull(&t->job, err);
    if (status != QN_OK)
        return status;
    qn__train_best_swap(t);
    t->scores.step = NO_STEP;
    snprintf(text, sizeof text,
             "the model is that of epoch %" PRIu32 ", which had the lowest validation loss",
             t->best.epoch);
    if (qn__train_is_writer(t))
        qn__train_note(t, text);
    return qn__train_job_push(&t->job, err);
}
