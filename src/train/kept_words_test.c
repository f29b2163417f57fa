/* Rare words that are kept of a model whose columns of texts are others. */
#include <quern/quern.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { ITEMS = 40 };

/* Two columns of texts. One has two short texts, the other `ITEMS` of many words: so they have
 * different numbers of inputs. `long_one`: which is that other one. */
static qn_data *make_data(int long_one) {
    static char space[ITEMS][64];
    static const char *many[ITEMS], *few[2] = {"cold day", "warm day"};
    static float both[2][ITEMS][2];
    float(*values)[2] = both[long_one];
    int32_t labels[ITEMS];
    for (int i = 0; i < ITEMS; i++) {
        snprintf(space[i], sizeof space[i], "a film of the year %d and more %d", 1900 + i, 7 * i);
        many[i] = space[i];
        values[i][long_one] = (float)i;
        values[i][!long_one] = (float)(i % 2);
        labels[i] = i % 2;
    }
    const char *const *category[2] = {long_one ? few : many, long_one ? many : few};
    const uint32_t categories[2] = {long_one ? 2 : ITEMS, long_one ? ITEMS : 2};
    const uint8_t texts[2] = {1, 1};
    qn_data_arrays a;
    qn_data *data;
    qn_data_arrays_init(&a);
    a.items = ITEMS;
    a.features = 2;
    a.values = values;
    a.labels = labels;
    a.categories = categories;
    a.category = category;
    a.texts = texts;
    qn_error err;
    if (qn_data_lend(&a, &data, &err) != QN_OK)
        fail_msg("%s", err.what);
    return data;
}

static qn_train_options options(void) {
    qn_train_options o;
    qn_train_options_init(&o);
    o.epochs = 1;
    return o;
}

static qn_model *make_model(const qn_data *data) {
    const qn_train_options o = options();
    qn_train *training;
    qn_model *model;
    assert_int_equal(qn_train_open(&o, data, NULL, NULL, &training, NULL), QN_OK);
    assert_int_equal(qn_train_run(training, NULL), QN_OK);
    assert_int_equal(qn_train_model(training, &model, NULL), QN_OK);
    qn_train_close(training);
    return model;
}

/* As many words in all are not enough. */
static void test_each_column_has_its_words(void **state) {
    (void)state;
    qn_data *data = make_data(0), *other = make_data(1);
    qn_model *names = make_model(data), *start = make_model(other);
    qn_train_options o = options();
    qn_train *training;
    qn_error err;
    assert_int_not_equal(qn_model_text_inputs(names, 0), qn_model_text_inputs(start, 0));
    o.table_of = names;
    o.init_scale = "keep";
    o.init_from = start;
    assert_int_equal(qn_train_open(&o, data, NULL, NULL, &training, &err), QN_MISMATCH);
    assert_string_equal(err.what, "the model to start from has another number of words, which "
                                  "cannot be kept");
    o.init_from = names;
    assert_int_equal(qn_train_open(&o, data, NULL, NULL, &training, &err), QN_OK);
    qn_train_close(training);
    qn_model_free(names);
    qn_model_free(start);
    qn_data_close(data);
    qn_data_close(other);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_column_has_its_words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
