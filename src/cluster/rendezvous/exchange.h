/* A rendezvous at an address that all ranks know. Rank 0 listens there; the others send their
 * endpoints and receive the table of all endpoints. */
#ifndef QN_CLUSTER_RENDEZVOUS_EXCHANGE_H
#define QN_CLUSTER_RENDEZVOUS_EXCHANGE_H

#include "cluster/rendezvous/endpoint.h"
#include <quern/status.h>

typedef struct qn__exchange {
    const char *host;
    uint16_t port;
    uint16_t more; /* ports after `port` that rank 0 takes where others are taken; only with `run`,
                      which tells the ranks of another run there */
    uint32_t ranks, rank;
    const char *secret; /* NULL: none, and then the host must be this machine */
    int munge;          /* without a secret: rank 0 makes one and sends it in a MUNGE credential */
    const char *run; /* distinguishes this run from others of the same user; NULL: nothing does */
    int everywhere;  /* rank 0 listens at all its addresses */
    double timeout;
    qn_note_fn note; /* reports, on the calling thread, what the rank waits for: after some seconds,
                        then now and again; may be NULL */
    void *user;      /* passed to `note` */
    int again; /* 1: a repeated attempt, because rank 0 ended before all ranks were connected */
} qn__exchange;

/* Whether the host name means this machine only; 0 if it cannot be resolved. A machine's own name
 * may resolve to a loopback address on that machine and to another one elsewhere. */
int qn__exchange_is_loopback(const char *host);

/* endpoint[rank] is this rank's own. Fills the others, and `key` with 32 bytes that only the ranks
 * of this run know. `until`: the deadline.
 *
 * `held` has one entry for each rank, all -1 before the call. It receives the connections of the
 * rendezvous: on rank 0 those to all others, on other ranks held[0], to rank 0. The caller closes
 * those that are not -1, also after a failure. It keeps them open until all ranks have all
 * connections, because their end tells the others that rank 0 has ended.
 *
 * QN_BUSY, with a message: rank 0 ended before all ranks were connected. It may be restarted, so
 * the caller may try again with `again` set. */
qn_status qn__exchange_run(const qn__exchange *place, qn__endpoint *endpoint, unsigned char key[32],
                           double until, int *held, qn_error *err);

#endif
