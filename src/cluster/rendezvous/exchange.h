/* A rendezvous at an address that all ranks know: rank 0 listens there, the others bring their
 * cards and get those of all. */
#ifndef QN_CLUSTER_RENDEZVOUS_EXCHANGE_H
#define QN_CLUSTER_RENDEZVOUS_EXCHANGE_H

#include "cluster/rendezvous/card.h"

typedef struct qn__exchange {
    const char *host;
    uint16_t port;
    uint32_t ranks, rank;
    const char *secret; /* NULL: none, and then the host must be this machine */
    int munge;       /* without a secret: rank 0 makes one up and MUNGE brings it to the others */
    const char *run; /* with munge: what tells this run from others of the same user */
    int everywhere;  /* rank 0 listens at all its addresses */
    double timeout;
    int again; /* 1: rank 0 has ended before all ranks were connected, and this is another attempt
                */
} qn__exchange;

/* Whether that host stands for this machine alone; 0 where it is not known. A machine's own name
 * may do so on it and stand for another address elsewhere. */
int qn__exchange_is_loopback(const char *host);

/* card[rank] is this rank's own; fills the others, and key with 32 bytes that only the ranks of
 * this run know. `until`: when to stop. `held`, one entry a rank and all -1 before the call, gets
 * the connections of the rendezvous: on rank 0 those of all others, elsewhere held[0], to rank 0.
 * The caller closes those that are not -1, also after a failure. It keeps them open until all ranks
 * have all connections, because their end tells the others that rank 0 has ended.
 * QN_BUSY, with a message: rank 0 ended before all ranks were connected. It may be started again,
 * so the caller may try again, with `again` set. */
qn_status qn__exchange_run(const qn__exchange *place, qn__card *card, unsigned char key[32],
                           double until, int *held, qn_error *err);

#endif
