/* Another program: its words, its output, its end, and one that does not end. */
#include "base/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

static qn_status run(const char *script, const char *text, double seconds, char *said, size_t room,
                     int *code, qn_error *err) {
    const char *argv[] = {"/bin/sh", "-c", script, NULL};
    return qn__process_run(argv, text, seconds, said, room, code, err);
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

static void test_too_slow(void **state) {
    char said[64];
    int code;
    qn_error err = {0};
    (void)state;
    assert_int_equal(run("echo now; exec sleep 100", "", 0.2, said, 64, &code, &err), QN_BUSY);
    assert_string_equal(said, "now\n");
    assert_non_null(strstr(err.what, "/bin/sh did not end within 0.2 seconds"));
    assert_true(*err.remedy != '\0');
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_end), cmocka_unit_test(test_too_slow)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
