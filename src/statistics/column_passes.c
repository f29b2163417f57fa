/* Passes of a device over its tile, until the quantiles and histograms of all groups are known. */
#include "base/memory.h"
#include "statistics/column_places.h"
#include "statistics/column_taker.h"
#include "data/table/table_columns.h"
#include <string.h>

enum { KEYS = QN__SEARCH_KEYS, EACH = QN__COLUMN_LANE_KEYS };

static qn__column_numbers *numbers_of(const qn__columns_round *r, uint32_t column, uint32_t group) {
    return &r->job->numbers[(size_t)column * r->job->task->groups + group];
}

/* ------------------------------------------------------------------ the first pass */

/* The edges are those of all items. */
static void begin_column(const qn__columns_round *r, const qn__column_taker *t, uint32_t column) {
    const qn__column_job *j = r->job;
    const qn__column_numbers *all = numbers_of(r, column, 0);
    double *edges = qn__column_edges(j, column);
    uint32_t bins = all->count == 0 ? 0 : j->wanted_bins;
    if (edges && all->count > 0) {
        bins = bins > 0 ? bins : qn__column_bins(all->count);
        qn__column_set_edges((float)all->minimum, (float)all->maximum, edges, &bins);
    }
    j->bins[column] = bins;
    for (uint32_t g = 0; g < j->task->groups; g++) {
        qn__column_numbers *n = numbers_of(r, column, g);
        qn__column_search_begin(qn__column_search_of(r, t, column, g), j->task, n,
                                j->device->table.bytes, edges, bins);
        if (edges && bins == 1)
            n->histogram[0] = n->count;
    }
}

int qn__column_passes_begin(const qn__columns_round *r, qn__column_taker *t) {
    if (!t->search)
        t->search =
            qn__alloc((uint64_t)QN__COLUMN_TILE * r->job->task->groups, sizeof *t->search, NULL);
    if (!t->search)
        return 0;
    for (uint32_t k = 0; k < t->columns; k++)
        for (uint32_t g = 0; g < r->job->task->groups; g++)
            *qn__column_search_of(r, t, t->first + k, g) = (qn__column_search){.count = 0};
    for (uint32_t column = t->first; column < t->first + t->columns; column++)
        if (qn__column_categories(r->job->data, column) == 0)
            begin_column(r, t, column);
    t->passing = 1;
    memset(t->counted, 0, sizeof t->counted);
    return 1;
}

/* ------------------------------------------------------------------ the next pass */

static int is_settled(const qn__columns_round *r, const qn__column_taker *t) {
    int unsettled = 0;
    for (uint32_t k = 0; k < t->columns; k++)
        for (uint32_t g = 0; g < r->job->task->groups; g++)
            unsettled |= qn__column_search_of(r, t, t->first + k, g)->unsettled;
    return !unsettled;
}

/* The keys as the device compares them; those that are not used are above all values. */
static void write_keys(const qn__column_search *s, uint32_t *to) {
    const uint32_t keys = s->unsettled ? qn__column_search_keys(s, to) : 0;
    for (uint32_t i = 0; s->bytes && i < keys; i++)
        to[i] = qn__column_search_bytes(to[i]);
    memset(to + keys, 0xFF, (KEYS + 1 - keys) * sizeof *to);
}

/* Neighbouring chunks of a target have the same keys. */
static void write_column(const qn__columns_round *r, const qn__column_taker *t, uint32_t column,
                         uint32_t *to) {
    const qn__column_device *d = r->job->device;
    for (uint64_t c = 0; c < d->chunks; c++, to += KEYS + 1)
        if (c > 0 && d->target[c] == d->target[c - 1])
            /* cppcheck-suppress overlappingWriteFunction; they are side by side */
            memcpy(to, to - (KEYS + 1), (KEYS + 1) * sizeof *to);
        else
            write_keys(qn__column_search_of(r, t, column, d->target[c]), to);
}

int qn__column_passes_next(const qn__columns_round *r, qn__column_taker *t, qn__kernel_span *out) {
    const qn__column_device *d = r->job->device;
    if (is_settled(r, t))
        return 0;
    t->checked = 0;
    qn__column_device_pass(d, t->first - r->from, t->columns, out);
    if (t->capacity < out->count) {
        qn__free(t->keys);
        t->keys = qn__alloc(out->count, EACH * sizeof *t->keys, NULL);
        t->capacity = t->keys ? out->count : 0;
    }
    if (!t->keys)
        return -1;
    for (uint32_t k = 0; k < t->columns; k++)
        write_column(r, t, t->first + k, t->keys + k * d->chunks * (KEYS + 1));
    out->from[QN__COLUMN_KEYS_ARRAY] = t->keys;
    return 1;
}

/* ------------------------------------------------------------------ what it counts */

/* A target's counts are complete. 0: they are not as many as its values. */
static int take_target(const qn__columns_round *r, qn__column_taker *t, uint32_t column,
                       uint32_t group) {
    qn__column_search *s = qn__column_search_of(r, t, column, group);
    uint64_t sum = 0;
    for (uint32_t i = 0; i <= KEYS; i++)
        sum += t->counted[i];
    if (s->unsettled && sum == s->count)
        qn__column_search_count(s, t->counted, numbers_of(r, column, group)->histogram);
    else if (s->unsettled)
        return 0;
    memset(t->counted, 0, sizeof t->counted);
    return 1;
}

/* The first chunk of a pass that has keys is compared with what the host counts. */
static int check(const qn__columns_round *r, qn__column_taker *t, uint32_t column, uint64_t chunk,
                 const uint64_t *words) {
    const qn__column_device *d = r->job->device;
    const uint64_t at = (column - t->first) * d->chunks + chunk;
    if (t->checked || !qn__column_search_of(r, t, column, d->target[chunk])->unsettled)
        return 1;
    t->checked = 1;
    return qn__column_device_check_chunk(d, chunk, column, t->keys + at * (KEYS + 1), words);
}

int qn__column_passes_take(const qn__columns_round *r, qn__column_taker *t, uint64_t item,
                           const uint64_t *words) {
    const qn__column_device *d = r->job->device;
    const uint64_t group = (uint32_t)item / QN__KERNEL_LANES, chunk = group % d->chunks;
    const uint32_t lane = (uint32_t)item % QN__KERNEL_LANES;
    const uint32_t column = t->first + (uint32_t)(group / d->chunks);
    if (lane == 0 && !check(r, t, column, chunk, words))
        return 0;
    for (uint32_t i = 0; i < EACH; i++)
        t->counted[lane * EACH + i] += (uint32_t)(words[i / 2] >> 32 * (i % 2));
    const int last = chunk + 1 == d->chunks || d->target[chunk + 1] != d->target[chunk];
    return lane + 1 < QN__KERNEL_LANES || !last || take_target(r, t, column, d->target[chunk]);
}

void qn__column_passes_end(const qn__columns_round *r, const qn__column_taker *t, uint32_t column) {
    for (uint32_t g = 0; g < r->job->task->groups; g++)
        qn__column_search_end(qn__column_search_of(r, t, column, g), r->job->task,
                              numbers_of(r, column, g));
}
