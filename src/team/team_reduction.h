/* A team's part of a reduction: what this rank adds to the sums of all (cluster/cluster.h).
 *
 * A reduction is begun once, and ended by its total, whatever happens to this rank's workers
 * meanwhile: when the state was lost with a worker, the ranges of the reduction so far are computed
 * again from the beginning, and a total that is there already stays for whoever comes back to the
 * step. For the files of src/team alone. */
#ifndef QN_TEAM_TEAM_REDUCTION_H
#define QN_TEAM_TEAM_REDUCTION_H

#include "team/team_state.h"

/* The words of a tally, in front of what else a reduction adds up. Losses travel as two halves,
 * whose sums cannot overflow; `failed` counts the ranks that found something that cannot be summed.
 */
typedef struct qn__tally_words {
    int64_t loss_high, loss_low, correct, items, failed;
    int64_t unused[3]; /* what follows begins a cache line */
} qn__tally_words;
enum { QN__TALLY_WORDS = sizeof(qn__tally_words) / sizeof(int64_t) };

/* How the chunks of a reduction are computed: adds those of the range to what is at
 * team->reduction.part, and their tally to team->reduction.tally. Where team->reduction.blank is 1
 * the part is not cleared yet: qn__team_reduction_clear does that, or the sums are written over
 * what stands there, and blank is set to 0. QN_DEVICE: the state was lost. */
typedef qn_status (*qn__range_fn)(qn__team *team, uint64_t set, qn__chunk_range range,
                                  qn_error *err);

/* This rank's share of the reduction, and the total of all: begins the reduction unless it is under
 * way or over, computes with the members of `set`, waits for the others. The total is then at
 * team->reduction.total, its tally in *tally. QN_DEVICE: the state was lost, come back with it;
 * another failure of a chunk, the first of all ranks', is shared by all. */
qn_status qn__team_reduction(qn__team *team, const qn__reduction *reduction, uint64_t set,
                             qn__range_fn compute, qn__tally *tally, qn_error *err);

/* Clears the part if it is still blank. */
void qn__team_reduction_clear(qn__team *team);

/* What was under way is over: the next reduction is another one. */
void qn__team_reduction_end(qn__team *team);

/* All ranks end now, and who leaves takes its words along: so all wait until all have them. */
void qn__team_reduction_reported(qn__team *team);

/* Tells what an update takes this rank, which is a part of every step beside its grains. */
void qn__team_reduction_updated(qn__team *team, double seconds);

#endif
