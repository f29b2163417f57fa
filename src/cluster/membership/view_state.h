/* The state of a view, private to this folder. */
#ifndef QN_CLUSTER_MEMBERSHIP_VIEW_STATE_H
#define QN_CLUSTER_MEMBERSHIP_VIEW_STATE_H

#include "cluster/membership/view.h"

/* Messages. number[0] and number[1] of the header identify the sender's view, number[2] is a
 * ballot. In QN__VIEW_DECIDED they identify the view before. */
enum {
    QN__VIEW_PREPARE = QN__VIEW_FIRST_TYPE, /* phase 1: promise this ballot, and report */
    QN__VIEW_REPORT,   /* promised; the proposal accepted before, if any; the report */
    QN__VIEW_PROPOSE,  /* phase 2: accept this as the next view */
    QN__VIEW_ACCEPTED, /* accepted */
    QN__VIEW_DECIDED,  /* the next view */
    QN__VIEW_REFUSED,  /* the higher ballot that was promised instead */
    QN__VIEW_LOST,     /* rank number[2] is gone for the sender; extra: qn__loss_kind */
    QN__VIEW_BEHIND,   /* the sender is in an earlier view than the receiver */
    QN__VIEW_SUSPECT,  /* the sender suspects the receiver, which must not count the sender's death
                          as certain */
    QN__VIEW_LEAVE     /* the sender has left the view */
};

/* A proposed view. */
typedef struct qn__proposal {
    uint64_t origin; /* the ballot that first proposed it; 0: none */
    qn__ranks members;
    qn__message_buffer *plan;
    qn__message_buffer *wire; /* serialized */
} qn__proposal;

/* The state of a proposer. */
typedef struct qn__proposer {
    uint64_t ballot;             /* 0: this rank is not the proposer */
    qn__ranks targets;           /* the ranks that PREPARE was sent to, including this one */
    qn__ranks answered;          /* with a report */
    qn__message_buffer **report; /* by rank */
    uint64_t best;        /* the highest ballot that any reporter has accepted, and its proposal: */
    qn__proposal carried; /* it is proposed again, because it may have been decided */
    int proposing;        /* second phase */
    qn__proposal value;
    qn__ranks accepted;
    int decided; /* a quorum has accepted `value` */
} qn__proposer;

struct qn__view {
    qn__transport *transport;
    qn__view_calls calls;
    uint32_t ranks, rank;
    double patience;
    int left, changing;

    /* The view that this rank is in: its number and the ballot of its proposal (0 for the first).
     * After a partition both sides may give one number to different views, of which only one can
     * have a quorum. */
    uint64_t number, id, last_id;
    qn__ranks members;
    qn__proposal now; /* the current view; kept for members that are still in an earlier one */

    /* These sets only grow. `gone`: ranks that this rank proposes to leave out. `certain`: ranks
     * that have certainly ended. `doubted`: ranks that were silent or suspected this one, whose end
     * therefore never counts as certain. */
    qn__ranks gone, certain, doubted;
    /* The same as other ranks reported it. */
    qn__ranks *gone_of, *certain_of;
    qn__ranks evicted;

    /* The next view, as acceptor. */
    uint64_t promised, highest;
    int reported; /* for the ballot that was promised */
    uint64_t accepted;
    qn__proposal value;
    uint64_t *prepared; /* the last ballot that each rank sent in PREPARE */
    double since;       /* time of the last progress */

    qn__proposer proposer;
};

/* proposal.c */
uint64_t qn__view_set_bytes(const qn__view *view);
void qn__view_put_u64(unsigned char *to, uint64_t value);
uint64_t qn__view_get_u64(const unsigned char *from);
void qn__view_put_set(const qn__view *view, unsigned char *to, const qn__ranks *set);
void qn__view_get_set(const qn__view *view, const unsigned char *from, qn__ranks *set);
/* Fills `wire` from the other members; 0 if out of memory. */
int qn__proposal_pack(const qn__view *view, qn__proposal *proposal);
/* From `wire`, to which it takes a reference; 0 if it is malformed or out of memory. */
int qn__proposal_unpack(const qn__view *view, qn__message_buffer *wire, qn__proposal *proposal);
void qn__proposal_copy(qn__proposal *to, const qn__proposal *from);
void qn__proposal_drop(qn__proposal *proposal);
/* A buffer with these bytes; NULL if out of memory. */
qn__message_buffer *qn__view_buffer(const qn__view *view, const void *bytes, uint64_t count);
/* The sets `gone` and `certain` of this rank. */
qn__message_buffer *qn__view_losses(const qn__view *view);
/* Takes over the reference to the body. */
void qn__view_send(qn__view *view, uint32_t to, uint32_t type, uint64_t ballot,
                   qn__message_buffer *body);

/* member.c */
/* Counts a rank as gone. 1 if it was a member that took part before. */
int qn__view_lose(qn__view *view, uint32_t rank);
/* Counts a rank as gone, and notifies it. */
void qn__view_suspect(qn__view *view, uint32_t rank);
/* Ranks outside `value->members` are suspected, so none of them can ever count this rank's
 * death. */
void qn__view_accept(qn__view *view, uint64_t ballot, const qn__proposal *value);
void qn__view_leave(qn__view *view, int others, const char *why);
/* Rejects lower ballots from now on, and requests the report. */
void qn__view_promise(qn__view *view, uint64_t ballot);

/* proposer.c */
void qn__proposer_begin(qn__view *view);
void qn__proposer_end(qn__view *view);
void qn__proposer_own(qn__view *view, qn__message_buffer *report);
void qn__proposer_report(qn__view *view, uint32_t from, uint64_t ballot,
                         const qn__message_buffer *body);
void qn__proposer_accepted(qn__view *view, uint32_t from, uint64_t ballot,
                           const qn__message_buffer *body);
void qn__proposer_refused(qn__view *view, uint64_t ballot);
/* Advances as far as possible. */
void qn__proposer_settle(qn__view *view);
void qn__proposer_tick(qn__view *view, double now);

/* -------------------------------------------------------------------------------- sets of ranks */

static inline qn__ranks qn__ranks_minus(const qn__ranks *a, const qn__ranks *b) {
    qn__ranks set;
    for (uint32_t i = 0; i < QN__MAX_RANKS / 64; ++i)
        set.word[i] = a->word[i] & ~b->word[i];
    return set;
}

static inline qn__ranks qn__ranks_both(const qn__ranks *a, const qn__ranks *b) {
    qn__ranks set;
    for (uint32_t i = 0; i < QN__MAX_RANKS / 64; ++i)
        set.word[i] = a->word[i] & b->word[i];
    return set;
}

static inline void qn__ranks_join(qn__ranks *a, const qn__ranks *b) {
    for (uint32_t i = 0; i < QN__MAX_RANKS / 64; ++i)
        a->word[i] |= b->word[i];
}

/* The next rank of the set after `rank`, or QN__MAX_RANKS. Begin with qn__ranks_first. */
static inline uint32_t qn__ranks_next(const qn__ranks *set, uint32_t rank) {
    for (++rank; rank < QN__MAX_RANKS; rank = (rank / 64 + 1) * 64) {
        const uint64_t rest = set->word[rank / 64] >> rank % 64;
        if (rest)
            return rank + (uint32_t)__builtin_ctzll(rest);
    }
    return QN__MAX_RANKS;
}

#define QN__EACH_RANK(r, set)                                                                      \
    for (uint32_t r = qn__ranks_first(set); r < QN__MAX_RANKS; r = qn__ranks_next(set, r))

#endif
