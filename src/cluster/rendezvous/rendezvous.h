/* How ranks discover one another, and the transport between them. */
#ifndef QN_CLUSTER_RENDEZVOUS_RENDEZVOUS_H
#define QN_CLUSTER_RENDEZVOUS_RENDEZVOUS_H

#include "cluster/rendezvous/endpoint.h"
#include "cluster/rendezvous/mpi_exchange.h"
#include "cluster/transport/fabric.h"
#include "cluster/transport/ranks.h"
#include "cluster/transport/transport.h"
#include <pthread.h>
#include <quern/cluster.h>

/* A rank as known when all ranks are connected. */
typedef struct qn__peer_info {
    char host[64];
    uint32_t machine; /* ranks with the same number share a machine and can share memory */
    uint32_t local;   /* index among these */
} qn__peer_info;

/* What a run keeps whose ranks met at an address (HOST:PORT), so that ranks can join it later. */
typedef struct qn__meeting {
    int possible; /* 0: the rest is not set */
    char host[256];
    uint16_t port;
    int everywhere, loopback;
    char *interface; /* NULL: all */
    unsigned char secret[32];
    double rank_timeout;
    qn__endpoint *endpoint; /* of each rank */
    /* Of a rank that came when the run had begun, and is not let in yet: */
    int door; /* its connection to rank 0; -1: any other rank */
    qn__listeners listeners;
    char *described; /* what the run is */
    uint64_t described_bytes;
} qn__meeting;

/* The transport of a run whose ranks are all connected; the handshakes are done. */
typedef struct qn__rendezvous {
    uint32_t ranks, rank;
    qn__peer_info *info; /* of each rank; belongs to the rendezvous */
    qn__ranks present;   /* the ranks that the transport connects, and this one */
    qn__meeting meeting;
    qn__transport *transport;
    char launcher[64];
    /* Both NULL where all messages go by sockets. */
    qn__fabric *fabric;
    qn__kept_mpi *mpi; /* that carries; NULL: a carrier of tests */
    int tries;         /* all ranks decide by trials whether they use the carrier */
    double rank_timeout;
    const qn__carrier *simulated; /* of tests, and its thread */
    pthread_t thread;
    int serves;
} qn__rendezvous;

/* Discovers the other ranks by `options`. rendezvous->ranks 0 afterwards: there are none. After a
 * failure the rendezvous is empty. Nothing is received before qn__rendezvous_listen. */
qn_status qn__rendezvous_begin(const qn_cluster_options *options, qn__rendezvous *rendezvous,
                               qn_error *err);
/* Numbers the machines of the ranks' endpoints, and fills their hosts. */
void qn__rendezvous_number(const qn__endpoint *endpoint, uint32_t ranks, qn__peer_info *info);
/* From now on events are delivered. */
qn_status qn__rendezvous_listen(qn__rendezvous *rendezvous, const qn__transport_events *events,
                                qn_error *err);
/* Notifies all ranks, waits for a bounded time until sent messages have left, and ends the thread;
 * no event is delivered afterwards. Releases the rendezvous, which may have no ranks. */
void qn__rendezvous_end(qn__rendezvous *rendezvous);

/* For tests: the ranks of this thread belong to a machine of that name. So threads or processes of
 * one machine communicate as if they were on several. NULL: the real machine. */
void qn__rendezvous_simulate(const char *machine);

/* What messages of reductions are sent with. */
qn__transport *qn__rendezvous_transport(const qn__rendezvous *rendezvous);
/* Seconds of trials with a rank of another machine, by sockets and by the carrier. */
void qn__rendezvous_try(qn__rendezvous *rendezvous, double *sockets, double *carrier);
/* Ends the carrier, which was tried and not used, without waiting for the others. */
void qn__rendezvous_end_carrier(qn__rendezvous *rendezvous);
/* The name of the library that carries: "Open MPI 4.1.4". */
const char *qn__rendezvous_carrier(const qn__rendezvous *rendezvous);

/* For tests: ranks of this thread carry by this, which lives until they have left. NULL: by MPI
 * under its launcher. */
void qn__rendezvous_carry(const qn__carrier *carrier);

/* Sends and receives file descriptors between ranks of one machine, after qn__rendezvous_listen.
 * The receiver waits for at most `seconds`; -1 if none came. `file` stays the sender's. */
qn_status qn__rendezvous_send_file(qn__rendezvous *rendezvous, uint32_t to, int file,
                                   qn_error *err);
int qn__rendezvous_receive_file(qn__rendezvous *rendezvous, uint32_t from, double seconds);

/* Bytes over the network so far, without those between ranks of a machine; and the offset of a
 * rank's clock to this one's. */
void qn__rendezvous_bytes(const qn__rendezvous *rendezvous, uint64_t *out, uint64_t *in);
double qn__rendezvous_clock(const qn__rendezvous *rendezvous, uint32_t rank);

#endif
