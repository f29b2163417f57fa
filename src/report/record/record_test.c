/* Run records: the lines of metrics.csv, which of them a resumed run keeps, and run.json. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/files/file.h"
#include "base/text/json.h"
#include "report/record/record.h"

#include <dirent.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define HEADER                                                                                     \
    "epoch,seconds,items_per_second,rate,train_loss,train_accuracy,valid_loss,valid_accuracy,"     \
    "test_loss,test_accuracy\n"
#define RUN "{\n  \"state\": \"finished\"\n}\n"
#define LINE1 "1,2.500000,40000,0.1,0.25,0.9,,,,\n"
#define LINE2 "2,2.500000,40000,0.1,0.25,0.9,0.5,0.75,,\n"

static char folder[64];

static char *in_folder(const char *name) {
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int make_folder(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "record_test.XXXXXX");
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state) {
    (void)state;
    DIR *d = opendir(folder);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.')
            unlink(in_folder(e->d_name));
    closedir(d);
    return rmdir(folder);
}

static void check_file(const char *name, const char *expected) {
    qn__bytes bytes;
    assert_int_equal(qn__file_read(in_folder(name), &bytes, NULL), QN_OK);
    char *text = calloc(1, bytes.size + 1);
    memcpy(text, bytes.data, bytes.size);
    assert_string_equal(text, expected);
    free(text);
    qn__bytes_release(&bytes);
}

static qn__record *open_record(uint64_t done) {
    static const char *const argument[] = {"quern", "train", "`train.model`", "dense 2 \"x\""};
    const qn__record_start start = {.recipe_json = "{\"contract\":1}",
                                    .isa = "avx2",
                                    .threads = 2,
                                    .arguments = 4,
                                    .argument = argument,
                                    .epochs_done = done};
    qn__record *r;
    qn_error err = {0};
    if (qn__record_open(folder, &start, &r, &err) != QN_OK)
        fail_msg("%s", err.what);
    return r;
}

static void write_epoch(qn__record *r, uint32_t epoch) {
    const qn_epoch_event event = {
        .epoch = epoch,
        .epochs = 9,
        .seconds = 2.5,
        .items_per_second = 40000,
        .learning_rate = 0.1,
        .train = {1000, 900, 0.25},
        .valid = {epoch == 2 ? 200u : 0u, epoch == 2 ? 150u : 0u, epoch == 2 ? 0.5 : NAN}};
    assert_int_equal(qn__record_epoch(r, &event, NULL), QN_OK);
}

static void test_lines(void **state) {
    (void)state;
    qn__record *r = open_record(0);
    check_file("metrics.csv", HEADER);
    write_epoch(r, 1);
    check_file("metrics.csv", HEADER LINE1); /* immediately, not at the end */
    write_epoch(r, 2);
    qn__record_close(r);
    check_file("metrics.csv", HEADER LINE1 LINE2);
    qn__record_close(NULL);
}

/* A comma as the decimal point would break every line. */
static void test_locale(void **state) {
    (void)state;
    if (setlocale(LC_ALL, "de_DE.UTF-8") == NULL && setlocale(LC_ALL, "fr_FR.UTF-8") == NULL)
        skip();
    test_lines(state);
    setlocale(LC_ALL, "C");
}

static void put(const char *name, const char *text) {
    FILE *f = fopen(in_folder(name), "wb");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void check_resumed(const char *before, uint64_t done, const char *after) {
    put("metrics.csv", before);
    qn__record_close(open_record(done));
    check_file("metrics.csv", after);
}

static void test_resumed(void **state) {
    (void)state;
    check_resumed(HEADER LINE1 LINE2, 2, HEADER LINE1 LINE2);
    check_resumed(HEADER LINE1 LINE2, 1, HEADER LINE1);
    check_resumed(HEADER LINE1 LINE2, 7, HEADER LINE1 LINE2);
    /* A truncated line, a duplicate, garbage, another header. */
    check_resumed(HEADER LINE1 "2,2.5", 2, HEADER LINE1);
    check_resumed(HEADER LINE1 LINE1 LINE2, 2, HEADER LINE1);
    check_resumed(HEADER LINE1 "x,1\n" LINE2, 2, HEADER LINE1);
    check_resumed(HEADER "\n\n", 2, HEADER);
    check_resumed("epoch,seconds,more\n" LINE1, 2, HEADER);
    check_resumed("", 2, HEADER);
    assert_int_equal(unlink(in_folder("metrics.csv")), 0);
    qn__record *r = open_record(3);
    write_epoch(r, 4);
    qn__record_close(r);
    check_file("metrics.csv", HEADER "4,2.500000,40000,0.1,0.25,0.9,,,,\n");
}

/* A new run does not destroy the previous record. */
static void test_previous(void **state) {
    (void)state;
    put("metrics.csv", HEADER LINE1);
    put("run.json", RUN);
    qn__record_close(open_record(0));
    check_file("metrics.csv", HEADER);
    check_file("previous-metrics.csv", HEADER LINE1);
    check_file("previous-run.json", RUN);
    assert_int_not_equal(access(in_folder("run.json"), F_OK), 0);
}

/* A user's file with one of these names is not replaced, nor renamed and replaced later. */
static void test_files_of_others(void **state) {
    (void)state;
    const char *const *name = qn__record_files;
    const qn__record_start start = {.threads = 1};
    for (; *name; name++) {
        qn__record *r;
        qn_error err;
        put(*name, "7 precious lines\n");
        assert_int_equal(qn__record_open(folder, &start, &r, &err), QN_IO);
        assert_null(r);
        assert_non_null(strstr(err.what, *name));
        assert_non_null(strstr(err.remedy, "`train.run_dir`"));
        check_file(*name, "7 precious lines\n");
        assert_int_equal(unlink(in_folder(*name)), 0);
    }
}

static int yes(void *user) {
    (void)user;
    return 1;
}

/* One process at a time; a dead one is not an obstacle, and a rank goes on for another one of its
 * run, which writes nothing more, although it is open. The lines that only the first one wrote, and
 * those that only the second one knows, are there. */
static void test_one_at_a_time(void **state) {
    (void)state;
    const qn__owner owner = {.id = 1, .may = yes}, other = {.id = 2, .may = yes};
    qn__record_start start = {.threads = 1, .owner = &owner};
    const qn_epoch_event event = {.epoch = 9};
    qn__text known = {0};
    qn__record *first, *second;
    qn_error err;
    put("metrics.csv", HEADER "1,of an earlier run\n");
    assert_int_equal(qn__record_open(folder, &start, &first, &err), QN_OK);
    write_epoch(first, 1);
    start.owner = &other;
    assert_int_equal(qn__record_open(folder, &start, &second, &err), QN_BUSY);
    char process[32];
    snprintf(process, sizeof process, "%ld", (long)getpid());
    assert_non_null(strstr(err.what, process));
    check_file("metrics.csv", HEADER LINE1);
    qn__text_add(&known, "%s", HEADER "1,known\n" LINE2 "3,too new\n");
    start.owner = &owner;
    start.epochs_done = 2;
    start.known = &known;
    assert_int_equal(qn__record_open(folder, &start, &second, &err), QN_OK);
    check_file("metrics.csv", HEADER LINE1 LINE2);
    check_file("previous-metrics.csv", HEADER "1,of an earlier run\n");
    assert_int_equal(qn__record_epoch(first, &event, &err), QN_BUSY);
    assert_int_equal(qn__record_end(first, NULL, NULL, "finished", &err), QN_BUSY);
    qn__record_close(first);
    check_file("metrics.csv", HEADER LINE1 LINE2);
    assert_int_not_equal(access(in_folder("run.json"), F_OK), 0);
    assert_int_equal(qn__record_end(second, NULL, NULL, "finished", &err), QN_OK);
    qn__record_close(second);
    qn__text_release(&known);
    put("run.lock", "4194305\n"); /* larger than any process number */
    qn__record_close(open_record(0));
    put("run.lock", "");
    qn__record_close(open_record(0));
}

static const qn__json_node *get(const qn__json *json, const char *key) {
    const qn__json_node *node = qn__json_get(qn__json_root(json), key);
    if (node == NULL)
        fail_msg("no key %s", key);
    return node;
}

static qn__json *read_run(void) {
    qn__bytes bytes;
    qn__json *json;
    qn_error err = {0};
    assert_int_equal(qn__file_read(in_folder("run.json"), &bytes, NULL), QN_OK);
    if (qn__json_parse((const char *)bytes.data, bytes.size, &json, &err) != QN_OK)
        fail_msg("%s in %.*s", err.what, (int)bytes.size, (const char *)bytes.data);
    qn__bytes_release(&bytes);
    return json;
}

static void test_run(void **state) {
    (void)state;
    const double busy[2] = {0.5, NAN};
    const qn_worker_report worker = {.name = "cpu",
                                     .grains = 77,
                                     .items_per_second = INFINITY,
                                     .busy = 0.75,
                                     .cores = 2,
                                     .core_busy = busy};
    const qn_worker_report *const workers[] = {&worker};
    const qn_train_report report = {.seconds = 12.5,
                                    .bound = NAN,
                                    .items = 60000,
                                    .steps = 938,
                                    .resumed_from = 5,
                                    .workers = 1,
                                    .worker = workers,
                                    .train = {60000, 59000, 0.125},
                                    .test = {100, 90, NAN}};
    qn__record *r = open_record(0);
    float number;
    uint64_t count;
    assert_int_equal(qn__record_end(r, &report, "abcd", "finished", NULL), QN_OK);
    qn__json *json = read_run();
    assert_string_equal(qn__json_string(get(json, "state")), "finished");
    assert_string_equal(qn__json_string(get(json, "model")), "abcd");
    assert_string_equal(qn__json_string(get(json, "isa")), "avx2");
    assert_string_equal(qn__json_string(get(json, "version")), "0.1.0");
    assert_int_equal(strlen(qn__json_string(get(json, "started"))), strlen("2026-11-21T02:00:00Z"));
    assert_string_equal(qn__json_string(qn__json_at(get(json, "command"), 3)), "dense 2 \"x\"");
    assert_non_null(qn__json_get(get(json, "recipe"), "contract"));
    assert_true(qn__json_float(get(json, "seconds"), &number) && number == 12.5f);
    assert_false(qn__json_float(get(json, "bound"), &number));
    assert_true(qn__json_u64(get(json, "resumed_from"), &count) && count == 5);
    assert_true(qn__json_float(qn__json_get(get(json, "train"), "loss"), &number));
    assert_true(number == 0.125f);
    assert_null(qn__json_get(get(json, "test"), "loss"));
    assert_false(qn__json_is_object(get(json, "valid")));
    const qn__json_node *first = qn__json_at(get(json, "workers"), 0);
    assert_true(qn__json_u64(qn__json_get(first, "grains"), &count) && count == 77);
    assert_int_equal(qn__json_count(qn__json_get(first, "core_busy")), 2);
    qn__json_free(json);

    /* An interrupted run has less to report. */
    assert_int_equal(qn__record_end(r, NULL, NULL, "interrupted", NULL), QN_OK);
    json = read_run();
    assert_string_equal(qn__json_string(get(json, "state")), "interrupted");
    assert_null(qn__json_get(qn__json_root(json), "seconds"));
    qn__json_free(json);
    qn__record_close(r);
}

static void test_failures(void **state) {
    (void)state;
    const qn__record_start start = {0};
    qn__record *r = (qn__record *)1;
    qn_error err;
    assert_int_equal(qn__record_open("no-such-folder/deeper", &start, &r, &err), QN_IO);
    assert_null(r);
    r = open_record(0);
    const qn_epoch_event event = {.epoch = 1};
    struct rlimit old, none;
    getrlimit(RLIMIT_FSIZE, &old);
    none = (struct rlimit){strlen(HEADER), old.rlim_max};
    setrlimit(RLIMIT_FSIZE, &none);
    const qn_status epoch = qn__record_epoch(r, &event, &err);
    const qn_status end = qn__record_end(r, NULL, NULL, "finished", NULL);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(epoch, QN_IO);
    assert_non_null(strstr(err.what, "metrics.csv"));
    assert_int_equal(end, QN_IO);
    assert_int_not_equal(access(in_folder("run.json"), F_OK), 0);
    qn__record_close(r);
}

/* A process that may not write changes nothing: not at the start, after an epoch, or at the end. */
static int so_often(void *left) { return (*(int *)left)-- > 0; }

static void test_asked(void **state) {
    (void)state;
    int left = 0;
    const qn__owner owner = {.id = 1, .may = so_often, .user = &left};
    qn__record_start start = {.owner = &owner};
    const qn_epoch_event event = {.epoch = 1};
    qn__record *r;
    put("metrics.csv", HEADER LINE1);
    put("run.json", RUN);
    assert_int_equal(qn__record_open(folder, &start, &r, NULL), QN_BUSY);
    assert_null(r);
    start.epochs_done = 1;
    assert_int_equal(qn__record_open(folder, &start, &r, NULL), QN_BUSY);
    check_file("metrics.csv", HEADER LINE1);
    left = 2;
    assert_int_equal(qn__record_open(folder, &start, &r, NULL), QN_OK);
    assert_int_equal(qn__record_epoch(r, &event, NULL), QN_BUSY);
    assert_int_equal(qn__record_end(r, NULL, NULL, "finished", NULL), QN_BUSY);
    check_file("metrics.csv", HEADER LINE1);
    check_file("run.json", RUN);
    assert_int_not_equal(access(in_folder("previous-metrics.csv"), F_OK), 0);
    left = 2;
    write_epoch(r, 2);
    assert_int_equal(qn__record_end(r, NULL, NULL, "finished", NULL), QN_OK);
    check_file("metrics.csv", HEADER LINE1 LINE2);
    qn__json_free(read_run());
    qn__record_close(r);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_lines),    TEST(test_locale),          TEST(test_resumed),
        TEST(test_previous), TEST(test_files_of_others), TEST(test_one_at_a_time),
        TEST(test_run),      TEST(test_failures),        TEST(test_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
