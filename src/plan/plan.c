/* Plans: the public functions. */
#include <quern/plan.h>

#include "base/argument.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/system/float_state.h"
#include "job/memory_need.h"
#include "model/formats/recipe_options.h"
#include "model/recipe/freeze.h"
#include "model/recipe/model_source.h"
#include "model/recipe/tables.h"
#include "plan/plan_recipe.h"
#include "plan/plan_run.h"
#include "plan/plan_scale.h"
#include "train/random_items.h"
#include <math.h>
#include <string.h>

enum { KINDS = 8 }; /* kinds of hosts for which one more is tried */

struct qn_plan {
    qn__plan_team team;
    qn__plan_subject subject;
    qn__plan_job job;
    double memory, parameters;
    double items;   /* of all epochs */
    qn__text model; /* canonical */
    qn_plan_report report;
    qn_plan_rank *rank;
    const qn_plan_rank **rank_at; /* pointers, as callers get them */
    qn_plan_more more[KINDS];
    const qn_plan_more *more_at[KINDS];
    qn_plan_scale scale[QN__PLAN_SCALES];
    const qn_plan_scale *scale_at[QN__PLAN_SCALES];
};

void qn_plan_options_init(qn_plan_options *options) {
    if (!options)
        return;
    memset(options, 0, sizeof *options);
    options->size = sizeof *options;
}

/* -------------------------------------------------------------------------------------- the job */

static qn_status check_options(const qn_plan_options *o, qn_error *err) {
    if (o->features < 1 || o->items < 1) {
        qn__fail(err, QN_USAGE, "a plan needs at least one item of one feature");
        return qn__remedy(err, QN_USAGE, "give `plan.items` and `plan.features`, or `data.path`");
    }
    if (o->teams < 1 || !o->team) {
        qn__fail(err, QN_USAGE, "there is no team to plan for");
        return qn__remedy(err, QN_USAGE, "describe one, as in `plan.team` \"4*host(cpu 60k)\"");
    }
    return qn_compute_check(&o->job->compute, err);
}

/* The recipe of the options, checked as for a training, with one item of the right width. */
static qn_status recipe_of(const qn_plan_options *o, qn__recipe *recipe, qn_error *err) {
    const qn__labels_like labels = qn__random_labels();
    const char *model = o->job->model ? o->job->model : "dense 1";
    qn_data *data = NULL;
    qn__network *network = qn__alloc(1, sizeof *network, err);
    uint8_t *values = network ? qn__alloc(o->features, 1, err) : NULL;
    qn_status status = values ? QN_OK : QN_MEMORY;
    if (status == QN_OK) {
        memset(values, UINT8_MAX, o->features); /* an image: options of tables are settled before */
        status = qn__model_source_read(model, &labels, network, err);
    }
    if (status == QN_OK)
        status = qn__items_of(o->job, network, 1, o->features, values, &data, err);
    if (status == QN_OK)
        status = qn__plan_recipe(o->job, data, recipe, err);
    qn_data_close(data);
    qn__free(values);
    qn__free(network);
    return status;
}

/* Of the job what the scheduler counts with, and what a measured file must agree with. */
static void take_job(const qn__recipe *recipe, const qn_plan_options *o, qn_plan *p) {
    const qn_compute *compute = &o->job->compute;
    const uint32_t batch = o->items < recipe->batch ? (uint32_t)o->items : recipe->batch;
    p->job.grain = recipe->grain;
    p->job.units = (uint32_t)(((uint64_t)batch + recipe->grain - 1) / recipe->grain);
    p->items = (double)recipe->epochs * (double)o->items;
    p->job.steps = p->items / batch;
    p->job.slots = qn__optimizer_slots(recipe->optimizer) + (recipe->ema != 0.0f);
    p->subject =
        (qn__plan_subject){.model = p->model.data,
                           .optimizer = qn__table_name(&qn__optimizers, (int)recipe->optimizer),
                           .arith = qn__table_name(&qn__arithmetics, (int)recipe->arith),
                           .features = o->features,
                           .batch = recipe->batch,
                           .grain = recipe->grain,
                           .shape = recipe->shape,
                           .freeze = recipe->freeze ? recipe->freeze : "",
                           .layers = recipe->network.layers,
                           .recompute = compute->recompute != 0,
                           .cache_features = compute->cache_features != 0};
}

/* The memory of one CPU with the threads of the options. */
static qn_status find_memory(const qn__recipe *recipe, const qn_plan_options *o, qn_plan *p,
                             qn_error *err) {
    const qn__member cpu = {.device = qn__device_find("cpu")};
    const qn__memory_job job = {.recipe = recipe,
                                .items = o->items,
                                .compute = &o->job->compute,
                                .members = &cpu,
                                .count = 1};
    qn__memory_need need;
    const qn_status status = qn__memory_need_of(&job, &need, err);
    p->memory = (double)need.all;
    return status;
}

static qn_status read_job(const qn_plan_options *o, qn_plan *p, qn_error *err) {
    qn__layer layer[QN__MAX_LAYERS];
    qn__program program = {.layer = layer};
    qn__recipe recipe = {0};
    qn_status status = recipe_of(o, &recipe, err);
    if (status == QN_OK)
        status = qn__network_program(&recipe.network, qn__recipe_input(&recipe), layer,
                                     &program.parameters, err);
    if (status == QN_OK) { /* sums and updates are of those that train */
        qn__recipe_freeze(&recipe, layer, &program);
        p->parameters = (double)program.parameters;
        p->job.parameters = program.parameters - program.frozen_parameters;
    }
    if (status == QN_OK) {
        qn__network_text(&recipe.network, &p->model);
        status = p->model.failed ? qn__fail_memory(err, 1, QN__MAX_LAYERS) : QN_OK;
    }
    if (status == QN_OK)
        take_job(&recipe, o, p);
    if (status == QN_OK)
        status = find_memory(&recipe, o, p, err);
    qn__recipe_release(&recipe);
    return status;
}

static qn_status read_team(const qn_plan_options *o, qn_plan *p, qn_error *err) {
    qn_status status = qn__plan_team_create(&p->team, err);
    for (uint32_t i = 0; i < o->teams && status == QN_OK; ++i) {
        const char *text = o->team[i];
        if (!text)
            return qn__fail_null_at(err, "qn_plan_make", "options->team", i, "");
        const size_t size = strlen(text);
        if (size > 5 && strcmp(text + size - 5, ".json") == 0)
            status = qn__plan_team_measured(&p->team, text, 1, &p->subject, err);
        else
            status = qn__plan_team_read(&p->team, text, &p->subject, err);
    }
    return status;
}

/* ----------------------------------------------------------------------------------- the report */

static double sum_of_chunks(const qn__plan_run *run) {
    double units = 0;
    for (uint32_t r = 0; r < run->team->ranks; ++r)
        units += run->team->rank[r].spent.chunks;
    return units;
}

static void report_rank(const qn__plan_run *run, uint32_t index, double units, uint32_t grain,
                        qn_plan_rank *out) {
    const qn__virtual_rank *r = &run->team->rank[index];
    const double all = run->seconds;
    *out = (qn_plan_rank){.size = sizeof *out,
                          .host = run->host[index],
                          .devices = r->workers,
                          .share = r->spent.chunks / units,
                          .items_per_second = run->rate[index] * grain,
                          .computing = r->spent.computing / all,
                          .waiting = r->spent.waiting / all,
                          .exchanging = r->spent.exchanging / all,
                          .updating = r->spent.updating / all,
                          .recovering = r->spent.recovering / all,
                          .bytes_out = r->spent.bytes_out,
                          .died = !r->alive};
    memcpy(out->name, run->kind[index]->name, sizeof out->name);
}

static void add_means(qn_plan_report *r, const qn_plan_rank *rank) {
    r->computing += rank->computing / r->ranks;
    r->waiting += rank->waiting / r->ranks;
    r->exchanging += rank->exchanging / r->ranks;
    r->updating += rank->updating / r->ranks;
    r->recovering += rank->recovering / r->ranks;
    r->devices += rank->devices;
}

/* The number of described events after the end of the run. */
static uint32_t late_events(const qn__plan_team *t, double end) {
    uint32_t late = 0;
    for (uint32_t e = 0; e < t->events; ++e)
        late += t->event[e].at >= end;
    return late;
}

static qn_status report(qn_plan *p, const qn__plan_run *run, double items, qn_error *err) {
    qn_plan_report *r = &p->report;
    const double units = sum_of_chunks(run);
    r->ranks = run->team->ranks;
    p->rank = qn__alloc(r->ranks, sizeof *p->rank, err);
    p->rank_at = qn__alloc(r->ranks, sizeof *p->rank_at, err);
    if (!p->rank || !p->rank_at)
        return QN_MEMORY;
    r->size = sizeof *r;
    r->rank = p->rank_at;
    r->more = p->more_at;
    r->scale = p->scale_at;
    r->joules = qn__plan_joules(&p->team, run);
    r->price = qn__plan_price(&p->team, run->seconds);
    r->seconds = run->seconds;
    r->bound = qn__plan_bound(&p->team, &p->job);
    r->step = run->step;
    r->exchange = qn__virtual_exchange(run->team);
    r->items_per_second = items / run->seconds;
    r->steps = (uint64_t)ceil(p->job.steps - 1e-9);
    r->hosts = qn__plan_team_hosts(&p->team);
    r->deaths = run->team->deaths;
    r->events = p->team.events;
    r->late = late_events(&p->team, run->seconds);
    r->parameters = p->parameters;
    r->memory = p->memory;
    r->grain = p->job.grain;
    r->items_again = run->team->chunks_again * p->job.grain;
    for (uint32_t i = 0; i < r->ranks; ++i) {
        report_rank(run, i, units, p->job.grain, &p->rank[i]);
        p->rank_at[i] = &p->rank[i];
        add_means(r, &p->rank[i]);
    }
    return QN_OK;
}

/* T with equal shares, or with one host more; NaN if impossible. */
static qn_status seconds_of(const qn_plan *p, uint32_t more, int equal, double *seconds,
                            qn_error *err) {
    qn__plan_run run;
    const qn_status status = qn__plan_run_make(&p->team, &p->job, more, equal, &run, err);
    *seconds = status == QN_OK ? run.seconds : (double)NAN;
    if (status == QN_OK)
        qn__plan_run_release(&run);
    return status == QN_MEMORY ? status : QN_OK;
}

/* Whether an equal kind of hosts was tried already. */
static int is_tried(const qn_plan_report *r, const qn__plan_host *h) {
    for (uint32_t i = 0; i < r->mores; ++i)
        if (strcmp(r->more[i]->name, h->name) == 0)
            return 1;
    return 0;
}

static qn_status try_more(qn_plan *p, qn_error *err) {
    qn_plan_report *r = &p->report;
    qn_status status = QN_OK;
    /* Without a network there cannot be another host. */
    for (uint32_t h = 0; h < p->team.hosts && status == QN_OK && p->team.bandwidth > 0; ++h) {
        if (r->mores == KINDS || is_tried(r, &p->team.host[h]))
            continue;
        qn_plan_more *more = &p->more[r->mores];
        p->more_at[r->mores++] = more;
        more->size = sizeof *more;
        memcpy(more->name, p->team.host[h].name, sizeof more->name);
        status = seconds_of(p, h, 0, &more->seconds, err);
    }
    return status;
}

/* The job on 1, 2, 4, ... hosts, if there can be several. */
static qn_status try_scales(qn_plan *p, qn_error *err) {
    qn_plan_report *r = &p->report;
    double shortest = INFINITY;
    if (p->team.bandwidth <= 0)
        return QN_OK;
    const qn_status status = qn__plan_scale(&p->team, &p->job, p->scale, &r->scales, err);
    for (uint32_t i = 0; i < r->scales; ++i) {
        p->scale_at[i] = &p->scale[i];
        shortest = fmin(shortest, p->scale[i].seconds);
    }
    for (uint32_t i = r->scales; i-- > 0;)
        if (p->scale[i].seconds <= 1.05 * shortest)
            r->enough = p->scale[i].hosts;
    return status;
}

static qn_status plan(const qn_plan_options *o, qn_plan *p, qn_error *err) {
    qn__plan_run run;
    qn_status status = read_job(o, p, err);
    if (status == QN_OK)
        status = read_team(o, p, err);
    if (status == QN_OK)
        status = qn__plan_run_make(&p->team, &p->job, UINT32_MAX, 0, &run, err);
    if (status != QN_OK)
        return status;
    status = report(p, &run, p->items, err);
    qn__plan_run_release(&run);
    if (status == QN_OK)
        status = seconds_of(p, UINT32_MAX, 1, &p->report.equal, err);
    if (status == QN_OK)
        status = try_more(p, err);
    return status == QN_OK ? try_scales(p, err) : status;
}

/* The caller's options and the job in them, in this version of the structs. */
static qn_status take_options(const char *function, const qn_plan_options *given,
                              qn_plan_options *own, qn_train_options *job, qn_error *err) {
    const qn__sized what = {function, "options", "qn_plan_options", sizeof *own};
    qn_plan_options_init(own);
    qn_status status = qn__sized_take(&what, given, own, err);
    if (status == QN_OK && !own->job)
        status = qn__fail_null(err, function, "options->job");
    if (status == QN_OK)
        status = qn__train_options_take(function, "options->job", own->job, job, err);
    own->job = job;
    return status;
}

qn_status qn_plan_make(const qn_plan_options *options, qn_plan **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(options, err);
    qn_plan_options own;
    qn_train_options job;
    qn_status status = take_options(__func__, options, &own, &job, err);
    if (status == QN_OK)
        status = check_options(&own, err);
    if (status != QN_OK)
        return status;
    qn_plan *p = qn__alloc(1, sizeof *p, err);
    if (!p)
        return QN_MEMORY;
    status = plan(&own, p, err);
    if (status == QN_OK)
        *out = p;
    else
        qn_plan_free(p);
    return status;
}

const qn_plan_report *qn_plan_report_of(const qn_plan *plan) { return plan ? &plan->report : NULL; }

void qn_plan_free(qn_plan *p) {
    if (!p)
        return;
    qn__plan_team_release(&p->team);
    qn__text_release(&p->model);
    qn__free(p->rank);
    qn__free(p->rank_at);
    qn__free(p);
}
