/* Columns whose sums a device computes: it takes the device's numbers, and finishes the columns
 * with all threads of this process. */
#include "base/memory.h"
#include "base/system/float_state.h"
#include "statistics/column_taker.h"
#include "data/table/table_columns.h"
#include <string.h>

enum { TILE = QN__COLUMN_TILE };

/* ------------------------------------------------------------------ a thread's memory */

void qn__column_taker_free(qn__column_taker *t) {
    if (!t)
        return;
    qn__pool_destroy(t->pool);
    for (int i = 0; t->thread && i < t->threads; i++)
        qn__column_scratch_release(&t->thread[i]);
    qn__free(t->thread);
    qn__free(t->search);
    qn__free(t->keys);
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

/* ------------------------------------------------------------------ sums of a tile */

static int is_number(const qn__columns_round *r, uint32_t column) {
    return qn__column_categories(r->job->data, column) == 0;
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

/* The classes without items have no part. */
static void begin_tile(const qn__columns_round *r, qn__column_taker *t) {
    qn__column_total none = {.least = 0};
    memset(t->all, 0, sizeof t->all);
    memset(t->part, 0, sizeof t->part);
    t->passing = 0;
    for (uint32_t k = 0; k < t->columns; k++)
        for (uint32_t g = 1; g < r->job->task->groups; g++)
            set_group(r->job, t->first + k, g, &none);
}

/* The numbers of a group of all columns. */
static void end_group(const qn__columns_round *r, qn__column_taker *t, uint32_t group) {
    for (uint32_t k = 0; k < t->columns; k++) {
        if (is_number(r, t->first + k)) {
            set_group(r->job, t->first + k, group, &t->part[k]);
            qn__column_total_merge(&t->all[k], &t->part[k]);
        }
        memset(&t->part[k], 0, sizeof t->part[k]);
    }
}

/* ------------------------------------------------------------------ a tile is complete */

typedef struct ending {
    qn__columns_round *round;
    qn__column_taker *taker;
    int64_t *words;
    atomic_uint next; /* the first column that no thread has */
} ending;

/* 1: the values of a column have to be looked at by the host. */
static int is_gathered(const qn__columns_round *r, uint32_t column) {
    const qn__column_job *j = r->job;
    const int places = j->task->quantile_count > 0 || j->edges != NULL;
    return !is_number(r, column) || (places && j->device->chunks == 0);
}

static void finish_gathered(const qn__column_job *j, uint32_t column, qn__column_scratch *s) {
    if (qn__column_categories(j->data, column) > 0) {
        qn__column_count_categories(j, column, s->values);
        return;
    }
    j->bins[column] = j->wanted_bins;
    qn__column_places(j->task, s->values, j->data->items, &s->buffer,
                      &j->numbers[(size_t)column * j->task->groups], qn__column_edges(j, column),
                      &j->bins[column]);
}

/* 0: no memory. */
static int finish_column(ending *e, uint32_t column, qn__column_scratch *s) {
    const qn__columns_round *r = e->round;
    const qn__column_job *j = r->job;
    const qn__column_taker *t = e->taker;
    if (is_gathered(r, column)) {
        if (!s->values && qn__column_scratch_make(r, 1, s, NULL) != QN_OK)
            return 0;
        qn__columns_gather(j->data, j->order, 0, j->data->items, column, 1, s->values, r->stride);
        finish_gathered(j, column, s);
    } else if (j->device->chunks > 0) {
        qn__column_passes_end(r, t, column);
    }
    if (is_number(r, column))
        qn__column_note_sums(j, column, &t->all[column - t->first].moments);
    qn__column_put(r, column, e->words);
    return 1;
}

static void finish_columns(void *context, int thread) {
    ending *e = context;
    uint32_t k;
    while ((k = atomic_fetch_add(&e->next, 1)) < e->taker->columns)
        if (!finish_column(e, e->taker->first + k, &e->taker->thread[thread]))
            atomic_store(&e->round->short_of, 1);
}

static void end_tile(qn__columns_round *r, qn__column_taker *t, int64_t *words) {
    ending e = {.round = r, .taker = t, .words = words};
    if (t->pool)
        qn__pool_run(t->pool, finish_columns, &e);
    else
        finish_columns(&e, 0);
}

/* The sums are complete: the passes follow, if there are any. */
static void end_sums(qn__columns_round *r, qn__column_taker *t, int64_t *words) {
    for (uint32_t k = 0; k < t->columns && r->job->task->groups > 1; k++)
        if (is_number(r, t->first + k))
            set_group(r->job, t->first + k, 0, &t->all[k]);
    if (r->job->device->chunks == 0)
        end_tile(r, t, words);
    else if (!qn__column_passes_begin(r, t))
        atomic_store(&r->short_of, 1);
}

/* ------------------------------------------------------------------ qn__kernel_job */

static uint32_t take_span(void *context, uint32_t first, uint32_t most, int64_t *words,
                          qn__kernel_span *out) {
    const qn__columns_round *r = context;
    (void)words;
    qn__column_device_span(r->job->device, first, most, out);
    return most < TILE ? most : TILE;
}

static int take_more(void *context, void *scratch, int64_t *words, qn__kernel_span *out) {
    qn__columns_round *r = context;
    qn__column_taker *t = ((qn__column_thread *)scratch)->taker;
    if (!t->passing)
        return 0;
    const int more = qn__column_passes_next(r, t, out);
    if (more > 0)
        return 1;
    t->passing = 0;
    if (more == 0)
        end_tile(r, t, words);
    else
        atomic_store(&r->short_of, 1);
    return 0;
}

/* No item of the kernel has a fault: the device is faulty. */
static void note_fault(void *context, uint64_t item, uint64_t bits) {
    (void)item;
    (void)bits;
    atomic_store(&((qn__columns_round *)context)->wrong, 1);
}

/* One sum of each launch is compared with that of the host. 0: it is wrong. */
static int take_sums(const qn__columns_round *r, qn__column_taker *t, const qn__column_item *at,
                     int compare, const uint64_t *value) {
    const qn__column_device *d = r->job->device;
    const uint32_t column = r->from + at->column;
    if (!is_number(r, column))
        return 1;
    if (compare && !qn__column_device_check(d, at->part, column, value))
        return 0;
    qn__column_device_add(d, at->part, column, value, &t->part[at->column - at->first]);
    return 1;
}

/* An item of sums, with what begins before it and ends after it. */
static int take_item(qn__columns_round *r, qn__column_taker *t, uint64_t item, int compare,
                     const uint64_t *value, int64_t *words) {
    const qn__column_device *d = r->job->device;
    const qn__column_item at = qn__column_device_item(item);
    const int last = at.part + 1 == d->parts;
    if ((uint32_t)item == 0) {
        t->first = r->from + at.first;
        t->columns = at.columns;
        begin_tile(r, t);
    }
    if (!take_sums(r, t, &at, compare, value))
        return 0;
    if (at.column + 1 < at.first + at.columns)
        return 1;
    if (last || d->group[at.part + 1] != d->group[at.part])
        end_group(r, t, d->group[at.part]);
    if (last)
        end_sums(r, t, words);
    return 1;
}

static int take_items(void *context, void *scratch, int64_t *words, uint64_t first, uint64_t count,
                      const void *const *values, double seconds) {
    qn__columns_round *r = context;
    qn__column_taker *t = taker_of(r, scratch);
    const uint64_t *value = values[QN__COLUMN_VALUES_ARRAY];
    const int passes = qn__column_device_is_pass(first);
    (void)seconds;
    qn__float_state_set();
    if (!t)
        atomic_store(&r->short_of, 1);
    for (uint64_t item = first; t && item < first + count; item++, value += QN__COLUMN_WORDS)
        if (passes ? !qn__column_passes_take(r, t, item, value)
                   : !take_item(r, t, item, item == first, value, words)) {
            atomic_store(&r->wrong, 1);
            return 0;
        }
    return t != NULL && !atomic_load(&r->short_of);
}

void qn__column_taker_bind(qn__column_device *device) {
    device->job.span = take_span;
    device->job.more = take_more;
    device->job.take = take_items;
    device->job.fault = note_fault;
}
