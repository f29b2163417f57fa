/* Exact sums of the members of clusters, kept while items change their cluster. */
#ifndef QN_STATISTICS_FIT_KMEANS_SUMS_H
#define QN_STATISTICS_FIT_KMEANS_SUMS_H

#include "num/exact_sum.h"
#include "statistics/fit/kmeans.h"

#define QN__NO_CLUSTER UINT32_MAX

typedef struct qn__kmeans_sums {
    uint32_t clusters;
    qn__exact_sum *sum; /* clusters x features */
    uint64_t *members;
    uint32_t *counted; /* of each item: the cluster whose sums have it, or QN__NO_CLUSTER */
} qn__kmeans_sums;

/* QN_MEMORY; to be released in any case. */
qn_status qn__kmeans_sums_create(qn__kmeans_sums *s, const qn__kmeans *k, uint32_t clusters,
                                 qn_error *err);
void qn__kmeans_sums_release(qn__kmeans_sums *s);

/* Updates members and sums. Each empty cluster gets the farthest item of another one (20.6).
 * Returns the number of items whose cluster has changed. */
uint64_t qn__kmeans_count(qn__kmeans *k, qn__kmeans_sums *s);

/* The means of the members. *distance: the sum of the squares by which the centres move. QN_MEMORY.
 */
qn_status qn__kmeans_move(qn__kmeans *k, qn__kmeans_sums *s, double *centres, double *distance,
                          qn_error *err);

#endif
