/* The team counts grains, and a report counts items. Grains change their size while a run goes on,
 * so items are counted up to each change (qn__user_watch_change). */
#include "userkernel/run/user_watch.h"

#include "base/system/clock.h"
#include "base/system/float_state.h"
#include "device/notes.h"
#include "team/trace_ranks.h"
#include "userkernel/run/user_divide.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ progress */

/* Several iterations may be computed at once. */
static void tell_progress(void *user, int64_t done) {
    const qn_kernel *k = user;
    const qn__user_job *job = &k->job;
    const uint64_t items = (uint64_t)qn__user_job_items(job);
    if (k->divided) { /* the other ranks are as far with their rows */
        int64_t begin, end;
        qn__user_divide_items(k, &begin, &end);
        done = (int64_t)((double)(done - begin) / (double)(end - begin) * (double)items);
    }
    const double seconds = qn__now() - k->watch.begun;
    qn_kernel_progress p = {.size = sizeof p,
                            .done = (uint64_t)job->iteration * items +
                                    (uint64_t)done * (uint64_t)(job->steps > 1 ? job->steps : 1),
                            .items = k->iterations * items,
                            .seconds = seconds};
    p.done = p.done < p.items ? p.done : p.items; /* the last grain may be short */
    const double computed =
        (double)p.done - (double)(k->checkpoint.from * items) - (double)k->watch.begin;
    p.items_per_second = seconds > 0 ? computed / seconds : 0;
    if (p.items_per_second > 0)
        p.seconds_left = (double)(p.items - p.done) / p.items_per_second;
    k->watch.on_progress(k->watch.user, &p);
}

static void tell_note(void *user, const char *text) {
    const qn_kernel *k = user;
    if (k->watch.on_note)
        k->watch.on_note(k->watch.user, text);
    else
        qn__device_tell(text);
}

void qn__user_tell(const qn_kernel *k, const char *text) {
    if (k->watch.on_note)
        k->watch.on_note(k->watch.user, text);
}

static double waited(const qn_kernel *k) {
    qn__rank_traffic traffic;
    if (!k->compute.cluster)
        return 0;
    qn__cluster_traffic(k->compute.cluster, &traffic);
    return traffic.waiting;
}

qn_status qn__user_watch_begin(qn_kernel *k, const qn_kernel_options *options, qn__team *team,
                               qn_error *err) {
    qn__user_watch *w = &k->watch;
    w->on_progress = options->on_progress;
    w->on_note = options->on_note;
    w->user = options->user;
    w->trace_path = options->trace;
    if (options->trace && qn__trace_create(0, &w->trace, err) != QN_OK)
        return QN_MEMORY;
    qn__team_trace(team, w->trace);
    qn__team_notes(team, tell_note, k);
    if (w->on_progress) {
        k->job.progress = tell_progress;
        k->job.user = k;
    }
    w->begin = k->job.begin;
    w->waiting = waited(k);
    w->counts = (qn__user_counts){.at = k->checkpoint.from, .used = UINT64_MAX};
    w->begun = qn__now();
    return QN_OK;
}

/* ------------------------------------------------------------------ the report */

/* The team counts grains: the items of one since the last change. */
static double items_of_grain(const qn_kernel *k, uint64_t iteration) {
    const qn__user_counts *c = &k->watch.counts;
    const double all = (double)qn__user_job_items(&k->job) - (double)k->watch.begin;
    const double items = all * (double)(iteration - c->at);
    return k->job.computed > c->computed ? items / (double)(k->job.computed - c->computed) : 0;
}

void qn__user_watch_change(qn_kernel *k, qn__team *team, uint64_t iteration, uint64_t used) {
    qn__user_counts *c = &k->watch.counts;
    const double each = items_of_grain(k, iteration);
    uint32_t count;
    double rate;
    const qn_worker_report *worker = qn__team_report(team, 1, &count, &rate);
    for (uint32_t w = 0; w < count; w++) {
        c->items[w] += (double)(worker[w].grains - c->grains[w]) * each;
        c->grains[w] = worker[w].grains;
        c->iterations[w] += c->used >> w & 1 ? iteration - c->at : 0;
    }
    c->computed = k->job.computed;
    c->at = iteration;
    c->used = used;
}

/* The part of the iterations in which a worker took part. */
static double part_of(const qn_kernel *k, uint32_t w) {
    const uint64_t all = k->iterations - k->checkpoint.from;
    return k->compute.cluster ? 1 : (double)k->watch.counts.iterations[w] / (double)all;
}

/* Of runs in parts: the items of a rank, in all iterations. */
static double items_of_rank(const qn_kernel *k, uint32_t rank) {
    const uint64_t *first = k->divided->parts.first + rank;
    const double row = (double)qn__user_job_items(&k->job) / (double)qn__user_job_rows(&k->job);
    return (double)(first[1] - first[0]) * row * (double)k->iterations;
}

/* Of runs in parts: each rank has divided its items among its workers. */
static void count_parts(qn_kernel *k) {
    qn__rank_reports *all = &k->watch.reports;
    double rate = 0;
    k->report.threads = 0;
    for (uint32_t r = 0; r < all->ranks; r++) {
        qn_rank_report *rank = &all->rank[r];
        qn_worker_report *worker = all->worker + rank->first_worker;
        uint64_t grains = 0;
        for (uint32_t w = 0; w < rank->workers; w++)
            grains += worker[w].grains;
        rank->items = (uint64_t)llround(items_of_rank(k, r));
        rank->items_per_second = 0;
        for (uint32_t w = 0; w < rank->workers; w++) {
            const double each = grains > 0 ? items_of_rank(k, r) / (double)grains : 0;
            worker[w].items = (uint64_t)llround(each * (double)worker[w].grains);
            worker[w].items_per_second *= each;
            rank->items_per_second += worker[w].items_per_second;
            k->report.threads += worker[w].cores;
        }
        rate += rank->items_per_second;
    }
    k->report.bound = rate > 0 ? (double)k->report.items * (double)k->iterations / rate : 0;
}

static void count_items(qn_kernel *k) {
    qn__rank_reports *all = &k->watch.reports;
    const qn__user_counts *c = &k->watch.counts;
    double rate = 0;
    const uint64_t iterations = k->iterations - k->checkpoint.from;
    const double items = ((double)k->report.items - (double)k->watch.begin) * (double)iterations;
    const double each = items_of_grain(k, k->iterations);
    k->report.threads = 0;
    for (uint32_t w = 0; w < all->workers; w++) {
        k->report.threads += strcmp(all->worker[w].name, "cpu") == 0 ? all->worker[w].cores : 0;
        qn_worker_report *worker = &all->worker[w];
        const double grains = (double)worker->grains;
        const double computed = k->compute.cluster ? grains * each : c->items[w];
        worker->items = (uint64_t)llround(computed);
        worker->items_per_second *= grains > 0 ? computed / grains : 0;
        rate += worker->items_per_second * part_of(k, w);
    }
    for (uint32_t r = 0; r < all->ranks; r++) {
        qn_rank_report *rank = &all->rank[r];
        rank->items_per_second = 0;
        rank->items = 0;
        for (uint32_t w = rank->first_worker; w < rank->first_worker + rank->workers; w++) {
            rank->items += all->worker[w].items;
            rank->items_per_second += all->worker[w].items_per_second;
        }
    }
    k->report.bound = rate > 0 ? items / rate : 0;
}

qn_status qn__user_watch_report(qn_kernel *k, qn__team *team, qn_error *err) {
    qn__rank_reports *all = &k->watch.reports;
    if (!k->compute.cluster)
        qn__user_watch_change(k, team, k->iterations, 0);
    const qn_status status = qn__rank_reports_exchange(
        all, k->compute.cluster, team, k->report.seconds, waited(k) - k->watch.waiting, err);
    if (status != QN_OK)
        return status;
    if (k->divided)
        count_parts(k);
    else
        count_items(k);
    k->report.workers = all->workers;
    k->report.ranks = all->ranks;
    k->report.worker = all->worker_at;
    k->report.rank = all->rank_at;
    return QN_OK;
}

void qn__user_watch_end(qn_kernel *k, int together) {
    char text[1200];
    qn_error failure;
    if (!k->watch.trace)
        return;
    const qn_status status =
        qn__trace_save(k->watch.trace, k->watch.trace_path, k->compute.cluster, together, &failure);
    if (status != QN_OK && status != QN_BUSY) {
        snprintf(text, sizeof text, "%s; there is no trace", failure.what);
        tell_note(k, text);
    }
    qn__float_state_set();
    qn__trace_free(k->watch.trace);
    k->watch.trace = NULL;
}
