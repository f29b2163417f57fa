/* The door of a run: rank 0 listens where the ranks have met, for ranks that come later.
 *
 * A rank that comes gets the table of ranks and a description of the run. It prepares itself while
 * the run goes on, and says when it is ready. Rank 0 then sends it an invitation, with which all
 * ranks connect anew (renewal.h), and tells it whether that succeeded on all of them.
 *
 * A thread of the door talks with the ranks that prepare. All calls come from one other thread. */
#ifndef QN_CLUSTER_RENDEZVOUS_DOOR_H
#define QN_CLUSTER_RENDEZVOUS_DOOR_H

#include "cluster/rendezvous/exchange.h"
#include "cluster/rendezvous/rendezvous.h"

typedef struct qn__door qn__door;

/* For the next connections of all ranks. Sent as it is in memory. */
typedef struct qn__invitation {
    uint64_t id;       /* of the run */
    qn__ranks present; /* with the rank that joins */
    qn__ranks later;   /* those of them that have joined later */
    unsigned char session[QN__SESSION_BYTES];
    uint32_t seconds; /* limit for making all connections */
} qn__invitation;

/* What rank 0 says to a rank that prepares itself or is ready. */
typedef enum qn__door_word {
    QN__DOOR_GONE,    /* nothing: rank 0 has ended, or what came makes no sense */
    QN__DOOR_INVITES, /* an invitation and the endpoints of all ranks follow */
    QN__DOOR_LETS_IN, /* all ranks have all connections: the rank takes part */
    QN__DOOR_AGAIN,   /* a rank was missing: another invitation will come */
    QN__DOOR_OVER,    /* the run is over, or lets nobody in any more */
    QN__DOOR_HEARS,   /* it has heard that the rank is ready */
    QN__DOOR_HAS      /* the bytes that the rank has asked for follow */
} qn__door_word;

/* What a rank may ask for while it prepares itself: `count` bytes of a table, from `first` on, or 8
 * bytes if `count` is 0. Returns 0 where there are none; may wait. The door's thread calls it. */
typedef struct qn__door_store {
    void *user;
    int (*supply)(void *user, uint64_t table, uint64_t first, uint64_t count, void *to);
} qn__door_store;

/* Bytes of an answer. */
#define QN__DOOR_MOST (UINT64_C(1) << 22)

/* On rank 0. `described` is copied, at most QN__DESCRIBED_BYTES. QN_CLUSTER: the address is taken
 * by another program. */
qn_status qn__door_open(const qn__rendezvous *rendezvous, const char *described, uint64_t bytes,
                        const qn__door_store *store, qn__door **out, qn_error *err);
/* Tells all ranks that wait that the run is over. Accepts NULL. */
void qn__door_close(qn__door *door);

/* The lowest rank that is ready, has just said so, and is not in `members`; its endpoint; and how
 * often it was invited. 0: there is none. */
int qn__door_waits(qn__door *door, const qn__ranks *members, uint32_t *rank, qn__endpoint *endpoint,
                   uint32_t *invitations);
/* Sends an invitation. From here to qn__door_tell the door leaves the rank's connection alone; it
 * is returned, or -1 if the rank has ended. */
int qn__door_invite(qn__door *door, uint32_t rank, const qn__invitation *invitation,
                    const qn__endpoint *endpoint);
/* QN__DOOR_LETS_IN or QN__DOOR_AGAIN. */
void qn__door_tell(qn__door *door, uint32_t rank, qn__door_word word);
/* The endpoints that later ranks are told. */
void qn__door_update(qn__door *door, const qn__endpoint *endpoint);

/* ------------------------------------------------------------------------ on the rank that comes
 */

/* The system finds out whether the host at the other end is lost, in about so many seconds. */
void qn__door_watch(int file, double seconds);
/* Before: asks for bytes of the store. `bytes`: how many these are, at most QN__DOOR_MOST. The
 * answer has a code under `secret`. QN__DOOR_HAS; QN__DOOR_OVER; or QN__DOOR_GONE, also where rank
 * 0 does not have them. */
qn__door_word qn__door_ask(int file, const unsigned char secret[32], uint64_t table, uint64_t first,
                           uint64_t count, uint64_t bytes, void *to);
/* Says that this rank is ready, after so many invitations. It is said again and again: a rank that
 * has fallen silent is not invited. Rank 0 answers each time. 0: rank 0 has ended. */
int qn__door_ready(int file, uint32_t invitations);
/* 1 if rank 0 has said something, or has ended. Waits at most `seconds`. */
int qn__door_said(int file, double seconds);
/* What it has said. With an invitation, all endpoints but that of `rank` are filled. */
qn__door_word qn__door_hear(int file, uint32_t ranks, uint32_t rank, qn__invitation *invitation,
                            qn__endpoint *endpoint, double until);

#endif
