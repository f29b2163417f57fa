#include "data/prepare/scale.h"
#include "base/memory.h"
#include "data/prepare/fit_parts.h"
#include "num/exact_sum.h"
#include "num/order.h"
#include "data/table/table_columns.h"
#include <float.h>
#include <math.h>
#include <stdatomic.h>

/* Columns that a thread takes out of the items at a time: a cache line of an item, and fewer where
 * their values would need more than 64 MiB. */
enum { MOST_COLUMNS = 16, MOST_VALUES = 1 << 24 };

typedef struct fit {
    qn__scale scale;
    const qn_data *data;
    const float *weights;
    uint32_t columns; /* at a time */
    size_t stride;    /* of the gathered values of a column */
    float **values;   /* of each thread */
    qn__order **order;
    float *shift, *width;
    atomic_uint next;       /* the first feature that no thread has */
    atomic_int overflowing; /* 1 + a feature whose width is beyond float32; 0: none */
} fit;

/* The values of items of weight 0 are taken out. Returns how many are left. */
static size_t take_counting(const fit *work, float *values) {
    size_t kept = 0;
    if (!work->weights)
        return (size_t)work->data->items;
    for (uint64_t i = 0; i < work->data->items; i++)
        if (work->weights[i] > 0)
            values[kept++] = values[i];
    return kept;
}

static void find_extremes(const float *values, size_t count, float *least, float *greatest) {
    *least = *greatest = values[0];
    for (size_t i = 1; i < count; i++) {
        *least = values[i] < *least ? values[i] : *least;
        *greatest = values[i] > *greatest ? values[i] : *greatest;
    }
}

/* RN(greatest - least). */
static float difference(float least, float greatest) {
    qn__exact_sum sum = {.pending = 0};
    qn__exact_add(&sum, (double)greatest);
    qn__exact_add(&sum, -(double)least);
    return qn__exact_mean(&sum, 1);
}

/* Where quartile q of `count` values lies: after `rank`, by so many quarters. */
static size_t place_of(uint32_t q, size_t count, uint32_t *quarters) {
    const uint64_t place = (uint64_t)q * (count - 1);
    *quarters = (uint32_t)(place % 4);
    return (size_t)(place / 4);
}

/* Adds four times the quartile, or subtracts it. `number`: of the rank before its place, and of the
 * next one. Each product has at most 26 bits. */
static void add_quartile(const float number[2], uint32_t q, size_t count, double sign,
                         qn__exact_sum *sum) {
    uint32_t quarters;
    (void)place_of(q, count, &quarters);
    qn__exact_add(sum, sign * (4 - quarters) * (double)number[0]);
    if (quarters)
        qn__exact_add(sum, sign * quarters * (double)number[1]);
}

static void find_quartiles(qn__order *order, const float *values, size_t count,
                           float number[3][2]) {
    uint32_t quarters;
    qn__order_take(order, values, count);
    for (uint32_t q = 1; q <= 3; q++) {
        const size_t rank = place_of(q, count, &quarters);
        qn__order_want_rank(order, rank);
        if (quarters)
            qn__order_want_rank(order, rank + 1);
    }
    qn__order_collect(order, values);
    for (uint32_t q = 1; q <= 3; q++) {
        const size_t rank = place_of(q, count, &quarters);
        number[q - 1][0] = qn__order_rank(order, rank);
        number[q - 1][1] = quarters ? qn__order_rank(order, rank + 1) : 0;
    }
}

static void set_feature(fit *work, uint32_t feature, const qn__column_order *o) {
    float shift = o->least, width = difference(o->least, o->greatest);
    if (work->scale == QN__SCALE_ROBUST) {
        qn__exact_sum middle = {.pending = 0}, between = {.pending = 0};
        add_quartile(o->quartile[1], 2, o->count, 1, &middle);
        add_quartile(o->quartile[2], 3, o->count, 1, &between);
        add_quartile(o->quartile[0], 1, o->count, -1, &between);
        shift = qn__exact_mean(&middle, 4);
        width = qn__exact_mean(&between, 4);
        /* Most values are equal, and the others still say something. */
        if (width < FLT_MIN && o->least < o->greatest)
            width = 1.0f;
    }
    if (isinf(width) || isinf(shift))
        work->overflowing = (int)feature + 1;
    work->shift[feature] = shift;
    work->width[feature] = width < FLT_MIN ? 0.0f : width;
}

static void fit_feature(fit *work, uint32_t feature, float *values, int thread) {
    qn__column_order o = {.count = take_counting(work, values)};
    find_extremes(values, o.count, &o.least, &o.greatest);
    if (work->scale == QN__SCALE_ROBUST)
        find_quartiles(work->order[thread], values, o.count, o.quartile);
    set_feature(work, feature, &o);
}

static void fit_tiles(void *context, int thread) {
    fit *work = context;
    const uint32_t features = work->data->features;
    float *values = work->values[thread];
    for (;;) {
        const uint32_t from = atomic_fetch_add(&work->next, work->columns);
        if (from >= features || from + work->columns < from)
            return;
        const uint32_t count = features - from < work->columns ? features - from : work->columns;
        qn__columns_gather(work->data, NULL, 0, work->data->items, from, count, values,
                           work->stride);
        for (uint32_t k = 0; k < count; k++)
            fit_feature(work, from + k, values + k * work->stride, thread);
    }
}

static qn_status reserve(fit *work, int threads, qn_error *err) {
    work->values = qn__alloc((uint64_t)threads, sizeof *work->values, err);
    work->order = qn__alloc((uint64_t)threads, sizeof *work->order, err);
    for (int t = 0; work->values && work->order && t < threads; t++) {
        work->values[t] = qn__alloc(work->columns, work->stride * sizeof(float), err);
        if (work->scale == QN__SCALE_ROBUST)
            work->order[t] = qn__order_create((size_t)work->data->items, err);
        if (!work->values[t] || (work->scale == QN__SCALE_ROBUST && !work->order[t]))
            return QN_MEMORY;
    }
    return work->values && work->order ? QN_OK : QN_MEMORY;
}

static void free_space(fit *work, int threads) {
    for (int t = 0; work->values && work->order && t < threads; t++) {
        qn__free(work->values[t]);
        qn__order_free(work->order[t]);
    }
    qn__free(work->values);
    qn__free(work->order);
}

static qn_status refuse(uint32_t feature, qn_error *err) {
    qn__fail(err, QN_INPUT, "the values of feature %u lie further apart than the greatest float32",
             (unsigned)feature);
    return qn__remedy(err, QN_INPUT,
                      "use `train.scale` standard, or leave the feature out with "
                      "`data.drop`");
}

static qn_status fit_parts(fit *work, const qn__own_items *own, qn_error *err) {
    const uint32_t features = own->items.features;
    qn__column_order *order = qn__alloc(features, sizeof *order, err);
    qn_status status = qn__parts_agree(own->parts, order ? QN_OK : QN_MEMORY, err);
    if (status == QN_OK)
        status = qn__parts_order(own, work->scale == QN__SCALE_ROBUST, order, err);
    for (uint32_t k = 0; order && status == QN_OK && k < features; k++)
        set_feature(work, k, &order[k]);
    qn__free(order);
    return status;
}

static qn_status fit_here(fit *work, int threads, qn_error *err) {
    const uint64_t fitting = MOST_VALUES / work->data->items;
    work->columns = fitting > MOST_COLUMNS ? MOST_COLUMNS : fitting ? (uint32_t)fitting : 1;
    work->stride = (size_t)(work->data->items + 15) / 16 * 16 + 16;
    const uint32_t tiles = (work->data->features - 1) / work->columns + 1;
    if ((uint32_t)threads > tiles)
        threads = (int)tiles;
    qn__pool *pool = NULL;
    qn_status status = reserve(work, threads, err);
    if (status == QN_OK)
        status = qn__pool_create(threads, 0, &pool, err);
    if (status == QN_OK)
        qn__pool_run(pool, fit_tiles, work);
    qn__pool_destroy(pool);
    free_space(work, threads);
    return status;
}

qn_status qn__scale_fit_order(qn__scale scale, const qn_data *train, const float *weights,
                              int threads, float *shift, float *width, qn_error *err) {
    fit work = {.scale = scale, .data = train, .weights = weights, .shift = shift, .width = width};
    qn__own_items own;
    qn_status status = QN_IO;
    if (qn__own_items_of(train, weights, &own))
        status = fit_parts(&work, &own, err);
    if (status == QN_IO) /* all rows are here, or a rank has ended */
        status = fit_here(&work, threads, err);
    return status == QN_OK && work.overflowing ? refuse((uint32_t)work.overflowing, err) : status;
}
