/* The lanes of SipHash by AVX2 and AVX-512: four in a register, in two registers, whose chains are
 * independent and hide each other's latency. AVX-512 has rotations. */
#include "base/digest/siphash_lanes.h"

#if defined(__x86_64__)

int qn__siphash_avx2_here(void) { return __builtin_cpu_supports("avx2") != 0; }

__attribute__((target("avx2"))) void
qn__siphash_blocks_avx2(qn__lanes v[4], const unsigned char *bytes, size_t blocks) {
    qn__lanes_blocks(v, bytes, blocks);
}

int qn__siphash_avx512_here(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl");
}

__attribute__((target("avx512f,avx512vl"))) void
qn__siphash_blocks_avx512(qn__lanes v[4], const unsigned char *bytes, size_t blocks) {
    qn__lanes_blocks(v, bytes, blocks);
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
