/* How ranks find one another, and the transport between them. */
#ifndef QN_CLUSTER_RENDEZVOUS_RENDEZVOUS_H
#define QN_CLUSTER_RENDEZVOUS_RENDEZVOUS_H

#include "cluster/transport/ranks.h"
#include "cluster/transport/transport.h"
#include <quern/cluster.h>

/* What is known of a rank when all ranks are connected. */
typedef struct qn__peer_info {
    char host[64];
    uint32_t machine; /* ranks with the same number share a machine and can share memory */
    uint32_t local;   /* number among these */
} qn__peer_info;

/* The transport of a run whose ranks are connected: connections to all of them, handshakes done. */
typedef struct qn__rendezvous {
    uint32_t ranks, rank;
    qn__peer_info *info; /* of each rank; belongs to the rendezvous */
    qn__transport *transport;
    char launcher[64];
} qn__rendezvous;

/* Finds the others as `options` say. rendezvous->ranks 0 afterwards: there are none, this process
 * is alone. The rendezvous is empty after a failure. Nothing is received before
 * qn__rendezvous_listen. */
qn_status qn__rendezvous_begin(const qn_cluster_options *options, qn__rendezvous *rendezvous,
                               qn_error *err);
/* From now on events are told. */
qn_status qn__rendezvous_listen(qn__rendezvous *rendezvous, const qn__transport_events *events,
                                qn_error *err);
/* Says goodbye to all, waits for a bounded time until what was sent has left, ends the thread; no
 * event is reported after it. Releases the rendezvous, which may be one of no ranks. */
void qn__rendezvous_end(qn__rendezvous *rendezvous);

/* For tests: the ranks that this thread brings to rendezvous are on a machine of that name, so that
 * threads or processes of one machine talk as if they were on several. NULL: the real one. */
void qn__rendezvous_simulate(const char *machine);

/* File descriptors to and from ranks of the same machine, while it is listened; -1 when there was
 * none. The receiver waits for at most `seconds`; `file` stays the giver's. */
qn_status qn__rendezvous_send_file(qn__rendezvous *rendezvous, uint32_t to, int file,
                                   qn_error *err);
int qn__rendezvous_receive_file(qn__rendezvous *rendezvous, uint32_t from, double seconds);

/* Bytes over the network so far (not those between ranks of a machine), and what to add to this
 * rank's clock to have that one's. */
void qn__rendezvous_bytes(const qn__rendezvous *rendezvous, uint64_t *out, uint64_t *in);
double qn__rendezvous_clock(const qn__rendezvous *rendezvous, uint32_t rank);

#endif
