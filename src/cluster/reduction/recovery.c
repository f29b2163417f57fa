/* Recovery when the view changes: the plan made from the ranks' reports, and how it is adopted.
 *
 * Ranks are at most one reduction apart. Let F be the last reduction that any remaining rank has
 * finished. Ranks that have not finished it get its total from one that has; their parts of it no
 * longer matter. All ranks then do reduction F + 1. A rank that has begun it keeps its chunks.
 * Chunks that no remaining rank has are assigned again. */
#include "cluster/reduction/reduction_state.h"

#include "base/memory.h"
#include "cluster/reduction/report.h"
#include "cluster/reduction/shares.h"
#include <stdio.h>
#include <string.h>

enum { RANK_WORDS = QN__MAX_RANKS / 64 };

/* A plan: these words, then the set of ranks that have the total, then three words for each range
 * (rank, first, count). */
enum {
    P_FINISHED,
    P_KNOWN,
    P_KIND,
    P_WORDS,
    P_CHUNKS,
    P_GENERATION,
    P_OVER,
    P_BALLOT,
    P_CODE,
    P_ENTRIES,
    P_HEAD,
    P_FULL_HEAD = P_HEAD + RANK_WORDS
};

/* ------------------------------------------------------------------------------------- the plan */

/* The reports combined. */
typedef struct survey {
    uint64_t finished, generation;
    int known, over, code;
    qn__reduction reduction;
    qn__ranks has;
    uint32_t *load; /* of each rank: chunks that it has of the reduction */
    qn__chunk_range *covered;
    uint32_t count;
} survey;

static int by_first(const void *a, const void *b) {
    const qn__chunk_range *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

static void sort_ranges(qn__chunk_range *chunks, uint32_t count) {
    for (uint32_t i = 1; i < count; ++i) {
        const qn__chunk_range moved = chunks[i];
        uint32_t k = i;
        for (; k > 0 && by_first(&moved, &chunks[k - 1]) < 0; --k)
            chunks[k] = chunks[k - 1];
        chunks[k] = moved;
    }
}

static void look_through(const qn__ranks *members, uint32_t ranks,
                         qn__message_buffer *const *report, survey *s) {
    for (uint32_t i = 0; i < ranks; ++i) {
        if (!qn__ranks_has(members, i) || !qn__is_report(report[i]))
            continue;
        const uint64_t *w = qn__report_words(report[i]);
        s->finished = w[R_FINISHED] > s->finished ? w[R_FINISHED] : s->finished;
        s->generation = w[R_GENERATION] > s->generation ? w[R_GENERATION] : s->generation;
        if (w[R_OVER]) {
            s->over = 1;
            s->code = (int)(uint32_t)w[R_CODE];
        }
    }
    for (uint32_t i = 0; i < ranks; ++i) {
        const uint64_t *w = qn__is_report(report[i]) ? qn__report_words(report[i]) : NULL;
        if (!qn__ranks_has(members, i) || !w || w[R_FINISHED] != s->finished)
            continue;
        qn__ranks_add(&s->has, i);
        if (!w[R_BEGUN])
            continue;
        s->known = 1;
        s->reduction = (qn__reduction){.kind = (qn__reduction_kind)w[R_KIND],
                                       .words = w[R_WORDS],
                                       .chunks = (uint32_t)w[R_CHUNKS]};
        for (uint64_t k = 0; k < w[R_RANGES]; ++k) {
            const qn__chunk_range range = {(uint32_t)w[R_HEAD + 2 * k],
                                           (uint32_t)w[R_HEAD + 2 * k + 1]};
            s->load[i] += range.count;
            s->covered[s->count++] = range;
        }
    }
    sort_ranges(s->covered, s->count);
}

/* Computes the gaps between the covered ranges, which are sorted. Returns the number of chunks in
 * the gaps. */
static uint32_t invert(survey *s, qn__chunk_range *gap, uint32_t *gaps) {
    uint32_t at = 0, chunks = 0;
    *gaps = 0;
    for (uint32_t i = 0; i <= s->count; ++i) {
        const uint32_t next = i < s->count ? s->covered[i].first : s->reduction.chunks;
        if (next > at) {
            gap[(*gaps)++] = (qn__chunk_range){at, next - at};
            chunks += next - at;
        }
        if (i < s->count && s->covered[i].first + s->covered[i].count > at)
            at = s->covered[i].first + s->covered[i].count;
    }
    return chunks;
}

/* Divides the gaps by the ranks' costs, in addition to the chunks that they have; `entry` holds
 * three words for each. Returns the number of entries. */
static uint32_t assign(const qn__reducer *r, const qn__ranks *members, const survey *s,
                       const qn__chunk_range *gap, uint32_t gaps, uint32_t chunks, qn__cost *cost,
                       unsigned char *has, uint32_t *share, uint64_t *entry) {
    uint32_t entries = 0, g = 0, used = 0;
    for (uint32_t i = 0; i < r->ranks; ++i) {
        has[i] = (unsigned char)qn__ranks_has(members, i);
        cost[i] = r->costs.all[s->reduction.kind][i];
        cost[i].start += s->load[i] * cost[i].each;
    }
    qn__shares(cost, has, r->ranks, chunks, share);
    for (uint32_t i = 0; i < r->ranks; ++i)
        for (uint32_t left = share[i]; left > 0 && g < gaps;) {
            const uint32_t here = gap[g].count - used, n = left < here ? left : here;
            entry[3 * entries] = i;
            entry[3 * entries + 1] = gap[g].first + used;
            entry[3 * entries + 2] = n;
            ++entries;
            left -= n;
            used += n;
            if (used == gap[g].count) {
                ++g;
                used = 0;
            }
        }
    return entries;
}

/* Totals move to other memory unless all lost ranks have certainly ended: a rank that only slept
 * may still write to the old memory. */
static int all_ended(const qn__reducer *r, const qn__ranks *members) {
    for (uint32_t i = 0; i < r->ranks; ++i)
        if (qn__ranks_has(&r->group.members, i) && !qn__ranks_has(members, i) &&
            r->group.gone[i] != 1 + QN__GONE_DEAD && r->group.gone[i] != 1 + QN__GONE_LEFT)
            return 0;
    return 1;
}

static void write_plan(uint64_t *w, const survey *s, uint64_t ballot, uint32_t entries) {
    w[P_FINISHED] = s->finished;
    w[P_KNOWN] = (uint64_t)s->known;
    w[P_KIND] = (uint64_t)s->reduction.kind;
    w[P_WORDS] = s->reduction.words;
    w[P_CHUNKS] = s->reduction.chunks;
    w[P_GENERATION] = s->generation;
    w[P_OVER] = (uint64_t)s->over;
    w[P_BALLOT] = ballot;
    w[P_CODE] = (uint64_t)(uint32_t)s->code;
    w[P_ENTRIES] = entries;
    memcpy(w + P_HEAD, s->has.word, sizeof s->has.word);
}

qn__message_buffer *qn__reducer_plan(void *user, const qn__ranks *members,
                                     qn__message_buffer *const *report) {
    qn__reducer *r = user;
    uint64_t ranges = 0;
    for (uint32_t i = 0; i < r->ranks; ++i)
        if (qn__ranks_has(members, i) && qn__is_report(report[i]))
            ranges += qn__report_words(report[i])[R_RANGES];
    const uint64_t most = ranges + 1 + r->ranks; /* entries: one for each gap and each rank */
    survey s = {.load = qn__alloc(2 * (size_t)r->ranks, sizeof(uint32_t), NULL),
                .covered = qn__alloc(2 * (ranges + 1), sizeof(qn__chunk_range), NULL)};
    qn__cost *cost = qn__alloc(r->ranks, sizeof *cost, NULL);
    unsigned char *has = qn__alloc(r->ranks, 1, NULL);
    uint64_t *plan = qn__alloc(P_FULL_HEAD + 3 * most, sizeof *plan, NULL);
    qn__message_buffer *buffer = NULL;
    if (s.load && s.covered && cost && has && plan) {
        qn__chunk_range *gap = s.covered + ranges + 1;
        uint32_t gaps = 0, entries = 0;
        look_through(members, r->ranks, report, &s);
        s.generation += (uint64_t)!all_ended(r, members);
        const uint32_t chunks = s.known ? invert(&s, gap, &gaps) : 0;
        if (chunks)
            entries = assign(r, members, &s, gap, gaps, chunks, cost, has, s.load + r->ranks,
                             plan + P_FULL_HEAD);
        write_plan(plan, &s, r->change.ballot, entries);
        const uint64_t bytes = (P_FULL_HEAD + 3 * (uint64_t)entries) * sizeof *plan;
        buffer = r->transport->calls->buffer(r->transport, bytes);
        if (buffer)
            memcpy(buffer->data, plan, bytes);
    }
    qn__free(s.load);
    qn__free(s.covered);
    qn__free(cost);
    qn__free(has);
    qn__free(plan);
    return buffer;
}

/* ----------------------------------------------------------------------------------- a new view */

static int read_plan(qn__reducer *r, const qn__message_buffer *buffer) {
    if (!buffer || buffer->bytes < P_FULL_HEAD * sizeof(uint64_t))
        return 0;
    const uint64_t *w = qn__report_words(buffer);
    if (w[P_ENTRIES] > (buffer->bytes / sizeof(uint64_t) - P_FULL_HEAD) / 3 ||
        w[P_KIND] >= QN__REDUCTION_KINDS || w[P_CHUNKS] > UINT32_MAX)
        return 0;
    r->plan =
        (qn__plan){.finished = w[P_FINISHED],
                   .known = w[P_KNOWN] != 0,
                   .reduction = {(qn__reduction_kind)w[P_KIND], w[P_WORDS], (uint32_t)w[P_CHUNKS]},
                   .generation = w[P_GENERATION],
                   .done = w[P_OVER] != 0,
                   .code = (int)(uint32_t)w[P_CODE]};
    memcpy(r->plan.has.word, w + P_HEAD, sizeof r->plan.has.word);
    return 1;
}

/* Takes the ranges of reduction `finished` + 1 that the plan assigns to this rank. */
static void take_ranges(qn__reducer *r, const qn__message_buffer *buffer) {
    const uint64_t *w = qn__report_words(buffer);
    qn__ranges *to = r->adding.behind ? &r->current.ahead : &r->current.own;
    r->current.ahead.count = 0;
    if (!r->current.begun)
        r->current.own.count = r->current.taken =
            0; /* assigned by an earlier plan, and not begun */
    for (uint64_t i = 0; i < w[P_ENTRIES]; ++i) {
        const uint64_t *entry = w + P_FULL_HEAD + 3 * i, chunks = r->plan.reduction.chunks;
        if (entry[0] == r->rank && entry[1] <= chunks && entry[2] <= chunks - entry[1])
            qn__reducer_add_range(r, to, (uint32_t)entry[1], (uint32_t)entry[2]);
    }
}

static void note_losses(qn__reducer *r, const qn__ranks *members) {
    static const char *const how[] = {"is gone", "has died", "was silent too long", "has left"};
    size_t used = strlen(r->note);
    for (uint32_t i = 0; i < r->ranks && used < sizeof r->note; ++i)
        if (qn__ranks_has(&r->group.members, i) && !qn__ranks_has(members, i))
            used += (size_t)snprintf(r->note + used, sizeof r->note - used, "%s%s %s",
                                     used ? "; " : "", r->name[i], how[r->group.gone[i] & 3]);
}

static void measure(qn__reducer *r) {
    const double seconds =
        r->change.noticed > 0 ? r->transport->calls->now(r->transport) - r->change.noticed : 0;
    r->change.held_up = r->change.held_up > 0 ? r->change.held_up : r->change.noticed;
    r->change.noticed = 0;
    r->traffic.recovering += seconds;
    ++r->traffic.recoveries;
}

void qn__reducer_adopt(void *user, uint64_t number, const qn__ranks *members,
                       const qn__message_buffer *buffer) {
    qn__reducer *r = user;
    note_losses(r, members);
    measure(r);
    r->group.number = number;
    r->group.members = *members;
    for (uint32_t i = 0; i < r->ranks; ++i)
        r->group.has[i] = (unsigned char)qn__ranks_has(members, i);
    r->change.frozen = r->change.owed = 0;
    atomic_store(&r->change.alarm, 0);
    qn__reducer_wake(r);
    if (!read_plan(r, buffer) || r->current.finished > r->plan.finished ||
        r->current.finished + 1 < r->plan.finished) {
        qn__reducer_set_error(r, QN_CLUSTER, "ranks are too far apart to go on");
        return;
    }
    r->group.stamp = number << 32 | (uint32_t)qn__report_words(buffer)[P_BALLOT];
    r->totals.generation = r->plan.generation;
    r->adding.behind = r->current.finished < r->plan.finished;
    qn__reducer_changed(r);
    take_ranges(r, buffer);
    qn__mailbox_sort(r);
    if (r->plan.done)
        qn__reducer_done(r, r->plan.code);
    else if (!r->adding.behind && r->current.finished > 0)
        qn__reducer_send_supplies(r);
}

void qn__reducer_leave(void *user, int others, const char *why) {
    qn__reducer *r = user;
    r->ending.leaving = others ? 1 : 2;
    r->change.frozen = r->change.owed = 0;
    qn__reducer_set_error(r, QN_CLUSTER, "this rank has to leave: %s", why);
    atomic_store(&r->change.alarm, 0);
    qn__reducer_wake(r);
}
