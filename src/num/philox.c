#include "num/philox.h"

void qn__philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; ++round) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c0;
        const uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

void qn__words(uint64_t seed, uint32_t purpose, uint32_t layer, uint32_t epoch, uint64_t item,
               uint32_t quad, uint32_t out[4]) {
    const uint32_t counter[4] = {quad + (layer >> 8 << 30), (uint32_t)item, epoch,
                                 (purpose << 24) + ((layer & 0xFF) << 16) + (uint32_t)(item >> 32)};
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    qn__philox(counter, key, out);
}
