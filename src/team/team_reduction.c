#include "team/team_reduction.h"

#include "base/memory.h"
#include "base/system/clock.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------------------------------- costs */

/* Measures this rank's share of the current reduction, and reports its cost. */
static void report_cost(qn__team *t, uint64_t set, double seconds) {
    qn__team_reduction_state *r = &t->reduction;
    qn__rank_cost *cost = &r->cost[r->kind];
    uint32_t chunks = 0;
    if (t->following.on) {
        qn__cluster_cost(t->cluster, r->kind, QN__COST_OUT);
        return;
    }
    for (uint32_t i = 0; i < r->ranges; ++i)
        chunks += r->range[i].count;
    qn__rank_cost_share(cost, set, chunks, r->whole ? seconds : 0, qn__now());
    qn__cluster_cost(t->cluster, r->kind,
                     r->alike ? (qn__cost){0, 1} : qn__rank_cost_reported(cost));
    r->chunks = chunks;
    r->seconds = r->whole ? seconds : 0;
}

void qn__team_reduction_updated(qn__team *t, double seconds) {
    qn__rank_cost_update(&t->reduction.cost[QN__REDUCTION_STEP], seconds);
}

/* ------------------------------------------------------------------------------------ failures */

void qn__team_reduction_reported(qn__team *t) {
    const unsigned char own = 1;
    unsigned char *all = qn__alloc(qn_cluster_ranks(t->cluster), sizeof *all, NULL);
    if (all)
        qn__cluster_gather(t->cluster, &own, sizeof own, all, NULL);
    qn__free(all);
}

typedef struct failure {
    uint32_t failed, at;
    qn_error error;
} failure;

/* A rank could not sum a chunk: all ranks return the failure of the first such chunk. */
static qn_status agree_on_failure(qn__team *t, qn_error *err) {
    const uint32_t ranks = qn_cluster_ranks(t->cluster);
    failure *all = qn__alloc(ranks, sizeof *all, err);
    const failure *first = NULL;
    if (!all)
        return QN_MEMORY;
    const failure own = {.failed = t->reduction.failure.status != QN_OK,
                         .at = t->reduction.failed_at,
                         .error = t->reduction.failure};
    qn_status status = qn__cluster_gather(t->cluster, &own, sizeof own, all, err);
    for (uint32_t r = 0; r < ranks && status == QN_OK; ++r)
        if (all[r].failed && (!first || all[r].at < first->at))
            first = &all[r];
    if (status == QN_OK && first) {
        if (err)
            *err = first->error;
        status = first->error.status;
    } else if (status == QN_OK) {
        status = qn__fail(err, QN_NUMERIC, "a rank that failed later found a number out of range");
    }
    if (status == QN_NUMERIC)
        qn__team_reduction_reported(t);
    qn__free(all);
    return status;
}

/* -------------------------------------------------------------------------------- the reduction */

static qn_status begin(qn__team *t, const qn__reduction *reduction, qn_error *err) {
    qn__team_reduction_state *r = &t->reduction;
    if (r->open)
        return QN_OK;
    const qn_status status = qn__reduction_begin(t->cluster, reduction, err);
    if (status != QN_OK)
        return status;
    r->open = 1;
    r->kind = reduction->kind;
    r->words = reduction->words;
    r->ranges = 0;
    r->total = NULL;
    r->failure.status = QN_OK;
    return QN_OK;
}

/* Fetches further ranges of this rank. */
static qn_status fetch_ranges(qn__team *t, qn_error *err) {
    qn__team_reduction_state *r = &t->reduction;
    qn__chunk_range range;
    while (qn__reduction_chunks(t->cluster, &range)) {
        if (r->ranges == r->capacity) {
            const uint32_t capacity = r->capacity ? 2 * r->capacity : 64;
            qn__chunk_range *more = qn__alloc(capacity, sizeof *more, err);
            if (!more)
                return QN_MEMORY;
            if (r->ranges)
                memcpy(more, r->range, r->ranges * sizeof *more);
            qn__free(r->range);
            r->range = more;
            r->capacity = capacity;
        }
        r->range[r->ranges++] = range;
    }
    return QN_OK;
}

static void put_tally(qn__team_reduction_state *r) {
    const qn__tally_words words = {.loss_high = r->tally.loss >> 32,
                                   .loss_low = r->tally.loss & UINT32_MAX,
                                   .correct = (int64_t)r->tally.correct,
                                   .items = (int64_t)r->tally.items,
                                   .failed = r->failure.status != QN_OK};
    memcpy(r->part, &words, sizeof words);
}

/* Whether a failure concerns all ranks, because its cause is the job. */
static int concerns_all(qn_status status) { return status == QN_NUMERIC; }

void qn__team_reduction_clear(qn__team *t) {
    qn__team_reduction_state *r = &t->reduction;
    if (r->blank)
        memset(r->part, 0, r->words * sizeof *r->part);
    r->blank = 0;
}

/* Chunks of the first `count` ranges. */
static uint32_t chunks_of(const qn__team_reduction_state *r, uint32_t count) {
    uint32_t chunks = 0;
    for (uint32_t i = 0; i < count; ++i)
        chunks += r->range[i].count;
    return chunks;
}

/* The first piece that failed, of the members of the set; UINT32_MAX: what failed has no piece. */
static uint32_t first_failed(const qn__team *t, uint64_t set) {
    uint32_t first = UINT32_MAX;
    for (uint32_t i = 0; i < t->count; ++i) {
        const qn__team_member *m = &t->member[i];
        if ((set & QN__BIT(i)) && m->worker && m->error.status != QN_OK && m->failed_at < first)
            first = m->failed_at;
    }
    return first;
}

/* Computes the ranges from index `done` on; *done is the number of completed ranges. */
static qn_status compute_ranges(qn__team *t, uint64_t set, qn__range_fn compute, void *context,
                                uint32_t *done, qn_error *err) {
    qn__team_reduction_state *r = &t->reduction;
    qn_error why = {0};
    qn_status status = QN_OK;
    for (; *done < r->ranges && r->failure.status == QN_OK && status == QN_OK; ++*done) {
        status = compute(context, set, r->range[*done], &why);
        if (concerns_all(status)) {
            r->failure = why;
            r->failed_at = first_failed(t, set);
            status = QN_OK;
        }
    }
    if (status != QN_OK && err)
        *err = why;
    return status;
}

/* Extracts the tally from the total. */
static qn_status take_total(qn__team *t, qn__tally *tally, qn_error *err) {
    qn__tally_words words;
    memcpy(&words, t->reduction.total, sizeof words);
    if (words.failed)
        return agree_on_failure(t, err);
    int64_t loss = words.loss_high + (words.loss_low >> 32);
    if (__builtin_mul_overflow(loss, INT64_C(1) << 32, &loss) ||
        __builtin_add_overflow(loss, words.loss_low & UINT32_MAX, &loss))
        return qn__fail(err, QN_NUMERIC, "the sum of the losses became too large");
    *tally = (qn__tally){
        .loss = loss, .correct = (uint64_t)words.correct, .items = (uint64_t)words.items};
    return QN_OK;
}

/* Marks a loss that this reduction recovered from in the trace. */
static void mark_loss(qn__team *t) {
    qn__rank_traffic traffic;
    char text[64];
    if (!t->reports.trace)
        return;
    qn__cluster_traffic(t->cluster, &traffic);
    if (traffic.lost_at <= t->reduction.lost_at)
        return;
    t->reduction.lost_at = traffic.lost_at;
    snprintf(text, sizeof text, "%" PRIu32 " ranks are left", qn_cluster_alive(t->cluster));
    qn__trace_mark(t->reports.trace, t->reports.track, "loss", traffic.lost_at, text);
    qn__trace_mark(t->reports.trace, t->reports.track, "made up", qn__now(), text);
}

/* Counts the bytes of the reduction. */
static void count_traffic(qn__team *t) {
    uint64_t out = 0, in = 0;
    qn__cluster_count(t->cluster, t->reduction.words, &out, &in);
    t->reduction.counted_out += out;
    t->reduction.counted_in += in;
}

qn_status qn__team_reduction(qn__team *t, const qn__reduction *reduction, uint64_t set,
                             qn__range_fn compute, void *context, qn__tally *tally, qn_error *err) {
    qn__team_reduction_state *r = &t->reduction;
    qn_status status = begin(t, reduction, err);
    if (status != QN_OK || r->total)
        return status != QN_OK ? status : take_total(t, tally, err);
    uint32_t done = 0;
    int more = 1;
    r->part = qn__reduction_part(t->cluster);
    r->whole = 1;
    r->failure.status = QN_OK;
    r->tally = (qn__tally){0};
    r->blank = 1;
    while (more) {
        const double begun = qn__now();
        r->sending = 0;
        status = fetch_ranges(t, err);
        if (status == QN_OK)
            status = compute_ranges(t, set, compute, context, &done, err);
        if (status != QN_OK)
            return status;
        qn__team_reduction_clear(t); /* if there was no range */
        put_tally(r);
        if (r->failure.status == QN_OK)
            report_cost(t, set, qn__now() - begun - r->sending);
        const double waiting = qn__now();
        /* After a failure chunks are missing from the part, as the tally shows: nobody uses the
         * sums. */
        const uint32_t held = r->failure.status == QN_OK ? done : r->ranges;
        status = qn__reduction_finish(t->cluster, chunks_of(r, held), &more, &r->total, err);
        qn__trace_span(t->reports.trace, t->reports.track, "ranks", waiting, qn__now(),
                       (qn__trace_value){0}, (qn__trace_value){0});
        if (status != QN_OK)
            return status;
        r->total = more ? NULL : r->total;
        r->whole = 0; /* further ranges are those of a lost rank */
    }
    count_traffic(t);
    mark_loss(t);
    return take_total(t, tally, err);
}

void qn__team_reduction_end(qn__team *t) {
    t->reduction.open = 0;
    t->reduction.total = NULL;
}
