/* Tables made into what a model takes: columns and classes by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "data/prepare/encode.h"

static char noted[512];

static void note(void *user, const char *text) {
    (void)user;
    snprintf(noted, sizeof noted, "%s", text);
}

/* A schema of columns of one letter each ('-': without a name). */
static qn__schema *columns(const char *letters, const char *label) {
    qn__schema *s = qn__schema_create((uint32_t)strlen(letters), NULL);
    for (uint32_t k = 0; k < s->features; ++k) {
        const char name[2] = {letters[k], '\0'};
        s->feature[k].name = letters[k] == '-' ? NULL : qn__copy_text(name, NULL);
    }
    s->label = label ? qn__copy_text(label, NULL) : NULL;
    s->target = QN__TARGET_INDEX;
    return s;
}

static void add_classes(qn__schema *s, const char *const *name, uint32_t count) {
    s->target = QN__TARGET_CLASS;
    s->classes = count;
    s->class_name = qn__alloc(count, sizeof *s->class_name, NULL);
    for (uint32_t i = 0; i < count; ++i)
        s->class_name[i] = qn__copy_text(name[i], NULL);
}

static void add_category(qn__feature *feature, const char *category) {
    feature->categories = 1;
    feature->category = qn__alloc(1, sizeof *feature->category, NULL);
    feature->category[0] = qn__copy_text(category, NULL);
}

/* Three items: feature k of item i is 10 * i + k. Takes over the schema. */
static qn_data *table(qn__schema *schema, const int32_t labels[3]) {
    float values[3 * 8];
    qn_data *data;
    for (uint32_t i = 0; i < 3 * schema->features; ++i)
        values[i] = (float)(10 * (i / schema->features) + i % schema->features);
    assert_int_equal(qn_data_from_arrays(QN_F32, 3, schema->features, values, labels, &data, NULL),
                     QN_OK);
    data->schema = schema;
    return data;
}

static qn__fitting to(const qn__schema *schema, uint32_t features) {
    noted[0] = '\0';
    return (qn__fitting){.schema = schema,
                         .features = features,
                         .outputs = 10,
                         .what = "the test set",
                         .note = note};
}

static const int32_t labels[3] = {0, 2, 1};

static void test_same_columns(void **state) {
    (void)state;
    qn__schema *model = columns("abc", "y");
    qn_data *data = table(columns("abc", NULL), labels), *made = data;
    const qn__fitting f = to(model, 3);
    assert_int_equal(qn__encode(&f, data, QN__UNKNOWN_REFUSED, &made, NULL), QN_OK);
    assert_null(made);
    qn_data_close(data);
    /* Names on one side only: by position. */
    data = table(columns("a-c", NULL), labels);
    assert_int_equal(qn__encode(&f, data, QN__UNKNOWN_REFUSED, &made, NULL), QN_OK);
    assert_null(made);
    const qn__fitting unnamed = to(NULL, 3);
    assert_int_equal(qn__encode(&unnamed, data, QN__UNKNOWN_REFUSED, &made, NULL), QN_OK);
    assert_null(made);
    qn_data_close(data);
    qn__schema_free(model);
}

static void test_other_order(void **state) {
    (void)state;
    static const float wanted[9] = {3, 0, 2, 13, 10, 12, 23, 20, 22};
    qn__schema *model = columns("abc", "y");
    qn_data *data = table(columns("bxcay", NULL), labels), *made, *same;
    add_category(&data->schema->feature[2], "Ulm");
    const qn__fitting f = to(model, 3);
    assert_int_equal(qn__encode(&f, data, QN__UNKNOWN_REFUSED, &made, NULL), QN_OK);
    assert_string_equal(noted, "the test set has 1 column that the model does not use: \"x\"");
    assert_int_equal(qn_data_features(made), 3);
    assert_memory_equal(qn_data_values(made), wanted, sizeof wanted);
    assert_memory_equal(qn_data_labels(made), labels, sizeof labels);
    assert_string_equal(made->schema->feature[2].name, "c");
    assert_string_equal(made->schema->feature[2].category[0], "Ulm"); /* its own, not the model's */
    /* The digest is that of the same content from anywhere. */
    assert_int_equal(qn_data_from_arrays(QN_F32, 3, 3, wanted, labels, &same, NULL), QN_OK);
    assert_string_equal(qn_data_digest(made), qn_data_digest(same));
    qn_data_close(same);
    qn_data_close(data);
    qn_data_close(made);
    qn__schema_free(model);
}

/* Names in `names`, separated by blanks, "-" for none. */
static qn__schema *words(const char *names) {
    char text[64], *rest = text;
    uint32_t count = 1;
    for (const char *p = names; *p; ++p)
        count += *p == ' ';
    qn__schema *s = qn__schema_create(count, NULL);
    snprintf(text, sizeof text, "%s", names);
    for (uint32_t k = 0; k < count; ++k) {
        const char *word = strtok_r(k ? NULL : text, " ", &rest);
        s->feature[k].name = strcmp(word, "-") == 0 ? NULL : qn__copy_text(word, NULL);
    }
    s->target = QN__TARGET_INDEX;
    return s;
}

/* The values of item 0 after matching: its digits are the columns of the table. NULL: in order. */
static void matches(const char *model_columns, uint32_t features, const char *data_columns,
                    const char *wanted) {
    qn__schema *model = model_columns ? words(model_columns) : NULL;
    qn_data *data = table(words(data_columns), labels), *made;
    const qn__fitting f = to(model, features);
    assert_int_equal(qn__encode(&f, data, QN__UNKNOWN_REFUSED, &made, NULL), QN_OK);
    assert_int_equal(made != NULL, wanted != NULL);
    for (uint32_t k = 0; wanted && wanted[k]; ++k)
        assert_int_equal((int)((const float *)qn_data_values(made))[k], wanted[k] - '0');
    qn_data_close(made);
    qn_data_close(data);
    qn__schema_free(model);
}

/* A column without a name hinders no other one. */
static void test_unnamed_column(void **state) {
    (void)state;
    matches("- a b", 3, "- b a", "021");
    matches("- a b", 3, "b a -", "210");
    matches("- a b", 3, "id a b", NULL);
    matches("- - -", 3, "a b c", NULL);
    matches("a b", 2, "- b a", "21");
    assert_string_equal(
        noted, "the test set has 1 column that the model does not use: one without a name");
}

/* A model without names is one of f0, f1 and so on, when a table names these elsewhere. */
static void test_numbered_columns(void **state) {
    (void)state;
    matches(NULL, 3, "f2 f0 f1", "120");
    matches(NULL, 3, "f0 f1 f2", NULL);
    matches(NULL, 3, "x f1 z", NULL);
    matches(NULL, 2, "f01 f", NULL);
    matches(NULL, 2, "f1 x f0", "20");
    matches(NULL, 2, "f0 f16", NULL); /* numbers of something else */
    qn_data *data = table(words("f2 f0 f1"), labels), *made;
    qn__fitting f = to(NULL, 3);
    f.as_trained = 1;
    assert_int_equal(qn__encode(&f, data, QN__UNKNOWN_REFUSED, &made, NULL), QN_OK);
    assert_null(made);
    qn_data_close(data);
}

static void test_bytes(void **state) {
    (void)state;
    static const uint8_t values[4] = {1, 2, 3, 4}, wanted[4] = {2, 1, 4, 3};
    qn__schema *model = columns("ab", NULL);
    qn_data *data, *made;
    const qn__fitting f = to(model, 2);
    assert_int_equal(qn_data_from_arrays(QN_U8, 2, 2, values, NULL, &data, NULL), QN_OK);
    data->schema = columns("ba", NULL);
    assert_int_equal(qn__encode(&f, data, QN__UNKNOWN_REFUSED, &made, NULL), QN_OK);
    assert_memory_equal(qn_data_values(made), wanted, sizeof wanted);
    assert_null(qn_data_labels(made));
    qn_data_close(made);
    qn_data_close(data);
    qn__schema_free(model);
}

/* Floats that come of a column which the model does not have make no floats of the others. */
static void test_bytes_beside_floats(void **state) {
    (void)state;
    static const uint8_t wanted[6] = {3, 0, 13, 10, 23, 20};
    qn__schema *model = columns("ab", NULL);
    qn_data *data = table(columns("bxca", NULL), labels), *made, *same;
    const qn__fitting f = to(model, 2);
    for (int all = 0; all < 2; ++all) {
        data->schema->feature[0].bytes = data->schema->feature[2].bytes = 1;
        data->schema->feature[3].bytes = all;
        assert_int_equal(qn__encode(&f, data, QN__UNKNOWN_REFUSED, &made, NULL), QN_OK);
        assert_int_equal(qn_data_type_of(made), all ? QN_U8 : QN_F32);
        assert_int_equal(qn_data_feature_type(made, 1), QN_U8);
        if (all) {
            assert_memory_equal(qn_data_values(made), wanted, sizeof wanted);
            assert_int_equal(qn_data_from_arrays(QN_U8, 3, 2, wanted, labels, &same, NULL), QN_OK);
            assert_string_equal(qn_data_digest(made), qn_data_digest(same));
            qn_data_close(same);
        }
        qn_data_close(made);
    }
    qn_data_close(data);
    qn__schema_free(model);
}

static void refused(const char *model_columns, const char *data_columns, const char *what,
                    const char *remedy) {
    qn__schema *model = columns(model_columns, "y");
    qn_data *data = table(columns(data_columns, NULL), labels), *made;
    qn_error err = {0};
    const qn__fitting f = to(model, model->features);
    assert_int_equal(qn__encode(&f, data, QN__UNKNOWN_REFUSED, &made, &err), QN_MISMATCH);
    assert_null(made);
    assert_string_equal(err.what, what);
    assert_string_equal(err.where, "");
    assert_non_null(strstr(err.remedy, remedy));
    assert_int_equal(qn__encode(&f, data, QN__UNKNOWN_REFUSED, &made, NULL), QN_MISMATCH);
    qn_data_close(data);
    qn__schema_free(model);
}

static void test_missing_columns(void **state) {
    (void)state;
    refused("abc", "ac", "the test set lacks the column \"b\" of the model", "");
    refused(
        "abcdefg", "y",
        "the test set lacks the columns \"a\", \"b\", \"c\", \"d\", \"e\" and 2 more of the model",
        "");
    refused("ab", "Ab", "the test set lacks the column \"a\" of the model",
            "it has \"A\", which the model does not have; give all columns");
    refused("ab", "baa", "the test set has several columns with the name \"a\"", "");
}

/* ---------------------------------------------------------------------------------- the classes */

static const char *const animals[] = {"cat", "dog", "emu"}, *const others[] = {"ant", "cat", "emu"};

static void test_class_names(void **state) {
    (void)state;
    static const int32_t mapped[3] = {0, 2, 0};
    qn__schema *model = columns("ab", "y");
    add_classes(model, animals, 3);
    qn_data *data = table(columns("ab", "y"), (const int32_t[3]){1, 2, 1}), *made;
    add_classes(data->schema, others, 3);
    const qn__fitting f = to(model, 2);
    assert_int_equal(qn__encode(&f, data, QN__UNKNOWN_REFUSED, &made, NULL), QN_OK);
    assert_memory_equal(qn_data_labels(made), mapped, sizeof mapped);
    assert_ptr_equal(qn_data_values(made), qn_data_values(data)); /* no copy */
    assert_int_equal(qn_data_classes(made), 3);
    assert_string_not_equal(qn_data_digest(made), qn_data_digest(data));
    qn_data_close(made);
    qn_data_close(data);
    qn__schema_free(model);
}

static void test_unknown_classes(void **state) {
    (void)state;
    static const int32_t mapped[3] = {-1, 2, -1};
    qn__schema *model = columns("ab", "y");
    add_classes(model, animals, 3);
    qn_data *data = table(columns("ab", "y"), (const int32_t[3]){0, 2, 0}), *made;
    add_classes(data->schema, others, 3);
    qn_error err;
    const qn__fitting f = to(model, 2);
    assert_int_equal(qn__encode(&f, data, QN__UNKNOWN_REFUSED, &made, &err), QN_MISMATCH);
    assert_string_equal(err.what,
                        "the test set has labels that the model is not trained on: \"ant\"");
    assert_int_equal(qn__encode(&f, data, QN__UNKNOWN_MINUS_ONE, &made, &err), QN_OK);
    assert_memory_equal(qn_data_labels(made), mapped, sizeof mapped);
    assert_string_equal(noted, "labels that the model is not trained on count as wrong: "
                               "\"ant\" (2 of 3 items)");
    qn_data_close(made);
    qn_data_close(data);
    qn__schema_free(model);
}

/* Numbers on one side, names on the other: whole numbers are names too. */
static void test_numbers_and_names(void **state) {
    (void)state;
    static const char *const numbers[] = {"1", "3"}, *const signs[] = {"-1", "3", "12"};
    static const int32_t mapped[3] = {3, 1, 3}, back[3] = {1, -1, 1};
    qn__schema *named = columns("ab", "y");
    qn_data *data = table(columns("ab", "y"), (const int32_t[3]){1, 0, 1}), *made;
    add_classes(data->schema, numbers, 2);
    qn__fitting f = to(NULL, 2);
    assert_int_equal(qn__encode(&f, data, QN__UNKNOWN_REFUSED, &made, NULL), QN_OK);
    assert_memory_equal(qn_data_labels(made), mapped, sizeof mapped);
    assert_int_equal(made->schema->target, QN__TARGET_INDEX);
    assert_int_equal(made->schema->classes, 0);
    qn_data_close(made);
    f.outputs = 3; /* there is no class 3 */
    assert_int_equal(qn__encode(&f, data, QN__UNKNOWN_REFUSED, &made, NULL), QN_MISMATCH);
    qn_data_close(data);
    data = table(columns("ab", "y"), (const int32_t[3]){3, 2, 3});
    add_classes(named, signs, 3);
    f = to(named, 2);
    assert_int_equal(qn__encode(&f, data, QN__UNKNOWN_MINUS_ONE, &made, NULL), QN_OK);
    assert_memory_equal(qn_data_labels(made), back, sizeof back);
    qn_data_close(made);
    qn_data_close(data);
    qn__schema_free(named);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_columns),    cmocka_unit_test(test_other_order),
        cmocka_unit_test(test_unnamed_column),  cmocka_unit_test(test_numbered_columns),
        cmocka_unit_test(test_bytes),           cmocka_unit_test(test_bytes_beside_floats),
        cmocka_unit_test(test_missing_columns), cmocka_unit_test(test_class_names),
        cmocka_unit_test(test_unknown_classes), cmocka_unit_test(test_numbers_and_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
