/* Rounds as a machine of states that never waits: cluster.c waits for it, and the tests drive it
 * under a made-up transport.
 *
 * One thread, the caller, begins rounds and makes steps of adding up; the transport's thread brings
 * messages and the view's decisions. What they share is under `lock`; the caller gives it back
 * while it adds (`working`), and then neither reports nor adopts anything until it has looked up
 * from that, at most some 64 KiB later. */
#ifndef QN_CLUSTER_REDUCTION_REDUCTION_STATE_H
#define QN_CLUSTER_REDUCTION_REDUCTION_STATE_H

#include "cluster/membership/view.h"
#include "cluster/reduction/layout.h"
#include "cluster/reduction/reduction.h"
#include "cluster/transport/shared_memory.h"
#include <pthread.h>

/* Types of messages; numbers are {view's stamp, round, ...} but for the last four. */
enum {
    QN__MESSAGE_PART = 32, /* extra: signature; number[2]: piece, [3]: its contributions. One
                           machine's sum of it */
    QN__MESSAGE_TOTAL,     /* the same; all machines' sum of it */
    QN__MESSAGE_SUPPLY,    /* number[2]: first word. A total that this machine lacks */
    QN__MESSAGE_FAIL,      /* extra: rank that failed. Body: a qn_error */
    QN__MESSAGE_DONE,      /* extra: exit code. All is written */
    QN__MESSAGE_ASK,       /* number[0]: stamp. Still there? */
    QN__MESSAGE_ANSWER     /* number[0]: stamp. Yes */
};

/* What ranks wish, told with the words of each round. */
enum { QN__WISH_STOP, QN__WISH_SAVE, QN__WISHES };

typedef enum qn__going_on {
    QN__ROUND_WAITS, /* nothing to do before the bell rings */
    QN__ROUND_AGAIN, /* something was done; there may be more */
    QN__ROUND_MORE,  /* there are further units for this rank */
    QN__ROUND_TOTAL, /* the total is there */
    QN__ROUND_FAILED /* see `error` */
} qn__going_on;

typedef struct qn__ranges {
    qn__units *range;
    uint32_t count, room;
} qn__ranges;

/* A message that waits for the caller. */
typedef struct qn__queued_message {
    struct qn__queued_message *next;
    uint32_t from;
    qn__head head;
    qn__message_buffer *body;
} qn__queued_message;

/* A total that is kept. */
typedef struct qn__held {
    uint64_t round, words;
    int64_t *total;
} qn__held;

/* The plan of the last change of the view: about round `finished` + 1. */
typedef struct qn__plan {
    uint64_t finished;
    int known; /* some rank has begun it, so its units are known */
    qn__round round;
    uint64_t generation; /* of totals, from here on */
    int done, code;      /* the run is over */
    qn__ranks has;       /* members that have the total of `finished` */
} qn__plan;

/* Where ranks are: those with the same number of `machine` share `common`. */
typedef struct qn__place {
    const uint32_t *machine; /* of each rank */
    const uint32_t *local;   /* number of each rank in its machine's `common` */
    uint32_t *alone, *zero;  /* what these two are in the first round */
} qn__place;

/* The ranks that take part. */
typedef struct qn__group {
    uint64_t number; /* of the view */
    uint64_t stamp;  /* number and ballot: two that are cut from each other may give one number to
                        two views */
    qn__ranks members;
    unsigned char *has;  /* of each rank: is a member, for qn__shares */
    unsigned char *gone; /* of each rank: 0, or 1 + a qn__going */
} qn__group;

/* The round that this rank is in. */
typedef struct qn__current {
    uint64_t finished; /* number of the last one that is; they count from 1 */
    int begun;         /* the next one has been */
    qn__round round;
    uint64_t words; /* with the trailer */
    uint32_t signature;
    int64_t *part;
    qn__ranges own; /* that this rank computes; the first `taken` have been handed out */
    uint32_t taken;
    uint32_t added;   /* units that the part holds, by the caller's count */
    qn__ranges ahead; /* the same of the round behind this one, whose total is known elsewhere:
                         those of this one stay, for whoever has that total may die */
    uint32_t *share;  /* room for the shares of all ranks */
} qn__current;

/* Totals that are kept. */
typedef struct qn__totals {
    qn__held held[2]; /* by round & 1 */
    uint64_t generation;
} qn__totals;

/* Adding up, in this view. */
typedef struct qn__adding {
    uint64_t final_from; /* words from here on are as they will be */
    int ready;           /* pieces are set */
    int arrived, done_here, behind;
    int64_t *into;
    qn__layout layout;
    uint64_t laid_for; /* the view that the layout is for */
    qn__piece *piece;
    uint32_t pieces, pieces_left;
    uint32_t *slot; /* of a piece's number: its place in `piece`, + 1 */
    const int64_t **source;
    uint64_t supplied; /* words, of a total that this machine lacks */
} qn__adding;

/* The view changes. */
typedef struct qn__change {
    int frozen;  /* from the report until the next view */
    int working; /* the caller adds, without the lock */
    int owed;    /* a report, by the caller when it looks up */
    uint64_t ballot;
    atomic_int alarm; /* somebody waits for the caller to look up */
    double noticed;   /* when the first loss was; 0: nothing is under way */
    double held_up;   /* when the first loss since the last total was; 0: there was none */
} qn__change;

typedef struct qn__mailbox {
    qn__queued_message *first, *spare;
} qn__mailbox;

typedef struct qn__costs {
    qn__cost *own;                  /* of each kind */
    qn__cost *all[QN__ROUND_KINDS]; /* of each rank, as of the last total */
} qn__costs;

typedef struct qn__wishes {
    atomic_int wish[QN__WISHES];
    int stopping, saving; /* some rank wished it in a round that has its total */
} qn__wishes;

/* The end of the run, or of this rank's part in it. */
typedef struct qn__ending {
    int outcast; /* told to go: 1; cannot reach enough: 2 */
    int over, code, shut;
    qn__ranks answered;
    uint64_t asked;  /* stamp + 1 */
    uint64_t asking; /* how many times so far, which an answer repeats */
    double asked_at, patience;
} qn__ending;

/* By count, of rounds of so many words in a view. */
typedef struct qn__counted {
    uint64_t stamp, words, out, in;
} qn__counted;

typedef struct qn__rounds {
    pthread_mutex_t lock;
    qn__transport *transport;
    qn__view *view;
    qn__common *common;
    uint32_t ranks, rank;
    const char *const *name; /* of each rank, for messages */
    qn__place place;
    qn__group group;
    qn__current current;
    qn__plan plan;
    qn__totals totals;
    qn__adding adding;
    qn__change change;
    qn__mailbox mailbox;
    qn__costs costs;
    qn__wishes wishes;
    qn__ending ending;
    qn_error error; /* of a kind that stays */
    char note[512]; /* for on_note; empty: none */
    qn__rank_traffic traffic;
    qn__counted counted;
} qn__rounds;

/* `common` is private; until qn__rounds_share, no two ranks share memory. */
qn_status qn__rounds_open(qn__rounds *r, qn__transport *transport, uint32_t ranks, uint32_t rank,
                          const char *const *name, double patience, qn__common *common,
                          qn_error *err);
/* Drops all buffers and the view; what comes from now on is ignored. Before the transport ends. */
void qn__rounds_shut(qn__rounds *r);
/* Once the transport has ended. */
void qn__rounds_close(qn__rounds *r);
/* After the first round: ranks with equal machine[] add up in `common` from here on, being rank
 * local[] of it. All arrays and what was there before have to stay. */
void qn__rounds_share(qn__rounds *r, const uint32_t *machine, const uint32_t *local,
                      qn__common *common);

/* The transport's events. */
void qn__rounds_message(qn__rounds *r, uint32_t from, const qn__head *head,
                        qn__message_buffer *body);
void qn__rounds_gone(qn__rounds *r, uint32_t rank, qn__going how);
void qn__rounds_expelled(qn__rounds *r, uint32_t by, const char *why);
void qn__rounds_restored(qn__rounds *r, uint32_t rank, double seconds, int damaged);
void qn__rounds_tick(qn__rounds *r, double now);

/* 0: the view is changing, again later. 1: begun. -1: see `error`. */
int qn__rounds_begin(qn__rounds *r, const qn__round *round);
int qn__rounds_units(qn__rounds *r, qn__units *range);
void qn__rounds_final(qn__rounds *r, uint64_t first, uint64_t count, uint32_t units);
/* The part holds so many units: to be said before the first qn__rounds_step, and again after
 * QN__ROUND_MORE. */
void qn__rounds_added(qn__rounds *r, uint32_t units);
qn__going_on qn__rounds_step(qn__rounds *r);
/* The caller's words of the part and of the last total. */
int64_t *qn__rounds_part(qn__rounds *r);
const int64_t *qn__rounds_total(qn__rounds *r);

void qn__rounds_fail(qn__rounds *r, qn_error *why);
/* This rank takes no part any more, and tells the others so. 0: it took none before. */
int qn__rounds_withdraw(qn__rounds *r);
/* After that: 1 when no other rank can finish the run, as far as is known by now. */
int qn__rounds_deserted(qn__rounds *r);
/* Forget what somebody wished: to stop, to save. */
void qn__rounds_go_on(qn__rounds *r);
void qn__rounds_saved(qn__rounds *r);
void qn__rounds_finish(qn__rounds *r, int code);
/* -1: not decided; 0: this rank speaks, and all are there; 1: over, or failed; 2: this rank has to
 * leave. */
int qn__rounds_over(qn__rounds *r, int *code);

/* What a round sends and receives on this rank. */
void qn__rounds_count(qn__rounds *r, uint64_t words, uint64_t *out, uint64_t *in);

/* --------------------------------------------------------------- between the files of this folder.
 *
 * All under the lock. */

/* Words in front of the caller's: costs and wishes. */
static inline uint64_t qn__rounds_trailer(uint32_t ranks) {
    return (QN__WISHES + 2 * (uint64_t)ranks + 7) / 8 * 8;
}

/* Names the round in this view. */
static inline unsigned long long qn__rounds_tag(const qn__rounds *r) {
    /* Another number for another round or view, so nearly surely that it counts as such. */
    return (unsigned long long)(r->group.stamp * UINT64_C(0x9e3779b97f4a7c15) +
                                (r->current.finished + 1) * UINT64_C(0xbf58476d1ce4e5b9));
}

static inline const uint32_t *qn__rounds_machines(const qn__rounds *r, uint64_t round) {
    return round <= 1 ? r->place.alone : r->place.machine;
}

static inline void qn__rounds_ring(qn__rounds *r) { qn__common_ring(r->common, r->common->index); }

static inline qn__desk *qn__rounds_desk(const qn__rounds *r, uint32_t rank) {
    return &r->common->desk[r->place.local[rank]];
}

/* This machine's members, of the layout that is made. */
static inline uint32_t qn__rounds_here(const qn__rounds *r, const uint32_t **rank) {
    const qn__layout *l = &r->adding.layout;
    const uint32_t home = l->home[r->rank];
    *rank = l->order + l->start[home];
    return l->start[home + 1] - l->start[home];
}

/* progress.c */
void qn__rounds_changed(qn__rounds *r); /* adding begins anew */
/* Adds to ranges of this rank. 0 when memory is short: `error` is set. */
int qn__rounds_give(qn__rounds *r, qn__ranges *to, uint32_t first, uint32_t count);
void qn__rounds_finished(qn__rounds *r, int64_t *total, uint64_t generation);

/* failure.c */
void qn__rounds_set_error(qn__rounds *r, qn_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* This rank's failure becomes everybody's. */
void qn__rounds_fail_all(qn__rounds *r, qn_error *why);
/* Another rank's, from its message. */
void qn__rounds_take_failure(qn__rounds *r, const qn__head *head, const qn__message_buffer *body);
/* Sends a message to every other member. */
void qn__rounds_tell(qn__rounds *r, const qn__head *head, const void *body, uint64_t bytes);
void qn__rounds_done(qn__rounds *r, int code);

/* mailbox.c */
void qn__mailbox_keep(qn__rounds *r, uint32_t from, const qn__head *head, qn__message_buffer *body);
/* Removes messages of rounds that are finished and of views that are past. */
void qn__mailbox_sort(qn__rounds *r);
void qn__mailbox_drop(qn__rounds *r, qn__queued_message **at);

/* pieces.c */
/* The layout for round `round` of so many words in this view. */
void qn__rounds_lay_out(qn__rounds *r, uint64_t round);
/* Sets the pieces of the round; 0 when memory is short. */
int qn__rounds_prepare(qn__rounds *r);
void qn__rounds_ring_others(qn__rounds *r);

/* supply.c */
void qn__rounds_send_supplies(qn__rounds *r);
/* One step of a total that this machine lacks. */
qn__going_on qn__rounds_take_supply(qn__rounds *r);

/* report.c, recovery.c: the view's calls, `user` being the rounds. */
void qn__rounds_stop(void *user, uint64_t ballot);
void qn__rounds_report(qn__rounds *r);
qn__message_buffer *qn__rounds_plan(void *user, const qn__ranks *members,
                                    qn__message_buffer *const *report);
void qn__rounds_adopt(void *user, uint64_t number, const qn__ranks *members,
                      const qn__message_buffer *plan);
void qn__rounds_outcast(void *user, int others, const char *why);

#endif
