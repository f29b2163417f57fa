#include "data/prepare/fit_parts.h"

#include "base/memory.h"
#include "data/table/missing.h"
#include "data/table/remote_rows.h"
#include "num/order.h"
#include <math.h>
#include <string.h>

/* Columns whose sums or counts are made at a time. Quartiles are found by four passes over the own
 * items, each for eight bits of their keys. */
enum { COLUMNS = 256, RANKS = 6, PASSES = 4, DIGITS = 256 };

/* ------------------------------------------------------------------ own items */

int qn__own_items_of(const qn_data *data, const float *weights, qn__own_items *out) {
    const qn__remote_rows *remote = qn__data_remote(data);
    if (!remote)
        return 0;
    const qn_parts *parts = remote->parts;
    const uint64_t from = qn__data_item_from(data, parts->first[parts->rank]);
    *out = (qn__own_items){.parts = parts, .items = *data, .from = from};
    out->items.items = qn__data_item_from(data, parts->first[parts->rank + 1]) - from;
    if (data->index)
        out->items.index += from;
    else
        out->items.values += from * qn__data_step(data);
    out->weights = weights ? weights + from : NULL;
    return 1;
}

static double weight_of(const qn__own_items *own, uint64_t item) {
    return own->weights ? (double)own->weights[item] : 1;
}

static float value_at(const qn_data *data, uint64_t item, uint32_t column) {
    return (float)qn__data_number(data, item, column) + 0.0f; /* -0 becomes +0 */
}

/* ------------------------------------------------------------------ means */

typedef struct means {
    qn__exact_sum sum[COLUMNS], together[COLUMNS];
    int64_t present[COLUMNS];
    qn__exact_sum *all[2 * COLUMNS];
} means;

static void add_values(const qn__own_items *own, uint32_t from, uint32_t count, means *m) {
    for (uint64_t i = 0; i < own->items.items; i++) {
        const double weight = weight_of(own, i);
        for (uint32_t k = 0; weight > 0 && k < count; k++) {
            const float value = value_at(&own->items, i, from + k);
            if (qn__is_missing(value))
                continue;
            m->present[k]++;
            if (own->weights)
                qn__exact_add(&m->together[k], weight);
            if (value != 0)
                qn__exact_add(&m->sum[k], weight * (double)value);
        }
    }
}

static float mean_of(const qn__own_items *own, means *m, uint32_t k) {
    return own->weights ? qn__exact_weighted_mean(&m->sum[k], &m->together[k])
                        : qn__exact_mean(&m->sum[k], (uint64_t)m->present[k]);
}

static qn_status find_means(const qn__own_items *own, uint32_t from, uint32_t count, means *m,
                            float *mean, qn_error *err) {
    memset(m, 0, sizeof *m);
    for (uint32_t k = 0; k < count; k++) {
        m->all[k] = &m->sum[k];
        m->all[count + k] = &m->together[k];
    }
    add_values(own, from, count, m);
    qn_status status = qn__parts_add_sums(own->parts, m->all, (own->weights ? 2 : 1) * count, err);
    if (status == QN_OK)
        status = qn__parts_add(own->parts, m->present, count, err);
    for (uint32_t k = 0; status == QN_OK && k < count; k++) {
        const qn__schema *schema = own->items.schema;
        const int is_number = !schema || schema->feature[from + k].categories == 0;
        mean[from + k] = m->present[k] > 0 && is_number ? mean_of(own, m, k) : 0.0f;
    }
    return status;
}

qn_status qn__parts_means(const qn__own_items *own, float *mean, qn_error *err) {
    const uint32_t features = own->items.features;
    means *m = qn__alloc(1, sizeof *m, err);
    qn_status status = qn__parts_agree(own->parts, m ? QN_OK : QN_MEMORY, err);
    for (uint32_t k = 0; m && status == QN_OK && k < features; k += COLUMNS)
        status = find_means(own, k, features - k < COLUMNS ? features - k : COLUMNS, m, mean, err);
    qn__free(m);
    return status;
}

/* ------------------------------------------------------------------ extremes */

typedef struct extremes {
    uint32_t there;
    float least[COLUMNS], greatest[COLUMNS];
} extremes;

static void find_own(const qn__own_items *own, uint32_t from, uint32_t count, extremes *e,
                     int64_t *present) {
    e->there = 1;
    for (uint32_t k = 0; k < COLUMNS; k++) {
        e->least[k] = INFINITY;
        e->greatest[k] = -INFINITY;
        present[k] = 0;
    }
    for (uint64_t i = 0; i < own->items.items; i++) {
        const int counts = weight_of(own, i) > 0;
        for (uint32_t k = 0; counts && k < count; k++) {
            const float value = value_at(&own->items, i, from + k);
            if (qn__is_missing(value))
                continue;
            present[k]++;
            e->least[k] = value < e->least[k] ? value : e->least[k];
            e->greatest[k] = value > e->greatest[k] ? value : e->greatest[k];
        }
    }
}

static qn_status find_extremes(const qn__own_items *own, uint32_t from, uint32_t count,
                               extremes *each, qn__column_order *order, qn_error *err) {
    extremes mine;
    int64_t present[COLUMNS];
    find_own(own, from, count, &mine, present);
    qn_status status = qn__parts_gather_each(own->parts, &mine, sizeof mine, each, err);
    if (status == QN_OK)
        status = qn__parts_add(own->parts, present, count, err);
    for (uint32_t k = 0; status == QN_OK && k < count; k++) {
        qn__column_order *o = &order[from + k];
        *o = (qn__column_order){.count = (uint64_t)present[k], INFINITY, -INFINITY, {{0}}};
        for (uint32_t r = 0; r < own->parts->ranks; r++) {
            if (own->parts->gone[r] != QN__PART_THERE)
                continue;
            o->least = each[r].least[k] < o->least ? each[r].least[k] : o->least;
            o->greatest = each[r].greatest[k] > o->greatest ? each[r].greatest[k] : o->greatest;
        }
    }
    return status;
}

/* ------------------------------------------------------------------ quartiles */

/* The numbers of some ranks of a column: the digits of their keys that are known, how many numbers
 * with these digits come before, and the first one with the same digits. */
typedef struct search {
    uint32_t key[RANKS], same[RANKS];
    uint64_t rank[RANKS];
} search;

typedef struct searches {
    search column[COLUMNS];
    int64_t count[COLUMNS][RANKS][DIGITS];
} searches;

static void begin_search(search *s, uint64_t count) {
    for (uint32_t i = 0; i < RANKS; i++) {
        const uint64_t rank = (i / 2 + 1) * (count - 1) / 4 + i % 2;
        s->rank[i] = rank < count ? rank : count - 1;
        s->key[i] = s->same[i] = 0;
    }
}

/* `shift`: of the digit that is counted. */
static void count_value(const search *s, uint32_t key, int shift, int64_t (*count)[DIGITS]) {
    for (uint32_t i = 0; i < RANKS; i++)
        if (s->same[i] == i && ((uint64_t)key >> (shift + 8)) == s->key[i])
            count[i][key >> shift & (DIGITS - 1)]++;
}

static void count_digits(const qn__own_items *own, uint32_t from, uint32_t count, int shift,
                         searches *s) {
    memset(s->count, 0, sizeof s->count);
    for (uint64_t i = 0; i < own->items.items; i++) {
        const int counts = weight_of(own, i) > 0;
        for (uint32_t k = 0; counts && k < count; k++) {
            const float value = value_at(&own->items, i, from + k);
            if (!qn__is_missing(value))
                count_value(&s->column[k], qn__order_key(value), shift, s->count[k]);
        }
    }
}

static void take_digit(search *s, int64_t (*count)[DIGITS]) {
    for (uint32_t i = 0; i < RANKS; i++) {
        const int64_t *own = count[s->same[i]];
        uint32_t digit = 0;
        while (digit + 1 < DIGITS && (uint64_t)own[digit] <= s->rank[i])
            s->rank[i] -= (uint64_t)own[digit++];
        s->key[i] = s->key[i] * DIGITS + digit;
    }
    for (uint32_t i = 1; i < RANKS; i++)
        for (s->same[i] = 0; s->key[s->same[i]] != s->key[i];)
            s->same[i]++;
}

static qn_status find_quartiles(const qn__own_items *own, uint32_t from, uint32_t count,
                                searches *s, qn__column_order *order, qn_error *err) {
    qn_status status = QN_OK;
    for (uint32_t k = 0; k < count; k++)
        begin_search(&s->column[k], order[from + k].count ? order[from + k].count : 1);
    for (int pass = PASSES - 1; status == QN_OK && pass >= 0; pass--) {
        count_digits(own, from, count, 8 * pass, s);
        status = qn__parts_add(own->parts, s->count[0][0], (uint64_t)count * RANKS * DIGITS, err);
        for (uint32_t k = 0; status == QN_OK && k < count; k++)
            take_digit(&s->column[k], s->count[k]);
    }
    for (uint32_t k = 0; status == QN_OK && k < count; k++)
        for (uint32_t i = 0; i < RANKS; i++)
            order[from + k].quartile[i / 2][i % 2] = qn__order_value(s->column[k].key[i]);
    return status;
}

qn_status qn__parts_order(const qn__own_items *own, int quartiles, qn__column_order *order,
                          qn_error *err) {
    const uint32_t features = own->items.features;
    extremes *each = qn__alloc(own->parts->ranks, sizeof *each, err);
    searches *s = quartiles && each ? qn__alloc(1, sizeof *s, err) : NULL;
    qn_status status =
        qn__parts_agree(own->parts, each && (s || !quartiles) ? QN_OK : QN_MEMORY, err);
    for (uint32_t k = 0; each && status == QN_OK && k < features; k += COLUMNS) {
        const uint32_t count = features - k < COLUMNS ? features - k : COLUMNS;
        status = find_extremes(own, k, count, each, order, err);
        if (status == QN_OK && s)
            status = find_quartiles(own, k, count, s, order, err);
    }
    qn__free(each);
    qn__free(s);
    return status;
}
