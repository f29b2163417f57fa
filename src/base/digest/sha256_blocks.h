/* The inner loop of SHA-256: for any machine, and for each family of processors with instructions
 * for it. Internal to sha256.c and its test. */
#ifndef QN_BASE_DIGEST_SHA256_BLOCKS_H
#define QN_BASE_DIGEST_SHA256_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

/* The 64 round constants of FIPS 180-4, 4.2.2. */
extern const uint32_t qn__sha256_constants[64];

/* Each processes `count` blocks of 64 bytes into the state of eight words. The last two may be
 * called only if qn__sha256_x86_here or qn__sha256_arm_here is 1; on other machines they do
 * nothing. */
typedef void qn__sha256_blocks(uint32_t state[8], const uint8_t *bytes, size_t count);
qn__sha256_blocks qn__sha256_blocks_portable;
qn__sha256_blocks qn__sha256_blocks_x86;
qn__sha256_blocks qn__sha256_blocks_arm;

/* 1 when this processor has the instructions. */
int qn__sha256_x86_here(void);
int qn__sha256_arm_here(void);

#endif
