/* The public training loop: steps, evaluations, checkpoints, callbacks. */
#include "base/argument.h"
#include "base/files/remote.h"
#include "base/system/clock.h"
#include "base/system/float_state.h"
#include "job/full_batch.h"
#include "predict/score.h"
#include "train/trainer_state.h"
#include <stdio.h>

/* The displayed rate is an average over about this many seconds of steps; the first one over
 * fewer. */
#define RECENT_SECONDS 1.0
/* Interval of reading the energy counters, which wrap around after some minutes of full load. */
#define METER_SECONDS 60.0

void qn_train_stop(qn_train *t) {
    if (!t)
        return;
    atomic_store(&t->stop, 1);
    qn__remote_hurry(&t->hurries);
    if (t->cluster)
        qn_cluster_stop(t->cluster);
}

/* Among ranks all stop after the same step: a request counts when all ranks have received it. */
static int stopping(const qn_train *t) {
    return t->cluster ? qn__cluster_stopping(t->cluster) : atomic_load(&t->stop);
}

static void measure_step(qn_train *t) {
    const double seconds = t->clock.training - t->recent.training;
    const int over = seconds >= RECENT_SECONDS;
    if (seconds > 0 && (over || !t->recent.known))
        t->recent.rate = (double)(t->done.items - t->recent.items) / seconds;
    if (!over)
        return;
    t->recent.training = t->clock.training;
    t->recent.items = t->done.items;
    t->recent.known = 1;
}

static void report_step(qn_train *t, double now) {
    const qn__train_job *job = &t->job;
    measure_step(t);
    if (now - t->clock.last_meter >= METER_SECONDS) {
        qn__team_meter(job->team, 0);
        t->clock.last_meter = now;
    }
    if (!t->options.on_step)
        return;
    const uint64_t batch = job->recipe.batch ? job->recipe.batch : job->feed.items;
    const uint64_t left = (job->steps - job->step) * batch;
    const qn_score running = qn__score_of(&job->running);
    const qn_step_event event = {.size = sizeof event,
                                 .epoch = (uint32_t)((job->step - 1) / job->steps_per_epoch),
                                 .epochs = job->recipe.epochs,
                                 .step = job->step,
                                 .steps = job->steps,
                                 .items_done = job->running.items,
                                 .items_per_second = t->recent.rate,
                                 .seconds_left =
                                     t->recent.rate > 0 ? (double)left / t->recent.rate : 0,
                                 .loss = running.loss};
    t->options.on_step(t->options.user, &event);
    qn__float_state_set();
}

/* A record that cannot be written does not stop a training: the record ends, which is reported now
 * and by qn_train_report_get. */
static void record_epoch(qn_train *t, const qn_epoch_event *event) {
    char text[1200];
    qn_error why = {0};
    if (t->record.story)
        qn__record_epoch(t->record.story, event, NULL); /* memory that is short shows at its end */
    qn__train_store_epoch(t);
    if (!t->record.dir || !qn__train_is_writer(t) || !qn__train_may_record(t))
        return;
    qn_status status = qn__train_take_record(t, event->epoch - 1, &why);
    if (status == QN_OK)
        status = qn__record_epoch(t->record.folder, event, &why);
    if (!qn__train_recorded(t, status, &why))
        return;
    snprintf(text, sizeof text, "%s; the training continues without its record", why.what);
    qn__train_note(t, text);
}

static qn_status end_epoch(qn_train *t, qn_error *err) {
    qn__train_job *job = &t->job;
    qn_status status = qn__train_score(t, err);
    if (status == QN_OK)
        status = qn__train_say(t, err);
    qn__train_span(t, "epoch", t->trace.epoch_begun);
    t->trace.epoch_begun = 0;
    if (status != QN_OK)
        return status;
    const double seconds = t->clock.epoch_training;
    const uint64_t epochs = job->step / job->steps_per_epoch;
    uint64_t first;
    const uint32_t stage = qn__stages_at(&job->stages, epochs - 1, &first);
    const qn_epoch_event event = {.size = sizeof event,
                                  .epoch = (uint32_t)(job->step / job->steps_per_epoch),
                                  .epochs = job->recipe.epochs,
                                  .seconds = seconds,
                                  .items_per_second =
                                      seconds > 0 ? (double)t->done.epoch_items / seconds : 0,
                                  .learning_rate = job->learning_rate,
                                  .real = job->recipe.task == QN__TASK_REGRESS,
                                  .next = job->recipe.task == QN__TASK_NEXT,
                                  .train = t->scores.train,
                                  .valid = t->scores.valid,
                                  .test = t->scores.test,
                                  .stage = stage + 1,
                                  .stages = job->stages.count,
                                  .stage_ends = epochs == first + job->stages.stage[stage].epochs};
    t->clock.epoch_training = 0;
    t->done.epoch_items = 0;
    record_epoch(t, &event);
    status = qn__train_report_epoch(t, &event, err);
    if (status == QN_OK)
        qn__train_watch(t, &event);
    return status == QN_OK ? qn__train_best_judge(t, t->scores.valid_loss, err) : status;
}

void qn__train_each_step(qn_train *t, qn__step_fn *take, void *user) {
    t->each = (qn__train_each){.take = take, .user = user};
}

const char *qn__train_recipe(const qn_train *t) { return t->job.recipe_json; }

static qn_status tell_step(qn_train *t, qn_error *err) {
    qn__train_job *job = &t->job;
    const qn_status status = t->failed = qn__train_job_flush(job, err);
    if (status != QN_OK)
        return status;
    const int first = (job->step - 1) % job->steps_per_epoch == 0; /* of its epoch */
    const qn__tally before = first ? (qn__tally){0} : t->each.before;
    const qn__tally own = {.loss = job->running.loss - before.loss,
                           .items = job->running.items - before.items};
    t->each.before = job->running;
    if (!t->each.take(t->each.user, job->learning_rate, qn__score_of(&own).loss))
        job->steps = job->step;
    qn__float_state_set();
    return QN_OK;
}

/* Whether a rank joins now: the same answer on all ranks. */
static int wants_in(const qn_train *t) {
    return t->cluster && qn__cluster_letting_in(t->cluster) && !stopping(t);
}

static qn_status one_step(qn_train *t, qn_error *err) {
    qn__train_job *job = &t->job;
    const uint64_t before = job->step % job->steps_per_epoch ? job->running.items : 0;
    const uint64_t at = job->step;
    const double begun = qn__now();
    t->trace.epoch_begun = t->trace.epoch_begun > 0 ? t->trace.epoch_begun : begun;
    qn__train_request_save(t, begun);
    qn__cluster_ask_door(t->cluster);
    qn__train_giving_end(t, 0);
    qn_status status = t->failed = qn__train_job_step(job, err);
    if (status == QN_OK && t->each.take && job->step > at)
        status = tell_step(t, err);
    if (status != QN_OK || job->step == at) /* nothing was left to do */
        return status;
    const double now = qn__now();
    t->clock.training += now - begun;
    t->clock.epoch_training += now - begun;
    t->done.items += job->running.items - before;
    t->done.epoch_items += job->running.items - before;
    ++t->done.steps;
    if (t->done.steps == 1)
        t->clock.first_step = now;
    report_step(t, now);
    if (job->step % job->steps_per_epoch == 0 || (t->cluster && qn__cluster_saving(t->cluster)))
        qn__train_giving_keep(t);
    if (job->step % job->steps_per_epoch == 0)
        status = end_epoch(t, err);
    if (status == QN_OK && job->step < job->steps)
        status = qn__train_save_if_due(t, now, err);
    if (status == QN_OK && job->step < job->steps && wants_in(t))
        status = qn__train_let_in(t, err);
    return status;
}

static void begin_stretch(qn_train *t, double begun) {
    qn__team_meter(t->job.team, 1);
    t->saved.last = t->clock.last_meter = t->clock.run_begun = begun;
    t->clock.waiting_at = 0;
    t->clock.waiting_at = qn__train_waiting(t) - t->clock.waited;
}

static void end_stretch(qn_train *t) {
    t->clock.waited = qn__train_waiting(t);
    t->clock.seconds += qn__now() - t->clock.run_begun;
    t->clock.run_begun = 0;
    qn__team_meter(t->job.team, 0);
}

static void note_convergence(const qn_train *t) {
    char text[256];
    qn__full_batch_describe(&t->job, text, sizeof text);
    if (*text && qn__train_is_writer(t))
        qn__train_note(t, text);
}

/* Values that somebody changes may be why numbers left their range, too. Ranks know of such numbers
 * together, and must not learn of a file one by one. */
static qn_status check_file(qn_train *t, qn_status status, qn_error *err) {
    qn_error changed = {0};
    if (status != QN_OK && (status != QN_NUMERIC || t->cluster))
        return status;
    const qn_status found = qn__data_check_file(t->sets.given.train, &changed);
    if (found == QN_OK)
        return status;
    if (err)
        *err = changed;
    return t->failed = found;
}

/* The work after the last step, whatever the reason for the end. */
static qn_status end_run(qn_train *t, qn_status status, qn_error *err) {
    const qn__train_job *job = &t->job;
    status = check_file(t, status, err);
    if (status == QN_OK && t->cluster) {
        qn__cluster_saved(t->cluster);
        status = qn__train_compare(t, err);
    }
    if (status == QN_OK && t->saved.dir)
        status = qn__by_writer(t->cluster, qn__train_save_last, t, err);
    if (status == QN_OK && job->step == job->steps)
        status = t->failed = qn__train_best_use(t, err);
    if (status == QN_OK && job->step < job->steps)
        status = qn__fail(err, QN_INTERRUPTED, "stopped after step %llu of %llu",
                          (unsigned long long)job->step, (unsigned long long)job->steps);
    if (status == QN_DEVICE)
        status = qn__train_keep_what_is_left(t, err);
    else if (status != QN_INTERRUPTED && status != QN_NUMERIC)
        qn__train_fail_all(t, status, err); /* all ranks know of a number out of range already */
    /* The first failure is reported. A rank that had to leave writes nothing: another rank owns the
     * record now. */
    if (t->record.folder && status != QN_OK && qn__train_is_writer(t))
        qn__record_end(t->record.folder, NULL, NULL,
                       status == QN_INTERRUPTED ? "interrupted" : "failed", NULL);
    if (status != QN_OK)
        qn__train_store(t, NULL, NULL, status == QN_INTERRUPTED ? "interrupted" : "failed");
    qn__train_write_trace(t, status == QN_OK || status == QN_INTERRUPTED);
    return status;
}

static qn_status run(qn_train *t, qn_error *err) {
    qn__train_job *job = &t->job;
    const double begun = qn__now();
    qn_status status = qn__train_failed(t, err);
    if (status != QN_OK)
        return status;
    if (qn__cluster_is_joining(t->cluster))
        status = qn__train_come_in(t, err);
    qn__train_open_door(t);
    begin_stretch(t, begun);
    while (status == QN_OK && job->step < job->steps && !stopping(t))
        status = one_step(t, err);
    qn__train_giving_keep(t);
    if (status == QN_OK)
        status = t->failed = qn__train_job_flush(job, err); /* for a run that was stopped midway */
    qn__cluster_close_door(t->cluster);
    end_stretch(t);
    if (status == QN_OK)
        note_convergence(t);
    status = end_run(t, status, err);
    qn__train_giving_end(t, 1); /* the ranks have compared their states */
    if (t->clock.first_step <= 0)
        t->clock.first_step = begun;
    atomic_store(&t->stop, 0);
    qn__remote_hurry_end(&t->hurries);
    qn__cluster_go_on(t->cluster);
    return status;
}

qn_status qn_train_run(qn_train *t, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_AS(t, "train", err);
    qn_error unheard;
    err = err ? err : &unheard;
    const qn_status status = qn__train_enter(t, __func__, err);
    return status == QN_OK ? qn__train_leave(t, run(t, err)) : status;
}
