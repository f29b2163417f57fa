#include "statistics/column_statistics.h"

#include "statistics/column_places.h"
#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------ quantiles */

static void want_quantile(qn__order *order, double q, uint64_t count) {
    const qn__quantile_place p = qn__quantile_place_of(q, count);
    qn__order_want_rank(order, (size_t)p.rank);
    if (p.rank + 1 < count)
        qn__order_want_rank(order, (size_t)p.rank + 1);
}

static double quantile(const qn__order *order, double q, uint64_t count) {
    const qn__quantile_place p = qn__quantile_place_of(q, count);
    const float at = qn__order_rank(order, (size_t)p.rank);
    const float next = p.rank + 1 < count ? qn__order_rank(order, (size_t)p.rank + 1) : at;
    return qn__moments_between(at, next, p.part, p.bits);
}

/* ------------------------------------------------------------------ histograms */

static void count_bins(const qn__order *order, uint64_t count, const double *edges, uint32_t bins,
                       uint64_t *histogram) {
    uint64_t before = 0;
    for (uint32_t i = 0; i < bins; i++) {
        const uint64_t below =
            i + 1 < bins ? qn__order_below(order, qn__column_at_least(edges[i + 1])) : count;
        histogram[i] = below - before;
        before = below;
    }
}

/* ------------------------------------------------------------------ a column */

/* Moves the values that are not missing to `to`; returns their number. */
static size_t take_present(const float *values, size_t count, float *to) {
    size_t kept = 0, missing = 0;
    for (size_t i = 0; i < count; i++)
        missing += values[i] != values[i];
    if (missing == 0 && to == values)
        return count;
    for (size_t i = 0; i < count; i++) {
        to[kept] = values[i];
        kept += values[i] == values[i];
    }
    return kept;
}

static void find_extremes(const float *values, size_t count, float *least, float *greatest) {
    float low[8], high[8];
    size_t i = 0;
    for (int k = 0; k < 8; k++)
        low[k] = high[k] = values[0];
    for (; i + 8 <= count; i += 8)
        for (int k = 0; k < 8; k++) {
            low[k] = values[i + (size_t)k] < low[k] ? values[i + (size_t)k] : low[k];
            high[k] = values[i + (size_t)k] > high[k] ? values[i + (size_t)k] : high[k];
        }
    for (; i < count; i++) {
        low[0] = values[i] < low[0] ? values[i] : low[0];
        high[0] = values[i] > high[0] ? values[i] : high[0];
    }
    *least = low[0];
    *greatest = high[0];
    for (int k = 1; k < 8; k++) {
        *least = low[k] < *least ? low[k] : *least;
        *greatest = high[k] > *greatest ? high[k] : *greatest;
    }
}

/* Extremes, quantiles and the histogram of values of one group. */
static void find_places(const qn__column_task *task, const float *values, uint64_t count,
                        qn__order *order, qn__column_numbers *out, double *edges, uint32_t *bins,
                        int first) {
    float least = 0, greatest = 0;
    if (count == 0) {
        *bins = first ? 0 : *bins;
        return;
    }
    find_extremes(values, (size_t)count, &least, &greatest);
    out->minimum = (double)least;
    out->maximum = (double)greatest;
    if (edges && first && *bins == 0)
        *bins = qn__column_bins(count);
    if (edges && first)
        qn__column_set_edges(least, greatest, edges, bins);
    if (task->quantile_count == 0 && !edges)
        return; /* no place of a value is asked */
    qn__order_take(order, values, (size_t)count);
    for (uint32_t i = 0; i < task->quantile_count; i++)
        want_quantile(order, task->quantiles[i], count);
    for (uint32_t i = 1; edges && i < *bins; i++)
        qn__order_want_number(order, qn__column_at_least(edges[i]));
    qn__order_collect(order, values);
    for (uint32_t i = 0; i < task->quantile_count; i++)
        out->quantiles[i] = quantile(order, task->quantiles[i], count);
    if (edges)
        count_bins(order, count, edges, *bins, out->histogram);
}

/* The numbers of no values; `items` of them are missing. */
static void begin(const qn__column_task *task, uint64_t items, qn__column_numbers *out) {
    out->missing = items;
    out->minimum = out->maximum = (double)NAN;
    for (uint32_t i = 0; out->quantiles && i < task->quantile_count; i++)
        out->quantiles[i] = (double)NAN;
}

static uint64_t start_of(const qn__column_task *task, uint32_t group, uint64_t items) {
    return group == 0 ? 0 : group < task->groups ? task->starts[group - 1] : items;
}

static uint64_t end_of(const qn__column_task *task, uint32_t group, uint64_t items) {
    return group == 0 ? items : start_of(task, group + 1, items);
}

void qn__column_set_sums(const qn__column_task *task, uint32_t group, uint64_t items,
                         qn__moments *sums, qn__column_numbers *out) {
    begin(task, end_of(task, group, items) - start_of(task, group, items), out);
    qn__moments_finish(sums, &out->moments);
    out->count = sums->count;
    out->missing -= sums->count;
}

/* The places of all groups; their values that are not missing follow each other. */
static void find_all_places(const qn__column_task *task, const float *values, qn__order *order,
                            qn__column_numbers *out, double *edges, uint32_t *bins) {
    size_t from = 0;
    find_places(task, values, out[0].count, order, &out[0], edges, bins, 1);
    for (uint32_t g = 1; g < task->groups; from += (size_t)out[g++].count)
        find_places(task, values + from, out[g].count, order, &out[g], edges, bins, 0);
}

/* Moves the values of a group that are not missing to those of the groups before. */
static size_t take_group(const qn__column_task *task, uint32_t group, uint64_t items, float *values,
                         size_t kept) {
    const uint64_t from = start_of(task, group, items), to = end_of(task, group, items);
    return take_present(values + from, (size_t)(to - from), values + kept);
}

static uint32_t first_group(const qn__column_task *task) { return task->groups > 1 ? 1 : 0; }

void qn__column_places(const qn__column_task *task, float *values, uint64_t items,
                       qn__column_space *buffer, qn__column_numbers *out, double *edges,
                       uint32_t *bins) {
    size_t kept = 0;
    for (uint32_t g = first_group(task); g < task->groups; g++)
        kept += take_group(task, g, items, values, kept);
    find_all_places(task, values, buffer->order, out, edges, bins);
}

void qn__column_describe(const qn__column_task *task, float *values, uint64_t items,
                         qn__column_space *buffer, qn__column_numbers *out, double *edges,
                         uint32_t *bins) {
    size_t kept = 0;
    memset(&buffer->all, 0, sizeof buffer->all);
    for (uint32_t g = first_group(task); g < task->groups; g++) {
        const size_t count = take_group(task, g, items, values, kept);
        memset(&buffer->part, 0, sizeof buffer->part);
        qn__moments_add(&buffer->part, values + kept, count);
        qn__column_set_sums(task, g, items, &buffer->part, &out[g]);
        qn__moments_merge(&buffer->all, &buffer->part);
        kept += count;
    }
    if (task->groups > 1)
        qn__column_set_sums(task, 0, items, &buffer->all, &out[0]);
    find_all_places(task, values, buffer->order, out, edges, bins);
}

void qn__column_tally(const qn__column_task *task, const float *values, uint64_t items,
                      uint32_t categories, qn__column_numbers *out) {
    qn__moments none = {.count = 0};
    for (uint32_t g = 0; g < task->groups; g++) {
        qn__column_set_sums(task, g, items, &none, &out[g]);
        memset(out[g].categories, 0, categories * sizeof *out[g].categories);
    }
    for (uint32_t g = first_group(task); g < task->groups; g++) {
        const uint64_t to = end_of(task, g, items);
        for (uint64_t i = start_of(task, g, items); i < to; i++)
            if (values[i] == values[i] && values[i] < (float)categories) {
                out[g].categories[(uint32_t)values[i]]++;
                out[g].count++;
            }
        out[g].missing -= out[g].count;
        for (uint32_t c = 0; g && c < categories; c++)
            out[0].categories[c] += out[g].categories[c];
        out[0].count += g ? out[g].count : 0;
        out[0].missing -= g ? out[g].count : 0;
    }
}
