/* A team's part in a reduction: what this rank adds to the sum of all (cluster/cluster.h).
 *
 * A reduction is begun once, and ended by its total, even if this rank's workers fail. If the state
 * was lost with a worker, all ranges of the reduction are computed again. A total that has arrived
 * is kept until the step is repeated. For the files of src/team only. */
#ifndef QN_TEAM_TEAM_REDUCTION_H
#define QN_TEAM_TEAM_REDUCTION_H

#include "team/team_state.h"

/* The words of a tally, in front of the other words of a reduction. A loss is two halves, whose
 * sums cannot overflow; `failed` counts the ranks with a value that cannot be summed. */
typedef struct qn__tally_words {
    int64_t loss_high, loss_low, correct, items, failed;
    int64_t unused[3]; /* pads to a cache line */
} qn__tally_words;
enum { QN__TALLY_WORDS = sizeof(qn__tally_words) / sizeof(int64_t) };

/* Computes the chunks of a reduction: adds those of the range to team->reduction.part, and their
 * tally to team->reduction.tally. While team->reduction.blank is 1 the part contains old words. The
 * function then calls qn__team_reduction_clear, or overwrites all words and sets blank to 0.
 * QN_DEVICE: the state was lost. */
typedef qn_status (*qn__range_fn)(void *context, uint64_t set, qn__chunk_range range,
                                  qn_error *err);

/* This rank's share of the reduction, and the total of all ranks. Begins the reduction unless it is
 * under way or finished, computes with the members of `set`, and waits for the others. The total is
 * then at team->reduction.total, its tally in *tally. QN_DEVICE: the state was lost; call again
 * with it. Another failure of a chunk is returned on all ranks, that of the first chunk. */
qn_status qn__team_reduction(qn__team *team, const qn__reduction *reduction, uint64_t set,
                             qn__range_fn compute, void *context, qn__tally *tally, qn_error *err);

/* Clears the part if it is still blank. */
void qn__team_reduction_clear(qn__team *team);

/* Ends the current reduction: the next call begins another one. */
void qn__team_reduction_end(qn__team *team);

/* All ranks end now. A rank that leaves invalidates its words, so all wait until all have them. */
void qn__team_reduction_reported(qn__team *team);

/* Reports the time of an update, which is part of every step beside its grains. */
void qn__team_reduction_updated(qn__team *team, double seconds);

#endif
