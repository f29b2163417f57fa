/* NULL in every place of functions that ranks call together, as null_test.c does for the others. */
#include "null_case_test.h"
#include <quern/kernel.h>
#include <quern/predict.h>
#include <quern/statistics.h>

static void test_shared_files(void **state) {
    (void)state;
    qn_data *data;
    REFUSED(qn_data_share_files, "paths", NULL, 0, NULL, 1, NULL, &data);
    REFUSED(qn_data_share_files, "out", NULL, 0, &(const char *){"a.csv"}, 1, NULL, NULL);
}

static void test_parts(void **state) {
    (void)state;
    static const char *const path = "a.csv";
    qn_parts *parts;
    qn_statistics *found;
    qn_data *table;
    REFUSED(qn_parts_table, "parts", NULL, 0, &table);
    REFUSED(qn_parts_copies, "parts", NULL, 2);
    REFUSED(qn_parts_check, "data", NULL);
    REFUSED(qn_parts_open, "paths", NULL, NULL, 1, NULL, &parts);
    REFUSED(qn_parts_open, "out", NULL, &path, 1, NULL, NULL);
    REFUSED(qn_predictions_join, "predictions", NULL, NULL, 1);
    REFUSED(qn_parts_gather, "parts", NULL, path, 1, NULL);
    int moved;
    REFUSED(qn_parts_mend, "parts", NULL, &moved);
    REFUSED(qn_predictions_write_part, "predictions", NULL, NULL, 0, path);
    assert_int_equal(qn_parts_range(NULL, 0, NULL, NULL), 0);
    REFUSED(qn_parts_of_data, "out", NULL, NULL, NULL, NULL);
    REFUSED(qn_statistics_of_parts, "parts", NULL, NULL, &found);
    REFUSED(qn_statistics_of_parts, "out", NULL, NULL, NULL);
    assert_int_equal(qn_parts_items(NULL), 0);
    assert_int_equal(qn_parts_first(NULL), 0);
    assert_null(qn_parts_own(NULL));
    assert_null(qn_data_parts(NULL));
    assert_string_equal(qn_parts_digest(NULL), "");
    assert_null(qn_parts_class_items(NULL));
    qn_parts_close(NULL);
}

static void test_arrays_in_parts(void **state) {
    (void)state;
    const uint64_t shape[1] = {1};
    float x = 0;
    qn_kernel *k;
    assert_int_equal(qn_kernel_read("INDEX(i); INPUT(float, x); COUNT(n); KERNEL { n = x > 0; }",
                                    "a.c", &k, NULL),
                     QN_OK);
    REFUSED(qn_kernel_bind_parts, "kernel", NULL, "x", "x.npy");
    REFUSED(qn_kernel_bind_parts, "name", k, NULL, "x.npy");
    REFUSED(qn_kernel_bind_parts, "path", k, "x", NULL);
    REFUSED(qn_kernel_bind_part, "kernel", NULL, "x", &x, shape, 1);
    REFUSED(qn_kernel_bind_part, "name", k, NULL, &x, shape, 1);
    REFUSED(qn_kernel_bind_part, "data", k, "x", NULL, shape, 1);
    REFUSED(qn_kernel_bind_part, "shape", k, "x", &x, NULL, 1);
    qn_kernel_free(k);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shared_files),
                                       cmocka_unit_test(test_parts),
                                       cmocka_unit_test(test_arrays_in_parts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
