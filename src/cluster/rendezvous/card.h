/* The endpoint of a rank: what it sends to the others so that they can connect to it and check its
 * version. */
#ifndef QN_CLUSTER_RENDEZVOUS_CARD_H
#define QN_CLUSTER_RENDEZVOUS_CARD_H

#include "cluster/transport/sockets.h"

enum { QN__CARD_BYTES = 400 };

typedef struct qn__card {
    char host[64];
    char version[16]; /* of Quern */
    uint32_t wire, contract;
    uint32_t process;
    unsigned char machine[32]; /* equal if ranks can use a Unix socket and shared memory */
    char unix_name[40];
    uint32_t port, count;
    qn__address address[QN__ADDRESSES_MOST]; /* of its listener */
    qn__address seen; /* the address from which rank 0 received it; kind 0: unknown */
} qn__card;

/* Opens the listeners and fills the endpoint. `loopback`: reachable from this machine only. */
qn_status qn__card_own(const char *interface, int loopback, qn__card *card,
                       qn__listeners *listeners, qn_error *err);

void qn__card_write(const qn__card *card, unsigned char to[QN__CARD_BYTES]);
/* 0: malformed. */
int qn__card_read(const unsigned char from[QN__CARD_BYTES], qn__card *card);

#endif
