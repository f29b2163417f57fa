/* Opening and closing a training: its options, their consistency, and where it continues from. */
#include "base/files/remote.h"
#include "base/argument.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/system/available.h"
#include "base/system/clock.h"
#include "base/system/float_state.h"
#include "data/cells/labels.h"
#include "data/prepare/inputs.h"
#include "job/agree.h"
#include "model/formats/recipe_options.h"
#include "train/train_sets.h"
#include "train/data_hints.h"
#include "train/precision.h"
#include "train/trainer.h"
#include "train/trainer_state.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Confusions are counted up to this number of outputs: the table has its square. */
enum { CONFUSION_OUTPUTS = 1024 };
/* Trace records of all ranks together, and the minimum of each. */
enum { TRACE_RECORDS = 1 << 18, LEAST_RECORDS = 1 << 12 };

/* Whether both have weights of items, or neither has. */
static qn_status check_weighted(const qn__recipe *recipe, const qn_data *data, qn_error *err) {
    if (!recipe->weight == !data->weights)
        return QN_OK;
    qn__fail(err, QN_MISMATCH,
             recipe->weight ? "the items of the training had weights, these have none"
                            : "the items of the training had no weights, these have some");
    return qn__remedy(err, QN_MISMATCH,
                      recipe->weight ? "name their column with `data.weight`, as for the training"
                                     : "leave `data.weight` out");
}

/* Whether the data, its columns in the order of the recipe's, is what the recipe was made for. */
static qn_status check_digest(const qn__recipe *recipe, const qn_data *data, qn_error *err) {
    qn__fitting to = qn__fitting_of(recipe, "the training data");
    to.as_trained = 1;
    qn_data *made;
    qn_status status = qn__encode(&to, data, QN__UNKNOWN_REFUSED, &made, err);
    const char *digest = qn_data_digest(made ? made : data);
    if (status == QN_OK)
        status = check_weighted(recipe, data, err);
    if (status == QN_OK && strcmp(recipe->data, digest) != 0) {
        qn__fail(err, QN_MISMATCH, "this is not the data that the model was trained on");
        qn__at(err, "digest of the data %s, in the recipe %s", digest, recipe->data);
        status = qn__remedy(
            err, QN_MISMATCH,
            "give the training data as it was: the same items in the same order, with the "
            "same `data.label_column` and `data.resize`");
    }
    qn_data_close(made);
    return status;
}

/* A replay starts from the parameters that the training started from. */
static qn_status check_start(const qn__recipe *recipe, const qn_model *start, qn_error *err) {
    const char *own = start ? qn_model_digest(start) : "";
    if (strcmp(recipe->init_from, own) == 0)
        return QN_OK;
    qn__fail(err, QN_MISMATCH, "%s",
             !start               ? "the training started from another model"
             : *recipe->init_from ? "this is not the model that the training started from"
                                  : "the training did not start from a model");
    qn__at(err, "digest in the recipe %s, given %s",
           *recipe->init_from ? recipe->init_from : "none", *own ? own : "none");
    return qn__remedy(err, QN_MISMATCH, "%s",
                      *recipe->init_from ? "give that model with `train.init_from`"
                                         : "leave out `train.init_from`");
}

/* The recipe of an imported model describes no training (docs/exactness.md 12.4). */
static qn_status check_trained(const qn__recipe *recipe, qn_error *err) {
    if (strspn(recipe->data, "0") < strlen(recipe->data))
        return QN_OK;
    qn__fail(err, QN_MISMATCH, "the model was imported, so there is no training to repeat");
    return qn__remedy(err, QN_MISMATCH, "start a training from it with `train.init_from`");
}

qn_status qn_train_options_from_model(const qn_model *model, const qn_data *data,
                                      qn_train_options *options, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(model, err);
    QN__NEED(data, err);
    QN__NEED(options, err);
    qn_train_options own;
    qn_status status = qn__train_options_take(__func__, "options", options, &own, err);
    if (status == QN_OK)
        status = qn__model_need_network(model, "a training", err);
    if (status != QN_OK)
        return status;
    const qn__recipe *recipe = qn__model_recipe_of(model);
    status = check_trained(recipe, err);
    if (status == QN_OK)
        status = check_digest(recipe, data, err);
    if (status == QN_OK)
        status = check_start(recipe, own.init_from, err);
    if (status != QN_OK)
        return status;
    qn__recipe_to_options(recipe, qn__model_text(model), &own);
    own.table_of = model;
    qn__sized_give(QN__SIZED("options", qn_train_options), &own, options, options->size);
    return QN_OK;
}

qn_status qn_train_options_settle(qn_train_options *options, const qn_data *data, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(options, err);
    QN__NEED(data, err);
    qn_train_options own;
    qn__recipe recipe = {0};
    qn_status status = qn__train_options_take(__func__, "options", options, &own, err);
    if (status == QN_OK)
        status = qn__recipe_from_options(&own, data, &recipe, err);
    if (status != QN_OK)
        return status;
    qn__recipe_settle(&recipe, &own);
    qn__recipe_release(&recipe);
    qn__sized_give(QN__SIZED("options", qn_train_options), &own, options, options->size);
    return QN_OK;
}

qn_status qn_train_model_text(const qn_train_options *options, const qn_data *data, char *text,
                              size_t capacity, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(options, err);
    QN__NEED(data, err);
    QN__NEED(text, err);
    qn_train_options own;
    qn__recipe recipe = {0};
    qn__text layers = {0};
    qn_status status = qn__train_options_take(__func__, "options", options, &own, err);
    if (status == QN_OK)
        status = qn__recipe_from_options(&own, data, &recipe, err);
    if (status != QN_OK)
        return status;
    qn__network_text(&recipe.network, &layers);
    qn__recipe_release(&recipe);
    if (layers.failed)
        status = qn__fail_memory(err, 1, QN__MAX_LAYERS);
    else if (layers.size >= capacity)
        status = qn__fail(err, QN_USAGE, "the network's text has %zu bytes", layers.size);
    else
        memcpy(text, layers.data, layers.size + 1);
    qn__text_release(&layers);
    return status;
}

/* Notes features that integers of so few bits represent badly. */
static qn_status note_features(const qn_train *t, qn_error *err) {
    char text[640];
    if (!t->options.on_note || !qn__train_is_writer(t))
        return QN_OK;
    const qn_status status = qn__precision_warning(&t->job, text, sizeof text, err);
    if (status == QN_OK && *text)
        qn__train_note(t, text);
    return status;
}

static void tell_hint(void *user, const char *text) { qn__train_note(user, text); }

/* Of a training from the beginning: a replay and a resumption know their data. */
static qn_status note_data(qn_train *t, const qn_train_options *o, qn_error *err) {
    const int replays = o->table_of && o->table_of != o->init_from;
    if (!o->on_note || !qn__train_is_writer(t) || replays || o->resume)
        return QN_OK;
    return qn__data_hints(t->sets.given.train, o->class_weight != NULL, tell_hint, t, err);
}

/* Notes that running averages (17.8) stay near their first values in so few steps: each step leaves
 * nine tenths of them. A model to start from has better ones. */
static void note_averages(const qn_train *t) {
    const qn__train_job *job = &t->job;
    double rest = 1;
    char text[320];
    uint32_t averages = 0;
    for (uint64_t step = 0; step < job->steps && rest >= 0.01; ++step)
        rest *= 0.9;
    for (uint32_t l = 0; l < job->program.layers; ++l)
        averages += job->program.layer[l].running;
    if (!averages || rest < 0.01 || *job->recipe.init_from || !qn__train_is_writer(t))
        return;
    snprintf(text, sizeof text,
             "validation and predictions use running averages of batchnorm: after %llu step%s they "
             "still are %.0f %% of their first values, after 44 steps 1 %%; take more "
             "`train.epochs` or a smaller `train.batch`",
             (unsigned long long)job->steps, job->steps == 1 ? "" : "s", 100 * rest);
    qn__train_note(t, text);
}

/* Notes from opening the devices; kept if there is no callback. */
static void note_devices(const qn_train *t) {
    char text[512];
    while (t->options.on_note && qn_device_note(text, sizeof text))
        qn__train_note(t, text);
}

/* Another number of epochs than before may be asked for, but no smaller one than was done. */
static qn_status refuse_step(const qn_train *t, uint64_t step, qn_error *err) {
    const uint64_t each = t->job.steps_per_epoch;
    qn__fail(err, QN_USAGE, "the checkpoint is of step %llu, but the run ends at step %llu",
             (unsigned long long)step, (unsigned long long)t->job.steps);
    qn__at(err, "`train.epochs`");
    return qn__remedy(err, QN_USAGE, "give `train.epochs` %llu or more",
                      (unsigned long long)((step + each - 1) / each));
}

/* Fills the job from the last checkpoint, if there is one. */
static qn_status load_last(qn_train *t, qn_error *err) {
    qn__snapshot snapshot = qn__train_snapshot(t);
    int found = 0;
    const qn_status status = qn__checkpoints_last(t->saved.folder, &snapshot, &found,
                                                  t->options.on_note, t->options.user, err);
    if (status != QN_OK || !found)
        return status;
    if (snapshot.step > t->job.steps)
        return refuse_step(t, snapshot.step, err);
    t->job.step = snapshot.step;
    t->job.running = snapshot.running;
    t->job.powers = snapshot.powers;
    t->best.epoch = snapshot.best_epoch;
    t->best.loss = snapshot.best_loss;
    t->saved.step = snapshot.step;
    if (t->job.full.lbfgs)
        t->job.full.lbfgs->pairs = snapshot.pairs;
    return QN_OK;
}

static qn_status look_into_folder(qn_train *t, qn_error *err) {
    uint64_t there = 0;
    qn_status status = qn__train_take_folder(t, 0, err);
    if (status == QN_OK && t->options.resume)
        return load_last(t, err);
    if (status == QN_OK)
        status = qn__checkpoints_count(t->saved.folder, &there, err);
    if (status == QN_OK && there > 0) {
        qn__fail(err, QN_USAGE, "the folder %s holds checkpoints of an earlier run", t->saved.dir);
        return qn__remedy(err, QN_USAGE,
                          "add `train.resume` to continue from them, or name another folder");
    }
    return status;
}

/* The writer rank reads its folder. All ranks start from there, so the others need no access to the
 * folder. If it fails meanwhile, the next rank reads. */
static qn_status look_together(qn_train *t, qn_error *err) {
    const size_t size = qn__train_position_bytes(t);
    unsigned char *bytes = qn__alloc(size, 1, err);
    qn_status status = bytes ? QN_OK : QN_MEMORY;
    while (status == QN_OK && !qn__train_position_known(bytes)) {
        int looks = qn_cluster_is_writer(t->cluster);
        if (looks)
            status = look_into_folder(t, err);
        if (status == QN_BUSY && !qn_cluster_is_writer(t->cluster)) {
            status = QN_OK; /* another rank looks, and the reduction returns the reason */
            looks = 0;
        }
        if (status != QN_OK)
            break;
        qn__train_position_pack(t, looks, bytes);
        status = qn__cluster_from_first(t->cluster, bytes, size, err);
    }
    if (status == QN_OK)
        qn__train_position_unpack(t, bytes);
    qn__free(bytes);
    return status;
}

static qn_status open_checkpoints(qn_train *t, const char *dir, qn_error *err) {
    char text[128];
    if (!(t->saved.dir = qn__copy_text(dir, err)))
        return QN_MEMORY;
    const int joins = qn__cluster_is_joining(t->cluster); /* the others know where the run is */
    if (joins && !qn__cluster_takes_history(t->cluster))
        return QN_OK;
    const qn_status status = t->cluster ? look_together(t, err) : look_into_folder(t, err);
    if (status != QN_OK || joins || !t->options.resume)
        return status;
    t->done.resumed_from = t->job.step;
    qn__train_best_resumed(t);
    snprintf(text, sizeof text, "resumed at step %llu of %llu", (unsigned long long)t->job.step,
             (unsigned long long)t->job.steps);
    if (qn__train_is_writer(t))
        qn__train_note(t, t->saved.step == NO_STEP
                              ? "the checkpoint folder is empty: starting from the beginning"
                              : text);
    return t->saved.step == NO_STEP ? QN_OK : qn__train_job_push(&t->job, err);
}

/* Every rank keeps the facts at the start of a record, because it may have to continue it. */
static qn_status keep_facts(qn_train *t, const qn_train_options *o, qn_error *err) {
    if (!(t->isa = qn__copy_text(o->compute.isa ? o->compute.isa : "auto", err)))
        return QN_MEMORY;
    if (o->command_line && !(t->record.command_line = qn__copy_text(o->command_line, err)))
        return QN_MEMORY;
    t->record.wall = time(NULL);
    return QN_OK;
}

/* The record in memory, for a page, for a file of runs, and for a rank that takes over the record
 * of another one. */
static qn_status keep_story(qn_train *t, qn_error *err) {
    const qn__record_start start = qn__train_facts(t);
    return qn__record_keep(&start, &t->record.story, err);
}

static qn_status open_record(qn_train *t, const qn_train_options *o, qn_error *err) {
    if (!(t->record.dir = qn__copy_text(o->run_dir, err)))
        return QN_MEMORY;
    qn_status status = QN_OK;
    if (qn__train_is_writer(t))
        status = qn__train_take_record(t, t->job.step / t->job.steps_per_epoch, err);
    /* Another rank may write now: the next reduction returns the reason. Another run holds the
     * folder: an error. */
    return status == QN_BUSY && t->cluster && !qn__cluster_may_write(t->cluster) ? QN_OK : status;
}

static qn_status open_trace(qn_train *t, const char *path, qn_error *err) {
    const size_t capacity = TRACE_RECORDS / qn_cluster_ranks(t->cluster);
    if (!(t->trace.path = qn__copy_text(path, err)))
        return QN_MEMORY;
    const qn_status status = qn__trace_create(capacity > LEAST_RECORDS ? capacity : LEAST_RECORDS,
                                              &t->trace.events, err);
    if (status != QN_OK)
        return status;
    t->trace.track = qn__trace_track(t->trace.events, "job");
    qn__team_trace(t->job.team, t->trace.events);
    return QN_OK;
}

/* Checks the options before any data is read. */
static qn_status check_options(const qn_train_options *o, const qn_data *valid, qn_error *err) {
    if (o->valid_fraction > 0 && valid) {
        qn__fail(err, QN_USAGE, "a validation set and a validation fraction exclude each other");
        return qn__remedy(err, QN_USAGE, "give `train.valid_fraction` once");
    }
    if (o->resume && !o->checkpoint_dir) {
        qn__fail(err, QN_USAGE, "there is no folder of checkpoints to resume from");
        return qn__remedy(err, QN_USAGE, "name it with `train.checkpoint_dir`");
    }
    if (!(o->checkpoint_part >= 0 && o->checkpoint_part <= 1)) {
        qn__fail(err, QN_USAGE, "invalid part of the time for checkpoints: %g", o->checkpoint_part);
        return qn__remedy(
            err, QN_USAGE,
            "give a part from 0 to 1, such as 0.01; with 0 they do not follow their cost");
    }
    if (!(o->checkpoint_seconds >= 0 && o->checkpoint_seconds < INFINITY)) {
        qn__fail(err, QN_USAGE, "invalid time between checkpoints: %g seconds",
                 o->checkpoint_seconds);
        return qn__remedy(err, QN_USAGE, "give `train.checkpoint_seconds` seconds, or 0 for none");
    }
    return qn_compute_check(&o->compute, err);
}

static qn_status check_labels(const qn_data *train, qn_error *err) {
    return qn__data_labelled(train) ? qn__labels_check(train, err) : QN_OK;
}

/* Allocates the confusions and the ranks' reports now, so that a long run cannot fail for it at its
 * end. */
static qn_status make_reports(qn_train *t, qn_error *err) {
    const size_t outputs = qn__program_classes(&t->job.program);
    const uint32_t ranks = qn_cluster_ranks(t->cluster);
    t->report.last = qn__alloc(ranks, sizeof *t->report.last, err);
    if (!t->report.last)
        return QN_MEMORY;
    qn_status status = qn__rank_reports_reserve(&t->report.ranks, ranks, err);
    if (status == QN_OK)
        status = qn__train_judged_open(t, err);
    if (status != QN_OK)
        return status;
    if (!t->sets.test || outputs > CONFUSION_OUTPUTS || t->job.recipe.task != QN__TASK_CLASSIFY)
        return QN_OK;
    t->scores.confusion = qn__alloc(outputs * outputs, sizeof *t->scores.confusion, err);
    return t->scores.confusion ? QN_OK : QN_MEMORY;
}

/* Notes about a set are the same on all ranks. */
static qn__encoding_notes notes_of(const qn_train *t, const char *what) {
    return (qn__encoding_notes){.what = what,
                                .tell = qn__train_is_writer(t) ? t->options.on_note : NULL,
                                .user = t->options.user};
}

/* Checks a set of the caller and makes its inputs, which *set becomes. */
static qn_status take_set(qn_train *t, const char *what, qn__prepared *own, const qn_data **set,
                          qn_error *err) {
    if (!*set)
        return QN_OK;
    const qn__encoding how = qn__train_job_encoding(&t->job);
    const qn__encoding_notes notes = notes_of(t, what);
    qn_status status = qn__train_job_fits(&t->job, *set, what, err);
    if (status == QN_OK)
        status = qn__prepare(&how, *set, &notes, own, err);
    if (status == QN_OK)
        *set = own->inputs;
    return status;
}

/* Scales real labels now, so that a wrong one does not end the run after its first epoch. */
static qn_status take_labels(qn_train *t, qn_error *err) {
    const int real = t->job.recipe.task == QN__TASK_REGRESS;
    qn_status status = QN_OK;
    if (real && t->sets.valid)
        status = qn__train_job_comparison(&t->job, t->sets.valid, "the validation set",
                                          &t->sets.real[0], err);
    if (real && t->sets.test && status == QN_OK)
        status =
            qn__train_job_comparison(&t->job, t->sets.test, "the test set", &t->sets.real[1], err);
    return status;
}

static qn_status take_sets(qn_train *t, qn_error *err) {
    t->sets.valid = t->sets.given.valid;
    qn_status status = take_set(t, "the validation set", &t->sets.own[0], &t->sets.valid, err);
    if (status == QN_OK)
        status = take_set(t, "the test set", &t->sets.own[1], &t->sets.test, err);
    if (!t->sets.valid)
        t->sets.valid = t->job.items.valid;
    return status == QN_OK ? take_labels(t, err) : status;
}

/* The parameters of another model, whose shapes were checked, instead of random ones. */
static qn_status start_from(qn_train *t, const qn_train_options *options, qn_error *err) {
    const qn_model *model = options->init_from;
    if (!model)
        return QN_OK;
    qn__train_job_take(&t->job, model);
    qn__train_note_start(t, options);
    return qn__train_job_push(&t->job, err);
}

/* Parts that the memory asked for, or fewer than those asked for. */
static void note_parts(const qn_train *t, const qn_compute *compute) {
    const qn__program *p = &t->job.program;
    const uint32_t grains = (p->batch + p->grain - 1) / p->grain;
    char text[200];
    *text = '\0';
    if (compute->parts == 0 && p->part > 0)
        snprintf(text, sizeof text,
                 "a batch of %u items does not fit in the memory that is available: it is computed "
                 "in parts of %u (`compute.parts` %d), with the same result",
                 p->batch, p->part, t->memory.parts);
    else if (compute->parts > 1 && (uint32_t)compute->parts > grains)
        snprintf(text, sizeof text,
                 "a batch has %u grain%s of %u items, so it has no more parts; a smaller grain "
                 "gives more, and another result",
                 grains, grains == 1 ? "" : "s", p->grain);
    if (*text && qn__train_is_writer(t))
        qn__train_note(t, text);
}

/* Bytes that the steps will take; UINT64_MAX: a device does not say. */
static uint64_t later_of(const qn__memory_need *need) {
    return need->all > 0 && !need->untold ? need->batch + need->parameters : UINT64_MAX;
}

static void note_features_kept(const qn_train *t) {
    int in_file;
    const uint64_t bytes = qn__features_bytes(t->job.features, &in_file);
    const uint32_t each = t->job.features->second.layer[0].in;
    char text[200];
    if (!qn__train_is_writer(t))
        return;
    snprintf(text, sizeof text,
             "layers 0 to %u were computed once for each item: %u output%s, kept in %.1f %s of %s",
             t->job.program.frozen - 1, each, each == 1 ? "" : "s",
             (double)bytes * (bytes < 1 << 20 ? 0x1p-10 : 0x1p-20), bytes < 1 << 20 ? "KiB" : "MiB",
             in_file ? "the cache folder" : "memory");
    qn__train_note(t, text);
}

/* The outputs of layers that do not train, and the team of the others. */
static qn_status keep_features(qn_train *t, const qn_compute *compute, const qn__member *members,
                               uint32_t count, qn_error *err) {
    const qn_data *const others[2] = {t->sets.valid, t->sets.test};
    const qn_status status = qn__train_job_cut(&t->job, others, compute, members, count, err);
    if (status != QN_OK)
        return status;
    qn__team_notes(t->job.team, t->options.on_note, t->options.user);
    note_features_kept(t);
    return QN_OK;
}

/* Everything except the checks of the options. */
static qn_status prepare(qn_train *t, const qn_train_options *options, const qn__recipe *recipe,
                         const qn__member *members, uint32_t count, qn_error *err) {
    const qn__encoding_notes notes = notes_of(t, "the training data");
    qn__fitted kept;
    qn_compute compute = options->compute;
    if (t->memory.parts > 1)
        compute.parts = t->memory.parts;
    if (recipe->init_scale == QN__INIT_SCALE_KEEP)
        qn__model_fitted(options->init_from, &kept);
    qn_status status =
        qn__train_job_create(&t->job, recipe, t->sets.given.train,
                             recipe->init_scale == QN__INIT_SCALE_KEEP ? &kept : NULL, &notes,
                             &compute, members, count, later_of(&t->memory), err);
    if (status != QN_OK)
        return status;
    qn__team_notes(t->job.team, options->on_note, options->user);
    note_devices(t);
    note_parts(t, &options->compute);
    status = take_sets(t, err);
    if (status == QN_OK)
        status = note_features(t, err);
    if (status == QN_OK)
        status = note_data(t, options, err);
    if (status == QN_OK) {
        note_averages(t);
        qn__train_note_texts(t);
    }
    if (status == QN_OK)
        status = qn__train_best_open(t, err);
    if (status == QN_OK)
        status = start_from(t, options, err);
    if (status == QN_OK && t->job.features)
        status = keep_features(t, &compute, members, count, err);
    if (status == QN_OK)
        status = make_reports(t, err);
    if (status == QN_OK && options->checkpoint_dir)
        status = open_checkpoints(t, options->checkpoint_dir, err);
    if (status == QN_OK)
        qn__train_job_fill(&t->job, &options->compute);
    if (status == QN_OK && options->trace)
        status = open_trace(t, options->trace, err);
    if (status == QN_OK)
        status = keep_facts(t, options, err);
    if (status == QN_OK &&
        (options->report || options->plots || options->runs || (options->run_dir && t->cluster)))
        status = keep_story(t, err);
    if (status == QN_OK && options->run_dir)
        status = open_record(t, options, err);
    if (status == QN_OK)
        status = qn__train_open_page(t, options, err);
    if (status == QN_OK && (options->runs || t->cluster))
        status = qn__train_open_store(t, options, err);
    return status;
}

/* What is available beside the matrix of inputs, which is made later. One that does not fit is
 * refused then. */
static uint64_t available_beside(const qn__recipe *recipe, const qn_data *data) {
    const qn__encoding how = qn__recipe_encoding(recipe, NULL, NULL, NULL);
    const uint64_t available = qn__available_memory();
    const double narrow = qn__recipe_offsets(recipe) ? qn__narrow_bytes(data) : 0;
    const double inputs = qn__inputs_bytes(&how, data) + narrow;
    return inputs < (double)available ? available - (uint64_t)inputs : available;
}

/* A rank whose devices cannot be used is told so later, when it may leave the others. */
static qn_status check_memory(qn__memory_job *job, const qn__recipe *recipe, const qn_data *data,
                              qn__memory_need *need, qn_error *err) {
    qn_error found;
    job->recipe = recipe;
    job->items = qn_data_items(data);
    if (qn__memory_need_check(job, available_beside(recipe, data), need, &found) != QN_MEMORY)
        return QN_OK;
    *err = found;
    return QN_MEMORY;
}

/* The checks before anything is created. Ranks compare their inputs, and all fail alike; none has
 * taken its memory before all have looked at what there is. */
static qn_status check_all(const qn_train_options *options, qn__train_sets *sets,
                           qn__memory_job *job, qn__recipe *recipe, qn__memory_need *need,
                           qn_error *err) {
    qn_status status = check_options(options, sets->valid, err);
    if (status == QN_OK)
        status = check_labels(sets->train, err);
    if (status == QN_OK)
        status = qn__train_sets_first(options, sets, err);
    if (status == QN_OK)
        status = qn__recipe_from_options(options, sets->train, recipe, err);
    if (status == QN_OK)
        status = qn__train_sets_others(options, recipe, sets, err);
    if (status == QN_OK)
        status = qn__train_sets_judge(options, sets, recipe, err);
    if (status == QN_OK)
        status = qn__features_check(recipe, &options->compute, err);
    if (status == QN_OK)
        status = check_memory(job, recipe, sets->train, need, err);
    return qn__agree_to_train(options, recipe, sets->train, sets->valid, sets->test, status, err);
}

/* Takes over the sets, in success and in failure. */
static qn_status open_on(const qn_train_options *options, const qn__recipe *recipe,
                         qn__train_sets *sets, const qn__memory_job *job,
                         const qn__memory_need *need, double opened, qn_train **out,
                         qn_error *err) {
    qn_train *t = qn__alloc(1, sizeof *t, err);
    if (!t) {
        qn__train_sets_release(sets);
        return QN_MEMORY;
    }
    t->process = getpid();
    t->options = *options;
    t->options.table_of = NULL; /* may be gone from here on */
    t->clock.opened = opened;
    t->sets.given = *sets;
    t->sets.test = sets->test;
    t->memory = *need;
    t->saved.step = t->scores.step = NO_STEP;
    if (qn_cluster_ranks(options->compute.cluster) > 1)
        t->cluster = options->compute.cluster;
    t->owner = qn__owner_of(t->cluster);
    const qn_status status = prepare(t, options, recipe, job->members, job->count, err);
    if (status == QN_OK)
        *out = t;
    else
        qn_train_close(t);
    return status;
}

qn_status qn__train_open_on(const qn_train_options *options, const qn_data *train,
                            const qn_data *valid, const qn_data *test, const qn__member *members,
                            uint32_t count, qn_train **out, qn_error *err) {
    const double opened = qn__now();
    qn__recipe recipe = {0};
    qn__train_sets sets = {.train = train, .valid = valid, .test = test};
    qn__memory_job job = {.compute = &options->compute, .members = members, .count = count};
    qn__memory_need need = {0};
    qn_error unheard;
    *out = NULL;
    err = err ? err : &unheard;
    qn_status status = check_all(options, &sets, &job, &recipe, &need, err);
    if (status != QN_OK) {
        qn__train_sets_release(&sets);
        qn__recipe_release(&recipe);
        return status;
    }
    status = open_on(options, &recipe, &sets, &job, &need, opened, out, err);
    qn__recipe_release(&recipe);
    /* No rank begins without the others, but for those whose devices break at once. */
    if (status == QN_DEVICE && qn__cluster_withdraw(options->compute.cluster))
        qn__remedy(err, QN_DEVICE, "the other ranks continue without this one");
    else if (status != QN_OK && status != QN_CLUSTER &&
             qn_cluster_ranks(options->compute.cluster) > 1)
        qn__cluster_fail(options->compute.cluster, err);
    return status;
}

qn_status qn_train_open(const qn_train_options *options, const qn_data *train, const qn_data *valid,
                        const qn_data *test, qn_train **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(options, err);
    QN__NEED(train, err);
    qn_train_options own;
    const qn_status status = qn__train_options_take(__func__, "options", options, &own, err);
    /* Its inputs and outputs are columns and classes by name, like those of a replay. */
    if (status == QN_OK && !own.table_of && own.init_from && !own.new_last &&
        qn__model_recipe_of(own.init_from)->table)
        own.table_of = own.init_from;
    return status == QN_OK ? qn__train_open_on(&own, train, valid, test, NULL, 0, out, err)
                           : status;
}

void qn_train_close(qn_train *t) {
    QN__OWN_FLOATS;
    if (!t || !qn__train_is_ours(t) || atomic_load(&t->in_use))
        return;
    qn__remote_hurry_end(&t->hurries);
    qn__record_close(t->record.folder);
    qn__record_close(t->record.story);
    qn__checkpoints_close(t->saved.folder);
    qn__train_giving_end(t, 1);
    qn__train_job_destroy(&t->job);
    qn__free(t->best.parameter);
    qn__prepared_release(&t->sets.own[0]);
    qn__prepared_release(&t->sets.own[1]);
    qn__comparison_release(&t->sets.real[0]);
    qn__comparison_release(&t->sets.real[1]);
    qn__train_sets_release(&t->sets.given);
    qn__trace_free(t->trace.events);
    qn__free(t->trace.path);
    qn__train_judged_close(t);
    qn__free(t->scores.confusion);
    qn__free(t->report.last);
    qn__rank_reports_release(&t->report.ranks);
    qn__free(t->saved.dir);
    qn__free(t->record.dir);
    qn__free(t->record.page);
    qn__store_close(&t->runs.store);
    qn__free(t->runs.path);
    qn__free(t->runs.name);
    qn__free(t->record.plots);
    qn__free(t->isa);
    qn__free(t->record.command_line);
    qn__free(t);
}
