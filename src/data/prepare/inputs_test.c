/* From columns to inputs: numbers filled, categories as ones and zeros, what is told and refused.
 */
#include "base/memory.h"
#include "data/prepare/inputs.h"
#include "data/table/testing.h"
#include <math.h>

static char told[8][512];
static int lines;

static void note(void *user, const char *text) {
    (void)user;
    assert_true(lines < 8);
    snprintf(told[lines++], sizeof *told, "%s", text);
}

static const qn__encoding_notes notes = {.what = "the test set", .tell = note};

static void set_categories(qn__schema *schema, uint32_t column, const char *a, const char *b,
                           const char *c) {
    qn__feature *feature = &schema->feature[column];
    const char *const list[] = {a, b, c};
    feature->category = qn__alloc(3, sizeof *feature->category, NULL);
    while (feature->categories < 3 && list[feature->categories]) {
        feature->category[feature->categories] = qn__copy_text(list[feature->categories], NULL);
        ++feature->categories;
    }
}

/* age, city (Bern, Ulm, Wien), height */
static qn__schema *make_schema(const char *a, const char *b, const char *c) {
    qn__schema *schema = qn__schema_create(3, NULL);
    schema->feature[0].name = qn__copy_text("age", NULL);
    schema->feature[1].name = qn__copy_text("city", NULL);
    if (a)
        set_categories(schema, 1, a, b, c);
    return schema;
}

static qn_data *make(const float *values, uint64_t items, const int32_t *labels,
                     qn__schema *schema) {
    float zeros[64] = {0};
    qn_data *data;
    assert_int_equal(qn_data_from_arrays(QN_F32, items, 3, zeros, labels, &data, NULL), QN_OK);
    memcpy(data->memory, values, items * 3 * sizeof *values);
    data->schema = schema;
    data->missing = 1;
    return data;
}

static void test_encoding(void **state) {
    (void)state;
    const float values[] = {20, 0, 1.5f, /**/ NAN, 2, NAN, /**/ 30, NAN, -0.0f, /**/ 40, 1, 2};
    const float fill[] = {25, 0, 1.75f};
    const float expected[] = {20, 0, 1, 0, 1.5f,  /**/ 25, 0, 0, 0, 1.75f, /**/
                              30, 0, 0, 0, -0.0f, /**/ 40, 0, 0, 1, 2};
    const int32_t labels[] = {3, 1, 0, 2};
    qn__schema *model = make_schema("Bern", "Ulm", "Wien");
    /* The file's own categories: another set, in its own order. */
    qn_data *raw = make(values, 4, labels, make_schema("Ulm", "Wien", "Zug")), *inputs;
    qn__encoding how = {.table = model, .features = 3, .missing = QN__MISSING_MEAN, .fill = fill};
    assert_int_equal(qn__inputs(model, 3), 5);
    assert_true(qn__inputs_bytes(&how, raw) == 4 * 5 * sizeof(float));
    lines = 0;
    assert_int_equal(qn__make_inputs(&how, raw, &notes, &inputs, NULL), QN_OK);
    assert_int_equal(qn_data_features(inputs), 5);
    assert_int_equal(qn_data_items(inputs), 4);
    assert_memory_equal(qn_data_values(inputs), expected, sizeof expected);
    assert_memory_equal(qn_data_labels(inputs), labels, sizeof labels);
    assert_string_equal(qn_data_digest(inputs), qn_data_digest(raw));
    assert_string_equal(inputs->schema->feature[0].name, "age");
    assert_string_equal(inputs->schema->feature[3].name, "city=Wien");
    assert_null(inputs->schema->feature[4].name);
    assert_int_equal(qn_data_inputs(raw), 5);
    assert_int_equal(qn_data_inputs(inputs), 5);
    assert_int_equal(lines, 2);
    assert_string_equal(told[0],
                        "the test set: 1 value of column \"city\" is not a category of the "
                        "model; all inputs of the column are 0 there");
    assert_string_equal(told[1], "the test set: 1 value of column \"city\" is missing; all inputs "
                                 "of the column are 0 there");
    qn_data_close(inputs);
    how.fill = NULL; /* the rule zero */
    how.missing = QN__MISSING_ZERO;
    assert_int_equal(qn__make_inputs(&how, raw, &notes, &inputs, NULL), QN_OK);
    assert_true(((const float *)qn_data_values(inputs))[5] == 0);
    qn_data_close(inputs);
    qn_data_close(raw);
    qn__schema_free(model);
}

static void test_refusals(void **state) {
    (void)state;
    const float values[] = {20, 0, 1.5f, /**/ 1, NAN, NAN, /**/ 1, NAN, 2};
    qn__schema *model = make_schema("Bern", "Ulm", NULL);
    qn_data *raw = make(values, 3, NULL, make_schema("Bern", NULL, NULL)), *inputs;
    qn_error err;
    qn__encoding how = {.table = model, .features = 3, .missing = QN__MISSING_ERROR};
    assert_int_equal(qn__make_inputs(&how, raw, &notes, &inputs, &err), QN_INPUT);
    assert_null(inputs);
    assert_string_equal(err.what, "column \"city\" has 2 missing values, and 1 other column some; "
                                  "2 of 3 items lack one or more");
    assert_string_equal(err.where, "the test set, item 1 (from 0)");
    assert_non_null(strstr(err.remedy, "`train.missing`"));
    how.missing = QN__MISSING_DROP; /* who trained with it has no number for them either */
    assert_int_equal(qn__make_inputs(&how, raw, &notes, &inputs, &err), QN_INPUT);
    how.missing = QN__MISSING_ZERO;
    how.table = NULL;
    assert_int_equal(qn__make_inputs(&how, raw, &notes, &inputs, &err), QN_MISMATCH);
    assert_string_equal(err.what,
                        "column \"city\" holds texts such as \"Bern\", and the model takes "
                        "numbers there");
    qn_data_close(raw);
    qn__schema_free(model);
}

/* A column of the digits 1, 2, x where the model was trained is one of numbers in another file. */
static void test_numbers_as_categories(void **state) {
    (void)state;
    const float values[] = {0, 2, 0, /**/ 0, 1.5f, 0, /**/ 0, 1, 0};
    const float expected[] = {0, 0, 1, 0, 0, /**/ 0, 0, 0, 0, 0, /**/ 0, 1, 0, 0, 0};
    qn__schema *model = make_schema("1", "2", "x");
    qn_data *raw = make(values, 3, NULL, make_schema(NULL, NULL, NULL)), *inputs;
    const qn__encoding how = {.table = model, .features = 3, .missing = QN__MISSING_ERROR};
    lines = 0;
    assert_int_equal(qn__make_inputs(&how, raw, &notes, &inputs, NULL), QN_OK);
    assert_memory_equal(qn_data_values(inputs), expected, sizeof expected);
    assert_int_equal(lines, 1);
    qn_data_close(inputs);
    qn_data_close(raw);
    qn__schema_free(model);
}

/* Bytes stay bytes; the items of a view are those of the view. */
static void test_bytes(void **state) {
    (void)state;
    const uint8_t values[] = {7, 1, 255, /**/ 8, 9, 0, /**/ 9, 0, 1};
    const uint8_t expected[] = {8, 0, 0, 0, /**/ 9, 1, 0, 1};
    const uint64_t marks[] = {6};
    qn_data *all, *view, *inputs;
    assert_int_equal(qn_data_from_arrays(QN_U8, 3, 3, values, NULL, &all, NULL), QN_OK);
    all->schema = make_schema("Bern", "Ulm", NULL);
    view = qn__data_view(all, marks, 1, 2, NULL);
    const qn__encoding how = {.table = all->schema, .features = 3};
    lines = 0;
    assert_int_equal(qn__make_inputs(&how, view, &notes, &inputs, NULL), QN_OK);
    assert_int_equal(qn_data_type_of(inputs), QN_U8);
    assert_int_equal(qn_data_items(inputs), 2);
    assert_memory_equal(qn_data_values(inputs), expected, sizeof expected);
    assert_int_equal(lines, 1); /* 9 is not an index of a category */
    qn_data_close(inputs);
    qn_data_close(view);
    qn_data_close(all);
}

static void test_plain(void **state) {
    (void)state;
    const float values[] = {1, 2, 3};
    qn_data *raw = make(values, 1, NULL, make_schema(NULL, NULL, NULL)), *inputs;
    const qn__encoding how = {.features = 3, .missing = QN__MISSING_MEAN, .fill = values};
    assert_int_equal(qn__inputs(NULL, 3), 3);
    assert_int_equal(qn__inputs(raw->schema, 3), 3);
    assert_true(qn__inputs_bytes(&how, raw) == 0);
    assert_int_equal(qn__make_inputs(&how, raw, &notes, &inputs, NULL), QN_OK);
    assert_null(inputs); /* nothing was copied */
    qn_data_close(raw);
}

static void test_many_columns(void **state) {
    (void)state;
    enum { COLUMNS = 7 };
    const float zeros[COLUMNS] = {0};
    qn_data *raw, *inputs;
    assert_int_equal(qn_data_from_arrays(QN_F32, 1, COLUMNS, zeros, NULL, &raw, NULL), QN_OK);
    raw->schema = qn__schema_create(COLUMNS, NULL);
    for (uint32_t k = 0; k < COLUMNS; ++k) {
        set_categories(raw->schema, k, "a", NULL, NULL);
        ((float *)raw->memory)[k] = NAN;
    }
    const qn__encoding how = {
        .table = raw->schema, .features = COLUMNS, .missing = QN__MISSING_ZERO};
    lines = 0;
    assert_int_equal(qn__make_inputs(&how, raw, &notes, &inputs, NULL), QN_OK);
    assert_int_equal(lines, 6);
    assert_string_equal(told[5],
                        "the test set: 2 more columns have 2 values that are missing or not "
                        "categories of the model");
    qn_data_close(inputs);
    qn_data_close(raw);
}

/* A number that is not a category is the one with its value, where all are numbers and one has it.
 */
static void test_values_of_categories(void **state) {
    (void)state;
    static const struct {
        const char *category[3], *text;
        int at; /* -1: none */
    } cases[] = {
        {{"1", "10", "2"}, "1.0", 0},
        {{"1", "10", "2"}, "+1e1", 1},
        {{"0.50", "1", NULL}, ".5", 0},
        {{"1", "1.0", "2"}, "01", -1},
        {{"1", "1.0", "2"}, "2.00", 2},
        {{"1", "x", NULL}, "1.0", -1},
        {{"1", "9999999999", NULL}, "1.0", -1},
        {{"007", "12", NULL}, "7", 0},
        {{"1", "2", NULL}, "one", -1},
        {{"-0", "0", NULL}, "0.0", -1},
        {{"1", "16777216", NULL}, "16777216.5", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
        for (int by_value = 0; by_value < 2; ++by_value) {
            const float values[] = {0, 0, 0};
            const char *const *c = cases[i].category;
            qn__schema *model = make_schema(c[0], c[1], c[2]);
            qn_data *raw = make(values, 1, NULL, make_schema(cases[i].text, NULL, NULL)), *inputs;
            const qn__encoding how = {
                .table = model, .features = 3, .missing = QN__MISSING_ZERO, .by_value = by_value};
            lines = 0;
            assert_int_equal(qn__make_inputs(&how, raw, &notes, &inputs, NULL), QN_OK);
            const float *made = qn_data_values(inputs);
            const int wanted = by_value ? cases[i].at : -1;
            for (int k = 0; k < (c[2] ? 3 : 2); ++k)
                if (made[1 + k] != (float)(k == wanted))
                    fail_msg("case %zu, by value %d, input %d", i, by_value, k);
            assert_int_equal(lines, wanted < 0);
            qn_data_close(inputs);
            qn_data_close(raw);
            qn__schema_free(model);
        }
}

/* The digest of a validation set has the model's numbers for categories, whatever its own are. */
static void test_digest(void **state) {
    (void)state;
    const float values[] = {20, 0, 1.5f, /**/ 30, 1, 2, /**/ 40, 2, 3, /**/ 50, NAN, 4};
    const float as_model[] = {20, 1, 1.5f, /**/ 30, 2, 2, /**/ 40, NAN, 3, /**/ 50, NAN, 4};
    qn__schema *model = make_schema("Bern", "Ulm", "Wien");
    qn_data *raw = make(values, 4, NULL, make_schema("Ulm", "Wien", "Zug"));
    qn_data *same = make(as_model, 4, NULL, NULL);
    const qn__encoding how = {.table = model, .features = 3, .missing = QN__MISSING_ZERO};
    char digest[65], wanted[65];
    qn__data_digest(same, NULL, wanted);
    assert_int_equal(qn__inputs_digest(&how, raw, digest, NULL), QN_OK);
    assert_string_equal(digest, wanted);
    assert_string_not_equal(digest, qn_data_digest(raw));
    const qn__encoding numbers = {.features = 3, .missing = QN__MISSING_ZERO};
    assert_int_equal(qn__inputs_digest(&numbers, same, digest, NULL), QN_OK);
    assert_string_equal(digest, wanted);
    qn_data_close(raw);
    qn_data_close(same);
    qn__schema_free(model);
}

/* How much memory the inputs take is told where it is much. */
static void test_large(void **state) {
    (void)state;
    const float values[] = {20, 0, 1.5f, /**/ 30, 1, 2};
    qn__schema *model = make_schema("Bern", "Ulm", NULL);
    qn_data *raw = make(values, 2, NULL, make_schema("Bern", "Ulm", NULL)), *inputs;
    const qn__encoding how = {.table = model, .features = 3, .missing = QN__MISSING_ZERO};
    const uint64_t usual = qn__inputs_large;
    for (uint64_t limit = 32; limit <= 33; ++limit) {
        qn__inputs_large = limit;
        lines = 0;
        assert_int_equal(qn__make_inputs(&how, raw, &notes, &inputs, NULL), QN_OK);
        assert_int_equal(lines, limit == 32);
        qn_data_close(inputs);
    }
    qn__inputs_large = usual;
    assert_string_equal(
        told[0], "the test set: the inputs take 0.0 MiB; column \"city\" gives 2 of 4 inputs");
    qn_data_close(raw);
    qn__schema_free(model);
}

static void test_scaling(void **state) {
    (void)state;
    float mean[] = {5, 5, 5, 5, 5}, deviation[] = {2, 2, 2, 2, 2};
    qn__schema *model = make_schema("Bern", "Ulm", "Wien");
    qn__keep_categories(model, mean, deviation);
    assert_memory_equal(mean, ((float[]){5, 0, 0, 0, 5}), sizeof mean);
    assert_memory_equal(deviation, ((float[]){2, 1, 1, 1, 2}), sizeof deviation);
    qn__keep_categories(NULL, mean, deviation);
    qn__schema_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_encoding), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_bytes),    cmocka_unit_test(test_numbers_as_categories),
        cmocka_unit_test(test_plain),    cmocka_unit_test(test_many_columns),
        cmocka_unit_test(test_scaling),  cmocka_unit_test(test_values_of_categories),
        cmocka_unit_test(test_large),    cmocka_unit_test(test_digest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
