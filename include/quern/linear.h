/* Linear models of real labels that need only sums over the items: Ridge and Lasso.
 *
 * The sums are exact (docs/exactness.md, section 18), and the rest is computed in scalar double in
 * a stated order (section 20). So a result does not depend on the order of the items, on the number
 * of threads and ranks or on the processor. Values are float32 and are not scaled. Missing values
 * and columns of categories are refused. Weights of items are not used. */
#ifndef QUERN_LINEAR_H
#define QUERN_LINEAR_H

#include <quern/data.h>
#include <quern/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Fill with qn_linear_options_init, then change members. Read during the call only. */
typedef struct qn_linear_options {
    size_t size;               /* sizeof(qn_linear_options) */
    double alpha;              /* the factor of the penalty, at least 0 [1] */
    int intercept;             /* 1: the model has an intercept, which has no penalty [1]; else 0 */
    int threads;               /* at most 4096; 0: every core the process may use [0] */
    double tolerance;          /* Lasso: see qn_lasso_fit; from 0 [1e-4] */
    uint32_t iterations;       /* Lasso: at most this many passes over the coefficients [1000] */
    const qn_compute *compute; /* as in qn_statistics_options, for the sums [NULL] */
} qn_linear_options;

/* Sets `size`, and every other member to its default, which is given in brackets. */
QN_API void qn_linear_options_init(qn_linear_options *options);

typedef struct qn_linear_result {
    size_t size; /* sizeof(qn_linear_result), set by the caller */
    double intercept;
    uint32_t iterations; /* Lasso: passes; else 0 */
    int converged;       /* Lasso: the gap is below its bound; else 1 */
    double gap;          /* Lasso: the duality gap, divided by the number of items; else 0 */
} qn_linear_result;

/* Minimises sum((y - X w - b)^2) + alpha sum(w^2) over the coefficients w and the intercept b.
 *
 * `data` has real labels (qn_data_targets), 1 to 4,095 features and no missing value. `options` may
 * be NULL: the defaults. `coefficients` has space for as many doubles as there are features; after
 * a failure it and *out are undefined. Fails with QN_USAGE (options, data), QN_MEMORY, or
 * QN_NUMERIC where columns depend on one another, which alpha > 0 prevents; or as
 * qn_statistics_make. */
QN_API qn_status qn_ridge_fit(const qn_data *data, const qn_linear_options *options,
                              double *coefficients, qn_linear_result *out, qn_error *err);

/* Minimises sum((y - X w - b)^2) / (2 n) + alpha sum(|w|) for n items, by coordinate descent. It
 * ends when the duality gap is below tolerance * sum((y - mean of y)^2), or with `iterations`.
 * Otherwise like qn_ridge_fit, but dependent columns are not a failure. */
QN_API qn_status qn_lasso_fit(const qn_data *data, const qn_linear_options *options,
                              double *coefficients, qn_linear_result *out, qn_error *err);

#ifdef __cplusplus
}
#endif

#endif
