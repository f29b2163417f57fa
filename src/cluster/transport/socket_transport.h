/* The real transport, over sockets that are connected already. */
#ifndef QN_CLUSTER_TRANSPORT_SOCKET_TRANSPORT_H
#define QN_CLUSTER_TRANSPORT_SOCKET_TRANSPORT_H

#include "cluster/transport/transport.h"

/* The connection to one rank. */
typedef struct qn__link {
    int file;      /* a stream socket; -1 for this rank itself */
    int local;     /* 1: a Unix socket, which can carry file descriptors */
    uint16_t port; /* of TCP at which that rank listens, at the address of the connection's other
                      end; 0: not known, so a connection that is lost cannot be made again */
} qn__link;

typedef struct qn__transport_setup {
    uint32_t ranks, rank;
    const qn__link *link;     /* to each rank */
    double rank_timeout;      /* seconds */
    const unsigned char *key; /* 32 bytes, of this run; copied */
    int listener;             /* of this rank, for TCP; -1: none */
} qn__transport_setup;

/* Takes the sockets, also when it fails (they are closed then). */
qn_status qn__transport_open(const qn__transport_setup *setup, qn__transport **out, qn_error *err);
/* Starts the thread: from now on it is received, watched, and told. */
qn_status qn__transport_listen(qn__transport *transport, const qn__transport_events *events,
                               qn_error *err);
/* Says goodbye to all, waits until what was sent has left and, over TCP, has arrived, at most
 * rank_timeout; then frees. No event is
 * told any more once this has returned; those under way come to their end first. Accepts NULL. */
void qn__transport_close(qn__transport *transport);

/* File descriptors over a link that is local. `file` stays the caller's, the one that is returned
 * becomes its receiver's; -1 when none came within `seconds` or that rank is gone. */
qn_status qn__transport_send_file(qn__transport *transport, uint32_t to, int file, qn_error *err);
int qn__transport_receive_file(qn__transport *transport, uint32_t from, double seconds);

/* Bytes of messages, with their heads, over links that are not local; without the transport's own.
 */
void qn__transport_bytes(const qn__transport *transport, uint64_t *out, uint64_t *in);
/* What to add to this rank's clock to have that one's; 0 as long as nothing is known. */
double qn__transport_clock(const qn__transport *transport, uint32_t rank);

#endif
