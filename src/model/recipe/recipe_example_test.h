/* A recipe and its text, and what several tests of recipes ask. After <cmocka.h>. */
#ifndef QN_MODEL_RECIPE_RECIPE_EXAMPLE_TEST_H
#define QN_MODEL_RECIPE_RECIPE_EXAMPLE_TEST_H

#include "base/memory.h"
#include "model/recipe/recipe.h"

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
static inline qn__recipe example(void) {
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

static inline void check_refused(const qn__recipe *r, const char *what, const char *option) {
    qn_error err = {0};
    assert_int_equal(qn__recipe_check(r, &err), QN_USAGE);
    assert_string_equal(err.what, what);
    assert_string_equal(err.where, option);
    assert_true(strlen(err.remedy) > 10);
    assert_int_equal(qn__recipe_check(r, NULL), QN_USAGE);
}

/* TEXT with the first `from` replaced by `to`. */
static inline char *changed(const char *from, const char *to) {
    const char *at = strstr(TEXT, from);
    if (at == NULL)
        fail_msg("no %s", from);
    char *text = malloc(strlen(TEXT) + strlen(to) + 1);
    sprintf(text, "%.*s%s%s", (int)(at - TEXT), TEXT, to, at + strlen(from));
    return text;
}

static inline void check_unreadable(const char *from, const char *to, const char *what,
                                    const char *where, const char *remedy) {
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

#endif
