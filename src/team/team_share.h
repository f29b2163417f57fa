/* The grains of one job, shared among the members of this rank; and their sums, over all ranks. For
 * the files of src/team only. */
#ifndef QN_TEAM_TEAM_SHARE_H
#define QN_TEAM_TEAM_SHARE_H

#include "team/team_reduction.h"

/* Sets team->call.share for a training, of grains of team->call.batch. */
void qn__team_share_training(qn__team *team);

/* Computes the pieces of a range with the members of `set`. The results are then in the words of
 * the members that have sums, at team->call.into or at the places of the job; tallies are in the
 * members' parts. QN_DEVICE: a member was lost, and results with it, or what else failed is
 * uncertain. Another failure is that of the first piece. */
qn_status qn__team_share(qn__team *team, uint64_t set, qn__chunk range, qn_error *err);

/* Computes all pieces and adds up their sums: by this rank (`alone`) or by all ranks, whose
 * reduction the caller ends (qn__team_reduction_end). The sums are at team->call.summed, their
 * tally in *tally. QN_DEVICE: to be repeated. */
qn_status qn__team_sum(qn__team *team, uint64_t set, int alone, qn__tally *tally, qn_error *err);

/* Adds the tallies of the members' parts. */
qn_status qn__team_add_parts(const qn__team *team, qn__tally *tally, qn_error *err);

#endif
