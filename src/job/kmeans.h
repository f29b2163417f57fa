/* The parts of k-means (docs/exactness.md 20.6) that all items take part in. */
#ifndef QN_JOB_KMEANS_H
#define QN_JOB_KMEANS_H

#include "base/threads.h"
#include "data/data.h"

/* The items of a block, whose values stay in the cache. */
enum { QN__KMEANS_BLOCK = 128 };

typedef struct qn__kmeans {
    const qn_data *data;
    qn__pool *pool;
    float *room; /* of each thread: a block's values, column after column */
    double *distances;
    double *nearest;   /* of each item: the square of its distance from its centre */
    uint32_t *cluster; /* of each item */
    int checked;       /* all values were looked at */
    int missing;       /* a value was */
} qn__kmeans;

/* `cluster` is the caller's. QN_MEMORY: nothing to release. */
qn_status qn__kmeans_create(qn__kmeans *k, const qn_data *data, int threads, uint32_t *cluster,
                            qn_error *err);
void qn__kmeans_release(qn__kmeans *k);

/* Each item's nearest of `count` centres, the first one of several. */
void qn__kmeans_assign(qn__kmeans *k, uint32_t count, const double *centres);

/* to[i] = the lesser of nearest[i] and the square of the distance of item i from a centre. */
void qn__kmeans_approach(qn__kmeans *k, const double *centre, double *to);

/* The values of an item. */
void qn__kmeans_item(const qn__kmeans *k, uint64_t item, double *values);

/* The first `count` centres (20.6), drawn with a seed. QN_MEMORY. */
qn_status qn__kmeans_begin(qn__kmeans *k, uint32_t count, uint64_t seed, double *centres,
                           qn_error *err);

#endif
