/* Standardisation: mean and deviation of each feature, or of each group of features, from exact
 * sums.
 *
 * Groups are processed in tiles, so that the sums of a tile fit a core's cache. Each thread sums
 * its share of the items; the threads' sums are then added, which gives the same result in any
 * order. A table that lies in a file is read once for many tiles, some of its items at a time
 * (file_walk.h). */
#include "data/prepare/scale.h"
#include "base/memory.h"
#include "data/ahead/file_walk.h"
#include "data/prepare/fit_parts.h"
#include "data/table/data.h"
#include "data/table/remote_rows.h"
#include "num/exact_sum.h"
#include <float.h>
#include <string.h>

/* Groups of a tile: 64 * 2 sums of 552 bytes. */
#define TILE 64
/* Of a table in a file: tiles of which a thread has sums, 4.5 MB. */
enum { FILE_TILES = 64 };

/* Sums of one thread: exact ones, and 64-bit integers in front of them for bytes. */
typedef struct sums {
    qn__exact_sum first[TILE], second[TILE];
} sums;

typedef struct fit {
    const qn_data *data;
    uint32_t width;          /* features of a group */
    const float *weights;    /* of the items; NULL: all are 1 */
    qn__exact_sum *together; /* of the weights */
    int threads;
    uint32_t tiles;                    /* at a time */
    sums *parts;                       /* `tiles` for each thread */
    qn__file_walk *walk;               /* of a table in a file; else NULL */
    const qn__item_listener *listener; /* or NULL */
    const qn__own_items *own; /* `data` is what this rank has of a table; NULL: it is the table */
    uint64_t items;           /* of the table */
    qn__exact_sum **all;      /* the sums of groups at a time, for other ranks */
    qn_status status;
    qn_error *err;
    float *mean, *deviation;
} fit;

/* A byte's square is below 2^16, so the squares of up to 2^48 items fit 64 bits. */
static void sum_bytes(const qn_data *data, uint64_t from, uint64_t to, uint32_t feature,
                      uint32_t count, sums *out) {
    uint64_t first[TILE] = {0}, second[TILE] = {0};
    for (uint64_t i = from; i < to; i++) {
        const uint8_t *values = (const uint8_t *)qn__data_item(data, i) + feature;
        for (uint32_t k = 0; k < count; k++) {
            first[k] += values[k];
            second[k] += (uint32_t)values[k] * values[k];
        }
    }
    for (uint32_t k = 0; k < count; k++) {
        qn__exact_add_u64(&out->first[k], first[k]);
        qn__exact_add_u64(&out->second[k], second[k]);
    }
}

/* The same for a group: blocks of bytes have sums of 32 bits. */
static void sum_group(const uint8_t *values, uint32_t width, uint64_t *first, uint64_t *second) {
    enum { BLOCK = 4096 };
    for (uint32_t from = 0; from < width; from += BLOCK) {
        const uint32_t end = width - from < BLOCK ? width : from + BLOCK;
        uint32_t sum = 0, squares = 0;
        for (uint32_t p = from; p < end; p++) {
            sum += values[p];
            squares += (uint32_t)values[p] * values[p];
        }
        *first += sum;
        *second += squares;
    }
}

static void sum_byte_groups(const fit *work, uint64_t from, uint64_t to, uint32_t group,
                            uint32_t count, sums *out) {
    uint64_t first[TILE] = {0}, second[TILE] = {0};
    for (uint64_t i = from; i < to; i++) {
        const uint8_t *item = qn__data_item(work->data, i);
        for (uint32_t k = 0; k < count; k++)
            sum_group(item + (size_t)(group + k) * work->width, work->width, &first[k], &second[k]);
    }
    for (uint32_t k = 0; k < count; k++) {
        qn__exact_add_u64(&out->first[k], first[k]);
        qn__exact_add_u64(&out->second[k], second[k]);
    }
}

/* The square of a float has at most 48 bits and an exponent in binary64's range: it is exact. */
static void add_float(float of, qn__exact_sum *first, qn__exact_sum *second) {
    const double value = (double)of;
    if (value == 0)
        return;
    qn__exact_add(first, value);
    qn__exact_add(second, value * value);
}

static void sum_floats(const fit *work, uint64_t from, uint64_t to, uint32_t group, uint32_t count,
                       sums *out) {
    const size_t width = work->width;
    for (uint64_t i = from; i < to; i++) {
        const float *values = (const float *)qn__data_item(work->data, i) + group * width;
        for (uint32_t k = 0; k < count; k++, values += width)
            for (size_t p = 0; p < width; p++)
                add_float(values[p], &out->first[k], &out->second[k]);
    }
}

/* Each product of a weight and a value is exact in binary64, with up to 48 bits. */
static void sum_weighted(const fit *work, uint64_t from, uint64_t to, uint32_t group,
                         uint32_t count, sums *out) {
    const size_t width = work->width;
    for (uint64_t i = from; i < to; i++) {
        const float weight = work->weights[i];
        for (size_t v = 0; weight != 0 && v < count * width; v++) {
            const float value = (float)qn__data_number(work->data, i, group * width + v);
            if (value == 0)
                continue;
            qn__exact_add(&out->first[v / width], (double)weight * (double)value);
            qn__exact_add_square(&out->second[v / width], value, weight);
        }
    }
}

/* The items of thread t of `threads`: [share(t), share(t + 1)). */
static uint64_t share(uint64_t whole, int t, int threads) {
    uint64_t each = whole / (uint64_t)threads, over = whole % (uint64_t)threads;
    return each * (uint64_t)t + ((uint64_t)t < over ? (uint64_t)t : over);
}

/* Adds the sums of all threads to those of the first. */
static void merge_group(const fit *work, uint32_t k) {
    sums *part = &work->parts[k / TILE];
    qn__exact_sum *first = &part->first[k % TILE], *second = &part->second[k % TILE];
    for (int t = 1; t < work->threads; t++) {
        part += work->tiles;
        qn__exact_merge(first, &part->first[k % TILE]);
        qn__exact_merge(second, &part->second[k % TILE]);
    }
}

/* Adds the sums of all ranks. */
static void merge_ranks(fit *work, uint32_t count) {
    for (uint32_t k = 0; k < count; k++) {
        work->all[2 * k] = &work->parts[k / TILE].first[k % TILE];
        work->all[2 * k + 1] = &work->parts[k / TILE].second[k % TILE];
    }
    work->status = qn__parts_add_sums(work->own->parts, work->all, 2 * (uint64_t)count, work->err);
}

static void finish_group(const fit *work, uint32_t group, uint32_t k) {
    const uint64_t n = work->items * work->width;
    sums *part = &work->parts[k / TILE];
    qn__exact_sum *first = &part->first[k % TILE], *second = &part->second[k % TILE];
    float mean, deviation;
    if (work->weights) {
        qn__exact_sum together = *work->together; /* it is brought into another form */
        mean = qn__exact_weighted_mean(first, &together);
        deviation = qn__exact_weighted_deviation(first, second, &together);
    } else {
        mean = qn__exact_mean(first, n);
        deviation = qn__exact_deviation(first, second, n);
    }
    work->mean[group] = mean;
    /* below the smallest normal number a feature counts as constant */
    work->deviation[group] = deviation >= FLT_MIN ? deviation : 0.0f;
}

typedef struct step {
    fit *work;
    qn__pool *pool;
} step;

static void sum_tile(const fit *work, uint64_t from, uint64_t to, uint32_t group, uint32_t count,
                     sums *out) {
    if (work->weights)
        sum_weighted(work, from, to, group, count, out);
    else if (work->data->type != QN_U8)
        sum_floats(work, from, to, group, count, out);
    else if (work->width > 1)
        sum_byte_groups(work, from, to, group, count, out);
    else
        sum_bytes(work->data, from, to, group, count, out);
}

/* `count` groups of some items. The first time that these come by, the listener hears of them. */
static void sum_items(const fit *work, uint64_t from, uint64_t to, uint32_t group, uint32_t count,
                      sums *out) {
    for (uint32_t k = 0; k < count; k += TILE)
        sum_tile(work, from, to, group + k, count - k < TILE ? count - k : TILE, &out[k / TILE]);
    if (group == 0 && work->listener)
        work->listener->hear(work->listener->context, from, to);
}

/* `count` groups of the items of a thread. A listener has copied what it needs of a file. */
static void sum_tiles(const fit *work, int thread, uint32_t group, uint32_t count, sums *out) {
    uint64_t from = share(work->data->items, thread, work->threads);
    uint64_t to = share(work->data->items, thread + 1, work->threads);
    memset(out, 0, work->tiles * sizeof *out);
    if (!work->walk) {
        sum_items(work, from, to, group, count, out);
        return;
    }
    while (qn__file_walk_next(work->walk, &from, &to)) {
        sum_items(work, from, to, group, count, out);
        if (work->listener)
            qn__file_walk_drop(work->walk, from, to);
    }
}

static void fit_tiles(void *context, int thread) {
    const step *s = context;
    fit *work = s->work;
    const uint32_t groups = work->data->features / work->width, most = work->tiles * TILE;
    for (uint64_t group = 0; group < groups; group += most) {
        uint32_t left = groups - (uint32_t)group, count = left < most ? left : most;
        sum_tiles(work, thread, (uint32_t)group, count, &work->parts[(size_t)thread * work->tiles]);
        qn__pool_barrier(s->pool, thread);
        if (work->walk && thread == 0)
            qn__file_walk_begin(work->walk, work->data);
        for (uint64_t k = (uint64_t)thread; k < count; k += (uint64_t)work->threads)
            merge_group(work, (uint32_t)k);
        if (work->own) {
            qn__pool_barrier(s->pool, thread);
            if (thread == 0)
                merge_ranks(work, count);
            qn__pool_barrier(s->pool, thread);
            if (work->status != QN_OK)
                return;
        }
        for (uint64_t k = (uint64_t)thread; k < count; k += (uint64_t)work->threads)
            finish_group(work, (uint32_t)(group + k), (uint32_t)k);
        qn__pool_barrier(s->pool, thread);
    }
}

/* The weight of a group is `width` times that of its item, in two exact products. */
static void add_weight(qn__exact_sum *together, float weight, uint32_t width) {
    qn__exact_add(together, (double)weight * (double)(width & 0xFFFF));
    qn__exact_add(together, (double)weight * (double)(width & 0xFFFF0000));
}

/* At a time. Of rows with several ranks all are exchanged together, too. */
static uint32_t tiles_of(const qn_data *train, uint32_t width) {
    const uint32_t tiles = (train->features / width + TILE - 1) / TILE;
    if (!train->in_file && !qn__data_remote(train))
        return 1;
    return tiles < FILE_TILES ? tiles : FILE_TILES;
}

uint64_t qn__scale_fit_bytes(const qn_data *train, uint32_t width, int threads) {
    return (uint64_t)threads * tiles_of(train, width) * sizeof(sums);
}

static qn_status fit_groups(fit *work, qn__file_walk *walk, qn_error *err) {
    qn__pool *pool;
    qn_status status = qn__pool_create(work->threads, 0, &pool, err);
    if (status != QN_OK)
        return status;
    if (work->data->in_file) {
        work->walk = walk;
        qn__file_walk_begin(walk, work->data);
    }
    work->err = err;
    work->parts = qn__alloc((uint64_t)work->threads * work->tiles, sizeof *work->parts, err);
    work->all =
        (qn__exact_sum **)qn__alloc(2 * (uint64_t)work->tiles * TILE, sizeof *work->all, err);
    status = work->parts && work->all ? QN_OK : QN_MEMORY;
    if (work->own)
        status = qn__parts_agree(work->own->parts, status, err);
    if (status == QN_OK)
        qn__pool_run(pool, fit_tiles, &(step){work, pool});
    qn__pool_destroy(pool);
    qn__free(work->parts);
    qn__free((void *)work->all);
    return status == QN_OK ? work->status : status;
}

qn_status qn__scale_fit_groups(const qn_data *train, uint32_t width, const float *weights,
                               int threads, const qn__item_listener *listener, float *mean,
                               float *deviation, qn_error *err) {
    qn__exact_sum together = {.pending = 0};
    qn__file_walk walk;
    qn__own_items own;
    qn_status status = QN_IO;
    for (uint64_t i = 0; weights && i < train->items; i++)
        add_weight(&together, weights[i], width);
    const fit all = {.data = train,
                     .width = width,
                     .weights = weights,
                     .together = &together,
                     .threads = threads,
                     .tiles = tiles_of(train, width),
                     .listener = listener,
                     .items = train->items,
                     .mean = mean,
                     .deviation = deviation};
    fit work = all;
    if (qn__own_items_of(train, weights, &own)) {
        work.own = &own;
        work.data = &own.items;
        work.weights = own.weights;
        work.listener = NULL;
        status = fit_groups(&work, &walk, err);
    }
    if (status != QN_IO)
        return status;
    work = all; /* all rows are here, or a rank has ended */
    return fit_groups(&work, &walk, err);
}

qn_status qn__scale_fit(const qn_data *train, const float *weights, int threads, float *mean,
                        float *deviation, qn_error *err) {
    return qn__scale_fit_groups(train, 1, weights, threads, NULL, mean, deviation, err);
}
