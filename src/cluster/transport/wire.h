/* What handshakes and frames are made of. Numbers travel little-endian, at any address. */
#ifndef QN_CLUSTER_TRANSPORT_WIRE_H
#define QN_CLUSTER_TRANSPORT_WIRE_H

#include <stddef.h>
#include <stdint.h>

enum { QN__WIRE_VERSION = 2 /* of all that ranks say to each other */ };

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

/* A text of a stranger into a field of ours: printable ASCII without spaces, '?' for the rest. */
void qn__card_text(char *to, size_t room, const char *from, size_t size);

/* So many unpredictable bytes. */
void qn__random_bytes(void *to, size_t size);

#endif
