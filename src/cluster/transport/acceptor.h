/* The acceptor: accepts connections and does the handshakes of many pending peers at a time, among
 * whom there may be strangers. A stranger costs a place for a bounded time and nothing else. */
#ifndef QN_CLUSTER_TRANSPORT_ACCEPTOR_H
#define QN_CLUSTER_TRANSPORT_ACCEPTOR_H

#include "cluster/transport/handshake.h"
#include "cluster/transport/sockets.h"

#include <poll.h>

enum { QN__PENDING_PEERS = 64, QN__ACCEPTOR_POLLS = QN__PENDING_PEERS + 2 };

typedef struct qn__pending_peer {
    qn__handshake shake; /* shake.file -1: the place is free */
    double since;
    int local, known;
} qn__pending_peer;

typedef struct qn__acceptor {
    const qn__listeners *listeners;
    qn__hello own;
    const unsigned char *key;
    const char *greeting; /* NULL, or a credential to hand to every pending peer */
    void *user;
    /* A pending peer holds the key: NULL to let it in, or why not. */
    const char *(*decide)(void *user, const qn__hello *other);
    /* It is in; the socket is the callee's. */
    void (*joined)(void *user, const qn__hello *other, int file, int local);

    /* May be NULL. Whether that connection comes from where a rank is. If it is set, nobody waits
     * in the listener's queue: strangers have half of the places, and more of them are sent away.
     */
    int (*knows)(void *user, int file);
    uint32_t places; /* with `knows`: how many may be on their way in, at most QN__PENDING_PEERS */
    int refused;     /* someone was sent away, or could not be accepted, just now */

    uint32_t wrong_keys;    /* pending peers that held another key */
    qn__address wrong_from; /* the last of them */
    qn__pending_peer pending[QN__PENDING_PEERS];
} qn__acceptor;

/* Makes ready an acceptor whose fields up to `joined` are set. */
void qn__acceptor_open(qn__acceptor *acceptor);
/* What to wait for; returns the number of entries, at most QN__ACCEPTOR_POLLS. */
size_t qn__acceptor_polls(const qn__acceptor *acceptor, struct pollfd *list);
/* Accepts and continues with all pending peers as far as that goes without waiting. */
void qn__acceptor_serve(qn__acceptor *acceptor, double now);
/* How many are on their way in. */
int qn__acceptor_pending(const qn__acceptor *acceptor);
void qn__acceptor_close(qn__acceptor *acceptor);

/* Reads or writes all of it before `until` (of qn__now). 0 when the connection ended or failed, -1
 * when it was too late. */
int qn__socket_transfer(int file, void *bytes, size_t size, int out, double until);
/* Waits until one of the entries is ready, for at most `seconds`. */
void qn__socket_wait(struct pollfd *list, size_t count, double seconds);

/* A short word: 0 and nothing, or 1 and why it failed. */
enum { QN__WORD_BYTES = 512 };
void qn__word_write(unsigned char word[QN__WORD_BYTES], const char *failure);
/* NULL for a good word; otherwise what failed. */
const char *qn__word_read(unsigned char word[QN__WORD_BYTES]);

#endif
