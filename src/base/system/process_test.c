/* Another program: its words, its output, its end, and one that does not end. */
#include "base/system/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static qn_status run(const char *script, const char *text, double seconds, char *said,
                     size_t capacity, int *code, qn_error *err) {
    const char *argv[] = {"/bin/sh", "-c", script, NULL};
    return qn__process_run(argv, text, NULL, QN__PROCESS_ERRORS_JOIN, seconds, said, capacity, code,
                           err);
}

static void test_end(void **state) {
    char said[16];
    int code;
    qn_error err = {0};
    (void)state;
    assert_int_equal(run("read a; echo \"<$a>\"; exit 7", "abc\n", 60, said, 16, &code, &err),
                     QN_OK);
    assert_string_equal(said, "<abc>\n");
    assert_int_equal(code, 7);
    assert_int_equal(
        run("echo 0123456789abcdefghij >&2; kill -9 $$", "", 60, said, 16, &code, &err), QN_OK);
    assert_string_equal(said, "0123456789abcde");
    assert_int_equal(code, 128 + 9);
}

/* On a busy machine the program begins late: what it says before the limit is there with a longer
 * limit at the latest. */
static void test_too_slow(void **state) {
    char said[64] = "", expected[64];
    (void)state;
    for (double limit = 0.2; limit < 60 && !*said; limit *= 4) {
        int code;
        qn_error err = {0};
        assert_int_equal(run("echo now; exec sleep 100", "", limit, said, 64, &code, &err),
                         QN_BUSY);
        snprintf(expected, sizeof expected, "/bin/sh did not end within %g seconds", limit);
        assert_non_null(strstr(err.what, expected));
        assert_true(*err.remedy != '\0');
    }
    assert_string_equal(said, "now\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_end), cmocka_unit_test(test_too_slow)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
