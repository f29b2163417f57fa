/* Texts of class weights: what they mean, the one form of each, and what is refused. */
#include "base/memory.h"
#include "model/recipe/class_weight.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* Four classes with names. */
static qn__schema *named(void) {
    static const char *const classes[] = {"cat", "a=b", "dog, big", "six \"6\""};
    qn__schema *s = qn__schema_create(1, NULL);
    s->target = QN__TARGET_CLASS;
    s->classes = 4;
    s->class_name = qn__alloc(4, sizeof *s->class_name, NULL);
    for (uint32_t i = 0; i < 4; ++i)
        s->class_name[i] = qn__copy_text(classes[i], NULL);
    return s;
}

static void check_tidy(const qn__class_names *names, const char *text, const char *wanted) {
    char *tidy;
    assert_int_equal(qn__class_weight_tidy(text, names, &tidy, NULL), QN_OK);
    if (!wanted) {
        assert_null(tidy);
        return;
    }
    assert_string_equal(tidy, wanted);
    char *again;
    assert_int_equal(qn__class_weight_tidy(tidy, names, &again, NULL), QN_OK);
    assert_string_equal(again, tidy);
    qn__free(again);
    qn__free(tidy);
}

static void test_names(void **state) {
    (void)state;
    qn__schema *table = named();
    const qn__class_names names = {table, 4};
    float weight[4];
    assert_int_equal(
        qn__class_weight_read(" \"dog, big\" = 0.5 ,cat=2,a=b=-0", &names, weight, NULL), QN_OK);
    assert_memory_equal(weight, ((float[]){2, 0, 0.5f, 1}), sizeof weight);
    check_tidy(&names, " \"dog, big\" = 0.5 ,cat=2.0,a=b=-0", "cat=2,a=b=0,\"dog, big\"=0.5");
    check_tidy(&names, "\"six \"\"6\"\"\"=1.50", "\"six \"\"6\"\"\"=1.5");
    check_tidy(&names, "\"cat\"=1,a=b=1", NULL);
    check_tidy(&names, "balanced", "balanced");
    check_tidy(&names, NULL, NULL);
    qn__schema_free(table);
}

static void test_numbers(void **state) {
    (void)state;
    const qn__class_names names = {NULL, 11};
    check_tidy(&names, "10=0.25, 3=7", "3=7,10=0.25");
}

static void test_refusals(void **state) {
    (void)state;
    static const struct {
        const char *text, *what;
    } cases[] = {
        {"", "is not CLASS=NUMBER"},
        {"cat", "is not CLASS=NUMBER"},
        {"cat=2,", "is not CLASS=NUMBER"},
        {"cat=", "is not a finite number"},
        {"cat=-1", "is not a finite number"},
        {"cat=1e39", "is not a finite number"},
        {"cat=nan", "is not a finite number"},
        {"cat=2,cat=3", "is given twice"},
        {"dog=2", "\"dog\", which is not there"},
        {"dog, big=2", "is not CLASS=NUMBER"},
        {"0=2", "\"0\", which is not there"},
        {"Balanced", "is not CLASS=NUMBER"},
    };
    qn__schema *table = named();
    const qn__class_names names = {table, 4};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        qn_error err = {0};
        char *tidy;
        assert_int_equal(qn__class_weight_tidy(cases[i].text, &names, &tidy, &err), QN_USAGE);
        assert_null(tidy);
        if (!strstr(err.what, cases[i].what))
            fail_msg("\"%s\": %s", cases[i].text, err.what);
        assert_string_equal(err.where, "`train.class_weight`");
    }
    qn_error err = {0};
    char *tidy;
    assert_int_equal(qn__class_weight_tidy("dog=2", &names, &tidy, &err), QN_USAGE);
    assert_string_equal(err.remedy, "the classes are cat, a=b, dog, big, six \"6\"");
    const qn__class_names numbers = {NULL, 11};
    assert_int_equal(qn__class_weight_tidy("11=2", &numbers, &tidy, &err), QN_USAGE);
    assert_string_equal(err.remedy, "the classes are 0, 1, 2, 3, 4 and others");
    qn__schema_free(table);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
