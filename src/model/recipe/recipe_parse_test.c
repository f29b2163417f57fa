/* Recipes: strict parsing of hostile texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/recipe/recipe_example_test.h"

static void test_other_versions(void **state) {
    (void)state;
    check_unreadable("\"contract\":1", "\"contract\":10",
                     "keeps version 10 of the contract; this is version 9", "contract", "newer");
    check_unreadable("\"contract\":1", "\"contract\":9", "the key is missing", "task", "changed");
    check_unreadable("\"contract\":1", "\"contract\":8", "the key is missing", "task", "changed");
    check_unreadable("\"contract\":1", "\"contract\":7", "the key is missing", "task", "changed");
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
    check_unreadable("\"unit\":44", "\"unit\":61", "unit of gradients is 61", "recipe", made);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_other_versions), cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_other_forms),    cmocka_unit_test(test_mutations),
        cmocka_unit_test(test_truncations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
