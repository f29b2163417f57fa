/* Arguments for tests of the functions of user kernels, and the chain of their results
 * (docs/exactness.md 21.15). Argument number i has the bits i * c modulo 2^32 or 2^64 with c below.
 * Where i is odd its exponent is made one of the 32 around that of 1. */
#ifndef QN_KERNELS_FUNCTION_SAMPLES_TEST_H
#define QN_KERNELS_FUNCTION_SAMPLES_TEST_H

#include "kernels/elementary_functions.h"

#include <stdint.h>
#include <string.h>

enum { QN__FIRST_SAMPLES = 64, QN__SAMPLES = 8192 }; /* of a short chain and a long one */

static inline float qn__f32_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline double qn__f64_of(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint32_t qn__bits_f32(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline uint64_t qn__bits_f64(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float qn__sample_f32(uint32_t i) {
    const uint32_t bits = i * 0x9e3779b1u;
    const uint32_t middle = (bits & 0x807fffffu) | (111u + (bits >> 23) % 32u) << 23;
    return qn__f32_of(i % 2 ? middle : bits);
}

static inline double qn__sample_f64(uint64_t i) {
    const uint64_t bits = i * 0x9e3779b97f4a7c15u;
    const uint64_t middle = (bits & 0x800fffffffffffffu) | (1007u + (bits >> 52) % 32u) << 52;
    return qn__f64_of(i % 2 ? middle : bits);
}

/* One more result of a chain, which begins with 0xcbf29ce484222325. */
static inline uint64_t qn__chain(uint64_t chain, uint64_t bits) {
    chain = (chain ^ bits) * 0x100000001b3u;
    return chain ^ chain >> 29;
}

#define QN__CHAIN_START 0xcbf29ce484222325u

/* ROW(name, binary32 short and long, binary64 short and long): the chains of the functions. */
#define QN__CHAINS_OF_ONE(ROW)                                                                     \
    ROW(sqrt, 0xf71e7333747f40ec, 0x8c2bc824dd6675dd, 0x82c4dc3fe673f171, 0x2a44f5879437e81d)      \
    ROW(cbrt, 0x42c24680e62beee7, 0x39bcfc4ebf13b4a1, 0x3acb2b8ef4837978, 0xd1617bcc4336377a)      \
    ROW(exp, 0xc20c2297fa5fe8f1, 0x3019fbf6aa7fa736, 0x938d5f5b4d092e3f, 0x9a2025c45d95017a)       \
    ROW(log, 0x99b139c87072e663, 0x0257e658ce2a7e61, 0xa4b48d08b9368f7e, 0x779700f47cb573cf)       \
    ROW(sin, 0x4102998a27403c33, 0x534079dc74eb9ab4, 0x2f9d27ab2e119911, 0xef8e8ae58e79cf28)       \
    ROW(cos, 0x8308884676f74a60, 0x734d9fbd10d3def1, 0xb65ec928fadd360a, 0xd60cfaf9ff7f779e)       \
    ROW(tan, 0x0aa3f816a0196070, 0x82f45a03550a3e71, 0x0b3664dd82bb87d9, 0x677acccedcd84aec)       \
    ROW(atan, 0x5768696b949ab290, 0x95dad91fba7fb6c3, 0x96a54bff2f56d185, 0x43896d819828977c)      \
    ROW(erf, 0x002b55525f076923, 0xfe92ea723d0540b0, 0xfcf307ea287fda4e, 0xdd80e99937b2314d)       \
    ROW(tanh, 0x11648997df9b2286, 0x99577e6f7271d079, 0xaa2a4bf6357d8edf, 0x310868da30699021)
#define QN__CHAINS_OF_TWO(ROW)                                                                     \
    ROW(pow, 0x58b615a0956e89f0, 0x162f5a7d0a5cc56a, 0x10a8432152420ddc, 0x0d63df5f5d712731)       \
    ROW(atan2, 0x0884391fdee6cc5a, 0xf8204520ec5f0ea2, 0x7372537b766f783d, 0xd0342a33a933cf61)

#endif
