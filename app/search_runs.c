#include "search_runs.h"
#include <math.h>
#include <pthread.h>
#include <quern/convert.h>
#include <quern/device.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_WORKERS = 256, DEVICE_ROOM = 64 };

/* The two sets of a fold, while runs need them. */
typedef struct fold {
    qn_data *train, *valid;
    uint32_t left; /* runs of it that are not done */
} fold;

typedef struct work {
    const search_runs *runs;
    fold *fold;
    uint64_t next; /* run: fold after fold, so that few are in memory */
    pthread_mutex_t lock;
    qn_status status;
    qn_error err;
    uint32_t failed;
} work;

typedef struct worker {
    work *all;
    int threads;
    char device[DEVICE_ROOM];
    pthread_t handle;
    int started;
} worker;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void take_scores(const qn_train_report *r, search_result *to) {
    const qn_evaluation *e = r->valid_evaluation;
    const double none = (double)NAN;
    to->items = r->valid.items;
    to->number[SEARCH_LOSS] = r->valid.loss;
    to->number[SEARCH_RMSE] = r->valid.rmse;
    to->number[SEARCH_MAE] = r->valid.mae;
    to->number[SEARCH_R2] = r->valid.r2;
    to->number[SEARCH_ACCURACY] =
        r->real || r->valid.items == 0 ? none : (double)r->valid.correct / (double)r->valid.items;
    to->number[SEARCH_F1] = e ? e->f1 : none;
    to->number[SEARCH_AUC] = e ? e->auc : none;
    to->number[SEARCH_LOG_LOSS] = e ? e->log_loss : none;
}

static qn_status train(const worker *w, uint32_t setting, const fold *f, search_result *to,
                       qn_error *err) {
    qn_train_options o = w->all->runs->options[setting];
    qn_train_report report = {.size = sizeof report};
    qn_train *t = NULL;
    qn_model *model = NULL;
    const double begun = now();
    o.compute = (qn_compute){.size = sizeof o.compute, .threads = w->threads, .devices = w->device};
    qn_status status = qn_train_open(&o, f->train, f->valid, NULL, &t, err);
    if (status == QN_OK)
        status = qn_train_run(t, err);
    if (status == QN_OK)
        status = qn_train_report_get(t, &report, err);
    if (status == QN_OK)
        status = qn_train_model(t, &model, err);
    if (status == QN_OK) {
        take_scores(&report, to);
        snprintf(to->digest, sizeof to->digest, "%s", qn_model_digest(model));
    }
    to->seconds = now() - begun;
    qn_model_free(model);
    qn_train_close(t);
    return status;
}

/* A learning rate that is too high is no reason to end a search. */
static qn_status train_or_lose(const worker *w, uint32_t setting, const fold *f, search_result *to,
                               qn_error *err) {
    qn_status status = train(w, setting, f, to, err);
    if (status == QN_NUMERIC) {
        to->items = 0;
        for (int m = 0; m < SEARCH_METRICS; m++)
            to->number[m] = (double)NAN;
        status = QN_OK;
    }
    to->done = status == QN_OK;
    return status;
}

/* ------------------------------------------------------------------------------ the queue */

static search_result *result_of(const search_runs *r, uint64_t run) {
    return &r->result[(run % r->settings) * r->folds + run / r->settings];
}

/* The next run that is not done; its fold is in memory. 0: there is none, or the search has ended.
 */
static int take(work *all, uint64_t *run) {
    const search_runs *r = all->runs;
    const uint64_t count = (uint64_t)r->settings * r->folds;
    pthread_mutex_lock(&all->lock);
    while (all->next < count && result_of(r, all->next)->done)
        all->next++;
    const int there = all->status == QN_OK && all->next < count;
    *run = all->next;
    fold *f = &all->fold[there ? *run / r->settings : 0];
    if (there && !f->train)
        all->status = qn_data_fold(r->data, r->folds, (uint32_t)(*run / r->settings), r->seed,
                                   r->stratify, &f->train, &f->valid, &all->err);
    all->next += (uint64_t)there;
    const int goes_on = there && all->status == QN_OK;
    pthread_mutex_unlock(&all->lock);
    return goes_on;
}

static void finish(work *all, uint64_t run, const search_result *made, qn_status status,
                   const qn_error *err) {
    const search_runs *r = all->runs;
    const uint32_t setting = (uint32_t)(run % r->settings), number = (uint32_t)(run / r->settings);
    fold *f = &all->fold[number];
    pthread_mutex_lock(&all->lock);
    if (status == QN_OK)
        *result_of(r, run) = *made;
    if (status == QN_OK && all->status == QN_OK)
        all->status = r->on_result(r->user, setting, number, &all->err);
    if (status != QN_OK && all->status == QN_OK) {
        all->status = status;
        all->err = *err;
        all->failed = setting;
    }
    if (--f->left == 0) {
        qn_data_close(f->train);
        qn_data_close(f->valid);
        *f = (fold){NULL, NULL, 0};
    }
    pthread_mutex_unlock(&all->lock);
}

static void *work_on(void *argument) {
    const worker *w = argument;
    const search_runs *r = w->all->runs;
    uint64_t run;
    while (take(w->all, &run)) {
        search_result made = {.done = 0};
        qn_error err = {0};
        const fold *f = &w->all->fold[run / r->settings];
        const qn_status status = train_or_lose(w, (uint32_t)(run % r->settings), f, &made, &err);
        finish(w->all, run, &made, status, &err);
    }
    return NULL;
}

/* ----------------------------------------------------------------------------- the workers */

static int cores(void) {
    qn_device_info info = {.size = sizeof info};
    return qn_device_get(0, &info, NULL) == QN_OK && info.cores > 0 ? info.cores : 1;
}

/* Whole runs on a core each need no waiting for one another. Only with fewer runs than cores do
 * several cores share one. */
static uint32_t place_on_cores(const search_runs *r, uint64_t left, worker *to, uint32_t room) {
    const uint32_t all = (uint32_t)(r->threads > 0 ? r->threads : cores());
    uint32_t count = left < all ? (uint32_t)left : all;
    count = count < room ? count : room;
    for (uint32_t i = 0; i < count; i++) {
        to[i].threads = (int)(all / count + (i < all % count));
        snprintf(to[i].device, sizeof to[i].device, "cpu");
    }
    return count;
}

/* Each device of a list is a worker; "cpu" gives its cores. */
static uint32_t place(const search_runs *r, uint64_t left, worker *to) {
    uint32_t count = 0;
    if (!r->devices)
        return place_on_cores(r, left, to, MOST_WORKERS);
    for (const char *at = r->devices; *at && count < MOST_WORKERS;) {
        const size_t size = strcspn(at, ",");
        if (size == 3 && strncmp(at, "cpu", 3) == 0)
            count += place_on_cores(r, left, to + count, MOST_WORKERS - count);
        else if (size < DEVICE_ROOM)
            snprintf(to[count++].device, DEVICE_ROOM, "%.*s", (int)size, at);
        at += size + (at[size] == ',');
    }
    return count;
}

static uint64_t count_left(work *all) {
    const search_runs *r = all->runs;
    uint64_t left = 0;
    for (uint64_t run = 0; run < (uint64_t)r->settings * r->folds; run++)
        if (!result_of(r, run)->done) {
            all->fold[run / r->settings].left++;
            left++;
        }
    return left;
}

qn_status search_run(const search_runs *runs, uint32_t *failed, qn_error *err) {
    work all = {.runs = runs, .lock = PTHREAD_MUTEX_INITIALIZER};
    worker *w = calloc(MOST_WORKERS, sizeof *w);
    all.fold = calloc(runs->folds, sizeof *all.fold);
    if (!w || !all.fold) {
        free(w);
        free(all.fold);
        *err = (qn_error){.status = QN_MEMORY, .what = "out of memory"};
        return QN_MEMORY;
    }
    const uint32_t count = place(runs, count_left(&all), w);
    for (uint32_t i = 0; i < count; i++)
        w[i].all = &all;
    for (uint32_t i = 1; i < count; i++)
        w[i].started = pthread_create(&w[i].handle, NULL, work_on, &w[i]) == 0;
    if (count > 0)
        work_on(&w[0]);
    for (uint32_t i = 1; i < count; i++)
        if (w[i].started)
            pthread_join(w[i].handle, NULL);
    for (uint32_t k = 0; k < runs->folds; k++) {
        qn_data_close(all.fold[k].train);
        qn_data_close(all.fold[k].valid);
    }
    *failed = all.failed;
    *err = all.err;
    free(all.fold);
    free(w);
    return all.status;
}
