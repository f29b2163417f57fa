/* What people are told of integer arithmetic: features too small beside the others, by name and
 * with the remedy, and the shares of values that lost all bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_device/fake_device.h"
#include "num/philox.h"
#include "train/precision.h"
#include "train/trainer.h"
#include <math.h>

enum { ITEMS = 400, FEATURES = 8 };

static char folder[32], path[64];

/* -1 to 1, not of few bits. */
static double drawn(uint32_t item, uint32_t column) {
    uint32_t word[4];
    qn__words(7, 1, 0, 0, item, column, word);
    return (double)word[0] * 0x1p-31 - 1;
}

/* "wide" gives every item steps of about 1/2 with i14. "flag" is 0 or 1, which i14 holds exactly;
 * "rare" is not zero in one item; "fixed" has no spread that could be lost. */
static qn_data *make_table(void) {
    qn_data_options options;
    qn_data *data;
    qn_error err = {0};
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "wide,flag,\"thin, \"\"fine\"\"\",class,tiny,rare,fixed,large,level\n");
    for (uint32_t i = 0; i < ITEMS; ++i)
        fprintf(file, "%.9g,%u,%.9g,%u,%.9g,%.9g,0.3,%.9g,%.9g\n", 3000 + 900 * drawn(i, 0), i & 1,
                0.4 * drawn(i, 1), i % 3, 1e-4 * drawn(i, 2), i == 5 ? 0.3 : 0.0, 500 * drawn(i, 3),
                100 + 0.3 * drawn(i, 4));
    fclose(file);
    qn_data_options_init(&options);
    options.label_column = "class";
    if (qn_data_open(path, &options, &data, &err) != QN_OK)
        fail_msg("%s", err.what);
    unlink(path);
    return data;
}

static void test_names(void **state) {
    (void)state;
    const uint8_t bytes[2] = {1, 2};
    const int32_t labels[2] = {0, 1};
    qn_data *data = make_table(), *other;
    assert_string_equal(qn_data_feature_name(data, 0), "wide");
    assert_string_equal(qn_data_feature_name(data, 2), "thin, \"fine\"");
    assert_string_equal(qn_data_feature_name(data, 3), "tiny");
    assert_string_equal(qn_data_feature_name(data, FEATURES - 1), "level");
    assert_null(qn_data_feature_name(data, FEATURES));
    assert_int_equal(qn_data_from_arrays(QN_U8, 2, 1, bytes, labels, &other, NULL), QN_OK);
    assert_null(qn_data_feature_name(other, 0));
    qn_data_close(other);
    qn_data_close(data);
}

static void expect_small(const qn_data *data, qn__arith arith, uint32_t count,
                         const uint32_t *feature) {
    const qn__layer layer = qn__layer_flat(FEATURES, 3, QN__ACT_NONE, 0);
    const qn__program p = {.layers = 1, .layer = &layer, .arith = arith, .scale = QN__SCALE_NONE};
    qn__small_features found;
    assert_int_equal(qn__find_small_features(&p, data, &found, NULL), QN_OK);
    assert_int_equal(found.count, count);
    for (uint32_t i = 0; i < count; ++i)
        assert_int_equal(found.feature[i], feature[i]);
}

static void test_small_features(void **state) {
    (void)state;
    const uint32_t seven[] = {1, 2, 3, 7}, fourteen[] = {2, 3, 7}, more[] = {3};
    qn_data *data = make_table();
    expect_small(data, QN__ARITH_F32, 0, NULL);
    expect_small(data, QN__ARITH_I7, 4, seven);
    expect_small(data, QN__ARITH_I14, 3, fourteen);
    expect_small(data, QN__ARITH_I21, 1, more);
    qn_data_close(data);
}

/* Pixels at the edge that are hardly ever there are no reason to warn. */
static void test_many(void **state) {
    (void)state;
    enum { WIDTH = 40 };
    static float values[ITEMS][WIDTH];
    const qn__layer layer = qn__layer_flat(WIDTH, 3, QN__ACT_NONE, 0);
    const qn__program p = {
        .layers = 1, .layer = &layer, .arith = QN__ARITH_I14, .scale = QN__SCALE_NONE};
    qn__small_features found;
    qn_data *data;
    for (uint32_t i = 0; i < ITEMS; ++i)
        for (uint32_t k = 0; k < WIDTH; ++k)
            values[i][k] = k % 4 == 0                   ? (float)drawn(i, k)
                           : k % 4 == 1 || i % 300 == 7 ? 1e-5f * (float)drawn(i, k)
                                                        : 0;
    assert_int_equal(qn_data_from_arrays(QN_F32, ITEMS, WIDTH, values, NULL, &data, NULL), QN_OK);
    assert_int_equal(qn__find_small_features(&p, data, &found, NULL), QN_OK);
    assert_int_equal(found.count, 10);
    assert_int_equal(found.feature[QN__NAMED_FEATURES - 1], 17);
    qn_data_close(data);
}

/* A whole training on a device that computes with the reference. */
typedef struct watched {
    char notes[2048];
    qn_train *train;
    qn_rounding rounding;
} watched;

static void on_note(void *user, const char *text) {
    watched *w = user;
    snprintf(w->notes + strlen(w->notes), sizeof w->notes - strlen(w->notes), "%s\n", text);
}

static void train(const qn_data *data, const char *arith, const char *scale, watched *w) {
    static const qn__fake_plan plan = {.count = 1};
    const qn__member member = {&qn__fake_device, 0, 0, 0, 0};
    qn_train_options o;
    qn_error err = {0};
    qn__fake_set(&plan);
    qn_train_options_init(&o);
    o.model = "dense 6 relu; dense 3 softmax";
    o.arith = arith;
    o.scale = scale;
    o.learning_rate = 1e-5f;
    o.batch = 64;
    o.grain = 24;
    o.epochs = 1;
    o.run_dir = folder;
    o.user = w;
    o.on_note = on_note;
    *w = (watched){.notes = ""};
    qn_train_report report = {.size = sizeof report};
    if (qn__train_open_on(&o, data, NULL, NULL, &member, 1, &w->train, &err) != QN_OK ||
        qn_train_run(w->train, &err) != QN_OK ||
        qn_train_report_get(w->train, &report, &err) != QN_OK)
        fail_msg("%s: %s (%s)", arith, err.what, err.where);
    w->rounding = *report.rounding;
    qn_train_close(w->train);
    qn__fake_set(NULL);
}

static void expect_in_record(const char *text) {
    static char json[1 << 16];
    char name[96];
    snprintf(name, sizeof name, "%s/run.json", folder);
    FILE *file = fopen(name, "r");
    assert_non_null(file);
    json[fread(json, 1, sizeof json - 1, file)] = 0;
    fclose(file);
    if (!strstr(json, text))
        fail_msg("no %s in %s", text, json);
}

static void test_training(void **state) {
    (void)state;
    static watched w;
    qn_data *data = make_table();
    train(data, "i14", "none", &w);
    assert_string_equal(
        w.notes, "with `train.arith` i14 all features of an item share one scale, in which these "
                 "keep fewer than three bits (3 of 8): thin, \"fine\", tiny, level; `train.scale` "
                 "standard gives all features a similar size\n");
    assert_int_equal(w.rounding.bits, 14);
    assert_int_equal(w.rounding.items, 24); /* a grain */
    /* "tiny" always, "thin" mostly: of 24 items with 7 or 6 values that are not zero. */
    assert_true(w.rounding.inputs > 24.0 / 156 && w.rounding.inputs < 48.0 / 156);
    assert_true(w.rounding.grain_inputs >= w.rounding.inputs);
    expect_in_record("\"rounding\": {\"bits\": 14, \"items\": 24, \"inputs\": 0.");
    qn_data *nameless;
    assert_int_equal(qn_data_from_arrays(QN_F32, ITEMS, FEATURES, qn_data_values(data),
                                         qn_data_labels(data), &nameless, NULL),
                     QN_OK);
    train(nameless, "i21", "none", &w);
    assert_non_null(strstr(w.notes, "(1 of 8): feature 4; `train.scale` standard"));
    qn_data_close(nameless);
    train(data, "i7", "standard", &w);
    assert_string_equal(w.notes, "");
    assert_true(w.rounding.inputs < 0.1 && w.rounding.weights < 0.1);
    assert_true(w.rounding.errors >= 0 && w.rounding.grain_errors <= 1);
    train(data, "f32", "none", &w);
    assert_string_equal(w.notes, "");
    assert_int_equal(w.rounding.bits, 0);
    expect_in_record("\"rounding\": null");
    qn_data_close(data);
}

static int make_folder(void **state) {
    (void)state;
    strcpy(folder, "/tmp/quern-precision-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/table.csv", folder);
    return 0;
}

static int remove_folder(void **state) {
    static const char *const left[] = {"metrics.csv", "run.json", "previous-metrics.csv",
                                       "previous-run.json", "run.lock"};
    (void)state;
    for (size_t i = 0; i < sizeof left / sizeof *left; ++i) {
        char name[96];
        snprintf(name, sizeof name, "%s/%s", folder, left[i]);
        unlink(name);
    }
    return rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_small_features),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_training),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
