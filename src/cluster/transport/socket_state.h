/* What the parts of the real transport share. */
#ifndef QN_CLUSTER_TRANSPORT_SOCKET_STATE_H
#define QN_CLUSTER_TRANSPORT_SOCKET_STATE_H

#include "base/siphash.h"
#include "cluster/transport/acceptor.h"
#include "cluster/transport/ranks.h"
#include "cluster/transport/socket_transport.h"

#include <pthread.h>
#include <sys/socket.h>

/* What epoll tells of: a rank's connection (its number alone), or one of these. */
#define QN__EPOLL_ATTEMPT (UINT64_C(1) << 32) /* with the rank: to connect to it again */
#define QN__EPOLL_LISTENER (UINT64_C(2) << 32)
#define QN__EPOLL_WAKE (UINT64_C(3) << 32)

enum {
    QN__STAGE_BYTES = 16384, /* of small messages, read in one go */
    QN__FILES_MOST = 16,     /* file descriptors of one rank that wait to be taken */
    QN__POOL_CLASSES = 33    /* buffers with room for 2^k bytes, k = 0 .. 32 */
};

/* The transport's own messages. Those marked * have no sequence number: they are of the moment, or
 * go in front of others that are dropped. */
enum {
    QN__MESSAGE_PING = 1, /* * number[0]: the sender's clock in nanoseconds */
    QN__MESSAGE_PONG,     /* * number[0]: that of the ping; number[1]: this sender's clock */
    QN__MESSAGE_FILE,     /* with a file descriptor */
    QN__MESSAGE_BYE,
    QN__MESSAGE_EXPEL,  /* * body: why */
    QN__MESSAGE_DEAF,   /* * this sender has not heard the receiver for rank_timeout */
    QN__MESSAGE_ACK,    /* * number[0]: all up to this sequence number have arrived */
    QN__MESSAGE_RESUME, /* * the same; the first message over a connection that was made again */
    QN__MESSAGE_OWN = 16
};

/* The keys of what one rank sends to another. */
typedef struct qn__frame_key {
    qn__siphash_key head, body;
} qn__frame_key;

typedef struct qn__frame {
    qn__head head;
    uint64_t sequence, body_mac;
} qn__frame;

/* A message on its way out. */
typedef struct qn__message {
    struct qn__message *next;
    unsigned char head[QN__FRAME_BYTES];
    qn__message_buffer *body;
    uint64_t sequence; /* 0: none */
    uint64_t sent;     /* bytes of head and body that have left */
    int file;          /* goes with the first byte; -1: none */
} qn__message;

typedef struct qn__message_queue {
    qn__message *first, *last;
} qn__message_queue;

/* What is done about a TCP connection that is lost or silent; the thread's alone. */
typedef struct qn__reconnection {
    struct sockaddr_storage to; /* where the rank listens */
    socklen_t size;             /* of `to`; 0: not known */
    qn__handshake shake;        /* the attempt under way; file -1: none */
    int probe;                  /* it only looks whether anybody listens there */
    double next;                /* moment of the next attempt */
    int closed;                 /* the system there closed the connection */
    qn__going ended_as;         /* how that rank has ended, if its listener has gone too */
    int damaged;                /* it was given up for a damaged frame */
} qn__reconnection;

typedef struct qn__peer {
    int local;
    uint32_t rank;

    pthread_mutex_t lock; /* of this group */
    int file;             /* closed by the thread only; -1 from then on */
    enum {
        QN__PEER_OPEN,
        QN__PEER_GONE, /* nothing goes there but that it was expelled */
        QN__PEER_SHUT  /* nothing at all */
    } state;
    int broken;              /* the errno of a send that failed */
    int waiting;             /* the thread is reported when the socket takes more */
    qn__message_queue queue; /* what has not left */
    qn__message_queue kept;  /* what has left and may have to be sent again; only of TCP */
    uint64_t sequenced;      /* the last sequence number that was given out */
    uint64_t arrived;        /* of these the last that the other side has */
    int held;                /* until the other side has said what it has, nothing else is sent */
    qn__frame_key key;       /* of what goes there */

    atomic_int expelled; /* by this rank: nobody is reported of it any more */

    /* The thread's alone. */
    int gone;           /* told of, or nobody wants to know */
    int ended;          /* it has said its last word */
    double heard;       /* when bytes came last */
    double best;        /* seconds of the quickest ping so far */
    size_t stage_have;  /* bytes in stage */
    uint64_t body_have; /* bytes of body that are there */
    qn__frame frame;
    qn__frame_key their_key;
    uint64_t received; /* the last sequence number that came */
    uint64_t told;     /* of these the last that was acknowledged */
    uint64_t untold;   /* bytes since */
    uint32_t damaged;  /* frames so far */
    int discards;      /* it was given up for them: what comes is thrown away */
    qn__reconnection reconnection;
    qn__message_buffer *body;               /* of a message that is not whole yet */
    int loose[QN__FILES_MOST], loose_count; /* descriptors whose message is not whole yet */
    unsigned char *stage;

    _Atomic double ahead; /* their clock minus this one's, seconds */
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
    double slept;  /* when this process was last found to have slept; the thread's alone */
    double looked; /* when the thread was last awake, by the clock that runs on in a suspend */
    unsigned char key[32];
    qn__listeners listeners; /* the listener, for connections that are made again */
    qn__acceptor *acceptor;  /* who came there */
    int muted;               /* the listener is not watched for a moment */
    double next_try; /* moment of the next look at lost connections; INFINITY: there is none */

    pthread_mutex_t pool_lock;
    qn__message_buffer *pool[QN__POOL_CLASSES];
    qn__message *messages;

    pthread_mutex_t taken_lock; /* of this group */
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
/* Fills all but the sequence number and the head's MAC, which seal adds. */
void qn__frame_write(const qn__frame_key *key, const qn__head *head, const qn__message_buffer *body,
                     unsigned char frame[QN__FRAME_BYTES]);
void qn__frame_seal(const qn__frame_key *key, uint64_t sequence,
                    unsigned char frame[QN__FRAME_BYTES]);
/* 0: it was damaged, or the sender lacks the key. */
int qn__frame_read(const qn__frame_key *key, const unsigned char frame[QN__FRAME_BYTES],
                   qn__frame *read);
int qn__frame_body_is_good(const qn__frame_key *key, const qn__frame *frame,
                           const qn__message_buffer *body);

/* peer.c */
void qn__socket_set_options(int file, int local, double rank_timeout);
/* Seconds without a word after which a second connection is tried. */
double qn__watch_patience(const qn__socket_transport *transport);
/* From now on nothing is taken from that rank. */
void qn__watch_give_up(qn__socket_transport *transport, qn__peer *peer);
/* Tells of a rank that is gone, once. */
void qn__watch_gone(qn__socket_transport *transport, qn__peer *peer, qn__going how);

/* reconnect.c: the thread's alone. */
qn_status qn__reconnect_open(qn__socket_transport *transport, const qn__transport_setup *setup,
                             qn_error *err);
void qn__reconnect_close(qn__socket_transport *transport);
/* Whether a connection that ended so can be made again. */
int qn__reconnect_possible(const qn__socket_transport *transport, qn__peer *peer, int error);
/* It is lost. `closed`: the system there has closed it; if nobody listens there any more, the rank
 * is gone, as `as` says. */
void qn__reconnect_lost(qn__socket_transport *transport, qn__peer *peer, int closed, qn__going as,
                        double now);
/* Events of an attempt, and of the listener. */
void qn__reconnect_attempt(qn__socket_transport *transport, qn__peer *peer, double now);
void qn__reconnect_accept(qn__socket_transport *transport, double now);
/* From now on connections are looked after: one is silent. */
void qn__reconnect_wanted(qn__socket_transport *transport, double now);
void qn__reconnect_tick(qn__socket_transport *transport, double now);

/* send.c */
void qn__transport_send(qn__transport *transport, uint32_t to, const qn__head *head,
                        qn__message_buffer *body);
/* The same with a descriptor, which this closes. 0 when it could not be queued. */
int qn__transport_queue(qn__socket_transport *transport, uint32_t to, const qn__head *head,
                        qn__message_buffer *body, int file);
/* Sends what the socket takes; the thread's answer to EPOLLOUT. */
void qn__peer_push(qn__socket_transport *transport, qn__peer *peer);
/* 1 when nothing waits to be sent to that rank. */
int qn__peer_queue_empty(qn__peer *peer);
/* Throws away what is queued, but for the rest of a message that has begun to leave, and what comes
 * later, but for an expulsion. */
void qn__peer_forget(qn__socket_transport *transport, qn__peer *peer);
/* Closes the socket; nothing is sent any more. */
void qn__peer_close(qn__socket_transport *transport, qn__peer *peer);
/* Closes the socket; what has not arrived is kept, to be sent over another one. */
void qn__peer_unlink(qn__socket_transport *transport, qn__peer *peer);
/* The socket takes the place of the one that was there. Nothing is sent but what this side has
 * received, until the other side has said the same. 0: it cannot be watched, and was closed. */
int qn__peer_link(qn__socket_transport *transport, qn__peer *peer, int file);
/* The other side has all up to that number, and the rest can be sent. 0: that cannot be. */
int qn__peer_resume(qn__socket_transport *transport, qn__peer *peer, uint64_t arrived);
void qn__peer_arrived(qn__socket_transport *transport, qn__peer *peer, uint64_t arrived);
/* Acknowledges what came. */
void qn__peer_acknowledge(qn__socket_transport *transport, qn__peer *peer);
/* 1 when all that was sent to that rank is known to have arrived, or left for a local one. */
int qn__peer_all_arrived(qn__peer *peer);
/* Says one of the last things to be said: that it is not heard, that it is expelled, or goodbye.
 * Further messages are thrown away. */
void qn__transport_send_last(qn__socket_transport *transport, uint32_t to, uint32_t type,
                             const char *text);

/* receive.c: reads what is there; the thread's answer to EPOLLIN. */
void qn__peer_read(qn__socket_transport *transport, qn__peer *peer, double now);

/* liveness.c */
/* The connection has ended with this errno (0: its end was read). */
void qn__watch_ended(qn__socket_transport *transport, qn__peer *peer, int error, double now);
/* Whether this process has slept since the last call. */
void qn__watch_self(qn__socket_transport *transport, double now);
/* Pings and silences; every `period`. */
void qn__watch_others(qn__socket_transport *transport, double now);
void qn__watch_pong(qn__peer *peer, const qn__head *head);
uint64_t qn__watch_nanoseconds(double seconds);

#endif
