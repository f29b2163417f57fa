/* Lists of devices: what they mean, what is refused, and what the messages say. Fake devices stand
 * in for those that this machine may lack. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_device/fake_device.h"
#include "team/members.h"
#include "team/queue.h"
#include <quern/quern.h>
#include <stdio.h>
#include <string.h>

static void three_fakes(void) { qn__fake_set(&(qn__fake_plan){.count = 3}); }

/* The list as "cpu(4) fake:1? fake:2?x3": cores, optional ones, shares. */
static const char *read_list(const char *devices, const char *shares) {
    static char text[512];
    const qn_compute compute = {.size = sizeof(qn_compute), .devices = devices, .shares = shares};
    qn__member members[QN__MAX_WORKERS];
    qn_error err = {.status = QN_OK};
    uint32_t count;
    size_t used = 0;
    text[0] = 0;
    const qn_status status = qn__members_of(&compute, members, QN__MAX_WORKERS, &count, &err);
    if (status != QN_OK) {
        print_error("%s: %s (%s)\n", devices ? devices : "NULL", err.what, err.remedy);
        assert_int_equal(count, 0);
        return "refused";
    }
    for (uint32_t i = 0; i < count; ++i) {
        const qn__member *m = &members[i];
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? " " : "",
                                 m->device->name);
        if (m->threads)
            used += (size_t)snprintf(text + used, sizeof text - used, "(%d)", m->threads);
        if (strcmp(m->device->name, "cpu") != 0)
            used += (size_t)snprintf(text + used, sizeof text - used, ":%u", m->index);
        if (m->optional)
            used += (size_t)snprintf(text + used, sizeof text - used, "?");
        if (m->share > 0)
            used += (size_t)snprintf(text + used, sizeof text - used, "x%g", m->share);
    }
    return text;
}

static void test_lists(void **state) {
    (void)state;
    three_fakes();
    assert_string_equal(read_list("cpu", NULL), "cpu");
    assert_string_equal(read_list("cpu:4", NULL), "cpu(4)");
    assert_string_equal(read_list("cpu:all", NULL), "cpu");
    assert_string_equal(read_list("cpu:4096", NULL), "cpu(4096)");
    assert_string_equal(read_list("fake:2,cpu:1,fake:0", NULL), "fake:2 cpu(1) fake:0");
    assert_string_equal(read_list("fake:all", NULL), "fake:0? fake:1? fake:2?");
    assert_string_equal(read_list("fake", NULL), "fake:0? fake:1? fake:2?");
    assert_string_equal(read_list("cpu,fake:1", "3,0.5"), "cpux3 fake:1x0.5");
    assert_string_equal(read_list("fake:all", "1,2,3"), "fake:0?x1 fake:1?x2 fake:2?x3");
}

/* Test devices are never taken unasked; the CPU always is. */
static void test_auto(void **state) {
    (void)state;
    three_fakes();
    assert_int_equal(strncmp(read_list(NULL, NULL), "cpu", 3), 0);
    assert_null(strstr(read_list("auto", NULL), "fake"));
}

static const struct refusal {
    const char *devices, *shares;
    qn_status status;
    const char *says, *remedy;
} refusals[] = {
    {"none", NULL, QN_USAGE, "no device is left", "write auto"},
    {"", NULL, QN_USAGE, "an empty entry", "cpu,cuda:0"},
    {",", NULL, QN_USAGE, "an empty entry", "cpu,cuda:0"},
    {"cpu,", NULL, QN_USAGE, "an empty entry", "cpu,cuda:0"},
    {",cpu", NULL, QN_USAGE, "an empty entry", "cpu,cuda:0"},
    {":", NULL, QN_USAGE, "without its kind", "KIND:0"},
    {":0", NULL, QN_USAGE, "without its kind", "KIND:0"},
    {"cpu,cpu", NULL, QN_USAGE, "cpu is in the list of devices twice", ""},
    {"cpu:1,cpu:2", NULL, QN_USAGE, "cpu is in the list of devices twice", ""},
    {"fake:1,fake", NULL, QN_USAGE, "fake:1 is in the list of devices twice", ""},
    {"fake:x", NULL, QN_USAGE, "\"fake:x\" is not the name of a device", "KIND:0"},
    {"fake:", NULL, QN_USAGE, "\"fake:\" is not the name of a device", "KIND:0"},
    {"fake:-1", NULL, QN_USAGE, "\"fake:-1\" is not the name of a device", "KIND:0"},
    {"fake:0:1", NULL, QN_USAGE, "\"fake:0:1\" is not the name of a device", "KIND:0"},
    {"fake:3", NULL, QN_UNSUPPORTED, "no device \"fake:3\"", "fake:0, fake:1, fake:2"},
    {"fake:4294967296", NULL, QN_UNSUPPORTED, "no device \"fake:4294967296\"", "this machine has"},
    {"fake:18446744073709551616", NULL, QN_USAGE, "is not the name of a device", ""},
    {"cpu:0", NULL, QN_USAGE, "invalid number of cores in \"cpu:0\"", "cpu:4"},
    {"cpu:4097", NULL, QN_USAGE, "invalid number of cores in \"cpu:4097\"", ""},
    {"cpu:99999", NULL, QN_USAGE, "invalid number of cores in \"cpu:99999\"", ""},
    {"cpu:x", NULL, QN_USAGE, "invalid number of cores in \"cpu:x\"", ""},
    {"cpu:", NULL, QN_USAGE, "invalid number of cores in \"cpu:\"", ""},
    {"cpu, fake:0", NULL, QN_USAGE, "no kind of device \" fake\"", "did you mean \"fake\""},
    {"CPU", NULL, QN_USAGE, "no kind of device \"CPU\"", "this machine has cpu"},
    {"fakw:0", NULL, QN_USAGE, "no kind of device \"fakw\"", "did you mean \"fake\""},
    {"aut", NULL, QN_USAGE, "no kind of device \"aut\"", "did you mean \"auto\""},
    {"cpu,none", NULL, QN_USAGE, "\"none\" stands alone", ""},
    {"auto,fake:0", NULL, QN_USAGE, "\"auto\" stands alone", ""},
    {"cpu,fake:0", "1", QN_USAGE, "1 share of the work for 2 devices", "one number for each"},
    {"cpu", "1,2", QN_USAGE, "2 shares of the work for 1 device", "one number for each"},
    {"cpu", "", QN_USAGE, "invalid share \"\"", "greater than 0"},
    {"cpu", "0", QN_USAGE, "invalid share \"0\"", "greater than 0"},
    {"cpu", "-1", QN_USAGE, "invalid share \"-1\"", "greater than 0"},
    {"cpu", "nan", QN_USAGE, "invalid share \"nan\"", "greater than 0"},
    {"cpu,fake:0", "1,", QN_USAGE, "invalid share \"\"", "greater than 0"},
};

static void test_refusals(void **state) {
    (void)state;
    three_fakes();
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; ++i) {
        const struct refusal *r = &refusals[i];
        const qn_compute compute = {
            .size = sizeof(qn_compute), .devices = r->devices, .shares = r->shares};
        qn_error err = {.status = QN_OK};
        const qn_status status = qn_compute_check(&compute, &err);
        if (status != r->status || !strstr(err.what, r->says) || !strstr(err.remedy, r->remedy) ||
            !*err.remedy || !*err.where)
            fail_msg("\"%s\" \"%s\": %d, %s (%s) at %s", r->devices, r->shares ? r->shares : "",
                     status, err.what, err.remedy, err.where);
    }
}

static void test_too_long(void **state) {
    (void)state;
    char word[300];
    qn_error err;
    memset(word, 'c', sizeof word - 1);
    word[sizeof word - 1] = 0;
    assert_int_equal(
        qn_compute_check(&(qn_compute){.size = sizeof(qn_compute), .devices = word}, &err),
        QN_USAGE);
    assert_non_null(strstr(err.what, "is too long"));
}

static void test_space(void **state) {
    (void)state;
    qn__member members[2];
    qn_error err;
    uint32_t count = 9;
    three_fakes();
    assert_int_equal(qn__members_of(&(qn_compute){.size = sizeof(qn_compute), .devices = "fake"},
                                    members, 2, &count, &err),
                     QN_USAGE);
    assert_int_equal(count, 0);
    assert_non_null(strstr(err.what, "at most 2 devices"));
}

static void test_timeout(void **state) {
    (void)state;
    qn_error err;
    assert_int_equal(
        qn_compute_check(&(qn_compute){.size = sizeof(qn_compute), .device_timeout = 0.5}, &err),
        QN_OK);
    assert_int_equal(
        qn_compute_check(&(qn_compute){.size = sizeof(qn_compute), .device_timeout = -1}, &err),
        QN_USAGE);
    assert_int_equal(
        qn_compute_check(&(qn_compute){.size = sizeof(qn_compute), .device_timeout = 1e9}, &err),
        QN_USAGE);
    assert_non_null(strstr(err.remedy, "`compute.device_timeout`"));
    assert_int_equal(
        qn_compute_check(&(qn_compute){.size = sizeof(qn_compute), .threads = -1}, &err), QN_USAGE);
    assert_int_equal(
        qn_compute_check(&(qn_compute){.size = sizeof(qn_compute), .isa = "mmx"}, &err), QN_USAGE);
    assert_int_equal(
        qn_compute_check(&(qn_compute){.size = sizeof(qn_compute), .gpu_isa = "dp4a"}, &err),
        QN_OK);
    assert_int_equal(
        qn_compute_check(&(qn_compute){.size = sizeof(qn_compute), .gpu_isa = "amx"}, &err),
        QN_USAGE);
    assert_non_null(strstr(err.remedy, "`compute.gpu_isa` takes auto, dp4a"));
}

static void test_public_view(void **state) {
    (void)state;
    qn_device_info info = {.size = sizeof(qn_device_info)};
    qn_device_rates rates = {.size = sizeof(qn_device_rates)};
    qn_error err;
    qn__fake_set(NULL);
    const uint32_t before = qn_device_count();
    assert_true(before >= 1);
    three_fakes();
    assert_int_equal(qn_device_count(), before + 3);
    assert_int_equal(qn_device_get(0, &info, &err), QN_OK);
    assert_string_equal(info.id, "cpu");
    assert_string_equal(info.type, "CPU");
    assert_true(info.automatic);
    assert_int_equal(qn_device_get(before + 3, &info, &err), QN_USAGE);
    assert_int_equal(qn_device_measure(before + 3, NULL, &rates, &err), QN_USAGE);
    assert_string_equal(qn_device_absence("cpu"), "");
    assert_string_equal(qn_device_absence("fake"), "");
    qn__fake_set(NULL); /* what a user has: the library knows no such kind */
    assert_string_equal(qn_device_absence("fake"), qn_device_absence("abacus"));
    assert_true(*qn_device_absence("abacus"));
    assert_int_equal(
        qn_compute_check(&(qn_compute){.size = sizeof(qn_compute), .devices = "fake"}, &err),
        QN_USAGE);
    assert_non_null(strstr(err.what, "no kind of device \"fake\""));
    assert_null(strstr(err.remedy, "fake"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),      cmocka_unit_test(test_auto),
        cmocka_unit_test(test_refusals),   cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_space),      cmocka_unit_test(test_timeout),
        cmocka_unit_test(test_public_view)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
