/* An unbalanced Feistel network over the smallest power of two that holds n, applied again while
 * the image is not below n ("cycle walking"; Black and Rogaway 2002). n is more than half of the
 * power of two (n >= 3), so that at most half of the walks are expected to need a second
 * application. */
#include "num/permutation.h"

#include "num/philox.h"

static uint32_t mix(uint32_t v, uint32_t k) {
    uint32_t h = v + k;
    h ^= h >> 16;
    h *= 0x7FEB352Du;
    h ^= h >> 15;
    h *= 0x846CA68Bu;
    h ^= h >> 16;
    return h;
}

void qn__permutation_begin(qn__permutation *p, uint64_t n, uint64_t seed, uint32_t purpose,
                           uint32_t epoch) {
    uint32_t bits = 2;
    while (bits < 64 && (n - 1) >> bits != 0)
        ++bits;
    p->n = n;
    p->low_bits = bits / 2;
    p->high_bits = bits - bits / 2;
    qn__words(seed, purpose, 0, epoch, 0, 0, p->key);
    qn__words(seed, purpose, 0, epoch, 0, 1, p->key + 4);
}

uint64_t qn__permutation_at(const qn__permutation *p, uint64_t position) {
    const uint32_t low_mask = (1u << p->low_bits) - 1u;
    const uint32_t high_mask = (1u << p->high_bits) - 1u;
    uint64_t x = position;
    do {
        uint32_t high = (uint32_t)(x >> p->low_bits), low = (uint32_t)x & low_mask;
        for (int round = 0; round < 8; round += 2) {
            high ^= mix(low, p->key[round]) & high_mask;
            low ^= mix(high, p->key[round + 1]) & low_mask;
        }
        x = (uint64_t)high << p->low_bits | low;
    } while (x >= p->n);
    return x;
}

/* One application to 16 positions, round by round, so that the compiler makes vectors of them. */
enum { LANES = 16 };

static void apply(const qn__permutation *p, uint32_t high[LANES], uint32_t low[LANES]) {
    const uint32_t low_mask = (1u << p->low_bits) - 1u;
    const uint32_t high_mask = (1u << p->high_bits) - 1u;
    for (int round = 0; round < 8; round += 2) {
        for (int i = 0; i < LANES; ++i)
            high[i] ^= mix(low[i], p->key[round]) & high_mask;
        for (int i = 0; i < LANES; ++i)
            low[i] ^= mix(high[i], p->key[round + 1]) & low_mask;
    }
}

void qn__permutation_run(const qn__permutation *p, uint64_t first, uint32_t count,
                         uint64_t *image) {
    for (uint32_t done = 0; done < count; done += LANES) {
        const uint32_t lanes = count - done < LANES ? count - done : LANES;
        uint32_t high[LANES], low[LANES];
        for (uint32_t i = 0; i < LANES; ++i) {
            high[i] = (uint32_t)((first + done + i) >> p->low_bits);
            low[i] = (uint32_t)(first + done + i) & ((1u << p->low_bits) - 1u);
        }
        apply(p, high, low);
        for (uint32_t i = 0; i < lanes; ++i) {
            const uint64_t x = (uint64_t)high[i] << p->low_bits | low[i];
            image[done + i] = x < p->n ? x : qn__permutation_at(p, x); /* the walk goes on */
        }
    }
}

/* The same rounds backwards, the last one first. */
static void apply_back(const qn__permutation *p, uint32_t high[LANES], uint32_t low[LANES]) {
    const uint32_t low_mask = (1u << p->low_bits) - 1u;
    const uint32_t high_mask = (1u << p->high_bits) - 1u;
    for (int round = 6; round >= 0; round -= 2) {
        for (int i = 0; i < LANES; ++i)
            low[i] ^= mix(high[i], p->key[round + 1]) & low_mask;
        for (int i = 0; i < LANES; ++i)
            high[i] ^= mix(low[i], p->key[round]) & high_mask;
    }
}

/* A walk backwards ends where the walk forwards began: at the first number below n. */
void qn__permutation_find(const qn__permutation *p, uint64_t first, uint32_t count,
                          uint64_t *position) {
    const uint32_t low_mask = (1u << p->low_bits) - 1u;
    for (uint32_t done = 0; done < count; done += LANES) {
        const uint32_t lanes = count - done < LANES ? count - done : LANES;
        uint32_t high[LANES], low[LANES], left = 0;
        for (uint32_t i = 0; i < LANES; ++i) {
            const uint64_t image = first + done + i;
            high[i] = (uint32_t)(image >> p->low_bits);
            low[i] = (uint32_t)image & low_mask;
        }
        /* All lanes go on together; those that have ended are not looked at any more. */
        for (uint32_t open = (1u << lanes) - 1u; open; open = left) {
            apply_back(p, high, low);
            left = 0;
            for (uint32_t i = 0; i < lanes; ++i) {
                const uint64_t x = (uint64_t)high[i] << p->low_bits | low[i];
                if (open >> i & 1 && x < p->n)
                    position[done + i] = x;
                else
                    left |= open & 1u << i;
            }
        }
    }
}
