/* Recipes: what each contract adds to their text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/recipe/recipe_example_test.h"

/* ----------------------------------------------------------------------------------- contract 2 */

/* TEXT as contract 2, with these values of the keys that it adds. */
static char *second(const char *task, const char *table, const char *rest) {
    const char *body = strchr(TEXT, ',');
    char *text = malloc(strlen(TEXT) + strlen(table) + strlen(rest) + 128);
    sprintf(
        text,
        "{\"contract\":2%.*s,\"task\":\"%s\",\"delta\":0,\"missing\":\"error\",\"table\":%s,%s}",
        (int)strlen(body) - 1, body, task, table, rest);
    return text;
}

#define NOTHING_ELSE "\"keep\":\"last\",\"patience\":0,\"init_from\":\"\""

/* A schema of the 784 columns "a0" to "a783" with the classes "dog \"x\"" and "\xc3\xa4". */
static qn__schema *names(void) {
    qn__schema *s = qn__schema_create(784, NULL);
    char name[8];
    for (uint32_t k = 0; k < 784; ++k) {
        snprintf(name, sizeof name, "a%u", k);
        s->feature[k].name = qn__copy_text(name, NULL);
    }
    s->label = qn__copy_text("kind", NULL);
    s->target = QN__TARGET_CLASS;
    s->classes = 2;
    s->class_name = qn__alloc(2, sizeof *s->class_name, NULL);
    s->class_name[0] = qn__copy_text("dog \"x\"", NULL);
    s->class_name[1] = qn__copy_text("\xc3\xa4", NULL);
    return s;
}

/* The table of names() as 11.3 says. */
static void table_text(char *text, size_t size) {
    snprintf(
        text, size,
        "{\"label\":\"kind\",\"target\":\"class\",\"classes\":[\"dog \\\"x\\\"\",\"\xc3\xa4\"],"
        "\"features\":[");
    for (uint32_t k = 0; k < 784; ++k)
        snprintf(text + strlen(text), size - strlen(text), "%s\"a%u\"", k ? "," : "", k);
    snprintf(text + strlen(text), size - strlen(text), "]}");
}

static void test_names(void **state) {
    (void)state;
    qn__recipe r = example(), copy, back;
    qn_error err = {0};
    char table[8192], *json;
    r.table = names();
    qn__recipe_tidy(&r);
    assert_int_equal(r.contract, 2);
    assert_int_equal(qn__recipe_check(&r, NULL), QN_OK);
    assert_int_equal(qn__recipe_copy(&r, &copy, NULL), QN_OK);
    qn__recipe_release(&r);
    assert_null(r.table);
    table_text(table, sizeof table);
    char *expected = second("classify", table, NOTHING_ELSE);
    assert_int_equal(qn__recipe_json(&copy, &json, NULL), QN_OK);
    assert_string_equal(json, expected);
    if (qn__recipe_parse(json, strlen(json), &back, &err) != QN_OK)
        fail_msg("%s, %s", err.what, err.where);
    assert_string_equal(back.table->feature[783].name, "a783");
    assert_string_equal(back.table->class_name[0], "dog \"x\"");
    qn__free(json);
    qn__recipe_release(&back);
    qn__recipe_release(&copy);
    free(expected);
}

/* What Quern itself would write as names is not worth a version. */
static void test_names_that_are_none(void **state) {
    (void)state;
    qn__recipe r = example();
    char *json;
    r.table = qn__schema_create(784, NULL);
    r.table->label = qn__copy_text("label", NULL);
    r.table->feature[3].name = qn__copy_text("f3", NULL);
    qn__recipe_tidy(&r);
    assert_int_equal(qn__recipe_json(&r, &json, NULL), QN_OK);
    assert_string_equal(json, TEXT);
    qn__free(json);
    qn__recipe_release(&r);
}

static void check_second(const char *task, const char *table, const char *rest, const char *what,
                         const char *where, const char *remedy) {
    char *text = second(task, table, rest);
    qn__recipe out = {.batch = 77};
    qn_error err = {0};
    if (qn__recipe_parse(text, strlen(text), &out, &err) != QN_FORMAT)
        fail_msg("accepted: %s", text);
    if (!strstr(err.what, what) || !strstr(err.where, where) || !strstr(err.remedy, remedy))
        fail_msg("\"%s\" \"%s\" \"%s\"", err.what, err.where, err.remedy);
    assert_int_equal(out.batch, 77);
    free(text);
}

static void test_second_refused(void **state) {
    (void)state;
    char table[8192];
    table_text(table, sizeof table);
    /* Nothing in it is of contract 2: it would be written as contract 1. */
    check_second("classify", "null", NOTHING_ELSE, "not written the way", "byte 12", "changed");
    check_second("guess", table, NOTHING_ELSE, "unknown task \"guess\"", "task", "newer");
    check_second("classify", "7", NOTHING_ELSE, "the table has a missing", "table", "changed");
    check_second("classify", table, "\"keep\":\"last\",\"patience\":0", "the key is missing",
                 "init_from", "changed");
    check_second("classify", table, NOTHING_ELSE ",\"mesh\":1", "unknown key", "mesh", "newer");
    check_second("classify", table, "\"keep\":\"last\",\"patience\":0,\"init_from\":\"0\"",
                 "not a digest", "init_from", "changed");
    check_second("classify",
                 "{\"label\":\"y\",\"target\":\"index\",\"classes\":[],\"features\":[\"a\",\"b\"]}",
                 NOTHING_ELSE, "the table names 2 columns, but there are 784", "recipe", "changed");
    check_unreadable("\"unit\":44", "\"unit\":44,\"task\":\"classify\"", "unknown key", "task",
                     "newer");
}

static void test_too_many_names(void **state) {
    (void)state;
    qn__recipe r = example();
    qn_error err = {0};
    char *json;
    r.table = qn__schema_create(784, NULL);
    r.table->label = qn__alloc(QN__RECIPE_LONGEST + 1, 1, NULL);
    memset(r.table->label, 'a', QN__RECIPE_LONGEST);
    qn__recipe_tidy(&r);
    assert_int_equal(qn__recipe_json(&r, &json, &err), QN_USAGE);
    assert_non_null(strstr(err.what, "at most 8388608 can be kept"));
    qn__recipe_release(&r);
}

static void check_differ(const qn__recipe *one, const qn__recipe *other, const char *expected) {
    char *a, *b, text[256];
    assert_int_equal(qn__recipe_json(one, &a, NULL), QN_OK);
    assert_int_equal(qn__recipe_json(other, &b, NULL), QN_OK);
    qn__recipe_differences(a, b, text, sizeof text);
    assert_string_equal(text, expected);
    qn__free(a);
    qn__free(b);
}

static void test_names_that_differ(void **state) {
    (void)state;
    qn__recipe one = example(), other;
    one.table = names();
    qn__recipe_tidy(&one);
    assert_int_equal(qn__recipe_copy(&one, &other, NULL), QN_OK);
    check_differ(&one, &other, "");
    qn__free(other.table->feature[7].name);
    other.table->feature[7].name = NULL;
    check_differ(&one, &other, "table column 7 \"a7\" and column 7 without a name");
    other.table->class_name[1][0] = '\0';
    check_differ(&one, &other, "table class 1 \"\xc3\xa4\" and class 1 \"\"");
    qn__recipe_release(&other);
    qn__recipe_release(&one);
}

/* ----------------------------------------------------------------------------- contracts 3 to 6 */

/* Weights of items, of classes, and a scaling that is kept. */
static void test_contract_3(void **state) {
    (void)state;
    static const char rest[] = NOTHING_ELSE ",\"weight\":\"w \\\"1\\\"\",\"class_weight\":"
                                            "\"3=0.5,9=0\",\"init_scale\":\"fit\"";
    qn__recipe r = example(), copy, back;
    qn_error err = {0};
    char *json;
    r.weight = qn__copy_text("w \"1\"", NULL);
    r.class_weight = qn__copy_text("3=0.5,9=0", NULL);
    qn__recipe_tidy(&r);
    assert_int_equal(r.contract, 3);
    assert_int_equal(qn__recipe_check(&r, &err), QN_OK);
    assert_int_equal(qn__recipe_copy(&r, &copy, NULL), QN_OK);
    qn__recipe_release(&r);
    char *expected = second("classify", "null", rest);
    *strchr(expected, '2') = '3'; /* the contract */
    assert_int_equal(qn__recipe_json(&copy, &json, NULL), QN_OK);
    assert_string_equal(json, expected);
    if (qn__recipe_parse(json, strlen(json), &back, &err) != QN_OK)
        fail_msg("%s, %s", err.what, err.where);
    assert_string_equal(back.weight, "w \"1\"");
    assert_string_equal(back.class_weight, "3=0.5,9=0");
    back.init_scale = QN__INIT_SCALE_KEEP;
    assert_int_equal(qn__recipe_check(&back, &err), QN_USAGE);
    assert_string_equal(err.where, "`train.init_scale`");
    back.init_scale = QN__INIT_SCALE_FIT;
    back.class_weight[0] = 'x';
    assert_int_equal(qn__recipe_check(&back, &err), QN_USAGE);
    qn__free(json);
    qn__recipe_release(&back);
    qn__recipe_release(&copy);
    free(expected);
}

/* A validation file that tells the best epoch. */
static void test_contract_4(void **state) {
    (void)state;
    static const char rest[] =
        "\"keep\":\"best\",\"patience\":0,\"init_from\":\"\",\"weight\":null,"
        "\"class_weight\":\"\",\"init_scale\":\"fit\",\"valid_data\":\"" DIGEST "\"";
    qn__recipe r = example(), back;
    qn_error err = {0};
    char *json;
    r.keep = QN__KEEP_BEST;
    r.valid = 0;
    assert_int_equal(qn__recipe_check_best(&r, &err), QN_USAGE);
    strcpy(r.valid_data, DIGEST);
    qn__recipe_tidy(&r);
    assert_int_equal(r.contract, 4);
    assert_int_equal(qn__recipe_check(&r, &err), QN_OK);
    assert_int_equal(qn__recipe_check_best(&r, &err), QN_OK);
    char *expected = second("classify", "null", rest);
    *strchr(expected, '2') = '4'; /* the contract */
    char *valid = strstr(expected, "\"valid\":0.1") + strlen("\"valid\":0");
    memmove(valid, valid + 2, strlen(valid + 2) + 1);
    assert_int_equal(qn__recipe_json(&r, &json, NULL), QN_OK);
    assert_string_equal(json, expected);
    if (qn__recipe_parse(json, strlen(json), &back, &err) != QN_OK)
        fail_msg("%s, %s", err.what, err.where);
    assert_string_equal(back.valid_data, DIGEST);
    qn__recipe_release(&back);
    qn__free(json);
    free(expected);
    r.valid = 0.25f; /* only one of the two can decide, */
    assert_int_equal(qn__recipe_check_best(&r, &err), QN_USAGE);
    r.valid = 0;
    r.keep = QN__KEEP_LAST; /* and nothing is in a recipe that decides on nothing */
    assert_int_equal(qn__recipe_check_best(&r, &err), QN_USAGE);
    assert_int_equal(qn__recipe_json(&r, &json, NULL), QN_OK);
    assert_int_equal(qn__recipe_parse(json, strlen(json), &back, &err), QN_FORMAT);
    assert_non_null(strstr(err.what, "the validation file decides on nothing"));
    qn__free(json);
    qn__recipe_release(&r);
}

/* A network with pixels has the shape of its input; one that begins dense has none. */
static void test_contract_5(void **state) {
    (void)state;
    static const char *const models[] = {"conv 8 3x3 relu; maxpool 2x2; dense 10 softmax",
                                         "dense 12 relu; globalpool; dense 10 softmax"};
    static const char *const ends[] = {",\"valid_data\":\"\",\"shape\":\"1x28x28\"}",
                                       ",\"valid_data\":\"\",\"shape\":\"\"}"};
    for (int i = 0; i < 2; ++i) {
        qn__recipe r = example(), back;
        char *json;
        qn_error err = {0};
        assert_int_equal(qn__network_parse(models[i], &r.network, NULL), QN_OK);
        r.shape = (qn__shape){1, 28, 28, QN__PICTURE};
        qn__recipe_tidy(&r);
        assert_int_equal(r.contract, 5);
        assert_int_equal(qn__recipe_check(&r, NULL), QN_OK);
        assert_int_equal(qn__recipe_json(&r, &json, NULL), QN_OK);
        assert_non_null(strstr(json, ends[i]));
        if (qn__recipe_parse(json, strlen(json), &back, &err) != QN_OK)
            fail_msg("%s, %s", err.what, err.where);
        assert_memory_equal(&back.shape, &r.shape, sizeof r.shape);
        qn__recipe_release(&back);
        char *number = strstr(json, "28x28");
        if (number)
            number[1] = '9'; /* 1x29x28 pixels are not 784 */
        assert_int_equal(qn__recipe_parse(json, strlen(json), &back, &err), i ? QN_OK : QN_FORMAT);
        if (i)
            qn__recipe_release(&back);
        qn__free(json);
    }
    qn__recipe r = example();
    qn_error err = {0};
    assert_int_equal(qn__network_parse(models[0], &r.network, NULL), QN_OK);
    assert_int_equal(qn__recipe_check(&r, &err), QN_USAGE);
    assert_string_equal(err.what, "the first layer is \"conv\", and the data has no pixels");
    r.shape = (qn__shape){1, 28, 28, QN__PICTURE};
    r.arith = QN__ARITH_I14;
    assert_int_equal(qn__recipe_check(&r, &err), QN_OK);
    qn__recipe_tidy(&r);
    assert_int_equal(r.contract, 6);
    r.grain = r.batch = 5349; /* 5349 * 28 * 28 is the last product below 2^22 */
    assert_int_equal(qn__recipe_check(&r, &err), QN_OK);
    r.grain = r.batch = 5350;
    check_refused(&r,
                  "a grain of 5350 items has 4194400 pixels after layer 0; integer arithmetic "
                  "takes at most 4194304",
                  "`train.grain`");
    assert_int_equal(qn__network_parse("residual { conv 1 3 }; dense 10 softmax", &r.network, 0),
                     0);
    r.grain = r.batch = 5349;
    assert_int_equal(qn__recipe_check(&r, &err), QN_OK);
    /* 61x61 pixels: of integers they are too many, of floats not. */
    static const char *const groups[] = {"depthwise", "groups 1"};
    for (int i = 0; i < 2; ++i) {
        char text[128];
        snprintf(text, sizeof text, "conv 4 3 stride 4; conv 4 1 pad 27 %s; dense 10 softmax",
                 groups[i]);
        assert_int_equal(qn__network_parse(text, &r.network, 0), 0);
        assert_int_equal(qn__recipe_check(&r, &err), i ? QN_USAGE : QN_OK);
    }
}

/* 17.1: a key that is written only where it differs from its default. */
static void test_contract_6(void **state) {
    (void)state;
    static const char end[] = "\"valid_data\":\"\",\"shape\":\"\",\"nesterov\":1}";
    qn__recipe r = example(), back, copy;
    char *json, text[1024];
    r.nesterov = 1;
    check_refused(&r, "Nesterov's form needs a momentum greater than 0", "`train.nesterov`");
    r.optimizer = QN__OPT_MOMENTUM;
    r.momentum = 0.0f;
    qn__recipe_tidy(&r); /* plain gradient descent */
    check_refused(&r, "Nesterov's form needs a momentum greater than 0", "`train.nesterov`");
    r.optimizer = QN__OPT_MOMENTUM;
    r.momentum = 0.9f;
    qn__recipe_tidy(&r);
    assert_int_equal(r.contract, 6);
    assert_int_equal(qn__recipe_rule(&r), QN__OPT_NESTEROV);
    assert_int_equal(qn__recipe_check(&r, NULL), QN_OK);
    assert_int_equal(qn__recipe_copy(&r, &copy, NULL), QN_OK);
    assert_int_equal(qn__recipe_json(&copy, &json, NULL), QN_OK);
    assert_non_null(strstr(json, end));
    assert_int_equal(qn__recipe_parse(json, strlen(json), &back, NULL), QN_OK);
    assert_int_equal(back.nesterov, 1);
    qn__recipe_differences(TEXT, json, text, sizeof text);
    assert_non_null(strstr(text, "nesterov nothing and 1"));
    assert_null(strstr(text, "contract")); /* it follows */
    assert_null(strstr(text, "init_scale"));
    /* The default is not written, and no other number is read. */
    char *number = strstr(json, end) + strlen(end) - 2;
    *number = '0';
    assert_int_equal(qn__recipe_parse(json, strlen(json), &copy, NULL), QN_FORMAT);
    *number = '2';
    assert_int_equal(qn__recipe_parse(json, strlen(json), &copy, NULL), QN_FORMAT);
    qn__free(json);
    qn__recipe_release(&copy);
    qn__recipe_release(&back);
    r.nesterov = 0;
    r.smoothing = -0.0f;
    qn__recipe_tidy(&r);
    assert_int_equal(r.contract, 1);
    assert_int_equal(qn__recipe_rule(&r), QN__OPT_MOMENTUM);
    r.smoothing = 0.1f;
    r.clip = 2;
    qn__recipe_tidy(&r);
    assert_int_equal(qn__recipe_json(&r, &json, NULL), QN_OK);
    assert_non_null(strstr(json, "\"shape\":\"\",\"smoothing\":0.1,\"clip\":2}"));
    qn__free(json);
    r.loss = QN__LOSS_MSE;
    check_refused(&r, "the loss \"mse\" has no label smoothing", "`train.smoothing`");
    r.smoothing = 1;
    check_refused(&r, "the label smoothing is 1", "`train.smoothing`");
}

/* 23.1: the same of contract 7. */
static void test_contract_7(void **state) {
    (void)state;
    static const char end[] = "\"valid_data\":\"\",\"shape\":\"\",\"rules\":\"orientation\"}";
    qn__recipe r = example(), back;
    char *json, rules[] = "orientation";
    r.rules = rules;
    qn__recipe_tidy(&r);
    assert_int_equal(r.contract, 7);
    assert_int_equal(qn__recipe_json(&r, &json, NULL), QN_OK);
    assert_non_null(strstr(json, end));
    assert_int_equal(qn__recipe_parse(json, strlen(json), &back, NULL), QN_OK);
    assert_string_equal(back.rules, rules);
    qn__recipe_release(&back);
    /* An earlier contract does not have the key. */
    json[strlen("{\"contract\":")] = '6';
    assert_int_equal(qn__recipe_parse(json, strlen(json), &back, NULL), QN_FORMAT);
    qn__free(json);
    r.rules[0] = 'O'; /* not a rule */
    assert_int_equal(qn__recipe_check(&r, NULL), QN_USAGE);
}

/* 24.83: a later value of a key; both are read. A run by the former does not go on by the later. */
static void test_new_last(void **state) {
    (void)state;
    qn__recipe r = example(), back;
    char *json, *later;
    qn_error err = {0};
    snprintf(r.init_from, sizeof r.init_from, "%064d", 7);
    r.new_last = QN__NEW_LAST_AS_FIRST;
    qn__recipe_tidy(&r);
    assert_int_equal(qn__recipe_json(&r, &json, NULL), QN_OK);
    r.new_last = QN__NEW_LAST_BY_START;
    r.epochs += 1;
    qn__recipe_tidy(&r);
    assert_int_equal(r.contract, 9);
    assert_int_equal(qn__recipe_json(&r, &later, NULL), QN_OK);
    assert_int_equal(qn__recipe_continues(json, json), QN__CONTINUES);
    assert_int_equal(qn__recipe_continues(later, later), QN__CONTINUES);
    assert_int_equal(qn__recipe_continues(json, later), QN__CONTINUES_NOT_BY_RULE);
    assert_int_equal(qn__recipe_continues(TEXT, later), QN__CONTINUES_NOT);
    const char *const texts[] = {json, later};
    for (uint32_t k = 0; k < 2; ++k) {
        assert_int_equal(qn__recipe_parse(texts[k], strlen(texts[k]), &back, &err), QN_OK);
        assert_int_equal(back.new_last, k + 1);
        qn__recipe_release(&back);
    }
    for (const char *wrong = "23"; *wrong; ++wrong) { /* 2 is a value of contract 9 alone */
        json[strlen(json) - strlen("1}")] = *wrong;
        assert_int_equal(qn__recipe_parse(json, strlen(json), &back, &err), QN_FORMAT);
    }
    qn__free(json);
    qn__free(later);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_names_that_are_none),
        cmocka_unit_test(test_second_refused),
        cmocka_unit_test(test_too_many_names),
        cmocka_unit_test(test_names_that_differ),
        cmocka_unit_test(test_contract_3),
        cmocka_unit_test(test_contract_4),
        cmocka_unit_test(test_contract_5),
        cmocka_unit_test(test_contract_6),
        cmocka_unit_test(test_contract_7),
        cmocka_unit_test(test_new_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
