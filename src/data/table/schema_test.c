/* Schemas: copied, found by name, written as JSON and read again; which are trivial. */
#include "base/memory.h"
#include "data/table/schema.h"
#include "data/table/testing.h"

static char *text_of(const char *text) {
    char *copy = qn__copy_text(text, NULL);
    assert_non_null(copy);
    return copy;
}

static char **texts_of(const char *const *list, uint32_t count) {
    char **copy = qn__alloc(count, sizeof *copy, NULL);
    assert_non_null(copy);
    for (uint32_t i = 0; i < count; ++i)
        copy[i] = text_of(list[i]);
    return copy;
}

/* Three columns: age, a nameless one, a city with two categories; classes of two words. */
static qn__schema *make(void) {
    static const char *const cities[] = {"B\"ern", "Z\xc3\xbcrich"}, *const classes[] = {"no",
                                                                                         "yes"};
    qn__schema *schema = qn__schema_create(3, NULL);
    assert_non_null(schema);
    schema->feature[0].name = text_of("age");
    schema->feature[2].name = text_of("city");
    schema->feature[2].categories = 2;
    schema->feature[2].category = texts_of(cities, 2);
    schema->label = text_of("bought");
    schema->target = QN__TARGET_CLASS;
    schema->classes = 2;
    schema->class_name = texts_of(classes, 2);
    return schema;
}

static const char json[] = "{\"label\":\"bought\",\"target\":\"class\",\"classes\":[\"no\",\"yes\"]"
                           ",\"features\":[\"age\",null,"
                           "{\"name\":\"city\",\"categories\":[\"B\\\"ern\",\"Z\xc3\xbcrich\"]}]}";

static void assert_json(const qn__schema *schema, const char *expected) {
    qn__text text = {0};
    qn__schema_add_json(schema, &text);
    assert_string_equal(text.data, expected);
    qn__text_release(&text);
}

static qn_status parse(const char *text, qn__schema **out) {
    qn__json *document;
    assert_int_equal(qn__json_parse(text, strlen(text), &document, NULL), QN_OK);
    qn_status status = qn__schema_from_json(qn__json_root(document), out, NULL);
    qn__json_free(document);
    return status;
}

static void test_json(void **state) {
    (void)state;
    qn__schema *schema = make(), *copy = qn__schema_copy(schema, NULL), *again;
    assert_json(schema, json);
    qn__schema_free(schema);
    assert_json(copy, json);
    qn__schema_free(copy);
    assert_int_equal(parse(json, &again), QN_OK);
    assert_json(again, json);
    qn__schema_free(again);
    assert_int_equal(parse("null", &again), QN_OK);
    assert_null(again);
    assert_json(NULL, "null");
}

static void test_malformed(void **state) {
    (void)state;
    static const char *const texts[] = {
        "7",
        "{}",
        "{\"label\":7,\"target\":\"none\",\"classes\":[],\"features\":[]}",
        "{\"label\":null,\"target\":\"some\",\"classes\":[],\"features\":[]}",
        "{\"label\":null,\"target\":\"class\",\"classes\":[],\"features\":[]}",
        "{\"label\":null,\"target\":\"real\",\"classes\":[\"a\"],\"features\":[]}",
        "{\"label\":null,\"target\":\"class\",\"classes\":[7],\"features\":[]}",
        "{\"label\":null,\"target\":\"none\",\"classes\":[],\"features\":[7]}",
        "{\"label\":null,\"target\":\"none\",\"classes\":[],\"features\":[{}]}",
        "{\"label\":null,\"target\":\"none\",\"classes\":[],"
        "\"features\":[{\"name\":null,\"categories\":[]}]}",
        "{\"label\":null,\"target\":\"none\",\"classes\":[],"
        "\"features\":[{\"name\":\"a\",\"categories\":[\"y\",\"x\"]}]}",
        "{\"label\":null,\"target\":\"none\",\"classes\":[],\"features\":[],\"more\":1}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
        qn__schema *schema;
        assert_int_equal(parse(texts[i], &schema), QN_FORMAT);
        assert_null(schema);
    }
}

static qn__schema *named(const char *label, qn__target target, const char *first,
                         const char *second) {
    qn__schema *schema = qn__schema_create(2, NULL);
    assert_non_null(schema);
    schema->label = label ? text_of(label) : NULL;
    schema->target = target;
    schema->feature[0].name = first ? text_of(first) : NULL;
    schema->feature[1].name = second ? text_of(second) : NULL;
    return schema;
}

static void test_trivial(void **state) {
    (void)state;
    static const struct {
        const char *label;
        qn__target target;
        const char *first, *second;
        int trivial;
    } cases[] = {
        {NULL, QN__TARGET_NONE, NULL, NULL, 1},
        {NULL, QN__TARGET_INDEX, NULL, NULL, 1},
        {"label", QN__TARGET_INDEX, "f0", "f1", 1},
        {"label", QN__TARGET_INDEX, "r0c0", "r10c1", 1},
        {"label", QN__TARGET_INDEX, "f1", "f0", 0},
        {"label", QN__TARGET_INDEX, "r0c", NULL, 0},
        {"label", QN__TARGET_INDEX, "rc0", NULL, 0},
        {"label", QN__TARGET_INDEX, "r0c0x", NULL, 0},
        {"digit", QN__TARGET_INDEX, "f0", "f1", 0},
        {NULL, QN__TARGET_REAL, NULL, NULL, 0},
        {NULL, QN__TARGET_INDEX, NULL, "age", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        qn__schema *schema =
            named(cases[i].label, cases[i].target, cases[i].first, cases[i].second);
        assert_int_equal(qn__schema_is_trivial(schema), cases[i].trivial);
        qn__schema_free(schema);
    }
    qn__schema *schema = make();
    assert_false(qn__schema_is_trivial(schema));
    qn__schema_free(schema);
    assert_true(qn__schema_is_trivial(NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_trivial),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
