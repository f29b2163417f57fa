/* Splits and standardisation: the sets follow the contract, and views return the right values. */
#include "data/prepare/scale.h"
#include "data/table/data.h"
#include "data/table/testing.h"
#include "num/permutation.h"
#include "num/philox.h"

enum { ITEMS = 1000, FEATURES = 70 };

static qn_data *make(qn_data_type type) {
    static uint8_t bytes[ITEMS * FEATURES];
    static float floats[ITEMS * FEATURES];
    static int32_t labels[ITEMS];
    for (int i = 0; i < ITEMS * FEATURES; i++) {
        bytes[i] = i % FEATURES == 3 ? 9 : (uint8_t)((unsigned)i * 2654435761u >> 20);
        floats[i] = bytes[i];
    }
    for (int i = 0; i < ITEMS; i++)
        labels[i] = i % 7;
    qn_data *data;
    assert_int_equal(qn_data_from_arrays(type, ITEMS, FEATURES,
                                         type == QN_U8 ? (void *)bytes : floats, labels, &data,
                                         NULL),
                     QN_OK);
    return data;
}

static void test_parts(void **state) {
    (void)state;
    qn_data *all = make(QN_U8), *train, *valid;
    assert_int_equal(qn__data_split(all, 0.25f, 42, &train, &valid, NULL), QN_OK);
    assert_int_equal(qn_data_items(valid), 250);
    assert_int_equal(qn_data_items(train), 750);
    char chosen[ITEMS] = {0};
    qn__permutation order;
    qn__permutation_begin(&order, ITEMS, 42, QN__PURPOSE_SPLIT, 0);
    for (uint64_t p = 0; p < 250; p++)
        chosen[qn__permutation_at(&order, p)] = 1;
    uint64_t at[2] = {0, 0};
    for (uint64_t i = 0; i < ITEMS; i++) { /* both sets in ascending order */
        const qn_data *part = chosen[i] ? valid : train;
        uint64_t k = at[(int)chosen[i]]++;
        assert_ptr_equal(qn__data_item(part, k), qn__data_item(all, i));
        assert_int_equal(qn_data_labels(part)[k], qn_data_labels(all)[i]);
    }
    assert_int_equal(qn_data_classes(train), 7);
    assert_string_equal(qn_data_digest(train), qn_data_digest(all));
    qn_data_close(train);
    qn_data_close(valid);
    qn_data_close(all);
}

/* 25.43: the last items of a corpus, and the one before them nowhere. */
static void test_corpus(void **state) {
    (void)state;
    enum { CONTEXT = 5, TOKENS = 4 * CONTEXT + 1 };
    uint16_t tokens[TOKENS];
    qn_data_arrays arrays;
    qn_data *all, *train, *valid;
    for (uint32_t i = 0; i < TOKENS; i++)
        tokens[i] = (uint16_t)i;
    qn_data_arrays_init(&arrays);
    arrays.type = QN_TOKENS16;
    arrays.features = CONTEXT + 1;
    arrays.items = 4;
    arrays.item_step = CONTEXT;
    arrays.feature_step = 1;
    arrays.values = tokens;
    assert_int_equal(qn_data_lend(&arrays, &all, NULL), QN_OK);
    assert_int_equal(qn_data_context(all), CONTEXT);
    assert_int_equal(qn__data_split(all, 0.25f, 42, &train, &valid, NULL), QN_OK);
    assert_int_equal(qn_data_items(train), 2);
    assert_int_equal(qn_data_items(valid), 1);
    for (uint32_t k = 0; k <= CONTEXT; k++) {
        assert_true(qn__data_number(train, 1, k) == CONTEXT + k);
        assert_true(qn__data_number(valid, 0, k) == 3 * CONTEXT + k);
    }
    qn_data_close(train);
    qn_data_close(valid);
    assert_int_equal(qn__data_split(all, 0.75f, 42, &train, &valid, NULL), QN_USAGE);
    qn_data_close(all);
}

/* floor(f * n + 1/2), and fractions that leave a set empty. */
static void test_counts(void **state) {
    (void)state;
    static const struct {
        float fraction;
        uint64_t items;
    } cases[] = {{0.0015f, 2}, {0.0005f, 1},    {0.5f, 500},  {0.9994f, 999},
                 {0.1f, 100},  {0.0004999f, 0}, {0.9996f, 0}, {1.0f, 0},
                 {0.0f, 0},    {-0.5f, 0},      {1e-30f, 0}};
    qn_data *all = make(QN_U8), *train, *valid;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qn_error err;
        qn_status status = qn__data_split(all, cases[i].fraction, 1, &train, &valid, &err);
        if (cases[i].items == 0) {
            assert_int_equal(status, QN_USAGE);
            assert_null(train);
            assert_null(valid);
            assert_true(strlen(err.remedy) > 0);
            continue;
        }
        assert_int_equal(status, QN_OK);
        assert_int_equal(qn_data_items(valid), cases[i].items);
        qn_data_close(train);
        qn_data_close(valid);
    }
    qn_data_close(all);
}

/* The same statistics from bytes and from floats, on any number of threads, of a set and of a
 * view. */
static void test_scale(void **state) {
    (void)state;
    qn_data *bytes = make(QN_U8), *floats = make(QN_F32);
    float want[2][FEATURES], got[2][FEATURES];
    assert_int_equal(qn__scale_fit(bytes, NULL, 1, want[0], want[1], NULL), QN_OK);
    assert_true(want[0][3] == 9 && want[1][3] == 0);
    for (int threads = 1; threads <= 5; threads += 2) {
        assert_int_equal(qn__scale_fit(floats, NULL, threads, got[0], got[1], NULL), QN_OK);
        assert_memory_equal(got, want, sizeof want);
        assert_int_equal(qn__scale_fit(bytes, NULL, threads, got[0], got[1], NULL), QN_OK);
        assert_memory_equal(got, want, sizeof want);
    }
    qn_data *train[2], *valid[2];
    float half[2][2][FEATURES];
    assert_int_equal(qn__data_split(bytes, 0.5f, 3, &train[0], &valid[0], NULL), QN_OK);
    assert_int_equal(qn__data_split(floats, 0.5f, 3, &train[1], &valid[1], NULL), QN_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(qn__scale_fit(train[i], NULL, 2, half[i][0], half[i][1], NULL), QN_OK);
    assert_memory_equal(half[0], half[1], sizeof half[0]);
    assert_memory_not_equal(half[0], want, sizeof want);
    for (int i = 0; i < 2; i++) {
        qn_data_close(train[i]);
        qn_data_close(valid[i]);
    }
    qn_data_close(bytes);
    qn_data_close(floats);
}

/* A group is one feature of as many times more items; 14 neighbouring features are a group. */
static void test_groups(void **state) {
    (void)state;
    enum { WIDTH = 14, GROUPS = FEATURES / WIDTH };
    static float moved[ITEMS * FEATURES], weights[ITEMS], often[ITEMS * WIDTH];
    qn_data *set[] = {make(QN_U8), make(QN_F32)}, *columns;
    float want[2][GROUPS], got[2][GROUPS];
    for (uint64_t i = 0; i < ITEMS; i++) {
        const float *item = qn__data_item(set[1], i);
        weights[i] = (float)(i % 5) * 0.3f;
        for (uint64_t k = 0; k < FEATURES; k++) {
            moved[(i * WIDTH + k % WIDTH) * GROUPS + k / WIDTH] = item[k];
            often[i * WIDTH + k % WIDTH] = weights[i];
        }
    }
    assert_int_equal(
        qn_data_from_arrays(QN_F32, ITEMS * WIDTH, GROUPS, moved, NULL, &columns, NULL), QN_OK);
    for (int weighted = 0; weighted < 2; weighted++) {
        assert_int_equal(qn__scale_fit(columns, weighted ? often : NULL, 1, want[0], want[1], NULL),
                         QN_OK);
        for (int run = 0; run < 4; run++) {
            assert_int_equal(qn__scale_fit_groups(set[run % 2], WIDTH, weighted ? weights : NULL,
                                                  1 + run, NULL, got[0], got[1], NULL),
                             QN_OK);
            assert_memory_equal(got, want, sizeof want);
        }
    }
    qn_data_close(columns);
    qn_data_close(set[0]);
    qn_data_close(set[1]);
}

/* 1, 2, 3, 4: mean 2.5, deviation sqrt(1.25); and values whose deviation is subnormal. */
static void test_small(void **state) {
    (void)state;
    const float values[8] = {1, 0, 2, 0x1p-140f, 3, 0, 4, -0x1p-140f};
    qn_data *data;
    float mean[2], deviation[2];
    assert_int_equal(qn_data_from_arrays(QN_F32, 4, 2, values, NULL, &data, NULL), QN_OK);
    assert_int_equal(qn__scale_fit(data, NULL, 2, mean, deviation, NULL), QN_OK);
    assert_true(mean[0] == 2.5f && deviation[0] == 0x1.1e377ap0f);
    assert_true(mean[1] == 0 && deviation[1] == 0);
    qn_data_close(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_corpus), cmocka_unit_test(test_parts),  cmocka_unit_test(test_counts),
        cmocka_unit_test(test_scale),  cmocka_unit_test(test_groups), cmocka_unit_test(test_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
