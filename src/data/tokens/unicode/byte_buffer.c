#include "data/tokens/unicode/byte_buffer.h"

#include "base/text/character.h"
#include <stdlib.h>
#include <string.h>

qn_status qn__byte_buffer_reserve(qn__byte_buffer *buffer, size_t more, qn_error *err) {
    if (more <= buffer->capacity - buffer->size)
        return QN_OK;
    const size_t capacity = 2 * buffer->capacity + more + 256;
    uint8_t *bytes = realloc(buffer->bytes, capacity);
    if (!bytes)
        return qn__fail_memory(err, capacity, 1);
    buffer->bytes = bytes;
    buffer->capacity = capacity;
    return QN_OK;
}

qn_status qn__byte_buffer_add(qn__byte_buffer *buffer, const void *bytes, size_t size,
                              qn_error *err) {
    if (!size)
        return QN_OK;
    const qn_status status = qn__byte_buffer_reserve(buffer, size, err);
    if (status != QN_OK)
        return status;
    memcpy(buffer->bytes + buffer->size, bytes, size);
    buffer->size += size;
    return QN_OK;
}

qn_status qn__byte_buffer_character(qn__byte_buffer *buffer, uint32_t character, qn_error *err) {
    const qn_status status = qn__byte_buffer_reserve(buffer, 4, err);
    if (status == QN_OK)
        buffer->size += qn__character_write(character, (char *)buffer->bytes + buffer->size);
    return status;
}

void qn__byte_buffer_release(qn__byte_buffer *buffer) {
    free(buffer->bytes);
    *buffer = (qn__byte_buffer){0};
}
