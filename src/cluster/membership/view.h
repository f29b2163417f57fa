/* The view: the set of ranks that take part. The ranks agree on a new one when a rank is lost.
 *
 * Views are numbered from 0 (all ranks). When a rank is gone, the lowest rank that is left becomes
 * the proposer. It collects a report from each of the others, makes a plan from the reports, gets
 * the plan accepted by a quorum and announces the decision. These are the two phases of
 * single-decree Paxos, with one instance for each number of a view. Ballots are ordered by
 * (attempt, rank). If the proposer dies too, the lowest rank begins again.
 *
 * A quorum: of the members of the last view that are not certainly dead, more than half, or half
 * including the lowest of them. So after a network partition at most one side continues. A rank on
 * the other side, or one that was silent for too long, has to leave (`leave`).
 *
 * The view is a state machine that never waits. Events of the transport and qn__view_reported drive
 * it, all under the caller's lock. */
#ifndef QN_CLUSTER_MEMBERSHIP_VIEW_H
#define QN_CLUSTER_MEMBERSHIP_VIEW_H

#include "cluster/transport/ranks.h"
#include "cluster/transport/transport.h"

/* Types of the view's messages are 16 .. 31. */
enum { QN__VIEW_FIRST_TYPE = 16, QN__VIEW_LAST_TYPE = 31 };

typedef struct qn__view qn__view;

typedef struct qn__view_calls {
    void *user;
    /* Stop current work and answer with qn__view_reported(view, ballot, ...), now or later. */
    void (*stop)(void *user, uint64_t ballot);
    /* On the proposer: makes the plan from the reports of all members that are left; report[r] is
     * NULL for other ranks. Returns a buffer, or NULL if out of memory. */
    qn__message_buffer *(*plan)(void *user, const qn__ranks *members,
                                qn__message_buffer *const *report);
    /* Decided: the new view and its plan. */
    void (*adopt)(void *user, uint64_t number, const qn__ranks *members,
                  const qn__message_buffer *plan);
    /* This rank has to leave the view; no further events are delivered. Called once. others: 1 if
     * the others are known to continue without it, 0 if it cannot reach a quorum. */
    void (*leave)(void *user, int others, const char *why);
} qn__view_calls;

/* View 0 of `ranks` ranks, of which `members` take part (NULL: all); this one is `rank`.
 * `patience`: seconds (a rank_timeout) for which a change waits for a missing report or for the
 * quorum. NULL if out of memory. */
qn__view *qn__view_create(qn__transport *transport, uint32_t ranks, uint32_t rank,
                          const qn__ranks *members, double patience, const qn__view_calls *calls);
void qn__view_destroy(qn__view *view);

uint64_t qn__view_number(const qn__view *view);
const qn__ranks *qn__view_members(const qn__view *view);
/* 1 from the first notice of a loss until the next view is decided. */
int qn__view_changing(const qn__view *view);

/* The answer to `stop`; takes over the reference to the report. */
void qn__view_reported(qn__view *view, uint64_t ballot, qn__message_buffer *report);

/* Events of the transport, which the caller forwards: messages of the view's types only. */
void qn__view_message(qn__view *view, uint32_t from, const qn__head *head,
                      qn__message_buffer *body);
void qn__view_gone(qn__view *view, uint32_t rank, qn__loss_kind how);
void qn__view_evicted(qn__view *view, uint32_t by, const char *why);
void qn__view_tick(qn__view *view, double now);

/* This rank leaves: the others are notified, then `leave` is called. */
void qn__view_withdraw(qn__view *view, const char *why);
/* After this rank has left: 1 if all other members of its last view have died or left too. */
int qn__view_is_last(const qn__view *view);

#endif
