/* A dense first layer whose items are lists of their inputs that are not 0
 * (docs/exactness.md 25.60). Each batch is packed on the host and sent: nothing has the size of all
 * inputs but the weights.
 *
 *     rows     begin of each item's pairs, and of those after the last | pairs (input, value)
 *     columns  (input, end of its pairs) of each input that occurs     | pairs (place, value)
 *
 * The columns are for the gradient, whose lanes each add up the errors of one input. */
#include "base/memory.h"
#include "device/gpu/gpu_worker.h"
#include <string.h>

static const qn__list *list_at(const qn__batch *batch, uint32_t place) {
    return qn__batch_values(batch, place, qn__gpu_item_at(batch, place));
}

/* Space for so many words on the host. */
static qn_status reserve(uint32_t **words, uint64_t *capacity, uint64_t count, qn_error *err) {
    if (count <= *capacity)
        return QN_OK;
    qn__free(*words);
    *capacity = count + count / 2;
    *words = qn__alloc(*capacity, sizeof **words, err);
    if (*words)
        return QN_OK;
    *capacity = 0;
    return QN_MEMORY;
}

/* Writes words to the device, whose memory grows with them. */
static qn_status send(qn__worker *w, const uint32_t *words, uint64_t count, qn__gpu_memory *to,
                      qn_error *err) {
    const uint64_t bytes = count * sizeof *words;
    qn_status status = QN_OK;
    if (bytes > to->bytes) {
        qn__gpu_drop(w, to);
        status = qn__gpu_more(w, "the lists of a batch", bytes + bytes / 2, to, err);
    }
    return status == QN_OK ? w->driver->write(w->gpu, to, 0, words, (size_t)bytes, err) : status;
}

static void put(uint32_t *to, uint32_t number, float value) {
    to[0] = number;
    memcpy(&to[1], &value, sizeof value);
}

static void pack_rows(const qn__batch *batch, uint32_t *words) {
    uint32_t *pairs = words + batch->items + 1, used = 0;
    for (uint32_t i = 0; i < batch->items; ++i) {
        const qn__list *list = list_at(batch, i);
        words[i] = used;
        for (uint64_t k = 0; k < list->count; ++k, ++used)
            put(pairs + 2 * (size_t)used, list->pair[k].at, list->pair[k].value);
    }
    words[batch->items] = used;
}

/* Returns the number of columns. column_of has zeros for all inputs, before and after. */
static uint32_t pack_columns(const qn__batch *batch, uint32_t *column_of, uint32_t *words) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < batch->items; ++i) {
        const qn__list *list = list_at(batch, i);
        for (uint64_t k = 0; k < list->count; ++k) {
            uint32_t *column = &column_of[list->pair[k].at];
            if (*column == 0) {
                words[2 * (size_t)count] = list->pair[k].at;
                words[2 * (size_t)count + 1] = 0;
                *column = ++count;
            }
            words[2 * (size_t)*column - 1]++;
        }
    }
    for (uint32_t c = 0, first = 0, own; c < count; ++c, first += own) {
        own = words[2 * (size_t)c + 1];
        words[2 * (size_t)c + 1] = first; /* becomes the end when its pairs are written */
    }
    uint32_t *pairs = words + 2 * (size_t)count;
    for (uint32_t i = 0; i < batch->items; ++i) {
        const qn__list *list = list_at(batch, i);
        for (uint64_t k = 0; k < list->count; ++k) {
            uint32_t *next = &words[2 * (size_t)column_of[list->pair[k].at] - 1];
            put(pairs + 2 * (size_t)(*next)++, i, list->pair[k].value);
        }
    }
    for (uint32_t c = 0; c < count; ++c)
        column_of[words[2 * (size_t)c]] = 0;
    return count;
}

static qn_status send_columns(qn__worker *w, const qn__batch *batch, uint64_t pairs,
                              qn_error *err) {
    qn__gpu_lists *own = &w->lists;
    if (!own->column_of)
        own->column_of = qn__alloc(w->program->layer[0].in, sizeof *own->column_of, err);
    if (!own->column_of || reserve(&own->words, &own->capacity, 4 * pairs, err) != QN_OK)
        return QN_MEMORY;
    own->count = pairs ? pack_columns(batch, own->column_of, own->words) : 0;
    return send(w, own->words, 2 * (own->count + pairs), &own->columns, err);
}

qn_status qn__gpu_send_lists(qn__worker *w, const qn__batch *batch, int training, qn_error *err) {
    qn__gpu_lists *own = &w->lists;
    uint64_t pairs = 0;
    for (uint32_t i = 0; i < batch->items; ++i)
        pairs += list_at(batch, i)->count;
    if (pairs > UINT32_MAX / 4) {
        qn__fail(err, QN_DEVICE, "%s: the texts of a batch have too many words", w->facts->name);
        return qn__remedy(err, QN_DEVICE, "take a smaller batch, or leave the device out");
    }
    qn_status status = reserve(&own->words, &own->capacity, batch->items + 1 + 2 * pairs, err);
    if (status == QN_OK) {
        pack_rows(batch, own->words);
        status = send(w, own->words, batch->items + 1 + 2 * pairs, &own->rows, err);
    }
    return status == QN_OK && training && w->program->frozen == 0
               ? send_columns(w, batch, pairs, err)
               : status;
}
