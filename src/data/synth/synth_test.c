/* Synthetic digits: fixed bytes, independence of items, all ten classes. */
#include "data/table/testing.h"

/* The first 1000 items of seed 1. It may change only together with the name "digits-1". */
static const char digits_1[] = "14f9593ad5442787f516ddb439ba2ca926121e705db1787a07a081ff0859f2b6";

static qn_data *draw(uint64_t seed, uint64_t first, uint64_t items) {
    qn_data *data;
    qn_error err;
    assert_int_equal(qn_data_synth_digits(seed, first, items, &data, &err), QN_OK);
    assert_int_equal(qn_data_items(data), items);
    return data;
}

static void test_fixed(void **state) {
    (void)state;
    qn_data *data = draw(1, 0, 1000);
    assert_string_equal(qn_data_digest(data), digits_1);
    assert_string_equal(qn_data_format(data), "synth");
    assert_int_equal(qn_data_classes(data), 10);
    uint32_t rows, columns;
    qn_data_image_size(data, &rows, &columns);
    assert_true(rows == 28 && columns == 28 && qn_data_features(data) == 784);
    check_whole(data);
    qn_data_close(data);
}

/* An item is the same in a short and a long set, beyond 2^32 too, and different with another
 * seed. */
static void test_items(void **state) {
    (void)state;
    static const uint64_t firsts[] = {0, 255, 1000, ((uint64_t)1 << 32) - 100,
                                      ((uint64_t)1 << 48) - 600};
    for (size_t k = 0; k < sizeof firsts / sizeof *firsts; k++) {
        qn_data *many = draw(7, firsts[k], 600), *one = draw(7, firsts[k] + 311, 1);
        qn_data *other = draw(8, firsts[k] + 311, 1);
        const uint8_t *item = (const uint8_t *)qn_data_values(many) + 311 * 784;
        assert_memory_equal(item, qn_data_values(one), 784);
        assert_int_equal(qn_data_labels(many)[311], qn_data_labels(one)[0]);
        assert_memory_not_equal(item, qn_data_values(other), 784);
        qn_data_close(many);
        qn_data_close(one);
        qn_data_close(other);
    }
}

/* Digits are about equally frequent, have ink, and no image occurs twice. */
static void test_variety(void **state) {
    (void)state;
    enum { ITEMS = 5000 };
    qn_data *data = draw(20261121, 0, ITEMS);
    const uint8_t *values = qn_data_values(data);
    int count[10] = {0};
    for (int i = 0; i < ITEMS; i++) {
        unsigned ink = 0;
        for (int k = 0; k < 784; k++)
            ink += values[i * 784 + k];
        assert_in_range(ink, 255 * 10, 255 * 784 / 2);
        count[qn_data_labels(data)[i]]++;
        if (i > 0)
            assert_memory_not_equal(values + i * 784, values + (i - 1) * 784, 784);
    }
    for (int digit = 0; digit < 10; digit++) /* 500 each; 5 deviations are 106 */
        assert_in_range(count[digit], 394, 606);
    qn_data_close(data);
}

static void test_refusals(void **state) {
    (void)state;
    qn_data *data;
    qn_error err;
    assert_int_equal(qn_data_synth_digits(1, 0, 0, &data, &err), QN_USAGE);
    assert_null(data);
    assert_non_null(strstr(err.remedy, "`synth.items`"));
    assert_int_equal(qn_data_synth_digits(1, (uint64_t)1 << 48, 1, &data, &err), QN_USAGE);
    assert_non_null(strstr(err.remedy, "`synth.first`"));
    assert_int_equal(qn_data_synth_digits(1, 0, UINT64_MAX, &data, &err), QN_USAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fixed),
        cmocka_unit_test(test_items),
        cmocka_unit_test(test_variety),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
