/* The state of the socket transport, private to this folder. */
#ifndef QN_CLUSTER_TRANSPORT_SOCKET_STATE_H
#define QN_CLUSTER_TRANSPORT_SOCKET_STATE_H

#include "base/digest/siphash.h"
#include "cluster/transport/acceptor.h"
#include "cluster/transport/ranks.h"
#include "cluster/transport/socket_transport.h"

#include <pthread.h>
#include <sys/socket.h>

/* Tags of epoll events: a rank (its connection), or one of these. */
#define QN__EPOLL_ATTEMPT (UINT64_C(1) << 32) /* with the rank: an attempt to reconnect */
#define QN__EPOLL_LISTENER (UINT64_C(2) << 32)
#define QN__EPOLL_WAKE (UINT64_C(3) << 32)

enum {
    QN__STAGE_BYTES = 16384, /* staging buffer for small messages */
    QN__FILES_MOST = 16,     /* received file descriptors of one rank that were not taken yet */
    QN__POOL_CLASSES = 33    /* buffers with space for 2^k bytes, k = 0 .. 32 */
};

/* The transport's own messages. Those marked * have no sequence number: they are not sent again. */
enum {
    QN__MESSAGE_PING = 1, /* * number[0]: the sender's clock in nanoseconds */
    QN__MESSAGE_PONG,     /* * number[0]: that of the ping; number[1]: this sender's clock */
    QN__MESSAGE_FILE,     /* with a file descriptor */
    QN__MESSAGE_BYE,
    QN__MESSAGE_EVICT,   /* * body: why */
    QN__MESSAGE_TIMEOUT, /* * the sender has not heard the receiver for rank_timeout */
    QN__MESSAGE_ACK,     /* * number[0]: the last sequence number received */
    QN__MESSAGE_RESUME,  /* * the same; the first message of a replaced connection */
    QN__MESSAGE_OWN = 16
};

/* The MAC keys of one direction between two ranks. */
typedef struct qn__frame_key {
    qn__siphash_key head, body;
} qn__frame_key;

typedef struct qn__frame {
    qn__head head;
    uint64_t sequence, body_mac;
} qn__frame;

/* A message to be sent. */
typedef struct qn__message {
    struct qn__message *next;
    unsigned char head[QN__FRAME_BYTES];
    qn__message_buffer *body;
    uint64_t sequence; /* 0: none */
    uint64_t sent;     /* bytes of header and body that were sent */
    int file;          /* sent with the first byte; -1: none */
} qn__message;

typedef struct qn__message_queue {
    qn__message *first, *last;
} qn__message_queue;

/* Reconnection of a lost or silent TCP connection; used by the thread only. */
typedef struct qn__reconnection {
    struct sockaddr_storage to; /* the rank's listener */
    socklen_t size;             /* of `to`; 0: unknown */
    qn__handshake shake;        /* the current attempt; file -1: none */
    int probe;                  /* it only tests whether the listener exists */
    double next;                /* time of the next attempt */
    int closed;                 /* the peer's system closed the connection */
    qn__loss_kind ended_as;     /* the reason to report if the listener is gone too */
    int damaged;                /* the connection was given up because a frame was damaged */
} qn__reconnection;

typedef struct qn__peer {
    int local;
    uint32_t rank;

    pthread_mutex_t lock; /* protects this group */
    int file;             /* closed by the thread only; -1 from then on */
    enum {
        QN__PEER_OPEN,
        QN__PEER_GONE, /* only the notice of an eviction is still sent */
        QN__PEER_SHUT  /* nothing is sent */
    } state;
    int broken;              /* the errno of a failed send */
    int waiting;             /* for EPOLLOUT */
    qn__message_queue queue; /* not sent yet */
    qn__message_queue kept;  /* sent, not acknowledged; only of TCP */
    uint64_t sequenced;      /* the last sequence number assigned */
    uint64_t arrived;        /* the last sequence number acknowledged */
    int held;                /* nothing but RESUME is sent until the peer's RESUME has arrived */
    qn__frame_key key;       /* of messages to the peer */

    atomic_int evicted; /* by this rank: no event of it is delivered any more */

    /* Used by the thread only. */
    int gone;           /* reported as gone, or not to be reported */
    int ended;          /* it has sent its last message */
    double heard;       /* time of the last received bytes */
    double best;        /* seconds of the fastest ping so far */
    size_t stage_have;  /* bytes in stage */
    uint64_t body_have; /* bytes of the body received */
    qn__frame frame;
    qn__frame_key their_key;
    uint64_t received;       /* the last sequence number received */
    uint64_t acknowledged;   /* the last sequence number acknowledged to the peer */
    uint64_t unacknowledged; /* bytes received since */
    uint32_t damaged;        /* damaged frames so far */
    int discards;            /* given up because of them: received data is discarded */
    qn__reconnection reconnection;
    qn__message_buffer *body;               /* of an incomplete message */
    int loose[QN__FILES_MOST], loose_count; /* descriptors of incomplete messages */
    unsigned char *stage;

    _Atomic double ahead; /* offset of the peer's clock, seconds */
} qn__peer;

typedef struct qn__socket_transport {
    qn__transport base;
    uint32_t ranks, rank;
    double rank_timeout, period; /* period: between pings, and between ticks */
    qn__peer *peer;
    qn__transport_events events;
    int poll_file, wake_file;
    pthread_t thread;
    int started;
    atomic_int ending;
    atomic_int woken;
    double slept;  /* time when this process last woke from suspend; used by the thread only */
    double looked; /* last time the thread ran, by a clock that includes suspend */
    unsigned char key[32];
    qn__listeners listeners; /* for reconnections */
    qn__acceptor *acceptor;  /* pending peers */
    int muted;               /* the listener is not watched at present */
    double next_try;         /* time of the next check of lost connections; INFINITY: none */

    pthread_mutex_t pool_lock;
    qn__message_buffer *pool[QN__POOL_CLASSES];
    qn__message *messages;

    pthread_mutex_t taken_lock; /* protects this group */
    pthread_cond_t taken_more;
    struct qn__taken {
        int file[QN__FILES_MOST], count, gone;
    } * taken;

    atomic_uint_fast64_t bytes_out, bytes_in;
} qn__socket_transport;

static inline qn__socket_transport *qn__socket_transport_of(qn__transport *transport) {
    return (qn__socket_transport *)transport;
}

/* pool.c */
qn__message_buffer *qn__pool_buffer(qn__transport *transport, uint64_t bytes);
void qn__pool_recycle(qn__transport *transport, qn__message_buffer *buffer);
qn__message *qn__pool_message(qn__socket_transport *transport);
void qn__pool_take_message(qn__socket_transport *transport, qn__message *message);
void qn__pool_release(qn__socket_transport *transport);

/* frame.c */
void qn__frame_keys(const unsigned char key[32], uint32_t from, uint32_t to,
                    qn__frame_key *frame_key);
/* Fills all but the sequence number and the MAC of the header, which qn__frame_seal adds. */
void qn__frame_write(const qn__frame_key *key, const qn__head *head, const qn__message_buffer *body,
                     unsigned char frame[QN__FRAME_BYTES]);
void qn__frame_seal(const qn__frame_key *key, uint64_t sequence,
                    unsigned char frame[QN__FRAME_BYTES]);
/* 0: damaged, or made with another key. */
int qn__frame_read(const qn__frame_key *key, const unsigned char frame[QN__FRAME_BYTES],
                   qn__frame *read);
int qn__frame_body_is_good(const qn__frame_key *key, const qn__frame *frame,
                           const qn__message_buffer *body);

/* peer.c */
void qn__socket_set_options(int file, int local, double rank_timeout);
/* Seconds of silence after which a second connection is tried. */
double qn__watch_patience(const qn__socket_transport *transport);
/* Messages of that rank are ignored from now on. */
void qn__watch_give_up(qn__socket_transport *transport, qn__peer *peer);
/* Reports that a rank is gone, once. */
void qn__watch_gone(qn__socket_transport *transport, qn__peer *peer, qn__loss_kind how);

/* reconnect.c: called by the thread only. */
qn_status qn__reconnect_open(qn__socket_transport *transport, const qn__transport_setup *setup,
                             qn_error *err);
void qn__reconnect_close(qn__socket_transport *transport);
/* Whether a connection that ended with this errno can be replaced. */
int qn__reconnect_possible(const qn__socket_transport *transport, qn__peer *peer, int error);
/* The connection is lost. `closed`: the peer's system closed it. If its listener is gone too, the
 * rank is reported as `as`. */
void qn__reconnect_lost(qn__socket_transport *transport, qn__peer *peer, int closed,
                        qn__loss_kind as, double now);
/* Handle events of an attempt, and of the listener. */
void qn__reconnect_attempt(qn__socket_transport *transport, qn__peer *peer, double now);
void qn__reconnect_accept(qn__socket_transport *transport, double now);
/* Schedules a check of the connections. */
void qn__reconnect_wanted(qn__socket_transport *transport, double now);
void qn__reconnect_tick(qn__socket_transport *transport, double now);

/* send.c */
void qn__transport_send(qn__transport *transport, uint32_t to, const qn__head *head,
                        qn__message_buffer *body);
/* The same with a descriptor, which this closes. 0 if it could not be queued. */
int qn__transport_queue(qn__socket_transport *transport, uint32_t to, const qn__head *head,
                        qn__message_buffer *body, int file);
/* Sends as much as the socket takes; called on EPOLLOUT. */
void qn__peer_push(qn__socket_transport *transport, qn__peer *peer);
/* 1 if no message to that rank is queued. */
int qn__peer_queue_empty(qn__peer *peer);
/* Discards queued messages, except the rest of one that was partly sent. Later messages are
 * discarded too, except the notice of an eviction. */
void qn__peer_forget(qn__socket_transport *transport, qn__peer *peer);
/* Closes the socket; nothing is sent any more. */
void qn__peer_close(qn__socket_transport *transport, qn__peer *peer);
/* Closes the socket; unacknowledged messages are kept for the next connection. */
void qn__peer_unlink(qn__socket_transport *transport, qn__peer *peer);
/* Sets the new socket of a connection. Only RESUME is sent until the peer's RESUME has arrived. 0:
 * epoll failed, and the socket was closed. */
int qn__peer_link(qn__socket_transport *transport, qn__peer *peer, int file);
/* The peer has received all up to that number: the rest is sent. 0: invalid number. */
int qn__peer_resume(qn__socket_transport *transport, qn__peer *peer, uint64_t arrived);
void qn__peer_arrived(qn__socket_transport *transport, qn__peer *peer, uint64_t arrived);
/* Acknowledges received messages. */
void qn__peer_acknowledge(qn__socket_transport *transport, qn__peer *peer);
/* 1 if all messages to that rank were acknowledged, or were sent if it is local. */
int qn__peer_all_arrived(qn__peer *peer);
/* Sends a final message: TIMEOUT, EVICT or BYE. Later messages are discarded. */
void qn__transport_send_last(qn__socket_transport *transport, uint32_t to, uint32_t type,
                             const char *text);

/* receive.c: reads the available data; called on EPOLLIN. */
void qn__peer_read(qn__socket_transport *transport, qn__peer *peer, double now);

/* liveness.c */
/* The connection has ended with this errno (0: its end was read). */
void qn__watch_ended(qn__socket_transport *transport, qn__peer *peer, int error, double now);
/* Checks whether this process was suspended since the last call. */
void qn__watch_self(qn__socket_transport *transport, double now);
/* Sends pings and checks for silence; called every `period`. */
void qn__watch_others(qn__socket_transport *transport, double now);
void qn__watch_pong(qn__peer *peer, const qn__head *head);
uint64_t qn__watch_nanoseconds(double seconds);

#endif
