/* The trace: records are written, in order, as JSON; those without space are counted; many threads
 * record at once. tests/test_trace.py checks the format of a whole run's file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/files/file.h"
#include "base/system/clock.h"
#include "base/system/trace.h"
#include "base/text/json.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const qn__trace_value none = {0};
static char path[] = "/tmp/quern-trace-XXXXXX";

/* The file as JSON. */
static qn__json *read_back(void) {
    qn__json *json;
    qn__bytes bytes;
    qn_error err;
    assert_int_equal(qn__file_read(path, &bytes, &err), QN_OK);
    assert_int_equal(qn__json_parse((const char *)bytes.data, bytes.size, &json, &err), QN_OK);
    qn__bytes_release(&bytes);
    return json;
}

static qn__json *written(const qn__trace *trace) {
    const qn__trace_place place = {.path = path};
    qn_error err;
    assert_int_equal(qn__trace_write(trace, &place, &err), QN_OK);
    return read_back();
}

static const qn__json_node *events(const qn__json *json) {
    return qn__json_get(qn__json_root(json), "traceEvents");
}

static const char *text_of(const qn__json_node *list, size_t index, const char *key) {
    const char *text = qn__json_string(qn__json_get(qn__json_at(list, index), key));
    return text ? text : "";
}

static void test_spans_come_in_order(void **state) {
    (void)state;
    qn__trace *t;
    assert_int_equal(qn__trace_create(0, &t, NULL), QN_OK);
    const double now = qn__now();
    const uint32_t one = qn__trace_track(t, "cpu \"quoted\""), two = qn__trace_track(t, "job");
    assert_int_equal(one, 0);
    assert_int_equal(two, 1);
    qn__trace_span(t, one, "inner", now + 2, now + 3, (qn__trace_value){"grains", 7}, none);
    qn__trace_mark(t, two, "who", now + 4, "chosen: a \"b\"\n");
    qn__trace_span(t, two, "outer", now + 1, now + 5, none, (qn__trace_value){"step", 9});
    qn__json *json = written(t);
    const qn__json_node *list = events(json);
    uint64_t value = 0;
    assert_int_equal(qn__json_count(list), 1 + 2 * 2 + 3);
    assert_string_equal(text_of(list, 5, "name"), "outer");
    assert_string_equal(text_of(list, 6, "name"), "inner");
    assert_string_equal(text_of(list, 7, "name"), "who");
    assert_string_equal(text_of(list, 7, "ph"), "i");
    assert_true(
        qn__json_u64(qn__json_get(qn__json_get(qn__json_at(list, 6), "args"), "grains"), &value));
    assert_int_equal(value, 7);
    assert_string_equal(
        qn__json_string(qn__json_get(qn__json_get(qn__json_at(list, 7), "args"), "text")),
        "chosen: a \"b\"\n");
    qn__json_free(json);
    qn__trace_free(t);
}

static void test_what_has_no_space_is_counted(void **state) {
    (void)state;
    qn__trace *t;
    uint64_t dropped = 0;
    assert_int_equal(qn__trace_create(10, &t, NULL), QN_OK);
    qn__trace_track(t, "a");
    for (int i = 0; i < 25; ++i)
        qn__trace_span(t, 0, "x", qn__now(), qn__now(), none, none);
    qn__json *json = written(t);
    assert_int_equal(qn__json_count(events(json)), 3 + 10);
    assert_true(qn__json_u64(
        qn__json_get(qn__json_get(qn__json_root(json), "otherData"), "dropped"), &dropped));
    assert_int_equal(dropped, 15);
    qn__json_free(json);
    qn__trace_free(t);
}

static void test_off(void **state) {
    (void)state;
    assert_int_equal(qn__trace_track(NULL, "a"), 0);
    qn__trace_span(NULL, 0, "x", 0, 1, none, none);
    qn__trace_mark(NULL, 0, "x", 0, "y");
    qn__trace_free(NULL);
}

enum { THREADS = 4, EACH = 20000 };

static void *record(void *context) {
    for (int i = 0; i < EACH; ++i) {
        const double now = qn__now();
        if (i % 10)
            qn__trace_span(context, (uint32_t)i % THREADS, "x", now, now, none, none);
        else
            qn__trace_mark(context, 0, "m", now, "text");
    }
    return NULL;
}

static void test_many_threads(void **state) {
    (void)state;
    qn__trace *t;
    pthread_t thread[THREADS];
    assert_int_equal(qn__trace_create(0, &t, NULL), QN_OK);
    for (int i = 0; i < THREADS; ++i)
        qn__trace_track(t, "a");
    for (int i = 0; i < THREADS; ++i)
        assert_int_equal(pthread_create(&thread[i], NULL, record, t), 0);
    for (int i = 0; i < THREADS; ++i)
        pthread_join(thread[i], NULL);
    qn__json *json = written(t);
    assert_int_equal(qn__json_count(events(json)), 1 + 2 * THREADS + THREADS * EACH);
    qn__json_free(json);
    qn__trace_free(t);
}

/* Two processes and one without events, on one time line. */
static void test_processes_stand_side_by_side(void **state) {
    (void)state;
    qn__trace *t;
    qn__text text[2] = {{0}};
    const qn__trace_process process[2] = {{.number = 1, .name = "rank 0 on \"a\""},
                                          {.number = 3, .name = "rank 2 on b", .later = 5}};
    assert_int_equal(qn__trace_create(0, &t, NULL), QN_OK);
    qn__trace_track(t, "cpu");
    qn__trace_span(t, 0, "step", qn__trace_begun(t) + 1, qn__trace_begun(t) + 2, none, none);
    for (int i = 0; i < 2; ++i)
        assert_int_equal(qn__trace_events(t, &process[i], &text[i], NULL), QN_OK);
    const qn__trace_events_of parts[3] = {
        {text[0].data, text[0].size}, {NULL, 0}, {text[1].data, text[1].size}};
    const qn__trace_place place = {.path = path};
    assert_int_equal(qn__trace_write_joined(parts, 3, 11, 2.5, &place, NULL), QN_OK);
    qn__json *json = read_back();
    const qn__json_node *list = events(json);
    uint64_t number = 0;
    float begun[2];
    assert_int_equal(qn__json_count(list), 2 * (1 + 2 + 1));
    for (size_t i = 0; i < 2; ++i) {
        const qn__json_node *name = qn__json_at(list, 4 * i), *span = qn__json_at(list, 4 * i + 3);
        assert_string_equal(qn__json_string(qn__json_get(qn__json_get(name, "args"), "name")),
                            process[i].name);
        assert_true(qn__json_u64(qn__json_get(span, "pid"), &number));
        assert_int_equal(number, process[i].number);
        assert_true(qn__json_float(qn__json_get(span, "ts"), &begun[i]));
    }
    assert_true(begun[0] == 1e6f && begun[1] == 6e6f); /* microseconds */
    assert_true(qn__json_u64(
        qn__json_get(qn__json_get(qn__json_root(json), "otherData"), "begun_us"), &number));
    assert_int_equal(number, 2500000);
    assert_true(qn__json_u64(
        qn__json_get(qn__json_get(qn__json_root(json), "otherData"), "dropped"), &number));
    assert_int_equal(number, 11);
    qn__json_free(json);
    qn__text_release(&text[0]);
    qn__text_release(&text[1]);
    qn__trace_free(t);
}

/* `may` returns 0: the file belongs to another process now and is not replaced. */
static int may_not(void *asked) {
    ++*(int *)asked;
    return 0;
}

static void test_asked(void **state) {
    (void)state;
    const qn__trace_events_of part = {"{}", 2};
    int asked = 0;
    const qn__trace_place place = {path, may_not, &asked};
    qn__trace *t;
    assert_int_equal(qn__trace_create(0, &t, NULL), QN_OK);
    qn__json_free(written(t));
    assert_int_equal(qn__trace_write_joined(&part, 1, 0, 0, &place, NULL), QN_BUSY);
    assert_int_equal(qn__trace_write(t, &place, NULL), QN_BUSY);
    assert_int_equal(asked, 2);
    qn__json *json = read_back();
    assert_int_equal(qn__json_count(events(json)), 1); /* not that of an empty text but "{}" */
    assert_string_equal(text_of(events(json), 0, "name"), "process_name");
    qn__json_free(json);
    qn__trace_free(t);
}

static int begin(void **state) {
    (void)state;
    const int file = mkstemp(path);
    return file < 0 ? -1 : close(file);
}

static int end(void **state) {
    (void)state;
    return unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spans_come_in_order),
        cmocka_unit_test(test_what_has_no_space_is_counted),
        cmocka_unit_test(test_off),
        cmocka_unit_test(test_many_threads),
        cmocka_unit_test(test_processes_stand_side_by_side),
        cmocka_unit_test(test_asked),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
