/* What a rank tells the others of itself, so that they can find and judge it. */
#ifndef QN_CLUSTER_MEET_CARD_H
#define QN_CLUSTER_MEET_CARD_H

#include "cluster/meet_sockets.h"

enum {
    QN__WIRE_VERSION = 2, /* of all that ranks say to each other */
    QN__CARD_BYTES = 400
};

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

/* The sockets that a rank listens on until all have met; -1 where there is none. */
typedef struct qn__ears {
    int tcp, local;
} qn__ears;

/* Opens the ears and fills the card. `loopback`: only this machine may reach them. */
qn_status qn__card_own(const char *interface, int loopback, qn__card *card, qn__ears *ears,
                       qn_error *err);
void qn__ears_close(qn__ears *ears);

void qn__card_write(const qn__card *card, unsigned char to[QN__CARD_BYTES]);
/* 0 where it is none. */
int qn__card_read(const unsigned char from[QN__CARD_BYTES], qn__card *card);

/* A text of a stranger into a field of ours: printable ASCII without spaces, '?' for the rest. */
void qn__card_text(char *to, size_t room, const char *from, size_t size);

/* So many unpredictable bytes. */
void qn__random_bytes(void *to, size_t size);

#endif
