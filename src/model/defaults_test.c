/* The defaults of a training: against docs/exactness.md 11.4, and as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "model/defaults.h"
#include "model/recipe_options.h"
#include <quern/defaults.h>

#include <stdio.h>
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

static void says(const char *field, const char *expected) {
    char text[160] = "before";
    assert_int_equal(qn_default_text(field, text, sizeof text), 1);
    assert_string_equal(text, expected);
}

static void test_texts(void **state) {
    (void)state;
    says("train.learning_rate", "0.1; `train.optimizer` adam, adamw: 0.001; real labels: 0.01");
    says("train.momentum", "0; `train.optimizer` momentum: 0.9");
    says("train.scale", "images: unit, `train.arith` i14, i21: fraction; other data: standard");
    says("train.model",
         "dense 500 tanh; dense CLASSES softmax; real labels: dense 100 relu; dense 1 "
         "none");
    says("train.optimizer", "sgd; real labels: adam");
    says("train.loss", "cross-entropy; real labels: mse");
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
    assert_int_equal(qn_default_text("train.batch", text, 3), 1);
    assert_int_equal(qn_default_text("train.batch", text, 2), 0);
    assert_int_equal(qn_default_text("train.batch", text, 0), 0);
    assert_int_equal(qn_default_model(0, text, sizeof text), 0);
    char model[QN__DEFAULT_MODEL_ROOM];
    assert_int_equal(qn_default_model(UINT32_MAX, model, sizeof model), 1);
    assert_string_equal(model, "dense 500 tanh; dense 4294967295 softmax");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_options),
        cmocka_unit_test(test_defaults_that_depend),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_no_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
