/* Reductions as a state machine that never waits. cluster.c waits for it; tests drive it with a
 * simulated transport.
 *
 * Two threads use it. The caller's thread begins reductions and adds; the transport's thread
 * delivers messages and decisions of the view. `lock` protects what they share. The caller releases
 * it while it adds (`working`), and neither reports nor adopts a view until that is done, at most
 * some 64 KiB later. */
#ifndef QN_CLUSTER_REDUCTION_REDUCTION_STATE_H
#define QN_CLUSTER_REDUCTION_REDUCTION_STATE_H

#include "cluster/membership/view.h"
#include "cluster/reduction/layout.h"
#include "cluster/reduction/reduction.h"
#include "cluster/transport/shared_memory.h"
#include <pthread.h>

/* Types of messages. The numbers are {stamp of the view, reduction, ...} except for the last
 * four. */
enum {
    QN__MESSAGE_PART = QN__BULK_FIRST, /* extra: signature; number[2]: piece, [3]: its
                                          contributions. The sum of one machine */
    QN__MESSAGE_TOTAL = QN__BULK_LAST, /* the same; the sum of all machines */
    QN__MESSAGE_SUPPLY,     /* number[2]: first word. A total that the receiver does not have */
    QN__MESSAGE_FAIL,       /* extra: rank that failed. Body: a qn_error */
    QN__MESSAGE_DONE,       /* extra: exit code. All files are written */
    QN__MESSAGE_PROBE,      /* number[0]: stamp. Is the receiver still in this view? */
    QN__MESSAGE_PROBE_REPLY /* number[0]: stamp. It is */
};

/* Requests of ranks, summed with the words of each reduction. */
enum { QN__REQUEST_STOP, QN__REQUEST_SAVE, QN__REQUEST_JOIN, QN__REQUESTS };

typedef enum qn__progress {
    QN__REDUCER_WAITS, /* nothing to do before the next wake-up */
    QN__REDUCER_AGAIN, /* something was done; there may be more */
    QN__REDUCER_MORE,  /* there are further chunks for this rank */
    QN__REDUCER_TOTAL, /* the total is complete */
    QN__REDUCER_FAILED /* see `error` */
} qn__progress;

typedef struct qn__ranges {
    qn__chunk_range *range;
    uint32_t count, capacity;
} qn__ranges;

/* A message that waits for the caller. */
typedef struct qn__queued_message {
    struct qn__queued_message *next;
    uint32_t from;
    qn__head head;
    qn__message_buffer *body;
} qn__queued_message;

/* A total that is kept for ranks that have not finished its reduction. */
typedef struct qn__held {
    uint64_t reduction, words;
    int64_t *total;
} qn__held;

/* The plan of the last change of the view, for reduction `finished` + 1. */
typedef struct qn__plan {
    uint64_t finished;
    int known; /* a rank has begun it, so its chunks are known */
    qn__reduction reduction;
    uint64_t generation; /* of totals, from here on */
    int done, code;      /* the run is over */
    qn__ranks has;       /* members that have the total of `finished` */
} qn__plan;

/* Placement of the ranks: those with the same `machine` share `common`. */
typedef struct qn__place {
    const uint32_t *machine; /* of each rank */
    const uint32_t *local;   /* index of each rank in its machine's `common` */
    uint32_t *alone, *zero;  /* their values in the first reduction */
} qn__place;

/* The members. */
typedef struct qn__group {
    uint64_t number; /* of the view */
    uint64_t stamp;  /* number and ballot: after a partition both sides may use one number for two
                        views */
    qn__ranks members;
    qn__ranks later;     /* those that joined a run that had begun: others write before them */
    unsigned char *has;  /* of each rank: is a member, for qn__shares */
    unsigned char *gone; /* of each rank: 0, or 1 + a qn__loss_kind */
} qn__group;

/* The current reduction. */
typedef struct qn__current {
    uint64_t finished; /* number of the last finished reduction; they count from 1 */
    int begun;         /* the next one has begun */
    qn__reduction reduction;
    uint64_t words; /* with the trailer */
    uint32_t signature;
    int64_t *part;
    qn__ranges own; /* that this rank computes; the first `taken` have been handed out */
    uint32_t taken;
    uint32_t added; /* chunks in the part, as the caller counts them */
    qn__ranges
        ahead; /* ranges of the next reduction, while this rank still lacks the total of this one.
                  `own` is kept until the total arrives, because the rank that has it may die */
    uint32_t *share; /* for the shares of all ranks */
} qn__current;

/* Totals that are kept. */
typedef struct qn__totals {
    qn__held held[2]; /* by reduction & 1 */
    uint64_t generation;
} qn__totals;

/* Progress of the sum, in this view. */
typedef struct qn__adding {
    uint64_t final_from; /* words from here on are complete */
    int ready;           /* pieces are set */
    int arrived, done_here, behind;
    int64_t *into;
    qn__layout layout;
    uint64_t laid_for; /* the view that the layout is for */
    qn__piece *piece;
    uint32_t pieces, pieces_left;
    uint32_t *slot; /* by the piece's number: its index in `piece`, + 1 */
    const int64_t **source;
    uint64_t supplied; /* words received of a total that this machine does not have */
} qn__adding;

/* A change of the view. */
typedef struct qn__change {
    int frozen;  /* from the report until the next view */
    int working; /* the caller adds, without the lock */
    int owed;    /* a report, by the caller when it has the lock again */
    uint64_t ballot;
    atomic_int alarm; /* another thread waits for the caller */
    double noticed;   /* time of the first loss; 0: no change in progress */
    double held_up;   /* time of the first loss since the last total; 0: none */
} qn__change;

typedef struct qn__mailbox {
    qn__queued_message *first, *spare;
} qn__mailbox;

typedef struct qn__costs {
    qn__cost *own;                      /* of each kind */
    qn__cost *all[QN__REDUCTION_KINDS]; /* of each rank, as of the last total */
} qn__costs;

typedef struct qn__requests {
    atomic_int requested[QN__REQUESTS];
    int stopping, saving, joining; /* a rank requested it in a reduction that is complete */
} qn__requests;

/* The end of the run, or of this rank's part in it. */
typedef struct qn__ending {
    int leaving; /* evicted or withdrawn: 1; no quorum: 2 */
    int over, code, shut;
    qn__ranks answered;
    uint64_t probed; /* stamp + 1 */
    uint64_t probe;  /* sequence number of the probe, which the reply repeats */
    double probed_at, patience;
} qn__ending;

/* Calculated bytes of reductions of so many words in a view, at 8 bytes a word. */
typedef struct qn__counted {
    uint64_t stamp, words, out, in;
} qn__counted;

typedef struct qn__reducer {
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
    qn__requests requests;
    qn__ending ending;
    qn_error error; /* permanent */
    char note[512]; /* for on_note; empty: none */
    qn__rank_traffic traffic;
    qn__counted counted;
} qn__reducer;

/* `present`: the ranks that take part, NULL for all; the others count as ranks that have left.
 * `common` is private; until qn__reducer_share, no two ranks share memory. */
qn_status qn__reducer_open(qn__reducer *r, qn__transport *transport, uint32_t ranks, uint32_t rank,
                           const qn__ranks *present, const char *const *name, double patience,
                           qn__common *common, qn_error *err);
/* Drops all buffers and the view; later messages are ignored. Called before the transport is
 * closed. */
void qn__reducer_shut(qn__reducer *r);
/* Called after the transport is closed. */
void qn__reducer_close(qn__reducer *r);
/* After the first reduction: ranks with equal machine[] share `common` from here on, with index
 * local[]. The caller keeps all arrays and the memory from before. */
void qn__reducer_share(qn__reducer *r, const uint32_t *machine, const uint32_t *local,
                       qn__common *common);

/* The transport's events. */
void qn__reducer_message(qn__reducer *r, uint32_t from, const qn__head *head,
                         qn__message_buffer *body);
void qn__reducer_gone(qn__reducer *r, uint32_t rank, qn__loss_kind how);
void qn__reducer_evicted(qn__reducer *r, uint32_t by, const char *why);
void qn__reducer_add_note(qn__reducer *r, const char *text);
void qn__reducer_restored(qn__reducer *r, uint32_t rank, double seconds, int damaged);
void qn__reducer_tick(qn__reducer *r, double now);

/* 0: the view is changing, call again. 1: begun. -1: see `error`. */
int qn__reducer_begin(qn__reducer *r, const qn__reduction *reduction);
int qn__reducer_chunks(qn__reducer *r, qn__chunk_range *range);
void qn__reducer_final(qn__reducer *r, uint64_t first, uint64_t count, uint32_t chunks);
/* The number of chunks in the part: set before the first qn__reducer_step, and again after
 * QN__REDUCER_MORE. */
void qn__reducer_added(qn__reducer *r, uint32_t chunks);
qn__progress qn__reducer_step(qn__reducer *r);
/* The caller's words of the part and of the last total. */
int64_t *qn__reducer_part(qn__reducer *r);
const int64_t *qn__reducer_total(qn__reducer *r);

void qn__reducer_fail(qn__reducer *r, qn_error *why);
/* This rank leaves, and notifies the others. 0: it had left before. */
int qn__reducer_withdraw(qn__reducer *r);
/* After that: 1 if, as far as is known, no other rank can finish the run. */
int qn__reducer_is_last(qn__reducer *r);
/* Clears a request: to stop, to save, to let a rank in. */
void qn__reducer_go_on(qn__reducer *r);
void qn__reducer_saved(qn__reducer *r);
void qn__reducer_let_in(qn__reducer *r);
void qn__reducer_finish(qn__reducer *r, int code);
/* -1: undecided; 0: this rank is the writer, and all members answered; 1: over, or failed; 2: this
 * rank has to leave. */
int qn__reducer_over(qn__reducer *r, int *code);

/* Bytes that a reduction would send and receive on this rank at 8 bytes a word. */
void qn__reducer_count(qn__reducer *r, uint64_t words, uint64_t *out, uint64_t *in);

/* ---------------------------------------------------------------------------------------- internal
 *
 * Called under the lock. */

/* Words in front of the caller's: requests and costs. */
static inline uint64_t qn__reducer_trailer(uint32_t ranks) {
    return (QN__REQUESTS + 2 * (uint64_t)ranks + 7) / 8 * 8;
}

/* The rank that writes: the lowest member, of those that were there from the beginning where there
 * are any. */
static inline uint32_t qn__reducer_writer(const qn__reducer *r) {
    qn__ranks early = r->group.members;
    for (uint32_t i = 0; i < QN__MAX_RANKS / 64; ++i)
        early.word[i] &= ~r->group.later.word[i];
    const uint32_t writer = qn__ranks_first(&early);
    return writer < QN__MAX_RANKS ? writer : qn__ranks_first(&r->group.members);
}

/* Identifies the reduction and the view. */
static inline unsigned long long qn__reducer_tag(const qn__reducer *r) {
    /* A hash: different reductions and views get different tags with near certainty. */
    return (unsigned long long)(r->group.stamp * UINT64_C(0x9e3779b97f4a7c15) +
                                (r->current.finished + 1) * UINT64_C(0xbf58476d1ce4e5b9));
}

static inline const uint32_t *qn__reducer_machines(const qn__reducer *r, uint64_t reduction) {
    return reduction <= 1 ? r->place.alone : r->place.machine;
}

static inline void qn__reducer_wake(qn__reducer *r) {
    qn__common_wake(r->common, r->common->index);
}

static inline qn__rank_state *qn__reducer_rank_state(const qn__reducer *r, uint32_t rank) {
    return &r->common->rank_state[r->place.local[rank]];
}

/* The members on this machine, as of the current layout. */
static inline uint32_t qn__reducer_here(const qn__reducer *r, const uint32_t **rank) {
    const qn__layout *l = &r->adding.layout;
    const uint32_t home = l->home[r->rank];
    *rank = l->order + l->start[home];
    return l->start[home + 1] - l->start[home];
}

/* progress.c */
void qn__reducer_changed(qn__reducer *r); /* restarts the sum */
/* Adds to ranges of this rank. 0 if out of memory: `error` is set. */
int qn__reducer_add_range(qn__reducer *r, qn__ranges *to, uint32_t first, uint32_t count);
void qn__reducer_finished(qn__reducer *r, int64_t *total, uint64_t generation);

/* failure.c */
void qn__reducer_set_error(qn__reducer *r, qn_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* This rank's failure becomes the failure of all ranks. */
void qn__reducer_fail_all(qn__reducer *r, qn_error *why);
/* The failure of another rank, from its message. */
void qn__reducer_take_failure(qn__reducer *r, const qn__head *head, const qn__message_buffer *body);
/* Sends a message to every other member. */
void qn__reducer_broadcast(qn__reducer *r, const qn__head *head, const void *body, uint64_t bytes);
void qn__reducer_done(qn__reducer *r, int code);

/* mailbox.c */
void qn__mailbox_keep(qn__reducer *r, uint32_t from, const qn__head *head,
                      qn__message_buffer *body);
/* Removes messages of finished reductions and of earlier views. */
void qn__mailbox_sort(qn__reducer *r);
void qn__mailbox_drop(qn__reducer *r, qn__queued_message **at);

/* pieces.c */
/* The layout for reduction `reduction` of so many words in this view. */
void qn__reducer_lay_out(qn__reducer *r, uint64_t reduction);
/* Sets the pieces of the reduction; 0 if out of memory. */
int qn__reducer_prepare(qn__reducer *r);
void qn__reducer_wake_others(qn__reducer *r);

/* supply.c */
void qn__reducer_send_supplies(qn__reducer *r);
/* One step of receiving a total that this machine does not have. */
qn__progress qn__reducer_take_supply(qn__reducer *r);

/* report.c, recovery.c: the callbacks of the view; `user` is the reducer. */
void qn__reducer_stop(void *user, uint64_t ballot);
void qn__reducer_report(qn__reducer *r);
qn__message_buffer *qn__reducer_plan(void *user, const qn__ranks *members,
                                     qn__message_buffer *const *report);
void qn__reducer_adopt(void *user, uint64_t number, const qn__ranks *members,
                       const qn__message_buffer *plan);
void qn__reducer_leave(void *user, int others, const char *why);

#endif
