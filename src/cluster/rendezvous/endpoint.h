/* The endpoint of a rank: what it sends to the others so that they can connect to it and check its
 * version. */
#ifndef QN_CLUSTER_RENDEZVOUS_ENDPOINT_H
#define QN_CLUSTER_RENDEZVOUS_ENDPOINT_H

#include "cluster/transport/sockets.h"

enum { QN__ENDPOINT_BYTES = 400 };

typedef struct qn__endpoint {
    char host[64];
    char version[16]; /* of Quern */
    uint32_t wire, contract;
    uint32_t process;
    unsigned char machine[32]; /* equal if ranks can use a Unix socket and shared memory */
    char unix_name[40];
    uint32_t port, count;
    qn__address address[QN__ADDRESSES_MOST]; /* of its listener */
    qn__address seen; /* the address from which rank 0 received it; kind 0: unknown */
} qn__endpoint;

/* Opens the listeners and fills the endpoint. `loopback`: reachable from this machine only. */
qn_status qn__endpoint_own(const char *interface, int loopback, qn__endpoint *endpoint,
                           qn__listeners *listeners, qn_error *err);

void qn__endpoint_write(const qn__endpoint *endpoint, unsigned char to[QN__ENDPOINT_BYTES]);
/* 1 for the endpoint of a rank that has not come yet, which is all zero. */
int qn__endpoint_is_empty(const qn__endpoint *endpoint);

/* 0: malformed. */
int qn__endpoint_read(const unsigned char from[QN__ENDPOINT_BYTES], qn__endpoint *endpoint);

#endif
