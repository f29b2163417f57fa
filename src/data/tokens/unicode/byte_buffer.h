/* Bytes that grow, for one thread: a text on its way. Start with {0}. */
#ifndef QN_DATA_TOKENS_UNICODE_BYTE_BUFFER_H
#define QN_DATA_TOKENS_UNICODE_BYTE_BUFFER_H

#include "base/error.h"
#include <stdint.h>

typedef struct qn__byte_buffer {
    uint8_t *bytes; /* for free() */
    size_t size, capacity;
} qn__byte_buffer;

/* Makes place for `more` bytes. Fails with QN_MEMORY. */
qn_status qn__byte_buffer_reserve(qn__byte_buffer *buffer, size_t more, qn_error *err);
qn_status qn__byte_buffer_add(qn__byte_buffer *buffer, const void *bytes, size_t size,
                              qn_error *err);
/* Adds a character of 25.51. */
qn_status qn__byte_buffer_character(qn__byte_buffer *buffer, uint32_t character, qn_error *err);
void qn__byte_buffer_release(qn__byte_buffer *buffer);

#endif
