/* Recipes with augmentation or scaling per channel: their text, and what has no pixels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/formats/model.h"
#include "model/recipe/recipe_example_test.h"

/* 17.10: the shape stands beside the text, although the network takes features. */
static void test_augment(void **state) {
    (void)state;
    char good[] = "pad 1; crop", bad[] = "pad 1;crop", wide[] = "cutout 3", part[] = "pad 1";
    qn__recipe r = example(), back;
    char *json;
    r.augment = good;
    check_refused(&r, "the data has no pixels that could be augmented", "`train.augment`");
    r.shape = (qn__shape){1, 2, r.features / 2, QN__PICTURE};
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

/* 17.11: the shape says how many numbers the scaling has. */
static void test_channel(void **state) {
    (void)state;
    qn__recipe r = example(), back;
    char *json;
    float shift[784], inverse[784];
    const float mean[4] = {1, 2, 3, 4}, deviation[4] = {2, 0, 8, 16};
    r.scale = QN__SCALE_CHANNEL;
    check_refused(&r, "the scaling \"channel\" is for images, and the data has no pixels",
                  "`train.scale`");
    r.shape = (qn__shape){4, 14, 14, QN__PICTURE};
    qn__recipe_tidy(&r);
    assert_int_equal(r.contract, 6);
    assert_int_equal(qn__scale_count(&r), 4);
    assert_int_equal(qn__scale_of_program(&r), QN__SCALE_STANDARD);
    assert_int_equal(qn__recipe_needs_bytes(&r), 0);
    assert_int_equal(qn__recipe_json(&r, &json, NULL), QN_OK);
    assert_non_null(strstr(json, "\"scale\":\"channel\""));
    assert_non_null(strstr(json, "\"shape\":\"4x14x14\"}"));
    assert_int_equal(qn__recipe_parse(json, strlen(json), &back, NULL), QN_OK);
    assert_int_equal(back.scale, QN__SCALE_CHANNEL);
    qn__recipe_release(&back);
    /* No earlier contract has it. */
    json[strlen("{\"contract\":")] = '5';
    assert_int_equal(qn__recipe_parse(json, strlen(json), &back, NULL), QN_FORMAT);
    qn__free(json);
    qn__scale_inputs(&r, mean, deviation, shift, inverse);
    assert_true(shift[0] == 1 && shift[195] == 1 && shift[196] == 2 && shift[783] == 4);
    assert_true(inverse[0] == 0.5f && inverse[391] == 0 && inverse[392] == 0.125f);
    r.scale = QN__SCALE_STANDARD;
    assert_int_equal(qn__scale_count(&r), 784);
    r.scale = QN__SCALE_UNIT;
    assert_int_equal(qn__scale_count(&r), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_augment),
                                       cmocka_unit_test(test_channel)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
