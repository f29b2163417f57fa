/* The best epoch, early stopping, more epochs after the last, and a start from another model. */
#include <quern/quern.h>
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { ITEMS = 160 };

static qn_data *data;
static char folder[32], told[8][512];
static int lines;
static qn_train *running;
static uint64_t stop_at; /* step; 0: never */

static void note(void *user, const char *text) {
    (void)user;
    if (lines < 8)
        snprintf(told[lines++], sizeof *told, "%s", text);
}

static int was_told(const char *part) {
    for (int i = 0; i < lines; ++i)
        if (strstr(told[i], part))
            return 1;
    return 0;
}

static void on_step(void *user, const qn_step_event *event) {
    (void)user;
    if (event->step == stop_at)
        qn_train_stop(running);
}

static void empty_folder(void) {
    DIR *open = opendir(folder);
    assert_non_null(open);
    char path[600];
    for (struct dirent *entry; (entry = readdir(open));) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.')
            assert_int_equal(unlink(path), 0);
    }
    closedir(open);
}

static int set_up(void **state) {
    (void)state;
    strcpy(folder, "quern-best-XXXXXX");
    return mkdtemp(folder) && qn_data_synth_digits(3, 0, ITEMS, &data, NULL) == QN_OK ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    qn_data_close(data);
    empty_folder();
    return rmdir(folder);
}

/* Five steps an epoch; the validation loss goes up and down. */
static qn_train_options options(void) {
    qn_train_options o;
    qn_train_options_init(&o);
    o.model = "dense 12 relu; dense 10 softmax";
    o.learning_rate = 0.4f;
    o.batch = 20;
    o.epochs = 30;
    o.valid_fraction = 0.375f;
    o.patience = 2;
    o.compute.threads = 1;
    o.on_note = note;
    o.on_step = on_step;
    lines = 0;
    stop_at = 0;
    return o;
}

/* Trains until it ends or stops; the model's digest, or "" where it was stopped. */
static void train(const qn_train_options *o, char digest[65], qn_train_report *report) {
    qn_error err;
    qn_model *model;
    qn_train_report own = {.size = sizeof own};
    if (qn_train_open(o, data, NULL, NULL, &running, &err) != QN_OK)
        fail_msg("%s, %s", err.what, err.where);
    const qn_status status = qn_train_run(running, &err);
    digest[0] = '\0';
    if (status == QN_OK) {
        assert_int_equal(qn_train_report_get(running, &own, &err), QN_OK);
        assert_int_equal(qn_train_model(running, &model, &err), QN_OK);
        snprintf(digest, 65, "%s", qn_model_digest(model));
        qn_model_free(model);
    } else {
        assert_int_equal(status, QN_INTERRUPTED);
    }
    if (report)
        *report = own;
    qn_train_close(running);
}

/* "... of epoch 7 ..." */
static unsigned number_behind(const char *before) {
    for (int i = 0; i < lines; ++i) {
        const char *at = strstr(told[i], before);
        if (at)
            return (unsigned)strtoul(at + strlen(before), NULL, 10);
    }
    return 0;
}

/* What is kept is the model of a run that had ended after that epoch, and so are the scores. */
static void test_best_is_that_epoch(void **state) {
    (void)state;
    char best[65], shorter[65];
    qn_train_report report, expected;
    qn_train_options o = options();
    train(&o, best, &report);
    const unsigned last = number_behind("stopped early, after epoch ");
    const unsigned epoch = number_behind("the model is that of epoch ");
    assert_true(epoch > 1 && last == epoch + o.patience && last < 30);
    assert_int_equal(report.steps, last * 5);
    o = options();
    o.epochs = epoch;
    train(&o, shorter, &expected);
    assert_false(was_told("the model is that of epoch"));
    assert_true(report.valid.loss == expected.valid.loss && report.valid.items == 60);
    assert_int_equal(report.valid.correct, expected.valid.correct);
    /* The recipes differ in the number of epochs, so the files do. */
    assert_string_not_equal(best, shorter);
}

static void test_interrupted_anywhere(void **state) {
    (void)state;
    char whole[65], parts[65];
    for (int keep = 0; keep < 2; ++keep) {
        qn_train_options o = options();
        o.keep = keep ? "best" : "last";
        train(&o, whole, NULL);
        const uint64_t end = 5 * number_behind("stopped early, after epoch ");
        for (uint64_t step = 1; step < end; step += 3) {
            o = options();
            o.keep = keep ? "best" : "last";
            o.checkpoint_dir = folder;
            stop_at = step;
            train(&o, parts, NULL);
            assert_string_equal(parts, "");
            o.resume = 1;
            stop_at = 0;
            train(&o, parts, NULL);
            assert_string_equal(parts, whole);
            train(&o, parts, NULL); /* from the end: nothing is left to do */
            assert_string_equal(parts, whole);
            empty_folder();
        }
    }
}

static void test_more_epochs(void **state) {
    (void)state;
    char whole[65], parts[65];
    static const char *const schedules[] = {"constant", "step"};
    for (int i = 0; i < 4; ++i) {
        qn_train_options o = options();
        o.schedule = schedules[i % 2];
        o.patience = 0;
        o.keep = i < 2 ? "best" : "last";
        o.lr_step = 2;
        o.warmup = 7;
        o.epochs = 6;
        train(&o, whole, NULL);
        o.epochs = 3;
        o.checkpoint_dir = folder;
        train(&o, parts, NULL);
        o.epochs = 6;
        o.resume = 1;
        train(&o, parts, NULL);
        assert_true(was_told("resumed at step 15 of 30"));
        assert_string_equal(parts, whole);
        qn_error err;
        o.epochs = 5;
        assert_int_equal(qn_train_open(&o, data, NULL, NULL, &running, &err), QN_USAGE);
        assert_string_equal(err.what, "the checkpoint is of step 30, but the run ends at step 25");
        assert_string_equal(err.remedy, "give `train.epochs` 6 or more");
        empty_folder();
    }
}

static void test_cosine_depends_on_the_epochs(void **state) {
    (void)state;
    char digest[65];
    qn_error err;
    qn_train_options o = options();
    o.schedule = "cosine";
    o.epochs = 2;
    o.checkpoint_dir = folder;
    train(&o, digest, NULL);
    o.epochs = 4;
    o.resume = 1;
    assert_int_equal(qn_train_open(&o, data, NULL, NULL, &running, &err), QN_MISMATCH);
    assert_non_null(strstr(err.what, "epochs 2 and 4"));
    assert_non_null(strstr(err.remedy, "`train.schedule` constant"));
    o.schedule = "constant"; /* and nothing else may differ */
    assert_int_equal(qn_train_open(&o, data, NULL, NULL, &running, &err), QN_MISMATCH);
    assert_non_null(strstr(err.remedy, "only `train.epochs` may differ"));
    empty_folder();
}

/* A checkpoint that is asked for after the end holds the last parameters, not the best. */
static void test_checkpoint_after_the_end(void **state) {
    (void)state;
    char whole[65], parts[65];
    qn_train_options o = options();
    o.patience = 0;
    o.keep = "best";
    o.epochs = 20;
    train(&o, whole, NULL);
    o.epochs = 12;
    lines = 0;
    assert_int_equal(qn_train_open(&o, data, NULL, NULL, &running, NULL), QN_OK);
    assert_int_equal(qn_train_run(running, NULL), QN_OK);
    assert_true(was_told("the model is that of epoch"));
    assert_int_equal(qn_train_checkpoint(running, folder, NULL), QN_OK);
    qn_train_close(running);
    o.epochs = 20;
    o.checkpoint_dir = folder;
    o.resume = 1;
    train(&o, parts, NULL);
    assert_string_equal(parts, whole);
    empty_folder();
}

static void check_refused(const qn_train_options *o, const qn_data *valid, const char *what) {
    qn_error err;
    assert_int_equal(qn_train_open(o, data, valid, NULL, &running, &err), QN_USAGE);
    assert_string_equal(err.what, what);
    assert_string_equal(err.where, "`train.keep`, `train.patience`");
}

static void test_needs_a_fraction(void **state) {
    (void)state;
    static const char what[] = "without validation items no epoch is the best";
    qn_train_options o = options();
    o.valid_fraction = 0;
    check_refused(&o, NULL, what);
    o.patience = 0;
    o.keep = "best";
    check_refused(&o, NULL, what);
}

/* The training with a set of the caller; NULL: a failure of opening, in *err. */
static qn_model *judged_by(const qn_train_options *o, const qn_data *valid, qn_error *err) {
    qn_model *model = NULL;
    if (qn_train_open(o, data, valid, NULL, &running, err) != QN_OK)
        return NULL;
    const qn_status status = qn_train_run(running, NULL);
    if (status == QN_OK)
        assert_int_equal(qn_train_model(running, &model, NULL), QN_OK);
    else
        assert_int_equal(status, QN_INTERRUPTED);
    qn_train_close(running);
    return model;
}

static qn_status replay_by(const qn_model *model, const qn_data *valid, qn_error *err) {
    qn_train_options o;
    qn_train_options_init(&o);
    assert_int_equal(qn_train_options_from_model(model, data, &o, NULL), QN_OK);
    qn_model *again = judged_by(&o, valid, err);
    if (again)
        assert_string_equal(qn_model_digest(again), qn_model_digest(model));
    const int made = again != NULL;
    qn_model_free(again);
    return made ? QN_OK : err->status;
}

/* A validation set of the caller decides; the recipe has its digest, which a replay and a resumed
 * run compare. */
static void test_set_of_the_caller(void **state) {
    (void)state;
    qn_data *valid, *other;
    qn_error err = {0};
    assert_int_equal(qn_data_synth_digits(4, 0, 70, &valid, NULL), QN_OK);
    assert_int_equal(qn_data_synth_digits(5, 0, 70, &other, NULL), QN_OK);
    qn_train_options o = options();
    o.valid_fraction = 0;
    qn_model *model = judged_by(&o, valid, &err);
    assert_non_null(model);
    assert_true(was_told("stopped early, after epoch") && was_told("the model is that of epoch"));
    char part[96];
    snprintf(part, sizeof part, "\"valid_data\":\"%s\"", qn_data_digest(valid));
    assert_non_null(strstr(qn_model_recipe(model), part));
    assert_non_null(strstr(qn_model_recipe(model), "{\"contract\":4,"));
    assert_int_equal(replay_by(model, valid, &err), QN_OK);
    assert_int_equal(replay_by(model, NULL, &err), QN_MISMATCH);
    assert_non_null(strstr(err.what, "a validation file decided"));
    assert_non_null(strstr(err.remedy, "`valid.path`"));
    assert_int_equal(replay_by(model, other, &err), QN_MISMATCH);
    assert_non_null(strstr(err.what, "this is not the validation file"));
    assert_non_null(strstr(err.where, qn_data_digest(other)));
    /* Where it decides on nothing it is in no recipe. */
    o = options();
    o.valid_fraction = 0;
    o.patience = 0;
    qn_model *plain = judged_by(&o, valid, &err);
    assert_null(strstr(qn_model_recipe(plain), "valid_data"));
    /* A resumed run is judged by the same set. */
    o = options();
    o.valid_fraction = 0;
    o.checkpoint_dir = folder;
    stop_at = 8;
    assert_null(judged_by(&o, valid, &err));
    stop_at = 0;
    o.resume = 1;
    err = (qn_error){0};
    assert_null(judged_by(&o, other, &err));
    assert_int_equal(err.status, QN_MISMATCH);
    assert_non_null(strstr(err.what, "valid_data"));
    qn_model *resumed = judged_by(&o, valid, &err);
    assert_non_null(resumed);
    assert_string_equal(qn_model_digest(resumed), qn_model_digest(model));
    empty_folder();
    qn_model_free(resumed);
    qn_model_free(plain);
    qn_model_free(model);
    qn_data_close(valid);
    qn_data_close(other);
}

static qn_model *make_model(const char *text) {
    qn_train_options o = options();
    qn_model *model;
    o.model = text;
    o.epochs = 1;
    assert_int_equal(qn_train_open(&o, data, NULL, NULL, &running, NULL), QN_OK);
    assert_int_equal(qn_train_run(running, NULL), QN_OK);
    assert_int_equal(qn_train_model(running, &model, NULL), QN_OK);
    qn_train_close(running);
    return model;
}

static void test_start_from_a_model(void **state) {
    (void)state;
    qn_model *start = make_model("dense 12 relu; dense 10 softmax");
    qn_model *narrow = make_model("dense 11 relu; dense 10 softmax"), *made, *again;
    qn_train_options o = options();
    qn_error err;
    o.init_from = narrow;
    assert_int_equal(qn_train_open(&o, data, NULL, NULL, &running, &err), QN_MISMATCH);
    assert_string_equal(err.what,
                        "layer 0 of the model to start from is \"dense 11 relu\" for an input of "
                        "784x1x1, that of this network \"dense 12 relu\" for an input of 784x1x1");
    o.model = "dense 10 softmax";
    o.init_from = start;
    assert_int_equal(qn_train_open(&o, data, NULL, NULL, &running, &err), QN_MISMATCH);
    o.model = "dense 12 relu; dense 10 softmax";
    for (int i = 0; i < 2; ++i) {
        assert_int_equal(qn_train_open(&o, data, NULL, NULL, &running, &err), QN_OK);
        assert_int_equal(qn_train_run(running, &err), QN_OK);
        assert_int_equal(qn_train_model(running, i ? &again : &made, &err), QN_OK);
        qn_train_close(running);
        qn_train_options replay = options();
        if (i > 0)
            break;
        assert_int_equal(qn_train_options_from_model(made, data, &replay, &err), QN_MISMATCH);
        assert_string_equal(err.what, "the training started from another model");
        replay.init_from = narrow;
        assert_int_equal(qn_train_options_from_model(made, data, &replay, &err), QN_MISMATCH);
        replay.init_from = start;
        assert_int_equal(qn_train_options_from_model(made, data, &replay, &err), QN_OK);
        o = replay;
        replay = options();
        replay.init_from = start;
        assert_int_equal(qn_train_options_from_model(start, data, &replay, &err), QN_MISMATCH);
        assert_string_equal(err.what, "the training did not start from a model");
    }
    assert_string_equal(qn_model_digest(again), qn_model_digest(made));
    assert_string_not_equal(qn_model_digest(made), qn_model_digest(start));
    assert_non_null(strstr(qn_model_recipe(made), qn_model_digest(start)));
    qn_model_free(again);
    qn_model_free(made);
    qn_model_free(narrow);
    qn_model_free(start);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_best_is_that_epoch),
        cmocka_unit_test(test_interrupted_anywhere),
        cmocka_unit_test(test_more_epochs),
        cmocka_unit_test(test_cosine_depends_on_the_epochs),
        cmocka_unit_test(test_checkpoint_after_the_end),
        cmocka_unit_test(test_set_of_the_caller),
        cmocka_unit_test(test_needs_a_fraction),
        cmocka_unit_test(test_start_from_a_model),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
