#include "base/digest/siphash_lanes.h"

#include <stdatomic.h>

static uint64_t word_at(const unsigned char *bytes) {
    uint64_t word = 0;
    for (int i = 0; i < 8; ++i)
        word |= (uint64_t)bytes[i] << 8 * i;
    return word;
}

static void put_word(unsigned char *bytes, uint64_t word) {
    for (int i = 0; i < 8; ++i)
        bytes[i] = (unsigned char)(word >> 8 * i);
}

qn__siphash_key qn__siphash_key_of(const unsigned char bytes[16]) {
    return (qn__siphash_key){{word_at(bytes), word_at(bytes + 8)}};
}

static const uint64_t START[4] = {UINT64_C(0x736f6d6570736575), UINT64_C(0x646f72616e646f6d),
                                  UINT64_C(0x6c7967656e657261), UINT64_C(0x7465646279746573)};

static void take(uint64_t v[4], uint64_t m) {
    v[3] ^= m;
    QN__LANES_ROUND(v[0], v[1], v[2], v[3]);
    QN__LANES_ROUND(v[0], v[1], v[2], v[3]);
    v[0] ^= m;
}

static uint64_t finish(uint64_t v[4]) {
    v[2] ^= 0xff;
    for (int i = 0; i < 4; ++i)
        QN__LANES_ROUND(v[0], v[1], v[2], v[3]);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t qn__siphash(const qn__siphash_key *key, const void *bytes, size_t size) {
    const unsigned char *at = bytes;
    uint64_t v[4], last = (uint64_t)size << 56;
    for (int i = 0; i < 4; ++i)
        v[i] = START[i] ^ key->word[i & 1];
    for (size_t left = size; left >= 8; left -= 8, at += 8)
        take(v, word_at(at));
    for (size_t i = 0; i < size % 8; ++i)
        last |= (uint64_t)at[i] << 8 * i;
    take(v, last);
    return finish(v);
}

/* Determined at the first call; every thread finds the same. */
static qn__siphash_blocks *fastest(void) {
    static qn__siphash_blocks *const all[] = {qn__siphash_blocks_portable, qn__siphash_blocks_avx2,
                                              qn__siphash_blocks_avx512};
    static atomic_int known; /* 0: not yet determined; otherwise 1 + the place in `all` */
    int which = atomic_load_explicit(&known, memory_order_relaxed);
    if (which == 0) {
        which = qn__siphash_avx512_here() ? 3 : 1 + qn__siphash_avx2_here();
        atomic_store_explicit(&known, which, memory_order_relaxed);
    }
    return all[which - 1];
}

uint64_t qn__siphash_lanes(const qn__siphash_key *key, const void *bytes, size_t size) {
    qn__siphash_blocks *const blocks = fastest();
    const size_t whole = size / QN__LANES_BYTES, rest = size % QN__LANES_BYTES;
    unsigned char padded[QN__LANES_BYTES] = {0}, results[QN__LANES_BYTES + 8];
    qn__lanes v[4];
    for (uint64_t lane = 0; lane < QN__LANES; ++lane)
        for (int i = 0; i < 4; ++i)
            v[i].lane[lane] = START[i] ^ key->word[i & 1] ^ (i & 1 ? lane : 0);
    blocks(v, bytes, whole);
    if (rest > 0) {
        memcpy(padded, (const unsigned char *)bytes + whole * QN__LANES_BYTES, rest);
        blocks(v, padded, 1);
    }
    for (int lane = 0; lane < QN__LANES; ++lane) {
        uint64_t state[4] = {v[0].lane[lane], v[1].lane[lane], v[2].lane[lane], v[3].lane[lane]};
        put_word(results + 8 * lane, finish(state));
    }
    put_word(results + QN__LANES_BYTES, size);
    return qn__siphash(key, results, sizeof results);
}
