#include "base/memory.h"
#include "statistics/fit/kmeans.h"
#include "statistics/host_team.h"
#include "data/table/table_columns.h"
#include <math.h>
#include <string.h>

enum { BLOCK = QN__KMEANS_BLOCK, AT_ONCE = 8 /* sums in registers */ };

/* A grain of a pass is a block of items. Its words: whether a value is missing, the squares of the
 * distances, and when centres are assigned the numbers of these. Blocks of a round: 50 MiB. */
enum { NEAREST = 1, CLUSTERS = NEAREST + BLOCK, WORDS = CLUSTERS + BLOCK / 2, ROUND = 1 << 15 };

typedef struct pass {
    qn__kmeans *k;
    uint32_t count; /* centres; 0: of one, the distances only */
    const double *centres;
    uint64_t from; /* the block of grain 0 */
} pass;

/* The ranks' passes have a team of their own if there are other ranks. */
static qn_status open_teams(qn__kmeans *k, const qn_compute *compute, const char *what,
                            qn_status status, qn_error *err) {
    qn_compute own = *compute;
    own.cluster = NULL;
    own.devices = own.shares = NULL;
    status = qn__host_team_open(compute, NULL, k->data, what, status, &k->team, err);
    k->own = k->team;
    if (status != QN_OK || !compute->cluster)
        return status;
    k->own = NULL;
    status = qn__team_create(NULL, &own, NULL, 0, &k->own, err);
    return status == QN_OK ? QN_OK : qn__kmeans_release(k, compute, status, err);
}

qn_status qn__kmeans_create(qn__kmeans *k, const qn_data *data, const qn_compute *compute,
                            const char *what, uint32_t *cluster, qn_status status, qn_error *err) {
    *k = (qn__kmeans){.data = data, .cluster = cluster};
    if (status == QN_OK && !(k->nearest = qn__alloc(data->items, sizeof *k->nearest, err)))
        status = QN_MEMORY;
    status = open_teams(k, compute, what, status, err);
    if (status != QN_OK)
        qn__free(k->nearest);
    return status;
}

qn_status qn__kmeans_release(qn__kmeans *k, const qn_compute *compute, qn_status status,
                             qn_error *err) {
    if (k->own != k->team)
        qn__team_destroy(k->own);
    qn__free(k->nearest);
    status = qn__host_team_close(k->team, compute, status, err);
    *k = (qn__kmeans){.missing = k->missing};
    return status;
}

void qn__kmeans_measure(uint32_t features, const float *values, const double *centre,
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

static void assign_block(const pass *p, const float *values, uint32_t items, int64_t *words) {
    const uint32_t features = p->k->data->features;
    double sum[BLOCK], best[BLOCK];
    uint32_t at[BLOCK] = {0};
    qn__kmeans_measure(features, values, p->centres, best);
    for (uint32_t c = 1; c < p->count; ++c) {
        qn__kmeans_measure(features, values, p->centres + (size_t)c * features, sum);
        for (uint32_t i = 0; i < BLOCK; ++i) {
            at[i] = sum[i] < best[i] ? c : at[i];
            best[i] = sum[i] < best[i] ? sum[i] : best[i];
        }
    }
    memcpy(words + NEAREST, best, items * sizeof *best);
    memcpy(words + CLUSTERS, at, items * sizeof *at);
}

static void approach_block(const pass *p, const float *values, uint64_t first, uint32_t items,
                           int64_t *words) {
    const double *nearest = p->k->nearest + first;
    double sum[BLOCK];
    qn__kmeans_measure(p->k->data->features, values, p->centres, sum);
    for (uint32_t i = 0; i < items; ++i)
        sum[i] = sum[i] < nearest[i] ? sum[i] : nearest[i];
    memcpy(words + NEAREST, sum, items * sizeof *sum);
}

static int lacks_values(const float *values, uint32_t features, uint32_t items) {
    for (uint32_t f = 0; f < features; ++f)
        for (uint32_t i = 0; i < items; ++i)
            if (!(fabsf(values[(size_t)f * BLOCK + i]) < INFINITY))
                return 1;
    return 0;
}

static uint32_t items_of(const qn_data *data, uint64_t block) {
    const uint64_t left = data->items - block * BLOCK;
    return left < BLOCK ? (uint32_t)left : BLOCK;
}

static void *open_values(void *context, qn_error *err) {
    const pass *p = context;
    return qn__alloc((uint64_t)p->k->data->features * BLOCK, sizeof(float), err);
}

/* qn__host_job */
static qn_status run_blocks(void *context, void *scratch, uint32_t first, uint32_t count,
                            int64_t *words, qn_error *err) {
    const pass *p = context;
    const qn_data *data = p->k->data;
    float *values = scratch;
    (void)err;
    for (uint32_t g = first; g < first + count; ++g) {
        const uint64_t from = (p->from + g) * BLOCK;
        const uint32_t items = items_of(data, p->from + g);
        int64_t *to = words + (uint64_t)g * (p->count ? WORDS : CLUSTERS);
        qn__columns_gather(data, NULL, from, from + items, 0, data->features, values, BLOCK);
        to[0] = !p->k->checked && lacks_values(values, data->features, items);
        if (p->count)
            assign_block(p, values, items, to);
        else
            approach_block(p, values, from, items, to);
    }
    return QN_OK;
}

/* Copies the words of a block to the results. */
static void take_block(const pass *p, uint64_t block, const int64_t *words, double *to) {
    const uint32_t items = items_of(p->k->data, block);
    p->k->missing |= words[0] != 0;
    memcpy(to + block * BLOCK, words + NEAREST, items * sizeof *to);
    if (p->count)
        memcpy(p->k->cluster + block * BLOCK, words + CLUSTERS, items * sizeof *p->k->cluster);
}

static qn_status run(pass *p, double *to, qn_error *err) {
    const uint64_t all = (p->k->data->items + BLOCK - 1) / BLOCK,
                   each = p->count ? WORDS : CLUSTERS;
    qn_status status = QN_OK;
    for (; p->from < all && status == QN_OK; p->from += ROUND) {
        const uint32_t count = all - p->from < ROUND ? (uint32_t)(all - p->from) : ROUND;
        const qn__host_job job = {.context = p,
                                  .open = open_values,
                                  .close = qn__free,
                                  .grains = run_blocks,
                                  .words = count * each,
                                  .apart = 1};
        const int64_t *words;
        status = qn__team_run(p->k->team, &job, count, &words, err);
        for (uint32_t g = 0; g < count && status == QN_OK; ++g)
            take_block(p, p->from + g, words + g * each, to);
    }
    p->k->checked = 1;
    return status;
}

qn_status qn__kmeans_assign(qn__kmeans *k, uint32_t count, const double *centres, qn_error *err) {
    return run(&(pass){.k = k, .count = count, .centres = centres}, k->nearest, err);
}

qn_status qn__kmeans_approach(qn__kmeans *k, const double *centre, double *to, qn_error *err) {
    return run(&(pass){.k = k, .centres = centre}, to, err);
}

void qn__kmeans_item(const qn__kmeans *k, uint64_t item, double *values) {
    const uint32_t features = k->data->features;
    for (uint32_t f = 0; f < features; ++f) {
        float value;
        qn__columns_gather(k->data, NULL, item, item + 1, f, 1, &value, 1);
        values[f] = (double)value;
    }
}
