/* Notes of backends: each text is read once, in order, however often it was added. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/notes.h"
#include <quern/device.h>
#include <stdio.h>
#include <string.h>

static void test_once_and_in_order(void **state) {
    (void)state;
    char text[64], small[5];
    assert_int_equal(qn_device_note(text, sizeof text), 0);
    qn__device_tell("");
    qn__device_tell("first");
    qn__device_tell("second");
    qn__device_tell("first");
    assert_int_equal(qn_device_note(small, sizeof small), 1);
    assert_string_equal(small, "firs");
    assert_int_equal(qn_device_note(text, sizeof text), 1);
    assert_string_equal(text, "second");
    qn__device_tell("second");
    assert_int_equal(qn_device_note(text, sizeof text), 0);
}

/* Many notes do not take more memory: only the first ones are kept. */
static void test_many(void **state) {
    (void)state;
    char text[1000], long_one[1000];
    int heard = 0;
    memset(long_one, 'x', sizeof long_one - 1);
    long_one[sizeof long_one - 1] = 0;
    qn__device_tell(long_one);
    qn__device_tell(long_one);
    for (int i = 0; i < 100; ++i) {
        snprintf(text, sizeof text, "note %d", i);
        qn__device_tell(text);
    }
    while (qn_device_note(text, sizeof text)) {
        assert_true(heard != 0 || strlen(text) > 300);
        assert_true(heard == 0 || strncmp(text, "note ", 5) == 0);
        ++heard;
    }
    assert_true(heard > 5 && heard < 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_once_and_in_order),
                                       cmocka_unit_test(test_many)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
