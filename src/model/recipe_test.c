/* Recipes: their text, the checks of every option, strict parsing, comparison. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "model/recipe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGEST "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

/* The text that 11.1 defines for the recipe of example(). */
#define TEXT                                                                                       \
    "{\"contract\":1,\"arith\":\"f32\",\"data\":\"" DIGEST "\",\"items\":60000,\"features\":784,"  \
    "\"valid\":0.1,\"scale\":\"unit\",\"model\":\"dense 500 tanh dropout 0.2; dense 10 softmax\"," \
    "\"init\":\"auto\",\"loss\":\"cross-entropy\",\"optimizer\":\"adam\",\"momentum\":0,"          \
    "\"beta1\":0.9,\"beta2\":0.999,\"epsilon\":1e-08,\"weight_decay\":0.0001,\"lr\":0.001,"        \
    "\"schedule\":\"step\",\"lr_step\":3,\"lr_gamma\":0.5,\"warmup\":100,\"batch\":64,"            \
    "\"grain\":32,\"epochs\":10,\"seed\":18446744073709551615,\"unit\":44}"

static qn__recipe example(void) {
    qn__recipe r = {.contract = 1,
                    .data = DIGEST,
                    .items = 60000,
                    .features = 784,
                    .valid = 0.1f,
                    .scale = QN__SCALE_UNIT,
                    .loss = QN__LOSS_CROSS_ENTROPY,
                    .optimizer = QN__OPT_ADAM,
                    .beta1 = 0.9f,
                    .beta2 = 0.999f,
                    .epsilon = 1e-8f,
                    .weight_decay = 1e-4f,
                    .learning_rate = 1e-3f,
                    .schedule = QN__SCHEDULE_STEP,
                    .lr_step = 3,
                    .lr_gamma = 0.5f,
                    .warmup = 100,
                    .batch = 64,
                    .grain = 32,
                    .epochs = 10,
                    .seed = UINT64_MAX,
                    .gradient_scale = 44};
    assert_int_equal(
        qn__network_parse("dense 500 tanh dropout 0.2; dense 10 softmax", &r.network, NULL), QN_OK);
    return r;
}

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

static void check_refused(const qn__recipe *r, const char *what, const char *option) {
    qn_error err = {0};
    assert_int_equal(qn__recipe_check(r, &err), QN_USAGE);
    assert_string_equal(err.what, what);
    assert_string_equal(err.where, option);
    assert_true(strlen(err.remedy) > 10);
    assert_int_equal(qn__recipe_check(r, NULL), QN_USAGE);
}

static void test_counts(void **state) {
    (void)state;
    qn__recipe r = example();
    r.batch = 0;
    check_refused(&r, "the batch is 0", "`train.batch`");
    r.batch = (1u << 24) + 1;
    check_refused(&r, "a batch of 16777217 items is too large", "`train.batch`");
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
    check_refused(&r, "gradients cannot be summed in units of 2^-61", "`train.gradient_scale`");
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
    r.lr_step = 0;
    check_refused(&r, "the schedule \"step\" has 0 epochs between two reductions",
                  "`train.lr_step`");
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

/* 17.1: a key that is written only where it differs from its default. */
static void test_contract_6(void **state) {
    (void)state;
    static const char end[] = "\"valid_data\":\"\",\"shape\":\"\",\"nesterov\":1}";
    qn__recipe r = example(), back, copy;
    char *json, text[1024];
    r.nesterov = 1;
    check_refused(&r, "the optimizer \"adam\" has no Nesterov momentum", "`train.nesterov`");
    r.optimizer = QN__OPT_MOMENTUM;
    r.momentum = 0.9f;
    qn__recipe_tidy(&r);
    assert_int_equal(r.contract, 6);
    assert_int_equal(qn__recipe_rule(&r), QN__OPT_NESTEROV);
    assert_int_equal(qn__recipe_check(&r, NULL), QN_OK);
    assert_int_equal(qn__recipe_copy(&r, &copy, NULL), QN_OK);
    assert_int_equal(qn__recipe_json(&copy, &json, NULL), QN_OK);
    assert_non_null(strstr(json, end));
    assert_int_equal(qn__recipe_parse(json, strlen(json), &back, NULL), QN_OK);
    assert_int_equal(back.nesterov, 1);
    qn__recipe_differences(TEXT, json, text, sizeof text);
    assert_non_null(strstr(text, "contract 1 and 6"));
    assert_non_null(strstr(text, "nesterov nothing and 1"));
    /* The default is not written, and no other number is read. */
    char *number = strstr(json, end) + strlen(end) - 2;
    *number = '0';
    assert_int_equal(qn__recipe_parse(json, strlen(json), &copy, NULL), QN_FORMAT);
    *number = '2';
    assert_int_equal(qn__recipe_parse(json, strlen(json), &copy, NULL), QN_FORMAT);
    qn__free(json);
    qn__recipe_release(&copy);
    qn__recipe_release(&back);
    r.nesterov = 0;
    r.smoothing = -0.0f;
    qn__recipe_tidy(&r);
    assert_int_equal(r.contract, 1);
    assert_int_equal(qn__recipe_rule(&r), QN__OPT_MOMENTUM);
    r.smoothing = 0.1f;
    r.clip = 2;
    qn__recipe_tidy(&r);
    assert_int_equal(qn__recipe_json(&r, &json, NULL), QN_OK);
    assert_non_null(strstr(json, "\"shape\":\"\",\"smoothing\":0.1,\"clip\":2}"));
    qn__free(json);
    r.loss = QN__LOSS_MSE;
    check_refused(&r, "the loss \"mse\" has no label smoothing", "`train.smoothing`");
    r.smoothing = 1;
    check_refused(&r, "the label smoothing is 1", "`train.smoothing`");
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

/* ------------------------------------------------------------------------------ hostile recipes */

/* TEXT with the first `from` replaced by `to`. */
static char *changed(const char *from, const char *to) {
    const char *at = strstr(TEXT, from);
    if (at == NULL)
        fail_msg("no %s", from);
    char *text = malloc(strlen(TEXT) + strlen(to) + 1);
    sprintf(text, "%.*s%s%s", (int)(at - TEXT), TEXT, to, at + strlen(from));
    return text;
}

static void check_unreadable(const char *from, const char *to, const char *what, const char *where,
                             const char *remedy) {
    char *text = changed(from, to);
    qn__recipe out = {.batch = 77};
    qn_error err = {0};
    if (qn__recipe_parse(text, strlen(text), &out, &err) != QN_FORMAT)
        fail_msg("accepted: %s", text);
    if (strstr(err.what, what) == NULL || strstr(err.where, where) == NULL ||
        strstr(err.remedy, remedy) == NULL)
        fail_msg("%s -> %s: \"%s\" \"%s\" \"%s\"", from, to, err.what, err.where, err.remedy);
    assert_int_equal(out.batch, 77);
    free(text);
}

static void test_other_versions(void **state) {
    (void)state;
    check_unreadable("\"contract\":1", "\"contract\":7",
                     "keeps version 7 of the contract; this is version 6", "contract", "newer");
    check_unreadable("\"contract\":1", "\"contract\":6", "the key is missing", "task", "changed");
    check_unreadable("\"contract\":1", "\"contract\":5", "the key is missing", "task", "changed");
    check_unreadable("\"contract\":1", "\"contract\":4", "the key is missing", "task", "changed");
    check_unreadable("\"contract\":1", "\"contract\":3", "the key is missing", "task", "changed");
    check_unreadable("\"contract\":1", "\"contract\":2", "the key is missing", "task", "changed");
    check_unreadable("\"contract\":1", "\"contract\":0", "version 0", "contract", "changed");
    check_unreadable("\"contract\":1,", "", "does not say which version", "contract", "changed");
    check_unreadable("\"f32\"", "\"i12\"", "unknown arithmetic \"i12\"", "arith", "newer");
    check_unreadable("\"unit\":44", "\"unit\":44,\"mesh\":1", "unknown key", "mesh", "newer");
    check_unreadable("\"unit\":44", "\"unit\":44,\"nesterov\":1", "unknown key", "nesterov",
                     "newer");
    check_unreadable("\"adam\"", "\"lion\"", "unknown optimizer \"lion\"", "optimizer", "newer");
    check_unreadable("\"unit\",", "\"rank\",", "unknown scaling \"rank\"", "scale", "newer");
    check_unreadable("500 tanh", "500 mish", "unknown activation \"mish\"", "model", "changed");
}

static void test_malformed(void **state) {
    (void)state;
    const char *const made = "changed";
    check_unreadable("\"batch\":64,", "", "the key is missing", "batch", made);
    check_unreadable("\"batch\":64", "\"batch\":0", "is invalid: the batch is 0", "recipe", made);
    check_unreadable("\"batch\":64", "\"batch\":-64", "not a whole number", "batch", made);
    check_unreadable("\"batch\":64", "\"batch\":4294967296", "not a whole number", "batch", made);
    check_unreadable("\"batch\":64", "\"batch\":\"64\"", "not a whole number", "batch", made);
    check_unreadable("\"features\":784", "\"features\":4294967296", "not a whole", "features",
                     made);
    check_unreadable("\"unit\":44", "\"unit\":61", "not a whole number", "unit", made);
    check_unreadable("\"lr\":0.001", "\"lr\":null", "not a number", "lr", made);
    check_unreadable("\"lr\":0.001", "\"lr\":1e999", "not a number", "lr", made);
    check_unreadable("\"lr\":0.001", "\"lr\":0", "the learning rate is 0", "recipe", made);
    check_unreadable("\"data\":\"0", "\"data\":\"g", "not a digest", "data", made);
    check_unreadable("\"data\":\"0", "\"data\":\"", "not a digest", "data", made);
    check_unreadable("\"data\":\"" DIGEST "\"", "\"data\":7", "not a string", "data", made);
    check_unreadable("dense 10 softmax", "dense 10 relu", "needs softmax", "recipe", made);
    check_unreadable("{\"contract\"", "[\"contract\"", "not JSON", "", made);
    check_unreadable("\"lr\":", "\"lr\":1,\"lr\":", "not JSON", "", made);
}

/* An equivalent recipe in another form would give a model file two forms. */
static void test_other_forms(void **state) {
    (void)state;
    const char *const form = "not written the way";
    check_unreadable("\"lr\":0.001", "\"lr\":1e-3", form, "byte", "changed");
    check_unreadable("\"lr\":0.001", "\"lr\": 0.001", form, "byte", "changed");
    check_unreadable("dense 500", "dense  500", form, "byte", "changed");
    check_unreadable("500 tanh", "500 TANH", form, "byte", "changed");
    check_unreadable("\"adam\"", "\"ADAM\"", form, "byte", "changed");
    check_unreadable("\"momentum\":0", "\"momentum\":0.5", form, "byte", "changed");
    check_unreadable("\"warmup\":100,\"batch\":64", "\"batch\":64,\"warmup\":100", form, "byte",
                     "changed");
    check_unreadable("\"unit\":44}", "\"unit\":44} ", form, "byte", "changed");
    check_unreadable("\"scale\":\"unit\"", "\"scale\":\"\\u0075nit\"", form, "byte", "changed");
}

/* Changed bytes: an accepted text is the canonical one of its recipe. */
static void test_mutations(void **state) {
    (void)state;
    uint32_t seed = 20261121, accepted = 0;
    for (int round = 0; round < 30000; ++round) {
        char text[sizeof TEXT];
        memcpy(text, TEXT, sizeof TEXT);
        for (int i = 0; i < 1 + round % 3; ++i) {
            seed = seed * 1664525u + 1013904223u;
            text[(seed >> 8) % (sizeof TEXT - 1)] =
                round % 2 ? (char)(seed >> 24) : "0123456789,:\"{}[]eE.-"[(seed >> 24) % 21];
        }
        qn__recipe recipe;
        qn_error err = {0};
        const qn_status status = qn__recipe_parse(text, sizeof TEXT - 1, &recipe, &err);
        if (status != QN_OK) {
            assert_int_equal(status, QN_FORMAT);
            assert_int_equal(err.status, QN_FORMAT);
            continue;
        }
        char *again;
        ++accepted;
        assert_int_equal(qn__recipe_json(&recipe, &again, NULL), QN_OK);
        assert_int_equal(strlen(again), sizeof TEXT - 1);
        assert_memory_equal(again, text, sizeof TEXT - 1);
        qn__free(again);
    }
    assert_true(accepted > 0);
}

static void test_truncations(void **state) {
    (void)state;
    qn__recipe recipe;
    for (size_t size = 0; size < strlen(TEXT); ++size)
        assert_int_equal(qn__recipe_parse(TEXT, size, &recipe, NULL), QN_FORMAT);
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

/* -------------------------------------------------------------------------------- contract 2 */

/* TEXT as contract 2, with these values of the keys that it adds. */
static char *second(const char *task, const char *table, const char *rest) {
    const char *body = strchr(TEXT, ',');
    char *text = malloc(strlen(TEXT) + strlen(table) + strlen(rest) + 128);
    sprintf(
        text,
        "{\"contract\":2%.*s,\"task\":\"%s\",\"delta\":0,\"missing\":\"error\",\"table\":%s,%s}",
        (int)strlen(body) - 1, body, task, table, rest);
    return text;
}

#define NOTHING_ELSE "\"keep\":\"last\",\"patience\":0,\"init_from\":\"\""

/* A schema of the 784 columns "a0" to "a783" with the classes "dog \"x\"" and "\xc3\xa4". */
static qn__schema *names(void) {
    qn__schema *s = qn__schema_create(784, NULL);
    char name[8];
    for (uint32_t k = 0; k < 784; ++k) {
        snprintf(name, sizeof name, "a%u", k);
        s->feature[k].name = qn__copy_text(name, NULL);
    }
    s->label = qn__copy_text("kind", NULL);
    s->target = QN__TARGET_CLASS;
    s->classes = 2;
    s->class_name = qn__alloc(2, sizeof *s->class_name, NULL);
    s->class_name[0] = qn__copy_text("dog \"x\"", NULL);
    s->class_name[1] = qn__copy_text("\xc3\xa4", NULL);
    return s;
}

/* The table of names() as 11.3 says. */
static void table_text(char *text, size_t size) {
    snprintf(
        text, size,
        "{\"label\":\"kind\",\"target\":\"class\",\"classes\":[\"dog \\\"x\\\"\",\"\xc3\xa4\"],"
        "\"features\":[");
    for (uint32_t k = 0; k < 784; ++k)
        snprintf(text + strlen(text), size - strlen(text), "%s\"a%u\"", k ? "," : "", k);
    snprintf(text + strlen(text), size - strlen(text), "]}");
}

static void test_names(void **state) {
    (void)state;
    qn__recipe r = example(), copy, back;
    qn_error err = {0};
    char table[8192], *json;
    r.table = names();
    qn__recipe_tidy(&r);
    assert_int_equal(r.contract, 2);
    assert_int_equal(qn__recipe_check(&r, NULL), QN_OK);
    assert_int_equal(qn__recipe_copy(&r, &copy, NULL), QN_OK);
    qn__recipe_release(&r);
    assert_null(r.table);
    table_text(table, sizeof table);
    char *expected = second("classify", table, NOTHING_ELSE);
    assert_int_equal(qn__recipe_json(&copy, &json, NULL), QN_OK);
    assert_string_equal(json, expected);
    if (qn__recipe_parse(json, strlen(json), &back, &err) != QN_OK)
        fail_msg("%s, %s", err.what, err.where);
    assert_string_equal(back.table->feature[783].name, "a783");
    assert_string_equal(back.table->class_name[0], "dog \"x\"");
    qn__free(json);
    qn__recipe_release(&back);
    qn__recipe_release(&copy);
    free(expected);
}

/* What Quern itself would write as names is not worth a version. */
static void test_names_that_are_none(void **state) {
    (void)state;
    qn__recipe r = example();
    char *json;
    r.table = qn__schema_create(784, NULL);
    r.table->label = qn__copy_text("label", NULL);
    r.table->feature[3].name = qn__copy_text("f3", NULL);
    qn__recipe_tidy(&r);
    assert_int_equal(qn__recipe_json(&r, &json, NULL), QN_OK);
    assert_string_equal(json, TEXT);
    qn__free(json);
    qn__recipe_release(&r);
}

static void check_second(const char *task, const char *table, const char *rest, const char *what,
                         const char *where, const char *remedy) {
    char *text = second(task, table, rest);
    qn__recipe out = {.batch = 77};
    qn_error err = {0};
    if (qn__recipe_parse(text, strlen(text), &out, &err) != QN_FORMAT)
        fail_msg("accepted: %s", text);
    if (!strstr(err.what, what) || !strstr(err.where, where) || !strstr(err.remedy, remedy))
        fail_msg("\"%s\" \"%s\" \"%s\"", err.what, err.where, err.remedy);
    assert_int_equal(out.batch, 77);
    free(text);
}

static void test_second_refused(void **state) {
    (void)state;
    char table[8192];
    table_text(table, sizeof table);
    /* Nothing in it is of contract 2: it would be written as contract 1. */
    check_second("classify", "null", NOTHING_ELSE, "not written the way", "byte 12", "changed");
    check_second("guess", table, NOTHING_ELSE, "unknown task \"guess\"", "task", "newer");
    check_second("classify", "7", NOTHING_ELSE, "the table has a missing", "table", "changed");
    check_second("classify", table, "\"keep\":\"last\",\"patience\":0", "the key is missing",
                 "init_from", "changed");
    check_second("classify", table, NOTHING_ELSE ",\"mesh\":1", "unknown key", "mesh", "newer");
    check_second("classify", table, "\"keep\":\"last\",\"patience\":0,\"init_from\":\"0\"",
                 "not a digest", "init_from", "changed");
    check_second("classify",
                 "{\"label\":\"y\",\"target\":\"index\",\"classes\":[],\"features\":[\"a\",\"b\"]}",
                 NOTHING_ELSE, "the table names 2 columns, but there are 784", "recipe", "changed");
    check_unreadable("\"unit\":44", "\"unit\":44,\"task\":\"classify\"", "unknown key", "task",
                     "newer");
}

/* Weights of items, of classes, and a scaling that is kept. */
static void test_contract_3(void **state) {
    (void)state;
    static const char rest[] = NOTHING_ELSE ",\"weight\":\"w \\\"1\\\"\",\"class_weight\":"
                                            "\"3=0.5,9=0\",\"init_scale\":\"fit\"";
    qn__recipe r = example(), copy, back;
    qn_error err = {0};
    char *json;
    r.weight = qn__copy_text("w \"1\"", NULL);
    r.class_weight = qn__copy_text("3=0.5,9=0", NULL);
    qn__recipe_tidy(&r);
    assert_int_equal(r.contract, 3);
    assert_int_equal(qn__recipe_check(&r, &err), QN_OK);
    assert_int_equal(qn__recipe_copy(&r, &copy, NULL), QN_OK);
    qn__recipe_release(&r);
    char *expected = second("classify", "null", rest);
    *strchr(expected, '2') = '3'; /* the contract */
    assert_int_equal(qn__recipe_json(&copy, &json, NULL), QN_OK);
    assert_string_equal(json, expected);
    if (qn__recipe_parse(json, strlen(json), &back, &err) != QN_OK)
        fail_msg("%s, %s", err.what, err.where);
    assert_string_equal(back.weight, "w \"1\"");
    assert_string_equal(back.class_weight, "3=0.5,9=0");
    back.init_scale = QN__INIT_SCALE_KEEP;
    assert_int_equal(qn__recipe_check(&back, &err), QN_USAGE);
    assert_string_equal(err.where, "`train.init_scale`");
    back.init_scale = QN__INIT_SCALE_FIT;
    back.class_weight[0] = 'x';
    assert_int_equal(qn__recipe_check(&back, &err), QN_USAGE);
    qn__free(json);
    qn__recipe_release(&back);
    qn__recipe_release(&copy);
    free(expected);
}

/* A validation file that tells the best epoch. */
/* A network with pixels has the shape of its input; one that begins dense has none. */
static void test_contract_5(void **state) {
    (void)state;
    static const char *const models[] = {"conv 8 3x3 relu; maxpool 2x2; dense 10 softmax",
                                         "dense 12 relu; globalpool; dense 10 softmax"};
    static const char *const ends[] = {",\"valid_data\":\"\",\"shape\":\"1x28x28\"}",
                                       ",\"valid_data\":\"\",\"shape\":\"\"}"};
    for (int i = 0; i < 2; ++i) {
        qn__recipe r = example(), back;
        char *json;
        qn_error err = {0};
        assert_int_equal(qn__network_parse(models[i], &r.network, NULL), QN_OK);
        r.shape = (qn__shape){1, 28, 28};
        qn__recipe_tidy(&r);
        assert_int_equal(r.contract, 5);
        assert_int_equal(qn__recipe_check(&r, NULL), QN_OK);
        assert_int_equal(qn__recipe_json(&r, &json, NULL), QN_OK);
        assert_non_null(strstr(json, ends[i]));
        if (qn__recipe_parse(json, strlen(json), &back, &err) != QN_OK)
            fail_msg("%s, %s", err.what, err.where);
        assert_memory_equal(&back.shape, &r.shape, sizeof r.shape);
        qn__recipe_release(&back);
        char *number = strstr(json, "28x28");
        if (number)
            number[1] = '9'; /* 1x29x28 pixels are not 784 */
        assert_int_equal(qn__recipe_parse(json, strlen(json), &back, &err), i ? QN_OK : QN_FORMAT);
        if (i)
            qn__recipe_release(&back);
        qn__free(json);
    }
    qn__recipe r = example();
    qn_error err = {0};
    assert_int_equal(qn__network_parse(models[0], &r.network, NULL), QN_OK);
    assert_int_equal(qn__recipe_check(&r, &err), QN_USAGE);
    assert_string_equal(err.what, "the first layer is \"conv\", and the data has no pixels");
    r.shape = (qn__shape){1, 28, 28};
    r.arith = QN__ARITH_I14;
    assert_int_equal(qn__recipe_check(&r, &err), QN_OK);
    qn__recipe_tidy(&r);
    assert_int_equal(r.contract, 6);
    r.grain = r.batch = 5349; /* 5349 * 28 * 28 is the last product below 2^22 */
    assert_int_equal(qn__recipe_check(&r, &err), QN_OK);
    r.grain = r.batch = 5350;
    check_refused(&r,
                  "a grain of 5350 items has 4194400 pixels behind layer 0; integer arithmetic "
                  "takes at most 4194304",
                  "`train.grain`");
    assert_int_equal(qn__network_parse("residual { maxpool 1 }; dense 10 softmax", &r.network, 0),
                     0);
    check_refused(&r, "integer arithmetic has no residual blocks", "`train.arith`");
    assert_int_equal(
        qn__network_parse("conv 4 3; conv 4 3 depthwise; dense 10 softmax", &r.network, 0), 0);
    r.grain = r.batch = 32;
    check_refused(&r, "integer arithmetic has no convolutions of groups", "`train.arith`");
}

static void test_contract_4(void **state) {
    (void)state;
    static const char rest[] =
        "\"keep\":\"best\",\"patience\":0,\"init_from\":\"\",\"weight\":null,"
        "\"class_weight\":\"\",\"init_scale\":\"fit\",\"valid_data\":\"" DIGEST "\"";
    qn__recipe r = example(), back;
    qn_error err = {0};
    char *json;
    r.keep = QN__KEEP_BEST;
    r.valid = 0;
    assert_int_equal(qn__recipe_check_best(&r, &err), QN_USAGE);
    strcpy(r.valid_data, DIGEST);
    qn__recipe_tidy(&r);
    assert_int_equal(r.contract, 4);
    assert_int_equal(qn__recipe_check(&r, &err), QN_OK);
    assert_int_equal(qn__recipe_check_best(&r, &err), QN_OK);
    char *expected = second("classify", "null", rest);
    *strchr(expected, '2') = '4'; /* the contract */
    char *valid = strstr(expected, "\"valid\":0.1") + strlen("\"valid\":0");
    memmove(valid, valid + 2, strlen(valid + 2) + 1);
    assert_int_equal(qn__recipe_json(&r, &json, NULL), QN_OK);
    assert_string_equal(json, expected);
    if (qn__recipe_parse(json, strlen(json), &back, &err) != QN_OK)
        fail_msg("%s, %s", err.what, err.where);
    assert_string_equal(back.valid_data, DIGEST);
    qn__recipe_release(&back);
    qn__free(json);
    free(expected);
    r.valid = 0.25f; /* only one of the two can decide, */
    assert_int_equal(qn__recipe_check_best(&r, &err), QN_USAGE);
    r.valid = 0;
    r.keep = QN__KEEP_LAST; /* and nothing is in a recipe that decides on nothing */
    assert_int_equal(qn__recipe_check_best(&r, &err), QN_USAGE);
    assert_int_equal(qn__recipe_json(&r, &json, NULL), QN_OK);
    assert_int_equal(qn__recipe_parse(json, strlen(json), &back, &err), QN_FORMAT);
    assert_non_null(strstr(err.what, "the validation file decides on nothing"));
    qn__free(json);
    qn__recipe_release(&r);
}

static void test_too_many_names(void **state) {
    (void)state;
    qn__recipe r = example();
    qn_error err = {0};
    char *json;
    r.table = qn__schema_create(784, NULL);
    r.table->label = qn__alloc(QN__RECIPE_LONGEST + 1, 1, NULL);
    memset(r.table->label, 'a', QN__RECIPE_LONGEST);
    qn__recipe_tidy(&r);
    assert_int_equal(qn__recipe_json(&r, &json, &err), QN_USAGE);
    assert_non_null(strstr(err.what, "at most 8388608 can be kept"));
    qn__recipe_release(&r);
}

static void check_differ(const qn__recipe *one, const qn__recipe *other, const char *expected) {
    char *a, *b, text[256];
    assert_int_equal(qn__recipe_json(one, &a, NULL), QN_OK);
    assert_int_equal(qn__recipe_json(other, &b, NULL), QN_OK);
    qn__recipe_differences(a, b, text, sizeof text);
    assert_string_equal(text, expected);
    qn__free(a);
    qn__free(b);
}

static void test_names_that_differ(void **state) {
    (void)state;
    qn__recipe one = example(), other;
    one.table = names();
    qn__recipe_tidy(&one);
    assert_int_equal(qn__recipe_copy(&one, &other, NULL), QN_OK);
    check_differ(&one, &other, "");
    qn__free(other.table->feature[7].name);
    other.table->feature[7].name = NULL;
    check_differ(&one, &other, "table column 7 \"a7\" and column 7 without a name");
    other.table->class_name[1][0] = '\0';
    check_differ(&one, &other, "table class 1 \"\xc3\xa4\" and class 1 \"\"");
    qn__recipe_release(&other);
    qn__recipe_release(&one);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_schedule),
        cmocka_unit_test(test_loss_and_layers),
        cmocka_unit_test(test_tidy),
        cmocka_unit_test(test_contract_6),
        cmocka_unit_test(test_other_versions),
        cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_other_forms),
        cmocka_unit_test(test_mutations),
        cmocka_unit_test(test_truncations),
        cmocka_unit_test(test_differences),
        cmocka_unit_test(test_arithmetic),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_names_that_are_none),
        cmocka_unit_test(test_second_refused),
        cmocka_unit_test(test_contract_3),
        cmocka_unit_test(test_contract_4),
        cmocka_unit_test(test_contract_5),
        cmocka_unit_test(test_too_many_names),
        cmocka_unit_test(test_names_that_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
