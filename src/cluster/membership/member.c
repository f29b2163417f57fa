/* The acceptor's part of a view change, which every member plays: which ranks it counts as gone,
 * what it promises and what it accepts. */
#include "cluster/membership/view_state.h"

int qn__view_lose(qn__view *view, uint32_t rank) {
    if (qn__ranks_has(&view->gone, rank))
        return 0;
    qn__ranks_add(&view->gone, rank);
    if (!qn__ranks_has(&view->members, rank))
        return 0;
    if (!view->changing)
        view->since = view->transport->calls->now(view->transport);
    view->changing = 1;
    return 1;
}

void qn__view_suspect(qn__view *view, uint32_t rank) {
    if (qn__view_lose(view, rank))
        qn__view_send(view, rank, QN__VIEW_SUSPECT, 0, NULL);
}

void qn__view_leave(qn__view *view, int others, const char *why) {
    if (view->left)
        return;
    view->left = 1;
    QN__EACH_RANK(r, &view->members)
    if (r != view->rank)
        qn__view_send(view, r, QN__VIEW_LEAVE, 0, NULL);
    view->calls.leave(view->calls.user, others, why);
}

void qn__view_promise(qn__view *view, uint64_t ballot) {
    view->promised = ballot;
    view->reported = 0;
    view->calls.stop(view->calls.user, ballot);
}

void qn__view_accept(qn__view *view, uint64_t ballot, const qn__proposal *value) {
    const qn__ranks left_out = qn__ranks_minus(&view->members, &value->members);
    view->promised = ballot;
    view->accepted = ballot;
    if (view->value.wire != value->wire) {
        qn__proposal_drop(&view->value);
        qn__proposal_copy(&view->value, value);
    }
    QN__EACH_RANK(r, &left_out)
    if (r != view->rank)
        qn__view_suspect(view, r);
}
