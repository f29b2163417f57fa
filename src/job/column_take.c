/* Columns whose sums a device computes: it takes the device's numbers, and finishes the columns
 * with all threads of this process. */
#include "base/float_state.h"
#include "base/memory.h"
#include "base/threads.h"
#include "job/column_round.h"
#include "job/statistics_columns.h"
#include <string.h>

enum { TILE = QN__COLUMN_TILE };

struct qn__column_taker {
    qn__column_total all[TILE], part[TILE]; /* of a tile: all groups, and the group at hand */
    qn__pool *pool;
    qn__column_scratch *thread; /* of each thread of the pool */
    int threads;
};

/* ------------------------------------------------------------------ a thread's memory */

void qn__column_taker_free(qn__column_taker *t) {
    if (!t)
        return;
    qn__pool_destroy(t->pool);
    for (int i = 0; t->thread && i < t->threads; i++)
        qn__column_scratch_release(&t->thread[i]);
    qn__free(t->thread);
    qn__free(t);
}

/* Without memory for threads this one does all. NULL: no memory. */
static qn__column_taker *taker_of(qn__columns_round *r, qn__column_thread *s) {
    if (s->taker)
        return s->taker;
    qn__column_taker *t = s->taker = qn__alloc(1, sizeof *s->taker, NULL);
    if (!t)
        return NULL;
    const int most = r->job->threads < TILE ? r->job->threads : TILE;
    if (most > 1)
        qn__pool_create(most, 0, &t->pool, NULL);
    t->threads = t->pool ? most : 1;
    t->thread = qn__alloc((uint64_t)t->threads, sizeof *t->thread, NULL);
    return t->thread ? t : NULL;
}

/* ------------------------------------------------------------------ a tile is complete */

typedef struct ending {
    qn__columns_round *round;
    qn__column_taker *taker;
    uint32_t first, count; /* columns */
    int64_t *words;
    atomic_uint next; /* the first column that no thread has */
} ending;

static int wants_places(const qn__column_job *j) {
    return j->task->quantile_count > 0 || j->edges != NULL;
}

/* 0: no memory. */
static int finish_column(ending *e, uint32_t column, qn__column_scratch *s) {
    const qn__column_job *j = e->round->job;
    const uint64_t items = j->data->items;
    const uint32_t categories = qn__column_categories(j->data, column);
    qn__column_numbers *numbers = &j->numbers[(size_t)column * j->task->groups];
    const int gathered = categories > 0 || wants_places(j);
    if (gathered && !s->values && qn__column_scratch_make(e->round, 1, s, NULL) != QN_OK)
        return 0;
    if (gathered)
        qn__columns_gather(j->data, j->order, 0, items, column, 1, s->values, e->round->stride);
    j->bins[column] = j->wanted_bins;
    if (categories > 0) {
        qn__column_count_categories(j, column, s->values);
    } else {
        if (gathered)
            qn__column_places(j->task, s->values, items, &s->room, numbers,
                              qn__column_edges(j, column), &j->bins[column]);
        qn__column_note_sums(j, column, &e->taker->all[column - e->first].moments);
    }
    qn__column_put(e->round, column, e->words);
    return 1;
}

static void finish_columns(void *context, int thread) {
    ending *e = context;
    uint32_t k;
    while ((k = atomic_fetch_add(&e->next, 1)) < e->count)
        if (!finish_column(e, e->first + k, &e->taker->thread[thread]))
            atomic_store(&e->round->short_of, 1);
}

static void set_group(const qn__column_job *j, uint32_t column, uint32_t group,
                      qn__column_total *total) {
    qn__column_numbers *n = &j->numbers[(size_t)column * j->task->groups + group];
    qn__column_set_sums(j->task, group, j->data->items, &total->moments, n);
    if (n->count > 0) {
        n->minimum = (double)total->least;
        n->maximum = (double)total->greatest;
    }
}

/* The numbers of a group of all columns of a tile. */
static void end_group(const qn__columns_round *r, qn__column_taker *t, uint32_t first,
                      uint32_t columns, uint32_t group) {
    for (uint32_t k = 0; k < columns; k++) {
        if (qn__column_categories(r->job->data, first + k) == 0) {
            set_group(r->job, first + k, group, &t->part[k]);
            qn__column_total_merge(&t->all[k], &t->part[k]);
        }
        memset(&t->part[k], 0, sizeof t->part[k]);
    }
}

static void end_tile(qn__columns_round *r, qn__column_taker *t, uint32_t first, uint32_t columns,
                     int64_t *words) {
    ending e = {.round = r, .taker = t, .first = first, .count = columns, .words = words};
    for (uint32_t k = 0; k < columns && r->job->task->groups > 1; k++)
        if (qn__column_categories(r->job->data, first + k) == 0)
            set_group(r->job, first + k, 0, &t->all[k]);
    if (t->pool)
        qn__pool_run(t->pool, finish_columns, &e);
    else
        finish_columns(&e, 0);
}

/* The classes without items have no part. */
static void begin_tile(const qn__columns_round *r, qn__column_taker *t, uint32_t first,
                       uint32_t columns) {
    qn__column_total none = {.least = 0};
    memset(t->all, 0, sizeof t->all);
    memset(t->part, 0, sizeof t->part);
    for (uint32_t k = 0; k < columns; k++)
        for (uint32_t g = 1; g < r->job->task->groups; g++)
            set_group(r->job, first + k, g, &none);
}

/* ------------------------------------------------------------------ qn__kernel_job */

static uint32_t take_span(void *context, uint32_t first, uint32_t most, int64_t *words,
                          qn__kernel_span *out) {
    const qn__columns_round *r = context;
    (void)words;
    qn__column_device_span(r->job->device, first, most, out);
    return most < TILE ? most : TILE;
}

/* No item of the kernel has a fault: the device is faulty. */
static void note_fault(void *context, uint64_t item, uint64_t bits) {
    (void)item;
    (void)bits;
    atomic_store(&((qn__columns_round *)context)->wrong, 1);
}

/* One sum of each launch is compared with that of the host. 0: it is wrong. */
static int take_item(const qn__columns_round *r, qn__column_taker *t, const qn__column_item *at,
                     int compare, const uint64_t *value) {
    const qn__column_device *d = r->job->device;
    const uint32_t column = r->from + at->column;
    if (qn__column_categories(r->job->data, column) > 0)
        return 1;
    if (compare && !qn__column_device_check(d, at->part, column, value))
        return 0;
    qn__column_device_add(d, at->part, column, value, &t->part[at->column - at->first]);
    return 1;
}

/* What ends behind an item. */
static void end_item(qn__columns_round *r, qn__column_taker *t, const qn__column_item *at,
                     int64_t *words) {
    const qn__column_device *d = r->job->device;
    const int last = at->part + 1 == d->parts;
    if (at->column + 1 < at->first + at->columns)
        return;
    if (last || d->group[at->part + 1] != d->group[at->part])
        end_group(r, t, r->from + at->first, at->columns, d->group[at->part]);
    if (last)
        end_tile(r, t, r->from + at->first, at->columns, words);
}

static int take_items(void *context, void *scratch, int64_t *words, uint64_t first, uint64_t count,
                      const void *const *values, double seconds) {
    qn__columns_round *r = context;
    qn__column_taker *t = taker_of(r, scratch);
    const uint64_t *value = values[2];
    (void)seconds;
    qn__float_state_set();
    if (!t)
        atomic_store(&r->short_of, 1);
    for (uint64_t item = first; t && item < first + count; item++, value += QN__COLUMN_WORDS) {
        const qn__column_item at = qn__column_device_item(item);
        if ((uint32_t)item == 0)
            begin_tile(r, t, r->from + at.first, at.columns);
        if (!take_item(r, t, &at, item == first, value)) {
            atomic_store(&r->wrong, 1);
            return 0;
        }
        end_item(r, t, &at, words);
    }
    return t != NULL && !atomic_load(&r->short_of);
}

void qn__column_taker_bind(qn__column_device *device) {
    device->job.span = take_span;
    device->job.take = take_items;
    device->job.fault = note_fault;
}
