#include "search/search_crew.h"

#include "base/memory.h"
#include "base/system/clock.h"
#include "base/system/float_state.h"
#include "base/system/threads.h"
#include <math.h>
#include <pthread.h>
#include <quern/convert.h>
#include <stdio.h>
#include <string.h>

enum { MOST_WORKERS = 256, DEVICE_CAPACITY = 64 };

/* The two sets of a fold, while runs need them. */
typedef struct fold {
    qn_data *train, *valid;
} fold;

typedef struct worker {
    qn__crew *crew;
    int threads;
    char device[DEVICE_CAPACITY];
    pthread_t handle;
    qn_train *train; /* that it runs */
    qn__made made;
} worker;

struct qn__crew {
    qn_search *search;
    pthread_mutex_t lock; /* of all but the folds */
    pthread_cond_t work, news;
    uint64_t given[MOST_WORKERS];
    uint32_t gave, began; /* runs given, and of them begun, as positions in a ring */
    qn__made *made;       /* `workers` elements */
    uint32_t count;
    int ends;
    atomic_int stops; /* runs in progress end after their step */
    pthread_mutex_t fold_lock;
    fold *fold;
    worker *worker;
    uint32_t workers, started;
};

/* -------------------------------------------------------------------------------------- a run */

static void take_scores(const qn_train_report *r, qn_search_result *to) {
    const qn_evaluation *e = r->valid_evaluation;
    const double none = (double)NAN;
    to->items = r->valid.items;
    to->number[QN_SEARCH_LOSS] = r->valid.loss;
    to->number[QN_SEARCH_RMSE] = r->valid.rmse;
    to->number[QN_SEARCH_MAE] = r->valid.mae;
    to->number[QN_SEARCH_R2] = r->valid.r2;
    to->number[QN_SEARCH_ACCURACY] =
        r->real || r->valid.items == 0 ? none : (double)r->valid.correct / (double)r->valid.items;
    to->number[QN_SEARCH_F1] = e ? e->f1 : none;
    to->number[QN_SEARCH_AUC] = e ? e->auc : none;
    to->number[QN_SEARCH_LOG_LOSS] = e ? e->log_loss : none;
}

static void on_step(void *user, const qn_step_event *event) {
    const worker *w = user;
    (void)event;
    if (atomic_load(&w->crew->stops))
        qn_train_stop(w->train);
}

static qn_status train(worker *w, uint32_t setting, const fold *f, qn_search_result *to,
                       qn_error *err) {
    qn_train_options o = w->crew->search->setting[setting];
    qn_train_report report = {.size = sizeof report};
    qn_model *model = NULL;
    o.compute = w->crew->search->options.compute;
    o.compute.threads = w->threads;
    o.compute.devices = w->device;
    o.compute.cluster = NULL;
    o.user = w;
    o.on_step = on_step;
    qn_status status = qn_train_open(&o, f->train, f->valid, NULL, &w->train, err);
    if (status == QN_OK)
        status = qn_train_run(w->train, err);
    if (status == QN_OK)
        status = qn_train_report_get(w->train, &report, err);
    if (status == QN_OK)
        status = qn_train_model(w->train, &model, err);
    if (status == QN_OK) {
        take_scores(&report, to);
        snprintf(to->model, sizeof to->model, "%s", qn_model_digest(model));
    }
    qn_model_free(model);
    qn_train_close(w->train);
    w->train = NULL;
    return status;
}

/* The fold of a run, which the first run of it makes. */
static qn_status open_fold(qn__crew *c, uint32_t number, fold *out, qn_error *err) {
    const qn_search *s = c->search;
    fold *f = &c->fold[number];
    qn_status status = QN_OK;
    pthread_mutex_lock(&c->fold_lock);
    if (!f->train)
        status = qn_data_fold(s->data, s->table.folds, number, s->setting[0].seed,
                              qn_data_labels(s->data) != NULL, &f->train, &f->valid, err);
    *out = *f;
    pthread_mutex_unlock(&c->fold_lock);
    return status;
}

static void make(worker *w, uint64_t run) {
    qn__made *to = &w->made;
    const qn_search *s = w->crew->search;
    const uint32_t setting = (uint32_t)(run % s->table.settings);
    const double begun = qn__now();
    fold f;
    *to = (qn__made){.run = run, .result = {.size = sizeof to->result, .done = 1}};
    to->status = open_fold(w->crew, (uint32_t)(run / s->table.settings), &f, &to->err);
    if (to->status != QN_OK)
        return;
    to->status = train(w, setting, &f, &to->result, &to->err);
    to->result.seconds = qn__now() - begun;
    if (to->status == QN_NUMERIC) { /* a learning rate that is too high does not end a search */
        to->status = QN_OK;
        to->result.items = 0;
        to->result.model[0] = '\0';
        for (int m = 0; m < QN_SEARCH_METRICS; ++m)
            to->result.number[m] = (double)NAN;
    }
    if (to->status != QN_OK)
        qn__search_name_error(s, setting, to->status, &to->err);
}

static void *work_on(void *argument) {
    worker *w = argument;
    qn__crew *c = w->crew;
    qn__float_state_set();
    pthread_mutex_lock(&c->lock);
    while (!c->ends) {
        if (c->began == c->gave) {
            pthread_cond_wait(&c->work, &c->lock);
            continue;
        }
        const uint64_t run = c->given[c->began++ % MOST_WORKERS];
        pthread_mutex_unlock(&c->lock);
        make(w, run);
        pthread_mutex_lock(&c->lock);
        c->made[c->count++] = w->made;
        pthread_cond_signal(&c->news);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* ------------------------------------------------------------------------------------- the workers
 */

/* Whole runs on a core each need no waiting for one another. Only with fewer runs than cores do
 * several cores share one. */
static uint32_t place_on_cores(const qn_search *s, uint64_t runs, worker *to, uint32_t capacity) {
    const uint32_t all =
        (uint32_t)(s->options.compute.threads ? s->options.compute.threads : qn__cores());
    uint32_t count = runs < all ? (uint32_t)runs : all;
    count = count < capacity ? count : capacity;
    for (uint32_t i = 0; i < count; ++i) {
        to[i].threads = (int)(all / count + (i < all % count));
        snprintf(to[i].device, sizeof to[i].device, "cpu");
    }
    return count;
}

/* Each device of a list is a worker; "cpu" gives its cores. */
static uint32_t place(const qn_search *s, uint64_t runs, worker *to) {
    uint32_t count = 0;
    if (!s->options.compute.devices)
        return place_on_cores(s, runs, to, MOST_WORKERS);
    for (const char *at = s->options.compute.devices; *at && count < MOST_WORKERS;) {
        const size_t size = strcspn(at, ",");
        if (size == 3 && strncmp(at, "cpu", 3) == 0)
            count += place_on_cores(s, runs, to + count, MOST_WORKERS - count);
        else if (size < DEVICE_CAPACITY)
            snprintf(to[count++].device, DEVICE_CAPACITY, "%.*s", (int)size, at);
        at += size + (at[size] == ',');
    }
    return count;
}

static void make_locks(qn__crew *c) {
    pthread_condattr_t how;
    pthread_mutex_init(&c->lock, NULL);
    pthread_mutex_init(&c->fold_lock, NULL);
    pthread_condattr_init(&how);
    pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
    pthread_cond_init(&c->work, NULL);
    pthread_cond_init(&c->news, &how);
    pthread_condattr_destroy(&how);
}

qn_status qn__crew_open(qn_search *search, uint64_t runs, qn__crew **out, qn_error *err) {
    qn__crew *c = *out = qn__alloc(1, sizeof *c, err);
    if (!c)
        return QN_MEMORY;
    c->search = search;
    make_locks(c);
    c->fold = qn__alloc(search->table.folds, sizeof *c->fold, err);
    c->worker = qn__alloc(MOST_WORKERS, sizeof *c->worker, err);
    c->made = qn__alloc(MOST_WORKERS, sizeof *c->made, err);
    if (!c->fold || !c->worker || !c->made)
        return QN_MEMORY;
    c->workers = place(search, runs, c->worker);
    for (; c->started < c->workers; ++c->started) {
        worker *w = &c->worker[c->started];
        w->crew = c;
        if (qn__thread_start(&w->handle, NULL, work_on, w) != 0)
            break;
    }
    if (c->started == 0 && c->workers > 0) {
        qn__fail(err, QN_MEMORY, "no thread could be started");
        return qn__remedy(err, QN_MEMORY, "end other programs");
    }
    c->workers = c->started;
    return QN_OK;
}

uint32_t qn__crew_workers(const qn__crew *crew) { return crew->workers; }

void qn__crew_close(qn__crew *c) {
    if (!c)
        return;
    atomic_store(&c->stops, 1);
    pthread_mutex_lock(&c->lock);
    c->ends = 1;
    pthread_cond_broadcast(&c->work);
    pthread_mutex_unlock(&c->lock);
    for (uint32_t i = 0; i < c->started; ++i)
        pthread_join(c->worker[i].handle, NULL);
    for (uint32_t k = 0; c->fold && k < c->search->table.folds; ++k)
        qn__crew_drop_fold(c, k);
    pthread_cond_destroy(&c->work);
    pthread_cond_destroy(&c->news);
    pthread_mutex_destroy(&c->lock);
    pthread_mutex_destroy(&c->fold_lock);
    qn__free(c->fold);
    qn__free(c->worker);
    qn__free(c->made);
    qn__free(c);
}

/* ------------------------------------------------------------------------------------ the queue */

void qn__crew_give(qn__crew *c, uint64_t run) {
    pthread_mutex_lock(&c->lock);
    c->given[c->gave++ % MOST_WORKERS] = run;
    pthread_cond_signal(&c->work);
    pthread_mutex_unlock(&c->lock);
}

void qn__crew_wait(qn__crew *c, double seconds) {
    const struct timespec until = qn__after(seconds);
    pthread_mutex_lock(&c->lock);
    if (c->count == 0)
        pthread_cond_timedwait(&c->news, &c->lock, &until);
    pthread_mutex_unlock(&c->lock);
}

uint32_t qn__crew_take(qn__crew *c, qn__made *to, uint32_t capacity) {
    pthread_mutex_lock(&c->lock);
    const uint32_t count = c->count < capacity ? c->count : capacity;
    memcpy(to, c->made, count * sizeof *to);
    c->count -= count;
    memmove(c->made, c->made + count, c->count * sizeof *to);
    pthread_mutex_unlock(&c->lock);
    return count;
}

void qn__crew_drop_fold(qn__crew *c, uint32_t number) {
    pthread_mutex_lock(&c->fold_lock);
    qn_data_close(c->fold[number].train);
    qn_data_close(c->fold[number].valid);
    c->fold[number].train = c->fold[number].valid = NULL;
    pthread_mutex_unlock(&c->fold_lock);
}
