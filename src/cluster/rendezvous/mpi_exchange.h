/* A rendezvous through MPI: an all-gather of the endpoints by the launcher's MPI library. */
#ifndef QN_CLUSTER_RENDEZVOUS_MPI_EXCHANGE_H
#define QN_CLUSTER_RENDEZVOUS_MPI_EXCHANGE_H

#include "cluster/rendezvous/endpoint.h"
#include "cluster/rendezvous/launcher.h"

/* This rank's endpoint as input, before it knows its rank; and the result: `endpoint` (qn__free) of
 * all ranks, and 32 bytes that only these know. */
typedef struct qn__introduction {
    qn__endpoint own;
    uint32_t ranks, rank;
    qn__endpoint *endpoint;
    unsigned char key[32];
} qn__introduction;

/* Initialises MPI, exchanges, and finalises it (unless the program itself uses MPI); afterwards no
 * MPI call is made. An MPI library may wait forever for a rank that never comes. So the calls run
 * on a thread of their own, which is abandoned after `seconds`. */
qn_status qn__mpi_introduce(const qn__launcher *launcher, qn__introduction *introduction,
                            double seconds, qn_error *err);

#endif
