/* The acceptor: accepts connections and runs the handshakes of many pending peers at a time, some
 * of which may be foreign. A foreign peer occupies a slot for a bounded time and costs nothing
 * else. */
#ifndef QN_CLUSTER_TRANSPORT_ACCEPTOR_H
#define QN_CLUSTER_TRANSPORT_ACCEPTOR_H

#include "cluster/transport/handshake.h"
#include "cluster/transport/sockets.h"

#include <poll.h>

enum { QN__PENDING_PEERS = 64, QN__ACCEPTOR_POLLS = QN__PENDING_PEERS + 2 };

typedef struct qn__pending_peer {
    qn__handshake shake; /* shake.file -1: the slot is free */
    double since;
    int local, known;
} qn__pending_peer;

typedef struct qn__acceptor {
    const qn__listeners *listeners;
    qn__hello own;
    const unsigned char *key;
    const char *greeting; /* NULL, or a credential to send to every pending peer */
    void *user;
    /* The peer has proved that it holds the key. NULL to accept it, or the reason to refuse. */
    const char *(*decide)(void *user, const qn__hello *other);
    /* The peer is connected; the callee owns the socket. */
    void (*joined)(void *user, const qn__hello *other, int file, int local);

    /* May be NULL. Whether the connection comes from a rank's address. If set, no connection stays
     * in the listener's backlog: unknown addresses may use half of the slots, and further ones are
     * closed. */
    int (*is_rank_address)(void *user, int file);
    uint32_t slots; /* with `is_rank_address`: number of slots in use at a time, at most
                       QN__PENDING_PEERS */
    int refused;    /* the last call closed a connection, or could not accept one */

    uint32_t wrong_keys;    /* pending peers that held another key */
    qn__address wrong_from; /* address of the last of them */
    qn__pending_peer pending[QN__PENDING_PEERS];
} qn__acceptor;

/* Initialises an acceptor whose members up to `joined` are set. */
void qn__acceptor_open(qn__acceptor *acceptor);
/* Fills the entries for poll; returns their number, at most QN__ACCEPTOR_POLLS. */
size_t qn__acceptor_polls(const qn__acceptor *acceptor, struct pollfd *list);
/* Accepts, and advances all handshakes without blocking. */
void qn__acceptor_serve(qn__acceptor *acceptor, double now);
/* Number of handshakes under way. */
int qn__acceptor_pending(const qn__acceptor *acceptor);
void qn__acceptor_close(qn__acceptor *acceptor);

/* Reads or writes all bytes before `until` (by qn__now). 0 if the connection ended or failed, -1
 * after the deadline. */
int qn__socket_transfer(int file, void *bytes, size_t size, int out, double until);
/* Waits until one of the entries is ready, for at most `seconds`. */
void qn__socket_wait(struct pollfd *list, size_t count, double seconds);

/* A status message of fixed size: 0, or 1 and the failure. */
enum { QN__STATUS_BYTES = 512 };
void qn__status_write(unsigned char message[QN__STATUS_BYTES], const char *failure);
/* NULL for success; otherwise the failure. */
const char *qn__status_read(unsigned char message[QN__STATUS_BYTES]);

#endif
