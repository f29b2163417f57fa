#include "base/binary/protobuf.h"

#include "base/binary/float_bits.h"
#include "base/binary/little_endian.h"
#include <stdlib.h>
#include <string.h>

/* Kinds of fields. */
enum { VARINT = 0, EIGHT_BYTES = 1, LENGTH = 2, FOUR_BYTES = 5 };

/* `size` more bytes, which the caller writes; NULL when memory is short. */
static uint8_t *extend(qn__protobuf *m, size_t size) {
    if (m->failed)
        return NULL;
    if (size > m->capacity - m->size) {
        size_t capacity = m->capacity ? m->capacity : 256;
        while (capacity - m->size < size && capacity <= SIZE_MAX / 2)
            capacity *= 2;
        uint8_t *data = capacity - m->size < size ? NULL : realloc(m->data, capacity);
        if (!data) {
            m->failed = 1;
            return NULL;
        }
        m->data = data;
        m->capacity = capacity;
    }
    m->size += size;
    return m->data + m->size - size;
}

/* Seven bits a byte, the lowest first; the highest bit says that more follow. */
static void add_varint(qn__protobuf *m, uint64_t value) {
    uint8_t bytes[10];
    size_t size = 0;
    for (; value > 0x7f; value >>= 7)
        bytes[size++] = (uint8_t)(value | 0x80);
    bytes[size++] = (uint8_t)value;
    uint8_t *to = extend(m, size);
    if (to)
        memcpy(to, bytes, size);
}

static void add_key(qn__protobuf *m, uint32_t field, int kind) {
    add_varint(m, (uint64_t)field << 3 | (uint64_t)kind);
}

/* The lowest `size` bytes of `bits`, the lowest first. */
static void add_fixed(qn__protobuf *m, uint64_t bits, size_t size) {
    uint8_t *to = extend(m, size);
    for (size_t i = 0; to && i < size; ++i)
        to[i] = (uint8_t)(bits >> (8 * i));
}

void qn__protobuf_number(qn__protobuf *m, uint32_t field, uint64_t value) {
    add_key(m, field, VARINT);
    add_varint(m, value);
}

void qn__protobuf_float(qn__protobuf *m, uint32_t field, float value) {
    add_key(m, field, FOUR_BYTES);
    add_fixed(m, qn__float_bits(value), sizeof value);
}

void qn__protobuf_double(qn__protobuf *m, uint32_t field, double value) {
    add_key(m, field, EIGHT_BYTES);
    add_fixed(m, qn__double_bits(value), sizeof value);
}

void qn__protobuf_bytes(qn__protobuf *m, uint32_t field, const void *bytes, size_t size) {
    add_key(m, field, LENGTH);
    add_varint(m, size);
    uint8_t *to = extend(m, size);
    if (to && size > 0)
        memcpy(to, bytes, size);
}

void qn__protobuf_text(qn__protobuf *m, uint32_t field, const char *text) {
    qn__protobuf_bytes(m, field, text, strlen(text));
}

void qn__protobuf_little(qn__protobuf *m, uint32_t field, const void *numbers, size_t count) {
    add_key(m, field, LENGTH);
    add_varint(m, 4 * (uint64_t)count);
    uint8_t *to = extend(m, 4 * count);
    if (to && count > 0)
        qn__copy_little(to, numbers, count);
}

void qn__protobuf_message(qn__protobuf *m, uint32_t field, qn__protobuf *inner) {
    m->failed |= inner->failed;
    qn__protobuf_bytes(m, field, inner->data, inner->size);
    qn__protobuf_release(inner);
}

void qn__protobuf_release(qn__protobuf *m) {
    free(m->data);
    *m = (qn__protobuf){0};
}
