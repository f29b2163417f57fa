/* The checkpoints of a training. Among ranks the writer rank writes; if it is lost, the next one
 * takes over the folder. */
#include "base/argument.h"
#include "base/system/clock.h"
#include "base/system/float_state.h"
#include "train/trainer_state.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The minimum interval between checkpoints in seconds; and the assumed speed of a disk, in bytes
 * per second, before any was written. */
#define SOONEST 1.0
#define SLOW_DISK 1e8
/* Seconds to wait for the folder, and microseconds between two attempts, where another run holds
 * it. An interrupted run waits longer, because its last checkpoint is its only result; a complete
 * run has its model. */
#define LONG_WAIT 5.0
#define SHORT_WAIT 0.2
enum { LOOK_AGAIN = 10000 };

/* The layer that a parameter belongs to. */
static uint32_t layer_of(const qn__program *program, uint64_t parameter) {
    uint32_t l = program->layers - 1;
    while (l > 0 && (parameter < program->layer[l].weights ||
                     parameter >= qn__layer_end(&program->layer[l])))
        --l;
    return l;
}

/* docs/exactness.md 8.7: non-finite numbers never reach a file. */
static qn_status check_finite(const qn_train *t, qn_error *err) {
    const float *parameter = qn__train_job_shown(&t->job);
    for (uint64_t i = 0; i < t->job.program.parameters; ++i) {
        if (isfinite(parameter[i]))
            continue;
        qn__fail(err, QN_NUMERIC, "a parameter of layer %u became %s", layer_of(&t->job.program, i),
                 isnan(parameter[i]) ? "NaN" : "infinite");
        qn__at(err, "step %llu", (unsigned long long)t->job.step);
        return qn__remedy(err, QN_NUMERIC,
                          "a lower `train.learning_rate` or a warm-up usually helps");
    }
    return QN_OK;
}

static qn_status write_checkpoint(qn_train *t, qn__checkpoints *to, qn_error *err) {
    const double begun = qn__now();
    qn_status status = qn__train_failed(t, err);
    if (status == QN_OK)
        status = qn__train_job_pull(&t->job, err);
    if (status == QN_OK)
        status = check_finite(t, err);
    if (status != QN_OK)
        return status;
    const qn__snapshot snapshot = qn__train_snapshot(t);
    status = qn__checkpoints_write(to, &snapshot, err);
    if (status == QN_BUSY && !qn__train_is_writer(t))
        return QN_OK; /* the next reduction returns the reason */
    t->saved.last = qn__now();
    t->saved.cost = fmax(t->saved.last - begun, 0.5 * t->saved.cost);
    if (status == QN_OK && to == t->saved.folder)
        t->saved.step = t->job.step;
    qn__train_span(t, "checkpoint", begun);
    return status;
}

static qn_status write_into(qn_train *t, const char *dir, qn_error *err) {
    qn__checkpoints *there = NULL;
    if (t->saved.folder && strcmp(dir, t->saved.dir) == 0)
        return write_checkpoint(t, t->saved.folder, err);
    qn_status status = qn__checkpoints_open(dir, NULL, &there, err);
    if (status == QN_OK)
        status = write_checkpoint(t, there, err);
    if (status == QN_OK)
        qn__train_store_mark(t, dir, there);
    qn__checkpoints_close(there);
    return status;
}

qn_status qn_train_checkpoint(qn_train *t, const char *dir, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_AS(t, "train", err);
    QN__NEED(dir, err);
    const qn_status status = qn__train_enter(t, __func__, err);
    return status == QN_OK ? qn__train_leave(t, write_into(t, dir, err)) : status;
}

qn_status qn__train_take_folder(qn_train *t, double seconds, qn_error *err) {
    const double until = qn__now() + seconds;
    if (t->saved.folder)
        return QN_OK; /* qn__checkpoints_write finds out whether it is still this process's */
    for (;;) {
        const qn_status status =
            qn__checkpoints_open(t->saved.dir, &t->owner, &t->saved.folder, err);
        if (status != QN_BUSY || qn__now() >= until)
            return status;
        usleep(LOOK_AGAIN);
    }
}

/* The seconds that a checkpoint takes, by the last ones, or a high estimate from its size. */
static double checkpoint_cost(const qn_train *t) {
    const double bytes =
        (double)t->job.program.parameters * sizeof(float) *
        (1 + qn__program_slots(&t->job.program) + (t->job.full.lbfgs ? 2 * QN__LBFGS_PAIRS : 0));
    return t->saved.cost > 0 ? t->saved.cost : 0.02 + bytes / SLOW_DISK;
}

/* Whether a checkpoint is due after that step. */
static int checkpoint_due(const qn_train *t, uint64_t step, double now) {
    const qn_train_options *o = &t->options;
    if (!t->saved.dir)
        return 0;
    if (o->checkpoint_steps && step % o->checkpoint_steps == 0)
        return 1;
    if (o->checkpoint_part > 0 &&
        now - t->saved.last >= fmax(SOONEST, checkpoint_cost(t) / o->checkpoint_part))
        return 1;
    return o->checkpoint_seconds > 0 && now - t->saved.last >= o->checkpoint_seconds;
}

/* 1 if the run can continue without this checkpoint: the disk refuses it, or another process holds
 * the folder. */
static int can_wait(qn_status status) { return status == QN_IO || status == QN_BUSY; }

/* "the last good checkpoint is of step 40". Reads the folder, because another rank may have
 * written. */
static void describe_last(const qn_train *t, char *text, size_t size) {
    uint64_t step = t->saved.step;
    int found = 0;
    if (qn__checkpoints_newest(t->saved.dir, &step, &found, NULL) != QN_OK)
        found = t->saved.step != NO_STEP;
    if (found)
        snprintf(text, size, "the last good checkpoint is of step %llu", (unsigned long long)step);
    else
        snprintf(text, size, "there is no good checkpoint");
}

/* A checkpoint during the run could not be written. Only the first of several in a row is
 * reported. */
static qn_status pass_over(qn_train *t, const qn_error *why) {
    char text[2048];
    snprintf(
        text, sizeof text,
        "%s; the run continues without a checkpoint of step %llu and tries again when the next "
        "one is due%s%s",
        why->what, (unsigned long long)t->job.step, *why->remedy ? "; " : "", why->remedy);
    if (!t->saved.passed_over)
        qn__train_warn(t, text);
    t->saved.passed_over = 1;
    t->saved.last = qn__now();
    return QN_OK;
}

/* The last checkpoint of a complete run could not be written: the model, possibly on another disk,
 * is more important. */
static qn_status end_without(qn_train *t, const qn_error *why) {
    char text[2048], last[96];
    describe_last(t, last, sizeof last);
    snprintf(text, sizeof text, "%s; the run continues without a checkpoint of step %llu; %s",
             why->what, (unsigned long long)t->job.step, last);
    qn__train_warn(t, text);
    t->saved.passed_over = 1;
    return QN_OK;
}

static void note_working_again(qn_train *t) {
    char text[160];
    if (!t->saved.passed_over || t->saved.step != t->job.step)
        return;
    snprintf(text, sizeof text, "checkpoints can be written again: the last one is of step %llu",
             (unsigned long long)t->saved.step);
    qn__train_warn(t, text);
    t->saved.passed_over = 0;
}

static qn_status take_and_write(qn_train *t, double seconds, qn_error *err) {
    qn_status status = qn__train_take_folder(t, seconds, err);
    if (status == QN_OK)
        status = write_checkpoint(t, t->saved.folder, err);
    if (status == QN_BUSY) { /* the lock is lost: it is asked for again */
        qn__checkpoints_close(t->saved.folder);
        t->saved.folder = NULL;
    }
    if (status == QN_OK)
        note_working_again(t);
    return status;
}

void qn__train_request_save(qn_train *t, double now) {
    if (t->cluster && qn__train_is_writer(t) && checkpoint_due(t, t->job.step + 1, now))
        qn__cluster_request_save(t->cluster);
}

/* Among ranks the clock of one of them decides, and its request was sent with the sums of the step.
 * All compare their states before writing. */
qn_status qn__train_save_if_due(qn_train *t, double now, qn_error *err) {
    const int due =
        t->cluster ? qn__cluster_saving(t->cluster) : checkpoint_due(t, t->job.step, now);
    if (!due)
        return QN_OK;
    qn_status status = QN_OK;
    if (t->cluster) {
        qn__cluster_saved(t->cluster);
        status = qn__train_compare(t, err);
    }
    if (status != QN_OK || !qn__train_is_writer(t))
        return status;
    status = take_and_write(t, 0, err);
    return can_wait(status) ? pass_over(t, err) : qn__train_fail_all(t, status, err);
}

qn_status qn__train_save_last(void *context, qn_error *err) {
    qn_train *t = context;
    char last[96];
    if (t->saved.step == t->job.step)
        return QN_OK;
    const int complete = t->job.step == t->job.steps;
    const qn_status status = take_and_write(t, complete ? SHORT_WAIT : LONG_WAIT, err);
    if (complete && can_wait(status))
        return end_without(t, err);
    if (status == QN_IO) { /* an interrupted run has no other result */
        describe_last(t, last, sizeof last);
        qn__remedy(err, status,
                   "%s; when the folder can be written again, continue with `train.resume`", last);
    }
    return qn__train_fail_all(t, status, err);
}

/* All workers are lost. The host's copy of the state is written as a checkpoint, if there is a
 * folder. */
qn_status qn__train_keep_what_is_left(qn_train *t, qn_error *err) {
    const uint64_t reached = t->job.step;
    qn_error failure;
    t->failed = QN_DEVICE;
    if (qn__cluster_withdraw(t->cluster))
        return qn__remedy(err, QN_DEVICE, "the other ranks continue without this one");
    qn__train_job_salvage(&t->job);
    if (t->saved.dir && qn__train_take_folder(t, LONG_WAIT, NULL) != QN_OK)
        return qn__remedy(err, QN_DEVICE, "start again with `train.resume` and other devices");
    if (!t->saved.folder)
        return qn__remedy(
            err, QN_DEVICE,
            "start again with other devices; with `train.checkpoint_dir`, such a loss costs "
            "seconds");
    if (t->saved.step == NO_STEP || t->saved.step < t->job.step) {
        const qn__snapshot snapshot = qn__train_snapshot(t);
        qn_status status = check_finite(t, &failure);
        if (status == QN_OK)
            status = qn__checkpoints_write(t->saved.folder, &snapshot, &failure);
        if (status == QN_OK)
            t->saved.step = t->job.step;
    }
    if (t->saved.step == NO_STEP)
        return qn__remedy(err, QN_DEVICE, "start again with other devices");
    return qn__remedy(
        err, QN_DEVICE,
        "start again with `train.resume` and other devices: the checkpoint is of step %llu, "
        "%llu steps were done",
        (unsigned long long)t->saved.step, (unsigned long long)reached);
}
