/* Which devices a run would use: a slow one is left out with a reason, a fast one beside a slow CPU
 * is taken, one that cannot be opened says why. The devices are fakes of known speed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_device/fake_device.h"
#include <math.h>
#include <quern/quern.h>
#include <stdio.h>
#include <string.h>

/* A network so small that a sanitizer's build keeps up with the speeds that fakes pretend. */
enum { FEATURES = 4, ROOM = 16 };

static qn_advice advice[ROOM] = {{.size = sizeof(qn_advice)}};
static uint32_t count;
static double rate;

static qn_status try_on(const char *devices, double seconds, qn_error *err) {
    qn_train_options o;
    qn_train_options_init(&o);
    o.model = "dense 3 softmax";
    o.batch = 256;
    o.grain = 16;
    o.compute.devices = devices;
    o.compute.threads = 1;
    return qn_advise(&o, FEATURES, seconds, advice, ROOM, &count, &rate, err);
}

static const qn_advice *about(const char *id) {
    for (uint32_t i = 0; i < count; ++i)
        if (strcmp(advice[i].id, id) == 0)
            return &advice[i];
    fail_msg("no advice about %s", id);
    return NULL;
}

static void print_advice(void) {
    for (uint32_t i = 0; i < count; ++i)
        print_message("%-8s used %d share %.3f rate %.4g: %s\n", advice[i].id, advice[i].used,
                      advice[i].share, advice[i].items_per_second, advice[i].why);
}

/* Two hundred items a second are of no help to any CPU, not even a busy one under a sanitizer. */
static void test_slow_device(void **state) {
    (void)state;
    qn_error err = {0};
    qn__fake_set(&(qn__fake_plan){.count = 2, .device = {{.rate = 200}}});
    if (try_on("cpu,fake:0", 1.5, &err) != QN_OK)
        fail_msg("%s", err.what);
    print_advice();
    assert_int_equal(count, qn_device_count());
    assert_true(about("cpu")->used && about("cpu")->share > 0.9 &&
                about("cpu")->items_per_second > 200);
    /* Where other programs have the cores, trials may not tell one way from the other in this time.
     */
    const qn_advice *slow = about("fake:0");
    assert_true(slow->used ? slow->share < 0.05 : *slow->why != 0);
    assert_false(about("fake:1")->used); /* not in the list */
    assert_true(*about("fake:1")->why);
    assert_true(rate > 0);
}

/* A busy machine may hold one of them up for a whole trial, so that it is left out: there are some
 * tries. */
static void test_equal_devices(void **state) {
    (void)state;
    qn_error err = {0};
    qn__fake_set(&(qn__fake_plan){.count = 2, .device = {{.rate = 4000}, {.rate = 4000}}});
    for (int i = 0, good = 0; i < 8 && !good; ++i) {
        if (try_on("fake:0,fake:1", 1.5, &err) != QN_OK)
            fail_msg("%s", err.what);
        print_advice();
        good = about("fake:0")->used && about("fake:1")->used &&
               fabs(about("fake:0")->share - 0.5) < 0.3;
    }
    for (int i = 0; i < 2; ++i) {
        const qn_advice *a = about(i ? "fake:1" : "fake:0");
        assert_true(a->used && a->share > 0.2 && a->share < 0.8 && !*a->why);
    }
    assert_false(about("cpu")->used);
}

static void test_refusals(void **state) {
    (void)state;
    qn_error err;
    qn_train_options o;
    qn_train_options_init(&o);
    o.model = "dense 5 softmax";
    assert_int_equal(qn_advise(&o, 0, 1, advice, ROOM, &count, &rate, &err), QN_USAGE);
    assert_int_equal(count, 0);
    assert_int_equal(qn_advise(&o, 3, 0, advice, ROOM, &count, &rate, &err), QN_USAGE);
    o.compute.devices = "none";
    assert_int_equal(qn_advise(&o, 3, 1, advice, ROOM, &count, &rate, &err), QN_USAGE);
    o.compute.devices = "cpu";
    o.model = "dens 5";
    assert_int_equal(qn_advise(&o, 3, 1, advice, ROOM, &count, &rate, &err), QN_USAGE);
    o.model = NULL;
    assert_int_equal(qn_advise(&o, 3, 1, advice, ROOM, &count, &rate, &err), QN_USAGE);
    o.model = "dense 5 softmax";
    o.size = 1;
    assert_int_equal(qn_advise(&o, 3, 1, advice, ROOM, &count, &rate, &err), QN_USAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_slow_device),
                                       cmocka_unit_test(test_equal_devices),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
