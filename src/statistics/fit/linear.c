/* Ridge and Lasso: exact sums of all pairs of columns by the statistics, then num/least_squares.h.
 */
#include "base/argument.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/system/float_state.h"
#include "num/least_squares.h"
#include "statistics/column_sums.h"
#include <math.h>
#include <quern/linear.h>

void qn_linear_options_init(qn_linear_options *options) {
    QN__OWN_FLOATS;
    if (options)
        *options = (qn_linear_options){.size = sizeof *options,
                                       .alpha = 1,
                                       .intercept = 1,
                                       .tolerance = 1e-4,
                                       .iterations = 1000};
}

static qn_status check_options(const qn_linear_options *o, qn_error *err) {
    if (!(o->alpha >= 0 && isfinite(o->alpha)))
        return qn__fail(err, QN_USAGE, "`alpha` is %g, no number from 0", o->alpha);
    if (!(o->tolerance >= 0 && isfinite(o->tolerance)))
        return qn__fail(err, QN_USAGE, "`tolerance` is %g, no number from 0", o->tolerance);
    if (o->iterations == 0)
        return qn__fail(err, QN_USAGE, "`iterations` is 0");
    return qn__column_sums_check_threads("threads", o->threads, err);
}

/* 20.1: the sums of products; the labels are the last row. Without an intercept not of the
 * deviations from the means. */
static void set_sums(const qn__column_sums *sums, int intercept, double *gram, double *products,
                     double *square) {
    const double n = (double)sums->items;
    const uint32_t features = sums->features;
    for (uint32_t i = 0; i <= features; ++i)
        for (uint32_t k = 0; k <= features; ++k) {
            double sum = (n - 1) * sums->covariance[(size_t)i * sums->columns + k];
            if (!intercept)
                sum = sum + (n * sums->mean[i < k ? i : k]) * sums->mean[i < k ? k : i];
            if (i < features && k < features)
                gram[(size_t)i * features + k] = sum;
            else if (k < features)
                products[k] = sum;
            else
                *square = sum;
        }
}

static double intercept_of(const qn__column_sums *sums, int intercept, const double *w) {
    double b = sums->mean[sums->features];
    for (uint32_t k = 0; k < sums->features; ++k)
        b = b - sums->mean[k] * w[k];
    return intercept ? b : 0;
}

static qn_status solve_ridge(const qn_linear_options *o, uint32_t n, double *gram, double *w,
                             qn_linear_result *out, qn_error *err) {
    for (uint32_t i = 0; i < n; ++i)
        gram[(size_t)i * n + i] = gram[(size_t)i * n + i] + o->alpha;
    out->converged = 1;
    if (qn__linear_solve(n, gram, w))
        return QN_OK;
    qn__fail(err, QN_NUMERIC,
             "the columns depend on one another, or one is constant: the "
             "coefficients are not determined");
    return qn__remedy(err, QN_NUMERIC, "take a greater alpha, or leave such columns out");
}

static qn_status solve_lasso(const qn_linear_options *o, uint64_t items, qn__lasso *lasso,
                             qn_linear_result *out, qn_error *err) {
    lasso->l1 = o->alpha * (double)items;
    lasso->tolerance = o->tolerance;
    lasso->iterations = o->iterations;
    lasso->slopes = qn__alloc(lasso->n, sizeof *lasso->slopes, err);
    if (!lasso->slopes)
        return QN_MEMORY;
    qn__lasso_descend(lasso);
    qn__free(lasso->slopes);
    out->iterations = lasso->iterations;
    out->converged = lasso->converged;
    out->gap = lasso->gap / (double)items;
    return QN_OK;
}

static qn_status fit_sums(const qn__column_sums *sums, const qn_linear_options *o, int ridge,
                          double *w, qn_linear_result *out, qn_error *err) {
    const uint32_t n = sums->features;
    double *gram = qn__alloc((uint64_t)n * n + n, sizeof *gram, err), square = 0;
    if (!gram)
        return QN_MEMORY;
    double *products = gram + (size_t)n * n;
    set_sums(sums, o->intercept, gram, products, &square);
    qn_status status;
    if (ridge) {
        for (uint32_t k = 0; k < n; ++k)
            w[k] = products[k];
        status = solve_ridge(o, n, gram, w, out, err);
    } else {
        qn__lasso lasso = {.n = n, .gram = gram, .products = products, .square = square, .w = w};
        status = solve_lasso(o, sums->items, &lasso, out, err);
    }
    if (status == QN_OK)
        out->intercept = intercept_of(sums, o->intercept, w);
    qn__free(gram);
    return status;
}

static qn_status fit(const qn_data *data, const qn_linear_options *options, int ridge, double *w,
                     qn_linear_result *result, qn_error *err) {
    qn_linear_result own = {.size = sizeof own};
    qn_linear_options o;
    qn__column_sums sums;
    qn_error unwanted;
    err = err ? err : &unwanted;
    qn_linear_options_init(&o);
    qn_status status = QN_OK;
    if (options)
        status = qn__sized_take(&(const qn__sized){ridge ? "qn_ridge_fit" : "qn_lasso_fit",
                                                   "options", "qn_linear_options", sizeof o},
                                options, &o, err);
    if (status != QN_OK)
        return status;
    status = check_options(&o, err);
    status = qn__column_sums_make(data, 1, o.threads, o.compute, status, &sums, err);
    if (status != QN_OK)
        return status;
    status = fit_sums(&sums, &o, ridge, w, &own, err);
    qn__column_sums_release(&sums);
    if (status == QN_OK)
        qn__sized_give(QN__SIZED("out", qn_linear_result), &own, result, qn__sized_of(result));
    return status;
}

qn_status qn_ridge_fit(const qn_data *data, const qn_linear_options *options, double *coefficients,
                       qn_linear_result *out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(data, err);
    QN__NEED(coefficients, err);
    QN__NEED(out, err);
    const qn_status status = qn__sized_check(QN__SIZED("out", qn_linear_result), out, err);
    return status == QN_OK ? fit(data, options, 1, coefficients, out, err) : status;
}

qn_status qn_lasso_fit(const qn_data *data, const qn_linear_options *options, double *coefficients,
                       qn_linear_result *out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(data, err);
    QN__NEED(coefficients, err);
    QN__NEED(out, err);
    const qn_status status = qn__sized_check(QN__SIZED("out", qn_linear_result), out, err);
    return status == QN_OK ? fit(data, options, 0, coefficients, out, err) : status;
}
