/* Statistics of a data set: columns are described one by one, then pairs of them, by all threads
 * and ranks. */
#include "statistics/statistics.h"
#include "base/argument.h"
#include "base/digest/sha256.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/system/float_state.h"
#include "data/cells/date_column.h"
#include "data/table/remote_rows.h"
#include "data/table/wide.h"
#include "statistics/column_job.h"
#include "statistics/column_parts.h"
#include "statistics/column_places.h"
#include "statistics/column_search.h"
#include "statistics/exact_pairs.h"
#include "statistics/exact_statistics.h"
#include "statistics/host_team.h"
#include "statistics/pair_statistics.h"
#include "data/table/table_columns.h"
#include <math.h>
#include <stdio.h>

enum { FEW_VALUES = 1 << 15, MOST_QUANTILES = 1000, MOST_BINS = 1000000 };
enum { MOST_GROUPS = 1 << 16, MOST_PAIRED = 4096 };
/* With "auto" GPUs take part where there are so many products of pairs, or so many values: a core
 * computes fewer in ten seconds. */
#define MANY_PRODUCTS ((uint64_t)1 << 34)
#define MANY_VALUES ((uint64_t)1 << 31)

struct qn_statistics {
    uint32_t columns, groups, most_bins, quantile_count;
    qn__column_numbers *numbers; /* columns x groups */
    double *quantiles;           /* columns x groups x quantile_count */
    uint64_t *histograms;        /* columns x groups x most_bins, or NULL */
    double *edges;               /* columns x (most_bins + 1), or NULL */
    uint32_t *bins;              /* of each column */
    uint64_t *categories;        /* of all columns and groups */
    qn_date_kind *dates;         /* of each column */
    double *covariance, *correlation;
};

/* While they are computed. */
typedef struct job {
    const qn_data *data;
    const qn_parts *parts; /* of which `data` is this rank's; NULL: it is the whole */
    qn_statistics_options options;
    qn_compute compute, host; /* all devices, and the CPU alone */
    int devices;              /* 1: GPUs compute, too */
    qn__column_device device;
    qn_statistics *out;
    qn__column_task task;
    uint64_t *order,
        *starts; /* items class after class, and the first of each; NULL: as they are */
    qn__exact_sum *first, *second; /* sums of each column, for pairs; else NULL */
    uint8_t *missing;              /* of each column: 1 where it lacks a value */
} job;

static const double quartiles[] = {0.25, 0.5, 0.75};

void qn_statistics_options_init(qn_statistics_options *options) {
    if (options)
        *options = (qn_statistics_options){.size = sizeof *options};
}

/* ------------------------------------------------------------------ what is asked */

static qn_status check_quantiles(const qn_statistics_options *o, qn_error *err) {
    if (o->quantiles && o->quantile_count > MOST_QUANTILES)
        return qn__fail(err, QN_USAGE, "`statistics.quantile_count` is above %d", MOST_QUANTILES);
    for (uint32_t i = 0; o->quantiles && i < o->quantile_count; i++) {
        const double q = o->quantiles[i];
        if (!(q >= 0 && q <= 1) || (q > 0 && q < 0x1p-24)) {
            qn__fail(err, QN_USAGE, "`statistics.quantiles`: %g is not a quantile", q);
            return qn__remedy(err, QN_USAGE,
                              "give numbers from 0 to 1, as 0.5; the least above 0 "
                              "is 0.00000006");
        }
    }
    return QN_OK;
}

static qn_status check_options(const job *j, qn_error *err) {
    const qn_statistics_options *o = &j->options;
    const uint32_t columns = qn__columns_of(j->data);
    if (o->threads < 0 || o->threads > 4096)
        return qn__fail(err, QN_USAGE, "`statistics.threads` is not from 0 to 4096");
    if (o->bins > MOST_BINS)
        return qn__fail(err, QN_USAGE, "`statistics.bins` is above %d", MOST_BINS);
    if (o->by_class && !j->data->labels) {
        qn__fail(err, QN_USAGE, "`statistics.by_class`: the data has no classes");
        return qn__remedy(err, QN_USAGE, "leave it out, or name the column of labels");
    }
    if (o->by_class && j->data->classes > MOST_GROUPS)
        return qn__fail(err, QN_USAGE, "`statistics.by_class`: there are %u classes, above %d",
                        j->data->classes, MOST_GROUPS);
    if (o->correlation && columns > MOST_PAIRED)
        return qn__fail(err, QN_USAGE, "`statistics.correlation`: there are %u columns, above %d",
                        columns, MOST_PAIRED);
    return check_quantiles(o, err);
}

/* ------------------------------------------------------------------ memory */

/* Each column of categories has its counts after those of the one before. */
static uint64_t count_categories(const job *j) {
    uint64_t sum = 0;
    for (uint32_t k = 0; k < j->out->columns; k++)
        sum += qn__column_categories(j->data, k);
    return sum * j->out->groups;
}

static void place_numbers(const job *j) {
    const qn_statistics *s = j->out;
    uint64_t *categories = s->categories;
    for (uint32_t k = 0; k < s->columns; k++)
        for (uint32_t g = 0; g < s->groups; g++) {
            const size_t at = (size_t)k * s->groups + g;
            const uint32_t words = qn__column_categories(j->data, k);
            qn__column_numbers *n = &s->numbers[at];
            n->categories = words ? categories : NULL;
            n->quantiles = words ? NULL : s->quantiles + at * j->task.quantile_count;
            n->histogram = words || !s->histograms ? NULL : s->histograms + at * j->out->most_bins;
            categories += words;
        }
}

static qn_status make_numbers(const job *j, qn_error *err) {
    qn_statistics *s = j->out;
    const uint64_t all = (uint64_t)s->columns * s->groups;
    const uint64_t pairs = j->options.correlation ? (uint64_t)s->columns * s->columns : 0;
    s->numbers = qn__alloc(all, sizeof *s->numbers, err);
    s->quantiles = qn__alloc(all, j->task.quantile_count * sizeof *s->quantiles, err);
    s->categories = qn__alloc(count_categories(j), sizeof *s->categories, err);
    s->bins = qn__alloc(s->columns, sizeof *s->bins, err);
    s->dates = qn__alloc(s->columns, sizeof *s->dates, err);
    if (!s->numbers || !s->quantiles || !s->categories || !s->bins || !s->dates)
        return QN_MEMORY;
    if (j->options.histograms) {
        s->histograms = qn__alloc(all, j->out->most_bins * sizeof *s->histograms, err);
        s->edges = qn__alloc(s->columns, (j->out->most_bins + 1) * sizeof *s->edges, err);
        if (!s->histograms || !s->edges)
            return QN_MEMORY;
    }
    if (pairs > 0) {
        s->covariance = qn__alloc(pairs, sizeof *s->covariance, err);
        s->correlation = qn__alloc(pairs, sizeof *s->correlation, err);
        if (!s->covariance || !s->correlation)
            return QN_MEMORY;
    }
    place_numbers(j);
    return QN_OK;
}

static qn_status make_sums(job *j, qn_error *err) {
    const uint32_t columns = j->out->columns;
    j->missing = qn__alloc(columns, 1, err);
    if (!j->missing || !j->options.correlation)
        return j->missing ? QN_OK : QN_MEMORY;
    j->first = qn__alloc(columns, sizeof *j->first, err);
    j->second = qn__alloc(columns, sizeof *j->second, err);
    return j->first && j->second ? QN_OK : QN_MEMORY;
}

/* The items of each class one after the other, in their order. */
static qn_status sort_items(job *j, qn_error *err) {
    const qn_data *data = j->data;
    uint64_t begin = 0;
    j->order = qn__alloc(data->items, sizeof *j->order, err);
    j->starts = qn__alloc(data->classes, sizeof *j->starts, err);
    if (!j->order || !j->starts)
        return QN_MEMORY;
    for (uint64_t i = 0; i < data->items; i++)
        j->starts[data->labels[i]]++;
    for (uint32_t c = 0; c < data->classes; c++) {
        const uint64_t count = j->starts[c];
        j->starts[c] = begin;
        begin += count;
    }
    for (uint64_t i = 0; i < data->items; i++)
        j->order[j->starts[data->labels[i]]++] = i;
    for (uint32_t c = data->classes - 1; c > 0; c--)
        j->starts[c] = j->starts[c - 1];
    j->starts[0] = 0;
    j->task.starts = j->starts;
    return QN_OK;
}

static void free_job(job *j) {
    qn__free(j->missing);
    qn__free(j->first);
    qn__free(j->second);
    qn__free(j->order);
    qn__free(j->starts);
    qn__column_device_release(&j->device);
}

/* ------------------------------------------------------------------ computing */

/* What ranks compare: one line. */
static void say_wanted(const job *j, char text[256]) {
    const qn_statistics_options *o = &j->options;
    uint8_t hash[32];
    char hex[65];
    qn__sha256_of(j->task.quantiles, j->task.quantile_count * sizeof(double), hash);
    qn__hex(hash, hex);
    snprintf(text, 256, "statistics%s%s%s, %u bins, %u quantiles, digest %.16s",
             o->by_class ? " by class" : "", o->correlation ? ", correlation" : "",
             o->histograms ? ", histograms" : "", o->bins, j->task.quantile_count, hex);
}

/* `team`: NULL for data in parts. */
static qn_status describe_columns(job *j, qn__team *team, qn_error *err) {
    const qn_statistics *s = j->out;
    const qn__column_job columns = {.data = j->data,
                                    .task = &j->task,
                                    .order = j->order,
                                    .columns = s->columns,
                                    .threads = j->host.threads,
                                    .numbers = s->numbers,
                                    .edges = s->edges,
                                    .bins = s->bins,
                                    .most_bins = s->most_bins,
                                    .wanted_bins = j->options.bins,
                                    .missing = j->missing,
                                    .first = j->first,
                                    .second = j->second,
                                    .device = j->devices ? &j->device : NULL};
    return team ? qn__columns_describe(team, &columns, err)
                : qn__columns_describe_parts(j->parts, &columns, err);
}

static qn_status describe_pairs(const job *j, qn__team *team, qn_error *err) {
    const qn__pairs pairs = {.data = j->data,
                             .parts = j->parts,
                             .missing = j->missing,
                             .first = j->first,
                             .second = j->second,
                             .devices = j->devices,
                             .threads = j->host.threads};
    const qn_status status =
        qn__pairs_describe(&pairs, team, j->out->covariance, j->out->correlation, err);
    return status == QN_OK ? qn__exact_pairs(&pairs, j->out->covariance, j->out->correlation, err)
                           : status;
}

/* What is known of the wide columns so far is that of their floats. */
static qn_status describe_exact(const job *j, qn_error *err) {
    const qn__exact_bins bins = {j->out->edges, j->out->bins, j->out->most_bins, j->options.bins};
    return qn__exact_describe(j->data, &j->task, j->order, &bins, j->out->numbers, err);
}

/* Moments of the first and the last date of a group: of dates with times they are there. */
static void find_ends(const job *j, uint32_t column, qn__column_numbers *n) {
    const int is_exact =
        column < j->data->features && qn__wide_kind(j->data, column) == QN__EXACT_MOMENT;
    if (n->count == 0)
        return;
    n->first = is_exact ? qn__moment_in_range(n->first) : qn__moment_of_days((float)n->minimum);
    n->last = is_exact ? qn__moment_in_range(n->last) : qn__moment_of_days((float)n->maximum);
}

static void find_dates(const job *j) {
    const qn_statistics *s = j->out;
    for (uint32_t k = 0; k < s->columns; k++) {
        s->dates[k] = qn_data_dates(j->data, k, NULL, 0);
        for (uint32_t g = 0; s->dates[k] != QN_DATE_NONE && g < s->groups; g++)
            find_ends(j, k, &s->numbers[(size_t)k * s->groups + g]);
    }
}

/* Products of all pairs of columns. */
static uint64_t products_of(const job *j) {
    const uint64_t columns = qn__columns_of(j->data);
    return j->options.correlation ? j->data->items * (columns * (columns + 1) / 2) : 0;
}

static qn_status choose_devices(job *j, qn_error *err) {
    const uint64_t values = j->data->items * qn__columns_of(j->data);
    const int large = products_of(j) >= MANY_PRODUCTS || values >= MANY_VALUES;
    const qn_status status = qn__host_team_split(&j->compute, large, &j->host, &j->devices, err);
    j->devices = j->devices && qn__column_device_takes(j->data);
    return status;
}

static void choose_threads(job *j) {
    const uint64_t values = j->data->items * qn__columns_of(j->data);
    if (values < FEW_VALUES && !j->options.correlation)
        j->host.threads = 1;
}

/* Whether devices count for quantiles and histograms. */
static int has_passes(const job *j) {
    return (j->task.quantile_count > 0 || j->options.histograms) &&
           qn__column_search_takes(&j->task, j->options.histograms, j->out->most_bins) &&
           qn__column_device_passes(j->data, &j->task);
}

static qn_status prepare(job *j, qn_error *err) {
    qn_status status = make_numbers(j, err);
    if (status == QN_OK)
        status = make_sums(j, err);
    if (status == QN_OK && j->options.by_class)
        status = sort_items(j, err);
    return status == QN_OK && j->devices
               ? qn__column_device_make(j->data, j->order, &j->task, has_passes(j), &j->device, err)
               : status;
}

/* Among ranks all fail where one does: `status` is how it went so far. */
static qn_status run(job *j, qn_status status, qn_error *err) {
    char wanted[256];
    qn__team *team;
    if (status == QN_OK)
        status = choose_devices(j, err);
    if (status == QN_OK)
        status = prepare(j, err);
    say_wanted(j, wanted);
    choose_threads(j);
    status =
        qn__host_team_open(j->devices ? &j->compute : &j->host, j->devices ? &j->device.job : NULL,
                           j->data, wanted, status, &team, err);
    if (status != QN_OK)
        return status;
    if (!j->host.threads)
        j->host.threads = qn__cores();
    qn__team_notes(team, j->options.on_note, j->options.user);
    status = describe_columns(j, team, err);
    if (status == QN_OK)
        status = describe_exact(j, err);
    if (status == QN_OK && j->options.correlation)
        status = describe_pairs(j, team, err);
    if (status == QN_OK)
        find_dates(j);
    return qn__host_team_close(team, &j->host, status, err);
}

static void set_task(job *j) {
    j->task = (qn__column_task){.quantiles = quartiles, .quantile_count = 3, .groups = 1};
    if (j->options.quantiles) {
        j->task.quantiles = j->options.quantiles;
        j->task.quantile_count = j->options.quantile_count;
    }
    j->task.groups += j->options.by_class ? j->data->classes : 0;
}

static qn_status make_out(job *j, qn_error *err) {
    j->out = qn__alloc(1, sizeof *j->out, err);
    if (!j->out)
        return QN_MEMORY;
    j->out->columns = qn__columns_of(j->data);
    j->out->groups = j->task.groups;
    j->out->quantile_count = j->task.quantile_count;
    const uint64_t items = j->parts ? qn__parts_items(j->parts) : j->data->items;
    j->out->most_bins = j->options.bins ? j->options.bins : qn__column_bins(items);
    return QN_OK;
}

/* Each rank computes those of its rows. */
static qn_status run_parts(job *j, qn_status status, qn_error *err) {
    char wanted[256] = "";
    if (status == QN_OK)
        status = prepare(j, err);
    if (status == QN_OK)
        say_wanted(j, wanted);
    const qn_error own = status == QN_OK ? (qn_error){0} : *err;
    const qn_agreement item = {sizeof item, "what is computed", wanted,
                               "start all ranks with the same options"};
    if (j->parts->cluster)
        status = qn_cluster_agree(j->parts->cluster, &own, &item, 1, err);
    if (!j->host.threads)
        j->host.threads = qn__cores();
    if (status == QN_OK)
        status = describe_columns(j, NULL, err);
    if (status == QN_OK && j->options.correlation)
        status = describe_pairs(j, NULL, err);
    if (status == QN_OK)
        find_dates(j);
    return status;
}

static qn_status make(const qn_data *data, const qn_parts *parts,
                      const qn_statistics_options *options, qn_status status, qn_statistics **out,
                      qn_error *err) {
    job j = {.data = data, .parts = parts, .options = *options};
    const qn_status taken = qn__host_team_compute("qn_statistics_make", options->compute,
                                                  options->threads, &j.compute, err);
    if (taken != QN_OK)
        return taken;
    if (status == QN_OK)
        status = check_options(&j, err);
    if (status == QN_OK)
        set_task(&j);
    if (status == QN_OK)
        status = make_out(&j, err);
    j.host = j.compute;
    status = parts ? run_parts(&j, status, err) : run(&j, status, err);
    free_job(&j);
    if (status == QN_OK)
        *out = j.out;
    else
        qn_statistics_free(j.out);
    return status;
}

/* The whole of parts: where its ranks compute together, each needs its own rows alone. */
static const qn_parts *parts_of(const qn_data *data, const qn_statistics_options *options) {
    const qn__remote_rows *remote = qn__data_remote(data);
    const qn_compute *compute = options->compute;
    return remote && !data->index && compute && compute->cluster == remote->parts->cluster
               ? remote->parts
               : NULL;
}

/* Where a rank ends, others have its rows, and all begin again. */
static qn_status make_of_parts(qn_parts *parts, const qn_statistics_options *options,
                               qn_statistics **out, qn_error *err) {
    qn_status status;
    do
        status = make(parts->own, parts, options, QN_OK, out, err);
    while (qn__parts_mend(parts, &status, err));
    return status;
}

qn_status qn__statistics_make(const qn_data *data, const qn_statistics_options *options,
                              qn_status status, qn_statistics **out, qn_error *err) {
    const qn_parts *parts = parts_of(data, options);
    if (!parts)
        return make(data, NULL, options, status, out, err);
    qn_data own = *parts->own;
    own.targets = data->targets ? own.targets : NULL; /* `data` may be without its labels */
    const qn_status made = make(&own, parts, options, status, out, err);
    if (made != QN_IO || !qn__parts_lost(parts))
        return made;
    return make(data, NULL, options, status, out, err); /* all ranks read the rows of all */
}

static qn_status take_options(const char *function, const qn_statistics_options *options,
                              qn_statistics_options *own, qn_error *err) {
    const qn__sized what = {function, "options", "qn_statistics_options", sizeof *own};
    qn_statistics_options_init(own);
    return options ? qn__sized_take(&what, options, own, err) : QN_OK;
}

qn_status qn_statistics_make(const qn_data *data, const qn_statistics_options *options,
                             qn_statistics **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(data, err);
    qn_statistics_options own;
    qn_error unwanted;
    err = err ? err : &unwanted;
    const qn_status status = take_options(__func__, options, &own, err);
    return status == QN_OK ? qn__statistics_make(data, &own, QN_OK, out, err) : status;
}

qn_status qn_statistics_of_parts(const qn_parts *parts, const qn_statistics_options *options,
                                 qn_statistics **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(parts, err);
    qn_statistics_options own;
    qn_error unwanted;
    err = err ? err : &unwanted;
    const qn_status status = take_options(__func__, options, &own, err);
    if (status == QN_OK)
        return make_of_parts((qn_parts *)(uintptr_t)parts, &own, out, err);
    return qn__parts_agree(parts, status, err);
}

void qn_statistics_free(qn_statistics *statistics) {
    if (!statistics)
        return;
    qn__free(statistics->numbers);
    qn__free(statistics->quantiles);
    qn__free(statistics->histograms);
    qn__free(statistics->edges);
    qn__free(statistics->bins);
    qn__free(statistics->categories);
    qn__free(statistics->dates);
    qn__free(statistics->covariance);
    qn__free(statistics->correlation);
    qn__free(statistics);
}

/* ------------------------------------------------------------------ answers */

/* Group 0 is that of all items. */
static const qn__column_numbers *find(const qn_statistics *s, uint32_t column,
                                      uint32_t class_index) {
    const uint32_t group = class_index + 1; /* QN_ALL_CLASSES + 1 is 0 */
    if (!s || column >= s->columns || group >= s->groups)
        return NULL;
    return &s->numbers[(size_t)column * s->groups + group];
}

uint32_t qn_statistics_columns(const qn_statistics *statistics) {
    return statistics ? statistics->columns : 0;
}

qn_status qn_statistics_column(const qn_statistics *statistics, uint32_t column,
                               uint32_t class_index, qn_column_statistics *out, qn_error *err) {
    QN__NEED(statistics, err);
    QN__NEED(out, err);
    const qn_status status = qn__sized_check(QN__SIZED("out", qn_column_statistics), out, err);
    const qn__column_numbers *n = find(statistics, column, class_index);
    if (status != QN_OK)
        return status;
    if (!n)
        return qn__fail(err, QN_USAGE, "there is no column %u with statistics of class %d", column,
                        (int)class_index);
    const qn_column_statistics own = {.size = sizeof own,
                                      .count = n->count,
                                      .missing = n->missing,
                                      .sum = n->moments.sum,
                                      .mean = n->moments.mean,
                                      .variance = n->moments.variance,
                                      .deviation = n->moments.deviation,
                                      .population_deviation = n->moments.deviation_of_all,
                                      .skewness = n->moments.skewness,
                                      .minimum = n->minimum,
                                      .maximum = n->maximum};
    qn__sized_give(QN__SIZED("out", qn_column_statistics), &own, out, qn__sized_of(out));
    return QN_OK;
}

const double *qn_statistics_quantiles(const qn_statistics *statistics, uint32_t column,
                                      uint32_t class_index) {
    const qn__column_numbers *n = find(statistics, column, class_index);
    return n ? n->quantiles : NULL;
}

const uint64_t *qn_statistics_categories(const qn_statistics *statistics, uint32_t column,
                                         uint32_t class_index) {
    const qn__column_numbers *n = find(statistics, column, class_index);
    return n ? n->categories : NULL;
}

const double *qn_statistics_edges(const qn_statistics *statistics, uint32_t column,
                                  uint32_t *bins) {
    const qn__column_numbers *n = find(statistics, column, QN_ALL_CLASSES);
    const int there = n && n->histogram;
    if (bins)
        *bins = there ? statistics->bins[column] : 0;
    if (!there || statistics->bins[column] == 0)
        return NULL;
    return statistics->edges + (size_t)column * (statistics->most_bins + 1);
}

const uint64_t *qn_statistics_histogram(const qn_statistics *statistics, uint32_t column,
                                        uint32_t class_index) {
    const qn__column_numbers *n = find(statistics, column, class_index);
    return n && statistics->bins[column] ? n->histogram : NULL;
}

const double *qn_statistics_covariance(const qn_statistics *statistics) {
    return statistics ? statistics->covariance : NULL;
}

const double *qn_statistics_correlation(const qn_statistics *statistics) {
    return statistics ? statistics->correlation : NULL;
}

/* The number of days of a mean, a quantile or an edge; NaN where there is none. */
static double days_of(const qn_statistics *s, uint32_t column, const qn__column_numbers *n,
                      qn_statistic which, uint32_t index) {
    const uint32_t bins = s->bins[column];
    if (which == QN_STATISTIC_MEAN)
        return n->moments.mean;
    if (which == QN_STATISTIC_QUANTILE)
        return index < s->quantile_count ? n->quantiles[index] : (double)NAN;
    const int there = which == QN_STATISTIC_EDGE && n->histogram && bins > 0 && index <= bins;
    return there ? s->edges[(size_t)column * (s->most_bins + 1) + index] : (double)NAN;
}

/* Rounding must not make a moment later than the last one, which may be the last of all. */
static int64_t between(const qn__column_numbers *n, double days) {
    const double moment = rint(days * (double)QN__DAY_MICROSECONDS);
    return moment <= (double)n->first  ? n->first
           : moment >= (double)n->last ? n->last
                                       : (int64_t)moment;
}

void qn_statistics_date(const qn_statistics *statistics, uint32_t column, uint32_t class_index,
                        qn_statistic which, uint32_t index, char *text, size_t size) {
    QN__OWN_FLOATS;
    char all[QN__MOMENT_TEXT] = "";
    /* Edges are those of all items. */
    const qn__column_numbers *n =
        find(statistics, column, which == QN_STATISTIC_EDGE ? QN_ALL_CLASSES : class_index);
    const qn_date_kind kind = n ? statistics->dates[column] : QN_DATE_NONE;
    if (!text || size == 0)
        return;
    if (kind != QN_DATE_NONE && n->count > 0) {
        const int end = which == QN_STATISTIC_MINIMUM || which == QN_STATISTIC_MAXIMUM;
        const double days = end ? 0 : days_of(statistics, column, n, which, index);
        const int64_t moment = which == QN_STATISTIC_MINIMUM   ? n->first
                               : which == QN_STATISTIC_MAXIMUM ? n->last
                                                               : between(n, days);
        if (!isnan(days))
            qn__moment_text(moment, kind != QN_DATE_DAYS || moment % QN__DAY_MICROSECONDS != 0,
                            kind == QN_DATE_TIMES_UTC, all);
    }
    snprintf(text, size, "%s", all);
}
