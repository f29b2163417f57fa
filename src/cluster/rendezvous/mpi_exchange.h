/* A rendezvous through MPI: an all-gather of the endpoints by the launcher's MPI library. */
#ifndef QN_CLUSTER_RENDEZVOUS_MPI_EXCHANGE_H
#define QN_CLUSTER_RENDEZVOUS_MPI_EXCHANGE_H

#include "cluster/rendezvous/endpoint.h"
#include "cluster/rendezvous/launcher.h"
#include "cluster/transport/carrier.h"

/* What carries large messages between machines. */
typedef enum qn__carriage {
    QN__CARRIAGE_SOCKETS,
    QN__CARRIAGE_AUTO,
    QN__CARRIAGE_MPI
} qn__carriage;

/* An MPI library that is not finalised after the exchange, with the thread that calls it. */
typedef struct qn__kept_mpi qn__kept_mpi;

/* This rank's endpoint and wish as input, before it knows its rank; and the result: `endpoint`
 * (qn__free) of all ranks, and 32 bytes that only these know. `kept` is NULL on all ranks or on
 * none: where a rank wants sockets, or all are on one machine, it is NULL. Then `wish` is what all
 * ranks do. */
typedef struct qn__introduction {
    qn__endpoint own;
    qn__carriage wish;
    uint32_t ranks, rank;
    qn__endpoint *endpoint;
    unsigned char key[32];
    qn__kept_mpi *kept;
} qn__introduction;

/* Initialises MPI, exchanges, and finalises it, unless it is kept or the program itself uses MPI;
 * afterwards no MPI call is made. An MPI library may wait forever for a rank that never comes. So
 * the calls run on a thread of their own, which is abandoned after `seconds`. */
qn_status qn__mpi_introduce(const qn__launcher *launcher, qn__introduction *introduction,
                            double seconds, qn_error *err);

/* Runs serve(user, carrier) on the thread of MPI, once. The carrier lives until qn__kept_mpi_end.
 */
void qn__kept_mpi_serve(qn__kept_mpi *kept, void (*serve)(void *user, const qn__carrier *carrier),
                        void *user);
const char *qn__kept_mpi_name(const qn__kept_mpi *kept);
/* The thread ends when `serve` has returned; `finalize`: MPI is finalised before. */
void qn__kept_mpi_ends(qn__kept_mpi *kept, int finalize);
/* Ends the thread when `serve` has returned; `finalize`: MPI is finalised before. After `seconds`
 * the thread is abandoned, and 0 is returned. Frees. */
int qn__kept_mpi_end(qn__kept_mpi *kept, int finalize, double seconds);

#endif
