#include "job/by_length.h"

#include "base/memory.h"
#include "device/shorten.h"
#include <string.h>

int qn__by_length_gains(const qn__program *p, const qn__batch *batch, const qn__applied *applied) {
    return batch->items > 1 && !batch->order && qn__can_shorten(p) &&
           !qn__fills_positions(batch->feed) && !qn__needs_all_positions(p, applied);
}

/* Sorts by counting: the longest first, those of one length in their order. */
static qn_status sort(const qn__program *p, const qn__batch *batch, uint32_t *place,
                      qn_error *err) {
    const uint32_t all = p->layer[0].to.width, items = batch->items;
    uint32_t *begin = qn__alloc(all + (uint64_t)2, sizeof *begin, err);
    uint32_t *shorter = qn__alloc(items, sizeof *shorter, err); /* by how much than `all` */
    for (uint32_t i = 0; begin && shorter && i < items; ++i) {
        const uint64_t item = batch->first + i;
        shorter[i] =
            all - qn__item_positions(p, batch->feed, item, qn__batch_values(batch, i, item), 0);
        ++begin[shorter[i] + 1];
    }
    for (uint32_t k = 0; begin && shorter && k < all; ++k)
        begin[k + 1] += begin[k];
    for (uint32_t i = 0; begin && shorter && i < items; ++i)
        place[begin[shorter[i]]++] = i;
    const qn_status status = begin && shorter ? QN_OK : QN_MEMORY;
    qn__free(begin);
    qn__free(shorter);
    return status;
}

static qn_status need(qn__by_length *of, const qn__batch *batch, qn_error *err) {
    const qn__feed *feed = batch->feed;
    const uint64_t items = batch->items;
    of->place = qn__alloc(items, sizeof *of->place, err);
    if (of->place)
        of->rows = qn__alloc(items, sizeof *of->rows, err);
    if (of->rows && feed->labels)
        of->labels = qn__alloc(items, sizeof *of->labels, err);
    if (of->rows && feed->weights)
        of->weights = qn__alloc(items, sizeof *of->weights, err);
    if (of->rows && feed->answers)
        of->answer_rows = qn__alloc(items, sizeof *of->answer_rows, err);
    return of->rows && !of->labels == !feed->labels && !of->weights == !feed->weights &&
                   !of->answer_rows == !feed->answers
               ? QN_OK
               : QN_MEMORY;
}

static void fill(qn__by_length *of, const qn__batch *batch) {
    const qn__feed *feed = batch->feed;
    for (uint32_t i = 0; i < batch->items; ++i) {
        const uint64_t item = batch->first + of->place[i];
        of->rows[i] = feed->rows ? feed->rows[item] : item;
        if (of->labels)
            of->labels[i] = feed->labels[item];
        if (of->weights)
            of->weights[i] = feed->weights[item];
        if (of->answer_rows)
            of->answer_rows[i] = feed->answer_rows ? feed->answer_rows[item] : item;
    }
    of->feed = *feed;
    of->feed.items = batch->items;
    of->feed.rows = of->rows;
    of->feed.labels = of->labels;
    of->feed.weights = of->weights;
    of->feed.answer_rows = of->answer_rows;
    of->batch = (qn__batch){.feed = &of->feed, .items = batch->items, .epoch = batch->epoch};
}

qn_status qn__by_length_begin(const qn__program *program, const qn__batch *batch,
                              qn__by_length *out, qn_error *err) {
    *out = (qn__by_length){0};
    qn_status status = need(out, batch, err);
    if (status == QN_OK)
        status = sort(program, batch, out->place, err);
    if (status == QN_OK)
        fill(out, batch);
    return status;
}

void qn__by_length_free(qn__by_length *of) {
    qn__free(of->place);
    qn__free(of->rows);
    qn__free(of->answer_rows);
    qn__free(of->labels);
    qn__free(of->weights);
}

/* Follows the cycles of the order: what is at number i belongs to place[i]. `done` and `held` are
 * space: a byte for each item, and the bytes of one. */
static void put_back(const qn__by_length *of, void *array, size_t each, uint8_t *done,
                     uint8_t *held) {
    uint8_t *at = array;
    const uint32_t items = of->batch.items;
    if (!array)
        return;
    memset(done, 0, items);
    for (uint32_t begin = 0; begin < items; ++begin) {
        uint8_t *const next = held + each;
        memcpy(held, at + begin * each, each);
        for (uint32_t i = begin; !done[i];) {
            const uint32_t to = of->place[i];
            done[i] = 1;
            memcpy(next, at + to * each, each);
            memcpy(at + to * each, held, each);
            memcpy(held, next, each);
            i = to;
        }
    }
}

qn_status qn__by_length_back(const qn__program *p, const qn__by_length *of,
                             const qn__applied *applied, qn_error *err) {
    const qn__layer *last = &p->layer[p->layers - 1];
    const size_t outputs = applied->outputs ? last->out * sizeof(float) : 0;
    const size_t inputs = applied->inputs ? last->in * sizeof(float) : 0;
    const size_t positions = p->answers * sizeof(float);
    const size_t most = (outputs > inputs ? outputs : inputs) + positions + sizeof(float);
    uint8_t *done = qn__alloc(of->batch.items, 1, err), *held = qn__alloc(most, 2, err);
    if (done && held) {
        put_back(of, applied->classes, sizeof *applied->classes, done, held);
        put_back(of, applied->scores, sizeof *applied->scores, done, held);
        put_back(of, applied->outputs, outputs, done, held);
        put_back(of, applied->inputs, inputs, done, held);
        put_back(of, applied->losses, positions, done, held);
        put_back(of, applied->tokens, positions, done, held);
    }
    const qn_status status = done && held ? QN_OK : QN_MEMORY;
    qn__free(done);
    qn__free(held);
    return status;
}
