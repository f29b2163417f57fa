/* The parts of k-means (docs/exactness.md 20.6) that pass over all items. */
#ifndef QN_STATISTICS_FIT_KMEANS_H
#define QN_STATISTICS_FIT_KMEANS_H

#include "data/table/data.h"
#include "team/team.h"

/* The items of a block, whose values stay in the cache. */
enum { QN__KMEANS_BLOCK = 128 };

typedef struct qn__kmeans {
    const qn_data *data;
    qn__team *team;    /* the team of all ranks, for passes over the items */
    qn__team *own;     /* the team of this process, for the sums, which are updated for items that
                          changed their cluster */
    double *nearest;   /* of each item: the square of its distance from its centre */
    uint32_t *cluster; /* of each item */
    int checked;       /* 1: all values were checked for missing ones */
    int missing;       /* 1: a value is missing */
} qn__kmeans;

/* Makes the teams. `cluster` is the caller's. `what` and `status` as in qn__host_team_open, with
 * which it fails; then there is nothing to release. */
qn_status qn__kmeans_create(qn__kmeans *k, const qn_data *data, const qn_compute *compute,
                            const char *what, uint32_t *cluster, qn_status status, qn_error *err);
/* `status` of the work, as in qn__host_team_close; it is returned. */
qn_status qn__kmeans_release(qn__kmeans *k, const qn_compute *compute, qn_status status,
                             qn_error *err);

/* Each item's nearest of `count` centres, the first one of several, on every rank. Fails as
 * qn__team_run does, like the following. */
qn_status qn__kmeans_assign(qn__kmeans *k, uint32_t count, const double *centres, qn_error *err);

/* to[i] = the lesser of nearest[i] and the square of the distance of item i from a centre. */
qn_status qn__kmeans_approach(qn__kmeans *k, const double *centre, double *to, qn_error *err);

/* 20.6: squares of the distances of a block's items from a centre. Value f of item i is
 * values[f * QN__KMEANS_BLOCK + i]. */
void qn__kmeans_measure(uint32_t features, const float *values, const double *centre,
                        double sum[QN__KMEANS_BLOCK]);

/* The values of an item. */
void qn__kmeans_item(const qn__kmeans *k, uint64_t item, double *values);

/* The first `count` centres (20.6), drawn with a seed; incomplete where values are missing. */
qn_status qn__kmeans_begin(qn__kmeans *k, uint32_t count, uint64_t seed, double *centres,
                           qn_error *err);

#endif
