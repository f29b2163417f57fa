/* Simulated ranks: the shares of ranks and the queues within them, against a simulated clock. The
 * times of computing, messages and updates are given; the code of a real run decides who computes
 * what.
 *
 * A reduction proceeds as in src/cluster: every rank computes its share and measures its cost. When
 * all have finished, the parts are added, segment by segment. Each rank then updates and begins the
 * next reduction. A rank's death is noticed one message later; the remaining ranks agree on a view
 * and divide its chunks. */
#ifndef QN_TEAM_VIRTUAL_RANKS_H
#define QN_TEAM_VIRTUAL_RANKS_H

#include "cluster/cluster.h"
#include "team/chooser.h"
#include "team/rank_cost.h"
#include "team/virtual.h"

typedef struct qn__virtual_network {
    double latency;   /* seconds of a message between machines, of any size */
    double bandwidth; /* bytes per second into a machine, and as many out of it */
    double message;   /* seconds that sending a message takes the machine */
    double local;     /* seconds of a message between ranks of a machine */
} qn__virtual_network;

/* The times of a rank, in seconds, and its work. */
typedef struct qn__virtual_spent {
    double computing, waiting, exchanging, updating, recovering;
    double chunks;    /* computed */
    double bytes_out; /* over the network: its part of the machine's bytes */
} qn__virtual_spent;

typedef struct qn__virtual_rank {
    /* Input. */
    uint32_t machine;           /* ranks of one machine are consecutive */
    qn__virtual_worker *worker; /* 1 .. 64, the caller's; rates in chunks per second */
    uint32_t workers;
    double update;  /* seconds */
    double memory;  /* bytes that it reads and writes per second when it adds */
    double pack;    /* seconds to make messages of all words; 0: copying at `memory` */
    double unpack;  /* seconds to add all words of messages; 0: adding at `memory` */
    double dies_at; /* time; 0: never */
    /* State. */
    int alive;
    double at, ready; /* its clock: the start of the reduction; the end of its share */
    uint32_t share;   /* chunks of the last reduction */
    qn__queue queue;
    qn__chooser chooser;
    qn__rank_cost cost;
    qn__virtual_spent spent;
} qn__virtual_rank;

typedef struct qn__virtual_team {
    /* Input. */
    qn__virtual_network network;
    uint64_t words; /* of a reduction */
    double word;    /* bytes of a word in a message; 0: 8 */
    double chunk;   /* bytes of a chunk's items, if each machine has an equal part of the data and
                       the other parts travel; 0: nothing travels */
    int equal;      /* 1: equal shares for all ranks; their costs are ignored */
    int lone_steps; /* 1: a rank that was the only one from the start adds nothing */
    /* State. */
    uint32_t ranks;
    qn__virtual_rank *rank;
    qn__cost *cost; /* reported by each */
    unsigned char *has;
    uint32_t *share;
    double now;  /* end of the last reduction */
    double free; /* time from which the network carries items of the next reduction */
    uint32_t deaths;
    double chunks_again; /* computed again by others after deaths */
} qn__virtual_team;

/* Allocates so many ranks, all zero; the caller fills them, then calls _ready. */
qn_status qn__virtual_team_create(uint32_t ranks, qn__virtual_team **out, qn_error *err);
/* `chunks`: of a whole reduction. */
qn_status qn__virtual_team_ready(qn__virtual_team *team, uint32_t chunks, qn_error *err);
void qn__virtual_team_free(qn__virtual_team *team);

/* One reduction. QN_CLUSTER if no rank is left. */
qn_status qn__virtual_reduction(qn__virtual_team *team, uint32_t chunks, qn_error *err);

/* Seconds from the end of the last share to the total on all live ranks. */
double qn__virtual_exchange(const qn__virtual_team *team);

#endif
