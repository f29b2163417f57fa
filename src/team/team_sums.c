/* The sums of a job over all members and ranks. */
#include "team/team_joint.h"
#include "team/team_share.h"

#include "base/system/clock.h"
#include <string.h>

/* Fewer words than this are added by one thread: waking others takes longer. */
enum { ADD_ALONE = 1 << 16 };

static const qn__trace_value none = {0};

/* Adds the members' sums to those at `into`, one segment for each of the members that add. */
static void add_segment(const qn__shared *s, uint32_t segment, uint32_t segments) {
    const qn__team *t = s->team;
    const uint64_t n = s->share.words;
    const uint64_t first = n * segment / segments, end = n * (segment + 1) / segments;
    for (uint32_t i = 0; i < t->count; ++i) {
        const int64_t *more = t->member[i].sums;
        if (!t->member[i].worker || !t->member[i].has_sums || more == s->into ||
            &t->member[i] == s->direct)
            continue;
        for (uint64_t p = first; p < end; ++p)
            s->into[p] += more[p];
    }
}

static void add_body(void *context, int index) {
    const qn__shared *s = context;
    const uint64_t set = s->adding;
    const uint32_t segment = (uint32_t)__builtin_popcountll(set & (QN__BIT(index) - 1));
    add_segment(s, segment, (uint32_t)__builtin_popcountll(set));
}

/* Adds the sums of all members that have some at job->into; if that is NULL, the first
 * member's sums become it. Adds the tally to *tally. */
static qn_status add_up(qn__shared *s, uint64_t set, qn__tally *tally, qn_error *err) {
    qn__team *t = s->team;
    if (s->share.apart)
        return qn__team_add_parts(t, tally, err); /* the words are in their place */
    uint32_t parts = 0;
    for (uint32_t i = 0; i < t->count; ++i) {
        qn__team_member *m = &t->member[i];
        if (!m->worker || !m->has_sums)
            continue;
        if (!s->into)
            s->into = m->sums;
        parts += m->sums != s->into && m != s->direct;
        if (qn__tally_add(tally, &m->part) != 0)
            return qn__fail(err, QN_NUMERIC, "the sum of the losses became too large");
    }
    if (!s->into)
        return qn__fail(err, QN_MEMORY, "no worker has the sums");
    const double begun = qn__now();
    s->adding = set & qn__team_alive(t);
    if (parts > 0 && s->share.words < ADD_ALONE)
        add_segment(s, 0, 1);
    else if (parts > 0)
        qn__drivers_run(t->drivers, s->adding, add_body, s);
    if (parts > 0)
        qn__trace_span(t->reports.trace, t->reports.track, "add up", begun, qn__now(), none, none);
    return QN_OK;
}

/* Where the sums of this rank alone are made. The only member of a training writes them once, as it
 * does for a reduction, whose part they become. Places for all are in the words of one member. */
static qn_status prepare_alone(qn__shared *s, uint64_t set, qn_error *err) {
    qn__team *t = s->team;
    const qn__share *share = &s->share;
    qn__team_member *m = &t->member[__builtin_ctzll(set)];
    if (!share->apart && (t->cluster || qn__many(set) || !m->device->in_place))
        return QN_OK;
    if (!qn__team_member_space(m, share->words, err))
        return QN_MEMORY;
    s->into = m->sums;
    if (share->apart) {
        memset(m->sums, 0, share->words * sizeof *m->sums);
        return QN_OK;
    }
    s->direct = m;
    t->reduction.part = m->sums;
    t->reduction.words = share->words;
    t->reduction.blank = 1;
    return QN_OK;
}

/* The sums that the devices have kept: they add them up, or the host fetches them. After a failure
 * they are fetched too, so that nothing is left for the next step. */
static qn_status take_kept(qn__shared *s, uint64_t set, qn_status status, qn__tally *tally,
                           qn_error *err) {
    qn_error unwanted;
    if (status == QN_OK && qn__team_joint_add(s->team, set))
        return qn__team_add_parts(s->team, tally, err);
    const qn_status fetched = qn__team_collect(s, set, status == QN_OK ? err : &unwanted);
    if (fetched == QN_OK)
        qn__team_joint_refuse(s->team);
    status = status == QN_OK ? fetched : status;
    return status == QN_OK ? add_up(s, set, tally, err) : status;
}

static qn_status sums_alone(qn__shared *s, uint64_t set, qn__tally *tally, qn_error *err) {
    *tally = (qn__tally){0};
    qn_status status = prepare_alone(s, set, err);
    if (status != QN_OK)
        return status;
    status = qn__team_share(s, set, (qn__chunk){0, s->share.pieces}, err);
    if (s->share.joint)
        return take_kept(s, set, status, tally, err);
    return status == QN_OK ? add_up(s, set, tally, err) : status;
}

/* The member that writes its sums directly into the reduction's part: one that cannot be lost, or
 * the only one, because the part is then computed again after a loss. */
static const qn__team_member *direct_of(const qn__shared *s, uint64_t set) {
    const qn__team *t = s->team;
    if (s->share.apart)
        return NULL;
    if (!qn__many(set))
        return &t->member[__builtin_ctzll(set)];
    for (uint32_t i = 0; i < t->count; ++i)
        if ((set & QN__BIT(i)) && t->member[i].worker && !t->member[i].can_be_lost)
            return &t->member[i];
    return NULL;
}

static qn_status bring(const qn__shared *s, qn__chunk_range range, qn_error *err) {
    const qn__team *t = s->team;
    const qn__batch *batch = s->share.job.batch;
    if (!t->bring || s->share.job.kind != QN__JOB_TRAIN)
        return QN_OK;
    const uint64_t grain = t->program->grain, first = range.first * grain;
    const uint64_t end = (range.first + (uint64_t)range.count) * grain;
    return t->bring(t->bring_user, batch, (uint32_t)first,
                    (uint32_t)((end < batch->items ? end : batch->items) - first), err);
}

static qn_status range_of_pieces(void *context, uint64_t set, qn__chunk_range range,
                                 qn_error *err) {
    qn__shared *s = context;
    qn__team *t = s->team;
    qn_status status = qn__team_catch_up(t, err); /* others were lost, and this rank computes */
    if (status != QN_OK)
        return status;
    s->direct = direct_of(s, set);
    s->into = t->reduction.part + QN__TALLY_WORDS;
    if (s->share.apart)
        qn__team_reduction_clear(t);
    status = bring(s, range, err);
    if (status != QN_OK)
        return status;
    status = qn__team_share(s, set, (qn__chunk){range.first, range.count}, err);
    qn__team_reduction_clear(t); /* unless a member wrote there */
    if (status == QN_OK)
        status = add_up(s, set, &t->reduction.tally, err);
    return status;
}

static qn_status sums_of_ranks(qn__shared *s, uint64_t set, qn__tally *tally, qn_error *err) {
    const qn__share *share = &s->share;
    const qn__reduction reduction = {.kind = share->reduction,
                                     .words = QN__TALLY_WORDS + share->words,
                                     .chunks = share->pieces,
                                     .floats = share->rounds ? share->words : 0};
    const qn_status status =
        qn__team_reduction(s->team, &reduction, set, range_of_pieces, s, tally, err);
    if (status == QN_OK && tally->items != share->items) {
        qn__team_reduction_reported(s->team);
        return qn__fail(err, QN_CLUSTER, "the sums of all ranks hold %llu items, the %s %llu",
                        (unsigned long long)tally->items,
                        share->job.kind == QN__JOB_TRAIN ? "batch" : "job",
                        (unsigned long long)share->items);
    }
    return status;
}

qn_status qn__team_sum(qn__team *t, const qn__share *share, uint64_t set, int alone,
                       const int64_t **sums, qn__tally *tally, qn_error *err) {
    qn__shared s = {.team = t, .share = *share};
    const qn_status status =
        alone ? sums_alone(&s, set, tally, err) : sums_of_ranks(&s, set, tally, err);
    /* With a joint sum `into` is NULL. */
    if (status == QN_OK)
        *sums = alone ? s.into : t->reduction.total + QN__TALLY_WORDS;
    return status;
}

qn_status qn__team_add_parts(const qn__team *t, qn__tally *tally, qn_error *err) {
    for (uint32_t i = 0; i < t->count; ++i)
        if (qn__tally_add(tally, &t->member[i].part) != 0)
            return qn__fail(err, QN_NUMERIC, "the sum of the losses became too large");
    return QN_OK;
}
