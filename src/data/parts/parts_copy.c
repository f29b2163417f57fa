#include "data/parts/parts_copy.h"
#include "base/memory.h"
#include "data/bytes/source.h"
#include <string.h>

/* Requests that are open at a time. */
enum { OPEN = 4, ARRAYS = QN__PART_ARRAYS, LINE = 64 };

static uint64_t rounded(uint64_t bytes) { return (bytes + LINE - 1) / LINE * LINE; }

static uint64_t rows_of(const qn_parts *parts, uint32_t part) {
    return parts->first[part + 1] - parts->first[part];
}

uint64_t qn__parts_copy_bytes(const qn_parts *parts, uint32_t part, uint64_t bytes) {
    return rows_of(parts, part) * bytes;
}

typedef struct copying {
    qn__items *items;
    uint32_t part;
    qn__item_request *request[OPEN];
    uint8_t *to[OPEN];
    uint32_t bytes[OPEN];
} copying;

/* Takes what was asked for in place i. */
static qn_status take(copying *c, uint32_t i, qn_error *err) {
    const uint8_t *bytes;
    if (!c->request[i])
        return QN_OK;
    const qn_status status = qn__items_wait(c->items, c->request[i], &bytes, err);
    if (status == QN_OK)
        memcpy(c->to[i], bytes, c->bytes[i]);
    qn__items_drop(c->items, c->request[i]);
    c->request[i] = NULL;
    return status;
}

/* Gets one array, in requests as large as they may be. */
static qn_status fetch(copying *c, uint32_t array, uint64_t size, uint8_t *to, qn_error *err) {
    qn_status status = QN_OK;
    uint32_t next = 0;
    for (uint64_t at = 0; at < size && status == QN_OK; next = (next + 1) % OPEN) {
        const uint64_t left = size - at;
        const uint32_t bytes = left < QN__ANSWER_MOST ? (uint32_t)left : QN__ANSWER_MOST;
        const qn__item_piece piece = {array, bytes, at};
        status = take(c, next, err);
        if (status != QN_OK)
            break;
        c->to[next] = to + at;
        c->bytes[next] = bytes;
        c->request[next] = qn__items_ask(c->items, c->part, &piece, 1, err);
        status = c->request[next] ? QN_OK : QN_MEMORY;
        at += bytes;
    }
    for (uint32_t i = 0; i < OPEN; i++) {
        if (status == QN_OK)
            status = take(c, i, err);
        qn__items_drop(c->items, c->request[i]);
        c->request[i] = NULL;
    }
    return status;
}

static void release(void *memory) {
    qn__contents_release(memory);
    qn__free(memory);
}

/* Space for all arrays: in memory, or in a file of the cache folder. */
static qn_status make_space(const qn_parts *parts, uint32_t part, const uint64_t *stride,
                            uint8_t **space, qn_data **out, qn_error *err) {
    qn_data *data = qn__alloc(1, sizeof *data, err);
    qn__contents *contents = data ? qn__alloc(1, sizeof *contents, err) : NULL;
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < ARRAYS; k++)
        bytes += rounded(rows_of(parts, part) * stride[k]);
    const qn_status status =
        contents ? qn__contents_make(bytes, parts->name[part], contents, err) : QN_MEMORY;
    if (status != QN_OK) {
        qn__free(contents);
        qn__free(data);
        return status;
    }
    *space = (uint8_t *)(uintptr_t)contents->data;
    data->type = parts->own->type;
    data->features = parts->own->features;
    data->items = rows_of(parts, part);
    data->memory = contents;
    data->release = release;
    data->mapped = 1; /* all arrays belong to `contents` */
    *out = data;
    if (!parts->own->several)
        return QN_OK;
    data->several = qn__alloc(1, sizeof *data->several, err);
    if (!data->several)
        return QN_MEMORY;
    *data->several = *parts->own->several;
    data->several->mapped = 1;
    return QN_OK;
}

static void point(qn_data *data, uint32_t array, uint8_t *at) {
    if (array == 0)
        data->values = at;
    else if (array == 1)
        data->several->target = at;
    else if (array == 2)
        data->labels = (int32_t *)(void *)at;
    else if (array == 3)
        data->targets = (float *)(void *)at;
    else
        data->weights = (float *)(void *)at;
}

qn_status qn__parts_copy(qn__items *items, const qn_parts *parts, uint32_t part,
                         const uint64_t stride[QN__PART_ARRAYS], qn_data **out, qn_error *err) {
    copying c = {.items = items, .part = part};
    uint8_t *at = NULL;
    qn_status status = make_space(parts, part, stride, &at, out, err);
    for (uint32_t k = 0; k < ARRAYS && status == QN_OK; k++) {
        const uint64_t size = rows_of(parts, part) * stride[k];
        if (size == 0)
            continue;
        point(*out, k, at);
        status = fetch(&c, k, size, at, err);
        at += rounded(size);
    }
    if (status == QN_OK)
        return QN_OK;
    qn_data_close(*out);
    *out = NULL;
    return status;
}
