/* Which tables of bytes count as pictures. */
#include "data/table/picture.h"
#include "data/table/testing.h"

static int is_picture(qn_data_type type, uint64_t items, uint32_t features, const void *values) {
    qn_data *data;
    assert_int_equal(qn_data_from_arrays(type, items, features, values, NULL, &data, NULL), QN_OK);
    const int answer = qn__is_picture(data, NULL);
    qn_data_close(data);
    return answer;
}

static void test_columns(void **state) {
    (void)state;
    const uint8_t half[] = {128, 1, 0, /**/ 0, 9, 0}, less[] = {128, 1, 1, /**/ 0, 9, 0};
    const uint8_t dim[] = {127, 127}, zeros[] = {0, 0}, one[] = {255};
    const float floats[] = {255, 255};
    assert_int_equal(is_picture(QN_U8, 2, 3, half), 1); /* the border does not count */
    assert_int_equal(is_picture(QN_U8, 2, 3, less), 0);
    assert_int_equal(is_picture(QN_U8, 1, 2, dim), 0);
    assert_int_equal(is_picture(QN_U8, 1, 2, zeros), 0);
    assert_int_equal(is_picture(QN_U8, 1, 1, one), 1);
    assert_int_equal(is_picture(QN_F32, 1, 2, floats), 0);
}

/* The item that decides may come late, and one that comes later may not undo it. */
static void test_late(void **state) {
    (void)state;
    enum { ITEMS = 1000, FEATURES = 4 };
    static uint8_t values[ITEMS][FEATURES];
    for (int i = 0; i < ITEMS; ++i)
        memset(values[i], 5, FEATURES);
    assert_int_equal(is_picture(QN_U8, ITEMS, FEATURES, values), 0);
    values[999][0] = values[998][1] = 200;
    assert_int_equal(is_picture(QN_U8, ITEMS, FEATURES, values), 1);
    values[999][0] = 5;
    assert_int_equal(is_picture(QN_U8, ITEMS, FEATURES, values), 0);
}

static void test_digits(void **state) {
    (void)state;
    qn_data *data;
    for (uint64_t items = 1; items < 2000; items *= 10) {
        assert_int_equal(qn_data_synth_digits(1, 0, items, &data, NULL), QN_OK);
        assert_int_equal(qn__is_picture(data, NULL), 1);
        qn_data_close(data);
    }
    assert_int_equal(qn_data_synth_digits(1, 0, 10, &data, NULL), QN_OK);
    data->schema = qn__schema_create(784, NULL);
    assert_int_equal(qn__is_picture(data, NULL), 1);
    data->schema->feature[3].categories = 1;
    assert_int_equal(qn__is_picture(data, NULL), 0);
    data->schema->feature[3].categories = 0;
    qn_data_close(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_columns), cmocka_unit_test(test_late),
                                       cmocka_unit_test(test_digits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
