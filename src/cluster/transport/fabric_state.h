/* Members of a fabric, and what its files call of each other. */
#ifndef QN_CLUSTER_TRANSPORT_FABRIC_STATE_H
#define QN_CLUSTER_TRANSPORT_FABRIC_STATE_H

#include "cluster/transport/fabric.h"
#include "cluster/transport/socket_state.h"

/* Types of the fabric's own messages; they lie between those of reductions and of listeners. */
enum {
    QN__FABRIC_NOTICE = 40, /* extra and numbers of the message that comes. Body: its type, its
                               number, its bytes and the MAC of its body */
    QN__FABRIC_ARRIVED,     /* number[0]: of the message whose body arrived */
    QN__FABRIC_BODY,        /* number[0]: the same. Its body, by a socket */
    QN__FABRIC_LEAVE,       /* all leave the carrier */
    QN__FABRIC_STOP,        /* the sender alone does, at the end of the run */
    QN__FABRIC_PROBE,       /* number[0]: trial, [1]: messages in it */
    QN__FABRIC_ANSWER       /* number[0]: trial that has arrived */
};

/* Bodies of fewer bytes go by sockets. */
enum { QN__FABRIC_LEAST = 4096 };

/* A body on its way. It is in a list of its peer until it has arrived, and with the thread until
 * the library has ended its transfer. */
typedef struct qn__fabric_job {
    struct qn__fabric_job *next;   /* in the list of the peer */
    struct qn__fabric_job *queued; /* for the thread */
    uint32_t peer, number;
    int receives, listed, with_thread;
    qn__head head; /* of the message */
    uint64_t mac;
    qn__message_buffer *body;
    double since;
    qn__carried transfer;
} qn__fabric_job;

typedef struct qn__fabric_peer {
    int far;                       /* bodies may go there by the carrier */
    int gone;                      /* nothing is sent or delivered any more */
    int stops;                     /* it takes no more bodies of the carrier */
    qn__siphash_key own, theirs;   /* for MACs */
    uint32_t sent;                 /* number of the last message */
    qn__fabric_job *leaving, *due; /* that it has not received; that come from it */
    uint64_t trial, probes;        /* of its last trial: number, messages that came */
} qn__fabric_peer;

struct qn__fabric {
    qn__transport transport; /* first: qn__fabric_of */
    qn__transport *base;
    qn__transport_events events;
    uint32_t ranks;
    double patience;
    pthread_mutex_t delivering; /* while a handler runs; locked before all others */
    pthread_mutex_t lock;       /* for the members below */
    pthread_cond_t more;        /* for the thread: jobs, or the end */
    pthread_cond_t changed;     /* for qn__fabric_stop and qn__fabric_try */
    qn__fabric_peer *peer;
    qn__fabric_job *queue, **queue_end;
    qn__fabric_job *begun; /* transfers, of the thread alone until they are abandoned */
    qn__fabric_job *stuck; /* transfers that failed, or with ranks that were lost */
    uint32_t transfers;    /* that the thread has or will get */
    int used, left, stopping, survives;
    uint32_t lost, swept;      /* ranks that were lost; whose transfers are stuck already */
    struct qn__fabric *before; /* of those that are never freed */
    uint64_t trial, answered;  /* trials of this rank */
    char note[200];            /* why the carrier was left; empty: nothing to report */
};

static inline qn__fabric *qn__fabric_of(qn__transport *transport) {
    return (qn__fabric *)(void *)transport;
}

/* Sends by the carrier. 0: not possible; the caller sends by sockets. */
int qn__fabric_carry(qn__fabric *fabric, uint32_t to, const qn__head *head,
                     qn__message_buffer *body);
/* A message that is complete, for its handler; `delivering` is locked. */
void qn__fabric_deliver(qn__fabric *fabric, uint32_t from, const qn__head *head,
                        qn__message_buffer *body);
/* All ranks leave the carrier. `why` completes "the sums go by sockets: "; NULL: not reported. */
void qn__fabric_leave(qn__fabric *fabric, const char *why);
/* Tells the others that this rank takes no more bodies of the carrier. Under the lock. */
void qn__fabric_say_stop(qn__fabric *fabric);
/* Takes a job out of its list, under the lock; 0: it was not there. */
int qn__fabric_unlist(qn__fabric_job **list, qn__fabric_job *job);
/* Frees a job that is neither listed nor with the thread. Under the lock. */
void qn__fabric_free(qn__fabric_job *job);

#endif
