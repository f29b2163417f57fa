/* Checkpoints: round trips, and that no damage to the folder loses the last complete one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/files/file.h"
#include "base/files/leftovers.h"
#include "train/checkpoint.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 37 };

#define RECIPE                                                                                     \
    "{\"contract\":1,\"arith\":\"f32\",\"data\":\"ab\",\"items\":60,\"features\":7,\"lr\":0.1,"    \
    "\"batch\":64,\"seed\":1}"
#define OTHER                                                                                      \
    "{\"contract\":1,\"arith\":\"f32\",\"data\":\"ab\",\"items\":60,\"features\":7,\"lr\":0.2,"    \
    "\"batch\":32,\"seed\":1}"

typedef struct arrays {
    float parameter[N], one[N], two[N];
} arrays;

/* A state that differs from step to step in every member. */
static qn__snapshot state_of(uint64_t step, arrays *a) {
    for (int i = 0; i < N; ++i) {
        a->parameter[i] = (float)i / 3 + (float)step;
        a->one[i] = -(float)i / 7 - (float)step;
        a->two[i] = (float)i * 0x1p-140f;
    }
    return (qn__snapshot){.recipe_json = RECIPE,
                          .step = step,
                          .running = {-123456789012345 - (int64_t)step, 17 + step, 40},
                          .powers = {0.9f, 0x1.ffbe76p-1f},
                          .parameters = N,
                          .slots = 2,
                          .parameter = a->parameter,
                          .slot = {a->one, a->two}};
}

/* An empty one to load into. */
static qn__snapshot blank(arrays *a) {
    memset(a, 0, sizeof *a);
    return (qn__snapshot){.recipe_json = RECIPE,
                          .parameters = N,
                          .slots = 2,
                          .parameter = a->parameter,
                          .slot = {a->one, a->two}};
}

static char folder[64];

static char *in_folder(const char *name) {
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int make_folder(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "checkpoint_test.XXXXXX");
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state) {
    (void)state;
    DIR *d = opendir(folder);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.' || e->d_name[1] == 'q')
            unlink(in_folder(e->d_name));
    closedir(d);
    return rmdir(folder);
}

/* The names in the folder except the lock, sorted, separated by spaces. */
static const char *names(void) {
    static char text[1024];
    struct dirent **entry;
    const int count = scandir(folder, &entry, NULL, alphasort);
    text[0] = '\0';
    for (int i = 0; i < count; ++i) {
        const char *name = entry[i]->d_name;
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && strcmp(name, "lock") != 0)
            strcat(strcat(text, text[0] ? " " : ""), name);
        free(entry[i]);
    }
    free(entry);
    return text;
}

static qn__checkpoints *open_folder(void) {
    qn__checkpoints *c;
    qn_error err = {0};
    if (qn__checkpoints_open(folder, NULL, &c, &err) != QN_OK)
        fail_msg("%s", err.what);
    return c;
}

static void write_step(qn__checkpoints *c, uint64_t step) {
    arrays a;
    const qn__snapshot s = state_of(step, &a);
    qn_error err = {0};
    if (qn__checkpoints_write(c, &s, &err) != QN_OK)
        fail_msg("%s", err.what);
}

static char last_note[2048];
static int note_count;

static void take_note(void *user, const char *text) {
    assert_ptr_equal(user, folder);
    snprintf(last_note, sizeof last_note, "%s", text);
    ++note_count;
}

/* Loads the last and compares it with the state of `step`. */
static void check_last(qn__checkpoints *c, uint64_t step) {
    arrays a, expected;
    qn__snapshot got = blank(&a);
    const qn__snapshot want = state_of(step, &expected);
    qn_error err = {0};
    int found = 0;
    note_count = 0;
    if (qn__checkpoints_last(c, &got, &found, take_note, folder, &err) != QN_OK)
        fail_msg("%s, %s", err.what, err.where);
    assert_int_equal(found, 1);
    assert_int_equal(got.step, step);
    assert_memory_equal(&a, &expected, sizeof a);
    assert_memory_equal(&got.running, &want.running, sizeof want.running);
    assert_memory_equal(&got.powers, &want.powers, sizeof want.powers);
    assert_ptr_equal(got.parameter, a.parameter);
    assert_string_equal(got.recipe_json, RECIPE);
}

/* ----------------------------------------------------------------------------------- normal use */

static void test_round_trip(void **state) {
    (void)state;
    qn__checkpoints *c = open_folder();
    uint64_t count;
    arrays a;
    qn__snapshot got = blank(&a);
    int found = 7;
    assert_int_equal(qn__checkpoints_last(c, &got, &found, NULL, NULL, NULL), QN_OK);
    assert_int_equal(found, 0);
    write_step(c, 5);
    check_last(c, 5);
    assert_int_equal(note_count, 0);
    write_step(c, 1234567);
    write_step(c, 2345678);
    assert_string_equal(names(), "checkpoint-000001234567.safetensors "
                                 "checkpoint-000002345678.safetensors");
    check_last(c, 2345678);
    assert_int_equal(qn__checkpoints_count(c, &count, NULL), QN_OK);
    assert_int_equal(count, 2);
    qn__checkpoints_close(c);
    c = open_folder();
    check_last(c, 2345678);
    qn__checkpoints_close(c);
    qn__checkpoints_close(NULL);
}

/* Files with similar names are ignored; a new run removes checkpoints of later steps. */
static void test_other_files(void **state) {
    (void)state;
    static const char *const others[] = {
        "checkpoint-5.safetensors", "checkpoint-00000000000x.safetensors",
        "checkpoint-000000000005.safetensors.bak", "model.safetensors"};
    for (int i = 0; i < 4; ++i)
        close(open(in_folder(others[i]), O_CREAT | O_WRONLY, 0600));
    qn__checkpoints *c = open_folder();
    write_step(c, 900);
    write_step(c, 1000);
    qn__checkpoints_close(c);
    c = open_folder(); /* a new run */
    write_step(c, 10);
    write_step(c, 20);
    write_step(c, 30);
    check_last(c, 30);
    for (int i = 0; i < 4; ++i)
        assert_int_equal(unlink(in_folder(others[i])), 0);
    assert_string_equal(names(), "checkpoint-000000000020.safetensors "
                                 "checkpoint-000000000030.safetensors");
    qn__checkpoints_close(c);
}

/* A rank that was suspended writes a step that the others have long passed. */
static void test_what_others_wrote_later_stays(void **state) {
    (void)state;
    qn__checkpoints *c = open_folder();
    write_step(c, 40);
    close(open(in_folder("checkpoint-000000000050.safetensors"), O_CREAT | O_WRONLY, 0600));
    write_step(c, 41);
    assert_string_equal(names(), "checkpoint-000000000040.safetensors "
                                 "checkpoint-000000000041.safetensors "
                                 "checkpoint-000000000050.safetensors");
    qn__checkpoints_close(c);
}

static void test_no_folder(void **state) {
    (void)state;
    qn__checkpoints *c = (qn__checkpoints *)1;
    qn_error err;
    assert_int_equal(qn__checkpoints_open("no-such-folder/deeper", NULL, &c, &err), QN_IO);
    assert_null(c);
    assert_non_null(strstr(err.what, "no-such-folder/deeper"));
    close(open(in_folder("file"), O_CREAT | O_WRONLY, 0600));
    assert_int_equal(qn__checkpoints_open(in_folder("file"), NULL, &c, &err), QN_IO);
    char *inner = in_folder("new");
    assert_int_equal(qn__checkpoints_open(inner, NULL, &c, &err), QN_OK);
    qn__checkpoints_close(c);
    unlink(in_folder("new/lock"));
    assert_int_equal(rmdir(in_folder("new")), 0);
}

/* ----------------------------------------------------------------------------------- damage */

static uint8_t *read_whole(const char *path, size_t *size) {
    qn__bytes bytes;
    assert_int_equal(qn__file_read(path, &bytes, NULL), QN_OK);
    uint8_t *copy = malloc(bytes.size);
    memcpy(copy, bytes.data, bytes.size);
    *size = bytes.size;
    qn__bytes_release(&bytes);
    return copy;
}

static void put_whole(const char *path, const uint8_t *bytes, size_t size) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

/* The newest truncated after every 97th byte, and with every 97th byte changed. Each time the
 * previous one is found, with a note, unless the change has no meaning (the padding of its
 * header). */
static void test_damaged_newest(void **state) {
    (void)state;
    qn__checkpoints *c = open_folder();
    write_step(c, 50);
    write_step(c, 60);
    char path[512];
    size_t size;
    snprintf(path, sizeof path, "%s", in_folder("checkpoint-000000000060.safetensors"));
    uint8_t *good = read_whole(path, &size);
    for (size_t at = 0; at < size; at += 97) {
        put_whole(path, good, at);
        check_last(c, 50);
        assert_int_equal(note_count, 1);
        assert_non_null(strstr(last_note, path));
        assert_non_null(strstr(last_note, "is damaged ("));
    }
    for (size_t at = 0; at < size; at += 97)
        for (int bit = 1; bit < 256; bit *= 4) {
            good[at] = (uint8_t)(good[at] ^ bit);
            put_whole(path, good, size);
            good[at] = (uint8_t)(good[at] ^ bit);
            check_last(c, 50);
            assert_int_equal(note_count, 1);
        }
    put_whole(path, good, size);
    check_last(c, 60);
    free(good);
    qn__checkpoints_close(c);
}

static void test_all_damaged(void **state) {
    (void)state;
    qn__checkpoints *c = open_folder();
    write_step(c, 50);
    write_step(c, 60);
    put_whole(in_folder("checkpoint-000000000050.safetensors"), (const uint8_t *)"x", 1);
    put_whole(in_folder("checkpoint-000000000060.safetensors"), (const uint8_t *)"", 0);
    arrays a, before;
    qn__snapshot got = blank(&a);
    qn_error err;
    int found = 1;
    before = a;
    note_count = 0;
    assert_int_equal(qn__checkpoints_last(c, &got, &found, take_note, folder, &err), QN_FORMAT);
    assert_int_equal(found, 0);
    assert_int_equal(note_count, 2);
    assert_non_null(strstr(err.what, "none of the 2 checkpoints is complete"));
    assert_string_equal(err.where, folder);
    assert_non_null(strstr(err.remedy, "`train.checkpoint_dir`"));
    assert_memory_equal(&a, &before, sizeof a);
    qn__checkpoints_close(c);
}

/* A file with the name of another step would set the run to a state that it never had. */
static void test_renamed(void **state) {
    (void)state;
    qn__checkpoints *c = open_folder();
    write_step(c, 50);
    write_step(c, 60);
    char from[512];
    snprintf(from, sizeof from, "%s", in_folder("checkpoint-000000000060.safetensors"));
    assert_int_equal(rename(from, in_folder("checkpoint-000000000070.safetensors")), 0);
    check_last(c, 50);
    qn__checkpoints_close(c);
}

/* ------------------------------------------------------------------------------- another recipe */

static void test_mismatch(void **state) {
    (void)state;
    qn__checkpoints *c = open_folder();
    write_step(c, 50);
    arrays a;
    qn__snapshot got = blank(&a);
    qn_error err;
    int found = 1;
    got.recipe_json = OTHER;
    assert_int_equal(qn__checkpoints_last(c, &got, &found, NULL, NULL, &err), QN_MISMATCH);
    assert_int_equal(found, 0);
    assert_string_equal(err.what, "the checkpoint is of another run (there and here): "
                                  "lr 0.1 and 0.2, batch 64 and 32");
    assert_non_null(strstr(err.where, "checkpoint-000000000050.safetensors"));
    assert_non_null(strstr(err.remedy, "`train.checkpoint_dir`"));
    assert_int_equal(got.step, 0);
    got.recipe_json = RECIPE;
    got.slots = 1;
    assert_int_equal(qn__checkpoints_last(c, &got, &found, NULL, NULL, &err), QN_FORMAT);
    qn__checkpoints_close(c);
}

/* ------------------------------------------------------------------------- lock and leftovers */

static void test_lock_within_a_process(void **state) {
    (void)state;
    qn__checkpoints *c = open_folder(), *other = (qn__checkpoints *)1;
    qn_error err;
    char expected[128];
    assert_int_equal(qn__checkpoints_open(folder, NULL, &other, &err), QN_BUSY);
    assert_null(other);
    snprintf(expected, sizeof expected, "the checkpoint folder is in use by process %ld",
             (long)getpid());
    assert_string_equal(err.what, expected);
    assert_string_equal(err.where, folder);
    qn__checkpoints_close(c);
    other = open_folder();
    qn__checkpoints_close(other);
}

/* Another process holds the folder until it is killed. */
static void test_lock_of_another_process(void **state) {
    (void)state;
    int ready[2];
    char byte, expected[128];
    assert_int_equal(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        qn__checkpoints *mine;
        const int ok = qn__checkpoints_open(folder, NULL, &mine, NULL) == QN_OK;
        if (write(ready[1], ok ? "y" : "n", 1) == 1)
            pause();
        _exit(1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    qn__checkpoints *c;
    qn_error err;
    assert_int_equal(qn__checkpoints_open(folder, NULL, &c, &err), QN_BUSY);
    snprintf(expected, sizeof expected, "the checkpoint folder is in use by process %ld",
             (long)child);
    assert_string_equal(err.what, expected);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    c = open_folder();
    qn__checkpoints_close(c);
    close(ready[0]);
    close(ready[1]);
}

/* The process number of a child that has ended and was waited for is unused. */
/* The folder is cleared of temporary files of dead writers (base/files/leftovers_test.c tests
 * which). */
static void test_leftovers(void **state) {
    (void)state;
    char name[QN__TEMPORARY_NAME];
    qn__temporary_name(name);
    close(open(in_folder(name), O_CREAT | O_WRONLY, 0600));
    qn__writer *writer;
    assert_int_equal(qn__writer_create(in_folder("other"), &writer, NULL), QN_OK);
    qn__checkpoints *c = open_folder();
    assert_int_not_equal(access(in_folder(name), F_OK), 0);
    assert_int_equal(qn__writer_commit(writer, NULL), QN_OK);
    qn__checkpoints_close(c);
}

/* --------------------------------------------------------------------------- not a regular file */

static void check_refused(const qn_error *err, const char *name, const char *kind) {
    assert_non_null(strstr(err->what, name));
    assert_non_null(strstr(err->what, kind));
    assert_string_equal(err->where, in_folder(name));
    assert_non_null(strstr(err->remedy, "remove it"));
}

/* open would block on a FIFO; the alarm ends a test that blocks. */
static void test_a_fifo_is_no_checkpoint(void **state) {
    (void)state;
    static const char name[] = "checkpoint-000000000070.safetensors";
    arrays a;
    qn__snapshot got = blank(&a);
    qn_error err = {0};
    int found;
    qn__checkpoints *c = open_folder();
    write_step(c, 60);
    assert_int_equal(mkfifo(in_folder(name), 0600), 0);
    alarm(60);
    assert_int_equal(qn__checkpoints_last(c, &got, &found, NULL, NULL, &err), QN_IO);
    check_refused(&err, name, "FIFO");
    err = (qn_error){0};
    const qn__snapshot s = state_of(70, &a);
    assert_int_equal(qn__checkpoints_write(c, &s, &err), QN_IO);
    check_refused(&err, name, "FIFO");
    alarm(0);
    unlink(in_folder(name));
    assert_int_equal(symlink("/dev/zero", in_folder(name)), 0);
    assert_int_equal(qn__checkpoints_last(c, &got, &found, NULL, NULL, &err), QN_IO);
    check_refused(&err, name, "device");
    unlink(in_folder(name));
    check_last(c, 60);
    qn__checkpoints_close(c);
}

static void test_a_fifo_is_no_lock(void **state) {
    (void)state;
    qn__checkpoints *c;
    qn_error err = {0};
    assert_int_equal(mkfifo(in_folder("lock"), 0600), 0);
    alarm(60);
    assert_int_equal(qn__checkpoints_open(folder, NULL, &c, &err), QN_IO);
    check_refused(&err, "lock", "FIFO");
    alarm(0);
    assert_null(c);
}

/* Replaces libc's: fails as on a broken disk. */
static int broken;
struct dirent *readdir(DIR *stream) {
    static struct dirent *(*real)(DIR *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "readdir");
    if (!broken)
        return real(stream);
    errno = EIO;
    return NULL;
}

static void test_a_folder_that_cannot_be_read_is_not_empty(void **state) {
    (void)state;
    arrays a;
    qn__snapshot got = blank(&a);
    qn_error err = {0};
    uint64_t count;
    int found;
    qn__checkpoints *c = open_folder();
    write_step(c, 60);
    broken = 1;
    const qn_status counted = qn__checkpoints_count(c, &count, &err);
    const qn_status last = qn__checkpoints_last(c, &got, &found, NULL, NULL, &err);
    broken = 0;
    assert_int_equal(counted, QN_IO);
    assert_int_equal(last, QN_IO);
    assert_non_null(strstr(err.what, "cannot read the folder"));
    assert_non_null(strstr(err.what, "Input/output error"));
    qn__checkpoints_close(c);
}

static void test_the_newest(void **state) {
    (void)state;
    uint64_t step = 7;
    int found;
    qn_error err = {0};
    qn__checkpoints *c = open_folder();
    assert_int_equal(qn__checkpoints_newest(folder, &step, &found, &err), QN_OK);
    assert_false(found);
    assert_int_equal(step, 7);
    write_step(c, 9);
    write_step(c, 10);
    assert_int_equal(qn__checkpoints_newest(folder, &step, &found, &err), QN_OK);
    assert_true(found && step == 10);
    qn__checkpoints_close(c);
    assert_int_equal(qn__checkpoints_newest(in_folder("none"), &step, &found, &err), QN_IO);
}

/* At any size limit of the "full" disk the existing checkpoints stay complete, and no temporary
 * file remains. */
static void test_full_disk(void **state) {
    (void)state;
    qn__checkpoints *c = open_folder();
    write_step(c, 50);
    write_step(c, 60);
    size_t size;
    free(read_whole(in_folder("checkpoint-000000000060.safetensors"), &size));
    const char *before = strdup(names());
    struct rlimit old, limit;
    getrlimit(RLIMIT_FSIZE, &old);
    for (size_t at = 0; at < size; at += 97) {
        arrays a;
        const qn__snapshot s = state_of(70, &a);
        qn_error err = {0};
        limit = (struct rlimit){at, old.rlim_max};
        setrlimit(RLIMIT_FSIZE, &limit);
        const qn_status status = qn__checkpoints_write(c, &s, &err);
        setrlimit(RLIMIT_FSIZE, &old);
        assert_int_equal(status, QN_IO);
        assert_int_equal(err.status, QN_IO);
        assert_non_null(strstr(err.what, "checkpoint-000000000070.safetensors"));
        assert_string_equal(names(), before);
    }
    check_last(c, 60);
    write_step(c, 70);
    check_last(c, 70);
    free((void *)(uintptr_t)before);
    qn__checkpoints_close(c);
}

/* A process that may not write changes nothing; one that may not midway removes nothing. */
static int asked, may_so_often;
static int so_often(void *user) {
    (void)user;
    return asked++ < may_so_often;
}

static void test_asked(void **state) {
    (void)state;
    const qn__owner owner = {.id = 1, .may = so_often};
    qn__checkpoints *c;
    may_so_often = 1000;
    assert_int_equal(qn__checkpoints_open(folder, &owner, &c, NULL), QN_OK);
    for (uint64_t step = 10; step <= 30; step += 10)
        write_step(c, step);
    const char *before = strdup(names());
    for (may_so_often = 0; may_so_often <= 2; ++may_so_often) {
        arrays a;
        const qn__snapshot s = state_of(40, &a);
        asked = 0;
        assert_int_equal(qn__checkpoints_write(c, &s, NULL), may_so_often ? QN_OK : QN_BUSY);
        if (may_so_often == 0)
            assert_string_equal(names(), before);
        if (may_so_often == 1) {
            assert_int_equal(strncmp(names(), before, strlen(before)), 0);
            assert_non_null(strstr(names(), "checkpoint-000000000040.safetensors"));
        }
        if (may_so_often == 2)
            assert_string_not_equal(names(), before);
    }
    assert_null(strstr(names(), "checkpoint-000000000020.safetensors"));
    check_last(c, 40);
    free((void *)(uintptr_t)before);
    qn__checkpoints_close(c);
}

static int yes(void *user) {
    (void)user;
    return 1;
}

/* A rank that is stopped holds its flock. Another rank of its run takes the folder, other runs do
 * not; the first one then changes nothing, whatever the ranks say to it, and unlocks nothing. */
static void test_taken_from_a_stopped_rank(void **state) {
    (void)state;
    const qn__owner owner = {.id = 77, .may = yes}, other = {.id = 78, .may = yes};
    qn__checkpoints *old, *c, *third;
    qn_error err;
    arrays a;
    assert_int_equal(qn__checkpoints_open(folder, &owner, &old, &err), QN_OK);
    write_step(old, 10);
    assert_int_equal(qn__checkpoints_open(folder, &other, &third, &err), QN_BUSY);
    assert_int_equal(qn__checkpoints_open(folder, &owner, &c, &err), QN_OK);
    assert_true(qn__checkpoints_may(c) && !qn__checkpoints_may(old));
    const char *before = strdup(names());
    const qn__snapshot late = state_of(20, &a);
    assert_int_equal(qn__checkpoints_write(old, &late, &err), QN_BUSY);
    assert_non_null(strstr(err.what, "now belongs to another process"));
    assert_string_equal(names(), before);
    free((void *)(uintptr_t)before);
    write_step(c, 30);
    qn__checkpoints_close(old);
    assert_int_equal(qn__checkpoints_open(folder, NULL, &third, &err), QN_BUSY);
    assert_int_equal(qn__checkpoints_open(folder, &other, &third, &err), QN_BUSY);
    assert_true(qn__checkpoints_may(c));
    qn__checkpoints_close(c);
    check_last(c = open_folder(), 30);
    qn__checkpoints_close(c);
}

/* A flock may not reach another host, which then writes its own number into the same file; a lock
 * file that somebody removed was taken by nobody. */
static void test_lock_of_another_number(void **state) {
    (void)state;
    qn__checkpoints *c = open_folder();
    assert_true(qn__checkpoints_may(c));
    assert_int_equal(unlink(in_folder("lock")), 0);
    assert_true(qn__checkpoints_may(c));
    qn__checkpoints_close(c);
    c = open_folder();
    const int file = open(in_folder("lock"), O_WRONLY | O_TRUNC);
    assert_int_equal(write(file, "4194305 99 7\n", 13), 13);
    close(file);
    assert_false(qn__checkpoints_may(c));
    qn__checkpoints_close(c);
    static const char *const strange[] = {"1 2 3 4\n", "1 x\n", "1 2 zz\n",
                                          "1 99999999999999999999 0\n"};
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
        FILE *f = fopen(in_folder("lock"), "w");
        fputs(strange[i], f);
        fclose(f);
        assert_int_equal(qn__checkpoints_open(folder, NULL, &c, NULL), QN_IO);
    }
    static const char *const usual[] = {"", "123\n", "123", "123 4", "123 4 5f\n"};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        FILE *f = fopen(in_folder("lock"), "w");
        fputs(usual[i], f);
        fclose(f);
        qn__checkpoints_close(open_folder());
    }
}

/* A process killed at any time while it writes leaves a folder whose last checkpoint is
 * complete. */
static void test_killed(void **state) {
    (void)state;
    uint64_t furthest = 0;
    for (int round = 0; round < 25; ++round) {
        const pid_t child = fork();
        if (child == 0) {
            qn__checkpoints *c;
            arrays a;
            if (qn__checkpoints_open(folder, NULL, &c, NULL) == QN_OK)
                for (uint64_t step = furthest + 1;; ++step) {
                    const qn__snapshot s = state_of(step, &a);
                    qn__checkpoints_write(c, &s, NULL);
                }
            _exit(1);
        }
        usleep((useconds_t)(3000 + 1700 * round));
        /* On a slow machine none may be complete by then: the last child waits for one. */
        for (int i = 0; round == 24 && furthest == 0 && i < 6000 && !strstr(names(), "checkpoint-");
             ++i)
            usleep(10000);
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, NULL, 0), child);
        qn__checkpoints *c = open_folder();
        arrays a;
        qn__snapshot got = blank(&a);
        int found;
        note_count = 0;
        assert_int_equal(qn__checkpoints_last(c, &got, &found, take_note, folder, NULL), QN_OK);
        assert_int_equal(note_count, 0);
        assert_true(got.step >= furthest);
        if (found)
            check_last(c, got.step);
        furthest = got.step;
        assert_null(strstr(names(), ".tmp"));
        qn__checkpoints_close(c);
    }
    assert_true(furthest > 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_round_trip),
        TEST(test_other_files),
        TEST(test_what_others_wrote_later_stays),
        TEST(test_no_folder),
        TEST(test_damaged_newest),
        TEST(test_all_damaged),
        TEST(test_renamed),
        TEST(test_mismatch),
        TEST(test_lock_within_a_process),
        TEST(test_lock_of_another_process),
        TEST(test_a_fifo_is_no_checkpoint),
        TEST(test_a_fifo_is_no_lock),
        TEST(test_a_folder_that_cannot_be_read_is_not_empty),
        TEST(test_the_newest),
        TEST(test_leftovers),
        TEST(test_full_disk),
        TEST(test_asked),
        TEST(test_taken_from_a_stopped_rank),
        TEST(test_lock_of_another_number),
        TEST(test_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
