#include "statistics/column_search.h"

#include "statistics/column_places.h"
#include <stdlib.h>

enum { KEYS = QN__SEARCH_KEYS };

int qn__column_search_takes(const qn__column_task *task, int histograms, uint32_t most_bins) {
    return task->quantile_count <= QN__SEARCH_QUANTILES &&
           (!histograms || most_bins <= QN__SEARCH_BINS);
}

static void settle(qn__column_search *s) {
    s->unsettled = s->edges != NULL;
    for (uint32_t i = 0; i < s->ranks; i++)
        s->unsettled |= s->rank[i].low < s->rank[i].high;
}

void qn__column_search_begin(qn__column_search *s, const qn__column_task *task,
                             const qn__column_numbers *numbers, int bytes, const double *edges,
                             uint32_t bins) {
    *s = (qn__column_search){.count = numbers->count, .bins = bins, .bytes = bytes};
    if (s->count == 0)
        return;
    const uint32_t low = qn__order_key((float)numbers->minimum);
    const uint32_t high = qn__order_key((float)numbers->maximum);
    s->edges = bins > 1 ? edges : NULL;
    s->ranks = 2 * task->quantile_count;
    for (uint32_t i = 0; i < s->ranks; i++) {
        const uint64_t rank = qn__quantile_place_of(task->quantiles[i / 2], s->count).rank + i % 2;
        s->rank[i] = (qn__search_rank){rank < s->count ? rank : s->count - 1, low, high};
    }
    settle(s);
}

/* ------------------------------------------------------------------ the keys of a pass */

/* 1: an earlier rank lies between the same keys. Ranges of two ranks are equal or disjoint. */
static int is_known(const qn__column_search *s, uint32_t i) {
    for (uint32_t k = 0; k < i; k++)
        if (s->rank[k].low == s->rank[i].low)
            return 1;
    return 0;
}

static uint32_t count_ranges(const qn__column_search *s) {
    uint32_t ranges = 0;
    for (uint32_t i = 0; i < s->ranks; i++)
        ranges += s->rank[i].low < s->rank[i].high && !is_known(s, i);
    return ranges;
}

/* Up to `most` keys that divide a range evenly. Returns their number. */
static uint32_t divide(const qn__search_rank *range, uint32_t most, uint32_t *key) {
    const uint64_t all = (uint64_t)range->high - range->low + 1;
    const uint32_t pieces = all < (uint64_t)most + 1 ? (uint32_t)all : most + 1;
    for (uint32_t i = 1; i < pieces; i++)
        key[i - 1] = range->low + (uint32_t)(all * i / pieces);
    return pieces - 1;
}

static int compare(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static uint32_t edge_key(const qn__column_search *s, uint32_t edge) {
    return qn__order_key(qn__column_at_least(s->edges[edge]));
}

uint32_t qn__column_search_keys(const qn__column_search *s, uint32_t key[KEYS]) {
    const uint32_t ranges = count_ranges(s);
    uint32_t keys = 0, kept = 0;
    for (uint32_t i = 1; s->edges && i < s->bins; i++)
        key[keys++] = edge_key(s, i);
    const uint32_t most = ranges > 0 ? (KEYS - keys) / ranges : 0;
    for (uint32_t i = 0; i < s->ranks; i++)
        if (s->rank[i].low < s->rank[i].high && !is_known(s, i))
            keys += divide(&s->rank[i], most, key + keys);
    qsort(key, keys, sizeof *key, compare);
    for (uint32_t i = 0; i < keys; i++)
        if (i == 0 || key[i] != key[kept - 1])
            key[kept++] = key[i];
    return kept;
}

/* ------------------------------------------------------------------ what a pass counted */

/* below[i]: the values below key[i]. */
static void narrow(qn__search_rank *r, const uint32_t *key, const uint64_t *below, uint32_t keys) {
    uint32_t first = 0, end = keys; /* below[i] <= rank for i < first, above it from end on */
    while (first < end) {
        const uint32_t middle = first + (end - first) / 2;
        if (below[middle] <= r->rank)
            first = middle + 1;
        else
            end = middle;
    }
    if (first > 0 && key[first - 1] > r->low)
        r->low = key[first - 1];
    if (first < keys && key[first] - 1 < r->high)
        r->high = key[first] - 1;
}

uint32_t qn__column_search_bytes(uint32_t key) {
    uint32_t bytes = 0;
    while (bytes < 256 && qn__order_key((float)bytes) < key)
        bytes++;
    return bytes;
}

/* To the first and the last byte of a range. */
static void narrow_to_bytes(qn__search_rank *r) {
    r->low = qn__order_key((float)qn__column_search_bytes(r->low));
    r->high = qn__order_key((float)(qn__column_search_bytes(r->high + 1) - 1));
}

static uint64_t below_key(uint32_t wanted, const uint32_t *key, const uint64_t *below,
                          uint32_t keys) {
    const uint32_t *found = bsearch(&wanted, key, keys, sizeof *key, compare);
    return found ? below[found - key] : 0;
}

void qn__column_search_count(qn__column_search *s, const uint64_t counted[KEYS + 1],
                             uint64_t *histogram) {
    uint32_t key[KEYS];
    uint64_t below[KEYS], sum = 0, before = 0;
    const uint32_t keys = qn__column_search_keys(s, key);
    for (uint32_t i = 0; i < keys; i++)
        below[i] = sum += counted[i];
    for (uint32_t i = 0; s->edges && i < s->bins; i++) {
        const uint64_t next =
            i + 1 < s->bins ? below_key(edge_key(s, i + 1), key, below, keys) : s->count;
        histogram[i] = next - before;
        before = next;
    }
    s->edges = NULL;
    for (uint32_t i = 0; i < s->ranks; i++) {
        narrow(&s->rank[i], key, below, keys);
        if (s->bytes)
            narrow_to_bytes(&s->rank[i]);
    }
    settle(s);
}

void qn__column_search_end(const qn__column_search *s, const qn__column_task *task,
                           qn__column_numbers *out) {
    for (uint32_t i = 0; i < task->quantile_count && s->count > 0; i++) {
        const qn__quantile_place p = qn__quantile_place_of(task->quantiles[i], s->count);
        out->quantiles[i] =
            qn__moments_between(qn__order_value(s->rank[2 * i].low),
                                qn__order_value(s->rank[2 * i + 1].low), p.part, p.bits);
    }
}
