/* Layers of a model that requests use at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "serve/inference/layers.h"
#include <quern/quern.h>
#include <string.h>

enum { KEPT = 8, VALUES = 300, MOST = (1 << 24) / VALUES };

static int set_up(void **state) {
    static qn_model *model;
    qn_train_options o;
    qn_train *t;
    qn_data *data;
    assert_int_equal(qn_data_synth_digits(1, 0, 10, &data, NULL), QN_OK);
    qn_train_options_init(&o);
    o.model = "dense 300 relu; dense 10 softmax";
    o.epochs = 1;
    assert_int_equal(qn_train_open(&o, data, NULL, NULL, &t, NULL), QN_OK);
    assert_int_equal(qn_train_run(t, NULL), QN_OK);
    assert_int_equal(qn_train_model(t, &model, NULL), QN_OK);
    qn_train_close(t);
    qn_data_close(data);
    *state = model;
    return 0;
}

static int tear_down(void **state) {
    qn_model_free(*state);
    return 0;
}

static qn_status take(qn__layers *layers, const char *text, qn__layer_use **out, qn_error *err) {
    qn__layer_name name;
    assert_int_equal(qn__layer_name_read(text, &name, err), QN_OK);
    return qn__layers_take(layers, &name, out, err);
}

static int is_wanted(void *user) { return user != NULL; }

static void ignore(void *user, const qn__batch_answer *answer) { (void)user, (void)answer; }

/* While requests use all places, another layer has to wait. Then it gets the place of one without a
 * request, whose counts stay. */
static void test_places(void **state) {
    static const char *const name[KEPT] = {"0",      "0:mean", "0:max",  "0:first",
                                           "0:last", "1",      "1:mean", "1:max"};
    const qn__batcher_options options = {.latency = 1, .wanted = is_wanted};
    qn__layers *layers;
    qn__layer_use *use[KEPT], *other;
    qn__batcher_counts counts = {0};
    qn_data *data;
    qn_error err;
    assert_int_equal(qn_data_synth_digits(1, 0, 3, &data, NULL), QN_OK);
    assert_int_equal(qn__layers_make(*state, NULL, &options, &layers, &err), QN_OK);
    for (int k = 0; k < KEPT; ++k)
        assert_int_equal(take(layers, name[k], &use[k], &err), QN_OK);
    assert_int_equal(take(layers, "1:last", &other, &err), QN_BUSY);
    assert_non_null(strstr(err.what, "requests use 8 layers"));
    assert_int_equal(take(layers, "body", &other, &err), QN_OK);
    assert_ptr_equal(other, use[0]);
    assert_int_equal(take(layers, "-1:mean", &other, &err), QN_OK);
    assert_ptr_equal(other, use[6]);
    for (int left = 0; left < 2; ++left)
        assert_int_equal(
            qn__batcher_submit(use[3]->batcher, data, ignore, left ? NULL : data, &err), QN_OK);
    qn__layers_give(layers, use[3]);
    assert_int_equal(take(layers, "1:last", &other, &err), QN_OK);
    qn__layers_count(layers, &counts);
    assert_int_equal(counts.requests, 2);
    assert_int_equal(counts.items, 3);
    assert_int_equal(counts.left, 1);
    qn__layers_free(layers);
    qn_data_close(data);
}

static void test_most_values(void **state) {
    const qn__batcher_options options = {0};
    qn__layers *layers;
    qn__layer_use *use;
    qn_error err;
    assert_int_equal(qn__layers_make(*state, NULL, &options, &layers, &err), QN_OK);
    assert_int_equal(take(layers, "0", &use, &err), QN_OK);
    assert_int_equal(use->values, VALUES);
    assert_int_equal(qn__layer_check_items(use, MOST, &err), QN_OK);
    assert_int_equal(qn__layer_check_items(use, MOST + 1, &err), QN_INPUT);
    assert_non_null(strstr(err.what, "an answer may have 16777216"));
    qn__layers_free(layers);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_places),
                                       cmocka_unit_test(test_most_values)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
