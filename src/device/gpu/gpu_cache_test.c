/* The cache of built programs: a load returns exactly what was stored, or nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/digest/sha256.h"
#include "base/memory.h"
#include "device/gpu/gpu.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HEADER = 64 }; /* bytes in front of the key */

static char base[64];
static char folder[128];
static char note[256];

static int enter(void **state) {
    (void)state;
    strcpy(base, "/tmp/quern-cache-test-XXXXXX");
    if (!mkdtemp(base))
        return -1;
    snprintf(folder, sizeof folder, "%s/a/b", base);
    umask(0);
    unsetenv("XDG_CACHE_HOME");
    return setenv("QUERN_CACHE", folder, 1);
}

static int drop(const char *path, const struct stat *info, int kind, struct FTW *where) {
    (void)info, (void)kind, (void)where;
    return remove(path);
}

static int leave(void **state) {
    (void)state;
    return nftw(base, drop, 8, FTW_DEPTH | FTW_PHYS);
}

static const char *file_of(const char *key) {
    static char path[256];
    uint8_t digest[32];
    char hex[65];
    qn__sha256_of(key, strlen(key), digest);
    qn__hex(digest, hex);
    snprintf(path, sizeof path, "%s/%s", folder, hex);
    return path;
}

static void store(const char *key, const char *program) {
    qn__gpu_cache_store(key, program, strlen(program), note);
}

/* Loads and compares; NULL expects nothing. */
static void expect(const char *key, const char *program) {
    void *got;
    size_t bytes;
    memset(note, 'x', sizeof note - 1);
    qn__gpu_cache_load(key, &got, &bytes, note);
    assert_int_equal(bytes, program ? strlen(program) : 0);
    if (program)
        assert_memory_equal(got, program, bytes);
    else
        assert_null(got);
    qn__free(got);
}

static void expect_note(const char *words) {
    if (!strstr(note, words))
        fail_msg("the note is \"%s\", without \"%s\"", note, words);
}

static void test_what_was_stored_comes_back(void **state) {
    (void)state;
    struct stat info;
    expect("key", NULL);
    assert_string_equal(note, "");
    store("key", "program");
    assert_string_equal(note, "");
    expect("key", "program");
    assert_string_equal(note, "");
    expect("key2", NULL);
    assert_string_equal(note, "");
    store("key", "another, longer program");
    expect("key", "another, longer program");
    assert_int_equal(stat(file_of("key"), &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
    assert_int_equal(stat(folder, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0700);
}

static void flip(const char *path, long at) {
    FILE *f = fopen(path, "r+");
    assert_non_null(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    const int byte = fgetc(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    fputc(byte ^ 1, f);
    fclose(f);
}

/* A change of any byte of the file, or of its length, is detected. */
static void test_broken_files_are_ignored_and_replaced(void **state) {
    (void)state;
    struct stat info;
    store("key", "program");
    assert_int_equal(stat(file_of("key"), &info), 0);
    assert_int_equal(info.st_size, HEADER + 3 + 7);
    for (long at = 0; at < info.st_size; ++at) {
        flip(file_of("key"), at);
        expect("key", NULL);
        expect_note("ignored");
        flip(file_of("key"), at);
        expect("key", "program");
    }
    for (long size = 0; size < info.st_size; ++size) {
        assert_int_equal(truncate(file_of("key"), size), 0);
        expect("key", NULL);
        expect_note("broken");
        store("key", "program");
        assert_string_equal(note, "");
    }
    assert_int_equal(truncate(file_of("key"), info.st_size + 1), 0);
    expect("key", NULL);
    expect_note("broken");
}

/* A valid file under the name of another key. */
static void test_the_key_is_compared(void **state) {
    (void)state;
    char other[256];
    store("one", "program of one");
    snprintf(other, sizeof other, "%s", file_of("one"));
    assert_int_equal(rename(other, file_of("two")), 0);
    expect("two", NULL);
    expect_note("broken");
}

static void test_what_others_may_write_is_not_trusted(void **state) {
    (void)state;
    store("key", "program");
    assert_int_equal(chmod(file_of("key"), 0620), 0);
    expect("key", NULL);
    expect_note("others may write");
    store("key", "program");
    expect("key", "program");
    assert_int_equal(chmod(folder, 0770), 0);
    expect("key", NULL);
    expect_note("others may write");
    store("key", "program");
    expect_note("not cached");
    assert_int_equal(chmod(folder, 0755), 0);
    expect("key", "program");
}

static void test_files_of_others_are_not_trusted(void **state) {
    (void)state;
    if (geteuid() != 0) {
        print_message("only root can give a file away\n");
        skip();
    }
    store("key", "program");
    assert_int_equal(chown(file_of("key"), 65534, 65534), 0);
    expect("key", NULL);
    expect_note("belongs to another user");
    store("key", "mine");
    expect("key", "mine");
    assert_int_equal(chown(folder, 65534, 65534), 0);
    expect("key", NULL);
    expect_note("belongs to another user");
}

static void test_links_and_pipes_are_not_followed(void **state) {
    (void)state;
    char other[256];
    store("one", "program of one");
    snprintf(other, sizeof other, "%s", file_of("one"));
    assert_int_equal(symlink(other, file_of("two")), 0);
    expect("two", NULL);
    expect_note("ignored");
    store("two", "program of two");
    expect("one", "program of one");
    expect("two", "program of two");
    assert_int_equal(mkfifo(file_of("three"), 0600), 0);
    expect("three", NULL);
    expect_note("not a regular file");
    store("three", "program of three");
    expect("three", "program of three");
    assert_int_equal(mkdir(file_of("four"), 0700), 0);
    expect("four", NULL);
    store("four", "program of four");
    expect_note("not cached");
}

static void test_folders_that_cannot_be_used(void **state) {
    (void)state;
    char file[160], inside[200];
    snprintf(file, sizeof file, "%s/file", base);
    close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    snprintf(inside, sizeof inside, "%s/below", file);
    setenv("QUERN_CACHE", inside, 1);
    store("key", "program");
    expect_note("not cached");
    expect("key", NULL);
    setenv("QUERN_CACHE", file, 1);
    store("key", "program");
    expect_note("is not a folder");
    expect("key", NULL);
    if (geteuid() != 0) { /* root may write everywhere */
        setenv("QUERN_CACHE", base, 1);
        chmod(base, 0500);
        store("key", "program");
        expect_note("not cached");
        chmod(base, 0700);
    }
}

static void test_which_folder(void **state) {
    (void)state;
    static const char *const places[] = {"%s/xdg/quern", "%s/home/.cache/quern"};
    char home[128], xdg[128];
    snprintf(home, sizeof home, "%s/home", base);
    snprintf(xdg, sizeof xdg, "%s/xdg", base);
    char *const before = getenv("HOME") ? strdup(getenv("HOME")) : NULL;
    setenv("HOME", home, 1);
    for (int i = 0; i < 2; ++i) {
        setenv("QUERN_CACHE", "", 1);
        setenv("XDG_CACHE_HOME", i == 0 ? xdg : "relative", 1);
        store("key", "program");
        assert_string_equal(note, "");
        snprintf(folder, sizeof folder, places[i], base);
        assert_int_equal(access(file_of("key"), R_OK), 0);
    }
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    store("key", "program");
    expect_note("no folder is named");
    expect("key", NULL);
    if (before)
        setenv("HOME", before, 1);
    free(before);
}

/* Processes store their own programs under one key and load what is there: always a complete
 * program. Each program is one letter, repeated as often as the letter's code. */
static int one_process(int letter) {
    char program[9000];
    const size_t size = 1000 + 300 * (size_t)(letter - 'a');
    int bad = 0;
    memset(program, letter, size);
    for (int round = 0; round < 40; ++round) {
        void *got;
        size_t bytes;
        qn__gpu_cache_store("key", program, size, note);
        bad |= note[0] != '\0';
        qn__gpu_cache_load("key", &got, &bytes, note);
        const char *text = got;
        bad |= !got || bytes != 1000 + 300 * (size_t)(text[0] - 'a');
        for (size_t i = 0; !bad && i < bytes; ++i)
            bad |= text[i] != text[0];
        qn__free(got);
    }
    return bad;
}

static void test_many_processes(void **state) {
    (void)state;
    enum { PROCESSES = 6 };
    pid_t child[PROCESSES];
    for (int i = 0; i < PROCESSES; ++i) {
        child[i] = fork();
        assert_true(child[i] >= 0);
        if (child[i] == 0)
            _exit(one_process('a' + i));
    }
    for (int i = 0; i < PROCESSES; ++i) {
        int status;
        assert_int_equal(waitpid(child[i], &status, 0), child[i]);
        assert_int_equal(status, 0);
    }
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter, leave)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_what_was_stored_comes_back),
        IN_FOLDER(test_broken_files_are_ignored_and_replaced),
        IN_FOLDER(test_the_key_is_compared),
        IN_FOLDER(test_what_others_may_write_is_not_trusted),
        IN_FOLDER(test_files_of_others_are_not_trusted),
        IN_FOLDER(test_links_and_pipes_are_not_followed),
        IN_FOLDER(test_folders_that_cannot_be_used),
        IN_FOLDER(test_which_folder),
        IN_FOLDER(test_many_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
