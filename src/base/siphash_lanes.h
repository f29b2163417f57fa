/* The lanes of qn__siphash_lanes, as vectors that the compiler maps to what the processor has. Text
 * for siphash.c and siphash_x86.c, each of which compiles it for its own instructions. */
#ifndef QN_BASE_SIPHASH_LANES_H
#define QN_BASE_SIPHASH_LANES_H

#include "base/siphash.h"

#include <string.h>

enum { QN__LANES = 4, QN__LANES_BYTES = 8 * QN__LANES };

typedef uint64_t qn__lanes __attribute__((vector_size(QN__LANES_BYTES)));

/* Takes `blocks` times 32 bytes into the state v[0 .. 3]. */
typedef void qn__siphash_blocks(qn__lanes v[4], const unsigned char *bytes, size_t blocks);
qn__siphash_blocks qn__siphash_blocks_portable;
/* Only where qn__siphash_avx2_here is 1. */
qn__siphash_blocks qn__siphash_blocks_avx2;
int qn__siphash_avx2_here(void);

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
static inline __attribute__((always_inline)) void
qn__lanes_blocks(qn__lanes v[4], const unsigned char *bytes, size_t blocks) {
    qn__lanes v0 = v[0], v1 = v[1], v2 = v[2], v3 = v[3];
    for (size_t i = 0; i < blocks; ++i) {
        qn__lanes m;
        memcpy(&m, bytes + i * QN__LANES_BYTES, sizeof m);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        for (int lane = 0; lane < QN__LANES; ++lane)
            m[lane] = __builtin_bswap64(m[lane]);
#endif
        v3 ^= m;
        QN__LANES_ROUND(v0, v1, v2, v3);
        QN__LANES_ROUND(v0, v1, v2, v3);
        v0 ^= m;
    }
    v[0] = v0;
    v[1] = v1;
    v[2] = v2;
    v[3] = v3;
}

#endif
