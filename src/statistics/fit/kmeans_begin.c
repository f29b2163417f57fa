/* The first centres: greedy k-means++ (Arthur and Vassilvitskii 2007). */
#include "base/memory.h"
#include "num/philox.h"
#include "statistics/fit/kmeans.h"
#include <math.h>
#include <string.h>

/* 2 + floor(ln count). */
static uint32_t trials_of(uint32_t count) {
    static const uint32_t powers[] = {3, 8, 21, 55, 149, 404, 1097, 2981, 8104, 22027, 59875};
    uint32_t trials = 2;
    for (size_t i = 0; i < sizeof powers / sizeof *powers; ++i)
        trials += count >= powers[i];
    return trials;
}

/* A number from 0 to below 1. */
static double draw(uint64_t seed, uint32_t centre, uint32_t trial) {
    uint32_t word[4];
    qn__words(seed, QN__PURPOSE_CENTRES, 0, centre, trial, 0, word);
    return (double)(((uint64_t)word[0] << 32 | word[1]) >> 11) * 0x1p-53;
}

/* The sum of the squares, in the order of the items. */
static double total_of(const double *squares, uint64_t items) {
    double sum = 0;
    for (uint64_t i = 0; i < items; ++i)
        sum = sum + squares[i];
    return sum;
}

static uint64_t index_of(double part, uint64_t items) {
    const uint64_t at = (uint64_t)(part * (double)items);
    return at < items ? at : items - 1;
}

/* The first item at which the chain exceeds `part` of the total; the last one where none does. */
static uint64_t find(const double *squares, uint64_t items, double part, double total) {
    const double wanted = part * total;
    double sum = 0;
    for (uint64_t i = 0; i < items; ++i) {
        sum = sum + squares[i];
        if (sum > wanted)
            return i;
    }
    return index_of(part, items);
}

/* The best of some candidates: that which leaves the least sum. `buffer`: two arrays of the items'
 * size. */
static qn_status choose(qn__kmeans *k, uint64_t seed, uint32_t centre, uint32_t trials,
                        double *total, double *buffer[2], double *centres, qn_error *err) {
    const uint64_t items = k->data->items;
    const uint32_t features = k->data->features;
    double *to = centres + (size_t)centre * features, best = 0;
    uint64_t chosen = 0;
    for (uint32_t t = 0; t < trials; ++t) {
        const uint64_t at = find(k->nearest, items, draw(seed, centre, t), *total);
        qn__kmeans_item(k, at, to);
        const qn_status status = qn__kmeans_approach(k, to, buffer[0], err);
        if (status != QN_OK)
            return status;
        const double sum = total_of(buffer[0], items);
        if (t > 0 && !(sum < best))
            continue;
        best = sum;
        chosen = at;
        double *other = buffer[0];
        buffer[0] = buffer[1];
        buffer[1] = other;
    }
    qn__kmeans_item(k, chosen, to);
    memcpy(k->nearest, buffer[1], (size_t)items * sizeof *k->nearest);
    *total = best;
    return QN_OK;
}

qn_status qn__kmeans_begin(qn__kmeans *k, uint32_t count, uint64_t seed, double *centres,
                           qn_error *err) {
    const uint64_t items = k->data->items;
    double *both = qn__alloc(items, 2 * sizeof *both, err);
    if (!both)
        return QN_MEMORY;
    double *buffer[2] = {both, both + items};
    for (uint64_t i = 0; i < items; ++i)
        k->nearest[i] = (double)INFINITY;
    qn__kmeans_item(k, index_of(draw(seed, 0, 0), items), centres);
    qn_status status = qn__kmeans_approach(k, centres, k->nearest, err);
    double total = total_of(k->nearest, items);
    for (uint32_t c = 1; c < count && !k->missing && status == QN_OK; ++c)
        status = choose(k, seed, c, trials_of(count), &total, buffer, centres, err);
    qn__free(both);
    return status;
}
