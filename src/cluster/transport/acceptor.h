/* Where others knock: accepts connections and shakes hands with many guests at a time, among whom
 * there may be strangers. A stranger costs a place for a bounded time and nothing else. */
#ifndef QN_CLUSTER_TRANSPORT_ACCEPTOR_H
#define QN_CLUSTER_TRANSPORT_ACCEPTOR_H

#include "cluster/transport/handshake.h"
#include "cluster/transport/sockets.h"

#include <poll.h>

enum { QN__GUESTS = 64, QN__DOOR_POLLS = QN__GUESTS + 2 };

typedef struct qn__guest {
    qn__shake shake; /* shake.file -1: the place is free */
    double since;
    int local, known;
} qn__guest;

typedef struct qn__door {
    const qn__ears *ears;
    qn__hello own;
    const unsigned char *key;
    const char *greeting; /* NULL, or a credential to hand to every guest */
    void *user;
    /* A guest holds the key: NULL to let it in, or why not. */
    const char *(*decide)(void *user, const qn__hello *other);
    /* It is in; the socket is the callee's. */
    void (*joined)(void *user, const qn__hello *other, int file, int local);

    /* May be NULL. Whether that connection comes from where a rank is. If it is set, nobody waits
     * in front of the door: strangers have half of the places, and more of them are sent away. */
    int (*knows)(void *user, int file);
    uint32_t places; /* with `knows`: how many may be on their way in, at most QN__GUESTS */
    int refused;     /* somebody was sent away, or could not be accepted, just now */

    uint32_t wrong_keys;    /* guests that held another key */
    qn__address wrong_from; /* the last of them */
    qn__guest guest[QN__GUESTS];
} qn__door;

/* Makes ready a door whose fields up to `joined` are set. */
void qn__door_open(qn__door *door);
/* What to wait for; returns the number of entries, at most QN__DOOR_POLLS. */
size_t qn__door_polls(const qn__door *door, struct pollfd *list);
/* Accepts and goes on with all guests as far as that goes without waiting. */
void qn__door_serve(qn__door *door, double now);
/* How many are on their way in. */
int qn__door_guests(const qn__door *door);
void qn__door_close(qn__door *door);

/* Reads or writes all of it before `until` (of qn__now). 0 when the connection ended or failed, -1
 * when it was too late. */
int qn__meet_transfer(int file, void *bytes, size_t size, int out, double until);
/* Waits until one of the entries is ready, for at most `seconds`. */
void qn__meet_wait(struct pollfd *list, size_t count, double seconds);

/* A short word: 0 and nothing, or 1 and why it failed. */
enum { QN__WORD_BYTES = 512 };
void qn__word_write(unsigned char word[QN__WORD_BYTES], const char *failure);
/* NULL for a good word; otherwise what failed. */
const char *qn__word_read(unsigned char word[QN__WORD_BYTES]);

#endif
