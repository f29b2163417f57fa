/* The position of this rank: the ranges that it computes, and the end of a reduction. */
#include "cluster/reduction/reduction_state.h"

#include "base/memory.h"
#include <string.h>

static const double PICOSECONDS = 1e12;

void qn__reducer_changed(qn__reducer *r) {
    r->adding.ready = r->adding.arrived = r->adding.done_here = 0;
    r->adding.final_from = r->current.words;
    r->adding.supplied = 0;
}

int qn__reducer_add_range(qn__reducer *r, qn__ranges *to, uint32_t first, uint32_t count) {
    if (count == 0)
        return 1;
    if (to->count == to->capacity) {
        const uint32_t capacity = to->capacity ? 2 * to->capacity : 16;
        qn__chunk_range *grown = qn__alloc(capacity, sizeof *grown, &r->error);
        if (!grown)
            return 0;
        if (to->count)
            memcpy(grown, to->range, to->count * sizeof *grown);
        qn__free(to->range);
        to->range = grown;
        to->capacity = capacity;
    }
    to->range[to->count++] = (qn__chunk_range){first, count};
    return 1;
}

static double seconds_of(int64_t word) { return (double)word / PICOSECONDS; }

/* The reduction that a loss interrupted is complete: records how long that took. */
static void made_up(qn__reducer *r) {
    const double seconds = r->transport->calls->now(r->transport) - r->change.held_up;
    if (r->change.held_up <= 0)
        return;
    r->traffic.lost_at = r->change.held_up;
    r->traffic.longest = seconds > r->traffic.longest ? seconds : r->traffic.longest;
    r->change.held_up = 0;
}

void qn__reducer_finished(qn__reducer *r, int64_t *total, uint64_t generation) {
    qn__cost *cost = r->costs.all[r->current.reduction.kind];
    ++r->current.finished;
    r->totals.held[r->current.finished & 1] =
        (qn__held){r->current.finished, r->current.words, total};
    atomic_store(&r->common->rank_state[r->common->index].finished_in, generation);
    r->requests.stopping |= total[QN__REQUEST_STOP] > 0;
    r->requests.saving |= total[QN__REQUEST_SAVE] > 0;
    r->requests.joining |= total[QN__REQUEST_JOIN] > 0;
    for (uint32_t i = 0; i < r->ranks; ++i)
        cost[i] = (qn__cost){seconds_of(total[QN__REQUESTS + 2 * i]),
                             seconds_of(total[QN__REQUESTS + 1 + 2 * i])};
    r->current.begun = r->adding.behind = 0;
    const qn__ranges past = r->current.own;
    r->current.own = r->current.ahead; /* empty, unless this rank was behind */
    r->current.ahead = past;
    r->current.ahead.count = r->current.taken = 0;
    ++r->traffic.reductions;
    made_up(r);
    qn__mailbox_sort(r);
}
