/* Traces of several processes come together as texts, on the clock of the first live rank. */
#include "team/trace_ranks.h"

#include "base/memory.h"
#include "base/text/text.h"
#include "team/together.h"
#include <math.h>

typedef struct saved {
    const qn__trace *trace;
    const char *path;
    qn_cluster *cluster;
} saved;

/* The header of a rank's trace, before its events. */
typedef struct beginning {
    double begun; /* by its own clock, then by that of the first live rank; 0: no rank */
    uint64_t dropped;
} beginning;

/* The start of all ranks' traces, by the clock of the first live rank. *first: the earliest;
 * *later: the offset of this rank's trace; *dropped: records of all ranks that did not fit. */
static qn_status bring_together(const saved *s, double *first, double *later, size_t *dropped,
                                qn_error *err) {
    const uint32_t ranks = qn_cluster_ranks(s->cluster), own = qn_cluster_rank(s->cluster);
    beginning mine = {qn__trace_begun(s->trace), qn__trace_dropped(s->trace)};
    beginning *all = qn__alloc(ranks, sizeof *all, err);
    double earliest = INFINITY;
    uint32_t clock = 0;
    *first = *later = 0;
    *dropped = 0;
    if (!all)
        return QN_MEMORY;
    qn_status status = qn__cluster_gather(s->cluster, &mine, sizeof mine, all, err);
    if (status == QN_OK) {
        while (clock + 1 < ranks && !(all[clock].begun > 0))
            ++clock;
        mine.begun += clock == own ? 0 : qn__cluster_clock(s->cluster, clock);
        status = qn__cluster_gather(s->cluster, &mine, sizeof mine, all, err);
    }
    for (uint32_t r = 0; r < ranks && status == QN_OK; ++r) {
        *dropped += all[r].dropped;
        if (all[r].begun > 0)
            earliest = fmin(earliest, all[r].begun);
    }
    if (isfinite(earliest)) {
        *first = earliest;
        *later = fmax(0, mine.begun - earliest);
    }
    qn__free(all);
    return status;
}

/* A rank that was suspended while it wrote may have been evicted: then it must not change the
 * file. */
static qn__trace_place place_of(const saved *s) {
    return (qn__trace_place){s->path, s->cluster ? qn__cluster_may_write : NULL, s->cluster};
}

/* The events of all ranks, which every rank receives. */
typedef struct joined {
    const saved *saved;
    const qn__parts *parts;
    size_t dropped;
    double begun;
    qn_status status; /* of this rank's own part */
    int told;         /* 1: this rank had to write */
    qn_error failure;
} joined;

static qn_status write_joined(joined *j, qn_error *err) {
    const qn__parts *parts = j->parts;
    const qn__trace_place place = place_of(j->saved);
    qn__trace_events_of *events = qn__alloc(parts->ranks, sizeof *events, err);
    if (!events)
        return QN_MEMORY;
    for (uint32_t r = 0; r < parts->ranks; ++r)
        events[r] = (qn__trace_events_of){(const char *)parts->part[r].bytes, parts->part[r].size};
    const qn_status status =
        qn__trace_write_joined(events, parts->ranks, j->dropped, j->begun, &place, err);
    qn__free(events);
    return status;
}

static qn_status write_for_all(void *context, qn_error *err) {
    joined *j = context;
    (void)err; /* a failure here concerns this rank only */
    j->told = 1;
    if (j->status == QN_OK)
        j->status = write_joined(j, &j->failure);
    return QN_OK;
}

/* All-gathers the events; the writer rank writes them. */
static qn_status write_together(const saved *s, qn_error *failure) {
    const uint32_t own = qn_cluster_rank(s->cluster);
    qn__text text = {0};
    qn__parts parts = {0};
    joined j = {.saved = s, .parts = &parts};
    qn__trace_process process = {.number = own + 1, .name = qn_cluster_name(s->cluster, own)};
    j.status = bring_together(s, &j.begun, &process.later, &j.dropped, &j.failure);
    if (j.status != QN_OK)
        return QN_OK; /* the other ranks are gone, or all have failed: reported elsewhere */
    j.status = qn__trace_events(s->trace, &process, &text, &j.failure);
    const qn_status gathered =
        qn__parts_gather(s->cluster, text.data, j.status == QN_OK ? text.size : 0, &parts, NULL);
    if (gathered == QN_OK)
        (void)qn__by_writer(s->cluster, write_for_all, &j, NULL);
    qn__parts_release(&parts);
    qn__text_release(&text);
    if (gathered != QN_OK || !j.told)
        return QN_OK;
    *failure = j.failure;
    return j.status;
}

qn_status qn__trace_save(const qn__trace *trace, const char *path, qn_cluster *cluster,
                         int together, qn_error *failure) {
    const saved s = {trace, path, cluster};
    const qn__trace_place place = place_of(&s);
    if (cluster && together)
        return write_together(&s, failure);
    return qn_cluster_is_writer(cluster) ? qn__trace_write(trace, &place, failure) : QN_OK;
}
