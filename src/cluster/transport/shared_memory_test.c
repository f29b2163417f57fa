/* The shared memory of a machine: both ranks see the same words, and neither can truncate it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cluster/transport/shared_memory.h"
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void test_two_see_the_same(void **state) {
    (void)state;
    qn__common one, two;
    const int file = qn__common_file();
    if (file < 0)
        skip(); /* the size of files is limited here */
    assert_int_equal(qn__common_open(&one, file, 0, 2, NULL), QN_OK);
    assert_int_equal(qn__common_open(&two, dup(file), 1, 2, NULL), QN_OK);
    int64_t *part = qn__common_part(&one, 1, 1000, NULL);
    const int64_t *seen = qn__common_part(&two, 1, 1000, NULL);
    assert_non_null(part);
    assert_non_null(seen);
    part[999] = 42;
    assert_int_equal(seen[999], 42);
    assert_int_not_equal(ftruncate(one.file, 4096), 0);
    assert_int_equal(seen[999], 42);
    qn__common_close(&one);
    qn__common_close(&two);
}

static void test_memory_that_can_vanish_is_refused(void **state) {
    (void)state;
    qn__common c;
    qn_error err;
    const int plain = memfd_create("plain", MFD_CLOEXEC);
    assert_true(plain >= 0);
    assert_int_equal(ftruncate(plain, 1 << 20), 0);
    assert_int_equal(qn__common_open(&c, plain, 0, 2, &err), QN_CLUSTER);
    assert_non_null(strstr(err.what, "not the memory that ranks share"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_see_the_same),
        cmocka_unit_test(test_memory_that_can_vanish_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
