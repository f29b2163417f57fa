#include "base/memory.h"
#include "job/kmeans.h"
#include "job/statistics_columns.h"
#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum { BLOCK = QN__KMEANS_BLOCK, AT_ONCE = 8 /* sums in registers */ };

/* A pass over all items by all threads. */
typedef struct pass {
    qn__kmeans *k;
    uint32_t count;
    const double *centres;
    double *to; /* NULL: assign */
    _Atomic uint64_t next;
    atomic_int missing;
} pass;

qn_status qn__kmeans_create(qn__kmeans *k, const qn_data *data, int threads, uint32_t *cluster,
                            qn_error *err) {
    *k = (qn__kmeans){.data = data, .cluster = cluster};
    qn_status status = qn__pool_create(threads ? threads : qn__cores(), 0, &k->pool, err);
    if (status != QN_OK)
        return status;
    const uint64_t rooms = (uint64_t)qn__pool_threads(k->pool);
    k->room = qn__alloc(rooms, (size_t)data->features * BLOCK * sizeof *k->room, err);
    k->nearest = qn__alloc(data->items, sizeof *k->nearest, err);
    if (k->room && k->nearest)
        return QN_OK;
    qn__kmeans_release(k);
    return QN_MEMORY;
}

void qn__kmeans_release(qn__kmeans *k) {
    qn__pool_destroy(k->pool);
    qn__free(k->room);
    qn__free(k->nearest);
    *k = (qn__kmeans){0};
}

/* 20.6: squares of the distances of a block's items from a centre. */
static void measure(uint32_t features, const float *values, const double *centre,
                    double sum[BLOCK]) {
    for (uint32_t first = 0; first < BLOCK; first += AT_ONCE) {
        double own[AT_ONCE] = {0};
        const float *from = values + first;
        for (uint32_t f = 0; f < features; ++f, from += BLOCK)
            for (uint32_t i = 0; i < AT_ONCE; ++i) {
                const double d = (double)from[i] - centre[f];
                own[i] = own[i] + d * d;
            }
        memcpy(sum + first, own, sizeof own);
    }
}

static void assign_block(const pass *p, const float *values, uint64_t first, uint32_t items) {
    const uint32_t features = p->k->data->features;
    double sum[BLOCK], best[BLOCK];
    uint32_t at[BLOCK] = {0};
    measure(features, values, p->centres, best);
    for (uint32_t c = 1; c < p->count; ++c) {
        measure(features, values, p->centres + (size_t)c * features, sum);
        for (uint32_t i = 0; i < BLOCK; ++i) {
            at[i] = sum[i] < best[i] ? c : at[i];
            best[i] = sum[i] < best[i] ? sum[i] : best[i];
        }
    }
    memcpy(p->k->nearest + first, best, items * sizeof *best);
    memcpy(p->k->cluster + first, at, items * sizeof *at);
}

static void approach_block(const pass *p, const float *values, uint64_t first, uint32_t items) {
    double sum[BLOCK];
    measure(p->k->data->features, values, p->centres, sum);
    for (uint32_t i = 0; i < items; ++i)
        p->to[first + i] = sum[i] < p->k->nearest[first + i] ? sum[i] : p->k->nearest[first + i];
}

static int lacks_values(const float *values, uint32_t features, uint32_t items) {
    for (uint32_t f = 0; f < features; ++f)
        for (uint32_t i = 0; i < items; ++i)
            if (!(fabsf(values[(size_t)f * BLOCK + i]) < INFINITY))
                return 1;
    return 0;
}

static void run_blocks(void *context, int thread) {
    pass *p = context;
    const qn_data *data = p->k->data;
    float *values = p->k->room + (size_t)thread * data->features * BLOCK;
    for (;;) {
        const uint64_t first = atomic_fetch_add(&p->next, BLOCK);
        if (first >= data->items)
            return;
        const uint64_t left = data->items - first;
        const uint32_t items = left < BLOCK ? (uint32_t)left : BLOCK;
        qn__columns_gather(data, NULL, first, first + items, 0, data->features, values, BLOCK);
        if (!p->k->checked && lacks_values(values, data->features, items))
            atomic_store(&p->missing, 1);
        if (p->to)
            approach_block(p, values, first, items);
        else
            assign_block(p, values, first, items);
    }
}

static void run(pass *p) {
    atomic_init(&p->next, 0);
    atomic_init(&p->missing, 0);
    qn__pool_run(p->k->pool, run_blocks, p);
    p->k->missing |= atomic_load(&p->missing);
    p->k->checked = 1;
}

void qn__kmeans_assign(qn__kmeans *k, uint32_t count, const double *centres) {
    pass p = {.k = k, .count = count, .centres = centres};
    run(&p);
}

void qn__kmeans_approach(qn__kmeans *k, const double *centre, double *to) {
    pass p = {.k = k, .centres = centre, .to = to};
    run(&p);
}

void qn__kmeans_item(const qn__kmeans *k, uint64_t item, double *values) {
    const uint32_t features = k->data->features;
    for (uint32_t f = 0; f < features; ++f) {
        float value;
        qn__columns_gather(k->data, NULL, item, item + 1, f, 1, &value, 1);
        values[f] = (double)value;
    }
}
