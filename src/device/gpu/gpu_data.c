/* Copies items to the device.
 *
 * A feed that is trained on does not change while the worker is open (device.h), so it is uploaded
 * once and identified by its pointers. A feed of apply may be freed after the call, and another one
 * may get the same address; so it is never kept. It still uses values on the device when its own
 * values are those of a feed that was trained on: that array does not change, and validation items
 * are rows of the same table. A feed whose items are augmented is not kept: the host augments and
 * sends those of each step. Nor is one whose items come from other ranks. */
#include "device/gpu/gpu_worker.h"
#include "num/augment.h"
#include "num/mix.h"
#include <string.h>

_Static_assert((int)QN__FETCH_BYTES == QN_VALUES_BYTES &&
                   (int)QN__FETCH_FLOATS == QN_VALUES_FLOATS &&
                   (int)QN__FETCH_TOKENS16 == QN_VALUES_TOKENS16 &&
                   (int)QN__FETCH_TOKENS32 == QN_VALUES_TOKENS32,
               "one order");

/* Lists are written out on the way to the device, unless its first layer reads them. */
static int is_list(const qn__feed *feed) {
    return qn__element_of(feed->type)->fetch == QN__FETCH_LISTS;
}

static uint32_t type_of(const qn__feed *feed) {
    return (uint32_t)(is_list(feed) ? QN__FETCH_FLOATS : qn__element_of(feed->type)->fetch);
}

static int same_feed(const qn__feed *a, const qn__feed *b) {
    return a->items == b->items && a->features == b->features && a->step == b->step &&
           a->type == b->type && a->values == b->values && a->rows == b->rows &&
           a->labels == b->labels && a->weights == b->weights;
}

static uint64_t row_at(const qn__batch *batch, uint32_t place) {
    const uint64_t item = qn__gpu_item_at(batch, place);
    return batch->feed->rows ? batch->feed->rows[item] : item;
}

/* The number of rows of values that a feed refers to. */
static uint64_t rows_reached(const qn__feed *feed) {
    uint64_t last = 0;
    if (!feed->rows)
        return feed->items;
    for (uint64_t i = 0; i < feed->items; ++i)
        last = feed->rows[i] > last ? feed->rows[i] : last;
    return last + 1;
}

static void drop_feed(qn__worker *w, qn__gpu_feed *f) {
    qn__gpu_drop(w, &f->values);
    qn__gpu_drop(w, &f->rows);
    qn__gpu_drop(w, &f->labels);
    qn__gpu_drop(w, &f->weights);
    f->held = 0;
}

/* The least recently used feed on the device, or NULL. */
static qn__gpu_feed *oldest_held(qn__worker *w) {
    qn__gpu_feed *oldest = NULL;
    for (int i = 0; i < QN__GPU_FEEDS; ++i)
        if (w->feeds.feed[i].held > 0 && (!oldest || w->feeds.feed[i].used < oldest->used))
            oldest = &w->feeds.feed[i];
    return oldest;
}

/* Drops feeds until `bytes` more fit; 0 when they cannot fit. */
static int reserve(qn__worker *w, uint64_t bytes, uint64_t piece) {
    /* There must be space for the sums of shared steps. */
    const uint64_t sums =
        w->model.canonical.bytes ? 0 : qn__program_sums(w->program) * sizeof(int64_t);
    while (!qn__gpu_fits(w, bytes + sums, piece)) {
        qn__gpu_feed *oldest = oldest_held(w);
        if (!oldest)
            return 0;
        drop_feed(w, oldest);
        oldest->key.items = 0;
    }
    return 1;
}

/* Uploads an array of a feed. If the device has no memory for it after all, *fits becomes 0,
 * and that is not a failure. */
static qn_status upload(qn__worker *w, const void *from, uint64_t bytes, qn__gpu_memory *to,
                        int *fits, qn_error *err) {
    qn_error refused;
    if (bytes == 0 || !*fits)
        return QN_OK;
    if (qn__gpu_more(w, "a data set", bytes, to, &refused) != QN_OK) {
        *fits = 0;
        return QN_OK;
    }
    return w->driver->write(w->gpu, to, 0, from, (size_t)bytes, err);
}

static qn_status upload_feed(qn__worker *w, qn__gpu_feed *f, qn_error *err) {
    const qn__feed *feed = &f->key;
    const uint64_t held = rows_reached(feed), item = qn__feed_stride(feed);
    const uint64_t rows = feed->rows ? feed->items * sizeof(uint64_t) : 0;
    const uint64_t labels = feed->labels ? feed->items * sizeof(int32_t) : 0;
    const uint64_t weights = feed->weights ? feed->items * sizeof(float) : 0;
    uint64_t values, bytes;
    /* The kernels want rows that share nothing: others are sent, a step's at a time. */
    int capacity = !feed->step && !__builtin_mul_overflow(held, item, &values) &&
                   !__builtin_add_overflow(values, rows + labels + weights, &bytes) &&
                   reserve(w, bytes, values > rows ? values : rows);
    qn_status status = QN_OK;
    if (capacity)
        status = upload(w, feed->values, values, &f->values, &capacity, err);
    if (status == QN_OK)
        status = upload(w, feed->rows, rows, &f->rows, &capacity, err);
    if (status == QN_OK)
        status = upload(w, feed->labels, labels, &f->labels, &capacity, err);
    if (status == QN_OK)
        status = upload(w, feed->weights, weights, &f->weights, &capacity, err);
    if (status == QN_OK && capacity)
        f->held = held;
    else
        drop_feed(w, f);
    return status;
}

/* The feed's entry; made and uploaded when it is new. */
static qn_status feed_entry(qn__worker *w, const qn__feed *feed, qn__gpu_feed **out,
                            qn_error *err) {
    qn__gpu_feed *f = &w->feeds.feed[0];
    for (int i = 0; i < QN__GPU_FEEDS; ++i) {
        if (w->feeds.feed[i].key.items > 0 && same_feed(&w->feeds.feed[i].key, feed)) {
            *out = &w->feeds.feed[i];
            w->feeds.feed[i].used = ++w->feeds.clock;
            return QN_OK;
        }
        if (w->feeds.feed[i].key.items == 0 ||
            (f->key.items > 0 && w->feeds.feed[i].used < f->used))
            f = &w->feeds.feed[i];
    }
    drop_feed(w, f);
    *f = (qn__gpu_feed){.key = *feed, .id = ++w->feeds.clock, .used = w->feeds.clock};
    *out = f;
    return upload_feed(w, f, err);
}

/* The values of an item at `from`, as a training sees them before they are mixed. */
static void show(qn__worker *w, const qn__batch *batch, uint64_t item, const void *from, char *to) {
    const qn__program *p = w->program;
    if (p->augment)
        qn__augment_item(p->augment, p->seed, batch->epoch, item,
                         qn__element_of(batch->feed->type)->size, from, to, w->stage.augment_space);
    else
        memcpy(to, from, qn__feed_stride(batch->feed));
}

/* The partner of an item, which is at the position before it: one that is shown already, or NULL.
 */
static void mix_in(qn__worker *w, const qn__batch *batch, uint32_t place, const char *partner,
                   char *to) {
    const qn__program *p = w->program;
    const qn__mixing mixing =
        qn__mix_of(p->mix, p->seed, batch->epoch, qn__gpu_item_at(batch, place));
    if (!partner) {
        uint64_t position;
        const uint64_t other = qn__batch_partner(batch, place, &position);
        show(w, batch, other, qn__batch_values_at(batch, position, other), w->stage.partner);
        partner = w->stage.partner;
    }
    qn__mix_values(p->mix, &mixing, qn__element_of(batch->feed->type)->size, to, partner);
}

/* The values of the items from `first` to before `end` to the stage; `changed`: 1: as a training
 * sees them. They are mixed from the last on, since the one before it is an item's partner. */
static void stage_values(qn__worker *w, const qn__batch *batch, uint32_t first, uint32_t end,
                         int changed) {
    const size_t size = qn__feed_whole(batch->feed);
    const qn__element *element = qn__element_of(batch->feed->type);
    for (uint32_t place = first; place < end; ++place) {
        const uint64_t item = qn__gpu_item_at(batch, place);
        const void *from = qn__batch_values(batch, place, item);
        char *to = w->stage.memory + (place - first) * size;
        if (changed)
            show(w, batch, item, from, to);
        else if (is_list(batch->feed))
            element->floats(from, batch->feed->features, (float *)(void *)to);
        else
            memcpy(to, from, size);
    }
    for (uint32_t place = end; changed && w->program->mix && place-- > first;) {
        char *to = w->stage.memory + (place - first) * size;
        mix_in(w, batch, place, place > first ? to - size : NULL, to);
    }
}

/* Writes the values of the batch's items, one after the other, to sent_values. */
static qn_status send_values(qn__worker *w, const qn__batch *batch, int changed, qn_error *err) {
    const qn__feed *feed = batch->feed;
    const size_t item = qn__feed_whole(feed);
    const uint32_t most = (uint32_t)(w->stage.bytes / item);
    const char *values = feed->values;
    qn_status status = QN_OK;
    if (!feed->rows && !batch->order && !changed && !feed->step && !is_list(feed) && !feed->remote)
        return w->driver->write(w->gpu, &w->feeds.sent_values, 0, values + batch->first * item,
                                batch->items * item, err);
    for (uint32_t first = 0, next; status == QN_OK && first < batch->items; first = next) {
        next = batch->items - first < most ? batch->items : first + most;
        stage_values(w, batch, first, next, changed);
        status = w->driver->write(w->gpu, &w->feeds.sent_values, first * item, w->stage.memory,
                                  (next - first) * item, err);
    }
    return status;
}

/* `changed`: 1: as a training sees them. */
static qn_status send_items(qn__worker *w, const qn__batch *batch, int changed,
                            qn__gpu_source *source, qn_error *err) {
    *source = (qn__gpu_source){.values = &w->feeds.sent_values,
                               .rows = &w->step,
                               .labels = &w->step,
                               .weights = &w->step,
                               .flags = QN_FETCH_GATHERED,
                               .type = type_of(batch->feed),
                               .sent = 1};
    return send_values(w, batch, changed, err);
}

static qn_status send_lists(qn__worker *w, const qn__batch *batch, int training,
                            qn__gpu_source *source, qn_error *err) {
    *source = (qn__gpu_source){.values = &w->step,
                               .rows = &w->step,
                               .labels = &w->step,
                               .weights = &w->step,
                               .flags = QN_FETCH_GATHERED,
                               .type = QN_VALUES_FLOATS,
                               .sent = 1};
    return qn__gpu_send_lists(w, batch, training, err);
}

static void source_held(const qn__worker *w, const qn__gpu_feed *f, qn__gpu_source *source) {
    *source = (qn__gpu_source){.values = &f->values,
                               .rows = f->rows.bytes ? &f->rows : &w->step,
                               .labels = f->labels.bytes ? &f->labels : &w->step,
                               .weights = f->weights.bytes ? &f->weights : &w->step,
                               .type = type_of(&f->key),
                               .id = f->id};
    source->flags = (f->rows.bytes ? QN_FETCH_ROWS : 0u) |
                    (f->labels.bytes ? QN_FETCH_LABELS : 0u) |
                    (f->weights.bytes ? QN_FETCH_WEIGHTS : 0u);
}

qn_status qn__gpu_source_of(qn__worker *w, const qn__batch *batch, qn__gpu_source *source,
                            qn_error *err) {
    qn__gpu_feed *f;
    if (w->lists.takes)
        return send_lists(w, batch, 1, source, err);
    if (w->program->augment || w->program->mix)
        return send_items(w, batch, 1, source, err);
    if (is_list(batch->feed) || batch->places || batch->feed->remote)
        return send_items(w, batch, 0, source, err);
    const qn_status status = feed_entry(w, batch->feed, &f, err);
    if (status != QN_OK)
        return status;
    if (f->held == 0)
        return send_items(w, batch, 0, source, err);
    source_held(w, f, source);
    return QN_OK;
}

/* 1 when all rows of the batch are in the values of `f`; the row numbers are then in the stage. */
static int gather_rows(qn__worker *w, const qn__batch *batch, const qn__gpu_feed *f) {
    const qn__feed *feed = batch->feed;
    uint64_t *rows = (uint64_t *)(void *)w->stage.memory;
    if (f->held == 0 || f->key.values != feed->values || f->key.type != feed->type ||
        f->key.features != feed->features || batch->items * sizeof *rows > w->stage.bytes)
        return 0;
    for (uint32_t i = 0; i < batch->items; ++i)
        if ((rows[i] = row_at(batch, i)) >= f->held)
            return 0;
    return 1;
}

qn_status qn__gpu_source_once(qn__worker *w, const qn__batch *batch, qn__gpu_source *source,
                              qn_error *err) {
    qn_status status = QN_OK;
    if (w->lists.takes) {
        status = send_lists(w, batch, 0, source, err);
        source->by_place = 1;
        return status;
    }
    for (int i = 0; i < QN__GPU_FEEDS; ++i) {
        if (w->feeds.feed[i].held == 0 || !gather_rows(w, batch, &w->feeds.feed[i]))
            continue;
        source_held(w, &w->feeds.feed[i], source);
        source->rows = &w->feeds.sent_rows;
        source->labels = source->weights = &w->step;
        source->flags = QN_FETCH_ROWS;
        source->sent = source->by_place = 1;
        source->id = 0;
        return w->driver->write(w->gpu, &w->feeds.sent_rows, 0, w->stage.memory,
                                batch->items * sizeof(uint64_t), err);
    }
    status = send_items(w, batch, 0, source, err);
    source->by_place = 1;
    return status;
}

/* Writes 4 bytes of each item of the batch, which stand at `from` by the items' numbers. */
static qn_status send_words(qn__worker *w, const qn__batch *batch, const void *from,
                            const qn__gpu_memory *to, qn_error *err) {
    uint32_t *stage = (uint32_t *)(void *)w->stage.memory;
    const uint32_t most = (uint32_t)(w->stage.bytes / sizeof *stage);
    qn_status status = QN_OK;
    for (uint32_t first = 0, next; status == QN_OK && first < batch->items; first = next) {
        next = batch->items - first < most ? batch->items : first + most;
        for (uint32_t i = first; i < next; ++i)
            memcpy(&stage[i - first], (const uint32_t *)from + qn__gpu_item_at(batch, i),
                   sizeof *stage);
        status = w->driver->write(w->gpu, to, first * sizeof *stage, stage,
                                  (next - first) * sizeof *stage, err);
    }
    return status;
}

qn_status qn__gpu_send_targets(qn__worker *w, const qn__batch *batch, qn_error *err) {
    const qn__feed *feed = batch->feed;
    const qn_status status =
        feed->labels ? send_words(w, batch, feed->labels, &w->batch.targets, err) : QN_OK;
    return status == QN_OK && feed->weights
               ? send_words(w, batch, feed->weights, &w->batch.weight, err)
               : status;
}

qn_status qn__gpu_send_numbers(qn__worker *w, const qn__batch *batch, qn_error *err) {
    uint64_t *stage = (uint64_t *)(void *)w->stage.memory;
    const uint32_t most = (uint32_t)(w->stage.bytes / sizeof *stage);
    qn_status status = QN_OK;
    for (uint32_t first = 0, next; status == QN_OK && first < batch->items; first = next) {
        next = batch->items - first < most ? batch->items : first + most;
        qn__batch_items(batch, first, next - first, stage);
        status = w->driver->write(w->gpu, &w->batch.numbers, first * sizeof *stage, stage,
                                  (next - first) * sizeof *stage, err);
    }
    return status;
}

qn_status qn__gpu_send_partners(qn__worker *w, const qn__batch *batch, qn_error *err) {
    const qn__program *p = w->program;
    const uint32_t items = batch->items, most = (uint32_t)(w->stage.bytes / sizeof(uint32_t) / 2);
    uint32_t *other = (uint32_t *)(void *)w->stage.memory;
    float *share = (float *)(void *)(other + most);
    qn_status status = QN_OK;
    for (uint32_t first = 0, next; status == QN_OK && first < items; first = next) {
        next = items - first < most ? items : first + most;
        for (uint32_t i = first; i < next; ++i) {
            uint64_t position;
            other[i - first] =
                (uint32_t)batch->feed->labels[qn__batch_partner(batch, i, &position)];
            share[i - first] =
                qn__mix_of(p->mix, p->seed, batch->epoch, qn__gpu_item_at(batch, i)).own;
        }
        const size_t bytes = (next - first) * sizeof *other;
        status = w->driver->write(w->gpu, &w->batch.targets, (items + first) * sizeof *other, other,
                                  bytes, err);
        if (status == QN_OK)
            status = w->driver->write(w->gpu, &w->batch.targets,
                                      (2 * items + first) * sizeof *other, share, bytes, err);
    }
    return status;
}

qn_status qn__gpu_send_shown(qn__worker *w, const qn__batch *batch, qn_error *err) {
    const qn__program *p = w->program;
    const size_t each = p->answers;
    const uint32_t most = (uint32_t)(w->stage.bytes / (each + sizeof(float)));
    float *share = (float *)(void *)w->stage.memory;
    uint8_t *answers = (uint8_t *)(share + most);
    qn_status status = QN_OK;
    for (uint32_t first = 0, next; status == QN_OK && first < batch->items; first = next) {
        next = batch->items - first < most ? batch->items : first + most;
        for (uint32_t i = first; i < next; ++i)
            share[i - first] = qn__batch_show(batch, p, i, qn__gpu_item_at(batch, i),
                                              answers + (i - first) * each, w->stage.shown_space);
        status = w->driver->write(w->gpu, &w->batch.answers, first * each, answers,
                                  (next - first) * each, err);
        if (status == QN_OK)
            status = w->driver->write(w->gpu, &w->batch.weight, first * sizeof *share, share,
                                      (next - first) * sizeof *share, err);
    }
    return status;
}

/* The targets of the batch's items, each of which has several. */
static qn_status send_answers(qn__worker *w, const qn__batch *batch, qn_error *err) {
    const size_t each = w->program->answers;
    const uint32_t most = (uint32_t)(w->stage.bytes / each);
    qn_status status = QN_OK;
    for (uint32_t first = 0, next; status == QN_OK && first < batch->items; first = next) {
        next = batch->items - first < most ? batch->items : first + most;
        for (uint32_t i = first; i < next; ++i)
            memcpy(w->stage.memory + (i - first) * each,
                   qn__feed_answers(batch->feed, w->program, qn__gpu_item_at(batch, i)), each);
        status = w->driver->write(w->gpu, &w->batch.answers, first * each, w->stage.memory,
                                  (next - first) * each, err);
    }
    return status;
}

qn_status qn__gpu_send_step(qn__worker *w, const qn__batch *batch, const qn__gpu_source *source,
                            const qn__update *update, qn_error *err) {
    const int by_place = source->by_place || batch->places;
    qn_step step = {.first = by_place ? 0 : batch->first,
                    .items = batch->items,
                    .grain = w->program->grain,
                    .epoch = batch->epoch};
    if (batch->order && !by_place) {
        step.domain = batch->order->n;
        step.left = batch->order->high_bits;
        step.right = batch->order->low_bits;
        memcpy(step.keys, batch->order->key, sizeof step.keys);
    }
    if (update) {
        step.rate = update->rate;
        step.gradient = update->gradient;
        step.adam_a = update->adam_a;
        step.adam_r = update->adam_r;
        step.running = update->running;
        step.average = update->average;
    }
    qn_status status = w->driver->write(w->gpu, &w->step, 0, &step, sizeof step, err);
    const int shown = w->program->moves_answers && !source->by_place; /* sent later */
    if (status == QN_OK && !shown && w->program->answers && batch->feed && batch->feed->answers)
        status = send_answers(w, batch, err);
    if (status == QN_OK && w->reports.stale && w->launches.flights == 0) {
        status = w->driver->clear(w->gpu, &w->reports.status, 0, sizeof(qn_status_words), err);
        w->reports.seen = (qn_status_words){0};
        w->reports.stale = 0;
    }
    return status;
}
