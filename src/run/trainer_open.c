/* Opening and closing a training: its options, what fits what, where it goes on from. */
#include "base/clock.h"
#include "base/memory.h"
#include "base/threads.h"
#include "model/recipe_options.h"
#include "run/trainer.h"
#include "run/trainer_state.h"
#include <stdio.h>
#include <string.h>

/* Confusions are counted for at most this many outputs: the table has their square. */
enum { CONFUSION_OUTPUTS = 1024 };

void qn_train_options_init(qn_train_options *options) {
    memset(options, 0, sizeof *options);
    options->size = sizeof *options;
    options->loss = "cross-entropy";
    options->init = "auto";
    options->scale = "unit";
    options->schedule = "constant";
    options->rate = 0.1f;
    options->beta1 = 0.9f;
    options->beta2 = 0.999f;
    options->epsilon = 1e-8f;
    options->lr_gamma = 0.1f;
    options->batch = 64;
    options->grain = 32;
    options->epochs = 10;
    options->seed = 1;
    options->unit = 44;
}

qn_status qn_train_options_from_model(const qn_model *model, const qn_data *data,
                                      qn_train_options *options, qn_error *err) {
    const qn__recipe *recipe = qn__model_recipe_of(model);
    if (strcmp(recipe->data, qn_data_digest(data)) != 0) {
        qn__fail(err, QN_MISMATCH, "the data is not what the model was made from");
        qn__at(err, "digest of the data %s, in the recipe %s", qn_data_digest(data), recipe->data);
        return qn__remedy(
            err, QN_MISMATCH,
            "give the training data as it was: the same items in the same order, with the "
            "same --label");
    }
    qn__recipe_to_options(recipe, qn__model_text(model), options);
    return QN_OK;
}

void qn__train_tell(const qn_train *t, const char *text) {
    if (t->options.on_note)
        t->options.on_note(t->options.user, text);
}

/* What opening the devices found; kept for another where nobody listens. */
static void tell_of_devices(const qn_train *t) {
    char text[512];
    while (t->options.on_note && qn_device_note(text, sizeof text))
        qn__train_tell(t, text);
}

qn__snapshot qn__train_snapshot(qn_train *t) {
    qn__train_job *job = &t->job;
    return (qn__snapshot){.recipe_json = job->recipe_json,
                          .step = job->step,
                          .running = job->running,
                          .powers = job->powers,
                          .parameters = job->program.parameters,
                          .slots = qn__optimizer_slots(job->program.optimizer),
                          .parameter = job->state.parameters,
                          .slot = {job->state.slot[0], job->state.slot[1]}};
}

static qn_status resume(qn_train *t, qn_error *err) {
    qn__snapshot snapshot = qn__train_snapshot(t);
    char text[128];
    int found = 0;
    qn_status status = qn__checkpoints_last(t->checkpoints, &snapshot, &found, t->options.on_note,
                                            t->options.user, err);
    if (status != QN_OK)
        return status;
    if (!found) {
        qn__train_tell(t, "the checkpoint folder is empty: starting from the beginning");
        return QN_OK;
    }
    t->job.step = snapshot.step;
    t->job.running = snapshot.running;
    t->job.powers = snapshot.powers;
    t->resumed_from = t->saved_step = snapshot.step;
    snprintf(text, sizeof text, "resumed at step %llu of %llu", (unsigned long long)t->job.step,
             (unsigned long long)t->job.steps);
    qn__train_tell(t, text);
    return qn__train_job_push(&t->job, err);
}

static qn_status open_checkpoints(qn_train *t, const char *dir, qn_error *err) {
    uint64_t there = 0;
    if (!(t->checkpoint_dir = qn__copy_text(dir, err)))
        return QN_MEMORY;
    qn_status status = qn__checkpoints_open(dir, &t->checkpoints, err);
    if (status == QN_OK && t->options.resume)
        return resume(t, err);
    if (status == QN_OK)
        status = qn__checkpoints_count(t->checkpoints, &there, err);
    if (status == QN_OK && there > 0) {
        qn__fail(err, QN_USAGE, "the folder %s holds checkpoints of an earlier run", dir);
        return qn__remedy(err, QN_USAGE, "add --resume to go on from them, or name another folder");
    }
    return status;
}

static qn_status open_record(qn_train *t, const qn_train_options *options, qn_error *err) {
    const int threads = options->compute.threads ? options->compute.threads : qn__cores();
    const qn__record_start start = {.recipe_json = t->job.recipe_json,
                                    .isa = options->compute.isa ? options->compute.isa : "auto",
                                    .threads = threads,
                                    .arguments = options->command_line ? 1 : 0,
                                    .argument = &options->command_line,
                                    .epochs_done = t->job.step / t->job.steps_per_epoch};
    return qn__record_open(options->run_dir, &start, &t->record, err);
}

static qn_status open_trace(qn_train *t, const char *path, qn_error *err) {
    if (!(t->trace_path = qn__copy_text(path, err)))
        return QN_MEMORY;
    const qn_status status = qn__trace_create(0, &t->trace, err);
    if (status != QN_OK)
        return status;
    t->track = qn__trace_track(t->trace, "job");
    qn__team_trace(t->job.team, t->trace);
    return QN_OK;
}

/* What is wrong with the options before any data is looked at. */
static qn_status check_options(const qn_train_options *o, const qn_data *valid, qn_error *err) {
    if (o->size != sizeof *o) {
        qn__fail(err, QN_USAGE, "the options are of another version of the library");
        return qn__remedy(err, QN_USAGE, "fill them with qn_train_options_init first");
    }
    if (o->valid_fraction > 0 && valid) {
        qn__fail(err, QN_USAGE, "a validation set and a validation fraction exclude each other");
        return qn__remedy(err, QN_USAGE, "give --valid once");
    }
    if (o->resume && !o->checkpoint_dir) {
        qn__fail(err, QN_USAGE, "there is no folder of checkpoints to resume from");
        return qn__remedy(err, QN_USAGE, "name it with --checkpoint");
    }
    if (!(o->checkpoint_part >= 0 && o->checkpoint_part <= 1)) {
        qn__fail(err, QN_USAGE, "checkpoints cannot take the part %g of the time",
                 o->checkpoint_part);
        return qn__remedy(err, QN_USAGE, "0.01 is a hundredth of the time; 0 is not by their cost");
    }
    return qn_compute_check(&o->compute, err);
}

static qn_status check_labels(const qn_data *train, qn_error *err) {
    if (qn_data_labels(train))
        return QN_OK;
    qn__fail(err, QN_INPUT, "the training data has no labels");
    return qn__remedy(err, QN_INPUT,
                      "IDX: give the file of labels too (--labels); CSV: --label says which column "
                      "holds them");
}

/* Room for the confusions and what is said of the ranks, made now so that a long run cannot fail
 * for it at its end. */
static qn_status make_reports(qn_train *t, qn_error *err) {
    const size_t outputs = t->job.layer[t->job.program.layers - 1].out;
    t->ranks = qn__alloc(1, sizeof *t->ranks, err);
    if (!t->ranks)
        return QN_MEMORY;
    if (!t->test || outputs > CONFUSION_OUTPUTS)
        return QN_OK;
    t->confusion = qn__alloc(outputs * outputs, sizeof *t->confusion, err);
    return t->confusion ? QN_OK : QN_MEMORY;
}

static qn_status check_sets(const qn_train *t, qn_error *err) {
    qn_status status = QN_OK;
    if (t->valid)
        status = qn__train_job_fits(&t->job, t->valid, "the validation set", err);
    if (status == QN_OK && t->test)
        status = qn__train_job_fits(&t->job, t->test, "the test set", err);
    return status;
}

qn_status qn__train_open_on(const qn_train_options *options, const qn_data *train,
                            const qn_data *valid, const qn_data *test, const qn__member *members,
                            uint32_t count, qn_train **out, qn_error *err) {
    const double opened = qn__now();
    qn__recipe recipe;
    *out = NULL;
    qn_status status = check_options(options, valid, err);
    if (status == QN_OK)
        status = check_labels(train, err);
    if (status == QN_OK)
        status = qn__recipe_from_options(options, train, &recipe, err);
    if (status != QN_OK)
        return status;
    qn_train *t = qn__alloc(1, sizeof *t, err);
    if (!t)
        return QN_MEMORY;
    t->options = *options;
    t->opened = opened;
    t->test = test;
    t->saved_step = t->scored_step = NO_STEP;
    status = qn__train_job_create(&t->job, &recipe, train, &options->compute, members, count, err);
    if (status == QN_OK) {
        t->valid = valid ? valid : t->job.split[1];
        qn__team_notes(t->job.team, options->on_note, options->user);
        tell_of_devices(t);
        status = check_sets(t, err);
    }
    if (status == QN_OK)
        status = make_reports(t, err);
    if (status == QN_OK && options->checkpoint_dir)
        status = open_checkpoints(t, options->checkpoint_dir, err);
    if (status == QN_OK && options->trace)
        status = open_trace(t, options->trace, err);
    if (status == QN_OK && options->run_dir)
        status = open_record(t, options, err);
    if (status != QN_OK) {
        qn_train_close(t);
        return status;
    }
    *out = t;
    return QN_OK;
}

qn_status qn_train_open(const qn_train_options *options, const qn_data *train, const qn_data *valid,
                        const qn_data *test, qn_train **out, qn_error *err) {
    return qn__train_open_on(options, train, valid, test, NULL, 0, out, err);
}

void qn_train_close(qn_train *t) {
    if (!t)
        return;
    qn__record_close(t->record);
    qn__checkpoints_close(t->checkpoints);
    qn__train_job_destroy(&t->job);
    qn__trace_free(t->trace);
    qn__free(t->trace_path);
    qn__free(t->confusion);
    qn__free(t->ranks);
    qn__free(t->checkpoint_dir);
    qn__free(t);
}
