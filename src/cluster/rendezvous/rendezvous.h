/* How ranks find one another, and the transport between them. */
#ifndef QN_CLUSTER_RENDEZVOUS_RENDEZVOUS_H
#define QN_CLUSTER_RENDEZVOUS_RENDEZVOUS_H

#include "cluster/transport/ranks.h"
#include "cluster/transport/transport.h"
#include <quern/cluster.h>

/* What is known of a rank when all have met. */
typedef struct qn__met {
    char host[64];
    uint32_t machine; /* ranks with the same number share a machine and can share memory */
    uint32_t local;   /* number among these */
} qn__met;

/* The transport of a run whose ranks have met: connections to all of them, handshakes done. */
typedef struct qn__meeting {
    uint32_t ranks, rank;
    qn__met *met; /* of each rank; belongs to the meeting */
    qn__transport *transport;
    char launcher[64];
} qn__meeting;

/* Finds the others as `options` say. meeting->ranks 0 afterwards: there are none, this process is
 * alone. The meeting is empty after a failure.
 * Nothing is received before qn__meeting_listen. */
qn_status qn__meeting_begin(const qn_cluster_options *options, qn__meeting *meeting, qn_error *err);
/* From now on events are told. */
qn_status qn__meeting_listen(qn__meeting *meeting, const qn__transport_events *events,
                             qn_error *err);
/* Says goodbye to all, waits for a bounded time until what was sent has left, ends the thread; no
 * event is told after it. Releases the meeting, which may be one of no ranks. */
void qn__meeting_end(qn__meeting *meeting);

/* For tests: the ranks that this thread brings to meetings are on a machine of that name, so that
 * threads or processes of one machine talk as if they were on several. NULL: the real one. */
void qn__meeting_pretend(const char *machine);

/* File descriptors to and from ranks of the same machine, while it is listened; -1 when there was
 * none. The receiver waits for at most `seconds`; `file` stays the giver's. */
qn_status qn__meeting_give(qn__meeting *meeting, uint32_t to, int file, qn_error *err);
int qn__meeting_taken(qn__meeting *meeting, uint32_t from, double seconds);

/* Bytes over the network so far (not those between ranks of a machine), and what to add to this
 * rank's clock to have that one's. */
void qn__meeting_bytes(const qn__meeting *meeting, uint64_t *out, uint64_t *in);
double qn__meeting_clock(const qn__meeting *meeting, uint32_t rank);

#endif
