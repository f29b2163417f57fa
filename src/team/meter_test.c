/* The energy of a device over a run, with a counter that the test sets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "team/meter.h"
#include <math.h>

static double counter[2];
static int readable;

static int energy(uint32_t index, double *joules) {
    if (readable)
        *joules = counter[index];
    return readable;
}

static const qn__device_table metered = {.version = QN__DEVICE_VERSION, .energy = energy};
static const qn__device_table plain = {.version = QN__DEVICE_VERSION};

/* Two intervals of a run: energy used between them does not count. */
static void test_stretches(void **state) {
    (void)state;
    qn__meter m = {0};
    readable = 1;
    counter[0] = 1000;
    counter[1] = 50;
    qn__meter_begin(&m, &metered, 1);
    assert_true(qn__meter_joules(&m) == 0);
    counter[1] = 53;
    qn__meter_read(&m, &metered, 1);
    counter[1] = 55;
    qn__meter_read(&m, &metered, 1);
    assert_true(qn__meter_joules(&m) == 5);
    counter[1] = 100;
    qn__meter_begin(&m, &metered, 1);
    counter[1] = 101;
    qn__meter_read(&m, &metered, 1);
    assert_true(qn__meter_joules(&m) == 6);
}

static void test_unknown(void **state) {
    (void)state;
    qn__meter m = {0};
    assert_true(isnan(qn__meter_joules(&m)));
    qn__meter_begin(&m, &plain, 0);
    qn__meter_read(&m, &plain, 0);
    assert_true(isnan(qn__meter_joules(&m)));
    readable = 1;
    counter[0] = 7;
    qn__meter_begin(&m, &metered, 0);
    readable = 0; /* permissions change, or a device fails */
    qn__meter_read(&m, &metered, 0);
    readable = 1;
    qn__meter_read(&m, &metered, 0);
    assert_true(isnan(qn__meter_joules(&m)));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_stretches),
                                       cmocka_unit_test(test_unknown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
