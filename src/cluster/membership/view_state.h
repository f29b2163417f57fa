/* The inside of a view, for the files of this folder. */
#ifndef QN_CLUSTER_MEMBERSHIP_VIEW_STATE_H
#define QN_CLUSTER_MEMBERSHIP_VIEW_STATE_H

#include "cluster/membership/view.h"

/* Messages. number[0] and number[1] of the head name the sender's view, number[2] a ballot; of
 * QN__VIEW_DECIDED the view is the one before. */
enum {
    QN__VIEW_ASK = QN__VIEW_FIRST_TYPE, /* promise me this ballot, and report */
    QN__VIEW_REPORT,                    /* promised; what was accepted before; the report */
    QN__VIEW_PROPOSE,                   /* this should be the next view */
    QN__VIEW_ACCEPTED,                  /* it may */
    QN__VIEW_DECIDED,                   /* it is */
    QN__VIEW_REFUSED,                   /* ballot: the higher one that was promised */
    QN__VIEW_LOST,                      /* rank number[2] is gone for me; extra: qn__going */
    QN__VIEW_BEHIND,                    /* you are in a later view than I am */
    QN__VIEW_FORSAKE,                   /* I take you for gone: do not count my death as certain */
    QN__VIEW_OUT                        /* I take no part any more */
};

/* A view that was proposed. */
typedef struct qn__proposal {
    uint64_t origin; /* the ballot that first proposed it; 0: none */
    qn__ranks members;
    qn__message_buffer *plan;
    qn__message_buffer *wire; /* all of it, as it travels */
} qn__proposal;

/* What this rank does when it is the one that asks. */
typedef struct qn__asking {
    uint64_t ballot;             /* 0: it does not ask */
    qn__ranks targets;           /* who was asked, this rank among them */
    qn__ranks answered;          /* with a report */
    qn__message_buffer **report; /* by rank */
    uint64_t best; /* the highest ballot under which anybody had accepted anything, and that */
    qn__proposal carried; /* is decided, if anything is */
    int proposing;        /* second phase */
    qn__proposal value;
    qn__ranks accepted;
    int decided; /* enough have accepted `value` */
} qn__asking;

struct qn__view {
    qn__transport *transport;
    qn__view_calls calls;
    uint32_t ranks, rank;
    double patience;
    int out, changing;

    /* The view this rank is in: a number, and the proposal that it was (0 for the first), because
     * two that were cut from each other may have given one number to two views, only one of which
     * can ever do anything. */
    uint64_t number, id, last_id;
    qn__ranks members;
    qn__proposal now; /* kept for those who are behind */

    /* For good: who takes no part for this rank, whoever decides; whose end is certain; and who was
     * silent or took this rank for gone, so that its end never will be. */
    qn__ranks gone, certain, doubted;
    /* What others said of that. */
    qn__ranks *gone_of, *certain_of;
    qn__ranks expelled;

    /* Of the next view, as one of those who are asked. */
    uint64_t promised, highest;
    int reported; /* what was promised */
    uint64_t accepted;
    qn__proposal value;
    uint64_t *asked; /* the last ballot that each rank asked for */
    double since;    /* when something last went on */

    qn__asking ask;
};

/* proposal.c */
uint64_t qn__view_set_bytes(const qn__view *view);
void qn__view_put_u64(unsigned char *to, uint64_t value);
uint64_t qn__view_get_u64(const unsigned char *from);
void qn__view_put_set(const qn__view *view, unsigned char *to, const qn__ranks *set);
void qn__view_get_set(const qn__view *view, const unsigned char *from, qn__ranks *set);
/* Fills `wire` from the rest; 0 when memory is short. */
int qn__proposal_pack(const qn__view *view, qn__proposal *proposal);
/* From `wire`, of which a hold is taken; 0 when it makes no sense or memory is short. */
int qn__proposal_unpack(const qn__view *view, qn__message_buffer *wire, qn__proposal *proposal);
void qn__proposal_copy(qn__proposal *to, const qn__proposal *from);
void qn__proposal_drop(qn__proposal *proposal);
/* A buffer with these bytes; NULL when memory is short. */
qn__message_buffer *qn__view_buffer(const qn__view *view, const void *bytes, uint64_t count);
/* Who is gone, and who certainly, as this rank sees it. */
qn__message_buffer *qn__view_losses(const qn__view *view);
/* Takes the hold of the body. */
void qn__view_send(qn__view *view, uint32_t to, uint32_t type, uint64_t ballot,
                   qn__message_buffer *body);

/* member.c */
/* 1 when a member takes no part for this rank any more that did before. */
int qn__view_lose(qn__view *view, uint32_t rank);
/* That rank takes no part for this one any more, and is reported so. */
void qn__view_forsake(qn__view *view, uint32_t rank);
/* All that are not in `members` are forsaken: none of them may ever count this rank's death. */
void qn__view_accept(qn__view *view, uint64_t ballot, const qn__proposal *value);
void qn__view_outcast(qn__view *view, int others, const char *why);
/* Nothing of a lower ballot any more; the report is asked for. */
void qn__view_promise(qn__view *view, uint64_t ballot);

/* proposer.c */
void qn__ask_begin(qn__view *view);
void qn__ask_end(qn__view *view);
void qn__ask_own(qn__view *view, qn__message_buffer *report);
void qn__ask_report(qn__view *view, uint32_t from, uint64_t ballot, const qn__message_buffer *body);
void qn__ask_accepted(qn__view *view, uint32_t from, uint64_t ballot,
                      const qn__message_buffer *body);
void qn__ask_refused(qn__view *view, uint64_t ballot);
/* Goes on as far as it can. */
void qn__ask_settle(qn__view *view);
void qn__ask_tick(qn__view *view, double now);

/* ------------------------------------------------------------------------------- sets of ranks */

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
