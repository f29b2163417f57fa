/* The names of the rules of reading. */
#include "data/table/rules.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void test_names(void **state) {
    (void)state;
    char text[QN_RULES_TEXT];
    uint32_t all, none, one;
    assert_int_equal(qn__rules_parse(NULL, &all, NULL), QN_OK);
    assert_true(all & QN__RULE_ORIENTATION);
    assert_int_equal(qn__rules_parse("", &none, NULL), QN_OK);
    assert_int_equal(none, 0);
    qn__rules_text(all, text); /* what is written is read */
    assert_true(strlen(text) > 0 && strlen(text) < sizeof text - 1);
    assert_int_equal(qn__rules_parse(text, &one, NULL), QN_OK);
    assert_int_equal(qn__rules_parse("orientation", &one, NULL), QN_OK);
    assert_int_equal(one, QN__RULE_ORIENTATION);
    qn__rules_text(one, text);
    assert_string_equal(text, "orientation");
}

static void test_refused(void **state) {
    (void)state;
    static const char *const wrong[] = {" ",
                                        "Orientation",
                                        "orientation ",
                                        " orientation",
                                        "orientation orientation",
                                        "orientation,x",
                                        "orientatio"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
        uint32_t rules = 77;
        qn_error err = {0};
        assert_int_equal(qn__rules_parse(wrong[i], &rules, &err), QN_USAGE);
        assert_int_equal(rules, 77);
        assert_non_null(strstr(err.what, wrong[i]));
    }
}

static void test_options(void **state) {
    (void)state;
    qn_data_options options;
    qn_data_options_init(&options);
    assert_true(qn__rule_holds(&options, QN__RULE_ORIENTATION));
    options.expected_rules = "";
    assert_false(qn__rule_holds(&options, QN__RULE_ORIENTATION));
    options.expected_rules = "orientation";
    assert_true(qn__rule_holds(&options, QN__RULE_ORIENTATION));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names), cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_options)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
