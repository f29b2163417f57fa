/* How the chunks of a reduction are shared out among ranks, by what they cost each. */
#ifndef QN_CLUSTER_REDUCTION_SHARES_H
#define QN_CLUSTER_REDUCTION_SHARES_H

#include "cluster/reduction/reduction.h"

/* Fills count[0 .. ranks-1], whose sum is `chunks`, so that the greatest of cost[r].start +
 * count[r] * cost[r].each is as small as it can be; a rank with count 0 costs nothing. Ranks whose
 * cost is not known (each 0) count as the median of the known ones, all alike where none is; `has`
 * may exclude ranks (NULL: none). The same on every machine for the same arguments: only IEEE
 * operations, ties by number. */
void qn__shares(const qn__cost *cost, const unsigned char *has, uint32_t ranks, uint32_t chunks,
                uint32_t *count);

#endif
