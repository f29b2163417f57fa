/* SHA-256 by the cryptographic extension of 64-bit ARMv8 (Arm ARM, SHA256H and its family): two
 * instructions do four rounds, two more make four words of the schedule. */
#include "base/digest/sha256_blocks.h"

#if defined(__aarch64__) && defined(__linux__) && defined(__AARCH64EL__)

#if defined(__clang__) && !defined(__ARM_FEATURE_SHA2)
#define __ARM_FEATURE_SHA2 1 /* clang 14 declares the intrinsics only where this is defined */
#endif
#include <arm_neon.h>
#include <sys/auxv.h>

#if defined(__clang__)
#define QN_WITH_SHA2 __attribute__((target("sha2")))
#else
#define QN_WITH_SHA2 __attribute__((target("+crypto")))
#endif

/* Bit 6 of AT_HWCAP is HWCAP_SHA2 of Linux on this architecture. */
int qn__sha256_arm_here(void) { return (int)(getauxval(AT_HWCAP) >> 6 & 1); }

QN_WITH_SHA2 void qn__sha256_blocks_arm(uint32_t state[8], const uint8_t *bytes, size_t count) {
    uint32x4_t abcd = vld1q_u32(state), efgh = vld1q_u32(state + 4);
    for (size_t n = 0; n < count; n++, bytes += 64) {
        const uint32x4_t abcd_before = abcd, efgh_before = efgh;
        uint32x4_t w[4];
        for (int i = 0; i < 4; i++)
            w[i] = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(bytes + 16 * i)));

        for (int i = 0; i < 16; i++) {
            const uint32x4_t now = w[i & 3];
            const uint32x4_t sum = vaddq_u32(now, vld1q_u32(qn__sha256_constants + 4 * i));
            const uint32x4_t abcd_then = abcd;
            abcd = vsha256hq_u32(abcd, efgh, sum);
            efgh = vsha256h2q_u32(efgh, abcd_then, sum);
            if (i < 12)
                w[i & 3] = vsha256su1q_u32(vsha256su0q_u32(now, w[(i + 1) & 3]), w[(i + 2) & 3],
                                           w[(i + 3) & 3]);
        }
        abcd = vaddq_u32(abcd, abcd_before);
        efgh = vaddq_u32(efgh, efgh_before);
    }
    vst1q_u32(state, abcd);
    vst1q_u32(state + 4, efgh);
}

#else

int qn__sha256_arm_here(void) { return 0; }

void qn__sha256_blocks_arm(uint32_t state[8], const uint8_t *bytes, size_t count) {
    (void)state, (void)bytes, (void)count;
}

#endif
