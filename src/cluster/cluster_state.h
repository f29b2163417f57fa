/* The members of qn_cluster. */
#ifndef QN_CLUSTER_CLUSTER_STATE_H
#define QN_CLUSTER_CLUSTER_STATE_H

#include "cluster/cluster.h"
#include "cluster/reduction/reduction_state.h"
#include "cluster/rendezvous/rendezvous.h"
#include <sys/types.h>

struct qn_cluster {
    pid_t process; /* that joined; a child has neither its threads nor its connections */
    qn__rendezvous rendezvous;
    qn__reducer reducer;
    qn__common common[2]; /* private, for the first reduction; shared by the machine */
    int shared;           /* the second is in use */
    uint32_t *machine, *local;
    const char **name; /* of each rank: "rank 2 on host-b" */
    char (*name_text)[96];
    void *user;
    qn_note_fn on_note;
    uint64_t reserved;
    uint64_t id;                   /* qn__cluster_id */
    pthread_mutex_t listening;     /* for the listener, while it is called too */
    qn__cluster_listener listener; /* `message` NULL: none is set */
    qn__ranks told;                /* the listener knows that they are gone */
};

/* 0 in a child (fork) of the process that joined. Such a child must not use locks, memory or
 * connections of the cluster, which may be in any state. There qn__cluster_check_process fails. `c`
 * may be NULL. */
int qn__cluster_is_ours(const qn_cluster *c);
qn_status qn__cluster_check_process(const qn_cluster *c, qn_error *err);

/* For tests, set before ranks join. 1: ranks of one machine do not share memory. */
extern int qn__cluster_apart;

#endif
