/* What a checkpoint of a run of one iteration costs: the items that are new. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <quern/kernel.h>
#include <unistd.h>

enum { ITEMS = 1 << 18, BYTES = 8 * ITEMS };

/* Bytes that this process has passed to the system so far; 0: the system does not say. */
static unsigned long long written(void) {
    char line[64];
    unsigned long long bytes = 0;
    FILE *io = fopen("/proc/self/io", "re");
    while (io && fgets(line, sizeof line, io))
        if (sscanf(line, "wchar: %llu", &bytes) == 1)
            break;
    if (io)
        fclose(io);
    return bytes;
}

/* It takes so long that there are many rounds. */
static const char text[] = "INDEX(i); OUTPUT(double, y); COUNT(odd);\nKERNEL {\n"
                           "double s = 0; for (int k = 0; k < 10000; k++) s = s * 0.5 + 1;\n"
                           "y = 0.5 * (double)i + 0 * s; odd = (i & 1) != 0; }";

static void test_cost(void **state) {
    const uint64_t shape[1] = {ITEMS};
    char folder[] = "/tmp/quern-done-XXXXXX", path[64];
    double *y = calloc(ITEMS, sizeof *y);
    qn_kernel *k;
    qn_error err = {0};
    qn_kernel_options o;
    (void)state;
    assert_non_null(y);
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/state", folder);
    assert_int_equal(qn_kernel_read(text, "k.c", &k, &err), QN_OK);
    assert_int_equal(qn_kernel_bind(k, "y", y, shape, 1, &err), QN_OK);
    qn_kernel_options_init(&o);
    o.threads = 1;
    o.grain = 512;
    o.checkpoint = path;
    o.checkpoint_seconds = 1e-9; /* after each round */
    const unsigned long long before = written();
    const qn_status status = qn_kernel_run(k, &o, &err);
    if (status == QN_UNSUPPORTED) { /* no compiler */
        rmdir(folder);
        skip();
    }
    assert_int_equal(status, QN_OK);
    const unsigned long long bytes = written() - before;
    if (before > 0 && bytes > BYTES + BYTES / 2)
        fail_msg("%llu bytes were written for %d", bytes, BYTES);
    for (int i = 0; i < ITEMS; i++)
        y[i] = 0;
    o.resume = 1;
    assert_int_equal(qn_kernel_run(k, &o, &err), QN_OK);
    qn_kernel_report report = {.size = sizeof report};
    assert_int_equal(qn_kernel_report_get(k, &report, &err), QN_OK);
    assert_true(report.resumed_from > ITEMS / 2 && report.resumed_from < ITEMS);
    for (int i = 0; i < ITEMS; i++)
        assert_true(y[i] == 0.5 * i);
    qn_kernel_result result = {.size = sizeof result};
    assert_int_equal(qn_kernel_result_get(k, "odd", &result, &err), QN_OK);
    assert_string_equal(result.value, "131072");
    qn_kernel_free(k);
    free(y);
    unlink(path);
    rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cost)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
