/* When a processor that is an OpenCL device counts as silent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/opencl/opencl_busy.h"

/* The silence after so many seconds of polls, a millisecond apart, in which the process computes
 * this part of the time. */
static double silence(double seconds, double part) {
    qn__busy b = {.computed = 7};
    double found = 0;
    for (int i = 1; i <= (int)(seconds * 1000); ++i)
        found = qn__busy_silence(&b, i * 1e-3, 7 + i * 1e-3 * part);
    return found;
}

static void test_silence(void **state) {
    (void)state;
    assert_float_equal(silence(60, 0), 60, 1e-6);
    assert_float_equal(silence(60, 0.02), 60, 1e-6); /* polls */
    assert_float_equal(silence(60, 0.1), 6, 0.3);    /* of a busy machine */
    assert_float_equal(silence(60, 8), 6, 0.3);
    assert_float_equal(silence(0.2, 1), 0.2, 1e-6);
}

/* It compiles, and then hangs. */
static void test_silence_after_work(void **state) {
    (void)state;
    qn__busy b = {.computed = 0};
    double found = 0;
    for (int i = 1; i <= 100; ++i)
        found = qn__busy_silence(&b, i, i < 50 ? i : 50);
    assert_float_equal(found, 50 * 0.1 + 50, 1.5);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_silence),
                                       cmocka_unit_test(test_silence_after_work)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
