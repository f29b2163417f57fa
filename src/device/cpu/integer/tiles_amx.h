/* The state of AMX's tiles, which a thread must set before it uses them. */
#ifndef QN_DEVICE_CPU_INTEGER_TILES_AMX_H
#define QN_DEVICE_CPU_INTEGER_TILES_AMX_H

#include "device/cpu/float/unroll.h"
#include <immintrin.h>
#include <stdint.h>

/* Palette 1: all eight tiles have sixteen rows of 64 bytes. */
static const uint8_t configuration[64] __attribute__((aligned(64))) = {
    [0] = 1,   [16] = 64, [18] = 64, [20] = 64, [22] = 64, [24] = 64,
    [26] = 64, [28] = 64, [30] = 64, [48] = 16, [49] = 16, [50] = 16,
    [51] = 16, [52] = 16, [53] = 16, [54] = 16, [55] = 16};

/* The thread may use tiles between these two calls only. Outside of them tiles are in their initial
 * state, so that a context switch need not save them. The compiler does not see that tile loads
 * read memory, hence the barriers. */
INLINE void begin_tiles(void) {
    __asm__ volatile("" ::: "memory");
    _tile_loadconfig(configuration);
}
INLINE void end_tiles(void) { _tile_release(); }

#endif
