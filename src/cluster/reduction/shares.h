/* Divides the chunks of a reduction among ranks by their costs. */
#ifndef QN_CLUSTER_REDUCTION_SHARES_H
#define QN_CLUSTER_REDUCTION_SHARES_H

#include "cluster/reduction/reduction.h"

/* The cost of a rank that gets chunks only where all others have this cost, too. */
#define QN__COST_OUT ((qn__cost){.start = 1e12, .each = 1e12})

/* Fills count[0 .. ranks-1], whose sum is `chunks`. It minimises the largest cost[r].start +
 * count[r] * cost[r].each; a rank with count 0 costs nothing. A rank whose cost is unknown (each 0)
 * counts as the median of the known ones; if all are unknown, all are equal. `has` excludes ranks
 * where it is 0 (NULL: none). The result is the same on every machine for the same arguments: only
 * IEEE operations, ties by rank. */
void qn__shares(const qn__cost *cost, const unsigned char *has, uint32_t ranks, uint32_t chunks,
                uint32_t *count);

#endif
