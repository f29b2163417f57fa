/* Numbers as they travel: little-endian, at any address. */
#ifndef QN_CLUSTER_WIRE_H
#define QN_CLUSTER_WIRE_H

#include <stdint.h>

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

#endif
