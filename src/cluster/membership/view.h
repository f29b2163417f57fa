/* The view: which ranks take part, agreed among them whenever one is lost.
 *
 * Views are numbered from 0 (all ranks). When a rank is gone, the lowest rank that is left asks the
 * others for a report, decides with the reports how to continue, has that accepted by enough of
 * them and tells all: two phases, as in single-decree Paxos with one instance for each view's
 * number, ballots by (attempt, rank), begun again by whoever is lowest when the asking rank dies as
 * well.
 *
 * Enough: of the members of the last view that are not certainly dead, more than half, or half with
 * the lowest of them among these. So of two parts that cannot reach each other at most one
 * continues. Whoever is in the other part, or was silent too long, has to leave (`outcast`).
 *
 * The view is a machine of states: it is driven by its transport's events and by qn__view_reported,
 * all under the caller's lock, and never waits. */
#ifndef QN_CLUSTER_MEMBERSHIP_VIEW_H
#define QN_CLUSTER_MEMBERSHIP_VIEW_H

#include "cluster/transport/ranks.h"
#include "cluster/transport/transport.h"

/* Types of the view's messages are 16 .. 31. */
enum { QN__VIEW_FIRST_TYPE = 16, QN__VIEW_LAST_TYPE = 31 };

typedef struct qn__view qn__view;

typedef struct qn__view_calls {
    void *user;
    /* Stop what is under way and answer with qn__view_reported(view, ballot, ...), now or later. */
    void (*stop)(void *user, uint64_t ballot);
    /* At the rank that asks: how to continue, from the reports of all members that are left;
     * report[r] is NULL where r is none. Returns a buffer, or NULL when memory is short. */
    qn__message_buffer *(*plan)(void *user, const qn__ranks *members,
                                qn__message_buffer *const *report);
    /* Decided: this is the new view and its plan. */
    void (*adopt)(void *user, uint64_t number, const qn__ranks *members,
                  const qn__message_buffer *plan);
    /* This rank has to leave; it hears of nothing more. Told once. others: 1 when the others are
     * known to continue without it, 0 when it cannot reach enough of them. */
    void (*outcast)(void *user, int others, const char *why);
} qn__view_calls;

/* View 0 of `ranks` ranks, this one being `rank`. `patience`: seconds (a rank_timeout) for which a
 * change waits for a rank that does not report, or for news that would make those who did enough.
 * NULL when memory is short. */
qn__view *qn__view_create(qn__transport *transport, uint32_t ranks, uint32_t rank, double patience,
                          const qn__view_calls *calls);
void qn__view_destroy(qn__view *view);

uint64_t qn__view_number(const qn__view *view);
const qn__ranks *qn__view_members(const qn__view *view);
/* 1 from the first notice of a loss until the next view is decided. */
int qn__view_changing(const qn__view *view);

/* The answer to `stop`; takes the caller's hold of the report. */
void qn__view_reported(qn__view *view, uint64_t ballot, qn__message_buffer *report);

/* Events of the transport, to be passed on: those messages that are of the view's types. */
void qn__view_message(qn__view *view, uint32_t from, const qn__head *head,
                      qn__message_buffer *body);
void qn__view_gone(qn__view *view, uint32_t rank, qn__going how);
void qn__view_expelled(qn__view *view, uint32_t by, const char *why);
void qn__view_tick(qn__view *view, double now);

/* This rank takes no part any more: `outcast` follows, and the others are told. */
void qn__view_withdraw(qn__view *view, const char *why);
/* Of a rank that takes no part any more: 1 when the others of its last view all have died or take
 * no part either. */
int qn__view_deserted(const qn__view *view);

#endif
