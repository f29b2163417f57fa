#include "data/prepare/fill.h"
#include "base/binary/float_bits.h"
#include "base/memory.h"
#include "data/prepare/fit_parts.h"
#include "num/exact_sum.h"
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Columns that a thread takes at a time: a cache line of an item. */
enum { COLUMNS = 16 };
/* Halves of the 32 bits of a number. */
enum { BUCKETS = 1 << 16 };

static int may_lack(const qn_data *data) { return data->missing && data->type == QN_F32; }

/* All values of a table lie together, so the compiler's vectors find a NaN at the memory's speed.
 */
static int any_missing(const float *value, size_t count) {
    int found = 0;
    for (size_t i = 0; i < count; ++i)
        found |= qn__is_missing(value[i]);
    return found;
}

int qn__has_missing(const qn_data *data) {
    int found = 0;
    for (uint64_t i = 0; may_lack(data) && i < data->items && !found; ++i)
        found = any_missing(qn__data_item(data, i), data->features);
    return found;
}

qn_status qn__missing_count(const qn_data *data, qn__missing_counts *out, qn_error *err) {
    *out = (qn__missing_counts){0};
    if (!may_lack(data))
        return QN_OK;
    uint64_t *in_column = qn__alloc(data->features, sizeof *in_column, err);
    if (!in_column)
        return QN_MEMORY;
    for (uint64_t i = 0; i < data->items; ++i) {
        const float *value = qn__data_item(data, i);
        const uint64_t before = out->values;
        for (uint32_t k = 0; k < data->features; ++k) {
            if (!qn__is_missing(value[k]))
                continue;
            if (out->values++ == 0) {
                out->feature = k;
                out->item = i;
            }
            out->columns += in_column[k]++ == 0;
        }
        out->items += out->values > before;
    }
    out->in_column = in_column[out->feature];
    qn__free(in_column);
    return QN_OK;
}

qn_status qn__complete_items(const qn_data *all, qn_data **out, qn_error *err) {
    uint64_t complete = all->items;
    *out = NULL;
    if (!qn__has_missing(all))
        return QN_OK;
    uint64_t *lacking = qn__alloc(all->items / 64 + 1, sizeof *lacking, err);
    if (!lacking)
        return QN_MEMORY;
    for (uint64_t i = 0; i < all->items; ++i)
        if (any_missing(qn__data_item(all, i), all->features)) {
            lacking[i / 64] |= (uint64_t)1 << i % 64;
            --complete;
        }
    qn_status status = QN_OK;
    if (complete > 0) {
        *out = qn__data_view(all, lacking, 0, complete, err);
        status = *out ? QN_OK : QN_MEMORY;
    } else {
        qn__fail(err, QN_INPUT, "every one of the %" PRIu64 " items has a missing value",
                 all->items);
        status = qn__remedy(err, QN_INPUT,
                            "train with `train.missing` mean, median or zero, or leave out the "
                            "column that lacks most");
    }
    qn__free(lacking);
    return status;
}

/* ------------------------------------------------------------------------------------ fitting */

/* A present value with the weight of its item. */
typedef struct weighed {
    uint32_t key; /* key_of the value */
    float weight;
} weighed;

typedef struct fit {
    const qn_data *data;
    const float *weights; /* of the items; NULL: all are 1 */
    qn__missing rule;
    float *fill;
    uint64_t (*count)[BUCKETS]; /* of each thread, for medians */
    weighed *weighed;           /* of each thread `items`, for medians with weights */
    atomic_uint next;           /* tile of columns */
} fit;

static float value_at(const qn_data *data, uint64_t item, uint32_t feature) {
    return (float)qn__data_number(data, item, feature);
}

static int is_number(const qn_data *data, uint32_t feature) {
    return !data->schema || data->schema->feature[feature].categories == 0;
}

/* Several columns at once: an item's values lie side by side. */
static void fit_means(const fit *work, uint32_t from, uint32_t to) {
    const qn_data *data = work->data;
    qn__exact_sum sum[COLUMNS] = {0};
    uint64_t present[COLUMNS] = {0};
    for (uint64_t i = 0; i < data->items; ++i)
        for (uint32_t k = from; k < to; ++k) {
            const float value = value_at(data, i, k);
            if (qn__is_missing(value))
                continue;
            ++present[k - from];
            if (value != 0)
                qn__exact_add(&sum[k - from], (double)value);
        }
    for (uint32_t k = from; k < to; ++k)
        work->fill[k] = present[k - from] && is_number(data, k)
                            ? qn__exact_mean(&sum[k - from], present[k - from])
                            : 0.0f;
}

/* The same with weights. */
static void fit_weighted_means(const fit *work, uint32_t from, uint32_t to) {
    const qn_data *data = work->data;
    qn__exact_sum sum[COLUMNS] = {0}, together[COLUMNS] = {0};
    int present[COLUMNS] = {0};
    for (uint64_t i = 0; i < data->items; ++i) {
        const double weight = (double)work->weights[i];
        for (uint32_t k = from; weight > 0 && k < to; ++k) {
            const float value = value_at(data, i, k);
            if (qn__is_missing(value))
                continue;
            present[k - from] = 1;
            qn__exact_add(&together[k - from], weight);
            if (value != 0)
                qn__exact_add(&sum[k - from], weight * (double)value);
        }
    }
    for (uint32_t k = from; k < to; ++k)
        work->fill[k] = present[k - from] && is_number(data, k)
                            ? qn__exact_weighted_mean(&sum[k - from], &together[k - from])
                            : 0.0f;
}

/* Numbers as unsigned integers of the same order; the two zeros are one. */
static uint32_t key_of(float value) {
    const uint32_t bits = qn__float_bits(value == 0 ? 0.0f : value);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

static float number_of(uint32_t key) {
    return qn__float_of_bits(key >> 31 ? key & 0x7fffffffu : ~key);
}

/* The bucket that holds the value of this rank; `rank` becomes its rank in the bucket. */
static uint32_t bucket_of(const uint64_t *count, uint64_t *rank) {
    uint32_t b = 0;
    while (count[b] <= *rank)
        *rank -= count[b++];
    return b;
}

/* The present value of a column that `rank` present ones come before: its upper half by counting
 * all, its lower half by counting those of the same upper half. */
static float select_value(const qn_data *data, uint32_t feature, uint64_t rank, uint64_t *count) {
    uint32_t half[2] = {0, 0};
    for (int part = 0; part < 2; ++part) {
        memset(count, 0, BUCKETS * sizeof *count);
        for (uint64_t i = 0; i < data->items; ++i) {
            const float value = value_at(data, i, feature);
            const uint32_t key = key_of(value);
            if (qn__is_missing(value) || (part == 1 && key >> 16 != half[0]))
                continue;
            ++count[part == 0 ? key >> 16 : key & 0xffff];
        }
        half[part] = bucket_of(count, &rank);
    }
    return number_of(half[0] << 16 | half[1]);
}

/* The sum of two floats in a double, halved, rounds to a float as the real number does: 53 bits are
 * more than twice 24 and two. */
static float middle_between(float below, float above) {
    const float middle = (float)(((double)below + (double)above) * 0.5);
    return middle == 0 ? 0.0f : middle;
}

static float median_of(const qn_data *data, uint32_t feature, uint64_t *count) {
    uint64_t present = 0;
    for (uint64_t i = 0; i < data->items; ++i)
        present += !qn__is_missing(value_at(data, i, feature));
    if (present == 0)
        return 0.0f;
    const float above = select_value(data, feature, present / 2, count);
    if (present % 2)
        return above;
    return middle_between(select_value(data, feature, present / 2 - 1, count), above);
}

static int by_key(const void *a, const void *b) {
    const weighed *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

static void add_weights(qn__exact_sum *sum, const weighed *list, uint64_t from, uint64_t to) {
    for (uint64_t i = from; i < to; ++i)
        qn__exact_add(sum, (double)list[i].weight);
}

/* -1, 0 or 1: twice the sum is less than all, equal or more. */
static int half(const qn__exact_sum *sum, qn__exact_sum *all) {
    qn__exact_sum once = *sum, twice = *sum;
    qn__exact_merge(&twice, &once);
    return qn__exact_compare(&twice, all);
}

/* The first of `count` sorted values at which the weights up to it are half of all or more; *exact
 * is 1 where they are half. The range is halved, and the weights before it are summed once. */
static uint64_t middle_of(const weighed *list, uint64_t count, int *exact) {
    qn__exact_sum all = {.pending = 0}, before = {.pending = 0};
    uint64_t low = 0, high = count - 1;
    add_weights(&all, list, 0, count);
    while (low < high) { /* half is reached at a place from low to high */
        const uint64_t middle = low + (high - low) / 2;
        qn__exact_sum sum = before;
        add_weights(&sum, list, low, middle + 1);
        if (half(&sum, &all) >= 0) {
            high = middle;
        } else {
            before = sum;
            low = middle + 1;
        }
    }
    add_weights(&before, list, low, low + 1);
    *exact = half(&before, &all) == 0;
    return low;
}

static float weighted_median_of(const fit *work, uint32_t feature, weighed *list) {
    uint64_t count = 0;
    int exact;
    for (uint64_t i = 0; i < work->data->items; ++i) {
        const float value = value_at(work->data, i, feature);
        if (!qn__is_missing(value) && work->weights[i] > 0)
            list[count++] = (weighed){key_of(value), work->weights[i]};
    }
    if (count == 0)
        return 0.0f;
    qsort(list, (size_t)count, sizeof *list, by_key);
    const uint64_t at = middle_of(list, count, &exact);
    const float below = number_of(list[at].key);
    const float above = exact && at + 1 < count ? number_of(list[at + 1].key) : below;
    return middle_between(below, above);
}

static float fit_median(const fit *work, uint32_t feature, int thread) {
    if (!is_number(work->data, feature))
        return 0.0f;
    return work->weights ? weighted_median_of(work, feature,
                                              work->weighed + (size_t)thread * work->data->items)
                         : median_of(work->data, feature, work->count[thread]);
}

static void fit_tiles(void *context, int thread) {
    fit *work = context;
    const uint32_t features = work->data->features;
    for (;;) {
        const uint64_t from = (uint64_t)atomic_fetch_add(&work->next, 1) * COLUMNS;
        if (from >= features)
            return;
        const uint32_t to = features - from < COLUMNS ? features : (uint32_t)from + COLUMNS;
        if (work->rule == QN__MISSING_MEAN) {
            (work->weights ? fit_weighted_means : fit_means)(work, (uint32_t)from, to);
            continue;
        }
        for (uint32_t k = (uint32_t)from; k < to; ++k)
            work->fill[k] = fit_median(work, k, thread);
    }
}

static int reserve(fit *work, int threads, qn_error *err) {
    if (work->rule != QN__MISSING_MEDIAN)
        return 1;
    if (work->weights)
        work->weighed =
            qn__alloc((uint64_t)threads * work->data->items, sizeof *work->weighed, err);
    else
        work->count = qn__alloc((uint64_t)threads, sizeof *work->count, err);
    return work->weighed || work->count;
}

/* ------------------------------------------------------------------ rows of several ranks */

static qn_status parts_medians(const qn__own_items *own, float *fill, qn_error *err) {
    const qn_data *data = &own->items;
    qn__column_order *order = qn__alloc(data->features, sizeof *order, err);
    qn_status status = qn__parts_agree(own->parts, order ? QN_OK : QN_MEMORY, err);
    if (status == QN_OK)
        status = qn__parts_order(own, 1, order, err);
    for (uint32_t k = 0; order && status == QN_OK && k < data->features; ++k) {
        const float *number = order[k].quartile[1];
        fill[k] = order[k].count > 0 && is_number(data, k)
                      ? middle_between(number[0], number[order[k].count % 2 == 0])
                      : 0.0f;
    }
    qn__free(order);
    return status;
}

static qn_status fit_here(fit *work, int threads, qn_error *err) {
    qn__pool *pool;
    qn_status status = qn__pool_create(threads, 0, &pool, err);
    if (status != QN_OK)
        return status;
    if (reserve(work, threads, err))
        qn__pool_run(pool, fit_tiles, work);
    else
        status = QN_MEMORY;
    qn__pool_destroy(pool);
    qn__free(work->weighed);
    qn__free(work->count);
    return status;
}

/* Medians with weights are those of all rows, which each rank fetches. So it is where a rank has
 * ended. */
qn_status qn__fill_fit(const qn_data *train, const float *weights, qn__missing rule, int threads,
                       float *fill, qn_error *err) {
    fit work = {.data = train, .weights = weights, .rule = rule, .fill = fill};
    qn__own_items own;
    qn_status status = QN_IO;
    if ((rule == QN__MISSING_MEAN || !weights) && qn__own_items_of(train, weights, &own))
        status = rule == QN__MISSING_MEAN ? qn__parts_means(&own, fill, err)
                                          : parts_medians(&own, fill, err);
    return status == QN_IO ? fit_here(&work, threads, err) : status;
}
