/* Weights of items: checked, digested, carried along, and used by means, deviations and medians. */
#include "base/memory.h"
#include "data/open/data_snapshot.h"
#include "data/prepare/fill.h"
#include "data/prepare/scale.h"
#include "data/table/testing.h"
#include <math.h>
#include <string.h>

enum { ITEMS = 6, FEATURES = 2 };
static const float values[ITEMS * FEATURES] = {1, -5, 2, NAN, 4, 7, NAN, 0.1f, 8, 1e30f, 3, NAN};
static const float weights[ITEMS] = {1, 0, 2.5f, 3, -0.0f, 1e-3f};

static qn_data_arrays arrays_of(uint64_t items, const float *of, const float *by) {
    qn_data_arrays a;
    qn_data_arrays_init(&a);
    a.items = items;
    a.features = FEATURES;
    a.values = of;
    a.missing = 1;
    a.weights = by;
    return a;
}

static qn_data *make(const float *by) {
    const qn_data_arrays a = arrays_of(ITEMS, values, by);
    qn_data *data;
    assert_int_equal(qn_data_lend(&a, &data, NULL), QN_OK);
    return data;
}

static void test_arrays(void **state) {
    (void)state;
    qn_data *weighted = make(weights), *plain = make(NULL);
    assert_memory_equal(qn_data_weights(weighted), ((float[]){1, 0, 2.5f, 3, 0, 1e-3f}),
                        sizeof weights); /* the sign of the zero too */
    assert_null(qn_data_weight_name(weighted));
    assert_null(qn_data_weights(plain));
    assert_string_not_equal(qn_data_digest(weighted), qn_data_digest(plain));
    qn_data_close(weighted);
    qn_data_close(plain);
}

/* An older caller's struct ends before the weights. */
static void test_arrays_of_an_older_caller(void **state) {
    (void)state;
    qn_data_arrays a = arrays_of(ITEMS, values, weights);
    qn_data *data;
    a.size = offsetof(qn_data_arrays, weights);
    assert_int_equal(qn_data_lend(&a, &data, NULL), QN_OK);
    assert_null(qn_data_weights(data));
    qn_data_close(data);
}

static void test_refusals(void **state) {
    (void)state;
    static const struct {
        float weight;
        const char *what;
    } cases[] = {
        {-1, "the weight -1 is not"}, {NAN, "is not a finite"}, {INFINITY, "is not a finite"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float wrong[ITEMS] = {1, 1, 1, cases[i].weight, 1, 1};
        const qn_data_arrays a = arrays_of(ITEMS, values, wrong);
        qn_data *data;
        qn_error err = {0};
        assert_int_equal(qn_data_lend(&a, &data, &err), QN_INPUT);
        check_refusal(QN_INPUT, data, &err);
        assert_non_null(strstr(err.what, cases[i].what));
        assert_string_equal(err.where, "item 3");
    }
    const float none[ITEMS] = {0};
    const qn_data_arrays a = arrays_of(ITEMS, values, none);
    qn_data *data;
    qn_error err = {0};
    assert_int_equal(qn_data_lend(&a, &data, &err), QN_INPUT);
    assert_string_equal(err.what, "the weight of every item is 0");
}

/* What a caller's function gives: two items, then the others. */
static qn_status give(void *user, qn_data_batch *batch, qn_error *err) {
    uint64_t *at = user;
    (void)err;
    batch->items = *at == 0 ? 2 : ITEMS - *at;
    batch->values = values + *at * FEATURES;
    batch->weights = weights + *at;
    *at += batch->items;
    return QN_OK;
}

static qn_status give_once(void *user, qn_data_batch *batch, qn_error *err) {
    const uint64_t *at = user;
    const int first = *at == 0;
    const qn_status status = give(user, batch, err);
    batch->weights = first ? batch->weights : NULL;
    return status;
}

static void test_batches(void **state) {
    (void)state;
    const qn_data_arrays a = arrays_of(0, NULL, NULL), given = arrays_of(0, NULL, weights);
    qn_data *whole = make(weights), *gathered;
    qn_error err = {0};
    uint64_t at = 0;
    assert_int_equal(qn_data_from_batches(&a, give, &at, &gathered, NULL), QN_OK);
    assert_string_equal(qn_data_digest(gathered), qn_data_digest(whole));
    qn_data_close(gathered);
    at = 0;
    assert_int_equal(qn_data_from_batches(&a, give_once, &at, &gathered, &err), QN_INPUT);
    assert_string_equal(err.where, "batch 1");
    assert_int_equal(qn_data_from_batches(&given, give, &at, &gathered, &err), QN_USAGE);
    qn_data_close(whole);
}

/* Snapshots, with a name and without, splits and tables with other columns keep the weights. */
static void test_they_are_carried_along(void **state) {
    (void)state;
    for (int named = 0; named < 2; named++) {
        qn_data *data = make(weights), *again, *part[2];
        if (named)
            data->weight_name = qn__copy_text("w", NULL);
        const uint64_t bytes = qn__data_snapshot_bytes(data);
        void *snapshot = qn__alloc(bytes, 1, NULL);
        qn__data_snapshot_write(data, snapshot);
        assert_int_equal(qn__data_snapshot_map(snapshot, bytes, &again, NULL), QN_OK);
        assert_memory_equal(qn_data_weights(again), qn_data_weights(data), sizeof weights);
        assert_int_equal(qn_data_weight_name(again) != NULL, named);
        assert_int_equal(qn__data_split(again, 0.5f, 7, &part[0], &part[1], NULL), QN_OK);
        for (int p = 0; p < 2; p++) {
            for (uint64_t i = 0; i < part[p]->items; i++)
                assert_true(part[p]->weights[i] == data->weights[part[p]->index[i]]);
            qn_data_close(part[p]);
        }
        qn_data_close(again);
        qn__free(snapshot);
        qn_data_close(data);
    }
}

/* A snapshot is another process's: a weight that is none is found. */
static void test_hostile_snapshot(void **state) {
    (void)state;
    qn_data *data = make(weights), *again;
    const uint64_t bytes = qn__data_snapshot_bytes(data);
    char *snapshot = qn__alloc(bytes, 1, NULL);
    qn_error err = {0};
    int refused = 0;
    qn__data_snapshot_write(data, snapshot);
    for (uint64_t at = 0; at + sizeof weights <= bytes; at += 64) {
        if (memcmp(snapshot + at, qn_data_weights(data), sizeof weights) != 0)
            continue;
        memcpy(snapshot + at, &(float){-1}, sizeof(float));
        assert_int_equal(qn__data_snapshot_map(snapshot, bytes, &again, &err), QN_FORMAT);
        assert_string_equal(err.what, "a weight of the shared data is negative or not finite");
        refused++;
        break;
    }
    assert_int_equal(refused, 1);
    qn__free(snapshot);
    qn_data_close(data);
}

/* The table with each item as often as its weight says. */
static qn_data *repeat(const float *times, uint64_t *items) {
    static float repeated[ITEMS * 4 * FEATURES];
    *items = 0;
    for (int i = 0; i < ITEMS; i++)
        for (int n = 0; n < (int)times[i]; n++)
            memcpy(repeated + FEATURES * (*items)++, values + FEATURES * i,
                   FEATURES * sizeof *values);
    const qn_data_arrays a = arrays_of(*items, repeated, NULL);
    qn_data *data;
    assert_int_equal(qn_data_lend(&a, &data, NULL), QN_OK);
    return data;
}

/* Whole weights are repetitions, to the last bit; and only their ratios count. */
static void test_fits(void **state) {
    (void)state;
    static const float cases[][ITEMS] = {{1, 1, 1, 1, 1, 1}, {3, 0, 1, 2, 1, 4},
                                         {0, 2, 2, 0, 0, 3}, {1, 2, 1, 0, 0, 0},
                                         {0, 0, 0, 1, 0, 0}, {4, 3, 2, 1, 1, 1}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (int threads = 1; threads <= 3; threads += 2)
            for (int quarter = 0; quarter < 2; quarter++) {
                float own[ITEMS], one[4][FEATURES], other[4][FEATURES];
                uint64_t items;
                qn_data *data = make(NULL), *repeated = repeat(cases[c], &items);
                for (int i = 0; i < ITEMS; i++)
                    own[i] = cases[c][i] * (quarter ? 0.25f : 1);
                for (int rule = QN__MISSING_MEAN; rule <= QN__MISSING_MEDIAN; rule++) {
                    const int r = rule == QN__MISSING_MEAN ? 0 : 1;
                    assert_int_equal(
                        qn__fill_fit(data, own, (qn__missing)rule, threads, one[r], NULL), QN_OK);
                    assert_int_equal(
                        qn__fill_fit(repeated, NULL, (qn__missing)rule, threads, other[r], NULL),
                        QN_OK);
                }
                assert_memory_equal(one, other, 2 * sizeof *one);
                qn_data_close(repeated);
                qn_data_close(data);
            }
}

static void test_scale(void **state) {
    (void)state;
    static const uint8_t bytes[8] = {1, 200, 3, 7, 255, 0, 9, 9};
    static const uint8_t often[20] = {1,   200, 1,   200, 1,   200, 3, 7, 255, 0,
                                      255, 0,   255, 0,   255, 0,   9, 9, 9,   9};
    const float own[4] = {1.5f, 0.5f, 2, 1};
    qn_data *data, *repeated;
    float one[2][2], other[2][2];
    assert_int_equal(qn_data_from_arrays(QN_U8, 4, 2, bytes, NULL, &data, NULL), QN_OK);
    assert_int_equal(qn_data_from_arrays(QN_U8, 10, 2, often, NULL, &repeated, NULL), QN_OK);
    for (int threads = 1; threads < 4; threads++) {
        assert_int_equal(qn__scale_fit(data, own, threads, one[0], one[1], NULL), QN_OK);
        assert_int_equal(qn__scale_fit(repeated, NULL, threads, other[0], other[1], NULL), QN_OK);
        assert_memory_equal(one, other, sizeof one);
    }
    qn_data_close(repeated);
    qn_data_close(data);
}

/* Written as the last column, and read again. */
static void test_csv(void **state) {
    (void)state;
    qn_data *data = make(weights), *again;
    qn_data_options options;
    char path[64];
    strcpy(path, in_folder("w.csv"));
    assert_int_equal(qn_data_write_csv(data, path, NULL), QN_OK);
    qn_data_options_init(&options);
    options.unlabelled = 1;
    options.weight = "weight";
    assert_int_equal(qn_data_open(path, &options, &again, NULL), QN_OK);
    assert_string_equal(qn_data_digest(again), qn_data_digest(data));
    assert_string_equal(qn_data_weight_name(again), "weight");
    assert_int_equal(qn_data_features(again), FEATURES);
    qn_data_close(again);
    assert_int_equal(unlink(path), 0);
    qn_data_close(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_arrays_of_an_older_caller),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_they_are_carried_along),
        cmocka_unit_test(test_hostile_snapshot),
        cmocka_unit_test(test_fits),
        cmocka_unit_test(test_scale),
        cmocka_unit_test(test_csv),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
