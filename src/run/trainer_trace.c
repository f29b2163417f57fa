/* The trace of a training: of this process, or of all ranks on one time line. */
#include "base/memory.h"
#include "base/text.h"
#include "run/trainer_state.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The header of a rank's trace, before its events. */
typedef struct beginning {
    double begun; /* by its own clock, then by that of the first live rank; 0: no rank */
    uint64_t dropped;
} beginning;

/* A trace that cannot be written does not stop a training either. */
static void without_trace(qn_train *t, const qn_error *failure) {
    char text[1200];
    if (failure->status == QN_BUSY && t->cluster)
        return; /* another rank writes it: the next reduction returns the reason */
    if (t->unrecorded.status == QN_OK)
        t->unrecorded = *failure;
    snprintf(text, sizeof text, "%s; the run continues without a trace", failure->what);
    qn__train_note(t, text);
}

/* The start of all ranks' traces, by the clock of the first live rank. *first: the earliest;
 * *later: the offset of this rank's trace; *dropped: records of all ranks that did not fit. */
static qn_status bring_together(qn_train *t, double *first, double *later, size_t *dropped,
                                qn_error *err) {
    const uint32_t ranks = qn_cluster_ranks(t->cluster), own = qn_cluster_rank(t->cluster);
    beginning mine = {qn__trace_begun(t->trace), qn__trace_dropped(t->trace)};
    beginning *all = qn__alloc(ranks, sizeof *all, err);
    double earliest = INFINITY;
    uint32_t clock = 0;
    *first = *later = 0;
    *dropped = 0;
    if (!all)
        return QN_MEMORY;
    qn_status status = qn__cluster_gather(t->cluster, &mine, sizeof mine, all, err);
    if (status == QN_OK) {
        while (clock + 1 < ranks && !(all[clock].begun > 0))
            ++clock;
        mine.begun += clock == own ? 0 : qn__cluster_clock(t->cluster, clock);
        status = qn__cluster_gather(t->cluster, &mine, sizeof mine, all, err);
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
static qn__trace_place place_of(const qn_train *t) {
    return (qn__trace_place){t->trace_path, t->cluster ? qn__cluster_may_write : NULL, t->cluster};
}

/* The events of all ranks, which every rank receives. */
typedef struct joined {
    qn_train *train;
    const qn__parts *parts;
    size_t dropped;
    double begun;
    qn_status status; /* of this rank's own part */
    qn_error failure;
} joined;

static qn_status write_joined(joined *j, qn_error *err) {
    const qn__parts *parts = j->parts;
    const qn__trace_place place = place_of(j->train);
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
    if (j->status == QN_OK)
        j->status = write_joined(j, &j->failure);
    if (j->status != QN_OK)
        without_trace(j->train, &j->failure);
    return QN_OK;
}

/* All-gathers the events; the writer rank writes them. */
static void write_together(qn_train *t) {
    const uint32_t own = qn_cluster_rank(t->cluster);
    qn__text text = {0};
    qn__parts parts = {0};
    joined j = {.train = t, .parts = &parts};
    qn__trace_process process = {.number = own + 1, .name = qn_cluster_name(t->cluster, own)};
    j.status = bring_together(t, &j.begun, &process.later, &j.dropped, &j.failure);
    if (j.status != QN_OK)
        return; /* the other ranks are gone, or all have failed: reported elsewhere */
    j.status = qn__trace_events(t->trace, &process, &text, &j.failure);
    if (qn__parts_gather(t->cluster, text.data, j.status == QN_OK ? text.size : 0, &parts, NULL) ==
        QN_OK)
        (void)qn__by_writer(t->cluster, write_for_all, &j, NULL);
    qn__parts_release(&parts);
    qn__text_release(&text);
}

void qn__train_write_trace(qn_train *t, int together) {
    const qn__trace_place place = place_of(t);
    qn_error failure;
    if (!t->trace)
        return;
    if (t->epoch_begun > 0) /* a further call continues the epoch */
        qn__train_span(t, "epoch", t->epoch_begun);
    t->epoch_begun = 0;
    if (t->cluster && together)
        write_together(t);
    else if (qn__train_is_writer(t) && qn__trace_write(t->trace, &place, &failure) != QN_OK)
        without_trace(t, &failure);
}
