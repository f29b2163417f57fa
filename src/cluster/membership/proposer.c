/* The proposer. Each rank in turn may become it, and two ranks at a time if each counts the other
 * as gone. So nothing here relies on being the only one: what counts is what a quorum promised and
 * accepted.
 *
 * There are three rules beside those of Paxos, because dead ranks are left out of the quorum. If
 * any rank could leave them out, ranks that saw a vote and died could turn one vote into two
 * decisions.
 *
 *   - A rank is left out of the count only if all voters are certain that it has ended.
 *   - A member that accepts a view suspects the ranks that the view leaves out, and notifies them.
 *     They can then never be certain that this member has ended, so they cannot leave out its vote.
 *   - A view is decided when each of its members has accepted it or is gone for the proposer. */
#include "cluster/membership/view_state.h"

#include <string.h>

enum { RANK_BITS = 10 };
_Static_assert(QN__MAX_RANKS == 1 << RANK_BITS, "a ballot is an attempt and a rank");

static void say(qn__view *view, uint32_t rank, uint32_t type) {
    qn__view_send(view, rank, type, view->proposer.ballot, NULL);
}

void qn__proposer_end(qn__view *view) {
    qn__proposer *p = &view->proposer;
    qn__message_buffer **report = p->report;
    for (uint32_t r = 0; r < view->ranks; ++r) {
        qn__buffer_drop(report[r]);
        report[r] = NULL;
    }
    qn__proposal_drop(&p->carried);
    qn__proposal_drop(&p->value);
    memset(p, 0, sizeof *p);
    p->report = report;
}

void qn__proposer_begin(qn__view *view) {
    qn__proposer *p = &view->proposer;
    qn__proposer_end(view);
    const uint64_t highest = view->highest > view->promised ? view->highest : view->promised;
    p->ballot = ((highest >> RANK_BITS) + 1) << RANK_BITS | view->rank;
    p->targets = qn__ranks_minus(&view->members, &view->gone);
    if (view->accepted) {
        p->best = view->accepted;
        qn__proposal_copy(&p->carried, &view->value);
    }
    view->since = view->transport->calls->now(view->transport);
    QN__EACH_RANK(r, &p->targets)
    if (r != view->rank)
        say(view, r, QN__VIEW_PREPARE);
    qn__view_promise(view, p->ballot);
}

/* --------------------------------------------------------------------------------------- quorum */

/* The members whose end all `voters` are certain of. */
static qn__ranks certain_to_all(const qn__view *view, const qn__ranks *voters) {
    qn__ranks certain = view->members;
    QN__EACH_RANK(r, voters)
    certain = qn__ranks_both(&certain, r == view->rank ? &view->certain : &view->certain_of[r]);
    return certain;
}

/* A quorum: more than half of the ranks that are not certainly gone, or half with the lowest of
 * them. */
static int is_quorum(const qn__view *view, const qn__ranks *voters) {
    const qn__ranks certain = certain_to_all(view, voters);
    const qn__ranks base = qn__ranks_minus(&view->members, &certain);
    const qn__ranks counted = qn__ranks_both(voters, &base);
    const uint32_t votes = qn__ranks_count(&counted), all = qn__ranks_count(&base);
    /* Without votes the base may be empty, and an empty set has no lowest rank. */
    if (!votes)
        return 0;
    return 2 * votes > all || (2 * votes == all && qn__ranks_has(voters, qn__ranks_first(&base)));
}

static int lost_each_other(const qn__view *view, uint32_t a, uint32_t b) {
    const qn__ranks *of_a = a == view->rank ? &view->gone : &view->gone_of[a];
    const qn__ranks *of_b = b == view->rank ? &view->gone : &view->gone_of[b];
    return qn__ranks_has(of_a, b) || qn__ranks_has(of_b, a);
}

/* All members of the next view must reach one another. Ranks that any voter is certain have ended
 * are dropped first, then one by one the rank that lost the most others. */
static void keep_connected(const qn__view *view, qn__ranks *set) {
    const qn__ranks reporters = *set;
    QN__EACH_RANK(r, &reporters)
    *set = qn__ranks_minus(set, r == view->rank ? &view->certain : &view->certain_of[r]);
    for (;;) {
        uint32_t worst = QN__MAX_RANKS, most = 0;
        QN__EACH_RANK(a, set) {
            uint32_t losses = 0;
            QN__EACH_RANK(b, set)
            losses += a != b && lost_each_other(view, a, b);
            if (a != view->rank && losses && losses >= most)
                most = losses, worst = a;
        }
        if (worst == QN__MAX_RANKS)
            return;
        qn__ranks_drop(set, worst);
    }
}

/* ------------------------------------------------------------------------------- the two phases */

/* The ranks that the present phase still waits for. */
static qn__ranks awaited(const qn__view *view) {
    const qn__proposer *p = &view->proposer;
    const qn__ranks here =
        qn__ranks_minus(p->proposing ? &p->value.members : &p->targets, &view->gone);
    return qn__ranks_minus(&here, p->proposing ? &p->accepted : &p->answered);
}

static int propose(qn__view *view) {
    qn__proposer *p = &view->proposer;
    qn__ranks voters = qn__ranks_minus(&p->answered, &view->gone);
    if (!is_quorum(view, &voters))
        return 0;
    if (p->best) {
        qn__proposal_copy(&p->value, &p->carried);
    } else {
        keep_connected(view, &voters);
        if (!is_quorum(view, &voters))
            return 0;
        p->value.plan = view->calls.plan(view->calls.user, &voters, p->report);
        if (!p->value.plan)
            return 0;
        p->value.origin = p->ballot;
        p->value.members = voters;
        if (!qn__proposal_pack(view, &p->value)) {
            qn__proposal_drop(&p->value);
            return 0;
        }
    }
    p->proposing = 1;
    view->since = view->transport->calls->now(view->transport);
    QN__EACH_RANK(r, &p->value.members)
    if (r != view->rank && !qn__ranks_has(&view->gone, r))
        qn__view_send(view, r, QN__VIEW_PROPOSE, p->ballot, qn__buffer_hold(p->value.wire));
    qn__view_accept(view, p->ballot, &p->value);
    if (qn__ranks_has(&p->value.members, view->rank))
        qn__ranks_add(&p->accepted, view->rank);
    return 1;
}

void qn__proposer_settle(qn__view *view) {
    qn__proposer *p = &view->proposer;
    qn__ranks waiting = awaited(view);
    if (!p->ballot || qn__ranks_count(&waiting))
        return;
    if (!p->proposing) {
        if (!propose(view))
            return;
        waiting = awaited(view);
        if (qn__ranks_count(&waiting))
            return;
    }
    const qn__ranks voters = qn__ranks_minus(&p->accepted, &view->certain);
    p->decided = is_quorum(view, &voters);
}

/* -------------------------------------------------------------------------------------- answers */

static void learn(qn__view *view, uint32_t from, const unsigned char *sets) {
    qn__ranks set;
    qn__view_get_set(view, sets, &set);
    qn__ranks_join(&view->gone_of[from], &set);
    qn__view_get_set(view, sets + qn__view_set_bytes(view), &set);
    qn__ranks_join(&view->certain_of[from], &set);
    view->since = view->transport->calls->now(view->transport);
}

void qn__proposer_own(qn__view *view, qn__message_buffer *report) {
    view->proposer.report[view->rank] = report;
    qn__ranks_add(&view->proposer.answered, view->rank);
    qn__proposer_settle(view);
}

/* u64 ballot accepted, sets of gone and certain, u64 bytes of the accepted proposal, proposal,
 * report. */
void qn__proposer_report(qn__view *view, uint32_t from, uint64_t ballot,
                         const qn__message_buffer *body) {
    qn__proposer *p = &view->proposer;
    const uint64_t sets = 2 * qn__view_set_bytes(view);
    if (ballot != p->ballot || p->proposing || qn__ranks_has(&p->answered, from) ||
        !qn__ranks_has(&p->targets, from) || !body || body->bytes < 16 + sets)
        return;
    const uint64_t accepted = qn__view_get_u64(body->data);
    const uint64_t bytes = qn__view_get_u64(body->data + 8 + sets);
    const uint64_t rest = body->bytes - 16 - sets;
    if (bytes > rest || (accepted && !bytes))
        return;
    if (accepted > p->best) {
        qn__message_buffer *wire = qn__view_buffer(view, body->data + 16 + sets, bytes);
        qn__proposal value;
        const int good = wire && qn__proposal_unpack(view, wire, &value);
        qn__buffer_drop(wire);
        if (!good)
            return;
        qn__proposal_drop(&p->carried);
        p->carried = value;
        p->best = accepted;
    }
    p->report[from] = qn__view_buffer(view, body->data + 16 + sets + bytes, rest - bytes);
    if (!p->report[from])
        return;
    learn(view, from, body->data + 8);
    qn__ranks_add(&p->answered, from);
    qn__proposer_settle(view);
}

void qn__proposer_accepted(qn__view *view, uint32_t from, uint64_t ballot,
                           const qn__message_buffer *body) {
    qn__proposer *p = &view->proposer;
    if (ballot != p->ballot || !p->proposing || !qn__ranks_has(&p->value.members, from) || !body ||
        body->bytes != 2 * qn__view_set_bytes(view))
        return;
    learn(view, from, body->data);
    qn__ranks_add(&p->accepted, from);
    qn__proposer_settle(view);
}

void qn__proposer_refused(qn__view *view, uint64_t ballot) {
    if (!view->proposer.ballot || ballot <= view->proposer.ballot)
        return;
    view->highest = ballot > view->highest ? ballot : view->highest;
    qn__proposer_begin(view);
}

/* No quorum, and no news for long. A member that knows of fewer deaths than this rank (because it
 * slept, say) may raise the count that a quorum needs. So a quorum without such members is tried
 * first. */
static void give_up(qn__view *view) {
    const qn__ranks here =
        view->proposer.proposing ? view->proposer.accepted : view->proposer.answered;
    const qn__ranks known = qn__ranks_both(&view->certain, &view->members);
    int suspected = 0;
    QN__EACH_RANK(r, &here) {
        const qn__ranks unknown = qn__ranks_minus(&known, &view->certain_of[r]);
        if (r != view->rank && !qn__ranks_has(&view->gone, r) && qn__ranks_count(&unknown) &&
            !view->proposer.proposing) {
            qn__view_suspect(view, r);
            suspected = 1;
        }
    }
    if (suspected)
        qn__proposer_settle(view);
    else
        qn__view_leave(view, 0, "too few of the other ranks can be reached to go on");
}

void qn__proposer_tick(qn__view *view, double now) {
    const qn__ranks waiting = awaited(view);
    if (now - view->since <= view->patience) {
        qn__proposer_settle(view);
        return;
    }
    view->since = now;
    if (!qn__ranks_count(&waiting)) {
        give_up(view);
    } else if (qn__ranks_has(&waiting, view->rank)) {
        qn__view_leave(view, 0, "this rank made no progress for too long");
    } else {
        QN__EACH_RANK(r, &waiting)
        qn__view_suspect(view, r);
        qn__proposer_settle(view);
    }
}
