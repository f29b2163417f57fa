/* Recipes with augmentation: their text, and what cannot be augmented. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "model/recipe.h"

#include <string.h>

static qn__recipe example(void) {
    qn__recipe r = {.items = 100,
                    .features = 784,
                    .scale = QN__SCALE_UNIT,
                    .learning_rate = 1e-3f,
                    .batch = 64,
                    .grain = 32,
                    .epochs = 10,
                    .gradient_scale = 44};
    memset(r.data, '7', sizeof r.data - 1);
    assert_int_equal(qn__network_parse("dense 10 softmax", &r.network, NULL), QN_OK);
    return r;
}

static void check_refused(const qn__recipe *r, const char *what, const char *where) {
    qn_error err = {0};
    assert_int_equal(qn__recipe_check(r, &err), QN_USAGE);
    assert_string_equal(err.what, what);
    assert_string_equal(err.where, where);
    assert_true(strlen(err.remedy) > 10);
    assert_int_equal(qn__recipe_check(r, NULL), QN_USAGE);
}

/* 17.10: the shape stands beside the text, although the network takes features. */
static void test_augment(void **state) {
    (void)state;
    char good[] = "pad 1; crop", bad[] = "pad 1;crop", wide[] = "cutout 3", part[] = "pad 1";
    qn__recipe r = example(), back;
    char *json;
    r.augment = good;
    check_refused(&r, "the data has no pixels that could be augmented", "`train.augment`");
    r.shape = (qn__shape){1, 2, r.features / 2};
    qn__recipe_tidy(&r);
    assert_int_equal(r.contract, 6);
    assert_int_equal(qn__recipe_check(&r, NULL), QN_OK);
    assert_int_equal(qn__recipe_input(&r).channels, r.features);
    assert_int_equal(qn__recipe_augment(&r).words, 2);
    assert_int_equal(qn__recipe_json(&r, &json, NULL), QN_OK);
    assert_non_null(strstr(json, "\"shape\":\"1x2x"));
    assert_non_null(strstr(json, ",\"augment\":\"pad 1; crop\"}"));
    assert_int_equal(qn__recipe_parse(json, strlen(json), &back, NULL), QN_OK);
    assert_string_equal(back.augment, good);
    qn__recipe_release(&back);
    /* A text in another form, with or without a meaning, is that of no recipe. */
    memcpy(strstr(json, "pad 1"), "Pad 1", 5);
    assert_int_equal(qn__recipe_parse(json, strlen(json), &back, NULL), QN_FORMAT);
    qn__free(json);
    r.augment = bad;
    check_refused(&r, "\"pad 1;crop\" is not how a recipe writes it", "`train.augment`");
    r.augment = wide;
    check_refused(&r, "\"cutout 3\" is too much for images of 2x392", "`train.augment`");
    r.augment = part;
    check_refused(&r, "\"pad\" alone would make the images larger",
                  "augmentation, column 1:\n  pad 1\n  ^");
    r.augment = good;
    r.shape.height = 3;
    check_refused(&r, "1x3x392 pixels are not 784 inputs", "`train.shape`");
    r.augment = NULL;
    qn__recipe_tidy(&r);
    assert_int_equal(r.contract, 1);
    assert_int_equal(r.shape.height, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_augment)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
