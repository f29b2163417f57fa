/* Messages: cut at whole characters, harmless on a terminal, with a remedy where there is one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/encoding.h"
#include "base/error.h"
#include "base/memory.h"

#include <quern/version.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static void test_three_texts(void **state) {
    (void)state;
    qn_error err;
    memset(&err, 'x', sizeof err);
    assert_int_equal(qn__fail(&err, QN_INPUT, "\"%s\" is not a number", "1,5"), QN_INPUT);
    assert_int_equal(err.status, QN_INPUT);
    assert_string_equal(err.what, "\"1,5\" is not a number");
    assert_string_equal(err.where, "");
    assert_string_equal(err.remedy, "");
    qn__at(&err, "%s, line %d", "a.csv", 7);
    assert_int_equal(qn__remedy(&err, QN_IO, "use a point"), QN_IO);
    assert_int_equal(err.status, QN_INPUT);
    assert_string_equal(err.where, "a.csv, line 7");
    assert_string_equal(err.remedy, "use a point");
    /* The arguments may be in the error that is being filled. */
    qn__fail(&err, QN_FORMAT, "%s (%s)", err.remedy, err.what);
    assert_string_equal(err.what, "use a point (\"1,5\" is not a number)");
}

static void test_no_error_is_wanted(void **state) {
    (void)state;
    errno = ENOENT;
    assert_int_equal(qn__fail(NULL, QN_USAGE, "x"), QN_USAGE);
    qn__at(NULL, "x");
    assert_int_equal(qn__remedy(NULL, QN_USAGE, "x"), QN_USAGE);
    assert_int_equal(qn__fail_errno(NULL, "open", "a"), QN_IO);
    assert_int_equal(qn__fail_memory(NULL, 1, 1), QN_MEMORY);
}

static void test_hostile_bytes(void **state) {
    (void)state;
    qn_error err;
    qn__fail(&err, QN_INPUT, "%s", "a\x1b[2J\n\x7f\xff\xc2\x9b\xc3\xa9\xed\xa0\x80");
    assert_string_equal(err.what, "a?[2J????\xc3\xa9???");
}

static void test_the_place_of_another_error_keeps_its_lines(void **state) {
    (void)state;
    qn_error err = {0}, own = {0};
    qn__point_at(&err, "model", "conv 4 4 rleu", 9);
    qn__at_of(&own, err.where);
    assert_string_equal(own.where, "model, column 10:\n  conv 4 4 rleu\n           ^");
    qn__point_at(&err, "model", "dense \xc3\xa9\xc2\x9b\xff\x1b; rleu", 13);
    assert_string_equal(err.where, "model, column 12:\n  dense \xc3\xa9???; rleu\n             ^");
    qn__at_of(&own, "a\x1b[31m\n\tb\xff");
    assert_string_equal(own.where, "a?[31m\n?b?");
    qn__at_of(NULL, "nowhere");
}

static void test_long_texts_are_cut_between_characters(void **state) {
    (void)state;
    qn_error err;
    char text[2000];
    for (size_t shift = 0; shift < 4; shift++) {
        memset(text, 'a', shift);
        for (size_t i = shift; i + 4 < sizeof text; i += 4)
            memcpy(text + i, "\xf0\x9f\x98\x80", 5);
        qn__fail(&err, QN_INPUT, "%s", text);
        const size_t size = strlen(err.what);
        assert_in_range(size, 508, 511);
        assert_memory_equal(err.what, text, size);
        for (size_t at = 0; at < size; at += qn__utf8_length(err.what + at, size - at))
            assert_true(qn__utf8_length(err.what + at, size - at) > 0);
    }
}

static void test_messages_of_the_system(void **state) {
    (void)state;
    qn_error err;
    errno = ENOSPC;
    assert_int_equal(qn__fail_errno(&err, "write", "a.qn"), QN_IO);
    assert_string_equal(err.what, "cannot write a.qn: No space left on device");
    assert_non_null(strstr(err.remedy, "free some space"));
    assert_int_equal(errno, ENOSPC);
    assert_int_equal(qn__fail_memory(&err, SIZE_MAX, 2), QN_MEMORY);
    assert_non_null(strstr(err.what, "more than can be addressed"));
    assert_int_equal(qn__fail_memory(&err, 3, 5), QN_MEMORY);
    assert_non_null(strstr(err.what, "15 bytes"));
}

static void test_every_status_has_a_name(void **state) {
    (void)state;
    for (int a = QN_OK; a <= QN_CLUSTER; a++)
        for (int b = QN_OK; b < a; b++)
            assert_string_not_equal(qn_status_name((qn_status)a), qn_status_name((qn_status)b));
    for (int a = QN_OK; a <= QN_CLUSTER; a++)
        assert_string_not_equal(qn_status_name((qn_status)a), "unknown status");
    assert_string_equal(qn_status_name((qn_status)(QN_CLUSTER + 1)), "unknown status");
    assert_string_equal(qn_status_name((qn_status)-1), "unknown status");
}

/* A block of 4 MiB or more begins with a large page, and its last bytes can be in one. */
static void check_large_pages(void) {
    const size_t large = (size_t)1 << 21;
    for (size_t size = 2 * large - 1; size <= 3 * large; size += large / 2 + 1) {
        unsigned char *pages = qn__alloc_pages(size, NULL);
        assert_non_null(pages);
        assert_true(size < 2 * large || (uintptr_t)pages % large == 0);
        assert_int_equal(pages[size + 63], 0);
        memset(pages, 1, size);
        qn__free_pages(pages, size);
        assert_int_equal(mincore(pages, size, (unsigned char[2048]){0}), -1);
    }
}

static void test_memory(void **state) {
    (void)state;
    for (size_t size = 0; size < 300; size += 7) {
        unsigned char *block = qn__alloc(size, 1, NULL);
        assert_non_null(block);
        assert_int_equal((uintptr_t)block % 64, 0);
        unsigned sum = 0;
        for (size_t i = 0; i < size + 64; i++)
            sum += block[i];
        assert_int_equal(sum, 0);
        memset(block, 1, size);
        qn__free(block);
    }
    qn__free(NULL);
    for (size_t size = 1; size < 20000; size += 4000) {
        unsigned char *pages = qn__alloc_pages(size, NULL);
        assert_non_null(pages);
        assert_int_equal((uintptr_t)pages % 64, 0);
        unsigned sum = 0;
        for (size_t i = 0; i < size + 64; i++)
            sum += pages[i];
        assert_int_equal(sum, 0);
        memset(pages, 1, size); /* those of the next turn are clear again */
        qn__free_pages(pages, size);
    }
    check_large_pages();
    qn__free_pages(NULL, 5);
    char *copy = qn__copy_text("grain", NULL);
    assert_string_equal(copy, "grain");
    qn__free(copy);
}

static void test_impossible_memory(void **state) {
    (void)state;
    qn_error err = {0};
    assert_null(qn__alloc(SIZE_MAX, 2, &err));
    assert_int_equal(err.status, QN_MEMORY);
    assert_null(qn__alloc(SIZE_MAX / 2 + 1, 2, &err));
    assert_null(qn__alloc(SIZE_MAX, 1, &err));
    assert_null(qn__alloc(1, SIZE_MAX - 64, NULL));
    err = (qn_error){0};
    assert_null(qn__alloc_pages(SIZE_MAX, &err));
    assert_int_equal(err.status, QN_MEMORY);
    assert_null(qn__alloc_pages(SIZE_MAX - 64, NULL));
}

static void test_utf8_of_every_code(void **state) {
    (void)state;
    for (unsigned code = 0; code < 0x110000; code++) {
        char bytes[4];
        const size_t size = qn__utf8_write(code, bytes);
        const int surrogate = code >= 0xd800 && code < 0xe000;
        assert_int_equal(qn__utf8_length(bytes, size), surrogate ? 0 : size);
        assert_int_equal(qn__utf8_length(bytes, size - 1), 0);
    }
}

static void test_version(void **state) {
    (void)state;
    char expected[32];
    snprintf(expected, sizeof expected, "%d.%d.%d", QN_VERSION_MAJOR, QN_VERSION_MINOR,
             QN_VERSION_PATCH);
    assert_string_equal(qn_version(), expected);
    static const char *const names[] = {
        "compiler: ", "\nflags: ", "\nbuild type: ", "\noptional parts: "};
    for (size_t i = 0; i < 4; i++)
        assert_non_null(strstr(qn_build_info(), names[i]));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_three_texts),
        cmocka_unit_test(test_no_error_is_wanted),
        cmocka_unit_test(test_hostile_bytes),
        cmocka_unit_test(test_the_place_of_another_error_keeps_its_lines),
        cmocka_unit_test(test_long_texts_are_cut_between_characters),
        cmocka_unit_test(test_messages_of_the_system),
        cmocka_unit_test(test_every_status_has_a_name),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_impossible_memory),
        cmocka_unit_test(test_utf8_of_every_code),
        cmocka_unit_test(test_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
