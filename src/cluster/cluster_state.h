/* The members of qn_cluster. */
#ifndef QN_CLUSTER_CLUSTER_STATE_H
#define QN_CLUSTER_CLUSTER_STATE_H

#include "base/text/text.h"
#include "cluster/agreement.h"
#include "cluster/cluster.h"
#include "cluster/run_history.h"
#include "cluster/reduction/reduction_state.h"
#include "cluster/rendezvous/door.h"
#include "cluster/rendezvous/rendezvous.h"
#include <sys/types.h>

/* Memory of reductions. Those before the last rank joined are kept for what others have put into
 * their heap, such as data sets. */
typedef struct qn__commons {
    qn__common common[2]; /* private, for the first reduction; shared by the machine */
    struct qn__commons *before;
} qn__commons;

struct qn_cluster {
    pid_t process; /* that joined; a child has neither its threads nor its connections */
    qn__rendezvous rendezvous;
    qn__reducer slot[2]; /* one is in use; the other is made while a rank joins */
    qn__reducer *_Atomic reducer;
    qn__commons *commons;
    pthread_t forgets; /* the thread that frees memory of past reductions */
    int forgetting;
    int shared; /* the second of these is in use */
    int quiet;  /* notes are not reported, because this rank leaves old connections */
    double patience;
    qn__text agreed; /* what the ranks have compared last */
    qn__text_differences *differ;
    qn__door *door;    /* on rank 0, while ranks may join */
    double next_guest; /* time before which nobody is let in */
    uint32_t *machine, *local;
    const char **name; /* of each rank: "rank 2 on host-b" */
    char (*name_text)[96];
    void *user;
    qn_note_fn on_note;
    uint64_t reserved;
    uint64_t id;                     /* qn__cluster_id */
    pthread_mutex_t listening;       /* for the listeners, while they are called too */
    qn__cluster_listener *listeners; /* or NULL */
    uint64_t tables;                 /* that were numbered */
    qn__run_history history;
    int spread, door_was_open;  /* 1: qn__cluster_remember, qn__cluster_open_door were called */
    pthread_mutex_t supplying;  /* for bytes of tables that go through the door */
    pthread_rwlock_t connected; /* written while the connections are renewed */
};

/* 0 in a child (fork) of the process that joined. Such a child must not use locks, memory or
 * connections of the cluster, which may be in any state. There qn__cluster_check_process fails. `c`
 * may be NULL. */
int qn__cluster_is_ours(const qn_cluster *c);
qn_status qn__cluster_check_process(const qn_cluster *c, qn_error *err);

/* Opens the reducer that is not in use, and memory for it. */
qn_status qn__cluster_prepare(qn_cluster *c, qn__transport *transport, const qn__ranks *present,
                              qn__commons **commons, qn_error *err);
/* Begins to receive, and makes the first reduction. */
qn_status qn__cluster_start(qn_cluster *c, qn_error *err);
void qn__commons_close(qn__commons *commons);
/* Frees the memory of reductions before the last rank joined, meanwhile. */
void qn__cluster_forget(qn_cluster *c);
/* Before the old connections end; nothing comes from them any more. */
void qn__cluster_renew_listeners(qn_cluster *c);

/* On a rank that joins: it does not take part. `well`: the others need it no more. QN_CLUSTER, with
 * the first reason. */
qn_status qn__cluster_stay_out(qn_cluster *c, int well, const char *why, qn_error *err);

/* For tests, set before ranks join. 1: ranks of one machine do not share memory. */
extern int qn__cluster_apart;

#endif
