/* Quotas of control groups, read from simulated folders. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/system/cores.h"
#include "base/system/threads.h"

#include <ftw.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];

/* Writes a file below the root; creates its folders. */
static void put(const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int quota(void) {
    char groups[128], mount[128];
    snprintf(groups, sizeof groups, "%s/groups", root);
    snprintf(mount, sizeof mount, "%s/fs", root);
    return qn__quota_cores(groups, mount);
}

static int make_root(void **state) {
    (void)state;
    strcpy(root, "/tmp/quern-cores-test-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *place) {
    (void)info, (void)kind, (void)place;
    return remove(path);
}

static int remove_root(void **state) {
    (void)state;
    return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void test_version_2(void **state) {
    (void)state;
    assert_int_equal(quota(), 0);
    put("groups", "0::/jobs/one\n");
    assert_int_equal(quota(), 0);
    put("fs/jobs/one/cpu.max", "max 100000\n");
    assert_int_equal(quota(), 0);
    put("fs/jobs/one/cpu.max", "250000 100000\n");
    assert_int_equal(quota(), 3);
    put("fs/jobs/one/cpu.max", "1000 100000\n");
    assert_int_equal(quota(), 1);
    put("fs/jobs/one/cpu.max", "400000 100000\n");
    put("fs/jobs/cpu.max", "200000 100000\n"); /* the parent group has a smaller quota */
    assert_int_equal(quota(), 2);
    put("fs/cpu.max", "150000 150000\n");
    assert_int_equal(quota(), 1);
}

/* In a container the path may be the host's, which does not exist there. */
static void test_path_of_the_host(void **state) {
    (void)state;
    put("groups", "0::/../host/path\n");
    put("fs/cpu.max", "800000 100000\n");
    assert_int_equal(quota(), 8);
    put("groups", "0::/\n");
    assert_int_equal(quota(), 8);
}

static void test_version_1(void **state) {
    (void)state;
    put("groups", "12:cpuset:/set\n4:cpu,cpuacct:/jobs\n0::/\n");
    put("fs/cpu/jobs/cpu.cfs_quota_us", "-1\n");
    put("fs/cpu/jobs/cpu.cfs_period_us", "100000\n");
    assert_int_equal(quota(), 0);
    put("fs/cpu/jobs/cpu.cfs_quota_us", "550000\n");
    assert_int_equal(quota(), 6);
    put("groups", "12:cpuset:/jobs\n3:cpuacct:/jobs\n");
    assert_int_equal(quota(), 0);
}

static void test_nonsense(void **state) {
    (void)state;
    static const char *const values[] = {"",          "x",        "100000",
                                         "-5 100000", "5 0",      "5 -1",
                                         "max max",   "0 100000", "99999999999999999999 1"};
    put("groups", "0::/\n");
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        put("fs/cpu.max", values[i]);
        assert_int_equal(quota(), 0);
    }
    put("fs/cpu.max", "300000 100000");
    static const char *const groups[] = {"", "\n\n", "0", "0:", "0::", "0::no-slash", ":::\n"};
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        put("groups", groups[i]);
        assert_int_equal(quota(), 0);
    }
    put("groups", "0::/");
    assert_int_equal(quota(), 3);
}

static void test_cores_follow_the_mask(void **state) {
    (void)state;
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    const int cores = qn__cores();
    assert_in_range(cores, 1, CPU_COUNT(&before));
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &before))
            CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(qn__cores(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    assert_int_equal(qn__cores(), cores);
}

#define IN_ROOT(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_ROOT(test_version_2),
        IN_ROOT(test_path_of_the_host),
        IN_ROOT(test_version_1),
        IN_ROOT(test_nonsense),
        cmocka_unit_test(test_cores_follow_the_mask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
