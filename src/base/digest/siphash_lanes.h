/* The lanes of qn__siphash_lanes, as vectors that the compiler maps to the processor's registers.
 * siphash.c and siphash_x86.c include it; each compiles it for its own instructions. */
#ifndef QN_BASE_DIGEST_SIPHASH_LANES_H
#define QN_BASE_DIGEST_SIPHASH_LANES_H

#include "base/digest/siphash.h"

#include <string.h>

enum { QN__LANES = 8, QN__LANES_BYTES = 8 * QN__LANES };

/* Half of the lanes: one AVX2 register. */
typedef uint64_t qn__half_lanes __attribute__((vector_size(QN__LANES_BYTES / 2)));

/* One word of the state of all lanes. */
typedef union qn__lanes {
    qn__half_lanes half[2];
    uint64_t lane[QN__LANES];
} qn__lanes;

/* Adds `blocks` times 64 bytes to the state v[0 .. 3]. */
typedef void qn__siphash_blocks(qn__lanes v[4], const unsigned char *bytes, size_t blocks);
qn__siphash_blocks qn__siphash_blocks_portable;
/* Call only if the function of the same name is 1. */
qn__siphash_blocks qn__siphash_blocks_avx2, qn__siphash_blocks_avx512;
int qn__siphash_avx2_here(void);
int qn__siphash_avx512_here(void);

#define QN__LANES_LEFT(x, bits) ((x) << (bits) | (x) >> (64 - (bits)))

/* One SipRound of all lanes. */
#define QN__LANES_ROUND(v0, v1, v2, v3)                                                            \
    do {                                                                                           \
        v0 += v1;                                                                                  \
        v2 += v3;                                                                                  \
        v1 = QN__LANES_LEFT(v1, 13) ^ v0;                                                          \
        v3 = QN__LANES_LEFT(v3, 16) ^ v2;                                                          \
        v0 = QN__LANES_LEFT(v0, 32);                                                               \
        v2 += v1;                                                                                  \
        v0 += v3;                                                                                  \
        v1 = QN__LANES_LEFT(v1, 17) ^ v2;                                                          \
        v3 = QN__LANES_LEFT(v3, 21) ^ v0;                                                          \
        v2 = QN__LANES_LEFT(v2, 32);                                                               \
    } while (0)

/* Words of the text are little-endian. */
static inline __attribute__((always_inline)) void qn__lanes_words(qn__half_lanes *m,
                                                                  const unsigned char *bytes) {
    memcpy(m, bytes, sizeof *m);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    for (int lane = 0; lane < QN__LANES / 2; ++lane)
        (*m)[lane] = __builtin_bswap64((*m)[lane]);
#endif
}

/* The two halves are independent chains, each of which hides the other's latency. */
static inline __attribute__((always_inline)) void
qn__lanes_blocks(qn__lanes v[4], const unsigned char *bytes, size_t blocks) {
    qn__half_lanes a0 = v[0].half[0], a1 = v[1].half[0], a2 = v[2].half[0], a3 = v[3].half[0];
    qn__half_lanes b0 = v[0].half[1], b1 = v[1].half[1], b2 = v[2].half[1], b3 = v[3].half[1];
    for (size_t i = 0; i < blocks; ++i, bytes += QN__LANES_BYTES) {
        qn__half_lanes ma, mb;
        qn__lanes_words(&ma, bytes);
        qn__lanes_words(&mb, bytes + QN__LANES_BYTES / 2);
        a3 ^= ma;
        b3 ^= mb;
        QN__LANES_ROUND(a0, a1, a2, a3);
        QN__LANES_ROUND(b0, b1, b2, b3);
        QN__LANES_ROUND(a0, a1, a2, a3);
        QN__LANES_ROUND(b0, b1, b2, b3);
        a0 ^= ma;
        b0 ^= mb;
    }
    v[0].half[0] = a0, v[0].half[1] = b0;
    v[1].half[0] = a1, v[1].half[1] = b1;
    v[2].half[0] = a2, v[2].half[1] = b2;
    v[3].half[0] = a3, v[3].half[1] = b3;
}

#endif
