/* Prediction compared with what training measured, and its CSV. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <math.h>
#include <quern/quern.h>

enum { ITEMS = 300, UNSEEN = 2100, CLASSES = 10 };

/* Shared by the tests: data, a model trained on it, and the training's results on the unseen
 * data. */
static struct {
    qn_data *train, *unseen, *bare;
    qn_model *model;
    uint64_t correct;
    uint64_t confusion[CLASSES * CLASSES];
} all;

static int set_up(void **unused) {
    (void)unused;
    qn_train_options o;
    qn_train *t;
    qn_train_report report = {.size = sizeof(qn_train_report)};
    qn_train_options_init(&o);
    o.model = "dense 20 relu; dense 10 softmax";
    o.epochs = 2;
    o.scale = "standard";
    int bad = qn_data_synth_digits(1, 0, ITEMS, &all.train, NULL) != QN_OK ||
              qn_data_synth_digits(1, ITEMS, UNSEEN, &all.unseen, NULL) != QN_OK ||
              qn_data_from_arrays(QN_U8, UNSEEN, 784, qn_data_values(all.unseen), NULL, &all.bare,
                                  NULL) != QN_OK ||
              qn_train_open(&o, all.train, NULL, all.unseen, &t, NULL) != QN_OK;
    bad = bad || qn_train_run(t, NULL) != QN_OK || qn_train_report_get(t, &report, NULL) != QN_OK ||
          qn_train_model(t, &all.model, NULL) != QN_OK;
    if (bad)
        return -1;
    all.correct = report.test.correct;
    memcpy(all.confusion, report.confusion, sizeof all.confusion);
    qn_train_close(t);
    return 0;
}

static int tear_down(void **unused) {
    (void)unused;
    qn_data_close(all.train);
    qn_data_close(all.unseen);
    qn_data_close(all.bare);
    qn_model_free(all.model);
    return 0;
}

static void test_prediction_is_what_training_measured(void **unused) {
    (void)unused;
    static int32_t classes[UNSEEN];
    static float scores[UNSEEN], outputs[UNSEEN * CLASSES];
    const qn_compute compute = {.size = sizeof(qn_compute), .threads = 3};
    uint64_t correct = 0, confusion[CLASSES * CLASSES] = {0};
    assert_int_equal(qn_predict(all.model, all.unseen, &compute, classes, scores, outputs, NULL),
                     QN_OK);
    for (int i = 0; i < UNSEEN; ++i) {
        const float *row = outputs + i * CLASSES;
        const int32_t label = qn_data_labels(all.unseen)[i];
        float sum = 0;
        for (int c = 0; c < CLASSES; ++c) {
            sum += row[c];
            assert_true(row[c] <= row[classes[i]]);
        }
        assert_true(fabsf(sum - 1.0f) < 1e-5f);
        assert_true(scores[i] == row[classes[i]]);
        correct += classes[i] == label;
        ++confusion[label * CLASSES + classes[i]];
    }
    assert_true(correct > UNSEEN / 5); /* it has learnt something */
    assert_int_equal(correct, all.correct);
    assert_memory_equal(confusion, all.confusion, sizeof confusion);
}

static void test_results_do_not_depend_on_the_run(void **unused) {
    (void)unused;
    static int32_t classes[UNSEEN], again[UNSEEN];
    static float scores[UNSEEN], scores_again[UNSEEN];
    assert_int_equal(qn_predict(all.model, all.unseen, NULL, classes, scores, NULL, NULL), QN_OK);
    for (int threads = 1; threads <= 5; threads += 2) {
        const qn_compute compute = {.size = sizeof(qn_compute),
                                    .threads = threads,
                                    .isa = threads == 3 ? "scalar" : "auto"};
        memset(again, 0xff, sizeof again);
        assert_int_equal(qn_predict(all.model, all.bare, &compute, again, scores_again, NULL, NULL),
                         QN_OK);
        assert_memory_equal(again, classes, sizeof classes);
        assert_memory_equal(scores_again, scores, sizeof scores);
    }
    assert_int_equal(qn_predict(all.model, all.bare, NULL, NULL, NULL, NULL, NULL), QN_OK);
}

static void test_a_model_survives_its_file(void **unused) {
    (void)unused;
    static const char path[] = "predict_test.safetensors";
    static float outputs[ITEMS * CLASSES], again[ITEMS * CLASSES];
    qn_model *read;
    assert_int_equal(qn_model_save(all.model, path, NULL), QN_OK);
    assert_int_equal(qn_model_load(path, &read, NULL), QN_OK);
    assert_int_equal(unlink(path), 0);
    assert_string_equal(qn_model_digest(read), qn_model_digest(all.model));
    assert_string_equal(qn_model_recipe(read), qn_model_recipe(all.model));
    assert_int_equal(qn_predict(all.model, all.train, NULL, NULL, NULL, outputs, NULL), QN_OK);
    assert_int_equal(qn_predict(read, all.train, NULL, NULL, NULL, again, NULL), QN_OK);
    assert_memory_equal(again, outputs, sizeof outputs);
    qn_model_free(read);
}

/* Reads a whole text file; the caller frees it. */
static char *slurp(const char *path) {
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    char *text = calloc(1, 1 << 20);
    const size_t size = fread(text, 1, (1 << 20) - 1, f);
    assert_true(size > 0);
    fclose(f);
    return text;
}

static void test_csv(void **unused) {
    (void)unused;
    static const char path[] = "predict_test.csv";
    static int32_t classes[UNSEEN];
    static float scores[UNSEEN];
    uint64_t correct = 0;
    char *line, *rest = NULL, want[96];
    assert_int_equal(qn_predict(all.model, all.unseen, NULL, classes, scores, NULL, NULL), QN_OK);
    assert_int_equal(qn_predict_csv(all.model, all.unseen, NULL, path, 0, &correct, NULL), QN_OK);
    assert_int_equal(correct, all.correct);
    char *text = slurp(path);
    assert_string_equal(strtok_r(text, "\n", &rest), "item,label,prediction,score");
    for (int i = 0; i < UNSEEN; ++i) {
        line = strtok_r(NULL, "\n", &rest);
        const int size = snprintf(want, sizeof want, "%d,%d,%d,", i,
                                  (int)qn_data_labels(all.unseen)[i], (int)classes[i]);
        assert_int_equal(strncmp(line, want, (size_t)size), 0);
        assert_true(strtof(line + size, NULL) == scores[i]);
    }
    assert_null(strtok_r(NULL, "\n", &rest));
    free(text);
    correct = 7;
    assert_int_equal(qn_predict_csv(all.model, all.bare, NULL, path, 1, &correct, NULL), QN_OK);
    assert_int_equal(correct, 0);
    text = slurp(path);
    assert_string_equal(strtok_r(text, "\n", &rest),
                        "item,prediction,score,p0,p1,p2,p3,p4,p5,p6,p7,p8,p9");
    free(text);
    assert_int_equal(unlink(path), 0);
}

/* What a prediction refuses; an existing file stays unchanged. */
static void test_refusals_touch_nothing(void **unused) {
    (void)unused;
    static const char path[] = "predict_test.csv";
    const uint8_t few[10] = {0};
    const qn_compute many = {.size = sizeof(qn_compute), .threads = 5000},
                     odd = {.size = sizeof(qn_compute), .isa = "sse9"};
    qn_data *narrow;
    qn_error err;
    FILE *f = fopen(path, "w");
    fputs("mine", f);
    fclose(f);
    assert_int_equal(qn_data_from_arrays(QN_U8, 2, 5, few, NULL, &narrow, NULL), QN_OK);
    assert_int_equal(qn_predict_csv(all.model, narrow, NULL, path, 0, NULL, &err), QN_MISMATCH);
    assert_string_equal(err.what, "the data has 5 features, the model takes 784");
    assert_true(strlen(err.remedy) > 0);
    assert_int_equal(qn_predict_csv(all.model, all.bare, &many, path, 0, NULL, &err), QN_USAGE);
    assert_int_equal(qn_predict_csv(all.model, all.bare, &odd, path, 0, NULL, &err), QN_USAGE);
    assert_int_equal(
        qn_predict_csv(all.model, all.bare, NULL, "no/such/folder/p.csv", 0, NULL, &err), QN_IO);
    char *text = slurp(path);
    assert_string_equal(text, "mine");
    free(text);
    assert_int_equal(unlink(path), 0);
    qn_data_close(narrow);
}

/* Labels above the outputs do not prevent prediction, nor does a grain larger than the data. */
static void test_labels_beyond_the_outputs(void **unused) {
    (void)unused;
    enum { N = 40 };
    uint8_t values[N * 2];
    int32_t labels[N], classes[N];
    qn_data *train, *other;
    qn_train_options o;
    qn_train *t;
    qn_model *model;
    for (int i = 0; i < N; ++i) {
        labels[i] = i % 2;
        values[2 * i] = (uint8_t)(200 * labels[i] + i);
        values[2 * i + 1] = (uint8_t)i;
    }
    assert_int_equal(qn_data_from_arrays(QN_U8, N, 2, values, labels, &train, NULL), QN_OK);
    for (int i = 0; i < N; ++i)
        labels[i] = INT32_MAX - i;
    assert_int_equal(qn_data_from_arrays(QN_U8, N, 2, values, labels, &other, NULL), QN_OK);
    qn_train_options_init(&o);
    o.model = "dense 2";
    o.loss = "mse";
    o.grain = UINT32_MAX;
    o.epochs = 20;
    assert_int_equal(qn_train_open(&o, train, NULL, NULL, &t, NULL), QN_OK);
    assert_int_equal(qn_train_run(t, NULL), QN_OK);
    assert_int_equal(qn_train_model(t, &model, NULL), QN_OK);
    assert_int_equal(qn_predict(model, other, NULL, classes, NULL, NULL, NULL), QN_OK);
    for (int i = 0; i < N; ++i)
        assert_int_equal(classes[i], i % 2);
    qn_train_close(t);
    qn_model_free(model);
    qn_data_close(train);
    qn_data_close(other);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_prediction_is_what_training_measured),
                                       cmocka_unit_test(test_results_do_not_depend_on_the_run),
                                       cmocka_unit_test(test_a_model_survives_its_file),
                                       cmocka_unit_test(test_csv),
                                       cmocka_unit_test(test_refusals_touch_nothing),
                                       cmocka_unit_test(test_labels_beyond_the_outputs)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
