/* Each type of values: its size, which values it refuses, and the numbers they stand for. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "num/element.h"
#include <quern/data.h>

enum { COUNT = 10000, PLACE = 4097 };

static void test_sizes(void **state) {
    (void)state;
    static const uint32_t size[] = {0, 1, 4, 2, 4};
    static const char *const name[] = {"", "u8", "f32", "t16", "t32"};
    for (unsigned type = QN__ELEMENT_U8; type <= QN__ELEMENT_TOKEN32; type++) {
        assert_int_equal(qn__element_of(type)->size, size[type]);
        assert_string_equal(qn__element_of(type)->name, name[type]);
    }
    assert_int_equal(QN__ELEMENT_U8, QN_U8);
    assert_int_equal(QN__ELEMENT_F32, QN_F32);
    assert_int_equal(QN__ELEMENT_TOKEN16, QN_TOKENS16);
    assert_int_equal(QN__ELEMENT_TOKEN32, QN_TOKENS32);
    for (unsigned type = 0; type < 9; type++) /* the numbers that a caller may give */
        assert_int_equal(qn__element_is_type(type), type >= QN_U8 && type <= QN_TOKENS32);
}

/* Tokens of the type stand after one byte, at an address that is not aligned. */
static void check_tokens(qn__element_type type, uint64_t vocabulary) {
    static uint8_t buffer[COUNT * 4 + 1], *values = buffer + 1;
    const qn__element *element = qn__element_of(type);
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint32_t token = (uint32_t)((i * 2654435761u) % vocabulary);
        const uint16_t narrow = (uint16_t)token;
        memcpy(values + i * element->size, element->size == 2 ? (const void *)&narrow : &token,
               element->size);
    }
    uint32_t last = (uint32_t)(vocabulary - 1);
    memcpy(values + (size_t)PLACE * element->size, &last, element->size);
    assert_int_equal(element->wrong(values, COUNT, vocabulary, NULL), COUNT);
    assert_int_equal(element->wrong(values, COUNT, vocabulary - 1, NULL) <= PLACE, 1);
    assert_int_equal(element->wrong(values + (size_t)PLACE * element->size, 1, last, NULL), 0);
    assert_int_equal(element->fetch, element->size == 2 ? QN__FETCH_TOKENS16 : QN__FETCH_TOKENS32);
}

static void test_tokens(void **state) {
    (void)state;
    check_tokens(QN__ELEMENT_TOKEN16, 50257);
    check_tokens(QN__ELEMENT_TOKEN16, 65536);
    check_tokens(QN__ELEMENT_TOKEN32, 128256);
    check_tokens(QN__ELEMENT_TOKEN32, (uint64_t)1 << 32);
}

static void test_numbers(void **state) {
    (void)state;
    const uint8_t bytes[] = {0, 255, 3};
    const float floats[] = {0, 255, 3};
    const uint16_t narrow[] = {0, 255, 3}, most = 65535;
    const uint32_t wide[] = {0, 255, 3}, large = UINT32_MAX;
    const void *values[] = {NULL, bytes, floats, narrow, wide};
    for (unsigned type = QN__ELEMENT_U8; type <= QN__ELEMENT_TOKEN32; type++) {
        float to[3];
        qn__element_of(type)->floats(values[type], 3, to);
        assert_memory_equal(to, floats, sizeof to);
        assert_true(qn__element_of(type)->number(values[type], 1) == 255);
        assert_true(qn__element_number(type, values[type], 1) == 255);
    }
    assert_true(qn__element_of(QN__ELEMENT_TOKEN16)->number(&most, 0) == 65535);
    assert_true(qn__element_of(QN__ELEMENT_TOKEN32)->number(&large, 0) == 4294967295.0);
}

static void test_floats(void **state) {
    (void)state;
    static float values[COUNT];
    const qn__element *element = qn__element_of(QN__ELEMENT_F32);
    int missing = 0;
    assert_int_equal(element->wrong(values, COUNT, 0, NULL), COUNT);
    values[PLACE] = NAN;
    assert_int_equal(element->wrong(values, COUNT, 0, NULL), PLACE);
    assert_int_equal(element->wrong(values, COUNT, 0, &missing), COUNT);
    assert_int_equal(missing, 1);
    values[PLACE + 1] = -INFINITY;
    assert_int_equal(element->wrong(values, COUNT, 0, &missing), PLACE + 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_floats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
