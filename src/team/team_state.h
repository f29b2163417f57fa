/* The state of a team, for the files of src/team only.
 *
 * Steps are counted from the last load. A *version* of the state is the number of steps that it
 * includes. `top` is the version that the job wants; each copy of the state has the number of its
 * version. A member with an older version than a step needs is updated from one that has it,
 * through `spare`. When no member has the newest version any more, the team returns to the newest
 * one available and repeats the steps from its log. */
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
#include "team/team_growth.h"

#define QN__NO_VERSION UINT64_MAX
#define QN__BIT(member) (UINT64_C(1) << (member))

/* Steps that can be repeated. */
enum { QN__LOG = 16384 };

/* Losses and correct answers of an epoch up to a version. */
typedef struct qn__account {
    qn__tally sum;
    uint32_t epoch;
    int open; /* 0: before the first step of an epoch */
} qn__account;

/* A state in host memory. */
typedef struct qn__copy {
    qn__state state;
    uint64_t version;
    qn__account account;
} qn__copy;

typedef struct qn__logged {
    qn__batch batch;
    qn__permutation order; /* target of batch.order, unless that is NULL */
    qn__update update;
} qn__logged;

typedef struct qn__team_member {
    const qn__device_table *device;
    uint32_t index;
    qn__worker *worker; /* NULL: lost, or never opened */
    char name[64], title[128], note[256];
    int can_be_lost; /* it can be lost; the CPU cannot */
    int lost, optional;
    uint64_t version;
    qn__account account;
    int owes; /* steps may be under way: flush before anything else */
    qn_error error;
    uint32_t failed_at; /* first piece of the call that failed */
    int64_t *sums;      /* of a shared job, `capacity` words; allocated when first needed */
    uint64_t capacity;
    int has_sums;   /* sums of this job are in them */
    qn__tally part; /* the tally of what it computed of the job */
    /* For the report. */
    uint64_t grains, items, steps;
    double busy, training; /* seconds in calls: all, and those in steps */
    double *cores;
    int core_count;
    qn__traffic traffic;
    qn__meter meter;
    uint32_t track;
} qn__team_member;

/* The current reduction (team_reduction.h). */
typedef struct qn__team_reduction_state {
    int open; /* it has begun, and its result is not yet in the state */
    qn__reduction_kind kind;
    uint64_t words;
    qn__chunk_range *range; /* this rank's ranges so far */
    uint32_t ranges, capacity;
    int64_t *part;
    qn__tally tally;      /* of the part */
    const int64_t *total; /* NULL: not available yet */
    qn_error failure;     /* of a chunk of this rank */
    uint32_t failed_at;   /* that chunk */
    int blank;            /* the part holds words of an earlier reduction */
    int whole;            /* the share is computed in one go, so its time counts */
    double sending;       /* seconds of that in which sums were sent early */
    uint32_t chunks;      /* of the last share, and its time; 0: not measured */
    double seconds;
    int alike; /* for benchmarks: reports equal costs on all ranks, so that shares are equal */
    qn__rank_cost cost[QN__REDUCTION_KINDS];
    uint64_t counted_out, counted_in;
    double lost_at; /* time of the last loss that is in the trace */
} qn__team_reduction_state;

/* Versions of the state. */
typedef struct qn__history {
    uint64_t top;        /* requested steps */
    uint64_t version;    /* of the state before the next step; QN__NO_VERSION: no copy is left */
    uint64_t done;       /* the newest version that existed */
    qn__account account; /* up to `version` */
    qn__account told;    /* reported to the caller */
    qn__copy host;       /* the caller's arrays */
    qn__copy spare;      /* the team's own; allocated when first needed */
    qn__logged *log;     /* ring of log_space entries; that of version v at v % log_space */
    uint32_t log_space;
    double kept_at;      /* time at which the newest state was last safe */
    double save_seconds; /* seconds of a save; 0: unknown */
    uint64_t repeated;
} qn__history;

/* How grains are shared among the members. */
typedef struct qn__scheduling {
    qn__queue queue, pieces, host; /* of a step's grains, of apply's pieces, of host jobs */
    int queues;                    /* number of queues created */
    /* The function whose speeds `host` has. */
    qn_status (*measured)(void *, void *, uint32_t, uint32_t, int64_t *, qn_error *);
    qn__chooser chooser;
    int fixed;     /* by given shares: all members take part */
    uint64_t used; /* members that compute host jobs; 0: all */
    uint64_t (*pick)(void *user, uint64_t step);
    void *pick_user;
} qn__scheduling;

/* Members whose devices add up their sums themselves (team_joint.h). */
typedef struct qn__team_joint {
    uint64_t set; /* for which it was tried last */
    qn__joint *open;
    const qn__device_table *device; /* of `open` */
    uint32_t tries;
    int refused, told;
    qn_error why; /* of its last failure */
} qn__team_joint;

typedef struct qn__reports {
    qn_worker_report *report;
    qn_note_fn note;
    void *user;
    qn__trace *trace;
    uint32_t track;
} qn__reports;

/* How one job is shared. A *piece* is what members and ranks share out: some grains. */
typedef struct qn__share {
    qn__job job;
    qn__reduction_kind reduction;
    qn__queue *queue;        /* has the speeds of such jobs */
    const char *span, *unit; /* in the trace */
    uint32_t grains, pieces;
    uint32_t each;  /* grains of a piece, but for the last */
    uint32_t most;  /* grains of a device's call; whole pieces, or all of them in one */
    uint64_t words; /* of its sums */
    uint64_t items; /* that the tally of all ranks must have */
    int rounds;     /* 1: only the nearest floats of the sums are used */
    int apart;      /* 1: the words of pieces are apart; 0: they are added */
    int tallied;    /* APPLY: the tally is asked for */
    int joint;      /* 1: the devices add up the sums themselves if they can */
} qn__share;

/* A step of training: its batch, the one that follows if it is known, and its update. */
typedef struct qn__step {
    const qn__batch *batch, *next;
    const qn__update *update;
} qn__step;

/* An update that is made when the state is there. */
typedef struct qn__kept_update {
    struct qn__kept_update *next;
    qn__update update;
    int64_t sums[];
} qn__kept_update;

/* A team that has joined, and does not have the state yet (team_follow.c). */
typedef struct qn__following {
    int on;
    qn__arrival arrival;
    qn__kept_update *first, *last;
    uint64_t count;
} qn__following;

struct qn__team {
    const qn__program *program;
    const qn__kernel_job *kernel; /* of its host jobs; NULL: they have none */
    qn_cluster *cluster;          /* NULL: no other ranks */
    qn__team_reduction_state reduction;
    qn__portion portion; /* of its machine that this rank uses */
    uint32_t count;
    qn__team_member *member;
    qn__drivers *drivers;
    qn__scheduling sharing;
    qn__team_joint joint;
    qn__history history;
    qn__following following;
    qn__reports reports;
    qn__bring_fn bring; /* NULL: all items are here */
    void *bring_user;
    qn__growth *growth; /* of sequences; NULL: none yet */
};

static inline int qn__many(uint64_t set) { return (set & (set - 1)) != 0; }

qn_status qn__team_no_worker(qn_error *err);

/* Makes space for so many words in member->sums; old ones may be lost. 0: out of memory. */
int qn__team_member_space(qn__team_member *member, uint64_t words, qn_error *err);

/* Clears the members' errors, runs `body` for the set, then settles. */
qn_status qn__team_do(qn__team *team, uint64_t set, void (*body)(void *context, int member),
                      void *context, qn_error *err);

/* After members ran: those whose device failed are lost, which is QN_OK while one is left; another
 * failure is the team's. */
qn_status qn__team_settle(qn__team *team, uint64_t set, qn_error *err);

/* team_step.c: does steps, or repeats lost ones, until the state has version `wanted`. The step
 * that leads to the newest version may be `asked`, in the caller's memory; NULL: that of the log.
 */
qn_status qn__team_reach(qn__team *team, uint64_t wanted, const qn__step *asked, qn_error *err);

/* team_follow.c */
/* Of a team that follows: the state is there afterwards. QN_DEVICE: a member was lost. */
qn_status qn__team_catch_up(qn__team *team, qn_error *err);
/* Of a team that follows: keeps the update of a step (*kept 1), and makes up for all if the state
 * is there. *kept 0: the members make it as usual. */
qn_status qn__team_keep_update(qn__team *team, const qn__update *update, const int64_t *sums,
                               int *kept, qn_error *err);
/* Forgets kept updates. */
void qn__team_follow_end(qn__team *team);

/* team_version.c */
/* Waits for the steps of all members but those in `but`. QN_DEVICE when one was lost. */
qn_status qn__team_wait(qn__team *team, uint64_t but, qn_error *err);
/* Updates the members of the set to the team's version. QN_DEVICE if one was lost. */
qn_status qn__team_update_members(qn__team *team, uint64_t set, qn_error *err);
/* Saves the team's version from a member or copy that has it. QN_DEVICE if that failed. */
qn_status qn__team_save_from(qn__team *team, qn__state *state, qn_error *err);
/* Copies the team's version to the spare copy. */
qn_status qn__team_fill_spare(qn__team *team, qn_error *err);
/* Whether any member or copy has the team's version. */
int qn__team_has_version(const qn__team *team);
/* Returns to the newest version available. */
qn_status qn__team_rewind(qn__team *team, qn_error *err);
/* Records the next step in the log. */
void qn__team_log(qn__team *team, const qn__batch *batch, const qn__update *update);
qn__logged *qn__team_logged(const qn__team *team, uint64_t version);
/* Adds the part of the epoch's account to *tally that was not reported yet. */
qn_status qn__team_report_tally(qn__team *team, qn__tally *tally, qn_error *err);
qn_status qn__team_add(qn__team *team, const qn__tally *part, qn_error *err);

#endif
