/* The events of a view. It records which ranks are gone and follows the lowest rank that is left;
 * if that is this rank, it becomes the proposer. */
#include "cluster/membership/view_state.h"

#include "base/memory.h"
#include <string.h>

qn__view *qn__view_create(qn__transport *transport, uint32_t ranks, uint32_t rank,
                          const qn__ranks *members, double patience, const qn__view_calls *calls) {
    qn__view *view = qn__alloc(1, sizeof *view, NULL);
    if (!view)
        return NULL;
    view->transport = transport;
    view->calls = *calls;
    view->ranks = ranks;
    view->rank = rank;
    view->patience = patience;
    view->gone_of = qn__alloc(ranks, sizeof *view->gone_of, NULL);
    view->certain_of = qn__alloc(ranks, sizeof *view->certain_of, NULL);
    view->prepared = qn__alloc(ranks, sizeof *view->prepared, NULL);
    view->proposer.report = qn__alloc(ranks, sizeof *view->proposer.report, NULL);
    if (!view->gone_of || !view->certain_of || !view->prepared || !view->proposer.report) {
        qn__view_destroy(view);
        return NULL;
    }
    for (uint32_t r = 0; r < ranks; ++r)
        if (!members || qn__ranks_has(members, r))
            qn__ranks_add(&view->members, r);
    return view;
}

void qn__view_destroy(qn__view *view) {
    if (!view)
        return;
    if (view->proposer.report)
        qn__proposer_end(view);
    qn__proposal_drop(&view->now);
    qn__proposal_drop(&view->value);
    qn__free(view->gone_of);
    qn__free(view->certain_of);
    qn__free(view->prepared);
    qn__free(view->proposer.report);
    qn__free(view);
}

uint64_t qn__view_number(const qn__view *view) { return view->number; }
const qn__ranks *qn__view_members(const qn__view *view) { return &view->members; }
int qn__view_changing(const qn__view *view) { return view->changing; }

static double now(const qn__view *view) { return view->transport->calls->now(view->transport); }

/* The leader: the lowest member that is not gone, possibly this rank. */
static uint32_t leader(const qn__view *view) {
    const qn__ranks here = qn__ranks_minus(&view->members, &view->gone);
    return qn__ranks_first(&here);
}

static qn__ranks losses(const qn__view *view) {
    return qn__ranks_both(&view->members, &view->gone);
}

/* ------------------------------------------------------------------------------------- progress */

static void report_loss(qn__view *view, uint32_t lost) {
    const uint32_t to = leader(view);
    const int certain = qn__ranks_has(&view->certain, lost);
    const qn__head head = {.type = QN__VIEW_LOST,
                           .extra = certain ? QN__GONE_DEAD : QN__GONE_SILENT,
                           .number = {view->number, view->id, lost}};
    if (to != view->rank)
        view->transport->calls->send(view->transport, to, &head, NULL);
}

static void report_losses(qn__view *view) {
    const qn__ranks lost = losses(view);
    QN__EACH_RANK(r, &lost)
    report_loss(view, r);
}

/* Proposes, or answers the leader. */
static void proceed(qn__view *view) {
    const uint32_t leads = leader(view);
    if (view->left || !view->changing)
        return;
    if (leads == view->rank && !view->proposer.ballot)
        qn__proposer_begin(view);
    else if (leads == view->rank)
        qn__proposer_settle(view);
    else if (view->prepared[leads] > view->promised)
        qn__view_promise(view, view->prepared[leads]);
    else if (view->prepared[leads] && view->prepared[leads] < view->promised)
        qn__view_send(view, leads, QN__VIEW_REFUSED, view->promised, NULL);
}

/* Marks the end of a rank as certain, unless the connection to it was in doubt before. */
static int end_of(qn__view *view, uint32_t rank) {
    if (qn__ranks_has(&view->doubted, rank) || qn__ranks_has(&view->certain, rank))
        return 0;
    qn__ranks_add(&view->certain, rank);
    return qn__ranks_has(&view->members, rank);
}

static void evict(qn__view *view, uint32_t rank) {
    if (qn__ranks_has(&view->evicted, rank) || qn__ranks_has(&view->certain, rank))
        return;
    qn__ranks_add(&view->evicted, rank);
    qn__ranks_add(&view->gone, rank);
    view->transport->calls->evict(view->transport, rank, "the other ranks go on without this one");
}

/* ----------------------------------------------------------------------------------- the change */

static void adopt(qn__view *view, const qn__proposal *value) {
    const qn__ranks left_out = qn__ranks_minus(&view->members, &value->members);
    if (!qn__ranks_has(&value->members, view->rank)) {
        qn__view_leave(view, 1, "the other ranks go on without this one");
        return;
    }
    qn__proposal next;
    qn__proposal_copy(&next, value);
    qn__proposer_end(view);
    qn__proposal_drop(&view->value);
    qn__proposal_drop(&view->now);
    view->now = next;
    view->last_id = view->id;
    view->number += 1;
    view->id = next.origin;
    view->members = next.members;
    view->promised = view->accepted = view->highest = 0;
    memset(view->prepared, 0, view->ranks * sizeof *view->prepared);
    view->since = now(view);
    QN__EACH_RANK(r, &left_out)
    evict(view, r);
    const qn__ranks lost = losses(view);
    view->changing = qn__ranks_count(&lost) != 0;
    view->calls.adopt(view->calls.user, view->number, &view->members, view->now.plan);
    report_losses(view);
}

/* While this rank's own proposal is decided: sends it to the members and enters the new view. */
static void conclude(qn__view *view) {
    while (view->proposer.decided) {
        qn__proposal value;
        qn__proposal_copy(&value, &view->proposer.value);
        view->proposer.decided = 0;
        QN__EACH_RANK(r, &value.members)
        if (r != view->rank)
            qn__view_send(view, r, QN__VIEW_DECIDED, view->proposer.ballot,
                          qn__buffer_hold(value.wire));
        adopt(view, &value);
        qn__proposal_drop(&value);
        proceed(view);
    }
}

/* The last call in its callers, because it may change the view. */
static void go_on(qn__view *view) {
    proceed(view);
    conclude(view);
}

void qn__view_reported(qn__view *view, uint64_t ballot, qn__message_buffer *report) {
    if (view->left || view->reported || ballot != view->promised || !report) {
        qn__buffer_drop(report);
        return;
    }
    view->reported = 1;
    if (ballot == view->proposer.ballot) {
        qn__proposer_own(view, report);
        conclude(view);
        return;
    }
    const uint64_t sets = 2 * qn__view_set_bytes(view);
    const uint64_t value = view->accepted ? view->value.wire->bytes : 0;
    qn__message_buffer *body =
        view->transport->calls->buffer(view->transport, 16 + sets + value + report->bytes);
    if (body) {
        qn__view_put_u64(body->data, view->accepted);
        qn__view_put_set(view, body->data + 8, &view->gone);
        qn__view_put_set(view, body->data + 8 + sets / 2, &view->certain);
        qn__view_put_u64(body->data + 8 + sets, value);
        if (value)
            memcpy(body->data + 16 + sets, view->value.wire->data, value);
        memcpy(body->data + 16 + sets + value, report->data, report->bytes);
        qn__view_send(view, (uint32_t)(ballot % QN__MAX_RANKS), QN__VIEW_REPORT, ballot, body);
    }
    qn__buffer_drop(report);
}

/* ------------------------------------------------------------------------------------- messages */

static void on_prepare(qn__view *view, uint32_t from, uint64_t ballot) {
    if (ballot % QN__MAX_RANKS != from || ballot <= view->prepared[from])
        return;
    view->prepared[from] = ballot;
    view->since = now(view);
    view->changing = 1;
    go_on(view);
}

static void on_propose(qn__view *view, uint32_t from, uint64_t ballot, qn__message_buffer *body) {
    qn__proposal value;
    if (ballot % QN__MAX_RANKS != from)
        return;
    if (ballot < view->promised) {
        qn__view_send(view, from, QN__VIEW_REFUSED, view->promised, NULL);
        return;
    }
    if (!qn__proposal_unpack(view, body, &value))
        return;
    view->since = now(view);
    qn__view_accept(view, ballot, &value);
    qn__proposal_drop(&value);
    qn__message_buffer *answer = qn__view_losses(view);
    if (answer)
        qn__view_send(view, from, QN__VIEW_ACCEPTED, ballot, answer);
}

static void on_decided(qn__view *view, const qn__head *head, qn__message_buffer *body) {
    qn__proposal value;
    if (head->number[0] != view->number || head->number[1] != view->id)
        return;
    if (!qn__proposal_unpack(view, body, &value)) {
        qn__view_leave(view, 0, "out of memory for the list of ranks that are left");
        return;
    }
    adopt(view, &value);
    qn__proposal_drop(&value);
    go_on(view);
}

static void on_lost(qn__view *view, uint32_t from, const qn__head *head) {
    if (head->number[2] >= view->ranks)
        return;
    const uint32_t lost = (uint32_t)head->number[2];
    const int news = !qn__ranks_has(&view->gone_of[from], lost);
    qn__ranks_add(&view->gone_of[from], lost);
    if (head->extra != QN__GONE_SILENT)
        qn__ranks_add(&view->certain_of[from], lost);
    if (!qn__ranks_has(&view->members, lost))
        return;
    if (news || !view->changing)
        view->since = now(view);
    view->changing = 1;
    if (lost == view->rank)
        qn__view_gone(view, from, QN__GONE_SILENT);
    else
        go_on(view);
}

/* Sends the proposal that led to this view to a rank that is one view behind. */
static void catch_up(qn__view *view, uint32_t to) {
    const qn__head head = {.type = QN__VIEW_DECIDED,
                           .number = {view->number - 1, view->last_id, 0},
                           .bytes = view->now.wire->bytes};
    view->transport->calls->send(view->transport, to, &head, qn__buffer_hold(view->now.wire));
    if (view->proposer.ballot && !view->proposer.proposing)
        qn__view_send(view, to, QN__VIEW_PREPARE, view->proposer.ballot, NULL);
}

/* 1 if both ranks are in the same view, so that the message applies. */
static int together(qn__view *view, uint32_t from, const qn__head *head) {
    if (!qn__ranks_has(&view->members, from)) {
        if (head->number[0] <= view->number)
            evict(view, from);
        return 0;
    }
    if (head->number[0] > view->number)
        qn__view_send(view, from, QN__VIEW_BEHIND, 0, NULL);
    else if (head->number[0] + 1 == view->number)
        catch_up(view, from);
    return head->number[0] == view->number && head->number[1] == view->id &&
           !qn__ranks_has(&view->gone, from);
}

static void on_message(qn__view *view, uint32_t from, const qn__head *head,
                       qn__message_buffer *body) {
    const uint64_t ballot = head->number[2];
    switch (head->type) {
    case QN__VIEW_DECIDED:
        on_decided(view, head, body);
        return;
    case QN__VIEW_SUSPECT:
    case QN__VIEW_LEAVE:
        qn__view_gone(view, from, head->type == QN__VIEW_LEAVE ? QN__GONE_LEFT : QN__GONE_SILENT);
        return;
    default:
        break;
    }
    if (!together(view, from, head))
        return;
    switch (head->type) {
    case QN__VIEW_PREPARE:
        on_prepare(view, from, ballot);
        break;
    case QN__VIEW_REPORT:
        qn__proposer_report(view, from, ballot, body);
        conclude(view);
        break;
    case QN__VIEW_PROPOSE:
        on_propose(view, from, ballot, body);
        break;
    case QN__VIEW_ACCEPTED:
        qn__proposer_accepted(view, from, ballot, body);
        conclude(view);
        break;
    case QN__VIEW_REFUSED:
        qn__proposer_refused(view, ballot);
        conclude(view);
        break;
    case QN__VIEW_LOST:
        on_lost(view, from, head);
        break;
    default:
        break;
    }
}

void qn__view_message(qn__view *view, uint32_t from, const qn__head *head,
                      qn__message_buffer *body) {
    if (view->left && head->type == QN__VIEW_LEAVE && from < view->ranks)
        end_of(view, from);
    else if (!view->left && from < view->ranks && from != view->rank)
        on_message(view, from, head, body);
    qn__buffer_drop(body);
}

void qn__view_gone(qn__view *view, uint32_t rank, qn__loss_kind how) {
    if (view->left && how == QN__GONE_DEAD && rank < view->ranks)
        end_of(view, rank); /* a rank that says goodbye has finished its work */
    if (view->left || rank >= view->ranks || rank == view->rank)
        return;
    int news = 0;
    if (how == QN__GONE_SILENT)
        qn__ranks_add(&view->doubted, rank);
    else
        news = end_of(view, rank);
    if (!qn__view_lose(view, rank) && !news)
        return;
    view->since = now(view);
    report_loss(view, rank);
    go_on(view);
}

void qn__view_evicted(qn__view *view, uint32_t by, const char *why) {
    if (by < view->ranks)
        qn__view_leave(view, 1, why);
}

void qn__view_withdraw(qn__view *view, const char *why) { qn__view_leave(view, 1, why); }

int qn__view_is_last(const qn__view *view) {
    qn__ranks others = qn__ranks_minus(&view->members, &view->certain);
    qn__ranks_drop(&others, view->rank);
    return qn__ranks_count(&others) == 0;
}

/* The leader has been silent for so long that it is suspected. The leader itself waits at most
 * twice `patience` without sending anything. */
void qn__view_tick(qn__view *view, double time) {
    const uint32_t leads = leader(view);
    if (view->left || !view->changing)
        return;
    if (leads == view->rank) {
        if (view->proposer.ballot) {
            qn__proposer_tick(view, time);
            conclude(view);
        }
    } else if (time - view->since > 3 * view->patience) {
        view->since = time;
        qn__view_suspect(view, leads);
        report_losses(view);
        go_on(view);
    } else if (view->promised % QN__MAX_RANKS != leads || !view->promised) {
        report_losses(view);
    }
}
