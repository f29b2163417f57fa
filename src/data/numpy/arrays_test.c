/* Data sets over a caller's arrays: what is copied, what is not, and when the owner is called. */
#include "base/memory.h"
#include "data/table/data.h"
#include "data/table/testing.h"
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void count(void *owner) { ++*(int *)owner; }

static qn_data_arrays four_items(const float *values, const int32_t *labels, int *calls) {
    qn_data_arrays a;
    qn_data_arrays_init(&a);
    a.items = 4;
    a.features = 2;
    a.values = values;
    a.labels = labels;
    a.owner = calls;
    a.release = count;
    return a;
}

static void test_values_stay_where_they_are(void **state) {
    (void)state;
    static _Alignas(4096) float values[1024] = {1, 2, 3, 4, 5, 6, 7, 8};
    int32_t labels[4] = {0, 2, 1, 0};
    int calls = 0;
    qn_data *lent, *copied;
    qn_data_arrays a = four_items(values, labels, &calls);
    assert_int_equal(qn_data_lend(&a, &lent, NULL), QN_OK);
    assert_ptr_equal(qn_data_values(lent), values);
    assert_int_equal(qn_data_from_arrays(QN_F32, 4, 2, values, labels, &copied, NULL), QN_OK);
    assert_string_equal(qn_data_digest(lent), qn_data_digest(copied));
    assert_int_equal(qn_data_classes(lent), 3);
    labels[1] = 7; /* labels are copied */
    assert_int_equal(qn_data_labels(lent)[1], 2);
    assert_int_equal(calls, 0);
    qn_data_close(lent);
    assert_int_equal(calls, 1);
    qn_data_close(copied);
}

/* Two pages, of which the second cannot be read. */
static uint8_t *before_a_guard(size_t page) {
    uint8_t *pages =
        mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0);
    return pages;
}

/* A step of 0 is that of items which follow one another: they share no token. */
static void test_a_corpus_needs_a_step(void **state) {
    (void)state;
    const uint16_t tokens[4] = {1, 2, 3, 4};
    qn_data *items;
    qn_data_arrays a;
    qn_data_arrays_init(&a);
    a.type = QN_TOKENS16;
    a.items = 4;
    a.features = 1;
    a.feature_step = 1;
    a.values = tokens;
    assert_int_equal(qn_data_lend(&a, &items, NULL), QN_USAGE);
}

static void test_values_that_are_copied(void **state) {
    (void)state;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = 8 * sizeof(float);
    uint8_t *pages = before_a_guard(page);
    /* Bytes between the values and the guard, and whether they are used in place. */
    static const struct {
        size_t after;
        int in_place;
    } cases[] = {{0, 0}, {4, 0}, {60, 0}, {64, 1}, {68, 1}, {70, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int calls = 0;
        uint8_t *values = pages + page - cases[i].after - bytes;
        qn_data *data;
        qn_data_arrays a = four_items((const float *)(void *)values, NULL, &calls);
        memset(values, 0, bytes);
        assert_int_equal(qn_data_lend(&a, &data, NULL), QN_OK);
        assert_int_equal(qn_data_values(data) == values, cases[i].in_place);
        assert_int_equal(calls, !cases[i].in_place);
        qn_data_close(data);
        assert_int_equal(calls, 1);
    }
    munmap(pages, 2 * page);
}

/* Values of several tiles of items and two of features, by columns and by rows, with gaps and
 * without; the last one is missing. */
static void compare_orders(size_t items) {
    enum { MOST = 2200, FEATURES = 70 };
    static float plain[MOST * FEATURES];
    static double turned[2 * MOST * FEATURES];
    const struct {
        uint64_t item_step, feature_step;
    } cases[] = {{0, 0}, {1, items}, {2, 2 * items}, {2 * FEATURES, 2}};
    qn_data *want;
    qn_data_arrays a;
    qn_data_arrays_init(&a);
    a.items = items;
    a.features = FEATURES;
    a.missing = 1;
    a.values = plain;
    for (size_t i = 0; i < items * FEATURES; i++)
        plain[i] = (float)i / 7;
    plain[items * FEATURES - 1] = NAN;
    assert_int_equal(qn_data_lend(&a, &want, NULL), QN_OK);
    a.values = turned;
    a.release = count;
    for (size_t c = 0; c < 2 * sizeof cases / sizeof *cases; c++) {
        const size_t rows = cases[c / 2].item_step ? cases[c / 2].item_step : FEATURES,
                     apart = cases[c / 2].feature_step ? cases[c / 2].feature_step : 1;
        int calls = 0;
        qn_data *data;
        a.doubles = c % 2;
        a.item_step = rows;
        a.feature_step = apart;
        a.owner = &calls;
        for (size_t i = 0; i < items; i++)
            for (size_t k = 0; k < FEATURES; k++)
                if (a.doubles) /* rounds to the same float */
                    turned[i * rows + k * apart] = (double)plain[i * FEATURES + k] * (1 + 0x1p-30);
                else
                    ((float *)turned)[i * rows + k * apart] = plain[i * FEATURES + k];
        assert_int_equal(qn_data_lend(&a, &data, NULL), QN_OK);
        assert_string_equal(qn_data_digest(data), qn_data_digest(want));
        assert_int_equal(calls, 1);
        qn_data_close(data);
    }
    qn_data_close(want);
}

static void test_values_in_another_order(void **state) {
    (void)state;
    compare_orders(300);
    compare_orders(2200); /* tiles are larger */
}

static void test_names(void **state) {
    (void)state;
    static const float values[8] = {0};
    const char *features[] = {"height", NULL}, *classes[] = {"cat", "dog", "elk"};
    const int32_t labels[4] = {0, 2, 1, 0};
    qn_data *data;
    qn_data_arrays a = four_items(values, labels, NULL);
    a.release = NULL;
    a.feature_name = features;
    a.label_name = "animal";
    a.class_name = classes;
    a.classes = 3;
    assert_int_equal(qn_data_lend(&a, &data, NULL), QN_OK);
    assert_string_equal(data->schema->feature[0].name, "height");
    assert_null(data->schema->feature[1].name);
    assert_string_equal(data->schema->label, "animal");
    assert_int_equal(data->schema->target, QN__TARGET_CLASS);
    assert_int_equal(data->schema->classes, 3);
    assert_string_equal(data->schema->class_name[2], "elk");
    qn_data_close(data);
}

static void test_categories_and_missing_values(void **state) {
    (void)state;
    uint32_t other_nan = 0xffc00001, bits;
    float values[8] = {0, 1.5f, 1, NAN, 0, 3, NAN, 4};
    const char *texts[] = {"blue", "red"};
    const char *const *category[] = {texts, NULL};
    const uint32_t categories[] = {2, 0};
    int calls = 0;
    qn_data *data;
    qn_data_arrays a = four_items(values, NULL, &calls);
    a.missing = 1;
    a.categories = categories;
    a.category = category;
    assert_int_equal(qn_data_lend(&a, &data, NULL), QN_OK);
    assert_int_equal(data->missing, 1);
    assert_int_equal(qn_data_categories(data, 0), 2);
    assert_string_equal(qn_data_category(data, 0, 1), "red");
    assert_int_equal(qn_data_categories(data, 1), 0);
    qn_data_close(data);
    memcpy(&values[3], &other_nan, sizeof other_nan); /* copied, with the bits of a missing value */
    assert_int_equal(qn_data_lend(&a, &data, NULL), QN_OK);
    assert_ptr_not_equal(qn_data_values(data), values);
    memcpy(&bits, (const float *)qn_data_values(data) + 3, sizeof bits);
    assert_int_equal(bits, 0x7fc00000);
    qn_data_close(data);
    assert_int_equal(calls, 2);
}

static void test_features_of_bytes(void **state) {
    (void)state;
    float values[8] = {0, 1.5f, 255, 2, 7, 3, 1, 4};
    const uint8_t first[] = {1, 0}, both[] = {1, 1};
    static const float others[] = {-0.0f, 256, 0.5f, NAN};
    qn_data *data;
    qn_error err;
    qn_data_arrays a = four_items(values, NULL, NULL);
    a.release = NULL;
    a.missing = 1;
    assert_int_equal(qn_data_lend(&a, &data, NULL), QN_OK);
    assert_int_equal(qn_data_feature_type(data, 0), QN_F32);
    qn_data_close(data);
    a.feature_bytes = first;
    assert_int_equal(qn_data_lend(&a, &data, NULL), QN_OK);
    assert_int_equal(qn_data_feature_type(data, 0), QN_U8);
    assert_int_equal(qn_data_feature_type(data, 1), QN_F32);
    assert_int_equal(qn_data_feature_type(data, 2), 0);
    qn_data_close(data);
    a.feature_bytes = both;
    assert_int_equal(qn_data_lend(&a, &data, &err), QN_INPUT);
    assert_string_equal(err.what, "1.5 is not a whole number from 0 to 255");
    assert_string_equal(err.where, "item 0, feature 1");
    a.feature_bytes = first;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        values[4] = others[i];
        assert_int_equal(qn_data_lend(&a, &data, &err), QN_INPUT);
        assert_string_equal(err.where, "item 2, feature 0");
    }
}

static void test_what_labels_mean(void **state) {
    (void)state;
    static const float values[8] = {0}, targets[4] = {0.5f, -1, 2, 3}, odd[4] = {0, NAN, 0, 0};
    const int32_t labels[4] = {-1, 7, -1, 3};
    qn_data *data;
    qn_error err;
    qn_data_arrays a = four_items(values, labels, NULL);
    a.release = NULL;
    assert_int_equal(qn_data_lend(&a, &data, &err), QN_INPUT); /* class numbers */
    a.task = "auto";
    assert_int_equal(qn_data_lend(&a, &data, NULL), QN_OK);
    assert_int_equal(qn_data_target(data), QN_TARGET_CLASS);
    assert_string_equal(qn_data_class_name(data, 0), "-1");
    assert_int_equal(qn_data_labels(data)[1], 2);
    qn_data_close(data);
    a.task = "regress";
    assert_int_equal(qn_data_lend(&a, &data, NULL), QN_OK);
    assert_int_equal(qn_data_target(data), QN_TARGET_REAL);
    assert_true(qn_data_targets(data)[1] == 7);
    qn_data_close(data);
    a.task = "guess";
    assert_int_equal(qn_data_lend(&a, &data, &err), QN_USAGE);
    a.task = NULL;
    a.targets = targets;
    assert_int_equal(qn_data_lend(&a, &data, &err), QN_USAGE); /* both */
    a.labels = NULL;
    assert_int_equal(qn_data_lend(&a, &data, NULL), QN_OK);
    assert_int_equal(qn_data_target(data), QN_TARGET_REAL);
    assert_true(qn_data_targets(data)[0] == 0.5f);
    qn_data_close(data);
    a.targets = odd;
    assert_int_equal(qn_data_lend(&a, &data, &err), QN_INPUT);
    assert_string_equal(err.where, "item 1");
}

static void refused(const qn_data_arrays *a, const char *what, const char *where) {
    qn_data *data;
    qn_error err = {0};
    assert_int_equal(qn_data_lend(a, &data, &err), QN_INPUT);
    assert_null(data);
    assert_non_null(strstr(err.what, what));
    assert_string_equal(err.where, where);
}

static void test_refusals(void **state) {
    (void)state;
    float values[8] = {0};
    const char *classes[] = {"cat", NULL};
    const int32_t labels[4] = {0, 2, 1, 0};
    int calls = 0;
    qn_data *data;
    qn_error err;
    qn_data_arrays a = four_items(values, labels, &calls);
    a.class_name = classes;
    a.classes = 2;
    refused(&a, "class 1 has no name", "");
    classes[1] = "dog";
    refused(&a, "the label 2 is not one of 2 classes", "item 1");
    values[5] = INFINITY;
    refused(&a, "not a finite number", "item 2, feature 1");
    a.size = 1;
    assert_int_equal(qn_data_lend(&a, &data, &err), QN_USAGE);
    a.size = sizeof a;
    a.values = NULL;
    assert_int_equal(qn_data_lend(&a, &data, &err), QN_USAGE);
    assert_non_null(strstr(err.what, "arrays->values"));
    static float fits[8] = {0, 0, 2};
    const char *texts[] = {"red", "blue"};
    const char *const *category[] = {texts, NULL};
    const uint32_t categories[] = {2, 0};
    a = four_items(fits, NULL, &calls);
    a.categories = categories;
    a.category = category;
    refused(&a, "the categories of feature 0 do not ascend", "");
    texts[1] = "yellow";
    refused(&a, "2 is not one of 2 categories", "item 1, feature 0");
    assert_int_equal(calls, 0); /* the values stay with the caller */
}

/* Several threads look for what is not finite. The first one is told. */
static void test_many_values(void **state) {
    (void)state;
    enum { ITEMS = 1 << 15, FEATURES = 37, COUNT = ITEMS * FEATURES };
    static const size_t places[][2] = {{COUNT - 1, COUNT - 1}, {900000, COUNT - 1}, {0, 70000}};
    static float values[COUNT + QN__DATA_MARGIN];
    char where[64];
    qn_data *data;
    qn_error err;
    qn_data_arrays a;
    qn_data_arrays_init(&a);
    a.items = ITEMS;
    a.features = FEATURES;
    a.values = values;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const size_t first = places[i][0], second = places[i][1];
        values[first] = values[second] = INFINITY;
        snprintf(where, sizeof where, "item %zu, feature %zu", first / FEATURES, first % FEATURES);
        a.missing = 1;
        refused(&a, "not a finite number", where);
        values[first] = values[second] = NAN;
        a.missing = 0;
        refused(&a, "not a finite number", where);
        a.missing = 1;
        assert_int_equal(qn_data_lend(&a, &data, &err), QN_OK);
        assert_int_equal(data->missing, 1);
        qn_data_close(data);
        values[first] = values[second] = 0;
        assert_int_equal(qn_data_lend(&a, &data, &err), QN_OK);
        assert_int_equal(data->missing, 0);
        qn_data_close(data);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_stay_where_they_are),
        cmocka_unit_test(test_values_that_are_copied),
        cmocka_unit_test(test_values_in_another_order),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_categories_and_missing_values),
        cmocka_unit_test(test_features_of_bytes),
        cmocka_unit_test(test_a_corpus_needs_a_step),
        cmocka_unit_test(test_what_labels_mean),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_many_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
