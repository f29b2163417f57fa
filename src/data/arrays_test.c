/* Data sets over a caller's arrays: what is copied, what is not, and when the owner is called. */
#include "base/memory.h"
#include "data/data.h"
#include "data/testing.h"
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

static void test_values_that_are_copied(void **state) {
    (void)state;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = 8 * sizeof(float);
    uint8_t *pages = before_a_guard(page);
    /* Bytes between the values and the guard, and whether they are used in place. */
    static const struct {
        size_t behind;
        int in_place;
    } cases[] = {{0, 0}, {4, 0}, {60, 0}, {64, 1}, {68, 1}, {70, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int calls = 0;
        uint8_t *values = pages + page - cases[i].behind - bytes;
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
    assert_int_equal(calls, 0); /* the values stay with the caller */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_stay_where_they_are),
        cmocka_unit_test(test_values_that_are_copied),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
