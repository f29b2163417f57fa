#include "data/tokens/models/token_ids.h"

#include <stdlib.h>

qn_status qn__token_ids_reserve(qn__token_ids *ids, size_t more, qn_error *err) {
    if (more <= ids->capacity - ids->count)
        return QN_OK;
    size_t capacity = ids->capacity + ids->capacity / 2;
    if (more > SIZE_MAX / sizeof(uint32_t) - ids->count)
        return qn__fail_memory(err, more, sizeof(uint32_t));
    if (capacity < ids->count + more)
        capacity = ids->count + more;
    uint32_t *number = realloc(ids->number, capacity * sizeof *number);
    if (!number)
        return qn__fail_memory(err, capacity, sizeof *number);
    ids->number = number;
    ids->capacity = capacity;
    return QN_OK;
}

void qn__token_ids_release(qn__token_ids *ids) {
    free(ids->number);
    *ids = (qn__token_ids){0};
}

void qn__token_ids_put(const qn__token_ids *ids, qn_data_type type, void *values, uint64_t item,
                       uint32_t features) {
    const size_t first = (size_t)item * features;
    uint16_t *narrow = values;
    uint32_t *wide = values;
    for (uint32_t k = 0; k < features; k++)
        if (type == QN_TOKENS16)
            narrow[first + k] = k < ids->count ? (uint16_t)ids->number[k] : UINT16_MAX;
        else
            wide[first + k] = k < ids->count ? ids->number[k] : UINT32_MAX;
}
