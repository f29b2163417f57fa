#include "base/digest/sha256.h"

#include "base/digest/sha256_blocks.h"

#include <pthread.h>
#include <string.h>

static uint32_t rotate(uint32_t word, int bits) { return word >> bits | word << (32 - bits); }

/* Word t of the message schedule is in w[t mod 16]. It replaces word t - 16, which is used here for
 * the last time: 64 bytes of schedule instead of 256. */
static uint32_t schedule(uint32_t w[16], int t) {
    const uint32_t early = w[(t + 1) & 15], late = w[(t + 14) & 15];
    w[t & 15] += (rotate(early, 7) ^ rotate(early, 18) ^ early >> 3) + w[(t + 9) & 15] +
                 (rotate(late, 17) ^ rotate(late, 19) ^ late >> 10);
    return w[t & 15];
}

static void one_block(uint32_t state[8], const uint8_t *bytes) {
    uint32_t w[16];
    for (int t = 0; t < 16; t++)
        w[t] = (uint32_t)bytes[4 * t] << 24 | (uint32_t)bytes[4 * t + 1] << 16 |
               (uint32_t)bytes[4 * t + 2] << 8 | bytes[4 * t + 3];

    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (int t = 0; t < 64; t++) {
        const uint32_t word = t < 16 ? w[t] : schedule(w, t);
        const uint32_t first = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
                               ((e & f) ^ (~e & g)) + qn__sha256_constants[t] + word;
        const uint32_t second =
            (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g, g = f, f = e, e = d + first;
        d = c, c = b, b = a, a = first + second;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

void qn__sha256_blocks_portable(uint32_t state[8], const uint8_t *bytes, size_t count) {
    for (size_t i = 0; i < count; i++)
        one_block(state, bytes + 64 * i);
}

static pthread_once_t choose_once = PTHREAD_ONCE_INIT;
static qn__sha256_blocks *blocks;

static void choose(void) {
    blocks = qn__sha256_x86_here()   ? qn__sha256_blocks_x86
             : qn__sha256_arm_here() ? qn__sha256_blocks_arm
                                     : qn__sha256_blocks_portable;
}

void qn__sha256_begin(qn__sha256 *hash) {
    /* FIPS 180-4, 5.3.3. */
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    pthread_once(&choose_once, choose);
    memcpy(hash->state, start, sizeof start);
    hash->length = 0;
}

/* Fills the current block, processes whole blocks without copying them, and keeps the rest. */
void qn__sha256_add(qn__sha256 *hash, const void *bytes, size_t size) {
    const uint8_t *at = bytes;
    const size_t begun = hash->length % 64;
    if (size == 0)
        return;
    hash->length += size;
    if (begun > 0) {
        const size_t missing = 64 - begun;
        const size_t taken = size < missing ? size : missing;
        memcpy(hash->block + begun, at, taken);
        at += taken;
        size -= taken;
        if (taken < missing)
            return;
        blocks(hash->state, hash->block, 1);
    }
    if (size >= 64)
        blocks(hash->state, at, size / 64);
    memcpy(hash->block, at + size / 64 * 64, size % 64);
}

/* A one bit, zeros, and the length in bits as eight big-endian bytes that end a block. */
void qn__sha256_end(qn__sha256 *hash, uint8_t digest[32]) {
    const uint64_t bits = hash->length * 8;
    size_t used = hash->length % 64;
    hash->block[used++] = 0x80;
    if (used > 56) {
        memset(hash->block + used, 0, 64 - used);
        blocks(hash->state, hash->block, 1);
        used = 0;
    }
    memset(hash->block + used, 0, 56 - used);
    for (int i = 0; i < 8; i++)
        hash->block[56 + i] = (uint8_t)(bits >> (56 - 8 * i));
    blocks(hash->state, hash->block, 1);
    for (int i = 0; i < 32; i++)
        digest[i] = (uint8_t)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}

void qn__sha256_of(const void *bytes, size_t size, uint8_t digest[32]) {
    qn__sha256 hash;
    qn__sha256_begin(&hash);
    qn__sha256_add(&hash, bytes, size);
    qn__sha256_end(&hash, digest);
}

void qn__hex(const uint8_t digest[32], char text[65]) {
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < 32; i++) {
        text[2 * i] = digits[digest[i] >> 4];
        text[2 * i + 1] = digits[digest[i] & 15];
    }
    text[64] = 0;
}
