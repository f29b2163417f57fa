#include "statistics/exact_statistics.h"
#include "base/memory.h"
#include "statistics/column_places.h"
#include "statistics/exact_numbers.h"
#include "num/ratio.h"
#include <stdlib.h>

int qn__exact_counts(const qn_data *data, uint32_t k) {
    const qn__exact kind = k < data->features ? qn__wide_kind(data, k) : QN__EXACT_NONE;
    if (kind != QN__EXACT_REAL)
        return kind != QN__EXACT_NONE;
    const qn__wide_value *value = qn__wide_column(data, k);
    for (uint64_t i = 0; i < data->wide->rows; i++) {
        const qn__exact_number n = qn__exact_of_real(value[i].real);
        if (!isnan(value[i].real) && n.m != 0 && n.power < QN__EXACT_LEAST_POWER)
            return 0;
    }
    return 1;
}

/* ------------------------------------------------------------------ moments and quantiles */

static void add_powers(qn__moments *sums, qn__exact_number n) {
    uint64_t square[2];
    qn__exact_multiply(n.m, n.m, square);
    qn__exact_add_scaled(&sums->first, n.m, n.power, n.negative);
    qn__exact_add_product(&sums->second, n.m, n.m, 2 * n.power, 0);
    qn__exact_add_product(&sums->third, square[0], n.m, 3 * n.power, n.negative);
    qn__exact_add_product(&sums->third, square[1], n.m, 3 * n.power + 64, n.negative);
    sums->count++;
}

static int by_whole(const void *a, const void *b) {
    const int64_t x = ((const qn__wide_value *)a)->whole, y = ((const qn__wide_value *)b)->whole;
    return (x > y) - (x < y);
}

static int by_real(const void *a, const void *b) {
    const double x = ((const qn__wide_value *)a)->real, y = ((const qn__wide_value *)b)->real;
    return (x > y) - (x < y);
}

/* n * part / 2^bits */
static void add_share(qn__exact_sum *sum, qn__exact_number n, const uint64_t part[2], int bits,
                      int negative) {
    qn__exact_add_product(sum, n.m, part[0], n.power - bits, negative);
    qn__exact_add_product(sum, n.m, part[1], n.power - bits + 64, negative);
}

static double quantile(qn__exact kind, const qn__wide_value *sorted, uint64_t count, double q) {
    const qn__quantile_place p = qn__quantile_place_of(q, count);
    const qn__exact_number at = qn__exact_of(kind, sorted[p.rank]);
    const qn__exact_number next =
        qn__exact_of(kind, sorted[p.rank + 1 < count ? p.rank + 1 : p.rank]);
    qn__exact_sum sum = {.pending = 0};
    qn__exact_add_scaled(&sum, at.m, at.power, at.negative);
    add_share(&sum, at, p.part, p.bits, !at.negative);
    add_share(&sum, next, p.part, p.bits, next.negative);
    return qn__ratio_of_sum(&sum, 1);
}

static double real_of(qn__exact kind, qn__wide_value value) {
    return kind == QN__EXACT_REAL ? value.real : (double)value.whole;
}

/* `value` has the `count` values of a group, and is sorted. */
static void describe(const qn__column_task *task, qn__exact kind, qn__wide_value *value,
                     uint64_t count, qn__column_numbers *out) {
    qn__moments sums = {.count = 0};
    qsort(value, (size_t)count, sizeof *value, kind == QN__EXACT_REAL ? by_real : by_whole);
    for (uint64_t i = 0; i < count; i++)
        add_powers(&sums, qn__exact_of(kind, value[i]));
    qn__moments_finish(&sums, &out->moments);
    out->minimum = real_of(kind, value[0]);
    out->maximum = real_of(kind, value[count - 1]);
    out->first = kind == QN__EXACT_MOMENT ? value[0].whole : 0;
    out->last = kind == QN__EXACT_MOMENT ? value[count - 1].whole : 0;
    for (uint32_t i = 0; i < task->quantile_count; i++)
        out->quantiles[i] = quantile(kind, value, count, task->quantiles[i]);
}

/* ------------------------------------------------------------------ histograms */

static double edge_of(qn__exact_number a, qn__exact_number b, uint32_t i, uint32_t bins) {
    qn__exact_sum sum = {.pending = 0};
    qn__exact_add_product(&sum, a.m, bins - i, a.power, a.negative);
    qn__exact_add_product(&sum, b.m, i, b.power, b.negative);
    return qn__ratio_of_sum(&sum, bins);
}

/* `sorted` has the values of all items. */
static void set_edges(const qn__exact_bins *b, qn__exact kind, const qn__wide_value *sorted,
                      uint64_t count, double *edges, uint32_t *bins) {
    const qn__exact_number least = qn__exact_of(kind, sorted[0]);
    const qn__exact_number greatest = qn__exact_of(kind, sorted[count - 1]);
    *bins = sorted[0].whole == sorted[count - 1].whole ? 1
            : b->wanted                                ? b->wanted
                                                       : qn__column_bins(count);
    for (uint32_t i = 0; i <= *bins; i++)
        edges[i] = edge_of(least, greatest, i, *bins);
}

static int is_below(qn__exact kind, qn__wide_value value, double edge) {
    if (kind == QN__EXACT_REAL)
        return value.real < edge;
    return edge >= 0x1p63 || (edge >= -0x1p63 && value.whole < (int64_t)ceil(edge));
}

/* How many values are below an edge. */
static uint64_t count_below(qn__exact kind, const qn__wide_value *sorted, uint64_t count,
                            double edge) {
    uint64_t below = 0, end = count;
    while (below < end) {
        const uint64_t middle = below + (end - below) / 2;
        if (is_below(kind, sorted[middle], edge))
            below = middle + 1;
        else
            end = middle;
    }
    return below;
}

static void count_bins(qn__exact kind, const qn__wide_value *sorted, uint64_t count,
                       const double *edges, uint32_t bins, uint64_t *histogram) {
    uint64_t before = 0;
    for (uint32_t i = 0; i < bins; i++) {
        const uint64_t to = i + 1 < bins ? count_below(kind, sorted, count, edges[i + 1]) : count;
        histogram[i] = to - before;
        before = to;
    }
}

/* ------------------------------------------------------------------ columns */

/* Moments are microseconds so far. */
static void in_days(const qn__column_task *task, double unit, qn__column_numbers *out) {
    double *const number[] = {&out->moments.sum,       &out->moments.mean,
                              &out->moments.deviation, &out->moments.deviation_of_all,
                              &out->minimum,           &out->maximum};
    for (size_t i = 0; i < sizeof number / sizeof *number; i++)
        *number[i] /= unit;
    out->moments.variance /= unit * unit;
    for (uint32_t i = 0; i < task->quantile_count; i++)
        out->quantiles[i] /= unit;
}

/* The values of a group that are not missing; returns how many. */
static uint64_t gather(const qn_data *data, uint32_t k, const qn__column_task *task, uint32_t group,
                       const uint64_t *order, qn__wide_value *out) {
    const uint64_t first = group > 0 ? task->starts[group - 1] : 0;
    const uint64_t end = group > 0 && group + 1 < task->groups ? task->starts[group] : data->items;
    const qn__wide_value *value = qn__wide_column(data, k);
    const qn__exact kind = qn__wide_kind(data, k);
    uint64_t count = 0;
    for (uint64_t i = first; i < end; i++) {
        out[count] = value[qn__data_row(data, order ? order[i] : i)];
        count += !qn__exact_is_missing(kind, out[count]);
    }
    return count;
}

static void describe_column(const qn_data *data, uint32_t k, const qn__column_task *task,
                            const uint64_t *order, const qn__exact_bins *b, qn__wide_value *buffer,
                            qn__column_numbers *out) {
    const qn__exact kind = qn__wide_kind(data, k);
    double *edges = b->edges ? b->edges + (size_t)k * (b->most + 1) : NULL;
    for (uint32_t g = 0; g < task->groups; g++) {
        const uint64_t count = gather(data, k, task, g, order, buffer);
        if (count == 0)
            continue;
        describe(task, kind, buffer, count, &out[g]);
        if (edges && g == 0)
            set_edges(b, kind, buffer, count, edges, &b->bins[k]);
        if (edges)
            count_bins(kind, buffer, count, edges, b->bins[k], out[g].histogram);
        in_days(task, qn__exact_unit(kind), &out[g]);
    }
    for (uint32_t i = 0; edges && b->bins[k] > 0 && i <= b->bins[k]; i++)
        edges[i] /= qn__exact_unit(kind);
}

qn_status qn__exact_describe(const qn_data *data, const qn__column_task *task,
                             const uint64_t *order, const qn__exact_bins *bins,
                             qn__column_numbers *numbers, qn_error *err) {
    if (!data->wide)
        return QN_OK;
    qn__wide_value *buffer = qn__alloc(data->items, sizeof *buffer, err);
    if (!buffer)
        return QN_MEMORY;
    for (uint32_t j = 0; j < data->wide->columns; j++) {
        const uint32_t k = data->wide->feature[j];
        if (qn__exact_counts(data, k))
            describe_column(data, k, task, order, bins, buffer, numbers + (size_t)k * task->groups);
    }
    qn__free(buffer);
    return QN_OK;
}
