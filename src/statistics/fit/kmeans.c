/* k-means: Lloyd's iterations from greedy k-means++. */
#include "statistics/fit/kmeans.h"
#include "base/argument.h"
#include "base/sized.h"
#include "base/system/float_state.h"
#include "statistics/column_sums.h"
#include "statistics/fit/kmeans_sums.h"
#include "statistics/host_team.h"
#include <math.h>
#include <quern/structure.h>
#include <stdio.h>

enum { MOST_CLUSTERS = 65536 };

void qn_kmeans_options_init(qn_kmeans_options *options) {
    QN__OWN_FLOATS;
    if (options)
        *options = (qn_kmeans_options){.size = sizeof *options,
                                       .clusters = 8,
                                       .iterations = 300,
                                       .tolerance = 1e-4,
                                       .seed = 1};
}

static qn_status check(const qn_data *data, uint32_t clusters, int threads, qn_error *err) {
    qn_status status = qn__column_sums_check_threads("threads", threads, err);
    if (status == QN_OK)
        status = qn__column_sums_refuse(data, err);
    if (status == QN_OK && (clusters == 0 || clusters > MOST_CLUSTERS))
        return qn__fail(err, QN_USAGE, "`clusters` is not from 1 to %d", MOST_CLUSTERS);
    return status;
}

static qn_status check_options(const qn_data *data, const qn_kmeans_options *o, qn_error *err) {
    const qn_status status = check(data, o->clusters, o->threads, err);
    if (status != QN_OK)
        return status;
    if (o->clusters > data->items)
        return qn__fail(err, QN_USAGE, "`clusters` is %u, and there are %llu items", o->clusters,
                        (unsigned long long)data->items);
    if (o->iterations == 0)
        return qn__fail(err, QN_USAGE, "`iterations` is 0");
    if (!(o->tolerance >= 0 && isfinite(o->tolerance)))
        return qn__fail(err, QN_USAGE, "`tolerance` is %g, no number from 0", o->tolerance);
    return QN_OK;
}

static qn_status refuse_missing(const qn__kmeans *k, qn_error *err) {
    if (!k->missing)
        return QN_OK;
    qn__fail(err, QN_USAGE, "the data lacks values, and this model needs all");
    return qn__remedy(err, QN_USAGE, "fill them in, or leave these items out");
}

/* 20.6: the greatest movement at which it ends. */
static qn_status find_bound(const qn_data *data, const qn_kmeans_options *o, double *bound,
                            qn_error *err) {
    static const double none = 0;
    qn_statistics_options options;
    qn_statistics *made;
    double sum = 0;
    qn_statistics_options_init(&options);
    options.threads = o->threads;
    options.quantiles = &none;
    options.quantile_count = 0;
    const qn_status status = qn_statistics_make(data, &options, &made, err);
    for (uint32_t f = 0; status == QN_OK && f < data->features; ++f) {
        qn_column_statistics column = {.size = sizeof column};
        qn_statistics_column(made, f, QN_ALL_CLASSES, &column, NULL);
        sum = sum + column.population_deviation * column.population_deviation;
    }
    qn_statistics_free(made);
    *bound = o->tolerance * (sum / (double)data->features);
    return status;
}

static qn_status iterate(qn__kmeans *k, qn__kmeans_sums *s, const qn_kmeans_options *o,
                         double bound, double *centres, qn_kmeans_result *out, qn_error *err) {
    qn_status status = QN_OK;
    while (!out->converged && status == QN_OK) {
        double distance;
        status = qn__kmeans_assign(k, o->clusters, centres, err);
        if (status == QN_OK && qn__kmeans_count(k, s) == 0)
            out->converged = 1;
        if (out->converged || out->iterations == o->iterations || status != QN_OK)
            break;
        ++out->iterations;
        status = qn__kmeans_move(k, s, centres, &distance, err);
        out->converged = status == QN_OK && distance <= bound;
    }
    if (status == QN_OK)
        status = qn__kmeans_assign(k, o->clusters, centres, err);
    for (uint64_t i = 0; i < k->data->items && status == QN_OK; ++i)
        out->inertia = out->inertia + k->nearest[i];
    return status;
}

/* Does nothing where a value is missing, which all ranks refuse afterwards. */
static qn_status find_centres(qn__kmeans *k, const qn_kmeans_options *o, double *centres,
                              qn_kmeans_result *out, qn_error *err) {
    qn__kmeans_sums s;
    double bound;
    qn_status status = qn__kmeans_sums_create(&s, k, o->clusters, err);
    if (status == QN_OK)
        status = qn__kmeans_begin(k, o->clusters, o->seed, centres, err);
    if (status == QN_OK && !k->missing)
        status = find_bound(k->data, o, &bound, err);
    if (status == QN_OK && !k->missing)
        status = iterate(k, &s, o, bound, centres, out, err);
    qn__kmeans_sums_release(&s);
    return status;
}

static qn_status fit(const qn_data *data, const qn_kmeans_options *o, double *centres,
                     uint32_t *cluster, qn_kmeans_result *out, qn_error *err) {
    qn__kmeans k;
    qn_compute compute;
    char what[160];
    qn_status status =
        qn__host_team_compute("qn_kmeans_fit", o->compute, o->threads, &compute, err);
    if (status != QN_OK)
        return status;
    snprintf(what, sizeof what, "%u clusters, seed %llu, %u iterations, tolerance %a", o->clusters,
             (unsigned long long)o->seed, o->iterations, o->tolerance);
    status = check_options(data, o, err);
    status = qn__kmeans_create(&k, data, &compute, what, cluster, status, err);
    if (status != QN_OK)
        return status;
    status = find_centres(&k, o, centres, out, err);
    status = qn__kmeans_release(&k, &compute, status, err);
    return status == QN_OK ? refuse_missing(&k, err) : status;
}

qn_status qn_kmeans_fit(const qn_data *data, const qn_kmeans_options *options, double *centres,
                        uint32_t *cluster, qn_kmeans_result *out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(data, err);
    QN__NEED(centres, err);
    QN__NEED(cluster, err);
    QN__NEED(out, err);
    qn_kmeans_options o;
    qn_error unwanted;
    err = err ? err : &unwanted;
    qn_kmeans_result own = {.size = sizeof own};
    qn_kmeans_options_init(&o);
    qn_status status = qn__sized_check(QN__SIZED("out", qn_kmeans_result), out, err);
    if (status == QN_OK && options)
        status = qn__sized_take(QN__SIZED("options", qn_kmeans_options), options, &o, err);
    if (status == QN_OK)
        status = fit(data, &o, centres, cluster, &own, err);
    if (status == QN_OK)
        qn__sized_give(QN__SIZED("out", qn_kmeans_result), &own, out, qn__sized_of(out));
    return status;
}

qn_status qn_kmeans_assign(const qn_data *data, uint32_t clusters, const double *centres,
                           int threads, uint32_t *cluster, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(data, err);
    QN__NEED(centres, err);
    QN__NEED(cluster, err);
    qn__kmeans k;
    qn_compute compute;
    qn_error unwanted;
    err = err ? err : &unwanted;
    qn_status status = qn__host_team_compute(__func__, NULL, threads, &compute, err);
    if (status == QN_OK)
        status = check(data, clusters, threads, err);
    if (status == QN_OK)
        status = qn__kmeans_create(&k, data, &compute, "", cluster, QN_OK, err);
    if (status != QN_OK)
        return status;
    status = qn__kmeans_assign(&k, clusters, centres, err);
    status = qn__kmeans_release(&k, &compute, status, err);
    return status == QN_OK ? refuse_missing(&k, err) : status;
}
