/* Encoding of handshakes and frames: little-endian numbers, unaligned. */
#ifndef QN_CLUSTER_TRANSPORT_WIRE_H
#define QN_CLUSTER_TRANSPORT_WIRE_H

#include <stddef.h>
#include <stdint.h>

/* The version of the protocol, with the memory layout of numbers, because sums and structs are sent
 * as they are in memory. Layout 0 is that of 64-bit little-endian machines. Ranks with different
 * layouts refuse each other. */
enum {
    QN__LAYOUT_SHIFT = 16,
    QN__LAYOUT_BIG_ENDIAN = 1 << QN__LAYOUT_SHIFT,
    QN__LAYOUT_32_BIT = 2 << QN__LAYOUT_SHIFT,
    QN__LAYOUT_PACKED = 4 << QN__LAYOUT_SHIFT, /* 64-bit numbers at multiples of 4 bytes */
    QN__LAYOUT_OWN = (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? QN__LAYOUT_BIG_ENDIAN : 0) |
                     (sizeof(void *) == 4 ? QN__LAYOUT_32_BIT : 0) |
                     (_Alignof(uint64_t) < 8 ? QN__LAYOUT_PACKED : 0),
    QN__WIRE_VERSION = 5 | QN__LAYOUT_OWN
};

static inline void qn__put_u32(unsigned char *at, uint32_t value) {
    for (int i = 0; i < 4; ++i)
        at[i] = (unsigned char)(value >> 8 * i);
}

static inline void qn__put_u64(unsigned char *at, uint64_t value) {
    for (int i = 0; i < 8; ++i)
        at[i] = (unsigned char)(value >> 8 * i);
}

static inline uint32_t qn__get_u32(const unsigned char *at) {
    uint32_t value = 0;
    for (int i = 0; i < 4; ++i)
        value |= (uint32_t)at[i] << 8 * i;
    return value;
}

static inline uint64_t qn__get_u64(const unsigned char *at) {
    uint64_t value = 0;
    for (int i = 0; i < 8; ++i)
        value |= (uint64_t)at[i] << 8 * i;
    return value;
}

/* Copies a text from the network: printable ASCII without spaces, '?' for other bytes. */
void qn__wire_text(char *to, size_t capacity, const char *from, size_t size);

/* Fills with random bytes. */
void qn__random_bytes(void *to, size_t size);

#endif
