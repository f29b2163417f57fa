/* Splits a data set into training and validation sets, without copying values. */
#include "base/memory.h"
#include "data/table/data.h"
#include "num/permutation.h"
#include "num/philox.h"
#include <math.h>

/* floor(fraction * n + 1/2), exactly: the fraction is mantissa * 2^-shift with 24 bits of mantissa,
 * so the product has at most 72 bits. */
static uint64_t part_of(float fraction, uint64_t n) {
    int exponent;
    uint64_t mantissa = (uint64_t)ldexpf(frexpf(fraction, &exponent), 24);
    int shift = 24 - exponent;
    if (shift > 80)
        return 0;
    /* The product is high * 2^32 + low. */
    uint64_t low = mantissa * (n & UINT32_MAX), high = mantissa * (n >> 32) + (low >> 32);
    low &= UINT32_MAX;
    if (shift > 32)
        return (high + ((uint64_t)1 << (shift - 33))) >> (shift - 32);
    return (high << (32 - shift)) + ((low + ((uint64_t)1 << (shift - 1))) >> shift);
}

static qn_status refuse(qn_error *err, float fraction, uint64_t items) {
    qn__fail(err, QN_USAGE, "a fraction of %g of %llu items leaves %s without items",
             (double)fraction, (unsigned long long)items,
             fraction < 0.5f ? "validation" : "training");
    return qn__remedy(err, QN_USAGE, "give a fraction between 0 and 1 that leaves both some items");
}

/* One bit for each item: 1 for validation. */
static uint64_t *mark_items(uint64_t items, uint64_t count, uint64_t seed, qn_error *err) {
    uint64_t *marks = qn__alloc(items / 64 + 1, sizeof *marks, err);
    if (!marks)
        return NULL;
    qn__permutation order;
    qn__permutation_begin(&order, items, seed, QN__PURPOSE_SPLIT, 0);
    for (uint64_t p = 0; p < count; p++) {
        uint64_t item = qn__permutation_at(&order, p);
        marks[item / 64] |= (uint64_t)1 << item % 64;
    }
    return marks;
}

qn_data *qn__data_view(const qn_data *all, const uint64_t *marks, uint64_t mark, uint64_t count,
                       qn_error *err) {
    qn_data *view = qn__alloc(1, sizeof *view, err);
    if (!view)
        return NULL;
    *view = *all;
    view->items = count;
    view->values_digest = NULL; /* of other items */
    view->memory = NULL;
    view->release = NULL;
    view->mapped = 0; /* it owns its labels */
    view->labels = all->labels ? qn__alloc(count, sizeof *view->labels, err) : NULL;
    view->targets = all->targets ? qn__alloc(count, sizeof *view->targets, err) : NULL;
    view->weights = all->weights ? qn__alloc(count, sizeof *view->weights, err) : NULL;
    view->index = qn__alloc(count, sizeof *view->index, err);
    if (!view->index || (all->labels && !view->labels) || (all->targets && !view->targets) ||
        (all->weights && !view->weights)) {
        qn_data_close(view);
        return NULL;
    }
    uint64_t at = 0;
    for (uint64_t i = 0; i < all->items; i++) {
        if ((marks[i / 64] >> i % 64 & 1) != mark)
            continue;
        if (all->labels)
            view->labels[at] = all->labels[i];
        if (all->targets)
            view->targets[at] = all->targets[i];
        if (all->weights)
            view->weights[at] = all->weights[i];
        view->index[at++] = all->index ? all->index[i] : i;
    }
    return view;
}

/* 25.43: of a corpus the last items, and the one before them in neither part: it shares a token
 * with the first of them. */
static qn_status split_corpus(const qn_data *all, float fraction, uint64_t count, qn_data **train,
                              qn_data **valid, qn_error *err) {
    if (count + 1 >= all->items)
        return refuse(err, fraction, all->items);
    const uint64_t first = all->items - count;
    uint64_t *marks = qn__alloc(all->items / 64 + 1, sizeof *marks, err);
    if (!marks)
        return QN_MEMORY;
    for (uint64_t i = first - 1; i < all->items; i++)
        marks[i / 64] |= (uint64_t)1 << i % 64;
    *train = qn__data_view(all, marks, 0, first - 1, err);
    marks[(first - 1) / 64] &= ~((uint64_t)1 << (first - 1) % 64);
    *valid = *train ? qn__data_view(all, marks, 1, count, err) : NULL;
    qn__free(marks);
    if (*valid)
        return QN_OK;
    qn_data_close(*train);
    *train = NULL;
    return QN_MEMORY;
}

qn_status qn__data_split(const qn_data *all, float fraction, uint64_t seed, qn_data **train,
                         qn_data **valid, qn_error *err) {
    *train = NULL;
    *valid = NULL;
    if (!(fraction > 0 && fraction < 1))
        return refuse(err, fraction, all->items);
    uint64_t count = part_of(fraction, all->items);
    if (count == 0 || count >= all->items)
        return refuse(err, fraction, all->items);
    if (all->context)
        return split_corpus(all, fraction, count, train, valid, err);
    uint64_t *marks = mark_items(all->items, count, seed, err);
    if (!marks)
        return QN_MEMORY;
    *train = qn__data_view(all, marks, 0, all->items - count, err);
    *valid = *train ? qn__data_view(all, marks, 1, count, err) : NULL;
    qn__free(marks);
    if (*valid)
        return QN_OK;
    qn_data_close(*train);
    *train = NULL;
    return QN_MEMORY;
}
