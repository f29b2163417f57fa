/* What a rank reports to the others itself, so that they can find and judge it. */
#ifndef QN_CLUSTER_RENDEZVOUS_CARD_H
#define QN_CLUSTER_RENDEZVOUS_CARD_H

#include "cluster/transport/sockets.h"

enum { QN__CARD_BYTES = 400 };

typedef struct qn__card {
    char host[64];
    char version[16]; /* of Quern */
    uint32_t wire, contract;
    uint32_t process;
    unsigned char machine[32]; /* equal where a Unix socket and shared memory reach */
    char unix_name[40];
    uint32_t port, count;
    qn__address address[QN__ADDRESSES_MOST]; /* where it listens */
    qn__address seen;                        /* where rank 0 saw it come from; kind 0: not known */
} qn__card;

/* Opens the listeners and fills the card. `loopback`: only this machine may reach them. */
qn_status qn__card_own(const char *interface, int loopback, qn__card *card,
                       qn__listeners *listeners, qn_error *err);

void qn__card_write(const qn__card *card, unsigned char to[QN__CARD_BYTES]);
/* 0 where it is none. */
int qn__card_read(const unsigned char from[QN__CARD_BYTES], qn__card *card);

#endif
