/* Rows of tokens that cannot be cut. */
#include "data/table/token_row.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* An item has one token more than its context, and fewer than 2^32. */
static void test_the_largest_context(void **state) {
    (void)state;
    qn_data data = {.items = (uint64_t)1 << 33, .features = 1};
    qn_error err;
    assert_int_equal(qn__token_row_cut(&data, UINT32_MAX, "row.npy", &err), QN_INPUT);
    assert_non_null(strstr(err.what, "has 4294967296 tokens"));
    assert_int_equal(data.features, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_largest_context)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
