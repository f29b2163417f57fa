/* Which devices a run would use: a short training on random items, in which the team measures its
 * own devices. */
#include <quern/advise.h>

#include "base/argument.h"
#include "base/sized.h"
#include "base/system/clock.h"
#include "base/system/float_state.h"
#include "model/formats/recipe_options.h"
#include "model/recipe/defaults.h"
#include "model/recipe/model_source.h"
#include "train/random_items.h"
#include <stdio.h>
#include <string.h>

enum { LONGEST_TRIAL = 3600, MOST_WORKERS = 64 };

typedef struct trial {
    qn_train *train;
    double until; /* time at which it is stopped */
} trial;

static void stop_in_time(void *user, const qn_step_event *event) {
    trial *t = user;
    (void)event;
    if (qn__now() >= t->until)
        qn_train_stop(t->train);
}

/* The training job of the trial; only its times matter. The small learning rate keeps values in
 * range for any network. */
static qn_train_options trial_options(const qn_train_options *options, trial *t) {
    qn_train_options o;
    qn_train_options_init(&o);
    o.model = options->model;
    o.shape = options->shape;
    o.arith = options->arith;
    o.loss = options->loss;
    o.optimizer = options->optimizer;
    o.momentum = options->momentum;
    o.batch = options->batch;
    o.grain = options->grain;
    o.compute = options->compute;
    o.learning_rate = 1e-6f;
    o.epochs = 100000; /* more than it ever gets to */
    o.user = t;
    o.on_step = stop_in_time;
    return o;
}

static qn_status run_for(trial *t, double seconds, qn_error *err) {
    t->until = qn__now() + seconds;
    const qn_status status = qn_train_run(t->train, err);
    return status == QN_INTERRUPTED ? QN_OK : status;
}

/* The index of a device's worker in a report; `workers` if it has none. */
static uint32_t find(const qn_worker_report *const *worker, uint32_t workers,
                     const qn_device_info *info) {
    uint32_t i = 0;
    while (i < workers && strcmp(worker[i]->name, info->id) != 0)
        ++i;
    return i;
}

/* Items that each worker had done at some time. */
typedef struct done {
    uint64_t items[MOST_WORKERS], all;
} done;

static done items_done(const qn_worker_report *const *worker, uint32_t workers) {
    done d = {.items = {0}};
    for (uint32_t i = 0; i < workers && i < MOST_WORKERS; ++i)
        d.all += d.items[i] = worker[i]->items;
    return d;
}

static void advise_one(const qn_device_info *info, const qn_worker_report *const *worker,
                       uint32_t workers, const done *before, qn_advice *a) {
    const uint32_t index = find(worker, workers, info);
    const qn_worker_report *w = index < workers ? worker[index] : NULL;
    *a = (qn_advice){.size = sizeof *a};
    snprintf(a->id, sizeof a->id, "%s", info->id);
    if (!w) {
        snprintf(a->why, sizeof a->why, "%s",
                 *info->reason ? info->reason : "it is not among the devices of `compute.devices`");
        return;
    }
    const done now = items_done(worker, workers);
    const uint64_t all = now.all - before->all;
    a->items_per_second = w->items_per_second;
    a->share = all ? (double)(w->items - before->items[index]) / (double)all : 0;
    a->used = !w->lost && !*w->note && a->share > 0;
    if (!a->used)
        snprintf(a->why, sizeof a->why, "%s", *w->note ? w->note : "the other devices do its work");
}

/* The first half of the trial lets the scheduler choose; the second half measures its choice. */
static qn_status try_devices(trial *t, double seconds, qn_advice *advice, uint32_t count,
                             double *items_per_second, qn_error *err) {
    const size_t stride = count > 0 ? advice->size : 0;
    uint32_t workers;
    qn_status status = run_for(t, seconds / 2, err);
    if (status != QN_OK)
        return status;
    const qn_worker_report *const *worker = qn_train_workers(t->train, &workers);
    const done before = items_done(worker, workers);
    const double begun = qn__now();
    status = run_for(t, seconds / 2, err);
    if (status != QN_OK)
        return status;
    const double taken = qn__now() - begun;
    worker = qn_train_workers(t->train, &workers);
    if (items_per_second)
        *items_per_second = (double)(items_done(worker, workers).all - before.all) / taken;
    for (uint32_t i = 0; status == QN_OK && i < count; ++i) {
        qn_device_info info = {.size = sizeof info};
        qn_advice own;
        status = qn_device_get(i, &info, err);
        if (status != QN_OK)
            break;
        advise_one(&info, worker, workers, &before, &own);
        qn__sized_give(QN__SIZED("advice", qn_advice), &own, (char *)advice + i * stride, stride);
    }
    return status;
}

static qn_status check(const qn_train_options *options, uint32_t features, double seconds,
                       qn__network *network, qn_error *err) {
    qn_status status = QN_OK;
    if (!options->model)
        status = qn__fail(err, QN_USAGE, "there is no network to try");
    else if (features < 1)
        status = qn__fail(err, QN_USAGE, "items have at least one feature");
    else if (!(seconds > 0 && seconds <= LONGEST_TRIAL))
        status = qn__fail(err, QN_USAGE, "a trial cannot take %g seconds", seconds);
    if (status != QN_OK) {
        qn__remedy(err, status, "give `train.model` and `plan.features` as for a training");
        return status;
    }
    const qn__labels_like labels = qn__random_labels();
    return qn__model_source_read(options->model, &labels, network, err);
}

qn_status qn_advise(const qn_train_options *options, uint32_t features, double seconds,
                    qn_advice *advice, uint32_t capacity, uint32_t *count, double *items_per_second,
                    qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(count, err);
    *count = 0;
    QN__NEED(options, err);
    if (capacity > 0)
        QN__NEED(advice, err);
    trial t = {0};
    qn__network network;
    qn_data *data = NULL;
    *count = 0;
    qn_train_options own;
    qn_status status = qn__train_options_take(__func__, "options", options, &own, err);
    qn__default_of_images(QN__TASK_CLASSIFY, &own);
    options = &own;
    if (status == QN_OK && capacity > 0)
        status = qn__sized_check(QN__SIZED("advice[0]", qn_advice), advice, err);
    if (status == QN_OK)
        status = check(options, features, seconds, &network, err);
    if (status == QN_OK)
        status = qn__random_items(options, &network, features, &data, err);
    if (status == QN_OK) {
        const qn_train_options o = trial_options(options, &t);
        status = qn_train_open(&o, data, NULL, NULL, &t.train, err);
    }
    const uint32_t devices = qn_device_count(), told = devices < capacity ? devices : capacity;
    if (status == QN_OK)
        status = try_devices(&t, seconds, advice, told, items_per_second, err);
    if (status == QN_OK)
        *count = told;
    qn_train_close(t.train);
    qn_data_close(data);
    return status;
}
