#include "team/team.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/threads.h"
#include "num/sums.h"
#include "team/queue.h"
#include <stdio.h>
#include <string.h>

enum { MAX_CORES = 4096 };

typedef struct member {
    const qn__device_table *device;
    qn__worker *worker; /* NULL when it is lost */
    char name[64];
    uint64_t grains, items;
    double busy;     /* seconds, as the team saw them */
    double training; /* those of them in steps */
    double *cores;   /* for the report */
    qn_error error;
} member;

struct qn__team {
    const qn__program *program;
    const qn__transport *transport;
    uint32_t count;
    member *member;
    qn__pool *drivers; /* one thread for each member; NULL for a team of one */
    qn__queue queue;
    int queue_begun;
    int64_t *sums; /* program->parameters, made when a step is first shared */
    qn_worker_report *report;
    qn_note_fn note;
    void *user;
    /* Of the step under way. */
    const qn__batch *batch;
    const qn__update *update;
    const qn__state *state;
};

static qn_status open_member(qn__team *t, const qn_compute *compute, const qn__member *from,
                             member *m, qn_error *err) {
    m->device = from->device;
    if (from->device->count() > 1)
        snprintf(m->name, sizeof m->name, "%s:%u", from->device->name, from->index);
    else
        snprintf(m->name, sizeof m->name, "%s", from->device->name);
    if (!from->device->supports(t->program)) {
        qn__fail(err, QN_UNSUPPORTED, "%s cannot compute this model exactly", m->name);
        return qn__remedy(err, QN_UNSUPPORTED, "leave the device out");
    }
    return from->device->open(from->index, compute, t->program, &m->worker, err);
}

qn_status qn__team_create(const qn__program *program, const qn_compute *compute,
                          const qn__member *members, uint32_t count, qn__team **out,
                          qn_error *err) {
    const qn__member cpu = {.device = qn__device_find("cpu")};
    *out = NULL;
    if (!members) {
        members = &cpu;
        count = 1;
    }
    if (count < 1 || count > QN__MAX_WORKERS)
        return qn__fail(err, QN_USAGE, "a team has 1 to %d workers, not %u", QN__MAX_WORKERS,
                        count);
    qn__team *t = qn__alloc(1, sizeof *t, err);
    if (!t)
        return QN_MEMORY;
    t->program = program;
    t->transport = &qn__transport_alone;
    t->member = qn__alloc(count, sizeof *t->member, err);
    t->report = qn__alloc(count, sizeof *t->report, err);
    qn_status status = t->member && t->report ? QN_OK : QN_MEMORY;
    for (; status == QN_OK && t->count < count; ++t->count)
        status = open_member(t, compute, &members[t->count], &t->member[t->count], err);
    if (status == QN_OK && count > 1)
        status = qn__pool_create((int)count, 0, &t->drivers, err);
    if (status == QN_OK && qn__queue_begin(&t->queue, count) != 0)
        status = qn__fail(err, QN_MEMORY, "cannot make the queue of grains");
    else if (status == QN_OK)
        t->queue_begun = 1;
    if (status != QN_OK) {
        qn__team_destroy(t);
        return status;
    }
    *out = t;
    return QN_OK;
}

void qn__team_destroy(qn__team *t) {
    if (!t)
        return;
    for (uint32_t i = 0; t->member && i < t->count; ++i) {
        if (t->member[i].worker)
            t->member[i].device->close(t->member[i].worker);
        qn__free(t->member[i].cores);
    }
    qn__pool_destroy(t->drivers);
    if (t->queue_begun)
        qn__queue_end(&t->queue);
    qn__free(t->member);
    qn__free(t->report);
    qn__free(t->sums);
    qn__free(t);
}

void qn__team_notes(qn__team *t, qn_note_fn note, void *user) {
    t->note = note;
    t->user = user;
}

uint32_t qn__team_workers(const qn__team *t) {
    uint32_t working = 0;
    for (uint32_t i = 0; i < t->count; ++i)
        working += t->member[i].worker != NULL;
    return working;
}

static void lose(qn__team *t, member *m) {
    char text[640];
    if (t->note) {
        snprintf(text, sizeof text, "worker %s is lost: %s; the others take its grains", m->name,
                 m->error.what);
        t->note(t->user, text);
    }
    m->device->close(m->worker);
    m->worker = NULL;
    qn__queue_lose(&t->queue, (uint32_t)(m - t->member)); /* nobody waits for it */
}

/* After every worker did something: lost ones are taken out, another failure is the team's. */
static qn_status settle(qn__team *t, qn_error *err) {
    for (uint32_t i = 0; i < t->count; ++i) {
        member *m = &t->member[i];
        if (!m->worker || m->error.status == QN_OK)
            continue;
        if (m->error.status != QN_DEVICE) {
            if (err)
                *err = m->error;
            return m->error.status;
        }
        lose(t, m);
    }
    if (qn__team_workers(t) == 0) {
        qn__fail(err, QN_DEVICE, "no worker is left");
        return qn__remedy(err, QN_DEVICE,
                          "start again with --resume; the last checkpoint is whole");
    }
    return QN_OK;
}

/* Runs `body` for every member, at the same time when there are several. */
static void everyone(qn__team *t, void (*body)(void *team, int index)) {
    for (uint32_t i = 0; i < t->count; ++i)
        t->member[i].error.status = QN_OK;
    if (t->drivers)
        qn__pool_run(t->drivers, body, t);
    else
        body(t, 0);
}

static void load_body(void *context, int index) {
    const qn__team *t = context;
    member *m = &t->member[index];
    if (m->worker)
        m->device->load(m->worker, t->state, &m->error);
}

qn_status qn__team_load(qn__team *t, const qn__state *state, qn_error *err) {
    t->state = state;
    everyone(t, load_body);
    return settle(t, err);
}

qn_status qn__team_save(qn__team *t, qn__state *state, qn_error *err) {
    for (uint32_t i = 0; i < t->count; ++i) {
        member *m = &t->member[i];
        if (!m->worker)
            continue;
        m->error.status = QN_OK;
        if (m->device->save(m->worker, state, &m->error) == QN_OK)
            return QN_OK;
        const qn_status status =
            settle(t, err); /* a lost worker: the next one has the same state */
        if (status != QN_OK)
            return status;
    }
    return qn__fail(err, QN_DEVICE, "no worker is left");
}

/* One worker in a shared step: pulls chunks until the step is complete. */
static void grains_body(void *context, int index) {
    qn__team *t = context;
    member *m = &t->member[index];
    qn__chunk chunk;
    while (m->worker && m->error.status == QN_OK &&
           qn__queue_take(&t->queue, (uint32_t)index, &chunk)) {
        const double begun = qn__now();
        if (m->device->train_grains(m->worker, t->batch, chunk.first, chunk.count, &m->error) !=
            QN_OK) {
            qn__queue_lose(&t->queue, (uint32_t)index);
            return;
        }
        const double seconds = qn__now() - begun;
        m->grains += chunk.count;
        m->items += (uint64_t)chunk.count * t->program->grain;
        m->busy += seconds;
        m->training += seconds;
        qn__queue_done(&t->queue, (uint32_t)index, chunk, seconds);
    }
}

static void update_body(void *context, int index) {
    const qn__team *t = context;
    member *m = &t->member[index];
    const double begun = qn__now();
    if (m->worker)
        m->device->update(m->worker, t->update, t->sums, &m->error);
    const double seconds = qn__now() - begun;
    m->busy += seconds;
    m->training += seconds;
}

/* All grains of the batch into the sums of the workers that are left. */
static qn_status share_grains(qn__team *t, qn_error *err) {
    const uint32_t grain = t->program->grain;
    const uint32_t grains = (uint32_t)(((uint64_t)t->batch->items + grain - 1) / grain);
    if (qn__queue_fill(&t->queue, grains) != 0)
        return qn__fail_memory(err, 1, sizeof(qn__chunk));
    everyone(t, grains_body);
    const qn_status status = settle(t, err);
    if (status != QN_OK)
        return status;
    if (qn__queue_left(&t->queue) != 0)
        return qn__fail(err, QN_DEVICE, "some grains of the step could not be computed");
    return QN_OK;
}

/* Adds up the workers' sums, one worker after the other, since they share one array. */
static qn_status collect_all(qn__team *t, qn__tally *step, qn_error *err) {
    memset(t->sums, 0, t->program->parameters * sizeof *t->sums);
    *step = (qn__tally){0};
    for (uint32_t i = 0; i < t->count; ++i) {
        member *m = &t->member[i];
        m->error.status = QN_OK;
        if (m->worker)
            m->device->collect(m->worker, t->sums, step, &m->error);
    }
    return settle(t, err);
}

static qn_status shared_step(qn__team *t, qn__tally *tally, qn_error *err) {
    qn__tally step;
    qn_status status;
    uint32_t before;
    if (!t->sums && !(t->sums = qn__alloc(t->program->parameters, sizeof *t->sums, err)))
        return QN_MEMORY;
    /* A worker that is lost when its sums are fetched takes its grains along. By then the sums of
     * all the others are cleared, so the step begins again. */
    do {
        status = share_grains(t, err);
        before = qn__team_workers(t);
        if (status == QN_OK)
            status = collect_all(t, &step, err);
    } while (status == QN_OK && qn__team_workers(t) < before);
    if (status == QN_OK)
        status = t->transport->add_up(t->sums, t->program->parameters, &step, err);
    if (status != QN_OK)
        return status;
    if (qn__tally_add(tally, &step) != 0)
        return qn__fail(err, QN_NUMERIC, "the sum of the losses became too large");
    everyone(t, update_body);
    return settle(t, err);
}

/* A worker with the whole step to itself. */
static qn_status lone_step(qn__team *t, const qn__batch *next, qn__tally *tally, qn_error *err) {
    member *m = &t->member[0];
    const double begun = qn__now();
    qn_status status = m->device->train_step(m->worker, t->batch, next, t->update, tally, err);
    const double seconds = qn__now() - begun;
    m->busy += seconds;
    m->training += seconds;
    m->grains += ((uint64_t)t->batch->items + t->program->grain - 1) / t->program->grain;
    m->items += t->batch->items;
    return status;
}

qn_status qn__team_step(qn__team *t, const qn__batch *batch, const qn__batch *next,
                        const qn__update *update, qn__tally *tally, qn_error *err) {
    t->batch = batch;
    t->update = update;
    if (t->count == 1 && t->member[0].worker && t->member[0].device->train_step &&
        t->transport->ranks() == 1)
        return lone_step(t, next, tally, err);
    return shared_step(t, tally, err);
}

qn_status qn__team_apply(qn__team *t, const qn__batch *batch, qn__applied *applied,
                         qn__tally *tally, qn_error *err) {
    for (uint32_t i = 0; i < t->count; ++i) {
        member *m = &t->member[i];
        qn__tally part = {0};
        if (!m->worker)
            continue;
        m->error.status = QN_OK;
        const double begun = qn__now();
        m->device->apply(m->worker, batch, applied, tally ? &part : NULL, &m->error);
        m->busy += qn__now() - begun;
        if (m->error.status == QN_OK && tally && qn__tally_add(tally, &part) != 0)
            return qn__fail(err, QN_NUMERIC, "the sum of the losses became too large");
        if (m->error.status == QN_OK)
            return QN_OK;
        const qn_status status = settle(t, err); /* a lost worker: the next one tries */
        if (status != QN_OK)
            return status;
    }
    return qn__fail(err, QN_DEVICE, "no worker is left");
}

static void report_one(member *m, double seconds, qn_worker_report *r) {
    memset(r, 0, sizeof *r);
    memcpy(r->name, m->name, sizeof r->name);
    r->grains = m->grains;
    r->rate = m->training > 0 ? (double)m->items / m->training : 0;
    r->busy = seconds > 0 ? m->busy / seconds : 0;
    if (!m->worker || !m->device->busy)
        return;
    if (!m->cores && !(m->cores = qn__alloc(MAX_CORES, sizeof *m->cores, NULL)))
        return;
    r->cores = m->device->busy(m->worker, m->cores, MAX_CORES);
    for (int c = 0; c < r->cores && c < MAX_CORES; ++c)
        m->cores[c] = seconds > 0 ? m->cores[c] / seconds : 0;
    r->core_busy = m->cores;
}

const qn_worker_report *qn__team_report(qn__team *t, double seconds, uint32_t *count,
                                        double *bound_rate) {
    *bound_rate = 0;
    for (uint32_t i = 0; i < t->count; ++i) {
        report_one(&t->member[i], seconds, &t->report[i]);
        *bound_rate += t->report[i].rate;
    }
    *count = t->count;
    return t->report;
}
