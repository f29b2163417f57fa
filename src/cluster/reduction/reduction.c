/* Reductions as their callers use them: open and close, begin a reduction, and the transport's
 * events. */
#include "cluster/reduction/reduction_state.h"

#include "base/memory.h"
#include "cluster/reduction/shares.h"
#include <stdio.h>
#include <string.h>

static const qn__view_calls view_calls = {.stop = qn__reducer_stop,
                                          .plan = qn__reducer_plan,
                                          .adopt = qn__reducer_adopt,
                                          .leave = qn__reducer_leave};

static qn_status open_arrays(qn__reducer *r, const qn__ranks *present, qn_error *err) {
    const uint32_t n = r->ranks, pieces = qn__layout_most_pieces(n);
    r->place.alone = qn__alloc(n, sizeof *r->place.alone, err);
    r->place.zero = qn__alloc(n, sizeof *r->place.zero, err);
    r->group.has = qn__alloc(n, 1, err);
    r->group.gone = qn__alloc(n, 1, err);
    r->current.share = qn__alloc(n, sizeof *r->current.share, err);
    r->adding.piece = qn__alloc(pieces, sizeof *r->adding.piece, err);
    r->adding.slot = qn__alloc(pieces, sizeof *r->adding.slot, err);
    r->adding.source = qn__alloc(n, sizeof *r->adding.source, err);
    r->costs.own = qn__alloc(QN__REDUCTION_KINDS, sizeof *r->costs.own, err);
    r->costs.all[0] = qn__alloc((uint64_t)QN__REDUCTION_KINDS * n, sizeof *r->costs.all[0], err);
    if (!r->place.alone || !r->place.zero || !r->group.has || !r->group.gone || !r->current.share ||
        !r->adding.piece || !r->adding.slot || !r->adding.source || !r->costs.own ||
        !r->costs.all[0])
        return QN_MEMORY;
    for (uint32_t kind = 1; kind < QN__REDUCTION_KINDS; ++kind)
        r->costs.all[kind] = r->costs.all[0] + (size_t)kind * n;
    for (uint32_t i = 0; i < n; ++i) {
        r->place.alone[i] = i;
        r->group.has[i] = (unsigned char)(!present || qn__ranks_has(present, i));
        if (r->group.has[i])
            qn__ranks_add(&r->group.members, i);
        else
            r->group.gone[i] = 1 + QN__GONE_LEFT;
    }
    r->place.machine = r->place.alone;
    r->place.local = r->place.zero;
    return qn__layout_open(&r->adding.layout, n, err);
}

qn_status qn__reducer_open(qn__reducer *r, qn__transport *transport, uint32_t ranks, uint32_t rank,
                           const qn__ranks *present, const char *const *name, double patience,
                           qn__common *common, qn_error *err) {
    qn__view_calls calls = view_calls;
    *r = (qn__reducer){.transport = transport,
                       .common = common,
                       .ranks = ranks,
                       .rank = rank,
                       .name = name,
                       .ending.patience = patience};
    pthread_mutex_init(&r->lock, NULL);
    calls.user = r;
    qn_status status = open_arrays(r, present, err);
    if (status == QN_OK &&
        !(r->view = qn__view_create(transport, ranks, rank, &r->group.members, patience, &calls)))
        status = qn__fail_memory(err, ranks, 64);
    if (status != QN_OK)
        qn__reducer_close(r);
    return status;
}

void qn__reducer_share(qn__reducer *r, const uint32_t *machine, const uint32_t *local,
                       qn__common *common) {
    pthread_mutex_lock(&r->lock);
    r->place.machine = machine;
    r->place.local = local;
    r->common = common;
    r->adding.laid_for = 0;
    pthread_mutex_unlock(&r->lock);
}

void qn__reducer_shut(qn__reducer *r) {
    pthread_mutex_lock(&r->lock);
    r->ending.shut = 1;
    while (r->mailbox.first)
        qn__mailbox_drop(r, &r->mailbox.first);
    qn__view_destroy(r->view);
    r->view = NULL;
    pthread_mutex_unlock(&r->lock);
}

void qn__reducer_close(qn__reducer *r) {
    qn__reducer_shut(r);
    while (r->mailbox.spare) {
        qn__queued_message *message = r->mailbox.spare;
        r->mailbox.spare = message->next;
        qn__free(message);
    }
    qn__layout_close(&r->adding.layout);
    qn__free(r->place.alone);
    qn__free(r->place.zero);
    qn__free(r->group.has);
    qn__free(r->group.gone);
    qn__free(r->current.share);
    qn__free(r->adding.piece);
    qn__free(r->adding.slot);
    qn__free(r->adding.source);
    qn__free(r->costs.own);
    qn__free(r->costs.all[0]);
    qn__free(r->current.own.range);
    qn__free(r->current.ahead.range);
    pthread_mutex_destroy(&r->lock);
    *r = (qn__reducer){0};
}

/* ---------------------------------------------------------------------------------------- begin */

static uint32_t signature_of(const qn__reduction *reduction) {
    uint64_t h = reduction->words * UINT64_C(0x9e3779b97f4a7c15);
    h = (h ^ reduction->chunks) * UINT64_C(0xbf58476d1ce4e5b9);
    h = (h ^ reduction->floats) * UINT64_C(0xd6e8feb86659fd93);
    h = (h ^ (uint64_t)reduction->kind ^ h >> 29) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(h >> 32);
}

/* The initial shares of a reduction, when no plan has assigned its chunks. All ranks that begin it
 * so have the same last total and the same view, and so compute the same shares. */
static int share_out(qn__reducer *r) {
    uint32_t first = 0;
    r->current.own.count = r->current.taken = 0;
    if (r->current.reduction.chunks == 0)
        return 1;
    qn__shares(r->costs.all[r->current.reduction.kind], r->group.has, r->ranks,
               r->current.reduction.chunks, r->current.share);
    for (uint32_t i = 0; i < r->rank; ++i)
        first += r->current.share[i];
    return qn__reducer_add_range(r, &r->current.own, first, r->current.share[r->rank]);
}

static int same(const qn__reduction *a, const qn__reduction *b) {
    return a->kind == b->kind && a->words == b->words && a->chunks == b->chunks;
}

static int begin(qn__reducer *r, const qn__reduction *reduction) {
    const int planned = r->plan.known && r->plan.finished == r->current.finished;
    if (r->error.status != QN_OK)
        return -1;
    if (r->change.frozen)
        return 0;
    if (planned && !same(reduction, &r->plan.reduction)) {
        qn_error why;
        qn__fail(&why, QN_MISMATCH,
                 "ranks do different things: %llu words of %u chunks where others have %llu of %u",
                 (unsigned long long)reduction->words, reduction->chunks,
                 (unsigned long long)r->plan.reduction.words, r->plan.reduction.chunks);
        qn__reducer_fail_all(r, &why);
        return -1;
    }
    r->current.reduction = *reduction;
    r->current.words = reduction->words + qn__reducer_trailer(r->ranks);
    r->current.signature = signature_of(reduction);
    r->current.part = qn__common_part(r->common, r->common->index, r->current.words, &r->error);
    if (!r->current.part || (!planned && !share_out(r)))
        return -1;
    r->current.begun = 1;
    qn__reducer_changed(r);
    return 1;
}

int qn__reducer_begin(qn__reducer *r, const qn__reduction *reduction) {
    pthread_mutex_lock(&r->lock);
    const int begun = begin(r, reduction);
    pthread_mutex_unlock(&r->lock);
    return begun;
}

int qn__reducer_chunks(qn__reducer *r, qn__chunk_range *range) {
    pthread_mutex_lock(&r->lock);
    const int some = r->current.begun && r->current.taken < r->current.own.count;
    if (some)
        *range = r->current.own.range[r->current.taken++];
    pthread_mutex_unlock(&r->lock);
    return some;
}

int64_t *qn__reducer_part(qn__reducer *r) {
    return r->current.part + qn__reducer_trailer(r->ranks);
}

const int64_t *qn__reducer_total(qn__reducer *r) {
    return r->totals.held[r->current.finished & 1].total + qn__reducer_trailer(r->ranks);
}

/* --------------------------------------------------------------------------------------- events */

static void take_probe(qn__reducer *r, uint32_t from, const qn__head *head) {
    if (head->type == QN__MESSAGE_PROBE_REPLY) {
        if (head->number[0] == r->group.stamp && head->number[1] == r->ending.probe) {
            qn__ranks_add(&r->ending.answered, from);
            qn__reducer_wake(r);
        }
    } else if (head->number[0] == r->group.stamp && !r->change.frozen) {
        const qn__head reply = {.type = QN__MESSAGE_PROBE_REPLY,
                                .number = {r->group.stamp, head->number[1]}};
        r->transport->calls->send(r->transport, from, &reply, NULL);
    }
}

void qn__reducer_message(qn__reducer *r, uint32_t from, const qn__head *head,
                         qn__message_buffer *body) {
    pthread_mutex_lock(&r->lock);
    const uint32_t type = r->ending.shut ? 0 : head->type; /* 0: ignored */
    switch (type) {
    case QN__MESSAGE_PART:
    case QN__MESSAGE_TOTAL:
    case QN__MESSAGE_SUPPLY:
        qn__mailbox_keep(r, from, head, body);
        break;
    case QN__MESSAGE_FAIL:
        qn__reducer_take_failure(r, head, body);
        break;
    case QN__MESSAGE_DONE:
        qn__reducer_done(r, (int)head->extra);
        break;
    case QN__MESSAGE_PROBE:
    case QN__MESSAGE_PROBE_REPLY:
        take_probe(r, from, head);
        break;
    default:
        if (type >= QN__VIEW_FIRST_TYPE && type <= QN__VIEW_LAST_TYPE) {
            qn__view_message(r->view, from, head, body);
            body = NULL;
        }
    }
    pthread_mutex_unlock(&r->lock);
    qn__buffer_drop(body);
}

void qn__reducer_gone(qn__reducer *r, uint32_t rank, qn__loss_kind how) {
    pthread_mutex_lock(&r->lock);
    r->group.gone[rank] = (unsigned char)(1 + how);
    /* After a failure, the end of a rank changes nothing: the writer that reports the failure stays
     * the same. */
    const int failed = r->error.status != QN_OK && !r->ending.leaving;
    if (!r->ending.over && !r->ending.shut && !failed) {
        if (r->change.noticed <= 0 && qn__ranks_has(&r->group.members, rank))
            r->change.noticed = r->transport->calls->now(r->transport);
        qn__view_gone(r->view, rank, how);
    }
    qn__reducer_wake(r);
    pthread_mutex_unlock(&r->lock);
}

void qn__reducer_evicted(qn__reducer *r, uint32_t by, const char *why) {
    pthread_mutex_lock(&r->lock);
    if (!r->ending.over && !r->ending.shut)
        qn__view_evicted(r->view, by, why);
    pthread_mutex_unlock(&r->lock);
}

void qn__reducer_restored(qn__reducer *r, uint32_t rank, double seconds, int damaged) {
    pthread_mutex_lock(&r->lock);
    const size_t used = strlen(r->note), capacity = sizeof r->note - used;
    if (damaged)
        snprintf(r->note + used, capacity,
                 "%sa message from or to %s was damaged on its way; it was sent again",
                 used ? "; " : "", r->name[rank]);
    else
        snprintf(r->note + used, capacity, "%sthe connection to %s was made again after %.1f s",
                 used ? "; " : "", r->name[rank], seconds);
    qn__reducer_wake(r);
    pthread_mutex_unlock(&r->lock);
}

void qn__reducer_add_note(qn__reducer *r, const char *text) {
    pthread_mutex_lock(&r->lock);
    const size_t used = strlen(r->note), capacity = sizeof r->note - used;
    snprintf(r->note + used, capacity, "%s%s", used ? "; " : "", text);
    qn__reducer_wake(r);
    pthread_mutex_unlock(&r->lock);
}

static void send_probes(qn__reducer *r) {
    for (uint32_t to = 0; to < r->ranks; ++to)
        if (to != r->rank && qn__ranks_has(&r->group.members, to) &&
            !qn__ranks_has(&r->ending.answered, to)) {
            const qn__head probe = {.type = QN__MESSAGE_PROBE,
                                    .number = {r->group.stamp, r->ending.probe}};
            r->transport->calls->send(r->transport, to, &probe, NULL);
        }
}

void qn__reducer_tick(qn__reducer *r, double now) {
    pthread_mutex_lock(&r->lock);
    if (!r->ending.over && !r->ending.shut)
        qn__view_tick(r->view, now);
    if (r->ending.probed == r->group.stamp + 1 && !r->ending.over && !r->ending.shut &&
        !r->change.frozen)
        send_probes(r);
    pthread_mutex_unlock(&r->lock);
}

/* ------------------------------------------------------------------------------- end of the run */

void qn__reducer_fail(qn__reducer *r, qn_error *why) {
    pthread_mutex_lock(&r->lock);
    qn__reducer_fail_all(r, why);
    pthread_mutex_unlock(&r->lock);
}

int qn__reducer_withdraw(qn__reducer *r) {
    pthread_mutex_lock(&r->lock);
    const int first = !r->ending.over && r->error.status == QN_OK;
    if (first)
        qn__view_withdraw(r->view, "it cannot go on");
    pthread_mutex_unlock(&r->lock);
    return first;
}

int qn__reducer_is_last(qn__reducer *r) {
    pthread_mutex_lock(&r->lock);
    if (r->ending.leaving == 1 && !r->ending.over && qn__view_is_last(r->view))
        r->ending.leaving = 2;
    const int last = !r->ending.over && r->ending.leaving != 1;
    pthread_mutex_unlock(&r->lock);
    return last;
}

void qn__reducer_go_on(qn__reducer *r) {
    atomic_store(&r->requests.requested[QN__REQUEST_STOP], 0);
    r->requests.stopping = 0;
}

void qn__reducer_saved(qn__reducer *r) {
    atomic_store(&r->requests.requested[QN__REQUEST_SAVE], 0);
    r->requests.saving = 0;
}

void qn__reducer_let_in(qn__reducer *r) {
    atomic_store(&r->requests.requested[QN__REQUEST_JOIN], 0);
    r->requests.joining = 0;
}

void qn__reducer_finish(qn__reducer *r, int code) {
    pthread_mutex_lock(&r->lock);
    if (!r->ending.leaving) /* otherwise the other ranks continue the run */
        qn__reducer_done(r, code);
    pthread_mutex_unlock(&r->lock);
}

/* Before the writer rank writes, it checks that all others still count it as a member. A rank that
 * was cut off or evicted while it slept gets no answer. */
static int over(qn__reducer *r, int *code) {
    const double now = r->transport->calls->now(r->transport);
    if (r->ending.over) {
        *code = r->ending.code;
        return 1;
    }
    if (r->error.status != QN_OK) {
        *code = r->ending.leaving != 1;
        return r->ending.leaving ? 2 : 1;
    }
    if (r->change.frozen || qn__view_changing(r->view) || qn__reducer_writer(r) != r->rank)
        return -1;
    /* A rank that answered does not suspect this one before its patience is over. Answers from
     * before may have been queued while this process slept. */
    if (r->ending.probed != r->group.stamp + 1 ||
        now - r->ending.probed_at > r->ending.patience / 2) {
        r->ending.probed = r->group.stamp + 1;
        r->ending.probed_at = now;
        ++r->ending.probe;
        r->ending.answered = (qn__ranks){0};
        qn__ranks_add(&r->ending.answered, r->rank);
        send_probes(r);
    }
    for (uint32_t i = 0; i < QN__MAX_RANKS / 64; ++i)
        if (r->group.members.word[i] & ~r->ending.answered.word[i])
            return -1;
    r->ending.probed = 0;
    return 0;
}

int qn__reducer_over(qn__reducer *r, int *code) {
    pthread_mutex_lock(&r->lock);
    const int is = over(r, code);
    pthread_mutex_unlock(&r->lock);
    return is;
}
