/* Reading and writing files: the old file survives every failure, and no temporary file stays. Each
 * test has its own folder, which must be empty except for what the test names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/files/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <quern/files.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64];
static char path[128];

static const char *in_folder(const char *name) {
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int make_folder(void **state) {
    (void)state;
    strcpy(folder, "/tmp/quern-file-test-XXXXXX");
    umask(022);
    return mkdtemp(folder) ? 0 : -1;
}

/* The names in the folder, separated by one space, for a folder of at most two. */
static const char *listing(void) {
    static char names[600];
    names[0] = 0;
    DIR *stream = opendir(folder);
    assert_non_null(stream);
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (names[0])
            strcat(names, " ");
        strcat(names, entry->d_name);
    }
    closedir(stream);
    return names;
}

static int remove_folder(void **state) {
    (void)state;
    chmod(folder, 0700);
    DIR *stream = opendir(folder);
    for (struct dirent *entry; stream && (entry = readdir(stream)) != NULL;)
        if (entry->d_name[0] != '.' || entry->d_name[1] == 'q')
            unlinkat(dirfd(stream), entry->d_name, 0);
    if (stream)
        closedir(stream);
    return rmdir(folder);
}

static qn_status write_text(const char *name, const char *text, qn_error *err) {
    qn__writer *writer;
    const qn_status status = qn__writer_create(name, &writer, err);
    if (status != QN_OK)
        return status;
    qn__writer_add(writer, text, strlen(text), NULL);
    return qn__writer_commit(writer, err);
}

static void check_contents(const char *name, const char *text) {
    qn__bytes bytes;
    qn_error err;
    if (qn__file_read(name, &bytes, &err) != QN_OK)
        fail_msg("%s", err.what);
    assert_int_equal(bytes.size, strlen(text));
    assert_memory_equal(bytes.data, text, bytes.size);
    qn__bytes_release(&bytes);
    assert_null(bytes.data);
}

static mode_t mode_of(const char *name) {
    struct stat info;
    assert_int_equal(stat(name, &info), 0);
    return info.st_mode & 07777;
}

static void test_write_and_read_back(void **state) {
    (void)state;
    qn_error err;
    const char *name = in_folder("a");
    assert_int_equal(write_text(name, "", &err), QN_OK);
    check_contents(name, "");
    assert_int_equal(write_text(name, "second", &err), QN_OK);
    check_contents(name, "second");
    assert_string_equal(listing(), "a");

    /* A drop leaves the old file. */
    qn__writer *writer;
    assert_int_equal(qn__writer_create(name, &writer, &err), QN_OK);
    assert_int_equal(qn__writer_add(writer, "third", 5, &err), QN_OK);
    check_contents(name, "second");
    assert_string_not_equal(listing(), "a"); /* the temporary file is in the same folder */
    qn__writer_drop(writer);
    qn__writer_drop(NULL);
    check_contents(name, "second");
    assert_string_equal(listing(), "a");
}

/* Pieces of many sizes, below and above the buffer. */
static void test_many_pieces(void **state) {
    (void)state;
    enum { SIZE = 3000000 };
    uint8_t *data = malloc(SIZE);
    assert_non_null(data);
    for (size_t i = 0; i < SIZE; i++)
        data[i] = (uint8_t)(i * 2654435761u >> 13);
    qn__writer *writer;
    assert_int_equal(qn__writer_create(in_folder("big"), &writer, NULL), QN_OK);
    for (size_t at = 0, size = 1; at < SIZE; at += size, size = size * 3 % 200003) {
        size = size < SIZE - at ? size : SIZE - at;
        assert_int_equal(qn__writer_add(writer, data + at, size, NULL), QN_OK);
    }
    assert_int_equal(qn__writer_commit(writer, NULL), QN_OK);
    qn__bytes bytes;
    assert_int_equal(qn__file_read(path, &bytes, NULL), QN_OK);
    assert_int_equal(bytes.size, SIZE);
    assert_memory_equal(bytes.data, data, SIZE);
    qn__bytes_release(&bytes);
    free(data);
}

/* The function for signal handlers before the process ends: it removes the temporary file and keeps
 * finished files. */
static void test_abandoned_files(void **state) {
    (void)state;
    qn__writer *done, *open_one;
    assert_int_equal(write_text(in_folder("whole"), "x", NULL), QN_OK);
    assert_int_equal(qn__writer_create(in_folder("a"), &done, NULL), QN_OK);
    assert_int_equal(qn__writer_commit(done, NULL), QN_OK);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(qn__writer_create(in_folder("b"), &open_one, NULL), QN_OK);
    assert_string_not_equal(listing(), "whole");
    qn_files_abandon();
    assert_string_equal(listing(), "whole");
    qn_error err;
    assert_int_equal(qn__writer_commit(open_one, &err), QN_IO);
    assert_string_equal(listing(), "whole");
}

static void test_permissions_are_kept(void **state) {
    (void)state;
    const char *name = in_folder("a");
    assert_int_equal(write_text(name, "x", NULL), QN_OK);
    assert_int_equal(mode_of(name), 0644);
    assert_int_equal(chmod(name, 0606), 0);
    assert_int_equal(write_text(name, "y", NULL), QN_OK);
    assert_int_equal(mode_of(name), 0606);
}

static void test_links_stay(void **state) {
    (void)state;
    char real[128];
    snprintf(real, sizeof real, "%s/real", folder);
    assert_int_equal(write_text(real, "x", NULL), QN_OK);
    const char *name = in_folder("link");
    assert_int_equal(symlink("real", name), 0);
    assert_int_equal(write_text(name, "through", NULL), QN_OK);
    check_contents(real, "through");
    struct stat info;
    assert_int_equal(lstat(name, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(unlink(real), 0);
    qn_error err;
    assert_int_equal(write_text(name, "lost", &err), QN_IO);
    assert_non_null(strstr(err.what, "link to nothing"));
    assert_string_equal(listing(), "link");
}

/* A limit on the size of files simulates a full disk: both end a write with an error, and this one
 * would also end the program by a signal. */
static void test_old_file_survives_a_failed_write(void **state) {
    (void)state;
    const char *name = in_folder("a");
    static uint8_t much[300000];
    struct rlimit before, tiny;
    qn_error err = {0}, later = {0};
    assert_int_equal(write_text(name, "precious", NULL), QN_OK);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    tiny = before;
    tiny.rlim_cur = 100000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tiny), 0);
    qn__writer *writer = NULL;
    const qn_status created = qn__writer_create(name, &writer, &err);
    qn_status status = qn__writer_add(writer, much, sizeof much, &err);
    const qn_status after = qn__writer_add(writer, much, 1, &later);
    const qn_status commit = qn__writer_commit(writer, &later);
    /* Also if the buffer delays the failure until the end. */
    tiny.rlim_cur = 10;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tiny), 0);
    qn_error small = {0};
    const qn_status second = write_text(name, "more than ten bytes", &small);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);

    assert_int_equal(created, QN_OK);
    assert_int_equal(status, QN_IO);
    assert_int_equal(after, QN_IO);
    assert_int_equal(commit, QN_IO);
    assert_int_equal(second, QN_IO);
    assert_non_null(strstr(err.what, name));
    assert_non_null(strstr(err.remedy, "ulimit -f"));
    assert_string_equal(later.what, err.what);
    assert_string_equal(small.what, err.what);
    check_contents(name, "precious");
    assert_string_equal(listing(), "a");
    sigset_t pending;
    assert_int_equal(sigpending(&pending), 0);
    assert_false(sigismember(&pending, SIGXFSZ));
}

/* A device for tests: an error in the writer must not replace the machine's own. So root creates
 * one of the same kind in the folder (other users cannot harm /dev). NULL if neither is possible;
 * on a file system without devices it is created but cannot be opened. */
static const char *device(const char *name, unsigned minor) {
    static char own[128];
    if (geteuid() != 0)
        snprintf(own, sizeof own, "/dev/%s", name);
    else if (mknod(strcpy(own, in_folder(name)), S_IFCHR | 0666, makedev(1, minor)) != 0)
        return NULL;
    const int file = open(own, O_WRONLY | O_CLOEXEC);
    if (file < 0)
        return NULL;
    close(file);
    return own;
}

static void check_is_device(const char *name) {
    struct stat info;
    assert_int_equal(stat(name, &info), 0);
    assert_true(S_ISCHR(info.st_mode));
}

static void test_devices(void **state) {
    (void)state;
    qn_error err = {0};
    const char *full = device("full", 7);
    if (!full) {
        print_message("skipped: no device can be made or opened here\n");
        skip();
    }
    assert_int_equal(write_text(full, "x", &err), QN_IO);
    assert_non_null(strstr(err.what, "full: No space left on device"));
    assert_non_null(strstr(err.remedy, "disk is full"));
    check_is_device(full);
    const char *null = device("null", 3);
    assert_non_null(null);
    assert_int_equal(write_text(null, "x", &err), QN_OK);
    check_is_device(null);
}

static void test_pipes(void **state) {
    (void)state;
    int ends[2];
    char name[64], got[8] = "";
    assert_int_equal(pipe(ends), 0);
    snprintf(name, sizeof name, "/dev/fd/%d", ends[1]);
    assert_int_equal(write_text(name, "by fd", NULL), QN_OK);
    assert_int_equal(read(ends[0], got, sizeof got - 1), 5);
    assert_string_equal(got, "by fd");

    /* There is no reader: an error, but no signal that ends the program. */
    close(ends[0]);
    qn_error err = {0};
    assert_int_equal(write_text(name, "x", &err), QN_IO);
    assert_non_null(strstr(err.remedy, "has ended"));
    close(ends[1]);

    const char *fifo = in_folder("fifo");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    const pid_t child = fork();
    if (child == 0)
        _exit(write_text(fifo, "by name", NULL) == QN_OK ? 0 : 1);
    check_contents(fifo, "by name");
    int result = -1;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    struct stat info;
    assert_int_equal(stat(fifo, &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
}

/* The alarm ends a test that waits for ever. */
static void test_fifo_without_writer(void **state) {
    (void)state;
    const char *fifo = in_folder("idle");
    qn__bytes bytes;
    qn_error err = {0};
    assert_int_equal(mkfifo(fifo, 0600), 0);
    alarm(60);
    assert_int_equal(qn__file_read(fifo, &bytes, &err), QN_IO);
    alarm(0);
    assert_non_null(strstr(err.what, "nobody writes to it"));
    assert_non_null(strstr(err.remedy, "regular file"));
    assert_null(bytes.data);

    /* A slow writer. */
    const pid_t child = fork();
    if (child == 0) {
        usleep(100000);
        const int out = open(fifo, O_WRONLY | O_CLOEXEC);
        usleep(100000);
        _exit(write(out, "late", 4) == 4 ? 0 : 1);
    }
    check_contents(fifo, "late");
    int result = -1;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
}

/* A shell's redirection keeps its file and its position in it. */
static void test_descriptor_of_a_file(void **state) {
    (void)state;
    const char *name = in_folder("log");
    const int file = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    assert_true(file >= 0);
    assert_int_equal(write(file, "first ", 6), 6);
    char by_number[64];
    snprintf(by_number, sizeof by_number, "/proc/self/fd/%d", file);
    assert_int_equal(write_text(by_number, "second", NULL), QN_OK);
    assert_int_equal(write(file, " third", 6), 6);
    close(file);
    check_contents(name, "first second third");
    qn_error err;
    assert_int_equal(write_text(by_number, "closed", &err), QN_IO);
}

static void test_what_cannot_be_written(void **state) {
    (void)state;
    qn_error err = {0};
    char longer[400];
    assert_int_equal(write_text(folder, "x", &err), QN_IO);
    assert_non_null(strstr(err.what, "it is a folder"));
    assert_int_equal(write_text(in_folder("no/such"), "x", &err), QN_IO);
    assert_non_null(strstr(err.what, "No such file"));
    assert_non_null(strstr(err.remedy, "check the path"));
    assert_int_equal(write_text(in_folder("a/"), "x", &err), QN_IO);
    assert_int_equal(write_text("", "x", &err), QN_IO);
    memset(longer, 'x', sizeof longer);
    longer[399] = 0;
    assert_int_equal(write_text(longer, "x", &err), QN_IO);
    assert_non_null(strstr(err.remedy, "shorter"));
    assert_string_equal(listing(), "");
}

/* As another user, because root may write everywhere. */
static int try_as_nobody(const char *name) {
    const pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
            _exit(99);
        qn_error err = {0};
        const qn_status status = write_text(name, "x", &err);
        _exit(status == QN_IO && strstr(err.remedy, "permissions") ? 0 : 1);
    }
    int result = -1;
    waitpid(child, &result, 0);
    return WIFEXITED(result) ? WEXITSTATUS(result) : -1;
}

static void test_permissions_are_respected(void **state) {
    (void)state;
    const char *name = in_folder("protected");
    assert_int_equal(write_text(name, "precious", NULL), QN_OK);
    assert_int_equal(chmod(name, 0444), 0);
    assert_int_equal(chmod(folder, 0777), 0);
    assert_int_equal(try_as_nobody(name), 0);
    check_contents(name, "precious");
    assert_int_equal(chmod(folder, 0555), 0);
    assert_int_equal(try_as_nobody(in_folder("new")), 0);
    assert_int_equal(chmod(folder, 0755), 0);
    assert_string_equal(listing(), "protected");
}

static void test_what_cannot_be_read(void **state) {
    (void)state;
    qn__bytes bytes = {.size = 7};
    qn_error err = {0};
    assert_int_equal(qn__file_read(in_folder("missing"), &bytes, &err), QN_IO);
    assert_non_null(strstr(err.what, "missing: No such file"));
    assert_int_equal(bytes.size, 0);
    assert_int_equal(qn__file_read(folder, &bytes, &err), QN_IO);
    assert_non_null(strstr(err.what, "it is a folder"));
    assert_int_equal(qn__file_read("/dev/zero", &bytes, &err), QN_IO);
    assert_non_null(strstr(err.what, "device"));
    assert_int_equal(qn__file_read(folder, &bytes, NULL), QN_IO);
    qn__bytes_release(&bytes);
    qn__bytes_release(NULL);
}

/* Its size is 0 by stat; its contents are not. */
static void test_files_of_the_system(void **state) {
    (void)state;
    qn__bytes bytes;
    if (access("/proc/self/status", R_OK) != 0) {
        print_message("skipped: /proc is not mounted\n");
        skip();
    }
    assert_int_equal(qn__file_read("/proc/self/status", &bytes, NULL), QN_OK);
    assert_true(bytes.size > 20);
    assert_memory_equal(bytes.data, "Name:", 5);
    qn__bytes_release(&bytes);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_write_and_read_back),
        IN_FOLDER(test_many_pieces),
        IN_FOLDER(test_abandoned_files),
        IN_FOLDER(test_permissions_are_kept),
        IN_FOLDER(test_links_stay),
        IN_FOLDER(test_old_file_survives_a_failed_write),
        IN_FOLDER(test_devices),
        IN_FOLDER(test_pipes),
        IN_FOLDER(test_fifo_without_writer),
        IN_FOLDER(test_descriptor_of_a_file),
        IN_FOLDER(test_what_cannot_be_written),
        IN_FOLDER(test_permissions_are_respected),
        IN_FOLDER(test_what_cannot_be_read),
        IN_FOLDER(test_files_of_the_system),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
