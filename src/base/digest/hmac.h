/* HMAC with SHA-256 (RFC 2104). */
#ifndef QN_BASE_DIGEST_HMAC_H
#define QN_BASE_DIGEST_HMAC_H

#include <stddef.h>
#include <stdint.h>

/* The code of a message under a key. What was derived from the key is wiped from the stack. `code`
 * may be `key`. */
void qn__hmac_sha256(const void *key, size_t key_size, const void *message, size_t size,
                     uint8_t code[32]);

#endif
