/* SHA-256 (FIPS 180-4), with the processor's own instructions where it has them. */
#ifndef QN_BASE_DIGEST_SHA256_H
#define QN_BASE_DIGEST_SHA256_H

#include <stddef.h>
#include <stdint.h>

typedef struct qn__sha256 {
    uint32_t state[8];
    uint64_t length; /* bytes so far */
    uint8_t block[64];
} qn__sha256;

void qn__sha256_begin(qn__sha256 *hash);
void qn__sha256_add(qn__sha256 *hash, const void *bytes, size_t size);
void qn__sha256_end(qn__sha256 *hash, uint8_t digest[32]);
/* One call for all. */
void qn__sha256_of(const void *bytes, size_t size, uint8_t digest[32]);
/* 64 lower-case hexadecimal digits and a NUL. */
void qn__hex(const uint8_t digest[32], char text[65]);

#endif
