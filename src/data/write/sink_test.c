/* Tables that grow: what is stored stays, and what comes again is left out. */
#include "data/write/sink.h"
#include "base/files/file.h"
#include "data/table/data.h"
#include "data/table/testing.h"
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

static const qn__sink_column columns[] = {
    {"file", QN__SINK_TEXT, 0}, {"line", QN__SINK_INTEGER, 0}, {"score", QN__SINK_SINGLE, 0}};
static const qn__sink_table table = {.name = "answers", .column = columns, .columns = 3, .keys = 2};

static qn__sink_cell text(const char *value) {
    return (qn__sink_cell){QN__SINK_TEXT, {.text = value}};
}

static qn__sink_cell whole(int64_t value) {
    return (qn__sink_cell){QN__SINK_INTEGER, {.whole = value}};
}

static void put(qn__sink *sink, const char *file, int64_t line, float score) {
    const qn__sink_cell row[] = {text(file), whole(line), {QN__SINK_SINGLE, {.number = score}}};
    assert_int_equal(qn__sink_put(sink, row, 1, NULL), QN_OK);
}

static int holds(qn__sink *sink, const char *file, int64_t line) {
    const qn__sink_cell key[] = {text(file), whole(line)};
    int found = -1;
    assert_int_equal(qn__sink_holds(sink, key, &found, NULL), QN_OK);
    return found;
}

static int64_t last(qn__sink *sink, const char *file) {
    const qn__sink_cell first = text(file);
    int64_t found = -2;
    assert_int_equal(qn__sink_last(sink, &first, &found, NULL), QN_OK);
    return found;
}

static qn__sink *reopen(qn__sink *sink, const char *to) {
    qn_error err = {0};
    qn__sink_close(sink);
    sink = NULL;
    if (qn__sink_open(to, &table, &sink, &err) != QN_OK)
        fail_msg("%s: %s", err.what, err.where);
    return sink;
}

/* Names with all that CSV and SQL treat specially. */
static void check_growing(const char *to) {
    static const char odd[] = "a \"b\", 'c'\nd\xC3\xA4.png";
    qn__sink *sink = reopen(NULL, to);
    put(sink, odd, 7, 0.1f);
    put(sink, "x.png", 1, 0.2f);
    put(sink, odd, 3, 0.3f);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(holds(sink, odd, 7), 1);
        assert_int_equal(holds(sink, odd, 3), 1);
        assert_int_equal(holds(sink, "x.png", 1), 1);
        assert_int_equal(holds(sink, "x.png", 7), 0);
        assert_int_equal(last(sink, odd), 7);
        assert_int_equal(last(sink, "y.png"), -1);
        put(sink, odd, 3, 0.9f); /* left out */
        sink = reopen(sink, to);
    }
    const qn__sink_cell two[] = {text("z"), whole(1), {QN__SINK_MISSING, {0}},
                                 text("z"), whole(1), {QN__SINK_SINGLE, {.number = 1}}};
    assert_int_equal(qn__sink_put(sink, two, 2, NULL), QN_OK);
    assert_int_equal(holds(sink, "z", 1), 1);
    qn__sink_close(sink);
}

static void read_back(const char *path, char to[400]) {
    qn__bytes bytes;
    assert_int_equal(qn__file_read(path, &bytes, NULL), QN_OK);
    snprintf(to, 400, "%.*s", (int)bytes.size, (const char *)bytes.data);
    qn__bytes_release(&bytes);
}

static void append_bytes(const char *path, const char *bytes) {
    FILE *file = fopen(path, "ab");
    fputs(bytes, file);
    fclose(file);
}

static const char csv_lines[] = "file,line,score\n\"a \"\"b\"\", 'c'\nd\xC3\xA4.png\",7,0.1\n"
                                "x.png,1,0.2\n\"a \"\"b\"\", 'c'\nd\xC3\xA4.png\",3,0.3\nz,1,\n";

static void test_csv(void **state) {
    (void)state;
    char path[64], content[400];
    strcpy(path, in_folder("grows.csv"));
    check_growing(path);
    read_back(path, content);
    assert_string_equal(content, csv_lines);
    /* A line without its end, also within quotes, is cut off; its row may come again. */
    append_bytes(path, "w,1,0.5\n\"x\n");
    qn__sink *sink = reopen(NULL, path), *other = NULL;
    assert_int_equal(holds(sink, "w", 1), 1);
    qn_error err;
    assert_int_equal(qn__sink_open(path, &table, &other, &err), QN_BUSY);
    assert_null(other);
    qn__sink_close(sink);
    read_back(path, content);
    assert_string_equal(content + strlen(csv_lines), "w,1,0.5\n");
    assert_int_equal(unlink(path), 0);
}

/* A full disk: what was written of the batch is cut off, and its rows are as new as before. */
static void test_a_failed_batch_comes_again(void **state) {
    (void)state;
    char path[64], content[400];
    strcpy(path, in_folder("full.csv"));
    struct stat info;
    struct rlimit before;
    qn__sink *sink = reopen(NULL, path);
    put(sink, "x", 1, 0.5f);
    const qn__sink_cell rows[] = {text("x"), whole(2), {QN__SINK_SINGLE, {.number = 0.5}},
                                  text("x"), whole(3), {QN__SINK_SINGLE, {.number = 0.5}}};
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit full = {(rlim_t)info.st_size + 10, before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &full), 0);
    const qn_status status = qn__sink_put(sink, rows, 2, NULL);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(status, QN_IO);
    assert_int_equal(holds(sink, "x", 1), 1);
    assert_int_equal(holds(sink, "x", 2), 0);
    assert_int_equal(qn__sink_put(sink, rows, 2, NULL), QN_OK);
    qn__sink_close(sink);
    read_back(path, content);
    assert_string_equal(content, "file,line,score\nx,1,0.5\nx,2,0.5\nx,3,0.5\n");
    assert_int_equal(unlink(path), 0);
}

/* Growing in a table of SQLite, beside one of others. */
static void test_sqlite(void **state) {
    (void)state;
    qn_error err;
    char path[64], to[128];
    strcpy(path, in_folder("grows.db"));
    snprintf(to, sizeof to, "sqlite:%s?table=my%%20\"answers\"", path);
    if (qn__sink_check(to, &err) == QN_UNSUPPORTED)
        skip(); /* libsqlite3 is not there */
    check_growing(to);
    assert_int_equal(unlink(path), 0);
    static qn__sink_column many[2000];
    for (int k = 0; k < 2000; k++)
        many[k] = columns[2];
    const qn__sink_table wide = {.name = "wide", .column = many, .columns = 2000};
    assert_int_equal(qn__sink_try(to, &wide, &err), QN_UNSUPPORTED);
    assert_non_null(strstr(err.what, "2000 columns, and a table there at most 1999"));
    assert_int_equal(access(path, F_OK), -1);
}

/* A file of another kind is not touched. */
static void test_other_files(void **state) {
    (void)state;
    char path[64], content[400];
    strcpy(path, in_folder("notes.txt"));
    append_bytes(path, "my notes");
    qn__sink *sink;
    qn_error err;
    assert_int_equal(qn__sink_open(path, &table, &sink, &err), QN_INPUT);
    assert_null(sink);
    read_back(path, content);
    assert_string_equal(content, "my notes");
    assert_int_equal(unlink(path), 0);
    static const char *const wrong[] = {"sqlit:r.db", "foo://x"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(qn__sink_check(wrong[i], &err), QN_USAGE);
        assert_non_null(strstr(err.remedy, "./"));
    }
    assert_int_equal(qn__sink_check("./sqlit:r.db", &err), QN_OK);
    assert_int_equal(qn__sink_check("12:30.csv", &err), QN_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_csv), cmocka_unit_test(test_a_failed_batch_comes_again),
        cmocka_unit_test(test_sqlite), cmocka_unit_test(test_other_files)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
