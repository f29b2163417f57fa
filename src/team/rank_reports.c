#include "team/rank_reports.h"

#include "base/memory.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* --------------------------------------------------------------------------------- of this rank */

/* ", " between names; names that do not fit are left out. */
static void add_name(qn_rank_report *r, const char *name) {
    const size_t used = strlen(r->worker_names), capacity = sizeof r->worker_names - used;
    if (used + strlen(name) + 3 <= sizeof r->worker_names)
        snprintf(r->worker_names + used, capacity, "%s%s", used ? ", " : "", name);
}

static void describe_traffic(qn_cluster *cluster, const qn__team *team, qn_rank_report *r) {
    qn__rank_traffic traffic;
    if (!cluster)
        return;
    qn__cluster_traffic(cluster, &traffic);
    r->bytes_out = traffic.bytes_out;
    r->bytes_in = traffic.bytes_in;
    r->bytes_early = traffic.bytes_early;
    r->bytes_shared = traffic.bytes_shared;
    r->recoveries = traffic.recoveries;
    r->longest_recovery = traffic.longest;
    qn__team_counted(team, &r->counted_out, &r->counted_in);
}

static void name_host(qn_cluster *cluster, uint32_t rank, qn_rank_report *r) {
    if (cluster)
        snprintf(r->host, sizeof r->host, "%s", qn__cluster_host(cluster, rank));
    else if (gethostname(r->host, sizeof r->host - 1) != 0)
        r->host[0] = 0;
}

const qn_worker_report *qn__rank_describe(qn_cluster *cluster, qn__team *team, double seconds,
                                          double waiting, qn_rank_report *r) {
    double weighted = 0, weights = 0;
    memset(r, 0, sizeof *r);
    r->size = sizeof *r;
    const qn_worker_report *w = qn__team_report(team, seconds, &r->workers, &r->items_per_second);
    r->rank = qn_cluster_rank(cluster);
    name_host(cluster, r->rank, r);
    for (uint32_t i = 0; i < r->workers; ++i) {
        add_name(r, w[i].name);
        r->items += w[i].items;
        weighted += w[i].items_per_second * w[i].busy;
        weights += w[i].items_per_second;
    }
    r->busy = weights > 0 ? weighted / weights : 0;
    r->waiting = seconds > 0 ? waiting / seconds : 0;
    describe_traffic(cluster, team, r);
    return w;
}

/* --------------------------------------------------------------------------------- of all ranks */

/* The header of a serialised report of a rank; its workers and the busy shares of their cores
 * follow. */
typedef struct report_header {
    qn_rank_report rank;
    uint64_t repeated;
} report_header;

enum { MOST_WORKERS = 64, MOST_CORES = 4096 };

static uint64_t letter_size(const qn_worker_report *w, uint32_t workers) {
    uint64_t size = sizeof(report_header) + workers * sizeof *w;
    for (uint32_t i = 0; i < workers; ++i)
        size += (uint64_t)w[i].cores * sizeof(double);
    return size;
}

static qn_status exchange(qn__rank_reports *all, qn_cluster *cluster, qn__team *team,
                          double seconds, double waiting, qn_error *err) {
    report_header head;
    const qn_worker_report *w = qn__rank_describe(cluster, team, seconds, waiting, &head.rank);
    const uint64_t size = letter_size(w, head.rank.workers);
    head.rank.joined_after = all->joined_after;
    head.repeated = qn__team_repeated(team);
    unsigned char *own = qn__alloc(size, 1, err), *at = own;
    if (!own)
        return QN_MEMORY;
    memcpy(at, &head, sizeof head);
    memcpy(at += sizeof head, w, head.rank.workers * sizeof *w);
    at += head.rank.workers * sizeof *w;
    for (uint32_t i = 0; i < head.rank.workers; ++i) {
        if (w[i].cores > 0)
            memcpy(at, w[i].core_busy, (size_t)w[i].cores * sizeof(double));
        at += (size_t)w[i].cores * sizeof(double);
    }
    qn__parts_release(&all->parts);
    const qn_status status = qn__parts_gather(cluster, own, size, &all->parts, err);
    qn__free(own);
    return status;
}

/* 1 if the bytes are a valid report. */
static int is_report(const void *bytes, uint64_t size) {
    if (!bytes || size < sizeof(report_header))
        return 0;
    const report_header *head = bytes;
    const qn_worker_report *w = (const void *)(head + 1);
    if (head->rank.workers > MOST_WORKERS || size < sizeof *head + head->rank.workers * sizeof *w)
        return 0;
    for (uint32_t i = 0; i < head->rank.workers; ++i)
        if (w[i].cores < 0 || w[i].cores > MOST_CORES)
            return 0;
    return letter_size(w, head->rank.workers) == size;
}

static void open_letter(qn__rank_reports *all, uint32_t rank) {
    const report_header *head = (const void *)all->parts.part[rank].bytes;
    qn_rank_report *r = &all->rank[rank];
    const qn_worker_report *w = (const void *)(head + 1);
    const double *busy = (const void *)(w + head->rank.workers);
    *r = head->rank;
    r->size = sizeof *r;
    r->rank = rank;
    r->first_worker = all->workers;
    r->host[sizeof r->host - 1] = r->worker_names[sizeof r->worker_names - 1] = 0;
    all->repeated += head->repeated;
    for (uint32_t i = 0; i < r->workers; ++i) {
        qn_worker_report *to = &all->worker[all->workers++];
        *to = w[i];
        to->size = sizeof *to;
        to->rank = rank;
        to->name[sizeof to->name - 1] = to->device[sizeof to->device - 1] = 0;
        to->note[sizeof to->note - 1] = 0;
        to->core_busy = to->cores > 0 ? busy : NULL;
        busy += to->cores;
    }
}

static void describe_lost(qn__rank_reports *all, qn_cluster *cluster, uint32_t rank) {
    qn_rank_report *r = &all->rank[rank];
    *r = (qn_rank_report){.size = sizeof *r, .rank = rank, .lost = 1};
    name_host(cluster, rank, r);
}

qn_status qn__rank_reports_reserve(qn__rank_reports *all, uint32_t ranks, qn_error *err) {
    const uint64_t workers = (uint64_t)ranks * MOST_WORKERS;
    if (all->ranks == ranks)
        return QN_OK;
    qn__rank_reports_release(all);
    all->rank = qn__alloc(ranks, sizeof *all->rank, err);
    all->rank_at = qn__alloc(ranks, sizeof *all->rank_at, err);
    all->worker = qn__alloc(workers, sizeof *all->worker, err);
    all->worker_at = qn__alloc(workers, sizeof *all->worker_at, err);
    if (!all->rank || !all->rank_at || !all->worker || !all->worker_at)
        return QN_MEMORY;
    all->ranks = ranks;
    return QN_OK;
}

qn_status qn__rank_reports_exchange(qn__rank_reports *all, qn_cluster *cluster, qn__team *team,
                                    double seconds, double waiting, qn_error *err) {
    qn_status status = qn__rank_reports_reserve(all, qn_cluster_ranks(cluster), err);
    all->workers = 0;
    all->repeated = 0;
    if (status == QN_OK)
        status = exchange(all, cluster, team, seconds, waiting, err);
    if (status != QN_OK)
        return status;
    for (uint32_t r = 0; r < all->ranks; ++r) {
        if (is_report(all->parts.part[r].bytes, all->parts.part[r].size))
            open_letter(all, r);
        else
            describe_lost(all, cluster, r);
        all->rank_at[r] = &all->rank[r];
    }
    for (uint32_t w = 0; w < all->workers; ++w)
        all->worker_at[w] = &all->worker[w];
    return QN_OK;
}

void qn__rank_reports_release(qn__rank_reports *all) {
    qn__free(all->rank);
    qn__free(all->rank_at);
    qn__free(all->worker);
    qn__free(all->worker_at);
    qn__parts_release(&all->parts);
    *all = (qn__rank_reports){0};
}
