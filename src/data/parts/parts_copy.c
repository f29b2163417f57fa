#include "data/parts/parts_copy.h"
#include "base/memory.h"
#include "data/bytes/source.h"
#include <string.h>

enum { ARRAYS = QN__PART_ARRAYS, LINE = 64 };

static uint64_t rounded(uint64_t bytes) { return (bytes + LINE - 1) / LINE * LINE; }

static uint64_t rows_of(const qn_parts *parts, uint32_t part) {
    return parts->first[part + 1] - parts->first[part];
}

uint64_t qn__parts_copy_bytes(const qn_parts *parts, uint32_t part,
                              const qn__part_array array[ARRAYS]) {
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < ARRAYS; k++)
        bytes += qn__part_array_bytes(array[k], rows_of(parts, part));
    return bytes;
}

static void release(void *memory) {
    qn__contents_release(memory);
    qn__free(memory);
}

/* Space for all arrays: in memory, or in a file of the cache folder. */
static qn_status make_space(const qn_parts *parts, uint32_t part, const qn__part_array *array,
                            uint8_t **space, qn_data **out, qn_error *err) {
    qn_data *data = qn__alloc(1, sizeof *data, err);
    qn__contents *contents = data ? qn__alloc(1, sizeof *contents, err) : NULL;
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < ARRAYS; k++)
        bytes += rounded(qn__part_array_bytes(array[k], rows_of(parts, part)));
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
    data->context = parts->own->context;
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
    else if (array == 4)
        data->weights = (float *)(void *)at;
    else
        data->window = (qn__text_window *)(void *)at;
}

qn_status qn__parts_copy(qn__items *items, const qn_parts *parts, uint32_t part,
                         const qn__part_array array[QN__PART_ARRAYS], qn_data **out,
                         qn_error *err) {
    uint8_t *at = NULL;
    qn_status status = make_space(parts, part, array, &at, out, err);
    for (uint32_t k = 0; k < ARRAYS && status == QN_OK; k++) {
        const uint64_t size = qn__part_array_bytes(array[k], rows_of(parts, part));
        if (size == 0)
            continue;
        point(*out, k, at);
        status = qn__items_fetch(items, part, k, 0, size, at, err);
        at += rounded(size);
    }
    if (status == QN_OK)
        return QN_OK;
    qn_data_close(*out);
    *out = NULL;
    return status;
}
