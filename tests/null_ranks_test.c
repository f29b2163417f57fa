/* NULL in every place of functions that ranks call together, as null_test.c does for the others. */
#include "null_case_test.h"
#include <quern/data.h>

static void test_shared_files(void **state) {
    (void)state;
    qn_data *data;
    REFUSED(qn_data_share_files, "paths", NULL, 0, NULL, 1, NULL, &data);
    REFUSED(qn_data_share_files, "out", NULL, 0, &(const char *){"a.csv"}, 1, NULL, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shared_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
