/* The CPU's own measurements: they end, give plausible rates, and refuse invalid settings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/cpu/worker/cpu_table.h"

static void test_rates(void **state) {
    (void)state;
    const qn_compute computes[] = {{.threads = 1}, {.threads = 2, .isa = "scalar"}};
    for (int i = 0; i < 2; ++i) {
        qn_device_rates rates = {.size = sizeof(qn_device_rates)};
        qn_error err;
        assert_int_equal(qn__cpu_device.measure(0, &computes[i], &rates, &err), QN_OK);
        print_message("%d threads: %.3g operations/s, %.3g tanh/s, %.3g bytes/s\n",
                      computes[i].threads, rates.matmul, rates.tanh, rates.memory);
        /* Slower than an emulator or faster than any machine means a wrong count. */
        assert_true(rates.matmul > 1e6 && rates.matmul < 1e15);
        for (int b = 0; b < 3; ++b) {
            print_message("  i%d: %.3g operations/s\n", 7 * (b + 1), rates.integers[b]);
            assert_true(rates.integers[b] > 1e6 && rates.integers[b] < 1e16);
        }
        assert_true(rates.tanh > 1e4 && rates.tanh < 1e14);
        if (computes[i].isa)
            assert_string_equal(rates.integers_by, computes[i].isa);
        assert_true(rates.memory > 1e7 && rates.memory < 1e14);
    }
}

static void test_refusals(void **state) {
    (void)state;
    qn_device_rates rates = {sizeof rates, 1, 1, 1, {1, 1, 1}, "x"};
    qn_error err;
    assert_int_equal(qn__cpu_device.measure(
                         0, &(qn_compute){.size = sizeof(qn_compute), .isa = "mmx"}, &rates, &err),
                     QN_USAGE);
    assert_true(rates.matmul == 0 && rates.tanh == 0 && rates.memory == 0);
    assert_true(rates.integers[0] == 0 && rates.integers[2] == 0);
    assert_string_equal(rates.integers_by, "");
}

/* A machine may have no counter, but a counter never decreases. */
static void test_energy(void **state) {
    (void)state;
    double first = -1, second = -1;
    if (!qn__cpu_device.energy(0, &first)) {
        print_message("no energy counter that can be read here\n");
        assert_true(first < 0);
        return;
    }
    assert_true(qn__cpu_device.energy(0, &second) && second >= first && first >= 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rates),
                                       cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_energy)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
