/* SipHash-2-4 against numbers computed with OpenSSL 3.0.19; its lanes against the definition in
 * siphash.h, and every instruction set against that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/digest/siphash_lanes.h"
#include "base/system/clock.h"

#include <stdlib.h>

static unsigned char message[1 << 16];
static qn__siphash_key key;

static int setup(void **state) {
    unsigned char bytes[16];
    (void)state;
    for (size_t i = 0; i < sizeof message; ++i)
        message[i] = (unsigned char)(i < 256 ? i : i * 131 + (i >> 8));
    for (int i = 0; i < 16; ++i)
        bytes[i] = (unsigned char)i;
    key = qn__siphash_key_of(bytes);
    return 0;
}

/* Message and key: 00 01 02 ... */
static void test_openssl(void **state) {
    (void)state;
    static const struct {
        size_t size;
        uint64_t mac;
    } known[] = {{0, 0x726fdb47dd0e0e31},  {1, 0x74f839c593dc67fd},  {7, 0xab0200f58b01d137},
                 {8, 0x93f5f5799a932462},  {15, 0xa129ca6149be45e5}, {16, 0x3f2acc7f57c29bdb},
                 {63, 0x958a324ceb064572}, {64, 0xacd2c40b8502cad8}, {100, 0x096f3fec85c52a7e}};
    for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
        assert_true(qn__siphash(&key, message, known[i].size) == known[i].mac);
}

static uint64_t left(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }

static void sip_round(uint64_t v[4]) {
    v[0] += v[1], v[1] = left(v[1], 13) ^ v[0], v[0] = left(v[0], 32);
    v[2] += v[3], v[3] = left(v[3], 16) ^ v[2];
    v[0] += v[3], v[3] = left(v[3], 21) ^ v[0];
    v[2] += v[1], v[1] = left(v[1], 17) ^ v[2], v[2] = left(v[2], 32);
}

/* The definition, lane by lane and byte by byte. */
static uint64_t by_definition(const unsigned char *bytes, size_t size) {
    unsigned char all[72];
    for (uint64_t lane = 0; lane < 8; ++lane) {
        const uint64_t k0 = key.word[0], k1 = key.word[1] ^ lane;
        uint64_t v[4] = {k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261,
                         k1 ^ 0x7465646279746573};
        for (size_t block = 0; block < (size + 63) / 64; ++block) {
            uint64_t m = 0;
            for (size_t i = 0; i < 8; ++i) {
                const size_t at = 64 * block + 8 * lane + i;
                m |= (uint64_t)(at < size ? bytes[at] : 0) << 8 * i;
            }
            v[3] ^= m;
            sip_round(v);
            sip_round(v);
            v[0] ^= m;
        }
        v[2] ^= 0xff;
        for (int i = 0; i < 4; ++i)
            sip_round(v);
        const uint64_t result = v[0] ^ v[1] ^ v[2] ^ v[3];
        for (int i = 0; i < 8; ++i)
            all[8 * lane + (uint64_t)i] = (unsigned char)(result >> 8 * i);
    }
    for (int i = 0; i < 8; ++i)
        all[64 + i] = (unsigned char)((uint64_t)size >> 8 * i);
    return qn__siphash(&key, all, sizeof all);
}

static void test_lanes(void **state) {
    (void)state;
    for (size_t size = 0; size < 300; ++size)
        for (size_t shift = 0; shift < 3; ++shift)
            assert_true(qn__siphash_lanes(&key, message + shift, size) ==
                        by_definition(message + shift, size));
    assert_true(qn__siphash_lanes(&key, message, sizeof message) ==
                by_definition(message, sizeof message));
}

static void like_portable(qn__siphash_blocks *fast) {
    for (size_t blocks = 0; blocks < 40; ++blocks) {
        qn__lanes a[4], b[4];
        for (int i = 0; i < 4; ++i)
            for (int lane = 0; lane < QN__LANES; ++lane)
                a[i].lane[lane] = b[i].lane[lane] =
                    (uint64_t)(i * QN__LANES + lane + 1) * 0x9e3779b97f4a7c15;
        qn__siphash_blocks_portable(a, message + blocks, blocks);
        fast(b, message + blocks, blocks);
        assert_memory_equal(a, b, sizeof a);
    }
}

static void test_avx2(void **state) {
    (void)state;
    if (!qn__siphash_avx2_here())
        skip();
    like_portable(qn__siphash_blocks_avx2);
}

static void test_avx512(void **state) {
    (void)state;
    if (!qn__siphash_avx512_here())
        skip();
    like_portable(qn__siphash_blocks_avx512);
}

/* A change of any bit of the text, its length or the key changes the number. */
static void test_every_bit_counts(void **state) {
    (void)state;
    const uint64_t before = qn__siphash_lanes(&key, message, 200);
    for (size_t bit = 0; bit < 8 * 200; ++bit) {
        message[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_true(qn__siphash_lanes(&key, message, 200) != before);
        message[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    for (int bit = 0; bit < 128; ++bit) {
        qn__siphash_key other = key;
        other.word[bit / 64] ^= UINT64_C(1) << bit % 64;
        assert_true(qn__siphash_lanes(&other, message, 200) != before);
    }
    unsigned char zeros[64] = {0};
    for (size_t size = 0; size < sizeof zeros; ++size)
        assert_true(qn__siphash_lanes(&key, zeros, size) !=
                    qn__siphash_lanes(&key, zeros, size + 1));
}

static double bytes_a_second(uint64_t (*mac)(const qn__siphash_key *, const void *, size_t)) {
    uint64_t sum = 0;
    double best = 0;
    for (int round = 0; round < 20; ++round) {
        const double begun = qn__now();
        for (int i = 0; i < 20; ++i)
            sum += mac(&key, message, sizeof message);
        const double speed = 20.0 * sizeof message / (qn__now() - begun);
        best = speed > best ? speed : best;
    }
    assert_true(sum != 0); /* so that the compiler removes nothing */
    return best;
}

static void test_says_its_speed(void **state) {
    (void)state;
    print_message("SipHash-2-4: %.2f GB/s, in lanes: %.2f GB/s\n",
                  1e-9 * bytes_a_second(qn__siphash), 1e-9 * bytes_a_second(qn__siphash_lanes));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_openssl),
        cmocka_unit_test(test_lanes),
        cmocka_unit_test(test_avx2),
        cmocka_unit_test(test_avx512),
        cmocka_unit_test(test_every_bit_counts),
        cmocka_unit_test(test_says_its_speed),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
