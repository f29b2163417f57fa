/* Data sets from batches: equal to those from one array, whatever the batches; and what goes wrong.
 */
#include "base/error.h"
#include "data/table/testing.h"
#include <math.h>

enum { ITEMS = 1000, FEATURES = 3 };

/* Gives items in batches of `step`, and counts its calls. */
typedef struct giver {
    const void *values;
    const int32_t *labels;
    const float *targets;
    size_t element;
    uint64_t items, step, at;
    int calls;
    int fails_at;   /* the call that fails; 0: none */
    int silent;     /* it fails without a message */
    int changes_at; /* the call from which on labels are left out; 0: none */
} giver;

static qn_status give(void *user, qn_data_batch *batch, qn_error *err) {
    giver *g = user;
    assert_int_equal(batch->size, sizeof *batch);
    assert_int_equal(batch->items, 0);
    assert_null(batch->labels);
    g->calls++;
    if (g->calls == g->fails_at)
        return g->silent ? QN_IO : qn__fail(err, QN_IO, "the tape is torn");
    const uint64_t left = g->items - g->at;
    batch->items = left < g->step ? left : g->step;
    if (g->values)
        batch->values = (const char *)g->values + g->at * FEATURES * g->element;
    if (g->labels && (g->changes_at == 0 || g->calls < g->changes_at))
        batch->labels = g->labels + g->at;
    batch->targets = g->targets ? g->targets + g->at : NULL;
    g->at += batch->items;
    return QN_OK;
}

static float values[ITEMS][FEATURES];
static int32_t labels[ITEMS];
static float targets[ITEMS];

static int fill(void **state) {
    (void)state;
    for (int i = 0; i < ITEMS; i++) {
        for (int k = 0; k < FEATURES; k++)
            values[i][k] = (float)(i * 7 % 101) / (float)(k + 3);
        labels[i] = i % 5;
        targets[i] = (float)i / 3;
    }
    return 0;
}

static giver of_floats(uint64_t step) {
    return (giver){.values = values, .element = sizeof(float), .items = ITEMS, .step = step};
}

static qn_data_arrays described(void) {
    qn_data_arrays a;
    qn_data_arrays_init(&a);
    a.features = FEATURES;
    return a;
}

static void test_batches_are_one_array(void **state) {
    (void)state;
    static const uint64_t steps[] = {1, 7, 999, 1000, 5000}, expected[] = {0, 1, 1000, 2000};
    qn_data *whole, *data;
    assert_int_equal(qn_data_from_arrays(QN_F32, ITEMS, FEATURES, values, labels, &whole, NULL),
                     QN_OK);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        for (size_t k = 0; k < sizeof expected / sizeof *expected; k++) {
            giver g = of_floats(steps[i]);
            qn_data_arrays a = described();
            a.items = expected[k];
            g.labels = labels;
            assert_int_equal(qn_data_from_batches(&a, give, &g, &data, NULL), QN_OK);
            assert_string_equal(qn_data_digest(data), qn_data_digest(whole));
            assert_int_equal(qn_data_items(data), ITEMS);
            check_whole(data);
            qn_data_close(data);
        }
    }
    qn_data_close(whole);
}

static void test_bytes_targets_and_names(void **state) {
    (void)state;
    static const uint8_t bytes[4][FEATURES] = {{1, 2, 3}, {4, 5, 255}, {0, 0, 0}, {9, 8, 7}};
    const char *names[] = {"a", NULL, "c"};
    qn_data *whole, *data;
    qn_data_arrays a = described();
    giver g = {.values = bytes, .targets = targets, .element = 1, .items = 4, .step = 3};
    a.type = QN_U8;
    a.feature_name = names;
    a.label_name = "price";
    assert_int_equal(qn_data_from_batches(&a, give, &g, &data, NULL), QN_OK);
    a.items = 4;
    a.values = bytes;
    a.targets = targets;
    assert_int_equal(qn_data_lend(&a, &whole, NULL), QN_OK);
    assert_string_equal(qn_data_digest(data), qn_data_digest(whole));
    assert_string_equal(qn_data_feature_name(data, 2), "c");
    assert_string_equal(qn_data_label_name(data), "price");
    assert_int_equal(qn_data_target(data), QN_TARGET_REAL);
    qn_data_close(whole);
    qn_data_close(data);
}

static void test_missing_values(void **state) {
    (void)state;
    const uint32_t other_nan = 0xffc00001;
    float some[4][FEATURES] = {{1, 2, 3}, {4, NAN, 6}, {7, 8, 9}, {1, 1, 1}};
    uint32_t bits;
    qn_data *data;
    qn_error err;
    qn_data_arrays a = described();
    giver g = {.values = some, .element = sizeof(float), .items = 4, .step = 1};
    memcpy(&some[1][1], &other_nan, sizeof other_nan);
    assert_int_equal(qn_data_from_batches(&a, give, &g, &data, &err), QN_INPUT);
    assert_string_equal(err.where, "item 1, feature 1");
    a.missing = 1;
    g.at = 0;
    assert_int_equal(qn_data_from_batches(&a, give, &g, &data, NULL), QN_OK);
    memcpy(&bits, (const float *)qn_data_values(data) + 4, sizeof bits);
    assert_int_equal(bits, 0x7fc00000);
    qn_data_close(data);
}

static void test_failures_come_back(void **state) {
    (void)state;
    for (int at = 1; at < 4; at++) {
        for (int silent = 0; silent < 2; silent++) {
            giver g = of_floats(400);
            qn_data_arrays a = described();
            qn_data *data = (qn_data *)(void *)&a;
            qn_error err;
            g.fails_at = at;
            g.silent = silent;
            assert_int_equal(qn_data_from_batches(&a, give, &g, &data, &err), QN_IO);
            assert_null(data);
            assert_int_equal(err.status, QN_IO);
            assert_string_equal(err.what, silent ? "the caller's function that gives batches failed"
                                                 : "the tape is torn");
            assert_int_equal(g.calls, at);
        }
    }
}

static void refused(giver g, qn_status wanted, const char *what, const char *where) {
    qn_data *data;
    qn_error err;
    qn_data_arrays a = described();
    assert_int_equal(qn_data_from_batches(&a, give, &g, &data, &err), wanted);
    assert_null(data);
    assert_non_null(strstr(err.what, what));
    assert_string_equal(err.where, where);
    assert_true(strlen(err.remedy) > 0);
}

static void test_refusals(void **state) {
    (void)state;
    giver g = of_floats(400);
    g.items = 0;
    refused(g, QN_INPUT, "no batches", "");
    g = of_floats(400);
    g.labels = labels;
    g.changes_at = 2;
    refused(g, QN_INPUT, "differs", "batch 1");
    g = of_floats(400);
    g.labels = labels;
    g.targets = targets;
    refused(g, QN_INPUT, "labels and targets", "batch 0");
    g = of_floats(400);
    g.values = NULL;
    refused(g, QN_INPUT, "no values", "batch 0");

    qn_data *data;
    qn_error err;
    qn_data_arrays a = described();
    a.values = values;
    assert_int_equal(qn_data_from_batches(&a, give, &g, &data, &err), QN_USAGE);
    a = described();
    a.type = 9;
    assert_int_equal(qn_data_from_batches(&a, give, &g, &data, &err), QN_USAGE);
    a = described();
    a.features = 0;
    g = of_floats(400);
    assert_int_equal(qn_data_from_batches(&a, give, &g, &data, &err), QN_INPUT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches_are_one_array),
        cmocka_unit_test(test_bytes_targets_and_names),
        cmocka_unit_test(test_missing_values),
        cmocka_unit_test(test_failures_come_back),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, fill, NULL);
}
