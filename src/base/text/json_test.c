/* The JSON reader against valid texts, and invalid texts with the position of the invalid byte;
 * then mutations of valid texts, whose result must be the same twice and consistent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/encoding.h"
#include "base/text/json.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t random_state = 20261121;

static uint32_t next_random(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33);
}

/* Parses a copy that ends where the text ends, so that the address sanitizer detects a read after
 * it. */
static qn_status parse(const char *text, size_t size, qn__json **out, qn_error *err) {
    char *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, text, size);
    const qn_status status = qn__json_parse(copy, size, out, err);
    free(copy);
    return status;
}

static qn__json *must_parse(const char *text) {
    qn__json *json;
    qn_error err;
    if (parse(text, strlen(text), &json, &err) != QN_OK)
        fail_msg("%s: %s", text, err.what);
    return json;
}

static void test_valid_texts(void **state) {
    (void)state;
    static const char *const good[] = {
        "0",
        "-0",
        "1",
        "-1.5e+10",
        "0.0",
        "0e0",
        "1E-400",
        "true",
        "false",
        "null",
        "\"\"",
        "[]",
        "{}",
        " [ ] ",
        "\t\r\n{ \"a\" : [ 1 , 2 ] }\n",
        "[[],{},[{}]]",
        "\"\\ud83d\\ude00\"",
        "\"\xf0\x9f\x98\x80\"",
        "\"\x7f\"",
        "\"\\u0001\"",
        "{\"\":1,\" \":2}",
        "[1e99999999999999999999,123456789012345678901234567890]",
        "{\"a\":{\"a\":{\"a\":1}}}",
        "\"\xef\xbf\xbf\"",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        qn__json_free(must_parse(good[i]));
    qn__json_free(NULL);
}

static void test_invalid_texts_and_their_bytes(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t at;
    } bad[] = {
        {"", 0},
        {" ", 1},
        {"x", 0},
        {"[1,]", 3},
        {"[1 2]", 3},
        {"[1", 2},
        {"[", 1},
        {"]", 0},
        {"{\"a\":1,}", 7},
        {"{\"a\" 1}", 5},
        {"{\"a\":}", 5},
        {"{a:1}", 1},
        {"{1:1}", 1},
        {"{\"a\":1 \"b\":2}", 7},
        {"[1}", 2},
        {"1 1", 2},
        {"{} {}", 3},
        {"[]]", 2},
        {"01", 0},
        {"-", 1},
        {"-x", 1},
        {"+1", 0},
        {"1.", 2},
        {".5", 0},
        {"1e", 2},
        {"1e+", 3},
        {"0x10", 1},
        {"NaN", 0},
        {"Infinity", 0},
        {"-Infinity", 1},
        {"tru", 0},
        {"truex", 4},
        {"nul", 0},
        {"True", 0},
        {"'a'", 0},
        {"\"abc", 0},
        {"\"a\\\"", 0},
        {"\"a\nb\"", 2},
        {"\"a\tb\"", 2},
        {"\"\\x\"", 1},
        {"\"\\", 1},
        {"\"\\u12\"", 1},
        {"\"\\u12g4\"", 1},
        {"\"\\u0000\"", 1},
        {"\"ab\\ud800\"", 3},
        {"\"\\ud800\\u0041\"", 1},
        {"\"\\udc00\"", 1},
        {"\"\\ud800\\", 1},
        {"\"\\ud800\\u", 1},
        {"\"\\ud800\\udc", 1},
        {"\"\\ud800\\ud800\"", 1},
        {"\"\\ud83d\\n\"", 1},
        {"\"\x80\"", 1},
        {"\"a\xc0\xaf\"", 2},
        {"\"\xe0\x80\xaf\"", 1},
        {"\"\xed\xa0\x80\"", 1},
        {"\"\xf4\x90\x80\x80\"", 1},
        {"\"\xf8\x88\x80\x80\x80\"", 1},
        {"\"\xe2\x82\"", 1},
        {"\"\xff\"", 1},
        {"\xef\xbb\xbf{}", 0},
        {"[1]\f", 3},
        {"/**/1", 0},
        {"{\"a\":1,\"b\":2,\"a\":3}", 13},
        {"{\"a\":1,\"\\u0061\":2}", 7},
        {"{\"x\":{\"b\":1,\"b\":2},\"x\":1}", 12},
        {"{\"c\":1,\"b\":1,\"c\":1,\"b\":1}", 13},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int something;
        qn__json *json = (qn__json *)&something;
        qn_error err = {0};
        char expected[64];
        assert_int_equal(parse(bad[i].text, strlen(bad[i].text), &json, &err), QN_FORMAT);
        assert_null(json);
        assert_int_equal(err.status, QN_FORMAT);
        snprintf(expected, sizeof expected, "invalid JSON at byte %zu:", bad[i].at);
        if (strncmp(err.what, expected, strlen(expected)) != 0)
            fail_msg("%s: \"%s\" should begin with \"%s\"", bad[i].text, err.what, expected);
        assert_int_equal(parse(bad[i].text, strlen(bad[i].text), &json, NULL), QN_FORMAT);
    }
    qn__json *json;
    assert_int_equal(parse("1\0", 2, &json, NULL), QN_FORMAT);
    assert_int_equal(parse("\"a\0\"", 4, &json, NULL), QN_FORMAT);
}

static void test_nesting(void **state) {
    (void)state;
    static char text[200001];
    qn__json *json;
    qn_error err;
    memset(text, '[', 32);
    memset(text + 32, ']', 32);
    assert_int_equal(parse(text, 64, &json, &err), QN_OK);
    const qn__json_node *node = qn__json_root(json);
    int depth = 1;
    for (; qn__json_count(node) == 1; depth++)
        node = qn__json_at(node, 0);
    assert_int_equal(depth, 32);
    qn__json_free(json);
    memset(text, '[', 33);
    memset(text + 33, ']', 33);
    assert_int_equal(parse(text, 66, &json, &err), QN_FORMAT);
    assert_non_null(strstr(err.what, "byte 32:"));
    memset(text, '[', 200000);
    assert_int_equal(parse(text, 200000, &json, &err), QN_FORMAT);
}

static void test_what_a_document_says(void **state) {
    (void)state;
    qn__json *json = must_parse("{\"name\":\"caf\\u00e9 \\ud83d\\ude00\\n\\/\",\"shape\":[784,500],"
                                "\"empty\":{},\"nested\":[{\"a\":true},[],\"x\"],\"rate\":0.1}");
    const qn__json_node *root = qn__json_root(json);
    assert_true(qn__json_is_object(root) && !qn__json_is_array(root));
    assert_null(qn__json_key(root));
    static const char *const keys[] = {"name", "shape", "empty", "nested", "rate"};
    assert_int_equal(qn__json_count(root), 5);
    for (size_t i = 0; i < 5; i++) {
        assert_string_equal(qn__json_key(qn__json_at(root, i)), keys[i]);
        assert_ptr_equal(qn__json_get(root, keys[i]), qn__json_at(root, i));
    }
    assert_null(qn__json_at(root, 5));
    assert_null(qn__json_get(root, "nam"));
    assert_string_equal(qn__json_string(qn__json_get(root, "name")),
                        "caf\xc3\xa9 \xf0\x9f\x98\x80\n/");
    const qn__json_node *shape = qn__json_get(root, "shape");
    uint64_t number = 0;
    assert_true(qn__json_is_array(shape));
    assert_null(qn__json_key(qn__json_at(shape, 1)));
    assert_true(qn__json_u64(qn__json_at(shape, 1), &number) && number == 500);
    const qn__json_node *nested = qn__json_get(root, "nested");
    assert_int_equal(qn__json_count(nested), 3);
    assert_int_equal(qn__json_count(qn__json_at(nested, 0)), 1);
    assert_string_equal(qn__json_string(qn__json_at(nested, 2)), "x");
    float rate = 0;
    assert_true(qn__json_float(qn__json_get(root, "rate"), &rate) && rate == 0.1f);

    /* Functions on missing nodes, or on nodes of another type, return 0 or NULL. */
    assert_null(qn__json_get(shape, "name"));
    assert_null(qn__json_string(shape));
    assert_null(qn__json_get(NULL, "a"));
    assert_null(qn__json_at(NULL, 0));
    assert_null(qn__json_string(NULL));
    assert_int_equal(qn__json_count(NULL), 0);
    assert_false(qn__json_u64(NULL, &number) || qn__json_float(NULL, &rate));
    assert_false(qn__json_u64(qn__json_get(root, "name"), &number));
    qn__json_free(json);
}

static void test_numbers(void **state) {
    (void)state;
    qn__json *json = must_parse("[18446744073709551615,18446744073709551616,-0,1.0,1e2,0,"
                                "3.4028234663852886e38,3.5e38,1e-60,1e999999999999,\"1\",null]");
    const qn__json_node *root = qn__json_root(json);
    static const int whole[] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0};
    static const int real[] = {1, 1, 1, 1, 1, 1, 1, 0, 1, 0, 0, 0};
    static const float value[] = {0x1p64f, 0x1p64f, 0, 1, 100, 0, FLT_MAX, 42, 0, 42, 42, 42};
    assert_int_equal(qn__json_count(root), 12);
    for (size_t i = 0; i < 12; i++) {
        uint64_t number = 42;
        float got = 42;
        assert_int_equal(qn__json_u64(qn__json_at(root, i), &number), whole[i]);
        assert_int_equal(qn__json_float(qn__json_at(root, i), &got), real[i]);
        assert_true(got == value[i]);
        if (!whole[i])
            assert_int_equal(number, 42);
    }
    uint64_t largest = 0;
    assert_true(qn__json_u64(qn__json_at(root, 0), &largest) && largest == UINT64_MAX);
    qn__json_free(json);
}

/* 100,000 keys with a duplicate at the end: found, and in less time than comparing all pairs. */
static void test_many_keys(void **state) {
    (void)state;
    enum { KEYS = 100000 };
    char *text = malloc(KEYS * 16 + 64), *at = text;
    assert_non_null(text);
    *at++ = '{';
    for (int i = 0; i < KEYS; i++)
        at += sprintf(at, "\"k%d\":%d,", i, i);
    char *twin = at;
    at += sprintf(at, "\"k777\":0}");
    qn__json *json;
    qn_error err;
    char expected[64];
    assert_int_equal(parse(text, (size_t)(at - text), &json, &err), QN_FORMAT);
    snprintf(expected, sizeof expected, "byte %td: the key \"k777\"", twin - text);
    assert_non_null(strstr(err.what, expected));
    twin[1] = 'q';
    assert_int_equal(parse(text, (size_t)(at - text), &json, &err), QN_OK);
    const qn__json_node *root = qn__json_root(json);
    assert_int_equal(qn__json_count(root), KEYS + 1);
    uint64_t number = 0;
    assert_true(qn__json_u64(qn__json_at(root, 54321), &number) && number == 54321);
    qn__json_free(json);
    free(text);
}

/* Combines the results of all functions on a tree in one number, and asserts the properties of
 * every tree. */
static uint64_t fold(const qn__json_node *node, int depth) {
    const char *parts[2] = {qn__json_key(node), qn__json_string(node)};
    uint64_t sum = 17, number = 0;
    float real = 0;
    assert_true(depth <= 32);
    for (int p = 0; p < 2; p++) {
        const size_t size = parts[p] ? strlen(parts[p]) : 0;
        for (size_t i = 0; i < size; i += qn__utf8_length(parts[p] + i, size - i))
            assert_true(qn__utf8_length(parts[p] + i, size - i) > 0);
        for (size_t i = 0; i < size; i++)
            sum = sum * 1099511628211u + (unsigned char)parts[p][i];
    }
    if (qn__json_u64(node, &number))
        assert_true(qn__json_float(node, &real));
    sum = sum * 1099511628211u + number;
    for (size_t i = 0; i < qn__json_count(node); i++) {
        const qn__json_node *inside = qn__json_at(node, i);
        assert_int_equal(qn__json_key(inside) != NULL, qn__json_is_object(node));
        if (qn__json_key(inside))
            assert_ptr_equal(qn__json_get(node, qn__json_key(inside)), inside);
        sum = sum * 1099511628211u + fold(inside, depth + 1);
    }
    return sum;
}

/* Changes, removes, doubles or inserts a few bytes; inserted ones are mostly JSON syntax. */
static size_t mutate(char *text, size_t size, size_t capacity) {
    static const char pieces[] = "{}[]\",:\\u0d8e19-+.tfn \x80\xc3\xff";
    for (uint32_t left = 1 + next_random() % 4; left > 0; left--) {
        const size_t at = size ? next_random() % size : 0;
        const char piece = pieces[next_random() % (sizeof pieces - 1)];
        const uint32_t kind = next_random() % 4;
        if (kind == 0 && size > 0)
            text[at] = piece;
        else if (kind == 1 && size > 0)
            memmove(text + at, text + at + 1, --size - at);
        else if (kind == 2 && size > 0 && 2 * size - at <= capacity) {
            const size_t more = next_random() % (size - at + 1);
            memmove(text + at + more, text + at, size - at);
            size += more;
        } else if (size < capacity) {
            memmove(text + at + 1, text + at, size++ - at);
            text[at] = piece;
        }
    }
    return size;
}

static void test_mutations(void **state) {
    (void)state;
    static const char *const seeds[] = {
        "{\"__metadata__\":{\"format\":\"quern-model-1\",\"recipe\":\"{\\\"contract\\\":1}\"},"
        "\"layer0.weight\":{\"dtype\":\"F32\",\"shape\":[500,784],\"data_offsets\":[0,1568000]}}",
        "[1,-0.5e3,true,false,null,\"\\ud83d\\ude00\\n\",{\"a\":[[],{}]},"
        "\"\xc3\xa9\xf0\x9f\x98\x80\"]",
        "{\"a\":{\"b\":{\"c\":[1,2,3]}},\"d\":\"\"}",
    };
    int accepted = 0, refused = 0;
    for (int round = 0; round < 60000; round++) {
        const char *seed = seeds[round % 3];
        char text[512];
        memcpy(text, seed, strlen(seed));
        const size_t size = mutate(text, strlen(seed), sizeof text);
        qn__json *first, *second;
        qn_error err = {0}, again = {0};
        const qn_status status = parse(text, size, &first, &err);
        assert_int_equal(parse(text, size, &second, &again), status);
        assert_memory_equal(&err, &again, sizeof err);
        if (status == QN_OK) {
            assert_true(fold(qn__json_root(first), 1) == fold(qn__json_root(second), 1));
            accepted++;
        } else {
            assert_int_equal(status, QN_FORMAT);
            refused++;
        }
        qn__json_free(first);
        qn__json_free(second);
    }
    print_message("%d mutations accepted, %d refused\n", accepted, refused);
    assert_true(accepted > 1000 && refused > 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid_texts), cmocka_unit_test(test_invalid_texts_and_their_bytes),
        cmocka_unit_test(test_nesting),     cmocka_unit_test(test_what_a_document_says),
        cmocka_unit_test(test_numbers),     cmocka_unit_test(test_many_keys),
        cmocka_unit_test(test_mutations),
    };
    print_message("seed %llu\n", (unsigned long long)random_state);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
