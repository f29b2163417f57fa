/* What the parts of the real post share. */
#ifndef QN_CLUSTER_POST_STATE_H
#define QN_CLUSTER_POST_STATE_H

#include "cluster/post_open.h"
#include "cluster/ranks.h"

#include <pthread.h>

enum {
    QN__STAGE_BYTES = 16384, /* of small messages, read in one go */
    QN__FILES_MOST = 16,     /* file descriptors of one rank that wait to be taken */
    QN__POOL_CLASSES = 33    /* parcels with room for 2^k bytes, k = 0 .. 32 */
};

/* The post's own messages. */
enum {
    QN__MAIL_PING = 1, /* number[0]: the sender's clock in nanoseconds */
    QN__MAIL_PONG,     /* number[0]: that of the ping; number[1]: this sender's clock */
    QN__MAIL_FILE,     /* with a file descriptor */
    QN__MAIL_BYE,
    QN__MAIL_EXPEL, /* body: why */
    QN__MAIL_DEAF,  /* this sender has not heard the receiver for rank_timeout */
    QN__MAIL_OWN = 16
};

/* A message on its way out. */
typedef struct qn__letter {
    struct qn__letter *next;
    unsigned char head[QN__FRAME_BYTES];
    qn__parcel *body;
    uint64_t sent; /* bytes of head and body that have left */
    int file;      /* goes with the first byte; -1: none */
} qn__letter;

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
    int broken;  /* the errno that a send met */
    int waiting; /* the thread is told when the socket takes more */
    qn__letter *first, *last;

    atomic_int expelled; /* by this rank: nobody is told of it any more */

    /* The thread's alone. */
    int gone;           /* told of, or nobody wants to know */
    int ended;          /* it has said its last word */
    double heard;       /* when bytes came last */
    double best;        /* seconds of the quickest ping so far */
    size_t stage_have;  /* bytes in stage */
    uint64_t body_have; /* bytes of body that are there */
    qn__head head;
    qn__parcel *body;                       /* of a message that is not whole yet */
    int loose[QN__FILES_MOST], loose_count; /* descriptors whose message is not whole yet */
    unsigned char *stage;

    _Atomic double ahead; /* their clock minus this one's, seconds */
} qn__peer;

typedef struct qn__sockets_post {
    qn__post base;
    uint32_t ranks, rank;
    double rank_timeout, period; /* period: between pings, and between ticks */
    qn__peer *peer;
    qn__post_events events;
    int poll_file, wake_file;
    pthread_t thread;
    int started;
    atomic_int ending;
    atomic_int woken;
    double slept;  /* when this process was last found to have slept; the thread's alone */
    double looked; /* when the thread was last awake, by the clock that runs on in a suspend */

    pthread_mutex_t pool_lock;
    qn__parcel *pool[QN__POOL_CLASSES];
    qn__letter *letters;

    pthread_mutex_t taken_lock; /* of this group */
    pthread_cond_t taken_more;
    struct qn__taken {
        int file[QN__FILES_MOST], count, gone;
    } * taken;

    atomic_uint_fast64_t bytes_out, bytes_in;
} qn__sockets_post;

static inline qn__sockets_post *qn__sockets_of(qn__post *post) { return (qn__sockets_post *)post; }

/* post_pool.c */
qn__parcel *qn__pool_parcel(qn__post *post, uint64_t bytes);
void qn__pool_recycle(qn__post *post, qn__parcel *parcel);
qn__letter *qn__pool_letter(qn__sockets_post *post);
void qn__pool_take_letter(qn__sockets_post *post, qn__letter *letter);
void qn__pool_release(qn__sockets_post *post);

/* post_send.c */
void qn__mail_send(qn__post *post, uint32_t to, const qn__head *head, qn__parcel *body);
/* The same with a descriptor, which this closes. 0 when it could not be queued. */
int qn__mail_queue(qn__sockets_post *post, uint32_t to, const qn__head *head, qn__parcel *body,
                   int file);
/* Sends what the socket takes; the thread's answer to EPOLLOUT. */
void qn__mail_push(qn__sockets_post *post, qn__peer *peer);
/* 1 when nothing waits to be sent to that rank. */
int qn__mail_empty(qn__peer *peer);
/* Throws away what is queued, but for the rest of a letter that has begun to leave, and what comes
 * later, but for an expulsion. */
void qn__mail_forget(qn__sockets_post *post, qn__peer *peer);
/* Closes the socket; nothing is sent any more. */
void qn__mail_close(qn__sockets_post *post, qn__peer *peer);
/* Says one of the last things to be said: that it is not heard, that it is expelled, or goodbye.
 * Further messages are thrown away. */
void qn__mail_last(qn__sockets_post *post, uint32_t to, uint32_t type, const char *text);

/* post_receive.c: reads what is there; the thread's answer to EPOLLIN. */
void qn__mail_read(qn__sockets_post *post, qn__peer *peer, double now);

/* post_watch.c */
/* Tells of a rank that is gone, once. */
void qn__watch_gone(qn__sockets_post *post, qn__peer *peer, qn__going how);
/* The connection has ended with this errno (0: its end was read). */
void qn__watch_ended(qn__sockets_post *post, qn__peer *peer, int error, double now);
/* Whether this process has slept since the last call. */
void qn__watch_self(qn__sockets_post *post, double now);
/* Pings and silences; every `period`. */
void qn__watch_others(qn__sockets_post *post, double now);
void qn__watch_pong(qn__peer *peer, const qn__head *head);
uint64_t qn__watch_nanoseconds(double seconds);

#endif
