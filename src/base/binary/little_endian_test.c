/* Numbers in files are little-endian: the expected bytes are listed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/binary/little_endian.h"

#include <string.h>

enum { MANY = 3000 }; /* more than one piece */

static uint32_t number(uint32_t i) { return i * 2654435761u; }

/* The numbers and their bytes in a file. */
static void make(uint32_t *numbers, unsigned char *bytes, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        numbers[i] = number(i);
        for (uint32_t k = 0; k < 4; k++)
            bytes[4 * i + k] = (unsigned char)(number(i) >> 8 * k);
    }
}

static void test_copies(void **state) {
    (void)state;
    const float one = 1.0f;
    const unsigned char expected[5] = {0, 0, 0, 0x80, 0x3f};
    unsigned char bytes[5] = {0};
    float back;
    qn__copy_little(bytes + 1, &one, 1); /* unaligned */
    assert_memory_equal(bytes, expected, sizeof bytes);
    qn__copy_little(&back, bytes + 1, 1);
    assert_true(back == one);
    const uint16_t half[2] = {0x0102, 0xFE03};
    const unsigned char halves[4] = {2, 1, 3, 0xFE};
    uint16_t again[2];
    qn__copy_little_halves(bytes + 1, half, 2);
    assert_memory_equal(bytes + 1, halves, sizeof halves);
    qn__copy_little_halves(again, bytes + 1, 2);
    assert_memory_equal(again, half, sizeof half);
}

static qn_status append(void *user, const void *bytes, size_t size, qn_error *err) {
    unsigned char **at = user;
    (void)err;
    memcpy(*at, bytes, size);
    *at += size;
    return QN_OK;
}

static void test_pieces_and_digest(void **state) {
    (void)state;
    static uint32_t numbers[MANY];
    static unsigned char bytes[4 * MANY], got[4 * MANY];
    unsigned char *at = got, expected[32], digest[32];
    qn__sha256 hash;
    make(numbers, bytes, MANY);
    assert_int_equal(qn__each_little(numbers, MANY, append, &at, NULL), QN_OK);
    assert_ptr_equal(at, got + sizeof got);
    assert_memory_equal(got, bytes, sizeof bytes);
    qn__sha256_of(bytes, sizeof bytes, expected);
    qn__sha256_begin(&hash);
    qn__sha256_add_little(&hash, numbers, MANY);
    qn__sha256_end(&hash, digest);
    assert_memory_equal(digest, expected, sizeof digest);
}

static int refused;

static qn_status refuse(void *user, const void *bytes, size_t size, qn_error *err) {
    (void)user;
    (void)bytes;
    (void)size;
    refused++;
    return qn__fail(err, QN_IO, "no space");
}

static void test_a_failure_ends_it(void **state) {
    (void)state;
    static const uint32_t numbers[MANY];
    qn_error err;
    assert_int_equal(qn__each_little(numbers, MANY, refuse, NULL, &err), QN_IO);
    assert_int_equal(refused, 1);
    assert_string_equal(err.what, "no space");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_pieces_and_digest),
        cmocka_unit_test(test_a_failure_ends_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
