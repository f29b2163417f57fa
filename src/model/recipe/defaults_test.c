/* The defaults of a training: against docs/exactness.md 11.4, and as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "model/formats/recipe_options.h"
#include "model/recipe/defaults.h"
#include "model/recipe/tables.h"
#include <quern/defaults.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t bytes[4] = {0, 1, 2, 255};
static const float numbers[4] = {0.5f, 1, 2, 3};
static const int32_t labels[4] = {0, 1, 2, 1};

/* The recipe of options on four items of one feature, as JSON. */
static char *recipe_of(const qn_train_options *o, qn_data_type type) {
    qn_data *data;
    qn__recipe recipe;
    qn_error err;
    char *json;
    const void *values = type == QN_U8 ? (const void *)bytes : numbers;
    assert_int_equal(qn_data_from_arrays(type, 4, 1, values, labels, &data, &err), QN_OK);
    assert_int_equal(qn__recipe_from_options(o, data, &recipe, &err), QN_OK);
    assert_int_equal(qn__recipe_json(&recipe, &json, &err), QN_OK);
    qn_data_close(data);
    return json;
}

static void holds(const qn_train_options *o, qn_data_type type, const char *key,
                  const char *value) {
    char words[128];
    char *json = recipe_of(o, type);
    snprintf(words, sizeof words, "\"%s\":%s,", key, value);
    if (!strstr(json, words))
        fail_msg("%s does not hold %s", json, words);
    qn__free(json);
}

/* Without options: the values of docs/exactness.md 11.4, typed from there. The schedule `step` is
 * given, so that its numbers are in the recipe. */
static void test_no_options(void **state) {
    static const char *const expected[][2] = {
        {"arith", "\"f32\""},
        {"valid", "0"},
        {"scale", "\"unit\""},
        {"model", "\"dense 500 tanh; dense 3 softmax\""},
        {"init", "\"auto\""},
        {"loss", "\"cross-entropy\""},
        {"optimizer", "\"sgd\""},
        {"momentum", "0"},
        {"weight_decay", "0"},
        {"lr", "0.1"},
        {"lr_step", "10"},
        {"lr_gamma", "0.1"},
        {"warmup", "0"},
        {"batch", "64"},
        {"grain", "32"},
        {"epochs", "10"},
        {"seed", "1"},
    };
    (void)state;
    qn_train_options o;
    qn_train_options_init(&o);
    o.schedule = "step";
    for (size_t i = 0; i < sizeof expected / sizeof *expected; ++i)
        holds(&o, QN_U8, expected[i][0], expected[i][1]);
    o.schedule = NULL;
    holds(&o, QN_U8, "schedule", "\"constant\"");
    char *json = recipe_of(&o, QN_U8);
    assert_non_null(strstr(json, "\"unit\":44}"));
    qn__free(json);
}

static void test_defaults_that_depend(void **state) {
    (void)state;
    qn_train_options o;
    qn_train_options_init(&o);
    holds(&o, QN_F32, "scale", "\"standard\"");
    o.arith = "i7";
    holds(&o, QN_U8, "scale", "\"unit\"");
    o.arith = "i14";
    holds(&o, QN_U8, "scale", "\"fraction\"");
    o.arith = "i21";
    holds(&o, QN_U8, "scale", "\"fraction\"");
    holds(&o, QN_F32, "scale", "\"standard\"");
    o.optimizer = "momentum";
    holds(&o, QN_U8, "momentum", "0.9");
    holds(&o, QN_U8, "lr", "0.1");
    o.optimizer = "adam";
    holds(&o, QN_U8, "lr", "0.001");
    holds(&o, QN_U8, "beta1", "0.9");
    holds(&o, QN_U8, "beta2", "0.999");
    holds(&o, QN_U8, "epsilon", "1e-08");
    o.optimizer = "adamw";
    holds(&o, QN_U8, "lr", "0.001");
    o.learning_rate = 0.1f; /* said, though another optimiser has it by default */
    holds(&o, QN_U8, "lr", "0.1");
    o.optimizer = NULL;
    o.momentum = 0.5f;
    holds(&o, QN_U8, "optimizer", "\"momentum\"");
    o.momentum = 0;
    holds(&o, QN_U8, "optimizer", "\"sgd\"");
}

/* The recipe of a table of so many items, in a few words. */
static void assert_table(uint64_t items, const qn_train_options *o, const char *expected) {
    qn__recipe r;
    qn_data *data;
    char words[160];
    float *value = malloc(items * sizeof *value);
    int32_t *label = calloc(items, sizeof *label);
    for (uint64_t i = 0; i < items; i++)
        value[i] = 0.5f + (float)i;
    label[0] = 1;
    assert_int_equal(qn_data_from_arrays(QN_F32, items, 1, value, label, &data, NULL), QN_OK);
    assert_int_equal(qn__recipe_from_options(o, data, &r, NULL), QN_OK);
    snprintf(words, sizeof words, "%s %g %g %s, %u of %u, %u layers",
             qn__table_name(&qn__optimizers, (int)r.optimizer), (double)r.learning_rate,
             (double)r.weight_decay, qn__table_name(&qn__schedules, (int)r.schedule), r.epochs,
             r.batch, r.network.layers);
    assert_string_equal(words, expected);
    qn__recipe_release(&r);
    qn_data_close(data);
    free(value);
    free(label);
}

/* docs/exactness.md 11.4: batches and epochs by the items, computed by hand from there. */
static void test_tables(void **state) {
    (void)state;
    qn_train_options o;
    qn_train_options_init(&o);
    assert_table(2, &o, "adamw 0.01 1 cosine, 200 of 8, 3 layers");
    assert_table(40, &o, "adamw 0.01 1 cosine, 200 of 8, 3 layers");
    assert_table(41, &o, "adamw 0.01 1 cosine, 167 of 8, 3 layers");
    assert_table(255, &o, "adamw 0.01 1 cosine, 32 of 8, 3 layers");
    assert_table(256, &o, "adamw 0.01 1 cosine, 63 of 16, 3 layers");
    assert_table(999, &o, "adamw 0.01 1 cosine, 32 of 32, 3 layers");
    assert_table(1000, &o, "adamw 0.01 0.3 cosine, 32 of 32, 3 layers");
    assert_table(1024, &o, "adamw 0.01 0.3 cosine, 63 of 64, 3 layers");
    assert_table(6399, &o, "adamw 0.01 0.3 cosine, 10 of 64, 3 layers");
    assert_table(10000, &o, "adamw 0.01 0.1 cosine, 10 of 64, 3 layers");
    assert_table(12800, &o, "adamw 0.01 0.1 cosine, 10 of 128, 3 layers");
    assert_table(25600, &o, "adamw 0.01 0.1 cosine, 10 of 256, 3 layers");
    o.batch = 100; /* what is said stays, and the epochs follow it */
    assert_table(1000, &o, "adamw 0.01 0.3 cosine, 100 of 100, 3 layers");
    o.weight_decay = 0;
    o.schedule = "constant";
    o.learning_rate = 0.5f;
    o.epochs = 3;
    assert_table(1000, &o, "adamw 0.5 0 constant, 3 of 100, 3 layers");
    qn_train_options_init(&o);
    o.optimizer = "adamw"; /* then it is not the table's own */
    assert_table(1000, &o, "adamw 0.001 0 constant, 32 of 32, 3 layers");
    o.optimizer = "lbfgs";
    assert_table(1000, &o, "lbfgs 0 0 constant, 100 of 0, 3 layers");
    qn_train_options_init(&o);
    o.momentum = 0.5f;
    assert_table(1000, &o, "momentum 0.1 0 constant, 32 of 32, 3 layers");
    o.momentum = 0; /* asks for none, not for another optimiser */
    assert_table(1000, &o, "adamw 0.01 0.3 cosine, 32 of 32, 3 layers");
    o.model = "dense 6 relu; attention 1; dense 2 softmax";
    assert_table(1000, &o, "adamw 0.001 0.3 cosine, 32 of 32, 3 layers");
    o.model = NULL;
    o.shape = "1x1"; /* pixels, so it is not a table */
    assert_table(1000, &o, "sgd 0.1 0 constant, 10 of 64, 2 layers");
}

static void says(const char *field, const char *expected) {
    char text[256] = "before";
    assert_int_equal(qn_default_text(field, text, sizeof text), 1);
    assert_string_equal(text, expected);
}

static void test_texts(void **state) {
    (void)state;
    says("train.learning_rate", "0.1; `train.optimizer` adam, adamw: 0.001; real labels: 0.01; "
                                "tables without `train.optimizer`: 0.01, with attention 0.001");
    says("train.weight_decay", "0; tables without `train.optimizer`: 1, from 1000 items 0.3, from "
                               "10000 0.1; with texts: 0.2 / items");
    says("train.schedule", "constant; tables without `train.optimizer`: cosine");
    says("train.batch", "64; tables: 8 to 256, by their items");
    says("train.grain", "32; images above 64x64 pixels: 8, above 256x256: 2; `data.task` next: the "
                        "items of 1024 positions");
    says("train.epochs",
         "10; tables: as many as give 1000 steps, 10 to 200; `train.optimizer` lbfgs: 100");
    says("train.momentum", "0; `train.optimizer` momentum: 0.9");
    says("train.scale",
         "images: unit, `train.arith` i14, i21: fraction; other data: standard; texts alone: none");
    says("train.model",
         "dense 500 tanh; dense CLASSES softmax; real labels: dense 100 relu; dense 1 "
         "none; tables: dense 64 relu; dense 32 relu and the last layer; with texts: the last "
         "layer");
    says("train.optimizer", "sgd; real labels: adam; tables: adamw; with texts: lbfgs");
    says("train.loss", "cross-entropy; real labels: mse; several labels: binary");
    says("train.delta", "1");
    says("train.seed", "1");
    says("train.epsilon", "1e-08");
    says("compute.device_timeout", "60");
    says("cluster.rendezvous_timeout", "60");
    says("cluster.rank_timeout", "20");
}

static void test_no_text(void **state) {
    (void)state;
    char text[8] = "before";
    assert_int_equal(qn_default_text("train.compute", text, sizeof text), 0);
    assert_string_equal(text, "");
    assert_int_equal(qn_default_text("train.model", text, sizeof text), 0);
    assert_string_equal(text, "");
    assert_int_equal(qn_default_text("cluster.rank_timeout", text, 3), 1);
    assert_int_equal(qn_default_text("cluster.rank_timeout", text, 2), 0);
    assert_int_equal(qn_default_text("cluster.rank_timeout", text, 0), 0);
    assert_int_equal(qn_default_model(0, text, sizeof text), 0);
    char model[QN__DEFAULT_MODEL_CAPACITY];
    assert_int_equal(qn_default_model(UINT32_MAX, model, sizeof model), 1);
    assert_string_equal(model, "dense 500 tanh; dense 4294967295 softmax");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_options), cmocka_unit_test(test_defaults_that_depend),
        cmocka_unit_test(test_tables),     cmocka_unit_test(test_texts),
        cmocka_unit_test(test_no_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
