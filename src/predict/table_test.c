/* Tables with missing values and categories: trained, saved, replayed, applied. */
#include "base/memory.h"
#include "data/prepare/inputs.h"
#include "model/formats/model.h"
#include <math.h>
#include <quern/quern.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { ITEMS = 200, COLUMNS = 3, INPUTS = 5, CLASSES = 2 };

static const char *const cities[] = {"Bern", "Ulm", "Wien"};
static char told[16][512];
static int lines;

static void note(void *user, const char *text) {
    (void)user;
    if (lines < 16)
        snprintf(told[lines++], sizeof *told, "%s", text);
}

static int was_told(const char *part) {
    for (int i = 0; i < lines; ++i)
        if (strstr(told[i], part))
            return 1;
    return 0;
}

/* Columns: age with missing values, city with a missing one, height without any. The label says
 * whether somebody of the third city is old. */
static void draw(float values[ITEMS][COLUMNS], int32_t labels[ITEMS], int holes) {
    uint32_t seed = 5;
    for (int i = 0; i < ITEMS; ++i) {
        seed = seed * 1664525u + 1013904223u;
        const float age = (float)(seed >> 24), city = (float)(seed >> 8 & 0xff) / 90;
        labels[i] = age > 100 || city >= 2;
        values[i][0] = holes && i % 9 == 4 ? NAN : age;
        values[i][1] = holes && i == 7 ? NAN : floorf(city < 3 ? city : 2);
        values[i][2] = (float)i / 8;
    }
}

static qn__schema *make_schema(uint32_t categories) {
    qn__schema *schema = qn__schema_create(COLUMNS, NULL);
    schema->target = QN__TARGET_INDEX;
    schema->feature[0].name = qn__copy_text("age", NULL);
    schema->feature[1].name = qn__copy_text("city", NULL);
    schema->feature[2].name = qn__copy_text("height", NULL);
    schema->feature[1].category = qn__alloc(3, sizeof(char *), NULL);
    for (uint32_t c = 0; c < categories; ++c)
        schema->feature[1].category[c] = qn__copy_text(cities[c], NULL);
    schema->feature[1].categories = categories;
    return schema;
}

/* qn_data_from_arrays refuses missing values. */
static qn_data *make(uint64_t items, const float *values, const int32_t *labels) {
    qn_data *data;
    float *zeros = calloc(items * COLUMNS, sizeof *zeros);
    assert_int_equal(qn_data_from_arrays(QN_F32, items, COLUMNS, zeros, labels, &data, NULL),
                     QN_OK);
    free(zeros);
    memcpy(data->memory, values, items * COLUMNS * sizeof *values);
    qn__data_finish(data, NULL);
    data->schema = make_schema(3);
    data->missing = 1;
    return data;
}

static qn_data *make_all(int holes) {
    float values[ITEMS][COLUMNS];
    int32_t labels[ITEMS];
    draw(values, labels, holes);
    return make(ITEMS, values[0], labels);
}

static qn_train_options options_of(const char *missing) {
    qn_train_options o;
    qn_train_options_init(&o);
    o.model = "dense 8 tanh; dense 2 softmax";
    o.epochs = 3;
    o.missing = missing;
    o.on_note = note;
    lines = 0;
    return o;
}

static qn_model *train(const qn_train_options *o, const qn_data *data, const qn_data *test,
                       qn_score *score) {
    qn_train *t;
    qn_model *model;
    qn_train_report report = {.size = sizeof report};
    qn_error err;
    if (qn_train_open(o, data, NULL, test, &t, &err) != QN_OK)
        fail_msg("%s, %s", err.what, err.where);
    assert_int_equal(qn_train_run(t, NULL), QN_OK);
    assert_int_equal(qn_train_model(t, &model, NULL), QN_OK);
    assert_int_equal(qn_train_report_get(t, &report, NULL), QN_OK);
    if (score)
        *score = report.test;
    qn_train_close(t);
    return model;
}

static const float *tensor(const qn_model *model, const char *name, uint64_t size) {
    uint64_t rows, columns;
    const float *data = qn_model_tensor(model, name, &rows, &columns);
    assert_non_null(data);
    assert_int_equal(rows, size);
    return data;
}

/* The fill values, those of the categories' scaling, and the shape of the first layer. */
static void test_model(void **state) {
    (void)state;
    qn_data *data = make_all(1);
    qn_train_options o = options_of("mean");
    qn_model *model = train(&o, data, NULL, NULL);
    const float *fill = tensor(model, "table.fill", COLUMNS);
    const float *mean = tensor(model, "scale.mean", INPUTS);
    const float *deviation = tensor(model, "scale.deviation", INPUTS);
    double sum = 0;
    int present = 0;
    for (int i = 0; i < ITEMS; ++i) {
        const float age = *(const float *)qn__data_item(data, (uint64_t)i);
        sum += isnan(age) ? 0 : (double)age;
        present += !isnan(age);
    }
    assert_true(fill[0] == (float)(sum / present)); /* whole numbers: the double is exact */
    assert_true(fill[1] == 0 && !signbit(fill[1]));
    for (int c = 1; c < 4; ++c)
        assert_true(mean[c] == 0 && deviation[c] == 1);
    assert_true(deviation[0] > 1 && deviation[4] > 1);
    uint64_t rows, columns;
    assert_non_null(qn_model_tensor(model, "layer0.weight", &rows, &columns));
    assert_int_equal(columns, INPUTS);
    assert_int_equal(qn_model_inputs(model), COLUMNS);
    assert_non_null(strstr(qn_model_recipe(model), "\"features\":3,"));
    assert_non_null(strstr(qn_model_recipe(model), "\"missing\":\"mean\",\"table\":{"));
    assert_true(was_told("the training data: 1 value of column \"city\" is missing"));
    qn_model_free(model);
    qn_data_close(data);
}

/* Threads, a file in between, and the recipe alone give the same bytes. */
static void test_replay(void **state) {
    (void)state;
    static const char path[] = "table_test.safetensors";
    static const char *const rules[] = {"mean", "median", "zero", "drop"};
    qn_data *data = make_all(1);
    for (int i = 0; i < 4; ++i) {
        qn_train_options o = options_of(rules[i]);
        o.valid_fraction = 0.25f;
        o.compute.threads = 1;
        qn_model *model = train(&o, data, NULL, NULL), *read;
        assert_int_equal(qn_model_save(model, path, NULL), QN_OK);
        assert_int_equal(qn_model_load(path, &read, NULL), QN_OK);
        assert_int_equal(unlink(path), 0);
        assert_string_equal(qn_model_digest(read), qn_model_digest(model));
        qn_train_options replay;
        qn_train_options_init(&replay);
        replay.compute.threads = 2;
        assert_int_equal(qn_train_options_from_model(read, data, &replay, NULL), QN_OK);
        qn_model *again = train(&replay, data, NULL, NULL);
        assert_string_equal(qn_model_digest(again), qn_model_digest(model));
        qn_model_free(again);
        qn_model_free(read);
        qn_model_free(model);
    }
    qn_data_close(data);
}

/* Numbers that stand for missing ones come from the training items alone. */
static void test_fill_of_training_items(void **state) {
    (void)state;
    qn_data *data = make_all(1), *part[2];
    qn_train_options o = options_of("median");
    o.valid_fraction = 0.5f;
    qn_model *model = train(&o, data, NULL, NULL);
    float fill[COLUMNS], all[COLUMNS];
    assert_int_equal(qn__data_split(data, 0.5f, 1, &part[0], &part[1], NULL), QN_OK);
    assert_int_equal(qn__fill_fit(part[0], NULL, QN__MISSING_MEDIAN, 1, fill, NULL), QN_OK);
    assert_int_equal(qn__fill_fit(data, NULL, QN__MISSING_MEDIAN, 1, all, NULL), QN_OK);
    assert_memory_equal(tensor(model, "table.fill", COLUMNS), fill, sizeof fill);
    assert_memory_not_equal(fill, all, sizeof fill);
    qn_data_close(part[0]);
    qn_data_close(part[1]);
    qn_model_free(model);
    qn_data_close(data);
}

/* What was dropped has no influence: the parameters are those of the other items alone. */
static void test_drop(void **state) {
    (void)state;
    float values[ITEMS][COLUMNS], kept[ITEMS][COLUMNS];
    int32_t labels[ITEMS], kept_labels[ITEMS];
    uint64_t count = 0;
    draw(values, labels, 1);
    for (int i = 0; i < ITEMS; ++i) {
        if (isnan(values[i][0]) || isnan(values[i][1]))
            continue;
        memcpy(kept[count], values[i], sizeof *kept);
        kept_labels[count++] = labels[i];
    }
    qn_data *all = make(ITEMS, values[0], labels), *less = make(count, kept[0], kept_labels);
    qn_train_options o = options_of("drop");
    qn_score score;
    qn_model *one = train(&o, all, all, &score);
    assert_true(was_told("the training data: 23 of 200 items lack a value and are left out"));
    assert_true(was_told("the test set: 23 of 200 items lack a value and are left out"));
    assert_int_equal(score.items, count);
    qn_model *other = train(&o, less, NULL, NULL);
    assert_non_null(strstr(qn_model_recipe(one), "\"items\":200,"));
    assert_memory_equal(qn__model_parameters(one), qn__model_parameters(other),
                        qn_model_parameters(one) * sizeof(float));
    assert_memory_equal(tensor(one, "scale.mean", INPUTS), tensor(other, "scale.mean", INPUTS),
                        INPUTS * sizeof(float));
    /* Items that lack a value have no prediction, and the others the one that they had alone. */
    int32_t classes[ITEMS], alone[ITEMS];
    float scores[ITEMS], outputs[ITEMS][CLASSES], known[ITEMS], both[ITEMS][CLASSES];
    assert_int_equal(qn_predict(one, all, NULL, classes, scores, outputs[0], NULL), QN_OK);
    assert_int_equal(qn_predict(one, less, NULL, alone, known, both[0], NULL), QN_OK);
    for (uint64_t i = 0, k = 0; i < ITEMS; ++i) {
        const int lacks = isnan(values[i][0]) || isnan(values[i][1]);
        assert_int_equal(classes[i], lacks ? -1 : alone[k]);
        assert_int_equal(isnan(scores[i]) && isnan(outputs[i][0]) && isnan(outputs[i][1]), lacks);
        if (lacks)
            continue;
        assert_true(scores[i] == known[k]);
        assert_memory_equal(outputs[i], both[k], sizeof outputs[i]);
        ++k;
    }
    qn_model_free(one);
    qn_model_free(other);
    qn_data_close(less);
    qn_data_close(all);
}

/* Training, test set and prediction see the same inputs; a table that lacks nothing can be applied
 * to a model that fills. */
static void test_predict(void **state) {
    (void)state;
    qn_data *data = make_all(1), *whole = make_all(0);
    qn_train_options o = options_of("mean");
    o.epochs = 30;
    qn_score score;
    qn_model *model = train(&o, data, data, &score);
    static int32_t classes[ITEMS], others[ITEMS];
    uint64_t correct = 0;
    assert_int_equal(qn_predict(model, data, NULL, classes, NULL, NULL, NULL), QN_OK);
    for (int i = 0; i < ITEMS; ++i)
        correct += classes[i] == qn_data_labels(data)[i];
    assert_int_equal(correct, score.correct);
    assert_true(correct > ITEMS * 8 / 10);
    assert_int_equal(qn_predict(model, whole, NULL, others, NULL, NULL, NULL), QN_OK);
    for (int i = 0; i < ITEMS; ++i)
        assert_true(i % 9 == 4 || i == 7 || others[i] == classes[i]);
    qn_model_free(model);
    qn_data_close(whole);
    qn_data_close(data);
}

static void test_refused(void **state) {
    (void)state;
    qn_data *holes = make_all(1), *whole = make_all(0);
    qn_train_options o = options_of("error");
    qn_error err;
    qn_train *t;
    assert_int_equal(qn_train_open(&o, holes, NULL, NULL, &t, &err), QN_INPUT);
    assert_string_equal(err.what, "column \"age\" has 22 missing values, and 1 other column some; "
                                  "23 of 200 items lack one or more");
    assert_string_equal(err.where, "the training data, item 4 (from 0)");
    assert_int_equal(qn_train_open(&o, whole, holes, NULL, &t, &err), QN_INPUT);
    assert_string_equal(err.where, "the validation set, item 4 (from 0)");
    assert_int_equal(qn_train_open(&o, whole, NULL, holes, &t, &err), QN_INPUT);
    assert_string_equal(err.where, "the test set, item 4 (from 0)");
    o.missing = "average";
    assert_int_equal(qn_train_open(&o, whole, NULL, NULL, &t, &err), QN_USAGE);
    assert_non_null(strstr(err.remedy, "mean"));
    qn_data_close(whole);
    qn_data_close(holes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model),   cmocka_unit_test(test_replay),
        cmocka_unit_test(test_drop),    cmocka_unit_test(test_fill_of_training_items),
        cmocka_unit_test(test_predict), cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
