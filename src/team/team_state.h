/* What a team is made of: for the files of src/team alone.
 *
 * Steps are counted from the last load. A *version* of the state is the number of steps that it has
 * seen; `top` is that of the job, and everything that holds a state says which version it is. A
 * member at an older version than a step needs is brought up to date from one that has it, by way
 * of `spare`. When nobody has the newest version any more, the team goes back to the newest that
 * there is and does the steps from there again, which it keeps a log of. */
#ifndef QN_TEAM_TEAM_STATE_H
#define QN_TEAM_TEAM_STATE_H

#include "cluster/cluster.h"
#include "num/sums.h"
#include "team/chooser.h"
#include "team/drivers.h"
#include "team/meter.h"
#include "team/portion.h"
#include "team/rank_cost.h"
#include "team/team.h"
#include <stdatomic.h>

#define QN__NO_VERSION UINT64_MAX
#define QN__BIT(member) (UINT64_C(1) << (member))

/* Steps that can be done again. */
enum { QN__LOG = 16384 };

/* Loss and right answers of an epoch up to a version. */
typedef struct qn__account {
    qn__tally sum;
    uint32_t epoch;
    int open; /* 0: no step of any epoch yet */
} qn__account;

/* A state in the host's memory. */
typedef struct qn__copy {
    qn__state state;
    uint64_t version;
    qn__account account;
} qn__copy;

typedef struct qn__logged {
    qn__batch batch;
    qn__permutation order; /* batch.order points here, or is NULL */
    qn__update update;
} qn__logged;

typedef struct qn__mate {
    const qn__device_table *device;
    uint32_t index;
    qn__worker *worker; /* NULL: lost, or never there */
    char name[64], title[128], note[256];
    int mortal; /* it can be lost; the CPU cannot */
    int lost, optional;
    uint64_t version;
    qn__account account;
    int owes; /* steps may be under way: flush before anything else */
    qn_error error;
    uint32_t failed_at; /* first grain or piece of the call that failed */
    int64_t *sums;      /* of a shared step; made when first needed */
    int has_sums;       /* something was collected into them in this step */
    qn__tally part;     /* what goes with them; in apply the tally of its pieces */
    /* For the report. */
    uint64_t grains, items, steps;
    double busy, training; /* seconds in calls: all, and those in steps */
    double *cores;
    int core_count;
    qn__traffic traffic;
    qn__meter meter;
    uint32_t track;
} qn__mate;

/* The reduction under way (team_reduction.h). */
typedef struct qn__team_reduction_state {
    int open; /* it was begun, and what came of it is not yet in the state */
    qn__reduction_kind kind;
    uint64_t words;
    qn__chunk_range *range; /* this rank's so far */
    uint32_t ranges, room;
    int64_t *part;
    qn__tally tally;      /* of the part */
    const int64_t *total; /* NULL: not there yet */
    qn_error failure;     /* of a chunk of this rank */
    uint32_t failed_at;   /* which */
    int blank;            /* the part holds what it held in an earlier reduction */
    int whole;            /* the share is computed in one go: its time counts */
    double sending;       /* seconds of that in which sums left early */
    uint32_t chunks;      /* of the last share, and its time; 0: it does not count */
    double seconds;
    int alike; /* for benchmarks: tells that all ranks cost the same, so that shares are equal */
    qn__rank_cost cost[QN__REDUCTION_KINDS];
    uint64_t counted_out, counted_in;
    double lost_at; /* moment of the last loss that the trace tells of */
} qn__team_reduction_state;

/* Versions of the state. */
typedef struct qn__history {
    uint64_t top;     /* steps asked for */
    uint64_t version; /* of the state that the next step begins on; QN__NO_VERSION: nobody has it */
    uint64_t done;    /* the newest version that there was */
    qn__account account; /* up to `version` */
    qn__account told;    /* what the caller was reported of the epoch */
    qn__copy host;       /* the caller's arrays */
    qn__copy spare;      /* the team's own; made when first needed */
    qn__logged *log;     /* ring of log_room; that of version v at v % log_room */
    uint32_t log_room;
    double kept_at;      /* moment at which the newest state was last safe */
    double save_seconds; /* that a save takes, as far as is known */
    uint64_t repeated;
} qn__history;

/* How the grains are shared among the members. */
typedef struct qn__scheduling {
    qn__queue queue, pieces; /* of a step's grains, of apply's pieces */
    int queues;              /* that were begun */
    qn__chooser chooser;
    int fixed; /* by given shares: all takes part */
    uint64_t (*pick)(void *user, uint64_t step);
    void *pick_user;
} qn__scheduling;

typedef struct qn__reports {
    qn_worker_report *report;
    qn_note_fn note;
    void *user;
    qn__trace *trace;
    uint32_t track;
} qn__reports;

/* The call under way. */
typedef struct qn__call {
    const qn__batch *asked, *asked_next; /* by the caller, in its own memory */
    const qn__batch *batch, *next;
    const qn__update *update;
    const qn__state *state;
    const qn__mate *direct; /* collects into the reduction's part itself; NULL: nobody does */
    int64_t *into;          /* the sums of all */
    const int64_t *summed;  /* the same, or the total of all ranks */
    uint64_t adding;        /* who takes part, and then adds them up */
    qn__chunk range;        /* the grains that are being shared */
    qn__applied *applied;
    qn__applied places; /* among ranks: in the words of the reduction */
    uint32_t piece;     /* items of a piece of apply */
    int tallied;
    uint32_t failed_at;    /* first grain or piece of the call that failed, of all members */
    atomic_uint bad_piece; /* the first that failed */
} qn__call;

struct qn__team {
    const qn__program *program;
    qn_cluster *cluster; /* NULL: no other ranks */
    qn__team_reduction_state reduction;
    qn__portion portion; /* of its machine that this rank took for its own */
    uint32_t count;
    qn__mate *mate;
    qn__drivers *drivers;
    qn__scheduling sharing;
    qn__history history;
    qn__reports reports;
    qn__call call;
};

static inline int qn__many(uint64_t set) { return (set & (set - 1)) != 0; }

/* Members that work. */
uint64_t qn__team_alive(const qn__team *team);

qn_status qn__team_no_worker(qn_error *err);

/* Runs `body` for the members of the set, their errors cleared before, and settles. */
qn_status qn__team_do(qn__team *team, uint64_t set, void (*body)(void *team, int member),
                      qn_error *err);

/* After members did something: those whose device failed are lost, which is QN_OK as long as one
 * works; another failure is the team's. */
qn_status qn__team_settle(qn__team *team, uint64_t set, qn_error *err);

/* team_step.c: does steps, again where they were lost, until the state is of version `wanted`. */
qn_status qn__team_reach(qn__team *team, uint64_t wanted, qn_error *err);

/* team_version.c */
/* Waits for the steps of all members but those in `but`. QN_DEVICE when one was lost. */
qn_status qn__team_wait(qn__team *team, uint64_t but, qn_error *err);
/* Brings the members of the set to the team's version. QN_DEVICE when one was lost. */
qn_status qn__team_freshen(qn__team *team, uint64_t set, qn_error *err);
/* Saves the team's version from whoever has it. QN_DEVICE when that failed. */
qn_status qn__team_save_from(qn__team *team, qn__state *state, qn_error *err);
/* The team's version into the spare copy. */
qn_status qn__team_fill_spare(qn__team *team, qn_error *err);
/* Whether someone, or a copy, has the team's version. */
int qn__team_has_version(const qn__team *team);
/* Goes back to the newest version that there is. */
qn_status qn__team_rewind(qn__team *team, qn_error *err);
/* Notes the next step in the log. */
void qn__team_log(qn__team *team, const qn__batch *batch, const qn__update *update);
const qn__logged *qn__team_logged(const qn__team *team, uint64_t version);
/* Adds to *tally what of the epoch's account the caller was not told yet. */
qn_status qn__team_report_tally(qn__team *team, qn__tally *tally, qn_error *err);
qn_status qn__team_add(qn__team *team, const qn__tally *part, qn_error *err);

#endif
