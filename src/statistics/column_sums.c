#include "statistics/column_sums.h"

#include "base/memory.h"
#include "statistics/statistics.h"
#include "data/table/table_columns.h"

qn_status qn__column_sums_check_threads(const char *field, int threads, qn_error *err) {
    if (threads < 0 || threads > 4096)
        return qn__fail(err, QN_USAGE, "`%s` is not from 0 to 4096", field);
    return QN_OK;
}

qn_status qn__column_sums_refuse(const qn_data *data, qn_error *err) {
    char name[160];
    for (uint32_t k = 0; k < data->features; ++k)
        if (qn__column_categories(data, k)) {
            qn__fail(err, QN_USAGE, "%s has categories, and this model needs numbers",
                     qn__column_name(data->schema, k, name, sizeof name));
            return qn__remedy(err, QN_USAGE,
                              "leave it out (`data.drop`), or give a column of 0 and 1 for each "
                              "category");
        }
    if (data->items == 0)
        return qn__fail(err, QN_USAGE, "the data has no items");
    return QN_OK;
}

/* Copies the means; of one item there are no covariances. */
static qn_status take(qn__column_sums *sums, const qn_data *data, qn_error *err) {
    char name[160];
    const double *covariance = qn_statistics_covariance(sums->from);
    const uint64_t pairs = (uint64_t)sums->columns * sums->columns;
    sums->mean = qn__alloc(pairs + sums->columns, sizeof *sums->mean, err);
    if (!sums->mean)
        return QN_MEMORY;
    sums->covariance = sums->mean + sums->columns;
    for (uint64_t i = 0; i < pairs; ++i)
        sums->covariance[i] = sums->items > 1 ? covariance[i] : 0;
    for (uint32_t k = 0; k < sums->columns; ++k) {
        qn_column_statistics column = {.size = sizeof column};
        qn_statistics_column(sums->from, k, QN_ALL_CLASSES, &column, NULL);
        sums->mean[k] = column.mean;
        if (column.missing > 0) {
            qn__fail(err, QN_USAGE, "%s lacks %llu values, and this model needs all",
                     qn__column_name(data->schema, k, name, sizeof name),
                     (unsigned long long)column.missing);
            return qn__remedy(err, QN_USAGE, "fill them in, or leave these items out");
        }
    }
    return QN_OK;
}

qn_status qn__column_sums_make(const qn_data *data, int labels, int threads,
                               const qn_compute *compute, qn_status status, qn__column_sums *out,
                               qn_error *err) {
    static const double none = 0;
    qn_statistics_options options;
    *out = (qn__column_sums){
        .items = data->items, .features = data->features, .columns = qn__columns_of(data)};
    if (status == QN_OK)
        status = qn__column_sums_refuse(data, err);
    if (status == QN_OK && labels && !data->targets) {
        qn__fail(err, QN_USAGE, "the data has no real labels");
        status = qn__remedy(err, QN_USAGE, "give numbers as labels (task regression)");
    }
    qn_statistics_options_init(&options);
    options.threads = threads;
    options.compute = compute;
    options.correlation = 1;
    options.quantiles = &none;
    options.quantile_count = 0;
    status = qn__statistics_make(data, &options, status, &out->from, err);
    if (status == QN_OK)
        status = take(out, data, err);
    if (status != QN_OK)
        qn__column_sums_release(out);
    return status;
}

void qn__column_sums_release(qn__column_sums *sums) {
    qn_statistics_free(sums->from);
    qn__free(sums->mean);
    *sums = (qn__column_sums){0};
}
