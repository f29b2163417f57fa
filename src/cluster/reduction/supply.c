/* Totals that some ranks do not have after a loss: ranks that have them send them. */
#include "cluster/reduction/reduction_state.h"

#include <string.h>

/* Words of one message. */
enum { SUPPLY_WORDS = 1 << 20 };

static uint32_t lowest_here(const qn__layout *l, uint32_t home, const qn__ranks *has) {
    for (uint32_t i = l->start[home]; i < l->start[home + 1]; ++i)
        if (!has || qn__ranks_has(has, l->order[i]))
            return l->order[i];
    return QN__MAX_RANKS;
}

/* On a rank that has the total of the plan's `finished`: sends it to the machines that this rank
 * supplies. On each of them the lowest rank receives it. */
void qn__reducer_send_supplies(qn__reducer *r) {
    const qn__held *held = &r->totals.held[r->plan.finished & 1];
    const uint32_t havers = qn__ranks_count(&r->plan.has);
    uint32_t lacking = 0, own = 0;
    if (!qn__ranks_has(&r->plan.has, r->rank))
        return; /* a plan without this rank was not made from this rank's report */
    for (uint32_t i = 0; i < r->rank; ++i)
        own += (uint32_t)qn__ranks_has(&r->plan.has, i);
    qn__reducer_lay_out(r, r->plan.finished);
    for (uint32_t home = 0; home < r->adding.layout.machines; ++home) {
        if (lowest_here(&r->adding.layout, home, &r->plan.has) < QN__MAX_RANKS ||
            lacking++ % havers != own)
            continue;
        const uint32_t to = lowest_here(&r->adding.layout, home, NULL);
        for (uint64_t at = 0; at < held->words; at += SUPPLY_WORDS) {
            const uint64_t n = held->words - at < SUPPLY_WORDS ? held->words - at : SUPPLY_WORDS;
            qn__message_buffer *body =
                r->transport->calls->buffer(r->transport, n * sizeof(int64_t));
            if (!body) {
                qn__fail_memory(&r->error, n, sizeof(int64_t));
                return;
            }
            memcpy(body->data, held->total + at, n * sizeof(int64_t));
            const qn__head head = {.type = QN__MESSAGE_SUPPLY,
                                   .number = {r->group.stamp, held->reduction, at},
                                   .bytes = n * sizeof(int64_t)};
            r->transport->calls->send(r->transport, to, &head, body);
        }
    }
}

static void take_in(qn__reducer *r) {
    for (qn__queued_message **at = &r->mailbox.first; *at;) {
        const qn__queued_message *message = *at;
        const qn__head *head = &message->head;
        const uint64_t words = message->body->bytes / sizeof(int64_t);
        if (head->type != QN__MESSAGE_SUPPLY || head->number[0] != r->group.stamp ||
            head->number[1] != r->current.finished + 1) {
            at = &(*at)->next;
            continue;
        }
        if (head->number[2] > r->current.words || words > r->current.words - head->number[2]) {
            qn__reducer_set_error(r, QN_CLUSTER, "%s sent a total of another reduction",
                                  r->name[message->from]);
            return;
        }
        memcpy(r->adding.into + head->number[2], message->body->data, words * sizeof(int64_t));
        r->adding.supplied += words;
        qn__mailbox_drop(r, at);
    }
}

qn__progress qn__reducer_take_supply(qn__reducer *r) {
    if (!qn__reducer_prepare(r))
        return QN__REDUCER_FAILED;
    const uint32_t home = r->adding.layout.home[r->rank];
    const uint32_t has = lowest_here(&r->adding.layout, home, &r->plan.has);
    const uint32_t takes = lowest_here(&r->adding.layout, home, NULL);
    if (has < QN__MAX_RANKS) {
        const uint64_t generation = atomic_load(&qn__reducer_rank_state(r, has)->finished_in);
        int64_t *total = qn__common_total(r->common, generation, (r->current.finished + 1) & 1,
                                          r->current.words, &r->error);
        if (!total)
            return QN__REDUCER_FAILED;
        qn__reducer_finished(r, total, generation);
        return QN__REDUCER_TOTAL;
    }
    if (takes == r->rank) {
        take_in(r);
        if (r->error.status != QN_OK)
            return QN__REDUCER_FAILED;
        if (r->adding.supplied < r->current.words)
            return QN__REDUCER_WAITS;
        atomic_store(&qn__reducer_rank_state(r, r->rank)->supplied, r->group.stamp);
        qn__reducer_wake_others(r);
    } else if (atomic_load(&qn__reducer_rank_state(r, takes)->supplied) != r->group.stamp)
        return QN__REDUCER_WAITS;
    qn__reducer_finished(r, r->adding.into, r->totals.generation);
    return QN__REDUCER_TOTAL;
}
