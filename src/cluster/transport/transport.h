/* The transport: messages between the ranks of a run, and events about ranks that are gone.
 *
 * Each pair of ranks has one connection: a Unix socket on one machine, TCP between machines. A
 * thread sends, receives, answers pings and detects failures, so a rank that computes for minutes
 * does not count as dead. Messages between two ranks arrive complete and in order, or the
 * connection is reported as gone. Each message is authenticated with the run's key, which also
 * detects changes on the network. A TCP connection that breaks or falls silent is replaced within
 * rank_timeout, and lost messages are sent again. */
#ifndef QN_CLUSTER_TRANSPORT_TRANSPORT_H
#define QN_CLUSTER_TRANSPORT_TRANSPORT_H

#include "base/error.h"
#include <stdatomic.h>
#include <stdint.h>

/* Maximum bytes of a message's body. */
#define QN__BODY_MOST (UINT64_C(1) << 32)

/* Bytes of a message on the wire beside its body. */
enum { QN__FRAME_BYTES = 72 };

/* Types of messages of sums. A receiver takes them in any order, also after later messages. */
enum { QN__BULK_FIRST = 32, QN__BULK_LAST = 33 };

/* The header of a message. The receiver interprets the numbers. Types below 16 belong to the
 * transport. frame.c defines the wire format. */
typedef struct qn__head {
    uint32_t type;
    uint32_t extra;
    uint64_t number[4];
    uint64_t bytes; /* of the body that follows */
} qn__head;

/* A body with a reference count. Each holder may read it; the last to drop it returns it to the
 * transport's pool, so that a steady state allocates nothing. */
typedef struct qn__message_buffer {
    atomic_uint holders;
    uint64_t bytes, capacity;
    struct qn__transport *transport;
    struct qn__message_buffer *next; /* in the pool */
    _Alignas(64) unsigned char data[];
} qn__message_buffer;

typedef enum qn__loss_kind {
    QN__GONE_DEAD,   /* the process has certainly ended: its system closed the connection shortly
                        after the last message */
    QN__GONE_SILENT, /* a timeout, another failure of the connection, or this process was suspended
                        for long: the rank may be alive */
    QN__GONE_LEFT    /* it said goodbye */
} qn__loss_kind;

/* The events of a transport. They come one at a time, from its thread; no handler may block. */
typedef struct qn__transport_events {
    void *user;
    /* A message arrived. The callee takes over the reference to `body`, which is NULL for an empty
     * one. */
    void (*message)(void *user, uint32_t from, const qn__head *head, qn__message_buffer *body);
    /* No further message comes from that rank. Called once for each rank. */
    void (*gone)(void *user, uint32_t rank, qn__loss_kind how);
    /* That rank has evicted this one (qn__transport_calls.evict); gone(by, QN__GONE_SILENT)
     * follows. `why` is valid during the call. */
    void (*evicted)(void *user, uint32_t by, const char *why);
    /* Called periodically, at least ten times per rank_timeout, and after
     * qn__transport_calls.wake. */
    void (*tick)(void *user, double now);
    /* May be NULL. The connection to that rank was replaced after so many seconds of silence.
     * `damaged`: the reason was a damaged frame. */
    void (*restored)(void *user, uint32_t rank, double seconds, int damaged);
    /* May be NULL. Something that the user should know, in words. */
    void (*note)(void *user, const char *text);
} qn__transport_events;

typedef struct qn__transport qn__transport;

/* The interface of a transport: sockets, sockets with a carrier (fabric.h), and a simulated one for
 * tests. */
typedef struct qn__transport_calls {
    /* A buffer with space for `bytes` and one reference; NULL if out of memory. */
    qn__message_buffer *(*buffer)(qn__transport *transport, uint64_t bytes);
    /* Queues a message, from any thread, without blocking. Takes over the reference to `body`,
     * which may be NULL. Messages to a rank that is gone are discarded. */
    void (*send)(qn__transport *transport, uint32_t to, const qn__head *head,
                 qn__message_buffer *body);
    /* Notifies that rank that the others continue without it, then closes the connection. `gone` is
     * not called for it any more. */
    void (*evict)(qn__transport *transport, uint32_t rank, const char *why);
    /* Makes `tick` come soon. */
    void (*wake)(qn__transport *transport);
    /* Seconds, of one clock for the whole rank. */
    double (*now)(qn__transport *transport);
    /* Takes back a buffer without references, from any thread. NULL: it is freed. */
    void (*recycle)(qn__transport *transport, qn__message_buffer *buffer);
} qn__transport_calls;

struct qn__transport {
    const qn__transport_calls *calls;
};

/* A new buffer with one reference, from no pool. `transport` NULL: freed with its last reference.
 * NULL if out of memory or `bytes` is above the limit. */
qn__message_buffer *qn__buffer_create(qn__transport *transport, uint64_t bytes);

/* Drops a reference; accepts NULL. All references are dropped before the transport is closed. */
void qn__buffer_drop(qn__message_buffer *buffer);

/* Adds a reference. */
qn__message_buffer *qn__buffer_hold(qn__message_buffer *buffer);

#endif
