/* Recipes: their text, the checks of every option, comparison. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/recipe/recipe_example_test.h"

#include <math.h>

static void test_text(void **state) {
    (void)state;
    const qn__recipe r = example();
    char *json;
    assert_int_equal(qn__recipe_check(&r, NULL), QN_OK);
    assert_int_equal(qn__recipe_json(&r, &json, NULL), QN_OK);
    assert_string_equal(json, TEXT);
    qn__free(json);
}

static void test_round_trip(void **state) {
    (void)state;
    const qn__recipe r = example();
    qn__recipe back;
    qn_error err = {0};
    if (qn__recipe_parse(TEXT, strlen(TEXT), &back, &err) != QN_OK)
        fail_msg("%s, %s", err.what, err.where);
    assert_memory_equal(&r.network, &back.network, sizeof r.network);
    char *json;
    assert_int_equal(qn__recipe_json(&back, &json, NULL), QN_OK);
    assert_string_equal(json, TEXT);
    qn__free(json);
    assert_int_equal(back.seed, UINT64_MAX);
    assert_true(back.epsilon == 1e-8f && back.learning_rate == 1e-3f && back.lr_gamma == 0.5f);
}

/* --------------------------------------------------------------------------------------- checks */

static void test_counts(void **state) {
    (void)state;
    qn__recipe r = example();
    r.batch = 0;
    check_refused(&r, "the batch is 0", "`train.batch`");
    r.batch = (1u << 24) + 1;
    check_refused(&r, "the batch is 16777217", "`train.batch`");
    r.batch = 1u << 24;
    r.grain = 0;
    check_refused(&r, "the grain is 0", "`train.grain`");
    r.grain = UINT32_MAX; /* larger than the batch: one grain per step */
    r.epochs = 0;
    check_refused(&r, "the number of epochs is 0", "`train.epochs`");
    r.epochs = UINT32_MAX;
    assert_int_equal(qn__recipe_check(&r, NULL), QN_OK);
    r.batch = 1;
    check_refused(&r, "4294967295 epochs of 60000 steps are too many", "`train.epochs`");
    r.epochs = 1;
    r.gradient_scale = 61;
    check_refused(&r, "the exponent of the unit of gradients is 61", "`train.gradient_scale`");
    r.gradient_scale = 60;
    assert_int_equal(qn__recipe_check(&r, NULL), QN_OK);
    r.gradient_scale = 0;
    assert_int_equal(qn__recipe_check(&r, NULL), QN_OK);
    r.items = 0;
    check_refused(&r, "there is nothing to train on: 0 items with 784 features", "`data.path`");
}

/* Each float with values inside its range and outside, including the ends. */
static void test_ranges(void **state) {
    (void)state;
    qn__recipe r = example();
    const struct {
        float *value;
        const char *option, *what;
        float good[3], bad[3];
    } cases[] = {
        {&r.learning_rate,
         "`train.learning_rate`",
         "the learning rate",
         {0x1p-149f, 1, 3e38f},
         {0, -0.1f, INFINITY}},
        {&r.momentum,
         "`train.momentum`",
         "the momentum",
         {0, 0.9f, 0x1.fffffep-1f},
         {1, -0.1f, 1.5f}},
        {&r.beta1, "`train.beta1`", "beta1", {0, 0.9f, 0x1.fffffep-1f}, {1, -0.1f, INFINITY}},
        {&r.beta2, "`train.beta2`", "beta2", {0, 0.9f, 0x1.fffffep-1f}, {1, -0.1f, -INFINITY}},
        {&r.epsilon, "`train.epsilon`", "epsilon", {0x1p-149f, 1, 3e38f}, {0, -1, INFINITY}},
        {&r.weight_decay,
         "`train.weight_decay`",
         "the weight decay",
         {0, 1, 10},
         {-1, -2, INFINITY}},
        {&r.clip,
         "`train.clip`",
         "the largest norm of the gradient",
         {0, 1, 3e38f},
         {-1, -0.5f, INFINITY}},
        {&r.lr_gamma,
         "`train.lr_gamma`",
         "the factor of a reduction",
         {1e-9f, 0.5f, 1},
         {0, 1.5f, -0.5f}},
        {&r.valid,
         "`train.valid_fraction`",
         "the fraction of validation items",
         {0, 0.5f, 0.99f},
         {1, -1, 2}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        const float before = *cases[i].value;
        char what[128];
        for (int k = 0; k < 3; ++k) {
            *cases[i].value = cases[i].good[k];
            assert_int_equal(qn__recipe_check(&r, NULL), QN_OK);
            *cases[i].value = cases[i].bad[k];
            qn_error err;
            assert_int_equal(qn__recipe_check(&r, &err), QN_USAGE);
            assert_string_equal(err.where, cases[i].option);
        }
        *cases[i].value = NAN;
        snprintf(what, sizeof what, "%s is NaN", cases[i].what);
        check_refused(&r, what, cases[i].option);
        *cases[i].value = before;
    }
    r.momentum = -0.25f;
    check_refused(&r, "the momentum is -0.25", "`train.momentum`");
}

static void test_schedule(void **state) {
    (void)state;
    qn__recipe r = example();
    r.schedule = QN__SCHEDULE_EXPONENTIAL;
    r.lr_gamma = 0.1f; /* the default of `step` */
    check_refused(&r, "the factor of a reduction is 0.1", "`train.lr_gamma`");
    r.lr_gamma = 1.25f;
    assert_int_equal(qn__recipe_check(&r, NULL), QN_OK);
    r.lr_gamma = 0.5f;
    r.schedule = QN__SCHEDULE_STEP;
    r.lr_step = 0;
    check_refused(&r, "the number of epochs between two reductions is 0", "`train.lr_step`");
    r.schedule = QN__SCHEDULE_COSINE;
    assert_int_equal(qn__recipe_check(&r, NULL), QN_OK);
}

static void test_loss_and_layers(void **state) {
    (void)state;
    qn__recipe r = example();
    qn_error err;
    assert_int_equal(qn__network_parse("dense 10 tanh", &r.network, NULL), QN_OK);
    check_refused(&r,
                  "the loss \"cross-entropy\" needs softmax in the last layer, which has \"tanh\"",
                  "`train.model`, `train.loss`");
    r.loss = QN__LOSS_MSE;
    assert_int_equal(qn__recipe_check(&r, NULL), QN_OK);

    assert_int_equal(qn__recipe_check_classes(&r, 10, NULL), QN_OK);
    assert_int_equal(qn__recipe_check_classes(&r, 2, NULL), QN_OK);
    assert_int_equal(qn__recipe_check_classes(&r, 0, NULL), QN_OK);
    assert_int_equal(qn__recipe_check_classes(&r, 11, &err), QN_USAGE);
    assert_string_equal(err.what,
                        "the data has labels up to 10, but the last layer has 10 outputs");
    assert_string_equal(err.remedy,
                        "make the last layer 11 wide, one output for each label from 0 to 10");
}

/* 15.1 */
static void test_arithmetic(void **state) {
    (void)state;
    static const char *const names[] = {"f32", "i7", "i14", "i21"};
    qn__recipe r = example(), back;
    for (int a = QN__ARITH_F32; a <= QN__ARITH_I21; ++a) {
        char *json, key[32];
        r.arith = (qn__arith)a;
        snprintf(key, sizeof key, "\"arith\":\"%s\"", names[a]);
        assert_int_equal(qn__recipe_check(&r, NULL), QN_OK);
        assert_int_equal(qn__recipe_json(&r, &json, NULL), QN_OK);
        assert_non_null(strstr(json, key));
        assert_int_equal(qn__recipe_parse(json, strlen(json), &back, NULL), QN_OK);
        assert_int_equal(back.arith, r.arith);
        qn__free(json);
    }
    r.arith = QN__ARITH_I7;
    r.items = r.batch = r.grain = 1u << 22;
    r.features = 1u << 22;
    assert_int_equal(qn__recipe_check(&r, NULL), QN_OK);
    r.features += 1;
    check_refused(&r, "layer 0 has 4194305 inputs; integer arithmetic takes at most 4194304",
                  "`train.model`, `train.arith`");
    r.features = 784;
    assert_int_equal(
        qn__network_parse("dense 4194304 tanh; dense 4194305 softmax", &r.network, NULL), QN_OK);
    check_refused(&r, "layer 1 has 4194305 outputs; integer arithmetic takes at most 4194304",
                  "`train.model`, `train.arith`");
    /* 25.91: a position has a block by itself, and an item may have more. */
    const qn__scale scale = r.scale;
    r.scale = QN__SCALE_NONE;
    r.features = 60;
    assert_int_equal(
        qn__network_parse("embedding 9 4; conv 100000 1x1; pool mean; dense 10 softmax", &r.network,
                          NULL),
        QN_OK);
    r.items = r.batch = r.grain = 64;
    assert_int_equal(qn__recipe_check(&r, NULL), QN_OK);
    assert_int_equal(qn__network_parse("embedding 9 4; conv 4194305 1x1; pool mean; dense 10 "
                                       "softmax",
                                       &r.network, NULL),
                     QN_OK);
    check_refused(&r,
                  "layer 1 has 4194305 outputs of a position; integer arithmetic takes at most "
                  "4194304",
                  "`train.model`, `train.arith`");
    r.features = 784;
    r.scale = scale;
    r.items = 1u << 22;
    r.network = example().network;
    r.grain = r.batch = 1u << 23; /* of which 2^22 items fill half */
    assert_int_equal(qn__recipe_check(&r, NULL), QN_OK);
    r.items += 1;
    check_refused(&r,
                  "a grain of 4194305 items is too large for integer arithmetic, which takes at "
                  "most 4194304",
                  "`train.grain`");
    r.arith = QN__ARITH_F32;
    assert_int_equal(qn__recipe_check(&r, NULL), QN_OK);
}

static void test_tidy(void **state) {
    (void)state;
    qn__recipe r = example();
    r.momentum = 0.9f;
    r.weight_decay = -0.0f;
    qn__recipe_tidy(&r);
    assert_true(r.momentum == 0.0f && r.beta1 == 0.9f && !signbit(r.weight_decay));
    r.optimizer = QN__OPT_SGD;
    r.momentum = 0.9f;
    qn__recipe_tidy(&r);
    assert_int_equal(r.optimizer, QN__OPT_MOMENTUM);
    assert_true(r.momentum == 0.9f && r.beta1 == 0 && r.beta2 == 0 && r.epsilon == 0);
    r.momentum = 0;
    r.schedule = QN__SCHEDULE_CONSTANT;
    qn__recipe_tidy(&r);
    assert_int_equal(r.optimizer, QN__OPT_SGD);
    assert_true(r.lr_step == 0 && r.lr_gamma == 0);
    assert_int_equal(qn__recipe_check(&r, NULL), QN_OK);
}

/* ---------------------------------------------------------------------------------- differences */

static void test_differences(void **state) {
    (void)state;
    char text[512];
    char *other = changed("\"batch\":64,\"grain\":32", "\"batch\":32,\"grain\":8");
    assert_int_equal(qn__recipe_differences(TEXT, TEXT, text, sizeof text), 0);
    assert_string_equal(text, "");
    assert_int_equal(qn__recipe_differences(TEXT, other, text, sizeof text), 2);
    assert_string_equal(text, "batch 64 and 32, grain 32 and 8");
    char little[16];
    assert_int_equal(qn__recipe_differences(TEXT, other, little, sizeof little), 2);
    assert_string_equal(little, "batch 64 and...");
    char tiny[3];
    assert_int_equal(qn__recipe_differences(TEXT, other, tiny, sizeof tiny), 2);
    assert_string_equal(tiny, "ba");
    free(other);
    other = changed("\"lr\":0.001", "\"lr\":0.1");
    assert_int_equal(qn__recipe_differences(TEXT, other, text, sizeof text), 1);
    assert_string_equal(text, "lr 0.001 and 0.1");
    free(other);
    other = changed("\"f32\"", "\"i14\"");
    assert_int_equal(qn__recipe_differences(TEXT, other, text, sizeof text), 1);
    assert_string_equal(text, "arith \"f32\" and \"i14\"");
    free(other);
    other = changed("500 tanh", "501 tanh");
    assert_int_equal(qn__recipe_differences(TEXT, other, text, sizeof text), 1);
    assert_string_equal(text, "model \"dense 500 tanh dropout 0.2; dense 10 softmax\" and "
                              "\"dense 501 tanh dropout 0.2; dense 10 softmax\"");
    free(other);
    char one[128], two[128];
    sprintf(one, "{\"model\":\"%0100d\"}", 1);
    sprintf(two, "{\"model\":\"%0100d\"}", 2);
    assert_int_equal(qn__recipe_differences(one, two, text, sizeof text), 1);
    assert_non_null(strstr(text, "model \"...00"));
    assert_non_null(strstr(text, "001\" and \"...00"));
    assert_int_equal(qn__recipe_differences(TEXT, "garbage", text, sizeof text), 1);
    assert_string_equal(text, "the recipe's text");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_counts),      cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_schedule),    cmocka_unit_test(test_loss_and_layers),
        cmocka_unit_test(test_arithmetic),  cmocka_unit_test(test_tidy),
        cmocka_unit_test(test_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
