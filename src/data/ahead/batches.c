/* Data sets from batches that a caller gives one after the other. */
#include "base/argument.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/system/float_state.h"
#include "data/numpy/arrays_copy.h"
#include "data/table/data.h"
#include <string.h>

/* Rooms of the first batch: smaller tables grow once or never. */
#define FIRST_CAPACITY 4

typedef struct gathering {
    qn_data_arrays arrays; /* of the caller; `items` are those taken so far */
    uint64_t batches;
    size_t stride;     /* bytes of an item's values */
    uint64_t capacity; /* items */
    void *values;
    int32_t *labels;
    float *targets, *weights;
} gathering;

static qn_status refuse(const gathering *g, qn_error *err) {
    qn__at(err, "batch %llu", (unsigned long long)g->batches);
    return qn__remedy(err, QN_INPUT,
                      "give labels, targets and weights with every batch or with none of them");
}

/* Moves `used` elements into a block of `capacity`. */
static qn_status move(void **block, uint64_t used, uint64_t capacity, size_t size, qn_error *err) {
    void *more = qn__alloc(capacity, size, err);
    if (!more)
        return QN_MEMORY;
    if (*block)
        memcpy(more, *block, (size_t)used * size);
    qn__free(*block);
    *block = more;
    return QN_OK;
}

static qn_status grow(gathering *g, const qn_data_batch *b, uint64_t capacity, qn_error *err) {
    const uint64_t used = g->arrays.items;
    void *labels = g->labels, *targets = g->targets, *weights = g->weights;
    qn_status status = move(&g->values, used, capacity, g->stride, err);
    if (status == QN_OK && b->labels)
        status = move(&labels, used, capacity, sizeof *g->labels, err);
    if (status == QN_OK && b->targets)
        status = move(&targets, used, capacity, sizeof *g->targets, err);
    if (status == QN_OK && b->weights)
        status = move(&weights, used, capacity, sizeof *g->weights, err);
    g->weights = weights;
    g->labels = labels;
    g->targets = targets;
    g->capacity = capacity;
    return status;
}

static qn_status check_batch(const gathering *g, const qn_data_batch *b, qn_error *err) {
    const int differs = g->batches > 0 && (!b->labels != !g->labels || !b->targets != !g->targets ||
                                           !b->weights != !g->weights);
    if (!b->values)
        qn__fail(err, QN_INPUT, "the batch has no values");
    else if (b->labels && b->targets)
        qn__fail(err, QN_INPUT, "the batch has labels and targets");
    else if (differs)
        qn__fail(err, QN_INPUT, "the batch differs from those before in what it has");
    else if (b->items <= QN__ITEMS_MAX - g->arrays.items)
        return QN_OK;
    else
        qn__fail(err, QN_INPUT, "the batches have more than 2^48 items");
    return refuse(g, err);
}

static qn_status take_batch(gathering *g, const qn_data_batch *b, qn_error *err) {
    const uint64_t used = g->arrays.items, needed = used + b->items;
    qn_status status = check_batch(g, b, err);
    if (status != QN_OK)
        return status;
    if (needed > g->capacity || g->batches == 0) {
        uint64_t capacity =
            g->batches == 0 && g->capacity == 0 ? FIRST_CAPACITY * b->items : g->capacity;
        while (capacity < needed)
            capacity = capacity ? 2 * capacity : needed;
        if ((status = grow(g, b, capacity, err)) != QN_OK)
            return status;
    }
    memcpy((char *)g->values + (size_t)used * g->stride, b->values, (size_t)b->items * g->stride);
    if (b->labels)
        memcpy(g->labels + used, b->labels, (size_t)b->items * sizeof *g->labels);
    if (b->targets)
        memcpy(g->targets + used, b->targets, (size_t)b->items * sizeof *g->targets);
    if (b->weights)
        memcpy(g->weights + used, b->weights, (size_t)b->items * sizeof *g->weights);
    g->arrays.items = needed;
    g->batches++;
    return QN_OK;
}

static qn_status call_next(qn_data_next next, void *user, qn_data_batch *batch, qn_error *err) {
    qn_error own = {0};
    *batch = (qn_data_batch){.size = sizeof *batch};
    const qn_status status = next(user, batch, &own);
    qn__float_state_set();
    if (status == QN_OK)
        return QN_OK;
    if (own.status != status) /* it returned a status without a message */
        qn__fail(&own, status, "the caller's function that gives batches failed");
    if (err)
        *err = own;
    return status;
}

static qn_status gather(gathering *g, qn_data_next next, void *user, qn_error *err) {
    qn_data_batch batch;
    qn_status status;
    while ((status = call_next(next, user, &batch, err)) == QN_OK && batch.items > 0)
        if ((status = take_batch(g, &batch, err)) != QN_OK)
            return status;
    if (status != QN_OK || g->batches > 0)
        return status;
    qn__fail(err, QN_INPUT, "there are no batches");
    return qn__remedy(err, QN_INPUT, "give at least one item; a batch without items is the end");
}

static qn_status check_arrays(const qn_data_arrays *a, qn_error *err) {
    if (a->values || a->labels || a->targets || a->weights || a->owner || a->release) {
        qn__fail(err, QN_USAGE, "the batches hold the arrays, and one was given for all");
        return qn__remedy(
            err, QN_USAGE,
            "set values, labels, targets, weights, owner and release of the arrays to "
            "NULL");
    }
    if (qn__arrays_differ(a))
        return qn__fail(err, QN_USAGE, "batches hold neither doubles nor values with steps");
    if (qn__element_is_type(a->type))
        return QN_OK;
    return qn__fail(err, QN_USAGE, "%d is not a type of values", (int)a->type);
}

qn_status qn_data_from_batches(const qn_data_arrays *arrays, qn_data_next next, void *user,
                               qn_data **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(arrays, err);
    QN__NEED(next, err);
    gathering g = {.batches = 0};
    qn_data_arrays_init(&g.arrays);
    qn_status status = qn__sized_take(QN__SIZED("arrays", qn_data_arrays), arrays, &g.arrays, err);
    if (status == QN_OK)
        status = check_arrays(&g.arrays, err);
    if (status != QN_OK)
        return status;
    g.stride = g.arrays.features * qn__element_of(g.arrays.type)->size;
    g.capacity = g.arrays.items;
    g.arrays.items = 0;
    status = gather(&g, next, user, err);
    g.arrays.values = g.values;
    g.arrays.labels = g.labels;
    g.arrays.targets = g.targets;
    g.arrays.weights = g.weights;
    if (status == QN_OK)
        status = qn__data_take(&g.arrays, out, err);
    if (status != QN_OK)
        qn__free(g.values);
    qn__free(g.labels);
    qn__free(g.targets);
    qn__free(g.weights);
    return status;
}
