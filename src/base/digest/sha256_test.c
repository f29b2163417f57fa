/* SHA-256 against the vectors of FIPS 180-4 and a digest of Python's hashlib; the processor's own
 * instructions against the portable code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/digest/sha256.h"
#include "base/digest/sha256_blocks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t random_state = 20261121;

/* Knuth's MMIX generator; the high bits are good enough to fill buffers. */
static uint32_t next_random(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33);
}

static void check(const char *message, const char *expected) {
    uint8_t digest[32];
    char text[65];
    qn__sha256_of(message, strlen(message), digest);
    qn__hex(digest, text);
    assert_string_equal(text, expected);
}

static void test_fips_vectors(void **state) {
    (void)state;
    check("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    check("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmno"
          "ijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
          "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
}

static void test_million_letters_in_uneven_pieces(void **state) {
    (void)state;
    char piece[1000], text[65];
    uint8_t digest[32];
    memset(piece, 'a', sizeof piece);
    qn__sha256 hash;
    qn__sha256_begin(&hash);
    for (size_t left = 1000000; left > 0;) {
        size_t size = next_random() % (sizeof piece + 1);
        size = size < left ? size : left;
        qn__sha256_add(&hash, piece, size);
        left -= size;
    }
    qn__sha256_end(&hash, digest);
    qn__hex(digest, text);
    assert_string_equal(text, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* Lengths 0 to 999 of bytes i*7 + length; the digest of all digests was computed with hashlib. */
static void test_every_length_up_to_999(void **state) {
    (void)state;
    qn__sha256 all;
    uint8_t bytes[1000], digest[32];
    char text[65];
    qn__sha256_begin(&all);
    for (size_t length = 0; length < 1000; length++) {
        for (size_t i = 0; i < length; i++)
            bytes[i] = (uint8_t)(i * 7 + length);
        qn__sha256_of(bytes, length, digest);
        qn__sha256_add(&all, digest, 32);
    }
    qn__sha256_end(&all, digest);
    qn__hex(digest, text);
    assert_string_equal(text, "f6736e777f4669cd08490040f12b8c9fbd70cfb57c155927dcff1efdb269a162");
}

static void compare_blocks(qn__sha256_blocks *blocks) {
    enum { MOST = 33 };
    static uint8_t bytes[MOST * 64 + 3];
    for (int round = 0; round < 2000; round++) {
        const size_t count = next_random() % (MOST + 1), offset = next_random() % 4;
        uint32_t expected[8], got[8];
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (uint8_t)next_random();
        for (int i = 0; i < 8; i++)
            expected[i] = got[i] = next_random() * 2654435761u;
        qn__sha256_blocks_portable(expected, bytes + offset, count);
        blocks(got, bytes + offset, count);
        assert_memory_equal(got, expected, sizeof got);
    }
}

static void test_own_instructions_equal_portable(void **state) {
    (void)state;
    if (!qn__sha256_x86_here() && !qn__sha256_arm_here()) {
        print_message("skipped: this processor has no instructions for SHA-256\n");
        skip();
    }
    if (qn__sha256_x86_here())
        compare_blocks(qn__sha256_blocks_x86);
    if (qn__sha256_arm_here())
        compare_blocks(qn__sha256_blocks_arm);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fips_vectors),
        cmocka_unit_test(test_million_letters_in_uneven_pieces),
        cmocka_unit_test(test_every_length_up_to_999),
        cmocka_unit_test(test_own_instructions_equal_portable),
    };
    print_message("seed %llu\n", (unsigned long long)random_state);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
