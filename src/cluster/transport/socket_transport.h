/* The transport over connected sockets. */
#ifndef QN_CLUSTER_TRANSPORT_SOCKET_TRANSPORT_H
#define QN_CLUSTER_TRANSPORT_SOCKET_TRANSPORT_H

#include "cluster/transport/transport.h"

/* The connection to one rank. */
typedef struct qn__link {
    int file;      /* a stream socket; -1 for this rank itself */
    int local;     /* 1: a Unix socket, which can carry file descriptors */
    uint16_t port; /* TCP port of that rank's listener, at the peer's address; 0: unknown, so a lost
                      connection cannot be replaced */
} qn__link;

typedef struct qn__transport_setup {
    uint32_t ranks, rank;
    const qn__link *link;     /* to each rank */
    double rank_timeout;      /* seconds */
    const unsigned char *key; /* 32 bytes, of this run; copied */
    int listener;             /* of this rank, for TCP; -1: none */
} qn__transport_setup;

/* Takes over the sockets, also if it fails (they are then closed). */
qn_status qn__transport_open(const qn__transport_setup *setup, qn__transport **out, qn_error *err);
/* Starts the thread: events are delivered from now on. */
qn_status qn__transport_listen(qn__transport *transport, const qn__transport_events *events,
                               qn_error *err);
/* Notifies all ranks. Waits until messages are sent and, over TCP, acknowledged, for at most
 * rank_timeout; then frees. When it returns, all events have been delivered. Accepts NULL. */
void qn__transport_close(qn__transport *transport);

/* Closes the connections of a transport that does not listen, without a word. Accepts NULL. */
void qn__transport_abandon(qn__transport *transport);

/* Passes a file descriptor over a local link. `file` stays the caller's; the receiver owns the
 * descriptor returned. -1 if none came within `seconds` or that rank is gone. */
qn_status qn__transport_send_file(qn__transport *transport, uint32_t to, int file, qn_error *err);
int qn__transport_receive_file(qn__transport *transport, uint32_t from, double seconds);

/* Bytes of messages with their headers over links that are not local, without the transport's
 * own. */
void qn__transport_bytes(const qn__transport *transport, uint64_t *out, uint64_t *in);
/* The offset of a rank's clock to this one's in seconds; 0 while unknown. */
double qn__transport_clock(const qn__transport *transport, uint32_t rank);

#endif
