#include "device/length_groups.h"

#include "base/memory.h"
#include "device/shorten.h"
#include "num/philox.h"

enum { SLOTS = 3 }; /* of windows with an even number, of others, and of steps that are repeated */

struct qn__length_groups {
    uint64_t items, seed;
    uint32_t batch, batches, longest;
    uint32_t *length;         /* of each item */
    uint64_t *begin;          /* space: of each length, where it begins in the sorted window */
    uint64_t *found, *sorted; /* space of a window */
    uint64_t *places[SLOTS];
    uint64_t window[SLOTS]; /* the first position of what `places` has; UINT64_MAX: nothing */
    uint32_t epoch[SLOTS];
};

static uint64_t window_size(const qn__length_groups *g) {
    const uint64_t size = (uint64_t)g->batch * g->batches;
    return size < g->items ? size : g->items;
}

static qn_status need(qn__length_groups *g, uint32_t features, qn_error *err) {
    const uint64_t size = window_size(g);
    g->length = qn__alloc(g->items, sizeof *g->length, err);
    if (g->length)
        g->begin = qn__alloc((uint64_t)features + 2, sizeof *g->begin, err);
    if (g->begin)
        g->found = qn__alloc(size, sizeof *g->found, err);
    if (g->found)
        g->sorted = qn__alloc(size, sizeof *g->sorted, err);
    qn_status status = g->sorted ? QN_OK : QN_MEMORY;
    for (int i = 0; i < SLOTS && status == QN_OK; ++i) {
        g->window[i] = UINT64_MAX;
        g->places[i] = qn__alloc(size, sizeof **g->places, err);
        status = g->places[i] ? QN_OK : QN_MEMORY;
    }
    return status;
}

qn_status qn__length_groups_create(const qn__program *program, const qn__feed *feed, uint32_t batch,
                                   uint32_t batches, qn__length_groups **out, qn_error *err) {
    qn__length_groups *g = qn__alloc(1, sizeof *g, err);
    *out = NULL;
    if (!g)
        return QN_MEMORY;
    g->items = feed->items;
    g->seed = program->seed;
    g->batch = batch;
    g->batches = batches;
    g->longest = feed->features;
    if (need(g, feed->features, err) != QN_OK) {
        qn__length_groups_free(g);
        return QN_MEMORY;
    }
    const qn__batch all = {.feed = feed};
    for (uint64_t i = 0; i < feed->items; ++i)
        g->length[i] = qn__item_length(program, feed, qn__batch_values_at(&all, i, i));
    *out = g;
    return QN_OK;
}

void qn__length_groups_free(qn__length_groups *g) {
    if (!g)
        return;
    qn__free(g->length);
    qn__free(g->begin);
    qn__free(g->found);
    qn__free(g->sorted);
    for (int i = 0; i < SLOTS; ++i)
        qn__free(g->places[i]);
    qn__free(g);
}

uint64_t qn__length_groups_window(const qn__length_groups *g, uint64_t position,
                                  uint64_t *positions) {
    const uint64_t size = (uint64_t)g->batch * g->batches;
    *positions = window_size(g);
    return position / size * size;
}

/* The positions from `first` on, the shortest items first, equal ones in their order. */
static void sort(qn__length_groups *g, const qn__permutation *order, uint64_t first,
                 uint64_t count) {
    for (uint32_t k = 0; k <= g->longest + 1; ++k)
        g->begin[k] = 0;
    for (uint64_t i = 0; i < count; ++i) {
        g->found[i] = g->length[qn__permutation_at(order, first + i)];
        ++g->begin[g->found[i] + 1];
    }
    for (uint32_t k = 0; k <= g->longest; ++k)
        g->begin[k + 1] += g->begin[k];
    for (uint64_t i = 0; i < count; ++i)
        g->sorted[g->begin[g->found[i]]++] = first + i;
}

/* The sorted positions, a batch at a time: number k of them goes to the batch that the permutation
 * says. A last batch that is short stays the last one, with the longest items. */
static void deal(const qn__length_groups *g, uint32_t epoch, uint64_t count, uint64_t *places) {
    const uint64_t whole = count / g->batch;
    qn__permutation batches;
    if (whole > 0)
        qn__permutation_begin(&batches, whole, g->seed, QN__PURPOSE_LENGTHS, epoch);
    for (uint64_t i = 0; i < count; ++i) {
        const uint64_t k = i / g->batch;
        const uint64_t to = k < whole ? qn__permutation_at(&batches, k) : k;
        places[to * g->batch + i % g->batch] = g->sorted[i];
    }
}

const uint64_t *qn__length_groups_places(qn__length_groups *g, const qn__batch *batch,
                                         int replays) {
    uint64_t size;
    const uint64_t window = qn__length_groups_window(g, batch->first, &size);
    const uint64_t left = g->items - window, count = left < size ? left : size;
    const int slot = replays ? SLOTS - 1 : (int)(window / g->batch / g->batches % 2);
    if (g->window[slot] != window || g->epoch[slot] != batch->epoch) {
        g->window[slot] = window;
        g->epoch[slot] = batch->epoch;
        sort(g, batch->order, window, count);
        deal(g, batch->epoch, count, g->places[slot]);
    }
    return g->places[slot] + (batch->first - window);
}
