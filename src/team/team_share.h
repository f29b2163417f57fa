/* The grains of one job, shared among the members of this rank; and their sums, over all ranks. For
 * the files of src/team only. */
#ifndef QN_TEAM_TEAM_SHARE_H
#define QN_TEAM_TEAM_SHARE_H

#include "team/team_reduction.h"
#include <stdatomic.h>

/* One job while its grains are shared among the members of this rank. */
typedef struct qn__shared {
    qn__team *team;
    qn__share share;
    const qn__team_member
        *direct;           /* collects directly into the reduction's part; NULL: no member does */
    int64_t *into;         /* the sums of all members */
    uint64_t adding;       /* members that take part, and then add their sums */
    qn__chunk range;       /* the pieces that are being shared */
    atomic_uint bad_piece; /* the first that failed */
} qn__shared;

/* How a training of this batch is shared. */
qn__share qn__team_training(qn__team *team, const qn__batch *batch);

/* Computes the pieces of a range with the members of `set`. The results are then in the words of
 * the members that have sums, at job->into or at the places of the job; tallies are in the members'
 * parts. QN_DEVICE: a member was lost, and results with it, or what else failed is uncertain.
 * Another failure is that of the first piece. */
qn_status qn__team_share(qn__shared *job, uint64_t set, qn__chunk range, qn_error *err);

/* Fetches the sums that the workers of `set` have kept, because the job is `joint`. QN_DEVICE: a
 * member was lost, and its sums with it. */
qn_status qn__team_collect(qn__shared *job, uint64_t set, qn_error *err);

/* Computes all pieces and adds up their sums: by this rank (`alone`) or by all ranks, whose
 * reduction the caller ends (qn__team_reduction_end). *sums are then the sums, in memory of the
 * team, *tally their tally. *sums is NULL if the job is `joint` and each device has the total.
 * QN_DEVICE: to be repeated. */
qn_status qn__team_sum(qn__team *team, const qn__share *share, uint64_t set, int alone,
                       const int64_t **sums, qn__tally *tally, qn_error *err);

/* Adds the tallies of the members' parts. */
qn_status qn__team_add_parts(const qn__team *team, qn__tally *tally, qn_error *err);

#endif
