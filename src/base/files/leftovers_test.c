/* Temporary files: those of dead writers are removed; those of live writers stay, whatever process
 * their names contain, and so do those of other hosts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/files/file.h"
#include "base/files/leftovers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64];

static char *in_folder(const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int make_folder(void **state) {
    (void)state;
    strcpy(folder, "/tmp/quern-leftovers-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

/* The number of files in the folder; removes them if asked. */
static int count_files(int removing) {
    int count = 0;
    DIR *stream = opendir(folder);
    for (struct dirent *entry; stream && (entry = readdir(stream)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        ++count;
        if (removing)
            unlinkat(dirfd(stream), entry->d_name, 0);
    }
    closedir(stream);
    return count;
}

static int remove_folder(void **state) {
    (void)state;
    count_files(1);
    return rmdir(folder);
}

static void make_file(const char *name) {
    const int file = open(in_folder(name), O_CREAT | O_WRONLY | O_EXCL, 0600);
    assert_true(file >= 0);
    close(file);
}

static int is_there(const char *name) { return access(in_folder(name), F_OK) == 0; }

/* A process that writes a file, reports it, and then waits. */
static pid_t start_writer(void) {
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        qn__writer *writer;
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || /* a failing test leaves no process */
            qn__writer_create(in_folder("model"), &writer, NULL) != QN_OK ||
            qn__writer_add(writer, "half", 4, NULL) != QN_OK || write(ready[1], "", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return child;
}

static void test_a_killed_writers_file_goes(void **state) {
    (void)state;
    for (int shared = 0; shared <= 1; ++shared) {
        const pid_t child = start_writer();
        qn__leftovers_remove_from(folder, shared);
        assert_int_equal(count_files(0), 1); /* its writer is alive */
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        assert_int_equal(count_files(0), 1);
        qn__leftovers_remove_from(folder, shared);
        assert_int_equal(count_files(0), 0);
    }
}

static int sweep(void *user) {
    (void)user;
    qn__leftovers_remove(folder);
    return 1;
}

/* Commit calls `may` when the file is closed already; it must still be locked. */
static void test_a_file_that_waits_for_its_place_stays(void **state) {
    (void)state;
    qn__writer *writer;
    assert_int_equal(qn__writer_create(in_folder("model"), &writer, NULL), QN_OK);
    assert_int_equal(qn__writer_add(writer, "whole", 5, NULL), QN_OK);
    qn__writer_ask(writer, sweep, NULL);
    assert_int_equal(qn__writer_commit(writer, NULL), QN_OK);
    assert_true(is_there("model"));
    assert_int_equal(count_files(0), 1);
}

/* On a shared file system this kernel has no information about the writers of another. */
static void test_files_of_other_kernels(void **state) {
    (void)state;
    char own[QN__TEMPORARY_NAME];
    static const char foreign[] = ".quern-7-0-1f-0123456789abcdef.tmp";
    static const char unknown[] = ".quern-7-0-1f-0.tmp";
    qn__temporary_name(own);
    if (access("/proc/sys/kernel/random/boot_id", R_OK) != 0)
        skip();
    make_file(own);
    make_file(foreign);
    make_file(unknown);
    qn__leftovers_remove_from(folder, 1);
    assert_false(is_there(own));
    assert_true(is_there(foreign) && is_there(unknown));
    qn__leftovers_remove_from(folder, 0);
    assert_int_equal(count_files(0), 0);
}

static void test_other_names_stay(void **state) {
    (void)state;
    static const char *const names[] = {".quern-7-0-1f-0123456789abcdef.tmp.x", ".quern-7-0-1f.tmp",
                                        ".quern-probe-abcdef", ".quern-x-0-1f-0123456789abcdef.tmp",
                                        "quern-7-0-1f-0123456789abcdef.tmp"};
    const int count = sizeof names / sizeof names[0];
    for (int i = 0; i < count; ++i)
        make_file(names[i]);
    /* A FIFO of that name is opened without blocking, and is not treated as a temporary file. */
    assert_int_equal(mkfifo(in_folder(".quern-7-0-1f-0123456789abcdef.tmp"), 0600), 0);
    qn__leftovers_remove_from(folder, 0);
    assert_int_equal(count_files(0), count + 1);
    qn__leftovers_remove("/nonexistent/folder");
}

/* Another process may treat a file as a leftover before its writer has locked it. */
static void test_a_file_that_is_gone_cannot_be_claimed(void **state) {
    (void)state;
    char name[QN__TEMPORARY_NAME];
    const int dir = open(folder, O_RDONLY | O_DIRECTORY);
    for (int again = 0; again <= 1; ++again) {
        qn__temporary_name(name);
        const int file = open(in_folder(name), O_CREAT | O_WRONLY | O_EXCL, 0600);
        qn__leftovers_remove(folder);
        assert_false(is_there(name));
        if (again)
            make_file(name); /* another process's file */
        assert_int_equal(qn__temporary_claim(dir, name, file), -1);
        assert_int_equal(errno, EEXIST);
        close(file);
    }
    close(dir);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_a_killed_writers_file_goes),
        IN_FOLDER(test_a_file_that_waits_for_its_place_stays),
        IN_FOLDER(test_files_of_other_kernels),
        IN_FOLDER(test_other_names_stay),
        IN_FOLDER(test_a_file_that_is_gone_cannot_be_claimed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
