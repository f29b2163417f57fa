/* Random numbers and memory for the tests of integer products. Include after cmocka.h. */
#ifndef QN_DEVICE_CPU_INTEGER_INTGEMM_SPACE_TEST_H
#define QN_DEVICE_CPU_INTEGER_INTGEMM_SPACE_TEST_H

#include "device/cpu/integer/intgemm.h"

#include <stdlib.h>
#include <string.h>

enum { P = QN__PANEL };

static uint64_t state;

static inline uint32_t draw(void) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33);
}

static inline void *buffer(size_t bytes) {
    void *at = NULL;
    bytes = (bytes + 63) / 64 * 64;
    if (posix_memalign(&at, 64, bytes ? bytes : 64) != 0)
        fail_msg("no memory");
    memset(at, 0x5a, bytes);
    return at;
}

#endif
