#include "job/kmeans_sums.h"

#include "base/memory.h"
#include "job/statistics_columns.h"
#include "num/moments.h"
#include <math.h>
#include <stdatomic.h>
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
    atomic_uint next;
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

static void move_tiles(void *context, int thread) {
    pass *p = context;
    const uint32_t all = p->k->data->features;
    (void)thread;
    for (;;) {
        const uint32_t first = TILE * atomic_fetch_add(&p->next, 1);
        if (first >= all)
            return;
        move_tile(p, first, all - first < TILE ? all - first : TILE);
    }
}

double qn__kmeans_move(qn__kmeans *k, qn__kmeans_sums *s, double *centres) {
    const uint32_t features = k->data->features;
    pass p = {.k = k, .s = s};
    double moved = 0;
    atomic_init(&p.next, 0);
    qn__pool_run(k->pool, move_tiles, &p);
    memcpy(s->counted, k->cluster, (size_t)k->data->items * sizeof *s->counted);
    for (uint32_t c = 0; c < s->clusters; ++c)
        for (uint32_t f = 0; f < features && s->members[c] > 0; ++f) {
            const size_t at = (size_t)c * features + f;
            const double mean = qn__moments_mean(s->members[c], &s->sum[at]);
            const double step = mean - centres[at];
            moved = moved + step * step;
            centres[at] = mean;
        }
    return moved;
}
