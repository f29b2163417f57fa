/* A library that carries bodies of messages between ranks, such as an MPI. */
#ifndef QN_CLUSTER_TRANSPORT_CARRIER_H
#define QN_CLUSTER_TRANSPORT_CARRIER_H

#include <stdint.h>

/* What the library knows a transfer by. */
typedef union qn__carried {
    void *pointer;
    int number;
} qn__carried;

/* One thread makes all calls. They do not wait, and return 0 or a code of the library. */
typedef struct qn__carrier {
    const char *name; /* "Open MPI 4.1.4" */
    void *user;
    int survives; /* after the death of a rank only transfers from and to that rank fail */
    /* The memory belongs to the library until `test` says `done`. A receiver names as many bytes as
     * the sender. At most INT_MAX bytes; tags are below 32768. */
    int (*send)(void *user, const void *from, uint64_t bytes, uint32_t to, uint32_t tag,
                qn__carried *transfer);
    int (*receive)(void *user, void *into, uint64_t bytes, uint32_t from, uint32_t tag,
                   qn__carried *transfer);
    int (*test)(void *user, qn__carried *transfer, int *done);
} qn__carrier;

#endif
