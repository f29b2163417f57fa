/* Ranks that exist on paper only: the shares of ranks and the queues within them, against a clock
 * that is made up. What computing, messages and updates take is given; who computes what is decided
 * by the code that decides it in a run.
 *
 * A reduction goes as in src/cluster: every rank computes its share and learns what it cost; when
 * all are done the parts are added up, segment by segment; then each rank updates, and begins with
 * the next reduction. A rank that dies is noticed a message later; those left agree, and share out
 * what it had computed. */
#ifndef QN_TEAM_VIRTUAL_RANKS_H
#define QN_TEAM_VIRTUAL_RANKS_H

#include "cluster/cluster.h"
#include "team/chooser.h"
#include "team/rank_cost.h"
#include "team/virtual.h"

typedef struct qn__virtual_network {
    double latency;   /* seconds of a message between machines, however short */
    double bandwidth; /* bytes a second into a machine, and as many out of it */
    double message;   /* seconds that a message takes the machine that sends it */
    double local;     /* seconds of a message between ranks of a machine */
} qn__virtual_network;

/* How the time of a rank is spent, in seconds, and what it did. */
typedef struct qn__virtual_spent {
    double computing, waiting, exchanging, updating, recovering;
    double chunks;    /* computed */
    double bytes_out; /* over the network, its part of what its machine sends */
} qn__virtual_spent;

typedef struct qn__virtual_rank {
    /* Given. */
    uint32_t machine;           /* those of one machine follow one another */
    qn__virtual_worker *worker; /* 1 .. 64, the caller's; rates in chunks a second */
    uint32_t workers;
    double update;  /* seconds */
    double memory;  /* bytes that it reads and writes in a second when it adds up */
    double dies_at; /* moment; 0: never */
    /* How it goes. */
    int alive;
    double at, ready; /* its clock: the beginning of the reduction; the end of its share */
    uint32_t share;   /* chunks of the last reduction */
    qn__queue queue;
    qn__chooser chooser;
    qn__rank_cost cost;
    qn__virtual_spent spent;
} qn__virtual_rank;

typedef struct qn__virtual_team {
    /* Given. */
    qn__virtual_network network;
    uint64_t words; /* of a reduction */
    int equal;      /* 1: the same share for all, whatever they cost */
    int lone_steps; /* 1: a rank that is the only one from the beginning adds nothing up */
    /* How it goes. */
    uint32_t ranks;
    qn__virtual_rank *rank;
    qn__cost *cost; /* that each has told */
    unsigned char *has;
    uint32_t *share;
    double now; /* the last reduction's end */
    uint32_t deaths;
    double chunks_again; /* computed by others after deaths */
} qn__virtual_team;

/* Room for so many ranks, all zero; the caller fills them, then calls _ready. */
qn_status qn__virtual_team_create(uint32_t ranks, qn__virtual_team **out, qn_error *err);
/* `chunks`: of a whole reduction. */
qn_status qn__virtual_team_ready(qn__virtual_team *team, uint32_t chunks, qn_error *err);
void qn__virtual_team_free(qn__virtual_team *team);

/* One reduction. QN_CLUSTER when nobody is left. */
qn_status qn__virtual_reduction(qn__virtual_team *team, uint32_t chunks, qn_error *err);

/* Seconds between the last rank's share and the total at all, with the ranks that are alive. */
double qn__virtual_exchange(const qn__virtual_team *team);

#endif
