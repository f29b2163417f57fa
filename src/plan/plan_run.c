#include "plan/plan_run.h"

#include "base/memory.h"
#include <math.h>
#include <string.h>

/* The mean of so many consecutive steps without changes is used for those that follow. Before that,
 * so many steps are simulated while the scheduler learns. */
enum { LEARNING = 48, WINDOW = 32 };

/* ------------------------------------------------------------------------------ making the team */

typedef struct maker {
    const qn__plan_team *described;
    const qn__plan_job *job;
    qn__plan_run *run;
    uint32_t ranks, workers, hosts; /* made so far */
    uint32_t all_ranks;
} maker;

static double memory_of(const qn__plan_team *t, const qn__plan_rank *r) {
    return r->memory > 0 ? r->memory : t->memory > 0 ? t->memory : QN__PLAN_MEMORY;
}

/* Bytes of a word in a message: the longest of those that were measured. */
static double word_of(const qn__plan_team *t) {
    double longest = 0;
    for (uint32_t r = 0; r < t->ranks; ++r)
        longest = fmax(longest, t->rank[r].word);
    return t->word > 0 ? t->word : longest;
}

/* Bytes read and written by an update of all parameters: the sums, and each float twice. */
static double update_bytes(const qn__plan_job *j) {
    return (double)j->parameters * (8 + 8 * (1 + (double)j->slots));
}

/* The longest update of the rank's devices, plus adding up their sums if there are several. */
static double update_of(const maker *m, const qn__plan_rank *r) {
    const double memory = memory_of(m->described, r);
    double longest = 0;
    for (uint32_t d = r->first; d < r->first + r->count; ++d) {
        const double measured = m->described->device[d].update;
        longest = fmax(longest, measured > 0 ? measured : update_bytes(m->job) / memory);
    }
    if (r->count > 1)
        longest += (double)m->job->parameters * 8 * (r->count + 1) / memory;
    return longest;
}

static double grains_a_second(const qn__plan_job *j, const qn__plan_device *d) {
    return d->rate / j->grain;
}

static void make_worker(const maker *m, const qn__plan_device *d, qn__virtual_worker *w) {
    w->rate = grains_a_second(m->job, d);
    w->start = d->start;
    w->noise = d->noise;
    w->took = d->calls.count > 0 ? &d->calls : NULL;
}

/* A device that is the whole team does the step in one pass, which was measured separately. */
static void make_lone(const maker *m, const qn__plan_device *d, qn__virtual_rank *r) {
    m->run->team->lone_steps = 1;
    if (d->step <= 0)
        return;
    r->worker->took = NULL;
    r->worker->start = 0;
    r->worker->rate = m->job->units / d->step;
    r->update = 0;
}

static void make_rank(maker *m, const qn__plan_host *h, const qn__plan_rank *from) {
    qn__plan_run *run = m->run;
    qn__virtual_rank *r = &run->team->rank[m->ranks];
    r->machine = m->hosts;
    r->worker = run->worker + m->workers;
    r->workers = from->count;
    r->update = update_of(m, from);
    r->memory = memory_of(m->described, from);
    r->pack = from->pack;
    r->unpack = from->unpack;
    run->host[m->ranks] = m->hosts;
    run->kind[m->ranks] = h;
    for (uint32_t d = 0; d < from->count; ++d) {
        const qn__plan_device *device = &m->described->device[from->first + d];
        make_worker(m, device, &r->worker[d]);
        run->rate[m->ranks] += r->worker[d].rate;
    }
    if (m->all_ranks == 1 && from->count == 1)
        make_lone(m, &m->described->device[from->first], r);
    m->workers += from->count;
    ++m->ranks;
}

static void make_host(maker *m, const qn__plan_host *h) {
    for (uint32_t i = 0; i < h->count; ++i) {
        m->run->place[m->ranks] = i;
        make_rank(m, h, &m->described->rank[h->first + i]);
    }
    ++m->hosts;
}

static uint32_t workers_of(const qn__plan_team *t, const qn__plan_host *h) {
    uint32_t workers = 0;
    for (uint32_t r = h->first; r < h->first + h->count; ++r)
        workers += t->rank[r].count;
    return workers;
}

static qn_status check_event(const qn__plan_team *t, const qn__plan_event *e, qn_error *err) {
    const uint32_t hosts = qn__plan_team_hosts(t);
    uint32_t h = 0;
    if (e->host >= hosts) {
        qn__fail(err, QN_USAGE, "the team has no host %u", e->host);
        return qn__remedy(err, QN_USAGE, "the hosts of the team are 0 to %u", hosts - 1);
    }
    for (uint32_t left = e->host; left >= t->host[h].copies; ++h)
        left -= t->host[h].copies;
    if (e->rank != QN__PLAN_ALL_RANKS && e->rank >= t->host[h].count) {
        qn__fail(err, QN_USAGE, "host %u has no rank %u", e->host, e->rank);
        return qn__remedy(err, QN_USAGE, "its ranks are 0 to %u", t->host[h].count - 1);
    }
    return QN_OK;
}

static qn_status check(const qn__plan_team *t, uint32_t ranks, uint32_t hosts, qn_error *err) {
    if (ranks == 0) {
        qn__fail(err, QN_USAGE, "the team has no host");
        return qn__remedy(err, QN_USAGE, "describe one, as in 4*host(cpu 60k)");
    }
    if (ranks > QN__PLAN_RANKS) {
        qn__fail(err, QN_USAGE, "the team has %u ranks", ranks);
        return qn__remedy(err, QN_USAGE, "a run has at most %d", QN__PLAN_RANKS);
    }
    if (hosts > 1 && t->bandwidth <= 0) {
        qn__fail(err, QN_USAGE, "the network between the hosts is not described");
        return qn__remedy(err, QN_USAGE,
                          "add its latency and bandwidth, as in `plan.team` \"net 50us 1GB/s\"");
    }
    for (uint32_t e = 0; e < t->events; ++e)
        if (check_event(t, &t->event[e], err) != QN_OK)
            return QN_USAGE;
    return QN_OK;
}

static qn_status make_team(const qn__plan_team *t, const qn__plan_job *job, uint32_t more,
                           qn__plan_run *run, qn_error *err) {
    maker m = {.described = t, .job = job, .run = run};
    const int one_more = more < t->hosts;
    const uint32_t hosts = qn__plan_team_hosts(t) + (uint32_t)one_more;
    uint32_t workers = one_more ? workers_of(t, &t->host[more]) : 0;
    m.all_ranks = qn__plan_team_ranks(t) + (one_more ? t->host[more].count : 0);
    qn_status status = check(t, m.all_ranks, hosts, err);
    for (uint32_t h = 0; h < t->hosts && status == QN_OK; ++h)
        workers += t->host[h].copies * workers_of(t, &t->host[h]);
    if (status == QN_OK)
        status = qn__virtual_team_create(m.all_ranks, &run->team, err);
    if (status != QN_OK)
        return status;
    run->worker = qn__alloc(workers, sizeof *run->worker, err);
    run->base = qn__alloc(workers, sizeof *run->base, err);
    run->host = qn__alloc(m.all_ranks, sizeof *run->host, err);
    run->place = qn__alloc(m.all_ranks, sizeof *run->place, err);
    run->kind = qn__alloc(m.all_ranks, sizeof(void *), err);
    run->rate = qn__alloc(m.all_ranks, sizeof *run->rate, err);
    if (!run->worker || !run->base || !run->host || !run->place || !run->kind || !run->rate)
        return QN_MEMORY;
    run->team->words = job->parameters;
    run->team->word = word_of(t);
    run->team->chunk = t->item * job->grain;
    run->team->network = (qn__virtual_network){.latency = t->latency,
                                               .bandwidth = t->bandwidth,
                                               .message = QN__PLAN_MESSAGE,
                                               .local = QN__PLAN_LOCAL};
    for (uint32_t h = 0; h < t->hosts; ++h)
        for (uint32_t c = 0; c < t->host[h].copies; ++c)
            make_host(&m, &t->host[h]);
    if (one_more)
        make_host(&m, &t->host[more]);
    for (uint32_t w = 0; w < workers; ++w)
        run->base[w] = run->worker[w].rate;
    return qn__virtual_team_ready(run->team, job->units, err);
}

void qn__plan_run_release(qn__plan_run *run) {
    qn__virtual_team_free(run->team);
    qn__free(run->worker);
    qn__free(run->base);
    qn__free(run->host);
    qn__free(run->place);
    qn__free(run->kind);
    qn__free(run->rate);
    memset(run, 0, sizeof *run);
}

/* -------------------------------------------------------------------------------------- changes */

/* The time of the next event after `now`; infinity: none. */
static double next_event(const qn__plan_team *t, double now) {
    double next = INFINITY;
    for (uint32_t e = 0; e < t->events; ++e)
        if (t->event[e].at > now)
            next = fmin(next, t->event[e].at);
    return next;
}

static int concerns(const qn__plan_event *e, qn__plan_event_kind kind, uint32_t host,
                    uint32_t place) {
    return e->kind == kind && e->host == host &&
           (e->rank == QN__PLAN_ALL_RANKS || e->rank == place);
}

/* The speed of the devices of a rank (number `place` of its host), relative to the start, after all
 * events up to `now`. */
static double factor_at(const qn__plan_team *t, uint32_t host, uint32_t place, double now) {
    double factor = 1;
    for (uint32_t e = 0; e < t->events; ++e)
        if (concerns(&t->event[e], QN__PLAN_SLOW, host, place) && t->event[e].at <= now)
            factor *= t->event[e].factor;
    return factor;
}

static double death_of(const qn__plan_team *t, uint32_t host, uint32_t place) {
    double death = INFINITY;
    for (uint32_t e = 0; e < t->events; ++e)
        if (concerns(&t->event[e], QN__PLAN_DIE, host, place))
            death = fmin(death, t->event[e].at);
    return death;
}

/* Sets the speeds of this time, and the changes of the next event. */
static void set_changes(const qn__plan_team *t, qn__plan_run *run, double now) {
    const double next = next_event(t, now);
    for (uint32_t i = 0; i < run->team->ranks; ++i) {
        qn__virtual_rank *r = &run->team->rank[i];
        const double death = death_of(t, run->host[i], run->place[i]);
        const double factor = factor_at(t, run->host[i], run->place[i], now);
        const double then = factor_at(t, run->host[i], run->place[i], next);
        r->dies_at = isfinite(death) ? death : 0;
        for (uint32_t w = 0; w < r->workers; ++w) {
            qn__virtual_worker *v = &r->worker[w];
            const double base = run->base[v - run->worker];
            v->rate = base * factor;
            v->change_rate = base * then;
            v->change_at = isfinite(next) && then != factor ? next : 0;
        }
    }
}

/* The highest measured rate of the device: whole steps by it alone may be faster than shares. */
static double best_rate(const qn__plan_job *j, const qn__plan_device *d) {
    return d->step > 0 ? fmax(grains_a_second(j, d), j->units / d->step) : grains_a_second(j, d);
}

/* Grains per second of the host with that number. */
static double host_rate(const qn__plan_team *t, const qn__plan_job *job, const qn__plan_host *h,
                        uint32_t number, double now) {
    double rate = 0;
    for (uint32_t r = 0; r < h->count; ++r) {
        const qn__plan_rank *rank = &t->rank[h->first + r];
        double one = 0;
        for (uint32_t d = 0; d < rank->count; ++d)
            one += best_rate(job, &t->device[rank->first + d]);
        rate += now < death_of(t, number, r) ? one * factor_at(t, number, r, now) : 0;
    }
    return rate;
}

double qn__plan_bound(const qn__plan_team *t, const qn__plan_job *job) {
    double left = job->steps * job->units, now = 0;
    for (;;) {
        double rate = 0;
        const double next = next_event(t, now);
        for (uint32_t h = 0, number = 0; h < t->hosts; ++h)
            for (uint32_t c = 0; c < t->host[h].copies; ++c)
                rate += host_rate(t, job, &t->host[h], number++, now);
        if (!isfinite(next) || left <= (next - now) * rate)
            return rate > 0 ? now + left / rate : INFINITY;
        left -= (next - now) * rate;
        now = next;
    }
}

/* -------------------------------------------------------------------------------------- the run */

/* Whether no rank that computes is still choosing its workers. */
static int is_settled(const qn__virtual_team *t) {
    for (uint32_t r = 0; r < t->ranks; ++r)
        if (t->rank[r].alive && t->rank[r].workers > 1 && t->rank[r].share > 0 &&
            t->rank[r].chooser.stage != QN__CHOOSE_STAY)
            return 0;
    return 1;
}

static void add_part(qn__virtual_spent *to, const qn__virtual_spent *before, double times) {
    to->computing += (to->computing - before->computing) * times;
    to->waiting += (to->waiting - before->waiting) * times;
    to->exchanging += (to->exchanging - before->exchanging) * times;
    to->updating += (to->updating - before->updating) * times;
    to->chunks += (to->chunks - before->chunks) * times;
    to->bytes_out += (to->bytes_out - before->bytes_out) * times;
}

/* The window: times spent before it. */
typedef struct window {
    qn__virtual_spent *before; /* of each rank */
    double at;
    uint32_t steps;  /* since then */
    uint32_t learnt; /* steps since the last change */
} window;

static void begin_window(window *w, const qn__virtual_team *t) {
    for (uint32_t r = 0; r < t->ranks; ++r)
        w->before[r] = t->rank[r].spent;
    w->at = t->now;
    w->steps = 0;
}

/* `steps` steps like those of the window. */
static void leap(qn__virtual_team *t, const window *w, double steps) {
    const double times = steps / w->steps, seconds = (t->now - w->at) * times;
    for (uint32_t r = 0; r < t->ranks; ++r) {
        if (!t->rank[r].alive)
            continue;
        add_part(&t->rank[r].spent, &w->before[r], times);
        t->rank[r].at += seconds;
    }
    t->now += seconds;
    t->free += seconds;
}

/* Whole steps that can be skipped before the next event or the end. */
static double leap_of(const qn__virtual_team *t, const window *w, double left, double event) {
    const double each = (t->now - w->at) / w->steps;
    return fmax(0, fmin(left, floor((event - t->now) / each) - 1));
}

static qn_status go_through(const qn__plan_team *described, const qn__plan_job *job,
                            qn__plan_run *run, window *w, qn_error *err) {
    qn__virtual_team *t = run->team;
    double left = floor(job->steps), event = -1;
    const double rest = job->steps - left;
    qn_status status = QN_OK;
    while (left > 0 && status == QN_OK) {
        if (event <= t->now) {
            set_changes(described, run, t->now);
            event = next_event(described, t->now);
            w->learnt = w->steps = 0;
        }
        if (w->learnt < LEARNING || !is_settled(t))
            begin_window(w, t);
        status = qn__virtual_reduction(t, job->units, err);
        ++w->learnt;
        ++w->steps;
        left -= 1;
        run->step = (t->now - w->at) / w->steps;
        if (status == QN_OK && w->steps >= WINDOW) {
            const double steps = leap_of(t, w, left, event);
            leap(t, w, steps);
            left -= steps;
            w->steps = w->learnt = 0; /* if the event is near: step by step until then */
        }
    }
    const double part = ceil(rest * job->units - 1e-6);
    if (status == QN_OK && part >= 1)
        status = qn__virtual_reduction(t, (uint32_t)part, err);
    run->seconds = t->now;
    return status;
}

qn_status qn__plan_run_make(const qn__plan_team *described, const qn__plan_job *job, uint32_t more,
                            int equal, qn__plan_run *run, qn_error *err) {
    window w = {.before = NULL};
    memset(run, 0, sizeof *run);
    qn_status status = make_team(described, job, more, run, err);
    if (status == QN_OK) {
        run->team->equal = equal;
        w.before = qn__alloc(run->team->ranks, sizeof *w.before, err);
        status = w.before ? go_through(described, job, run, &w, err) : QN_MEMORY;
    }
    qn__free(w.before);
    if (status != QN_OK)
        qn__plan_run_release(run);
    return status;
}
