/* Creating and destroying a team, and the loss of its members. */
#include "team/team.h"

#include "base/memory.h"
#include "base/system/clock.h"
#include "base/system/float_state.h"
#include "num/host.h"
#include "team/members.h"
#include "team/team_joint.h"
#include "team/team_reduction.h"
#include <stdio.h>
#include <string.h>

uint64_t qn__team_alive(const qn__team *t) {
    uint64_t set = 0;
    for (uint32_t i = 0; i < t->count; ++i)
        set |= t->member[i].worker ? QN__BIT(i) : 0;
    return set;
}

uint32_t qn__team_workers(const qn__team *t) {
    return (uint32_t)__builtin_popcountll(qn__team_alive(t));
}

int qn__team_is_the_cpu(const qn__team *t) {
    return t->count == 1 && !t->cluster && t->member[0].device->host;
}

qn_status qn__team_no_worker(qn_error *err) {
    qn__fail(err, QN_DEVICE, "no worker is left");
    return qn__remedy(err, QN_DEVICE,
                      "start again with `train.resume`; the last checkpoint is complete");
}

/* --------------------------------------------------------------------------------------- create */

static void name_member(qn__team_member *m) {
    qn_device_info info = {.size = sizeof(qn_device_info)};
    if (m->can_be_lost)
        snprintf(m->name, sizeof m->name, "%s:%u", m->device->name, m->index);
    else
        snprintf(m->name, sizeof m->name, "%s", m->device->name);
    if (m->device->describe(m->index, &info, NULL) == QN_OK)
        memcpy(m->title, info.name, sizeof m->title);
}

typedef struct opening {
    qn__team *team;
    const qn_compute *compute;
    const qn__member *members;
} opening;

/* A processor computes a kernel by the function of its host job. */
static int is_on_host(const qn__team_member *m) {
    return (m->device->jobs & qn__job_bit(QN__JOB_HOST)) != 0;
}

/* 0: the member's error has the reason. */
static int can_compute(qn__team_member *m, const qn__program *program,
                       const qn__kernel_job *kernel) {
    const int grows = program && program->sequences;
    if (program ? m->device->supports(program) && (m->device->extend || !grows)
                : (is_on_host(m) && !(kernel && kernel->no_host)) ||
                      (kernel && (m->device->jobs & QN__JOB_KERNEL)))
        return 1;
    if (kernel && kernel->no_host && is_on_host(m)) {
        m->error = *kernel->no_host;
        return 0;
    }
    if (program)
        qn__member_lacks(m->name, m->device, program, &m->error);
    else
        qn__fail(&m->error, QN_UNSUPPORTED, "%s computes networks%s only", m->name,
                 m->device->jobs & QN__JOB_KERNEL ? ", kernels and statistics" : "");
    if (!program)
        qn__remedy(&m->error, QN_UNSUPPORTED, "use `compute.devices` cpu");
    return 0;
}

static void open_body(void *context, int index) {
    const opening *o = context;
    qn__team_member *m = &o->team->member[index];
    qn_compute compute = *o->compute;
    const double begun = qn__now();
    if (o->members[index].threads)
        compute.threads = o->members[index].threads;
    const qn__kernel_job *kernel = o->team->kernel;
    if (!can_compute(m, o->team->program, kernel))
        return;
    m->device->open(m->index, &compute, o->team->program, &m->worker, &m->error);
    if (m->worker && kernel && m->device->prepare &&
        m->device->prepare(m->worker, kernel, &m->error) != QN_OK) {
        m->device->close(m->worker);
        m->worker = NULL;
    }
    m->busy += m->worker ? 0 : qn__now() - begun;
}

/* Members that could not be opened: an error if they were named, or if no other member is left. */
static qn_status settle_opening(qn__team *t, qn_error *err) {
    const uint64_t alive = qn__team_alive(t);
    for (uint32_t i = 0; i < t->count; ++i) {
        qn__team_member *m = &t->member[i];
        if (m->worker)
            continue;
        if (!m->optional || !alive) {
            if (err)
                *err = m->error;
            return m->error.status;
        }
        snprintf(m->note, sizeof m->note, "not used: %.240s", m->error.what);
    }
    return QN_OK;
}

static qn_status open_all(qn__team *t, const qn_compute *compute, const qn__member *members,
                          qn_error *err) {
    opening o = {t, compute, members};
    uint32_t own = 0;
    for (uint32_t i = 0; i < t->count; ++i) {
        qn__team_member *m = &t->member[i];
        m->device = members[i].device;
        m->index = members[i].index;
        m->can_be_lost = !m->device->host;
        m->optional = members[i].optional;
        m->version = QN__NO_VERSION;
        t->sharing.fixed |= members[i].share > 0;
        own = m->can_be_lost ? own : i;
        name_member(m);
    }
    const qn_status status = qn__drivers_create(t->count, own, &t->drivers, err);
    if (status != QN_OK)
        return status;
    qn__drivers_run(t->drivers, t->count == 64 ? UINT64_MAX : QN__BIT(t->count) - 1, open_body, &o);
    return settle_opening(t, err);
}

static qn_status begin_queues(qn__team *t, const qn__member *members, qn_error *err) {
    if (qn__queue_begin(&t->sharing.queue, t->count) != 0)
        return qn__fail(err, QN_MEMORY, "cannot make the queue of grains");
    ++t->sharing.queues;
    if (qn__queue_begin(&t->sharing.pieces, t->count) != 0)
        return qn__fail(err, QN_MEMORY, "cannot make the queue of pieces");
    ++t->sharing.queues;
    if (qn__queue_begin(&t->sharing.host, t->count) != 0)
        return qn__fail(err, QN_MEMORY, "cannot make the queue of host jobs");
    ++t->sharing.queues;
    t->sharing.pieces.keeps = 1;
    if (t->sharing.fixed)
        t->sharing.queue.sharing = t->sharing.host.sharing = QN__SHARE_FIXED;
    for (uint32_t i = 0; i < t->count; ++i)
        t->sharing.queue.of[i].weight = t->sharing.host.of[i].weight = members[i].share;
    return QN_OK;
}

/* Among ranks no worker computes a whole step alone, so the cost of a share counts. */
static void begin_choosing(qn__team *t) {
    const qn__program *p = t->program;
    const uint32_t ranks = t->cluster ? qn_cluster_alive(t->cluster) : 1;
    const uint64_t grains = p ? ((uint64_t)p->batch + p->grain - 1) / p->grain : 1;
    uint64_t late = 0;
    for (uint32_t i = 0; i < t->count; ++i)
        if (t->member[i].device->train_step && t->member[i].device->flush && !t->cluster &&
            !(p && p->part))
            late |= QN__BIT(i);
    qn__chooser_begin(&t->sharing.chooser, &t->sharing.queue, qn__team_alive(t), late,
                      (uint32_t)((grains + ranks - 1) / ranks));
}

/* The log exists only if a worker can be lost. */
static qn_status begin_log(qn__team *t, qn_error *err) {
    t->history.log_space = 1;
    for (uint32_t i = 0; i < t->count; ++i)
        if (t->member[i].can_be_lost)
            t->history.log_space = QN__LOG;
    t->history.log = qn__alloc(t->history.log_space, sizeof *t->history.log, err);
    return t->history.log ? QN_OK : QN_MEMORY;
}

static qn_status create(qn__team *t, const qn_compute *compute, const qn__member *members,
                        uint32_t count, qn_error *err) {
    t->history.host.version = t->history.spare.version = t->history.version = QN__NO_VERSION;
    t->member = qn__alloc(count, sizeof *t->member, err);
    t->reports.report = qn__alloc(count, sizeof *t->reports.report, err);
    if (!t->member || !t->reports.report)
        return QN_MEMORY;
    t->count = count;
    qn_status status = open_all(t, compute, members, err);
    qn__float_state_set(); /* a loaded driver may have changed it */
    if (status == QN_OK)
        status = begin_queues(t, members, err);
    if (status == QN_OK)
        status = begin_log(t, err);
    if (status == QN_OK && t->cluster)
        status = qn__cluster_reserve(
            t->cluster, QN__TALLY_WORDS + (t->program ? qn__program_sums(t->program) : 0), err);
    if (status == QN_OK)
        begin_choosing(t);
    return status;
}

static qn_status make(const qn__program *program, const qn__kernel_job *kernel,
                      const qn_compute *compute, const qn__member *members, uint32_t count,
                      qn__portion *portion, qn__team **out, qn_error *err) {
    if (count < 1 || count > QN__MAX_WORKERS)
        return qn__fail(err, QN_USAGE, "a team has 1 to %d workers, not %u", QN__MAX_WORKERS,
                        count);
    qn__team *t = qn__alloc(1, sizeof *t, err);
    if (!t)
        return QN_MEMORY;
    t->program = program;
    t->kernel = kernel;
    t->cluster = qn_cluster_ranks(compute->cluster) > 1 ? compute->cluster : NULL;
    const qn_status status = create(t, compute, members, count, err);
    if (status != QN_OK) {
        qn__team_destroy(t);
        return status;
    }
    t->portion = *portion;
    *out = t;
    return QN_OK;
}

static int is_automatic(const qn_compute *compute) {
    return !compute->devices || strcmp(compute->devices, "auto") == 0;
}

static qn_status find_and_make(const qn__program *program, const qn__kernel_job *kernel,
                               const qn_compute *compute, const qn__member *members, uint32_t count,
                               qn__team **out, qn_error *err) {
    qn__member found[QN__MAX_WORKERS];
    qn_compute own = *compute;
    qn__portion portion = {0};
    const int given = members != NULL;
    *out = NULL;
    if (!program && !kernel && is_automatic(&own))
        own.devices = "cpu"; /* nothing else is looked for */
    qn_status status = qn__host_check(err);
    if (status == QN_OK && !given)
        status = qn__members_of(&own, found, QN__MAX_WORKERS, &count, err);
    if (status == QN_OK)
        status = qn__portion_take(&own, given ? NULL : found, &count, &portion, err);
    for (uint32_t i = 0; i < count && status == QN_OK && !given && is_automatic(&own); ++i)
        found[i].optional |= kernel && kernel->no_host;
    if (status == QN_OK)
        status = make(program, kernel, &own, given ? members : found, count, &portion, out, err);
    if (status != QN_OK)
        qn__portion_give(&portion);
    return status;
}

qn_status qn__team_create(const qn__program *program, const qn_compute *compute,
                          const qn__member *members, uint32_t count, qn__team **out,
                          qn_error *err) {
    return find_and_make(program, NULL, compute, members, count, out, err);
}

qn_status qn__team_create_for(const qn__kernel_job *kernel, const qn_compute *compute,
                              qn__team **out, qn_error *err) {
    return find_and_make(NULL, kernel, compute, NULL, 0, out, err);
}

void qn__team_destroy(qn__team *t) {
    if (!t)
        return;
    qn__team_joint_close(t);
    for (uint32_t i = 0; i < t->count; ++i) {
        if (t->member[i].worker)
            t->member[i].device->close(t->member[i].worker);
        qn__free(t->member[i].cores);
        qn__free(t->member[i].sums);
    }
    qn__drivers_destroy(t->drivers);
    if (t->sharing.queues > 0)
        qn__queue_end(&t->sharing.queue);
    if (t->sharing.queues > 1)
        qn__queue_end(&t->sharing.pieces);
    if (t->sharing.queues > 2)
        qn__queue_end(&t->sharing.host);
    qn__free(t->history.spare.state.parameters);
    for (int i = 0; i < QN__SLOTS; ++i)
        qn__free(t->history.spare.state.slot[i]);
    qn__portion_give(&t->portion);
    qn__free(t->reduction.range);
    qn__free(t->history.log);
    qn__team_growth_free(t->growth);
    qn__free(t->member);
    qn__free(t->reports.report);
    qn__free(t);
}

/* ------------------------------------------------------------------------------------- settings */

static void tell(const qn__team *t, const char *text) {
    if (t->reports.note)
        t->reports.note(t->reports.user, text);
    qn__float_state_set();
}

void qn__team_bring(qn__team *t, qn__bring_fn bring, void *user) {
    t->bring = bring;
    t->bring_user = user;
}

void qn__team_notes(qn__team *t, qn_note_fn note, void *user) {
    char text[400];
    t->reports.note = note;
    t->reports.user = user;
    for (uint32_t i = 0; i < t->count; ++i) {
        if (t->member[i].worker || t->member[i].lost)
            continue;
        snprintf(text, sizeof text, "%s is %s", t->member[i].name, t->member[i].note);
        tell(t, text);
    }
}

void qn__team_trace(qn__team *t, qn__trace *trace) {
    t->reports.trace = trace;
    t->reports.track = qn__trace_track(trace, "team");
    for (uint32_t i = 0; i < t->count; ++i)
        t->member[i].track = qn__trace_track(trace, t->member[i].name);
}

void qn__team_pick(qn__team *t, uint64_t (*pick)(void *user, uint64_t step), void *user) {
    t->sharing.pick = pick;
    t->sharing.pick_user = user;
}

void qn__team_expect(qn__team *t, uint64_t steps) {
    qn__chooser_expect(&t->sharing.chooser, steps);
}

uint32_t qn__team_ranks(const qn__team *t) { return qn_cluster_ranks(t->cluster); }

void qn__team_counted(const qn__team *t, uint64_t *out, uint64_t *in) {
    *out = t->reduction.counted_out;
    *in = t->reduction.counted_in;
}

double qn__team_trial_seconds(const qn__team *t) { return t->sharing.chooser.cost; }

uint64_t qn__team_repeated(const qn__team *t) { return t->history.repeated; }

/* --------------------------------------------------------------------------------------- losses */

static void report_loss(qn__team_member *m) {
    if (m->device->traffic)
        m->device->traffic(m->worker, &m->traffic);
    qn__meter_read(&m->meter, m->device, m->index);
}

static void lose(qn__team *t, uint32_t index) {
    qn__team_member *m = &t->member[index];
    char text[700];
    const uint64_t left = qn__team_alive(t) & ~QN__BIT(index);
    snprintf(text, sizeof text, "worker %s failed: %s%s", m->name, m->error.what,
             left ? "; the other workers compute its grains" : "");
    qn__trace_mark(t->reports.trace, m->track, "lost", qn__now(), m->error.what);
    snprintf(m->note, sizeof m->note, "failed: %.240s", m->error.what);
    report_loss(m);
    qn__team_joint_lose(t, index);
    m->device->close(m->worker);
    m->worker = NULL;
    m->lost = 1;
    m->owes = 0;
    m->version = QN__NO_VERSION;
    qn__queue_lose(&t->sharing.queue, index); /* nobody waits for it */
    qn__queue_lose(&t->sharing.pieces, index);
    qn__queue_lose(&t->sharing.host, index);
    qn__chooser_alive(&t->sharing.chooser, left);
    tell(t, text);
}

qn_status qn__team_settle(qn__team *t, uint64_t set, qn_error *err) {
    const qn__team_member *first = NULL;
    for (uint32_t i = 0; i < t->count; ++i) {
        qn__team_member *m = &t->member[i];
        if (!(set & QN__BIT(i)) || !m->worker || m->error.status == QN_OK)
            continue;
        if (m->error.status == QN_DEVICE)
            lose(t, i);
        else if (!first || m->failed_at < first->failed_at)
            first = m; /* the first in the batch, independent of who computed it */
    }
    if (first) {
        if (err)
            *err = first->error;
        return first->error.status;
    }
    return qn__team_alive(t) ? QN_OK : qn__team_no_worker(err);
}

qn_status qn__team_do(qn__team *t, uint64_t set, void (*body)(void *context, int member),
                      void *context, qn_error *err) {
    set &= qn__team_alive(t);
    for (uint32_t i = 0; i < t->count; ++i)
        if (set & QN__BIT(i)) {
            t->member[i].error.status = QN_OK;
            t->member[i].error.where[0] = 0;
            t->member[i].failed_at = 0;
        }
    qn__drivers_run(t->drivers, set, body, context);
    return qn__team_settle(t, set, err);
}
