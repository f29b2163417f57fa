/* The transport: messages between the ranks of a run, and the news of ranks that are gone.
 *
 * Every two ranks hold one connection: a Unix socket on one machine, TCP between machines. A thread
 * of the transport sends, receives, answers and watches. So a rank that computes for minutes is not
 * taken for dead. Messages between two ranks arrive whole and in order, or the connection is gone.
 * Each message is authenticated with the run's key, so a change on the network is noticed. A TCP
 * connection that breaks or falls silent is made again within rank_timeout. What had not arrived is
 * sent again. */
#ifndef QN_CLUSTER_TRANSPORT_TRANSPORT_H
#define QN_CLUSTER_TRANSPORT_TRANSPORT_H

#include "base/error.h"
#include <stdatomic.h>
#include <stdint.h>

/* The longest body of a message. */
#define QN__BODY_MOST (UINT64_C(1) << 32)

/* Bytes that a message takes on the wire beside its body. */
enum { QN__FRAME_BYTES = 72 };

/* Head of a message. What the numbers mean is the receiver's affair. Types below 16 are the
 * transport's own. frame.c says how it travels. */
typedef struct qn__head {
    uint32_t type;
    uint32_t extra;
    uint64_t number[4];
    uint64_t bytes; /* of the body that follows */
} qn__head;

/* A body, counted: whoever holds one may read it; the last to drop it gives it back to the pool of
 * its transport, so that a steady state allocates nothing. */
typedef struct qn__message_buffer {
    atomic_uint holders;
    uint64_t bytes, room;
    struct qn__transport *transport;
    struct qn__message_buffer *next; /* in the pool */
    _Alignas(64) unsigned char data[];
} qn__message_buffer;

typedef enum qn__going {
    QN__GONE_DEAD,   /* the other process has certainly ended: its system closed the connection
                        while it was heard from regularly */
    QN__GONE_SILENT, /* not heard for rank_timeout, the connection failed otherwise, or this rank
                        itself was asleep so long that it cannot tell: perhaps it still lives */
    QN__GONE_LEFT    /* it said goodbye */
} qn__going;

/* What the transport tells, all on its own thread, one at a time; none may block. */
typedef struct qn__transport_events {
    void *user;
    /* A message came. `body` (NULL for no bytes) is held for the callee, who drops it. */
    void (*message)(void *user, uint32_t from, const qn__head *head, qn__message_buffer *body);
    /* No message comes from that rank any more. Told once for each rank. */
    void (*gone)(void *user, uint32_t rank, qn__going how);
    /* That rank says that the others continue without this one (its qn__transport_calls.expel);
     * gone(by, QN__GONE_SILENT) follows. `why` lives as long as the call. */
    void (*expelled)(void *user, uint32_t by, const char *why);
    /* Now and then, at least ten times a rank_timeout and whenever qn__transport_calls.wake was
     * called. */
    void (*tick)(void *user, double now);
    /* May be NULL. The connection to that rank was made again: nothing came from it for so many
     * seconds. `damaged`: it was given up because a frame was damaged. */
    void (*restored)(void *user, uint32_t rank, double seconds, int damaged);
} qn__transport_events;

typedef struct qn__transport qn__transport;

/* What a transport has to be able to do: the real one, and the one of the tests, in which time and
 * deaths are made up. */
typedef struct qn__transport_calls {
    /* A buffer with room for `bytes`, held once; NULL when memory is short. */
    qn__message_buffer *(*buffer)(qn__transport *transport, uint64_t bytes);
    /* Queues a message, from any thread, never blocking; drops the caller's hold of `body` (which
     * may be NULL). To a rank that is gone it is thrown away. */
    void (*send)(qn__transport *transport, uint32_t to, const qn__head *head,
                 qn__message_buffer *body);
    /* Tells that rank that the others continue without it, then ends the connection. No `gone` is
     * reported of it any more. */
    void (*expel)(qn__transport *transport, uint32_t rank, const char *why);
    /* Makes tick come soon. */
    void (*wake)(qn__transport *transport);
    /* Seconds; of one clock for the whole rank. */
    double (*now)(qn__transport *transport);
    /* Takes back a buffer that nobody holds any more; from any thread. NULL: it is freed. */
    void (*recycle)(qn__transport *transport, qn__message_buffer *buffer);
} qn__transport_calls;

struct qn__transport {
    const qn__transport_calls *calls;
};

/* A new buffer of `transport` (NULL: of none, freed with its last hold), held once, from no pool.
 * NULL when memory is short or `bytes` is more than any message may have. */
qn__message_buffer *qn__buffer_create(qn__transport *transport, uint64_t bytes);

/* Gives up a hold. Accepts NULL. All holds are given up before the transport ends. */
void qn__buffer_drop(qn__message_buffer *buffer);

/* One hold more. */
qn__message_buffer *qn__buffer_hold(qn__message_buffer *buffer);

#endif
