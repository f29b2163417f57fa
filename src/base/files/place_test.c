/* Which paths name one file. Each test has its own folder, which is the working folder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/files/place.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static int make_folder(void **state) {
    (void)state;
    strcpy(folder, "/tmp/quern-place-test-XXXXXX");
    if (!mkdtemp(folder) || chdir(folder) != 0 || mkdir("d", 0777) != 0 ||
        symlink("d", "to-d") != 0 || symlink("d/new", "to-new") != 0 ||
        symlink("to-new", "to-to-new") != 0 || symlink("loop", "loop") != 0)
        return -1;
    const int file = open("d/file", O_WRONLY | O_CREAT, 0666);
    return file < 0 || close(file) != 0 || link("d/file", "hard") != 0 ||
           symlink("d/file", "soft") != 0;
}

static int remove_folder(void **state) {
    (void)state;
    static const char *const names[] = {"hard", "soft",      "d/file", "to-d",
                                        "loop", "to-to-new", "to-new"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(names[i]);
    return rmdir("d") != 0 || chdir("/") != 0 || rmdir(folder) != 0;
}

static int same(const char *a, const char *b) {
    qn__place one, other;
    qn__place_of(a, &one);
    qn__place_of(b, &other);
    const int answer = qn__place_same(&one, &other);
    assert_int_equal(qn__place_same(&other, &one), answer);
    return answer;
}

/* All names are names of the file at this path in the test's folder. */
static void all_name(const char *const *name, size_t count, const char *path) {
    char whole[128];
    snprintf(whole, sizeof whole, "%s/%s", folder, path);
    for (size_t i = 0; i < count; i++)
        assert_true(same(name[i], whole));
}

static void test_files_that_exist(void **state) {
    (void)state;
    static const char *const names[] = {"d/file",    "./d//file", "d/../d/file", "d/./file",
                                        "to-d/file", "hard",      "soft"};
    all_name(names, sizeof names / sizeof *names, "d/file");
    assert_false(same("d", "d/file"));
    assert_true(same("to-d/", "d"));
    assert_true(same("/", "/.."));
}

static void test_files_that_will_exist(void **state) {
    (void)state;
    static const char *const names[] = {"d/new",     "d//./new",        "to-d/new",  "to-new",
                                        "to-to-new", "./to-d/../d/new", "d/x/../new"};
    all_name(names, sizeof names / sizeof *names, "d/new");
    assert_false(same("d/new", "d/newer"));
    assert_false(same("d/new", "new"));
    assert_false(same("d/new", "d/new/new"));
    assert_true(same("x/y/z", "./x//y/./z/"));
    assert_true(same("x/y/../z", "x/z"));
    assert_true(same("x/../d/new", "d/new"));
    assert_true(same("x/../../new", "../new"));
    assert_false(same("x/y/z", "x/z"));
    assert_false(same("loop", "d/new"));
    assert_false(same("", ""));
}

static void test_names_too_long(void **state) {
    (void)state;
    char name[8192];
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    assert_false(same(name, name));
    name[300] = '\0';
    assert_false(same(name, "d"));
    for (size_t i = 0; i < 4000; i += 2)
        memcpy(name + i, "x/", 2);
    strcpy(name + 4000, "y");
    assert_false(same(name, "d"));
}

static const char *within(const char *outer, const char *file, qn__place *buffer) {
    qn__place place;
    qn__place_of(outer, &place);
    qn__place_of(file, buffer);
    return qn__place_within(&place, buffer);
}

static void test_within(void **state) {
    (void)state;
    qn__place buffer;
    assert_string_equal(within("d", "d/file", &buffer), "file");
    assert_string_equal(within("to-d", "./d/new", &buffer), "new");
    assert_string_equal(within("d", "to-new", &buffer), "new");
    assert_string_equal(within("soon", "soon/new", &buffer), "new");
    assert_string_equal(within("soon/", "d/../soon//new", &buffer), "new");
    assert_null(within("d", "d", &buffer));
    assert_null(within("d", "d/x/new", &buffer));
    assert_null(within("soon", "soon", &buffer));
    assert_null(within("soon", "sooner", &buffer));
    assert_null(within("soon", "soon/x/new", &buffer));
    assert_null(within("d", "hard", &buffer));
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_files_that_exist),
        IN_FOLDER(test_files_that_will_exist),
        IN_FOLDER(test_names_too_long),
        IN_FOLDER(test_within),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
