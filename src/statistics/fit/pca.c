/* Principal components: exact covariances by the statistics, then num/symmetric.h. */
#include "base/argument.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/system/float_state.h"
#include "data/table/data.h"
#include "num/symmetric.h"
#include "statistics/column_sums.h"
#include <math.h>
#include <quern/structure.h>
#include <string.h>

/* The greatest of the eigenvalues that are not taken yet, the first one of several. */
static uint32_t next_of(uint32_t n, const double *a, const uint8_t *taken) {
    uint32_t best = n;
    for (uint32_t i = 0; i < n; ++i)
        if (!taken[i] && (best == n || a[(size_t)i * n + i] > a[(size_t)best * n + best]))
            best = i;
    return best;
}

/* 20.5: the sign by the component that is greatest in magnitude, the first one of several. */
static void copy_axis(uint32_t n, const double *from, double *to) {
    uint32_t largest = 0;
    for (uint32_t k = 1; k < n; ++k)
        largest = fabs(from[k]) > fabs(from[largest]) ? k : largest;
    for (uint32_t k = 0; k < n; ++k)
        to[k] = from[largest] < 0 ? -from[k] : from[k];
}

static qn_status decompose(const qn__column_sums *sums, uint32_t components, double *axes,
                           double *variances, qn_error *err) {
    const uint32_t n = sums->features;
    const size_t cells = (size_t)n * n;
    double *a = qn__alloc(2 * cells, sizeof *a, err);
    uint8_t *taken = qn__alloc(n, 1, err);
    if (!a || !taken) {
        qn__free(a);
        qn__free(taken);
        return QN_MEMORY;
    }
    for (uint32_t i = 0; i < n; ++i)
        memcpy(a + (size_t)i * n, sums->covariance + (size_t)i * sums->columns, n * sizeof *a);
    qn__symmetric_solve(n, a, a + cells);
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t at = next_of(n, a, taken);
        taken[at] = 1;
        variances[i] = fmax(a[(size_t)at * n + at], 0);
        if (i < components)
            copy_axis(n, a + cells + (size_t)at * n, axes + (size_t)i * n);
    }
    qn__free(a);
    qn__free(taken);
    return QN_OK;
}

void qn_pca_options_init(qn_pca_options *options) {
    QN__OWN_FLOATS;
    if (options)
        *options = (qn_pca_options){.size = sizeof *options, .components = 1};
}

static qn_status check_options(const qn_data *data, const qn_pca_options *o, qn_error *err) {
    if (o->components > data->features)
        return qn__fail(err, QN_USAGE, "%u components are more than the %u features", o->components,
                        data->features);
    return qn__column_sums_check_threads("threads", o->threads, err);
}

static qn_status fit(const qn_data *data, const qn_pca_options *o, double *axes, double *variances,
                     double *means, qn_error *err) {
    qn__column_sums sums;
    qn_status status = check_options(data, o, err);
    status = qn__column_sums_make(data, 0, o->threads, o->compute, status, &sums, err);
    if (status != QN_OK)
        return status;
    memcpy(means, sums.mean, sums.features * sizeof *means);
    status = decompose(&sums, o->components, axes, variances, err);
    qn__column_sums_release(&sums);
    return status;
}

qn_status qn_pca_fit(const qn_data *data, const qn_pca_options *options, double *axes,
                     double *variances, double *means, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(data, err);
    QN__NEED(axes, err);
    QN__NEED(variances, err);
    QN__NEED(means, err);
    qn_pca_options own;
    qn_error unwanted;
    err = err ? err : &unwanted;
    qn_pca_options_init(&own);
    const qn_status status =
        options ? qn__sized_take(QN__SIZED("options", qn_pca_options), options, &own, err) : QN_OK;
    return status == QN_OK ? fit(data, &own, axes, variances, means, err) : status;
}
