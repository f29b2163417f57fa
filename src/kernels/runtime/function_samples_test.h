/* Arguments for tests of the functions of user kernels, and the chain of their results
 * (docs/exactness.md 21.15). Argument number i has the bits i * c modulo 2^32 or 2^64 with c below.
 * Where i is odd its exponent is made one of the 16 around that of 1. */
#ifndef QN_KERNELS_RUNTIME_FUNCTION_SAMPLES_TEST_H
#define QN_KERNELS_RUNTIME_FUNCTION_SAMPLES_TEST_H

#include "kernels/runtime/elementary_functions.h"

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
    const uint32_t middle = (bits & 0x807fffffu) | (119u + (bits >> 23) % 16u) << 23;
    return qn__f32_of(i % 2 ? middle : bits);
}

static inline double qn__sample_f64(uint64_t i) {
    const uint64_t bits = i * 0x9e3779b97f4a7c15u;
    const uint64_t middle = (bits & 0x800fffffffffffffu) | (1015u + (bits >> 52) % 16u) << 52;
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
    ROW(sqrt, 0x87bcede37ffd3d99, 0xb728d72c99f45429, 0x59f8a56b2704af01, 0xf93384c44f62a542)      \
    ROW(cbrt, 0x29e548508531a368, 0xed5a38154377c7e9, 0x9d34878be6a1d82f, 0x54dbb28e5ab77bac)      \
    ROW(exp, 0xa7416720e2470c8a, 0x42b5cca58b04e6e4, 0x01e40fa59a369d1f, 0x9321028fd48fe04d)       \
    ROW(log, 0x59aeae00b242e38a, 0x41c3c9f780803984, 0x1e2d76b6bf986b4a, 0x712d4f0dd697374c)       \
    ROW(sin, 0xa8d661232077c226, 0x4f0f6ace6dd4a47b, 0x910347f9c92c5aee, 0xa6b88c4f10c354c2)       \
    ROW(cos, 0x3f8c7e8f11140d90, 0x49fcfdd1bf94f3c0, 0xa5b9238c28518df6, 0xf91d01de108ac0da)       \
    ROW(tan, 0xc6aa9c35e47a2c64, 0xbf3899c093e6c726, 0xba33a564149dc89f, 0x966f46a8f0245370)       \
    ROW(atan, 0xa66d86c58ea0cc8b, 0x445b1d08b31ba191, 0x33e7f23b92accacd, 0x9f4c0b6c412c3a2a)      \
    ROW(erf, 0x44b82e8ad8d258e6, 0x8c7587ab7c56ebb8, 0x6c391b1e134fc345, 0xb0bc8ae73896f8ed)       \
    ROW(erfc, 0x92ca896ec5804dbe, 0xd27de35bd43a352d, 0xc65f5500205d9144, 0xa71ff40c82064cb8)      \
    ROW(normcdf, 0x39f6ddb47e0ecc4f, 0xa38d946a0eefe0d9, 0x5239a7a648f02157, 0x2a4e014fa6c1232a)   \
    ROW(tanh, 0xc20f0ab5cf85e8b7, 0x7d4ef0f64cf6c480, 0xb09f2b57449b41de, 0x1a1ff5b79757b413)      \
    ROW(exp2, 0xed83c5d62fae18e3, 0x30fc2e44a75332fa, 0x1525a6f4745c369a, 0xd890e95873dca489)      \
    ROW(expm1, 0x668ccec42c848899, 0xed570bf22b0d7dd9, 0xc944289cd2d5e039, 0x91cd7c7725d35f0f)     \
    ROW(log2, 0x7c0b99f0fc6f1568, 0xf3e0f014b6a48560, 0x7a08e6aa2bf26325, 0xed072615d81f584d)      \
    ROW(log10, 0xb9e17913c9bc429d, 0xb3f3818f38943630, 0x8725a48f9c57c969, 0xba0827caa6bf8eaa)     \
    ROW(log1p, 0xe98459668fe62cb3, 0xde46b832401c0089, 0x2ecacb3b267417df, 0xc04063f7095001ec)     \
    ROW(asin, 0xcd776e7c1e22bf51, 0xbdd010d95df006e8, 0x7a550715d0aeddc0, 0x6ea46d7174899670)      \
    ROW(acos, 0x37a6e89eae3ce48f, 0x4d542f37ba88b63a, 0xcbd368466fe954f4, 0x000309bc8091bdff)      \
    ROW(sinh, 0x4c85c404f5181e53, 0xc99451483e83ad3c, 0x117e151024882c56, 0xc2c5bc296b76ec3c)      \
    ROW(cosh, 0x458b0aa601f81a95, 0xac05746913c78ab2, 0x01186d7aec7eee6d, 0xc27d24740f559fcf)
#define QN__CHAINS_OF_TWO(ROW)                                                                     \
    ROW(hypot, 0xf60b8a976c02e81b, 0xd2bffe91d69751ea, 0x3cafa0b0bf7079e3, 0x13b9eeb38baac65c)     \
    ROW(pow, 0xd5e461910091c0b1, 0x1b1ea06e7bee44f2, 0xb420311f73829934, 0x19b7105a167f7775)       \
    ROW(atan2, 0xe87a5588a853e411, 0x8823eb30b3920894, 0x0d654e800f00ef18, 0x39e44f11fc207610)

#endif
