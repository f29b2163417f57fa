#include "base/digest/crc32.h"

#ifdef QN_HAVE_ZLIB

#include <zlib.h>

/* zlib takes 32 bits of a size. */
uint32_t qn__crc32(uint32_t before, const void *bytes, size_t size) {
    uLong sum = before;
    for (const uint8_t *at = bytes; size > 0;) {
        const uInt now = size < UINT32_MAX ? (uInt)size : UINT32_MAX;
        sum = crc32(sum, at, now);
        at += now;
        size -= now;
    }
    return (uint32_t)sum;
}

#else

/* The remainders of four bits: two look-ups a byte, and no table that has to be made first. */
static const uint32_t remainders[16] = {
    0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
    0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};

uint32_t qn__crc32(uint32_t before, const void *bytes, size_t size) {
    const uint8_t *at = bytes;
    uint32_t sum = ~before;
    for (size_t i = 0; i < size; i++) {
        sum ^= at[i];
        sum = sum >> 4 ^ remainders[sum & 15];
        sum = sum >> 4 ^ remainders[sum & 15];
    }
    return ~sum;
}

#endif
