/* Statistics of a data set: a tile of columns at a time is copied out of the rows, class after
 * class, by all threads; then each thread describes some columns of the tile. */
#include "base/argument.h"
#include "base/float_state.h"
#include "base/memory.h"
#include "base/sized.h"
#include "job/column_statistics.h"
#include "job/pair_statistics.h"
#include "job/statistics_columns.h"
#include <string.h>

enum { TILE = 16, FEW_VALUES = 1 << 15, MOST_QUANTILES = 1000, MOST_BINS = 1000000 };
enum { MOST_GROUPS = 1 << 16, MOST_PAIRED = 4096 };

struct qn_statistics {
    uint32_t columns, groups, most_bins;
    qn__column_numbers *numbers; /* columns x groups */
    double *quantiles;           /* columns x groups x quantile_count */
    uint64_t *histograms;        /* columns x groups x most_bins, or NULL */
    double *edges;               /* columns x (most_bins + 1), or NULL */
    uint32_t *bins;              /* of each column */
    uint64_t *categories;        /* of all columns and groups */
    double *covariance, *correlation;
};

/* While they are computed. */
typedef struct job {
    const qn_data *data;
    qn_statistics_options options;
    qn_statistics *out;
    qn__column_task task;
    qn__pool *pool;
    int threads;
    uint64_t *order,
        *starts;   /* items class after class, and the first of each; NULL: as they are */
    uint32_t tile; /* columns of a tile */
    size_t stride; /* of a column in `values` */
    float *values;
    qn__column_room *rooms;        /* one for each thread */
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
            qn__fail(err, QN_USAGE, "`statistics.quantiles`: %g is no quantile", q);
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

/* Each column of categories has its counts behind those of the one before. */
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
    if (!s->numbers || !s->quantiles || !s->categories || !s->bins)
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

static qn_status make_rooms(job *j, qn_error *err) {
    const uint64_t items = j->data->items;
    const uint32_t columns = j->out->columns;
    const uint32_t wanted = j->threads > TILE ? (uint32_t)j->threads : TILE;
    j->tile = columns < wanted ? columns : wanted;
    /* columns do not begin at the same place of a page, where they would share lines of a cache */
    j->stride = (size_t)(items + 15) / 16 * 16 + 16;
    j->values = qn__alloc(j->tile, j->stride * sizeof *j->values, err);
    j->rooms = qn__alloc((uint64_t)j->threads, sizeof *j->rooms, err);
    j->missing = qn__alloc(columns, 1, err);
    if (!j->values || !j->rooms || !j->missing)
        return QN_MEMORY;
    for (int t = 0; t < j->threads; t++)
        if (!(j->rooms[t].order = qn__order_create((size_t)items, err)))
            return QN_MEMORY;
    if (j->options.correlation) {
        j->first = qn__alloc(columns, sizeof *j->first, err);
        j->second = qn__alloc(columns, sizeof *j->second, err);
        if (!j->first || !j->second)
            return QN_MEMORY;
    }
    return QN_OK;
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
    for (int t = 0; j->rooms && t < j->threads; t++)
        qn__order_free(j->rooms[t].order);
    qn__free(j->rooms);
    qn__free(j->values);
    qn__free(j->missing);
    qn__free(j->first);
    qn__free(j->second);
    qn__free(j->order);
    qn__free(j->starts);
    qn__pool_destroy(j->pool);
}

/* ------------------------------------------------------------------ computing */

static void describe_column(const job *j, uint32_t column, float *values, qn__column_room *room) {
    const qn_statistics *s = j->out;
    const uint64_t items = j->data->items;
    qn__column_numbers *numbers = &s->numbers[(size_t)column * s->groups];
    const uint32_t categories = qn__column_categories(j->data, column);
    double *edges = s->edges ? s->edges + (size_t)column * (j->out->most_bins + 1) : NULL;
    if (categories > 0) {
        qn__column_tally(&j->task, values, items, categories, numbers);
        return;
    }
    s->bins[column] = j->options.bins;
    qn__column_describe(&j->task, values, items, room, numbers, edges, &s->bins[column]);
    j->missing[column] = numbers->missing > 0;
    if (j->first) {
        j->first[column] = room->all.first;
        j->second[column] = room->all.second;
    }
}

static void describe_tiles(void *context, int thread) {
    job *j = context;
    const uint64_t items = j->data->items, each = items / (uint64_t)j->threads;
    const uint64_t from = each * (uint64_t)thread;
    const uint64_t to = thread + 1 == j->threads ? items : from + each;
    for (uint32_t first = 0; first < j->out->columns; first += j->tile) {
        const uint32_t left = j->out->columns - first, count = left < j->tile ? left : j->tile;
        qn__columns_gather(j->data, j->order, from, to, first, count, j->values + from, j->stride);
        qn__pool_barrier(j->pool, thread);
        for (uint32_t k = (uint32_t)thread; k < count; k += (uint32_t)j->threads)
            describe_column(j, first + k, j->values + k * j->stride, &j->rooms[thread]);
        qn__pool_barrier(j->pool, thread);
    }
}

static qn_status run(job *j, qn_error *err) {
    const uint64_t values = j->data->items * qn__columns_of(j->data);
    const int cores = j->options.threads ? j->options.threads : qn__cores();
    j->threads = values < FEW_VALUES && !j->options.correlation ? 1 : cores;
    qn_status status = qn__pool_create(j->threads, 0, &j->pool, err);
    if (status == QN_OK)
        status = make_numbers(j, err);
    if (status == QN_OK)
        status = make_rooms(j, err);
    if (status == QN_OK && j->options.by_class)
        status = sort_items(j, err);
    if (status != QN_OK)
        return status;
    qn__pool_run(j->pool, describe_tiles, j);
    const qn__pairs pairs = {j->data, j->missing, j->first, j->second};
    return j->options.correlation
               ? qn__pairs_describe(&pairs, j->pool, j->out->covariance, j->out->correlation, err)
               : QN_OK;
}

qn_status qn_statistics_make(const qn_data *data, const qn_statistics_options *options,
                             qn_statistics **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(data, err);
    job j = {.data = data};
    qn_statistics_options_init(&j.options);
    if (options) {
        const qn_status status =
            qn__sized_take(QN__SIZED("options", qn_statistics_options), options, &j.options, err);
        if (status != QN_OK)
            return status;
    }
    qn_status status = check_options(&j, err);
    if (status != QN_OK)
        return status;
    j.task = (qn__column_task){.quantiles = quartiles, .quantile_count = 3, .groups = 1};
    if (j.options.quantiles) {
        j.task.quantiles = j.options.quantiles;
        j.task.quantile_count = j.options.quantile_count;
    }
    j.task.groups += j.options.by_class ? data->classes : 0;
    j.out = qn__alloc(1, sizeof *j.out, err);
    if (!j.out)
        return QN_MEMORY;
    j.out->columns = qn__columns_of(data);
    j.out->groups = j.task.groups;
    j.out->most_bins = j.options.bins ? j.options.bins : qn__column_bins(data->items);
    status = run(&j, err);
    free_job(&j);
    if (status == QN_OK)
        *out = j.out;
    else
        qn_statistics_free(j.out);
    return status;
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
