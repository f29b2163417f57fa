#include "base/digest/hmac.h"
#include "base/digest/sha256.h"
#include <string.h>

enum { BLOCK = 64 };

void qn__hmac_sha256(const void *key, size_t key_size, const void *message, size_t size,
                     uint8_t code[32]) {
    uint8_t pad[BLOCK] = {0}, inner[32];
    qn__sha256 hash;
    if (key_size > BLOCK)
        qn__sha256_of(key, key_size, pad);
    else if (key_size > 0)
        memcpy(pad, key, key_size);
    for (int i = 0; i < BLOCK; i++)
        pad[i] ^= 0x36;
    qn__sha256_begin(&hash);
    qn__sha256_add(&hash, pad, BLOCK);
    qn__sha256_add(&hash, message, size);
    qn__sha256_end(&hash, inner);
    for (int i = 0; i < BLOCK; i++)
        pad[i] ^= 0x36 ^ 0x5C;
    qn__sha256_begin(&hash);
    qn__sha256_add(&hash, pad, BLOCK);
    qn__sha256_add(&hash, inner, sizeof inner);
    qn__sha256_end(&hash, code);
    explicit_bzero(pad, sizeof pad);
    explicit_bzero(inner, sizeof inner);
    explicit_bzero(&hash, sizeof hash);
}
