/* The lanes of SipHash by AVX2: four in a register, in two registers, whose chains are independent
 * and hide each other's latency. By AVX-512, which has rotations: all eight in a register. */
#include "base/digest/siphash_lanes.h"

#if defined(__x86_64__)

int qn__siphash_avx2_here(void) { return __builtin_cpu_supports("avx2") != 0; }

__attribute__((target("avx2"))) void
qn__siphash_blocks_avx2(qn__lanes v[4], const unsigned char *bytes, size_t blocks) {
    qn__lanes_blocks(v, bytes, blocks);
}

typedef uint64_t all_lanes __attribute__((vector_size(QN__LANES_BYTES)));

int qn__siphash_avx512_here(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl");
}

__attribute__((target("avx512f,avx512vl"))) void
qn__siphash_blocks_avx512(qn__lanes v[4], const unsigned char *bytes, size_t blocks) {
    all_lanes a[4], m;
    memcpy(a, v, sizeof a);
    for (size_t i = 0; i < blocks; ++i, bytes += QN__LANES_BYTES) {
        memcpy(&m, bytes, sizeof m);
        a[3] ^= m;
        QN__LANES_ROUND(a[0], a[1], a[2], a[3]);
        QN__LANES_ROUND(a[0], a[1], a[2], a[3]);
        a[0] ^= m;
    }
    memcpy(v, a, sizeof a);
}

#else

int qn__siphash_avx512_here(void) { return 0; }

void qn__siphash_blocks_avx512(qn__lanes v[4], const unsigned char *bytes, size_t blocks) {
    qn__siphash_blocks_portable(v, bytes, blocks);
}

int qn__siphash_avx2_here(void) { return 0; }

void qn__siphash_blocks_avx2(qn__lanes v[4], const unsigned char *bytes, size_t blocks) {
    qn__siphash_blocks_portable(v, bytes, blocks);
}

#endif
