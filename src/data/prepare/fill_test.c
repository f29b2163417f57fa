/* Missing values: found, counted, left out, and the numbers fitted for them. */
#include "data/prepare/fill.h"
#include "data/table/testing.h"
#include <math.h>

/* A table of floats, in which NaN stands for a missing value. */
static qn_data *make(uint64_t items, uint32_t features, const float *values) {
    qn_data *data;
    float *zeros = calloc(items * features, sizeof *zeros);
    assert_int_equal(qn_data_from_arrays(QN_F32, items, features, zeros, NULL, &data, NULL), QN_OK);
    free(zeros);
    memcpy(data->memory, values, items * features * sizeof *values);
    data->schema = qn__schema_create(features, NULL);
    assert_non_null(data->schema);
    data->missing = 1;
    return data;
}

static const float holes[] = {
    1, 10, NAN, -1, /**/ 2, NAN, NAN, -2, /**/ 3, 30, 7, -3, /**/ NAN, 40, 8, -4, /**/ 5, 50, 9, -5,
};

static void test_missing(void **state) {
    (void)state;
    qn_data *data = make(5, 4, holes), *view;
    qn__missing_counts missing;
    assert_true(qn__has_missing(data));
    assert_int_equal(qn__missing_count(data, &missing, NULL), QN_OK);
    assert_int_equal(missing.values, 4);
    assert_int_equal(missing.items, 3);
    assert_int_equal(missing.columns, 3);
    assert_int_equal(missing.feature, 2);
    assert_int_equal(missing.item, 0);
    assert_int_equal(missing.in_column, 2);
    assert_int_equal(qn__complete_items(data, &view, NULL), QN_OK);
    assert_int_equal(qn_data_items(view), 2);
    assert_true(qn__data_item(view, 0) == qn__data_item(data, 2));
    assert_true(qn__data_item(view, 1) == qn__data_item(data, 4));
    assert_false(qn__has_missing(view));
    qn_data *same;
    assert_int_equal(qn__complete_items(view, &same, NULL), QN_OK);
    assert_null(same);
    qn_data_close(view);
    qn_data_close(data);
}

/* Tables of bytes, and those whose reader found no missing value, are not looked through. */
static void test_none(void **state) {
    (void)state;
    const uint8_t bytes[4] = {0, 255, 1, 2};
    qn_data *data;
    qn__missing_counts missing;
    assert_int_equal(qn_data_from_arrays(QN_U8, 2, 2, bytes, NULL, &data, NULL), QN_OK);
    data->missing = 1;
    assert_false(qn__has_missing(data));
    assert_int_equal(qn__missing_count(data, &missing, NULL), QN_OK);
    assert_int_equal(missing.values, 0);
    qn_data_close(data);
    data = make(1, 1, &(float){NAN});
    data->missing = 0;
    assert_false(qn__has_missing(data));
    qn_data_close(data);
}

static void test_no_item_left(void **state) {
    (void)state;
    const float values[] = {NAN, 1, 2, NAN};
    qn_data *data = make(2, 2, values), *view;
    qn_error err;
    assert_int_equal(qn__complete_items(data, &view, &err), QN_INPUT);
    assert_null(view);
    assert_string_equal(err.what, "every one of the 2 items has a missing value");
    qn_data_close(data);
}

static void assert_fill(const qn_data *data, qn__missing rule, const float *expected) {
    for (int threads = 1; threads <= 3; threads += 2) {
        float fill[64];
        assert_int_equal(qn__fill_fit(data, NULL, rule, threads, fill, NULL), QN_OK);
        assert_memory_equal(fill, expected, data->features * sizeof *fill);
    }
}

/* Sums that doubles would lose, a column without a value, one whose mean is -0 before it is +0. */
static void test_means(void **state) {
    (void)state;
    const float odd[] = {1e30f, NAN, -0.0f, 3, /**/ 1,      NAN, -0.0f, NAN, /**/
                         NAN,   NAN, NAN,   1, /**/ -1e30f, NAN, NAN,   1};
    qn_data *data = make(4, 4, odd);
    assert_fill(data, QN__MISSING_MEAN, (float[]){0x1.555556p-2f, 0, 0, 0x1.aaaaaap0f});
    qn_data_close(data);
    data = make(5, 4, holes);
    assert_fill(data, QN__MISSING_MEAN, (float[]){2.75f, 32.5f, 8, -3});
    data->schema->feature[1].categories = 1; /* its indices have no mean */
    assert_fill(data, QN__MISSING_MEAN, (float[]){2.75f, 0, 8, -3});
    assert_fill(data, QN__MISSING_MEDIAN, (float[]){2.5f, 0, 8, -3});
    data->schema->feature[1].categories = 0;
    qn_data_close(data);
}

static void test_medians(void **state) {
    (void)state;
    const float values[] = {-0.0f, 0x1p-149f, 0x1.fffffep127f,
                            1, /* zeros; subnormals; no overflow; one value */
                            0.0f,  0x1p-148f, 0x1.fffffep127f,
                            NAN, /**/
                            -1.0f, NAN,       NAN,
                            NAN, /**/
                            1.0f,  NAN,       NAN,
                            NAN};
    qn_data *data = make(4, 4, values);
    /* 1.5 * 2^-149 lies in the middle of two floats: ties to even */
    assert_fill(data, QN__MISSING_MEDIAN, (float[]){0, 0x1p-148f, 0x1.fffffep127f, 1});
    qn_data_close(data);
    const uint8_t bytes[] = {255, 0, 4, 1, 9, 7};
    assert_int_equal(qn_data_from_arrays(QN_U8, 3, 2, bytes, NULL, &data, NULL), QN_OK);
    assert_fill(data, QN__MISSING_MEDIAN, (float[]){9, 1});
    assert_fill(data, QN__MISSING_MEAN, (float[]){268.0f / 3.0f, 8.0f / 3.0f});
    qn_data_close(data);
}

static int ascending(const void *one, const void *other) {
    const float a = *(const float *)one, b = *(const float *)other;
    return (a > b) - (a < b);
}

/* Against sorting: 33 columns, so that tiles are not full, of all kinds of floats. */
static void test_sorted(void **state) {
    (void)state;
    enum { ITEMS = 301, FEATURES = 33 };
    static float values[ITEMS * FEATURES], column[ITEMS];
    uint32_t seed = 7;
    for (int i = 0; i < ITEMS * FEATURES; ++i) {
        seed = seed * 1664525u + 1013904223u;
        memcpy(&values[i], &seed, sizeof seed);
        if (isinf(values[i]) || seed % 5 == 0)
            values[i] = NAN;
    }
    float expected[FEATURES];
    for (int k = 0; k < FEATURES; ++k) {
        int n = 0;
        for (int i = 0; i < ITEMS; ++i)
            if (!isnan(values[i * FEATURES + k]))
                column[n++] = values[i * FEATURES + k];
        qsort(column, (size_t)n, sizeof *column, ascending);
        expected[k] =
            n % 2 ? column[n / 2]
                  : (float)((long double)column[n / 2 - 1] / 2 + (long double)column[n / 2] / 2);
    }
    qn_data *data = make(ITEMS, FEATURES, values);
    assert_fill(data, QN__MISSING_MEDIAN, expected);
    qn_data_close(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_missing),      cmocka_unit_test(test_none),
        cmocka_unit_test(test_no_item_left), cmocka_unit_test(test_means),
        cmocka_unit_test(test_medians),      cmocka_unit_test(test_sorted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
