#include "statistics/fit/kmeans_sums.h"

#include "base/memory.h"
#include "num/moments.h"
#include "data/table/table_columns.h"
#include <string.h>

enum { BLOCK = QN__KMEANS_BLOCK, TILE = 4 /* features of a task */ };

qn_status qn__kmeans_sums_create(qn__kmeans_sums *s, const qn__kmeans *k, uint32_t clusters,
                                 qn_error *err) {
    const uint64_t items = k->data->items;
    *s = (qn__kmeans_sums){.clusters = clusters};
    s->sum = qn__alloc((uint64_t)clusters * k->data->features, sizeof *s->sum, err);
    s->members = qn__alloc(clusters, sizeof *s->members, err);
    s->counted = qn__alloc(items, sizeof *s->counted, err);
    if (!s->sum || !s->members || !s->counted)
        return QN_MEMORY;
    for (uint64_t i = 0; i < items; ++i)
        s->counted[i] = QN__NO_CLUSTER;
    return QN_OK;
}

void qn__kmeans_sums_release(qn__kmeans_sums *s) {
    qn__free(s->sum);
    qn__free(s->members);
    qn__free(s->counted);
    *s = (qn__kmeans_sums){0};
}

/* 20.6: the farthest item of a cluster that has others, the first one of several. */
static void fill_empty(qn__kmeans *k, qn__kmeans_sums *s, uint32_t cluster) {
    const uint64_t items = k->data->items;
    uint64_t farthest = items;
    for (uint64_t i = 0; i < items; ++i)
        if (s->members[k->cluster[i]] > 1 &&
            (farthest == items || k->nearest[i] > k->nearest[farthest]))
            farthest = i;
    if (farthest == items)
        return;
    --s->members[k->cluster[farthest]];
    s->members[cluster] = 1;
    k->cluster[farthest] = cluster;
    k->nearest[farthest] = 0;
}

uint64_t qn__kmeans_count(qn__kmeans *k, qn__kmeans_sums *s) {
    const uint64_t items = k->data->items;
    uint64_t changed = 0;
    memset(s->members, 0, s->clusters * sizeof *s->members);
    for (uint64_t i = 0; i < items; ++i)
        ++s->members[k->cluster[i]];
    for (uint32_t c = 0; c < s->clusters; ++c)
        if (s->members[c] == 0)
            fill_empty(k, s, c);
    for (uint64_t i = 0; i < items; ++i)
        changed += k->cluster[i] != s->counted[i];
    return changed;
}

/* While the sums follow the clusters. */
typedef struct pass {
    qn__kmeans *k;
    qn__kmeans_sums *s;
} pass;

/* Moves the values of a block's items to the sums of their clusters. */
static void move_block(const pass *p, uint64_t from, uint32_t items, uint32_t first,
                       uint32_t features, const float *values) {
    const uint32_t all = p->k->data->features;
    for (uint32_t i = 0; i < items; ++i) {
        const uint32_t to = p->k->cluster[from + i], before = p->s->counted[from + i];
        for (uint32_t f = 0; to != before && f < features; ++f) {
            const double value = (double)values[f * BLOCK + i];
            qn__exact_add(&p->s->sum[(size_t)to * all + first + f], value);
            if (before != QN__NO_CLUSTER)
                qn__exact_add(&p->s->sum[(size_t)before * all + first + f], -value);
        }
    }
}

static int has_changes(const pass *p, uint64_t from, uint32_t items) {
    return memcmp(p->k->cluster + from, p->s->counted + from, items * sizeof *p->s->counted) != 0;
}

static void move_tile(const pass *p, uint32_t first, uint32_t features) {
    const qn_data *data = p->k->data;
    float values[TILE * BLOCK];
    for (uint64_t from = 0; from < data->items; from += BLOCK) {
        const uint64_t left = data->items - from;
        const uint32_t items = left < BLOCK ? (uint32_t)left : BLOCK;
        if (!has_changes(p, from, items))
            continue;
        qn__columns_gather(data, NULL, from, from + items, first, features, values, BLOCK);
        move_block(p, from, items, first, features, values);
    }
}

/* qn__host_job: a grain is a tile of features, whose sums are its own. */
static qn_status move_tiles(void *context, void *scratch, uint32_t first, uint32_t count,
                            int64_t *words, qn_error *err) {
    const pass *p = context;
    const uint32_t all = p->k->data->features;
    (void)scratch;
    (void)words;
    (void)err;
    for (uint32_t g = first; g < first + count; ++g)
        move_tile(p, g * TILE, all - g * TILE < TILE ? all - g * TILE : TILE);
    return QN_OK;
}

/* By this rank alone, as few items change. */
static qn_status move_all(qn__kmeans *k, qn__kmeans_sums *s, qn_error *err) {
    pass p = {.k = k, .s = s};
    const qn__host_job job = {.context = &p, .grains = move_tiles, .apart = 1};
    const int64_t *words;
    return qn__team_run(k->own, &job, (k->data->features + TILE - 1) / TILE, &words, err);
}

qn_status qn__kmeans_move(qn__kmeans *k, qn__kmeans_sums *s, double *centres, double *distance,
                          qn_error *err) {
    const uint32_t features = k->data->features;
    double moved = 0;
    const qn_status status = move_all(k, s, err);
    if (status != QN_OK)
        return status;
    memcpy(s->counted, k->cluster, (size_t)k->data->items * sizeof *s->counted);
    for (uint32_t c = 0; c < s->clusters; ++c)
        for (uint32_t f = 0; f < features && s->members[c] > 0; ++f) {
            const size_t at = (size_t)c * features + f;
            const double mean = qn__moments_mean(s->members[c], &s->sum[at]);
            const double step = mean - centres[at];
            moved = moved + step * step;
            centres[at] = mean;
        }
    *distance = moved;
    return QN_OK;
}
