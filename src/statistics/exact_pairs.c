/* The columns are few, so no device takes part: the threads of each rank compute all pairs. */
#include "statistics/exact_pairs.h"
#include "base/memory.h"
#include "base/system/threads.h"
#include "num/moments.h"
#include "statistics/exact_numbers.h"
#include "data/table/table_columns.h"
#include <stdatomic.h>

typedef struct column {
    qn__exact kind; /* QN__EXACT_NONE: its floats count */
    const qn__wide_value *exact;
    int is_number, missing;
    qn__moments_side side; /* where it lacks no value */
} column;

typedef struct work {
    const qn_data *data;
    uint32_t columns;
    column *column;
    double *covariance, *correlation;
    atomic_uint next; /* the first column, or pair, that no thread has */
} work;

/* The sums of a pair: of both sides and of their squares, and of the products. */
typedef struct sums {
    uint64_t count;
    qn__exact_sum first[2], second[2], products;
} sums;

static double float_at(const work *w, uint32_t k, uint64_t item) {
    return k == w->data->features ? (double)w->data->targets[item]
                                  : qn__data_number(w->data, item, k);
}

/* 0 where the value is missing. */
static int number_at(const work *w, uint32_t k, uint64_t item, qn__exact_number *out) {
    const column *c = &w->column[k];
    if (c->kind == QN__EXACT_NONE) {
        const double value = float_at(w, k, item);
        *out = qn__exact_of_real(value);
        return !isnan(value);
    }
    const qn__wide_value value = c->exact[qn__data_row(w->data, item)];
    *out = qn__exact_of(c->kind, value);
    return !qn__exact_is_missing(c->kind, value);
}

static void add_side(qn__exact_number x, qn__exact_sum *first, qn__exact_sum *second) {
    qn__exact_add_scaled(first, x.m, x.power, x.negative);
    qn__exact_add_product(second, x.m, x.m, 2 * x.power, 0);
}

/* ------------------------------------------------------------------ columns */

static void add_column(const work *w, uint32_t k, column *c) {
    qn__exact_sum first = {.pending = 0}, second = {.pending = 0};
    qn__exact_number x;
    for (uint64_t i = 0; i < w->data->items; i++) {
        (void)number_at(w, k, i, &x);
        add_side(x, &first, &second);
    }
    qn__moments_side_of(w->data->items, &first, &second, &c->side);
}

static void add_columns(void *context, int thread) {
    work *w = context;
    uint32_t k;
    (void)thread;
    while ((k = atomic_fetch_add(&w->next, 1)) < w->columns)
        if (w->column[k].kind != QN__EXACT_NONE && !w->column[k].missing)
            add_column(w, k, &w->column[k]);
}

/* ------------------------------------------------------------------ pairs */

static void add_pair(const work *w, uint32_t a, uint32_t b, int missing, sums *s) {
    qn__exact_number x, y;
    for (uint64_t i = 0; i < w->data->items; i++) {
        const int there = number_at(w, a, i, &x);
        if (!number_at(w, b, i, &y) || !there)
            continue;
        s->count++;
        qn__exact_add_product(&s->products, x.m, y.m, x.power + y.power, x.negative != y.negative);
        if (!missing) /* the sides are known */
            continue;
        add_side(x, &s->first[0], &s->second[0]);
        add_side(y, &s->first[1], &s->second[1]);
    }
}

static void describe_pair(const work *w, uint32_t a, uint32_t b) {
    const int missing = w->column[a].missing || w->column[b].missing;
    const qn__moments_side *side[2] = {&w->column[a].side, &w->column[b].side};
    qn__moments_side own[2];
    double covariance, correlation;
    sums s = {.count = 0};
    add_pair(w, a, b, missing, &s);
    for (int i = 0; missing && i < 2; i++) {
        qn__moments_side_of(s.count, &s.first[i], &s.second[i], &own[i]);
        side[i] = &own[i];
    }
    qn__moments_pair(s.count, side[0], side[1], &s.products, &covariance, &correlation);
    covariance /= qn__exact_unit(w->column[a].kind) * qn__exact_unit(w->column[b].kind);
    const size_t places[2] = {(size_t)a * w->columns + b, (size_t)b * w->columns + a};
    for (int i = 0; i < 2; i++) {
        w->covariance[places[i]] = covariance;
        w->correlation[places[i]] = correlation;
    }
}

/* Pairs of a wide column with those after it, and with those before it that are not wide. */
static int is_wanted(const work *w, uint32_t a, uint32_t b) {
    return w->column[a].kind != QN__EXACT_NONE && w->column[b].is_number &&
           (b >= a || w->column[b].kind == QN__EXACT_NONE);
}

static void describe_pairs(void *context, int thread) {
    work *w = context;
    uint32_t pair;
    (void)thread;
    while ((pair = atomic_fetch_add(&w->next, 1)) < w->columns * w->columns)
        if (is_wanted(w, pair / w->columns, pair % w->columns))
            describe_pair(w, pair / w->columns, pair % w->columns);
}

/* ------------------------------------------------------------------ all */

static int begin_columns(work *w, const qn__pairs *pairs) {
    int wide = 0;
    for (uint32_t k = 0; k < w->columns; k++) {
        column *c = &w->column[k];
        qn__exact_sum first = pairs->first[k], second = pairs->second[k];
        c->is_number = qn__column_categories(w->data, k) == 0;
        c->missing = pairs->missing[k] != 0;
        if (qn__exact_counts(w->data, k)) {
            c->kind = qn__wide_kind(w->data, k);
            c->exact = qn__wide_column(w->data, k);
            wide++;
        } else if (c->is_number && !c->missing) {
            qn__moments_side_of(w->data->items, &first, &second, &c->side);
        }
    }
    return wide;
}

static qn_status run(work *w, int threads, qn_error *err) {
    qn__pool *pool;
    const qn_status status = qn__pool_create(threads, 0, &pool, err);
    if (status != QN_OK)
        return status;
    atomic_store(&w->next, 0);
    qn__pool_run(pool, add_columns, w);
    atomic_store(&w->next, 0);
    qn__pool_run(pool, describe_pairs, w);
    qn__pool_destroy(pool);
    return QN_OK;
}

qn_status qn__exact_pairs(const qn__pairs *pairs, double *covariance, double *correlation,
                          qn_error *err) {
    const uint32_t columns = qn__columns_of(pairs->data);
    work w = {.data = pairs->data,
              .columns = columns,
              .covariance = covariance,
              .correlation = correlation};
    if (!pairs->data->wide)
        return QN_OK;
    w.column = qn__alloc(columns, sizeof *w.column, err);
    if (!w.column)
        return QN_MEMORY;
    const qn_status status = begin_columns(&w, pairs) > 0 ? run(&w, pairs->threads, err) : QN_OK;
    qn__free(w.column);
    return status;
}
