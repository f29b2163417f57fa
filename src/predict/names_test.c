/* Names in models: columns and classes are matched by name wherever a model meets data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files/file.h"
#include "base/memory.h"
#include "data/table/data.h"
#include <quern/predict.h>
#include <quern/train.h>

enum { ITEMS = 60, FEATURES = 3 };

static const char *const columns[FEATURES] = {"weight", "age", "size \"x\""};
static const char *const classes[3] = {"a,b", "cat", "dog"};
static char noted[512];

static void note(void *user, const char *text) {
    (void)user;
    snprintf(noted, sizeof noted, "%s", text);
}

/* The same items with their columns in an order, and the classes `first`, `first` + 1, ... of the
 * list above: label c is the class with that name. */
static qn_data *table(const int order[FEATURES], int named) {
    float values[ITEMS * FEATURES];
    int32_t labels[ITEMS];
    qn_data *data;
    for (int i = 0; i < ITEMS; ++i) {
        labels[i] = i % 3;
        for (int k = 0; k < FEATURES; ++k)
            values[i * FEATURES + k] =
                (float)(order[k] == labels[i]) + 0.01f * (float)(i * (order[k] + 1) % 17);
    }
    assert_int_equal(qn_data_from_arrays(QN_F32, ITEMS, FEATURES, values, labels, &data, NULL),
                     QN_OK);
    if (!named)
        return data;
    data->schema = qn__schema_create(FEATURES, NULL);
    data->schema->label = qn__copy_text("kind", NULL);
    for (int k = 0; k < FEATURES; ++k)
        data->schema->feature[k].name = qn__copy_text(columns[order[k]], NULL);
    data->schema->target = QN__TARGET_CLASS;
    data->schema->classes = 3;
    data->schema->class_name = qn__alloc(3, sizeof *data->schema->class_name, NULL);
    for (int c = 0; c < 3; ++c)
        data->schema->class_name[c] = qn__copy_text(classes[c], NULL);
    return data;
}

static const int plain[FEATURES] = {0, 1, 2}, exchanged[FEATURES] = {2, 0, 1};

static qn_train_options options(void) {
    qn_train_options o;
    qn_train_options_init(&o);
    o.epochs = 3;
    o.batch = 8;
    o.model = "dense 5 tanh; dense 3 softmax";
    o.compute.devices = "cpu";
    o.compute.threads = 1;
    o.on_note = note;
    noted[0] = '\0';
    return o;
}

static qn_model *trained(const qn_train_options *o, const qn_data *data, const qn_data *test,
                         qn_train_report *report) {
    qn_train *t;
    qn_model *model;
    qn_error err = {0};
    if (qn_train_open(o, data, NULL, test, &t, &err) != QN_OK)
        fail_msg("%s", err.what);
    assert_int_equal(qn_train_run(t, &err), QN_OK);
    assert_int_equal(qn_train_model(t, &model, &err), QN_OK);
    if (report) {
        report->size = sizeof *report;
        assert_int_equal(qn_train_report_get(t, report, &err), QN_OK);
        if (report->class_names > 0)
            assert_string_equal(report->class_name[0], "a,b");
    }
    qn_train_close(t);
    return model;
}

static void test_kept_in_the_file(void **state) {
    (void)state;
    const qn_train_options o = options();
    qn_data *data = table(plain, 1), *bare = table(plain, 0);
    qn_model *model = trained(&o, data, NULL, NULL), *back, *other = trained(&o, bare, NULL, NULL);
    assert_int_equal(qn_model_save(model, "names_test.tmp", NULL), QN_OK);
    assert_int_equal(qn_model_load("names_test.tmp", &back, NULL), QN_OK);
    unlink("names_test.tmp");
    for (uint32_t k = 0; k < FEATURES; ++k) {
        assert_string_equal(qn_model_feature_name(back, k), columns[k]);
        assert_string_equal(qn_model_class_name(back, k), classes[k]);
    }
    assert_null(qn_model_feature_name(back, FEATURES));
    assert_null(qn_model_class_name(back, 3));
    assert_string_equal(qn_model_label_name(back), "kind");
    assert_non_null(strstr(qn_model_recipe(back), "\"contract\":2"));
    assert_string_equal(qn_model_digest(back), qn_model_digest(model));
    /* Names are in the file and change nothing else. */
    assert_null(qn_model_feature_name(other, 0));
    assert_null(qn_model_label_name(other));
    assert_non_null(strstr(qn_model_recipe(other), "\"contract\":1"));
    assert_memory_equal(qn_model_tensor(model, "layer0.weight", NULL, NULL),
                        qn_model_tensor(other, "layer0.weight", NULL, NULL), 15 * sizeof(float));
    qn_model_free(other);
    qn_model_free(back);
    qn_model_free(model);
    qn_data_close(bare);
    qn_data_close(data);
}

/* The text of the file that the prediction of `data` writes. */
static char *predicted(const qn_model *model, const qn_data *data, uint64_t *correct) {
    const qn_compute one = {.size = sizeof one, .threads = 1, .devices = "cpu"};
    qn__bytes file;
    qn_error err = {0};
    if (qn_predict_csv(model, data, &one, "names_test.csv", 1, correct, &err) != QN_OK)
        fail_msg("%s", err.what);
    assert_int_equal(qn__file_read("names_test.csv", &file, NULL), QN_OK);
    unlink("names_test.csv");
    char *text = calloc(file.size + 1, 1);
    memcpy(text, file.data, file.size);
    qn__bytes_release(&file);
    return text;
}

static void test_predictions(void **state) {
    (void)state;
    const qn_train_options o = options();
    qn_data *data = table(plain, 1), *other = table(exchanged, 1);
    qn_model *model = trained(&o, data, NULL, NULL);
    uint64_t correct[2];
    char *one = predicted(model, data, &correct[0]), *two = predicted(model, other, &correct[1]);
    assert_string_equal(one, two);
    assert_true(correct[0] == correct[1] && correct[0] > 0);
    assert_memory_equal(one, "item,label,prediction,score,p0,p1,p2\n0,\"a,b\",", 45);
    assert_non_null(strstr(one, "\n1,cat,"));
    assert_non_null(strstr(one, "\n2,dog,"));
    free(one);
    free(two);
    qn_model_free(model);
    qn_data_close(other);
    qn_data_close(data);
}

/* Labels that the model has never seen are wrong, are written as they are, and are told. */
static void test_labels_never_seen(void **state) {
    (void)state;
    const qn_train_options o = options();
    qn_data *data = table(plain, 1), *other = table(plain, 1);
    qn_model *model = trained(&o, data, NULL, NULL);
    uint64_t correct, known;
    char text[512] = "";
    qn__free(other->schema->class_name[2]);
    other->schema->class_name[2] = qn__copy_text("emu", NULL);
    while (qn_device_note(text, sizeof text)) {
    }
    free(predicted(model, data, &known));
    char *csv = predicted(model, other, &correct);
    assert_true(qn_device_note(text, sizeof text));
    assert_string_equal(text, "labels that the model is not trained on count as wrong: "
                              "\"emu\" (20 of 60 items)");
    assert_non_null(strstr(csv, "\n2,emu,"));
    assert_null(strstr(csv, "\n2,emu,emu"));
    assert_true(correct <= 40 && correct <= known);
    free(csv);
    qn_model_free(model);
    qn_data_close(other);
    qn_data_close(data);
}

static void test_missing_column(void **state) {
    (void)state;
    const qn_train_options o = options();
    const qn_compute one = {.size = sizeof one, .threads = 1, .devices = "cpu"};
    qn_data *data = table(plain, 1), *other = table(plain, 1);
    qn_model *model = trained(&o, data, NULL, NULL);
    qn_predictions *p;
    qn_train *t;
    qn_error err;
    other->schema->feature[1].name[0] = 'A';
    assert_int_equal(qn_predictions_make(model, other, &one, 0, &p, &err), QN_MISMATCH);
    assert_string_equal(err.what, "the data lacks the column \"age\" of the model");
    assert_non_null(strstr(err.remedy, "it has \"Age\", which the model does not have; give"));
    assert_int_equal(qn_train_open(&o, data, NULL, other, &t, &err), QN_MISMATCH);
    assert_string_equal(err.what, "the test set lacks the column \"age\" of the model");
    assert_int_equal(qn_train_open(&o, data, other, NULL, &t, &err), QN_MISMATCH);
    assert_string_equal(err.what, "the validation set lacks the column \"age\" of the model");
    qn_model_free(model);
    qn_data_close(other);
    qn_data_close(data);
}

static void test_sets_in_other_orders(void **state) {
    (void)state;
    const qn_train_options o = options();
    qn_data *data = table(plain, 1), *other = table(exchanged, 1);
    qn_train_report same, turned;
    qn_model_free(trained(&o, data, data, &same));
    qn_model_free(trained(&o, data, other, &turned));
    assert_int_equal(same.test.items, ITEMS);
    assert_int_equal(same.test.correct, turned.test.correct);
    assert_true(same.test.loss == turned.test.loss);
    assert_int_equal(turned.class_names, 3);
    qn_data_close(other);
    qn_data_close(data);
}

static void replayed(const qn_model *model, const qn_data *data) {
    qn_train_options o = options();
    qn_error err = {0};
    if (qn_train_options_from_model(model, data, &o, &err) != QN_OK)
        fail_msg("%s, %s", err.what, err.where);
    qn_model *again = trained(&o, data, NULL, NULL);
    assert_string_equal(qn_model_digest(again), qn_model_digest(model));
    qn_model_free(again);
}

static void test_replay(void **state) {
    (void)state;
    const qn_train_options o = options();
    qn_data *data = table(plain, 1), *other = table(exchanged, 1), *bare = table(plain, 0);
    qn_model *model = trained(&o, data, NULL, NULL), *old = trained(&o, bare, NULL, NULL);
    replayed(model, data);
    replayed(model, other);
    /* A model without names, as all were once, takes the same columns by position. */
    replayed(old, bare);
    qn_train_options from = options();
    qn_error err;
    assert_int_equal(qn_train_options_from_model(old, other, &from, &err), QN_MISMATCH);
    assert_non_null(strstr(err.what, "\"a,b\", \"cat\", \"dog\""));
    /* The number 0 is not "a,b". */
    assert_int_equal(qn_train_options_from_model(model, bare, &from, &err), QN_MISMATCH);
    assert_non_null(strstr(err.what, "\"0\", \"1\", \"2\""));
    qn_model_free(old);
    qn_model_free(model);
    qn_data_close(bare);
    qn_data_close(other);
    qn_data_close(data);
}

/* A training that starts from a model has that model's columns and classes. */
static void test_start_from_a_model(void **state) {
    (void)state;
    qn_train_options o = options();
    qn_data *data = table(plain, 1), *other = table(exchanged, 1);
    qn_model *start = trained(&o, data, NULL, NULL);
    o.init_from = start;
    qn_model *one = trained(&o, data, NULL, NULL), *two = trained(&o, other, NULL, NULL);
    assert_string_equal(qn_model_digest(one), qn_model_digest(two));
    assert_string_not_equal(qn_model_digest(one), qn_model_digest(start));
    assert_string_equal(qn_model_feature_name(two, 0), columns[0]);
    qn_model_free(two);
    qn_model_free(one);
    qn_model_free(start);
    qn_data_close(other);
    qn_data_close(data);
}

/* A model of numbers, and data whose classes have names that are numbers. */
static void test_replay_without_names(void **state) {
    (void)state;
    static const char *const numbers[3] = {"0", "1", "2"};
    const qn_train_options o = options();
    qn_data *bare = table(plain, 0), *named = table(plain, 1);
    for (int c = 0; c < 3; ++c) {
        qn__free(named->schema->class_name[c]);
        named->schema->class_name[c] = qn__copy_text(numbers[c], NULL);
    }
    qn_model *old = trained(&o, bare, NULL, NULL);
    replayed(old, named);
    qn_model_free(old);
    qn_data_close(named);
    qn_data_close(bare);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept_in_the_file),     cmocka_unit_test(test_predictions),
        cmocka_unit_test(test_labels_never_seen),    cmocka_unit_test(test_missing_column),
        cmocka_unit_test(test_sets_in_other_orders), cmocka_unit_test(test_replay),
        cmocka_unit_test(test_replay_without_names), cmocka_unit_test(test_start_from_a_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
