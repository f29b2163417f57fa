/* A team's part of a round: what this rank adds to the sums of all (cluster/cluster.h).
 *
 * A round is begun once, and ended by its total, whatever happens to this rank's workers meanwhile:
 * when the state was lost with a worker, the ranges of the round so far are computed again from the
 * beginning, and a total that is there already stays for whoever comes back to the step. For the
 * files of src/team alone. */
#ifndef QN_TEAM_TEAM_ROUND_H
#define QN_TEAM_TEAM_ROUND_H

#include "team/team_state.h"

/* The words of a tally, in front of what else a round adds up. Losses travel as two halves, whose
 * sums cannot overflow; `failed` counts the ranks that found something that cannot be summed. */
typedef struct qn__tally_words {
    int64_t loss_high, loss_low, correct, items, failed;
    int64_t unused[3]; /* what follows begins a cache line */
} qn__tally_words;
enum { QN__TALLY_WORDS = sizeof(qn__tally_words) / sizeof(int64_t) };

/* How the units of a round are computed: adds those of the range to what is at team->round.part,
 * and their tally to team->round.tally. Where team->round.blank is 1 the part is not cleared yet:
 * qn__team_round_clear does that, or the sums are written over what stands there, and blank is set
 * to 0. QN_DEVICE: the state was lost. */
typedef qn_status (*qn__range_fn)(qn__team *team, uint64_t set, qn__units range, qn_error *err);

/* This rank's share of the round, and the total of all: begins the round unless it is under way or
 * over, computes with the members of `set`, waits for the others. The total is then at
 * team->round.total, its tally in *tally. QN_DEVICE: the state was lost, come back with it; another
 * failure of a unit, the first of all ranks', is everybody's. */
qn_status qn__team_round(qn__team *team, const qn__round *round, uint64_t set, qn__range_fn compute,
                         qn__tally *tally, qn_error *err);

/* Clears the part if it is still blank. */
void qn__team_round_clear(qn__team *team);

/* What was under way is over: the next round is another one. */
void qn__team_round_end(qn__team *team);

/* All ranks end now, and who leaves takes its words along: so all wait until all have them. */
void qn__team_round_told(qn__team *team);

/* Tells what an update takes this rank, which is a part of every step beside its grains. */
void qn__team_round_updated(qn__team *team, double seconds);

#endif
