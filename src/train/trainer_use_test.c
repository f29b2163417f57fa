/* Calls that a training refuses: those of its own callbacks, and those of a child process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <quern/quern.h>
#include <sys/wait.h>

enum { ITEMS = 120 };

static qn_data *digits;
static char folder[] = "trainer_use_XXXXXX";

/* What the callbacks do, and how it went. */
typedef struct watch {
    qn_train *train;
    int calls;  /* 1: they call what is refused; 2: they take a model */
    int called; /* number of callbacks */
    int wrong;  /* calls that did not end as they should */
} watch;

static void must(qn_status status, const qn_error *err) {
    if (status != QN_OK)
        fail_msg("%s: %s (%s)", qn_status_name(status), err->what, err->where);
}

/* 1 unless the call was refused in words that name the function and say why, and the remedy too. */
static int unlike(qn_status status, const qn_error *err, const char *function, const char *why,
                  const char *remedy) {
    return status != QN_USAGE || !strstr(err->what, function) || !strstr(err->what, why) ||
           !strstr(err->remedy, remedy);
}

/* All that runs or writes. Returns how many were not refused as they should be. */
static int call_all(qn_train *t, const char *why, const char *remedy) {
    qn_error err = {0};
    qn_train_report report = {.size = sizeof report};
    qn_saved saved = {.size = sizeof saved};
    char file[64];
    const char *const place[] = {file};
    snprintf(file, sizeof file, "%s/model", folder);
    int wrong = unlike(qn_train_run(t, &err), &err, "qn_train_run", why, remedy);
    wrong += unlike(qn_train_checkpoint(t, folder, &err), &err, "qn_train_checkpoint", why, remedy);
    wrong += unlike(qn_train_save(t, place, 1, &saved, &err), &err, "qn_train_save", why, remedy);
    wrong +=
        unlike(qn_train_report_get(t, &report, &err), &err, "qn_train_report_get", why, remedy);
    wrong += access(file, F_OK) == 0;
    return wrong;
}

static void watch_call(watch *w) {
    qn_model *model = NULL;
    ++w->called;
    if (w->calls == 1) {
        w->wrong += call_all(w->train, "has not returned", "qn_train_stop");
        qn_train_close(w->train); /* does nothing */
    }
    if (w->calls == 2)
        w->wrong += qn_train_model(w->train, &model, NULL) != QN_OK || !model;
    qn_model_free(model);
}

static void on_step(void *user, const qn_step_event *event) {
    (void)event;
    watch_call(user);
}

static void on_epoch(void *user, const qn_epoch_event *event) {
    (void)event;
    watch_call(user);
}

static qn_train *opened(watch *w) {
    qn_train_options o;
    qn_error err = {0};
    qn_train_options_init(&o);
    o.model = "dense 12 relu dropout 0.2; dense 10 softmax";
    o.optimizer = "adam";
    o.batch = 24;
    o.grain = 8;
    o.epochs = 2;
    o.compute.threads = 2;
    o.compute.devices = "cpu";
    o.user = w;
    o.on_step = on_step;
    o.on_epoch = on_epoch;
    must(qn_train_open(&o, digits, NULL, NULL, &w->train, &err), &err);
    return w->train;
}

/* The digest of the model at the end. Closes the training. */
static void finish(watch *w, char digest[65]) {
    qn_error err = {0};
    qn_model *model;
    must(qn_train_run(w->train, &err), &err);
    must(qn_train_model(w->train, &model, &err), &err);
    strcpy(digest, qn_model_digest(model));
    qn_model_free(model);
    qn_train_close(w->train);
}

static void test_callbacks(void **state) {
    (void)state;
    char plain[65], digest[65];
    watch w = {0};
    opened(&w);
    finish(&w, plain);
    for (int calls = 1; calls <= 2; ++calls) {
        w = (watch){.calls = calls};
        opened(&w);
        finish(&w, digest);
        assert_int_equal(w.called, 2 * (ITEMS / 24) + 2);
        assert_int_equal(w.wrong, 0);
        assert_string_equal(digest, plain);
    }
}

/* What a child does with its parent's training: the number of wrong answers. */
static int use_in_child(qn_train *t) {
    qn_error err = {0};
    qn_model *model = NULL;
    uint32_t workers = 7;
    alarm(60); /* instead of waiting for threads that are not there */
    int wrong = call_all(t, "is a child of it", "fork()");
    wrong +=
        unlike(qn_train_model(t, &model, &err), &err, "qn_train_model", "is a child", "fork()");
    wrong += model != NULL;
    wrong += qn_train_workers(t, &workers) != NULL || workers != 0;
    qn_train_stop(t); /* is the child's own */
    qn_train_close(t);
    return wrong;
}

static void test_child(void **state) {
    (void)state;
    char plain[65], digest[65];
    int how = 0;
    watch w = {0};
    opened(&w);
    finish(&w, plain);
    w = (watch){0};
    opened(&w);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(use_in_child(w.train));
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
    finish(&w, digest);
    assert_string_equal(digest, plain);
}

static int begin(void **state) {
    (void)state;
    qn_error err;
    assert_non_null(mkdtemp(folder));
    must(qn_data_synth_digits(1, 0, ITEMS, &digits, &err), &err);
    return 0;
}

static int end(void **state) {
    (void)state;
    qn_data_close(digits);
    return rmdir(folder); /* nothing was written */
}

/* A list of epochs, of an older caller too, and one without space. */
static void test_epochs_are_kept(void **state) {
    (void)state;
    enum { OLDER = offsetof(qn_epoch_event, train) };
    unsigned char memory[3 * OLDER + 8] = {0};
    const qn_epoch_event event = {.size = sizeof event, .epoch = 7, .learning_rate = 0.5};
    qn_epoch_list list = {.size = sizeof list, .event_size = OLDER, .event = (void *)memory};
    qn_epoch_event first, back;
    memset(memory + sizeof memory - 8, 9, 8);
    qn_epoch_keep(&list, &event);
    assert_int_equal(list.count, 0);
    list.room = 3;
    for (int i = 0; i < 4; ++i)
        qn_epoch_keep(&list, &event);
    assert_int_equal(list.count, 3);
    memcpy(&back, memory + (size_t)2 * OLDER, OLDER);
    assert_int_equal(back.size, OLDER);
    assert_int_equal(back.epoch, 7);
    assert_true(back.learning_rate == 0.5);
    for (size_t i = sizeof memory - 8; i < sizeof memory; ++i)
        assert_int_equal(memory[i], 9);
    list = (qn_epoch_list){
        .size = sizeof list, .event_size = sizeof first, .event = &first, .room = 1};
    qn_epoch_keep(&list, &event);
    assert_memory_equal(&first, &event, sizeof event);
    list.count = list.size = 0; /* of no version */
    qn_epoch_keep(&list, &event);
    assert_int_equal(list.count, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_callbacks),
        cmocka_unit_test(test_child),
        cmocka_unit_test(test_epochs_are_kept),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
