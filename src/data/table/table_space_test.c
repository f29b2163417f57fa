/* Where the values of a table are put while little memory is left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/system/available.h"
#include "data/table/table_space.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const rlim_t MIB = (rlim_t)1 << 20;

typedef enum place { MEMORY, CACHE, NOWHERE } place;

/* Lowers the limit of private memory until 64 MiB are left. 0: the machine has less. */
static int leave_little(void) {
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_DATA, &limit), 0);
    limit.rlim_cur = 512 * MIB;
    assert_int_equal(setrlimit(RLIMIT_DATA, &limit), 0);
    const uint64_t left = qn__available_memory();
    if (left < 64 * MIB)
        return 0;
    limit.rlim_cur += 64 * MIB - left;
    assert_int_equal(setrlimit(RLIMIT_DATA, &limit), 0);
    return qn__available_memory() > 62 * MIB;
}

static void check(uint64_t mib, int no_file, uint32_t ranks, place where, qn_error *err) {
    const qn__table_space space = {
        .no_file = no_file, .path = "x.npy", .entry = "", .ranks = ranks};
    qn_data data = {.items = mib, .features = 1 << 18, .type = QN_F32, .buffer = &space};
    if (!leave_little())
        skip();
    const qn_status status = qn__table_space_make(&data, err);
    const place found = status != QN_OK ? NOWHERE : data.in_file ? CACHE : MEMORY;
    data.release(data.memory);
    assert_true(status == QN_OK || status == QN_MEMORY);
    if (found != where)
        fail_msg("%u MiB of %u ranks: %d", (unsigned)mib, ranks, found);
}

/* 64 MiB are left: a table may take half of them, or all without a file; a part of R ranks half of
 * an Rth, or two thirds of all. */
static void places(void) {
    qn_error err;
    check(24, 0, 0, MEMORY, &err);
    check(24, 0, 1, MEMORY, &err);
    check(24, 0, 2, CACHE, &err);
    check(12, 0, 2, MEMORY, &err);
    check(12, 0, 4, CACHE, &err);
    check(56, 1, 0, MEMORY, &err);
    check(40, 1, 1, MEMORY, &err);
    check(56, 1, 1, NOWHERE, &err);
    assert_non_null(strstr(err.what, "56.0 MiB"));
    assert_non_null(strstr(err.remedy, "leave `data.no_cache` out"));
}

static void test_places(void **state) {
    (void)state;
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    skip(); /* a sanitizer needs more memory than that */
#endif
    char folder[] = "/tmp/quern-space-XXXXXX";
    assert_non_null(mkdtemp(folder));
    setenv("QUERN_CACHE", folder, 1);
    places();
    assert_int_equal(rmdir(folder), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_places)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
