/* Messages in the wire format of protocol buffers: what ONNX files and TensorBoard's events are. A
 * field is a number, a kind and a value; a message inside a message is its bytes.
 * (protobuf.dev/programming-guides/encoding) */
#ifndef QN_BASE_BINARY_PROTOBUF_H
#define QN_BASE_BINARY_PROTOBUF_H

#include <stddef.h>
#include <stdint.h>

/* Growing bytes. Start with {0}. `failed` becomes 1 when memory is short, and later additions do
 * nothing. */
typedef struct qn__protobuf {
    uint8_t *data;
    size_t size, capacity;
    int failed;
} qn__protobuf;

/* A whole number; a negative int64 is its two's complement. */
void qn__protobuf_number(qn__protobuf *message, uint32_t field, uint64_t value);
void qn__protobuf_float(qn__protobuf *message, uint32_t field, float value);
void qn__protobuf_double(qn__protobuf *message, uint32_t field, double value);
void qn__protobuf_bytes(qn__protobuf *message, uint32_t field, const void *bytes, size_t size);
void qn__protobuf_text(qn__protobuf *message, uint32_t field, const char *text);

/* Numbers of 4 bytes in memory, as little-endian bytes. */
void qn__protobuf_little(qn__protobuf *message, uint32_t field, const void *numbers, size_t count);

/* Adds `inner` as a field and releases it. */
void qn__protobuf_message(qn__protobuf *message, uint32_t field, qn__protobuf *inner);

void qn__protobuf_release(qn__protobuf *message);

#endif
