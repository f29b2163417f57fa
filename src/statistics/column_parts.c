/* Two kinds of exchanges: the exact sums and extremes of some columns, and then the counts of the
 * passes that find quantiles and histograms (column_search.h). Neither depends on which rank has
 * which row. */
#include "statistics/column_parts.h"
#include "base/memory.h"
#include "base/system/threads.h"
#include "data/table/table_columns.h"
#include "statistics/column_places.h"
#include "statistics/column_search.h"
#include "statistics/turned_columns.h"
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Columns at a time, and groups of columns whose values are looked for at a time. */
enum { TILE = 16, TARGETS = 256 };
enum { KEYS = QN__SEARCH_KEYS, HALVES = 1 << 16 };

/* A group of the items of a column. */
typedef struct target {
    uint32_t column, group;
    const float *value; /* of this rank, none missing */
    uint64_t count;     /* of them */
    float least, greatest;
    qn__moments sums; /* of this rank, then of all */
} target;

typedef struct describing {
    const qn_parts *parts;
    const qn__column_job *job;
    qn__column_task own, whole; /* the items of each group in this rank, and in all */
    uint64_t *starts;           /* of `whole` */
    uint32_t first, columns;    /* those at hand */
    qn_data turned;             /* the values of this rank, where they are in a file */
    qn_data copy;               /* of a tile, column by column, where its memory is */
    float *values;              /* of it: each column has `items` */
    target *target;             /* columns x groups */
    qn__column_search *search;  /* of TARGETS */
    int64_t *words;
    float *extremes;
    uint16_t *index; /* of each thread, HALVES + 1 */
    qn__pool *pool;
    uint32_t from, targets; /* the targets at hand */
    atomic_uint next;
} describing;

static uint64_t items_of(const describing *d) { return d->job->data->items; }

static uint64_t start_of(const qn__column_task *task, uint32_t group, uint64_t items) {
    return group == 0 ? 0 : group < task->groups ? task->starts[group - 1] : items;
}

static uint64_t end_of(const qn__column_task *task, uint32_t group, uint64_t items) {
    return group == 0 ? items : start_of(task, group + 1, items);
}

static void each(describing *d, void (*work)(void *, int)) {
    atomic_store(&d->next, 0);
    if (d->pool)
        qn__pool_run(d->pool, work, d);
    else
        work(d, 0);
}

static target *target_of(const describing *d, uint32_t column, uint32_t group) {
    return &d->target[(size_t)(column - d->first) * d->own.groups + group];
}

static qn__column_numbers *numbers_of(const describing *d, const target *t) {
    return &d->job->numbers[(size_t)t->column * d->own.groups + t->group];
}

/* ------------------------------------------------------------------ sums and extremes */

/* The values of a group that are not missing follow those of the groups before. */
static uint64_t take_group(describing *d, target *t, float *values, uint64_t kept) {
    const uint64_t from = start_of(&d->own, t->group, items_of(d));
    const uint64_t to = end_of(&d->own, t->group, items_of(d));
    t->value = values + kept;
    t->least = INFINITY;
    t->greatest = -INFINITY;
    for (uint64_t i = from; i < to; i++) {
        const float value = values[i];
        if (isnan(value))
            continue;
        t->least = value < t->least ? value : t->least;
        t->greatest = value > t->greatest ? value : t->greatest;
        values[kept++] = value;
    }
    t->count = (uint64_t)(values + kept - t->value);
    qn__moments_add(&t->sums, t->value, (size_t)t->count);
    return kept;
}

static void take_column(describing *d, uint32_t column) {
    const uint32_t groups = d->own.groups;
    float *values = d->values + (size_t)(column - d->first) * items_of(d);
    uint64_t kept = 0;
    if (d->turned.values && column < d->job->data->features)
        qn__turned_columns_gather(&d->turned, d->job->order, items_of(d), column, values);
    else
        qn__columns_gather(d->job->data, d->job->order, 0, items_of(d), column, 1, values,
                           (size_t)items_of(d));
    for (uint32_t g = 0; g < groups; g++)
        *target_of(d, column, g) = (target){.column = column, .group = g};
    const uint32_t categories = qn__column_categories(d->job->data, column);
    if (categories > 0) {
        qn__column_tally(&d->own, values, items_of(d), categories,
                         numbers_of(d, target_of(d, column, 0)));
        return;
    }
    for (uint32_t g = groups > 1; g < groups; g++)
        kept = take_group(d, target_of(d, column, g), values, kept);
    target *all = target_of(d, column, 0);
    for (uint32_t g = 1; g < groups; g++) {
        target *part = target_of(d, column, g);
        all->least = g == 1 || part->least < all->least ? part->least : all->least;
        all->greatest = g == 1 || part->greatest > all->greatest ? part->greatest : all->greatest;
        qn__moments_merge(&all->sums, &part->sums);
    }
    all->value = values;
    all->count = kept;
}

static void take_columns(void *context, int thread) {
    describing *d = context;
    (void)thread;
    for (uint32_t k; (k = atomic_fetch_add(&d->next, 1)) < d->columns;)
        take_column(d, d->first + k);
}

static qn_status add_sums(describing *d, qn_error *err) {
    qn__exact_sum *sum[3 * TARGETS];
    for (uint32_t i = 0; i < d->targets; i++) {
        target *t = &d->target[d->from + i];
        sum[3 * i] = &t->sums.first;
        sum[3 * i + 1] = &t->sums.second;
        sum[3 * i + 2] = &t->sums.third;
        d->words[i] = (int64_t)t->sums.count;
    }
    qn_status status = qn__parts_add_sums(d->parts, sum, 3 * (uint64_t)d->targets, err);
    if (status == QN_OK)
        status = qn__parts_add(d->parts, d->words, d->targets, err);
    for (uint32_t i = 0; i < d->targets && status == QN_OK; i++)
        d->target[d->from + i].sums.count = (uint64_t)d->words[i];
    return status;
}

/* The extremes of all ranks. A rank sends a number that is not 0, and a pair for each target. */
static qn_status join_extremes(describing *d, qn_error *err) {
    const uint64_t bytes = (2 * (uint64_t)d->targets + 2) * sizeof(float);
    float *own = d->extremes, *all = own + 2 * TARGETS + 2;
    memset(own, 1, 2 * sizeof *own);
    for (uint32_t i = 0; i < d->targets; i++) {
        own[2 * i + 2] = d->target[d->from + i].least;
        own[2 * i + 3] = d->target[d->from + i].greatest;
    }
    const qn_status status = qn__parts_gather_each(d->parts, own, bytes, all, err);
    for (uint32_t r = 0; r < d->parts->ranks && status == QN_OK; r++)
        for (uint32_t i = 0; i < d->targets && d->parts->gone[r] == QN__PART_THERE; i++) {
            const float *pair = all + r * (2 * (size_t)d->targets + 2) + 2 * (size_t)i + 2;
            target *t = &d->target[d->from + i];
            t->least = pair[0] < t->least ? pair[0] : t->least;
            t->greatest = pair[1] > t->greatest ? pair[1] : t->greatest;
        }
    return status;
}

static void set_numbers(const describing *d, target *t) {
    qn__column_numbers *n = numbers_of(d, t);
    if (t->group == 0) {
        d->job->missing[t->column] = t->sums.count < qn__parts_items(d->parts);
        if (d->job->first) {
            d->job->first[t->column] = t->sums.first;
            d->job->second[t->column] = t->sums.second;
        }
    }
    qn__column_set_sums(&d->whole, t->group, qn__parts_items(d->parts), &t->sums, n);
    if (n->count == 0)
        return;
    n->minimum = (double)t->least;
    n->maximum = (double)t->greatest;
}

/* ------------------------------------------------------------------ quantiles and histograms */

static double *edges_of(const describing *d, uint32_t column) {
    const qn__column_job *j = d->job;
    return j->edges ? j->edges + (size_t)column * (j->most_bins + 1) : NULL;
}

/* The edges of a column are those of all its items. */
static void set_edges(const describing *d, const target *all) {
    const qn__column_numbers *n = numbers_of(d, all);
    double *edges = edges_of(d, all->column);
    uint32_t bins = n->count == 0 ? 0 : d->job->wanted_bins;
    if (edges && n->count > 0) {
        bins = bins > 0 ? bins : qn__column_bins(n->count);
        qn__column_set_edges((float)n->minimum, (float)n->maximum, edges, &bins);
    }
    d->job->bins[all->column] = bins;
}

static int begin_searches(const describing *d) {
    const qn_data *data = d->job->data;
    int unsettled = 0;
    for (uint32_t i = 0; i < d->targets; i++) {
        const target *t = &d->target[d->from + i];
        const uint32_t bins = d->job->bins[t->column];
        qn__column_numbers *n = numbers_of(d, t);
        const int bytes = data->type == QN_U8 && t->column < data->features; /* not labels */
        qn__column_search_begin(&d->search[i], &d->own, n, bytes, edges_of(d, t->column), bins);
        if (edges_of(d, t->column) && bins == 1)
            n->histogram[0] = n->count;
        unsettled |= d->search[i].unsettled;
    }
    return unsettled;
}

/* How many keys have upper halves below each: between two neighbours are those of one half. */
static void index_keys(const uint32_t *key, uint32_t keys, uint16_t *index) {
    uint32_t at = 0;
    for (uint32_t half = 0; half <= HALVES; half++) {
        while (at < keys && key[at] >> 16 < half)
            at++;
        index[half] = (uint16_t)at;
    }
}

/* Counts the values of this rank between the keys of a target. */
static void count_target(const describing *d, uint32_t i, uint16_t *index) {
    const target *t = &d->target[d->from + i];
    int64_t *counted = d->words + (size_t)i * (KEYS + 1);
    uint32_t key[KEYS];
    memset(counted, 0, (KEYS + 1) * sizeof *counted);
    if (!d->search[i].unsettled)
        return;
    const uint32_t keys = qn__column_search_keys(&d->search[i], key);
    index_keys(key, keys, index);
    for (uint64_t v = 0; v < t->count; v++) {
        const uint32_t own = qn__order_key(t->value[v]);
        uint32_t first = index[own >> 16], end = index[(own >> 16) + 1];
        while (first < end) { /* key[i] <= own for i < first */
            const uint32_t middle = first + (end - first) / 2;
            if (key[middle] <= own)
                first = middle + 1;
            else
                end = middle;
        }
        counted[first]++;
    }
}

static void count_targets(void *context, int thread) {
    describing *d = context;
    for (uint32_t i; (i = atomic_fetch_add(&d->next, 1)) < d->targets;)
        count_target(d, i, d->index + (size_t)thread * (HALVES + 1));
}

static qn_status search(describing *d, qn_error *err) {
    int unsettled = begin_searches(d);
    while (unsettled) {
        uint64_t counted[KEYS + 1];
        each(d, count_targets);
        const qn_status status =
            qn__parts_add(d->parts, d->words, (uint64_t)d->targets * (KEYS + 1), err);
        if (status != QN_OK)
            return status;
        unsettled = 0;
        for (uint32_t i = 0; i < d->targets; i++) {
            if (!d->search[i].unsettled)
                continue;
            memcpy(counted, d->words + (size_t)i * (KEYS + 1), sizeof counted);
            qn__column_search_count(&d->search[i], counted,
                                    numbers_of(d, &d->target[d->from + i])->histogram);
            unsettled |= d->search[i].unsettled;
        }
    }
    for (uint32_t i = 0; i < d->targets; i++)
        qn__column_search_end(&d->search[i], &d->own, numbers_of(d, &d->target[d->from + i]));
    return QN_OK;
}

/* ------------------------------------------------------------------ columns */

/* Categories of a column, whose values of this rank were counted. */
static qn_status add_categories(const describing *d, uint32_t column, qn_error *err) {
    const uint32_t groups = d->own.groups, many = qn__column_categories(d->job->data, column);
    qn__moments none = {.count = 0};
    for (uint32_t g = 0; g < groups; g++) {
        qn__column_numbers *n = numbers_of(d, target_of(d, column, g));
        int64_t *words = (int64_t *)n->categories; /* counts are below 2^48 */
        const qn_status status = qn__parts_add(d->parts, words, many, err);
        if (status != QN_OK)
            return status;
        qn__column_set_sums(&d->whole, g, qn__parts_items(d->parts), &none, n);
        for (uint32_t c = 0; c < many; c++)
            n->count += n->categories[c];
        n->missing -= n->count;
    }
    return QN_OK;
}

/* The targets at hand, all of columns of numbers. */
static qn_status describe_targets(describing *d, qn_error *err) {
    qn_status status = add_sums(d, err);
    if (status == QN_OK)
        status = join_extremes(d, err);
    for (uint32_t i = 0; i < d->targets && status == QN_OK; i++) {
        set_numbers(d, &d->target[d->from + i]);
        if (d->target[d->from + i].group == 0)
            set_edges(d, &d->target[d->from + i]);
    }
    return status == QN_OK ? search(d, err) : status;
}

/* Targets of neighbouring columns of numbers go together. */
static qn_status describe_tile(describing *d, qn_error *err) {
    const uint32_t groups = d->own.groups, all = d->columns * groups;
    qn_status status = QN_OK;
    each(d, take_columns);
    for (uint32_t i = 0; i < all && status == QN_OK;) {
        const uint32_t column = d->target[i].column;
        if (qn__column_categories(d->job->data, column) > 0) {
            status = add_categories(d, column, err);
            i += groups;
            continue;
        }
        d->from = i;
        while (i < all && i - d->from < TARGETS &&
               qn__column_categories(d->job->data, d->target[i].column) == 0)
            i++;
        d->targets = i - d->from;
        status = describe_targets(d, err);
    }
    return status;
}

/* In memory, or in a file of the cache folder. */
static qn_status make_values(describing *d, uint32_t tile, qn_error *err) {
    const qn__table_space space = {.no_file = d->parts->options.no_cache == 1,
                                   .path = d->parts->name[d->parts->rank],
                                   .entry = ""};
    d->copy = (qn_data){.type = QN_F32, .features = tile, .items = items_of(d), .buffer = &space};
    const qn_status status = qn__table_space_make(&d->copy, err);
    d->values = qn__table_space_values(&d->copy);
    return status == QN_OK && d->job->data->features > tile
               ? qn__turned_columns_make(d->job->data, &space, &d->turned, err)
               : status;
}

static qn_status make_space(describing *d, qn_error *err) {
    const uint32_t tile = d->job->columns < TILE ? d->job->columns : TILE;
    const uint64_t extremes = (2 * (uint64_t)TARGETS + 2) * (d->parts->ranks + 1);
    d->starts = qn__alloc(d->own.groups, sizeof *d->starts, err);
    d->target = qn__alloc((uint64_t)tile * d->own.groups, sizeof *d->target, err);
    d->search = qn__alloc(TARGETS, sizeof *d->search, err);
    d->words = qn__alloc(TARGETS, (KEYS + 1) * sizeof *d->words, err);
    d->extremes = qn__alloc(extremes, sizeof *d->extremes, err);
    d->index = qn__alloc((uint64_t)d->job->threads, (HALVES + 1) * sizeof *d->index, err);
    if (!d->index || !d->starts || !d->target || !d->search || !d->words || !d->extremes ||
        make_values(d, tile, err) != QN_OK)
        return QN_MEMORY;
    d->whole = d->own;
    d->whole.starts = d->own.groups > 1 ? d->starts : NULL;
    for (uint32_t g = 1; g + 1 < d->own.groups; g++)
        d->starts[g] = d->starts[g - 1] + d->parts->in_class[g - 1];
    return QN_OK;
}

static void release(describing *d) {
    qn__pool_destroy(d->pool);
    qn__free(d->starts);
    qn__turned_columns_release(&d->turned);
    if (d->copy.release)
        d->copy.release(d->copy.memory);
    qn__free(d->target);
    qn__free(d->search);
    qn__free(d->words);
    qn__free(d->extremes);
    qn__free(d->index);
}

static qn_status check(const qn__column_job *job, qn_error *err) {
    if (qn__column_search_takes(job->task, job->edges != NULL, job->most_bins))
        return QN_OK;
    qn__fail(err, QN_UNSUPPORTED, "data in parts has at most %d quantiles and %d bins",
             QN__SEARCH_QUANTILES, QN__SEARCH_BINS);
    return qn__remedy(err, QN_UNSUPPORTED,
                      "ask for fewer by `statistics.quantiles` and `statistics.bins`");
}

qn_status qn__columns_describe_parts(const qn_parts *parts, const qn__column_job *job,
                                     qn_error *err) {
    describing d = {.parts = parts, .job = job, .own = *job->task};
    qn_status status = check(job, err);
    if (status == QN_OK)
        status = make_space(&d, err);
    status = qn__parts_agree(parts, status, err);
    if (status == QN_OK && qn__pool_create(job->threads, 0, &d.pool, NULL) != QN_OK)
        d.pool = NULL; /* the thread of the caller is enough */
    for (; status == QN_OK && d.first < job->columns; d.first += TILE) {
        const uint32_t left = job->columns - d.first;
        d.columns = left < TILE ? left : TILE;
        status = describe_tile(&d, err);
    }
    release(&d);
    return status;
}
