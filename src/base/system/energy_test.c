/* Energy counters in a simulated folder: which are counted, wraparound, and cases that are not
 * a failure. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/system/energy.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static void put(const char *zone, const char *file, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, zone);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/%s/%s", folder, zone, file);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void zone(const char *name, const char *title, const char *energy, const char *range) {
    put(name, "name", title);
    put(name, "energy_uj", energy);
    put(name, "max_energy_range_uj", range);
}

static int make_folder(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/quern-energy-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    char command[96];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

/* Two packages and the memory of one; cores are part of their package, psys includes all. */
static void test_what_is_counted(void **state) {
    (void)state;
    qn__energy e;
    double joules = -1;
    zone("intel-rapl:0", "package-0\n", "1000000\n", "262143328850\n");
    zone("intel-rapl:1", "package-1\n", "5000000\n", "262143328850\n");
    zone("intel-rapl:0:0", "core\n", "700000\n", "262143328850\n");
    zone("intel-rapl:0:1", "dram\n", "300000\n", "65712999613\n");
    zone("intel-rapl:2", "psys\n", "9000000\n", "262143328850\n");
    zone("intel-rapl-mmio:0", "package-0\n", "1000000\n", "262143328850\n");
    zone("dtpm", "package-0\n", "1000000\n", "262143328850\n");
    assert_int_equal(qn__energy_open(&e, folder), 3);
    assert_int_equal(qn__energy_read(&e, &joules), 1);
    assert_true(joules == 0);
    put("intel-rapl:0", "energy_uj", "3500000\n");
    put("intel-rapl:1", "energy_uj", "5250000\n");
    put("intel-rapl:0:0", "energy_uj", "99999999\n");
    put("intel-rapl:0:1", "energy_uj", "400000\n");
    put("intel-rapl:2", "energy_uj", "99999999\n");
    assert_int_equal(qn__energy_read(&e, &joules), 1);
    assert_true(fabs(joules - (2.5 + 0.25 + 0.1)) < 1e-9);
}

static void test_begins_again(void **state) {
    (void)state;
    qn__energy e;
    double joules = 0;
    zone("intel-rapl:0", "package-0\n", "9000000\n", "10000000\n");
    assert_int_equal(qn__energy_open(&e, folder), 1);
    put("intel-rapl:0", "energy_uj", "500000\n");
    assert_int_equal(qn__energy_read(&e, &joules), 1);
    assert_true(fabs(joules - 1.5) < 1e-9);
    put("intel-rapl:0", "energy_uj", "750000\n");
    assert_int_equal(qn__energy_read(&e, &joules), 1);
    assert_true(fabs(joules - 1.75) < 1e-9);
    /* A value beyond the counter's range: it must not be added. */
    put("intel-rapl:0", "energy_uj", "20000000\n");
    assert_int_equal(qn__energy_read(&e, &joules), 1);
    const double before = joules;
    put("intel-rapl:0", "energy_uj", "1\n");
    assert_int_equal(qn__energy_read(&e, &joules), 1);
    assert_true(fabs(joules - before) < 1e-9);
}

static void test_absence(void **state) {
    (void)state;
    qn__energy e;
    double joules = 7;
    assert_int_equal(qn__energy_open(&e, "/nowhere/at/all"), 0);
    assert_int_equal(qn__energy_read(&e, &joules), 0);
    assert_int_equal(qn__energy_open(&e, folder), 0);
    put("intel-rapl:0", "name", "package-0\n"); /* no counter */
    put("intel-rapl:1", "name", "package-1\n");
    put("intel-rapl:1", "energy_uj", "what\n"); /* no number */
    put("intel-rapl:2", "energy_uj", "5\n");    /* no name */
    assert_int_equal(qn__energy_open(&e, folder), 0);
    assert_int_equal(qn__energy_read(&e, &joules), 0);
    assert_true(joules == 7);
}

/* A counter that becomes unreadable, as by permissions, ends the report. */
static void test_lost_on_the_way(void **state) {
    (void)state;
    qn__energy e;
    double joules = 7;
    char path[128];
    zone("intel-rapl:0", "package-0\n", "9000000\n", "10000000\n");
    assert_int_equal(qn__energy_open(&e, folder), 1);
    snprintf(path, sizeof path, "%s/intel-rapl:0/energy_uj", folder);
    unlink(path);
    assert_int_equal(qn__energy_read(&e, &joules), 0);
    assert_true(joules == 7);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_is_counted, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_begins_again, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_absence, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_lost_on_the_way, make_folder, remove_folder)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
