/* Groups and directions of items without labels: k-means and principal components.
 *
 * Results do not depend on the number of threads and ranks or on the processor (docs/exactness.md,
 * section 20). Values are float32 and are not scaled. Missing values and columns of categories are
 * refused; labels and weights of items are not used. */
#ifndef QUERN_STRUCTURE_H
#define QUERN_STRUCTURE_H

#include <quern/data.h>
#include <quern/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Fill with qn_pca_options_init, then change members. Read during the call only. */
typedef struct qn_pca_options {
    size_t size;               /* sizeof(qn_pca_options) */
    uint32_t components;       /* at most the number of features [1] */
    int threads;               /* at most 4096; 0: every core the process may use [0] */
    const qn_compute *compute; /* as in qn_statistics_options, for the sums [NULL] */
} qn_pca_options;

/* Sets `size`, and every other member to its default, which is given in brackets. */
QN_API void qn_pca_options_init(qn_pca_options *options);

/* Principal components: the eigenvectors of the covariance of the features, from the greatest
 * eigenvalue down. In each the component that is greatest in magnitude is positive.
 *
 * axes: `components` x features doubles. variances and means: as many doubles as there are
 * features: all eigenvalues, and the means of the columns. `options` may be NULL: the defaults.
 * After a failure the arrays are undefined. Fails with QN_USAGE (above 4,096 features, data, more
 * components than features), QN_MEMORY, or as qn_statistics_make. Takes time in proportion to the
 * third power of the features: some seconds for 500. */
QN_API qn_status qn_pca_fit(const qn_data *data, const qn_pca_options *options, double *axes,
                            double *variances, double *means, qn_error *err);

/* Fill with qn_kmeans_options_init, then change members. Read during the call only. */
typedef struct qn_kmeans_options {
    size_t size;         /* sizeof(qn_kmeans_options) */
    uint32_t clusters;   /* 1 to the number of items, at most 65,536 [8] */
    uint32_t iterations; /* at most [300] */
    /* It ends when the sum of the squares of the distances by which the centres move is at most
     * this times the mean of the columns' variances; from 0 [1e-4] */
    double tolerance;
    uint64_t seed;             /* of the first centres [1] */
    int threads;               /* at most 4096; 0: every core the process may use [0] */
    const qn_compute *compute; /* ranks divide the items; devices are CPUs [NULL] */
} qn_kmeans_options;

/* Sets `size`, and every other member to its default, which is given in brackets. */
QN_API void qn_kmeans_options_init(qn_kmeans_options *options);

typedef struct qn_kmeans_result {
    size_t size;         /* sizeof(qn_kmeans_result), set by the caller */
    uint32_t iterations; /* times that the centres moved */
    int converged;       /* 1: within the tolerance; 0: `iterations` were too few */
    double inertia;      /* sum of the squares of the items' distances from their centres */
} qn_kmeans_result;

/* k-means: centres such that each item belongs to the nearest one, and each is the mean of its
 * items. The first ones are drawn by greedy k-means++. `options` may be NULL: the defaults.
 *
 * centres: clusters x features doubles. cluster: a number for each item, the index of its centre.
 * After a failure they and *out are undefined. Fails with QN_USAGE (options, data), QN_MEMORY, or
 * as qn_statistics_make. */
QN_API qn_status qn_kmeans_fit(const qn_data *data, const qn_kmeans_options *options,
                               double *centres, uint32_t *cluster, qn_kmeans_result *out,
                               qn_error *err);

/* Sets cluster[i] to the index of the nearest of the centres (`clusters` x features doubles) for
 * each item; the first of equally near ones. This process alone computes it. Fails with QN_USAGE
 * (data, threads) or QN_MEMORY. */
QN_API qn_status qn_kmeans_assign(const qn_data *data, uint32_t clusters, const double *centres,
                                  int threads, uint32_t *cluster, qn_error *err);

#ifdef __cplusplus
}
#endif

#endif
