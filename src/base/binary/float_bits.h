/* The bits of floats and doubles, and back. */
#ifndef QN_BASE_BINARY_FLOAT_BITS_H
#define QN_BASE_BINARY_FLOAT_BITS_H

#include <stdint.h>
#include <string.h>

static inline uint32_t qn__float_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline uint64_t qn__double_bits(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float qn__float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline double qn__double_of_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif
