/* Tokenizers through the public functions. The oracle of tests/oracle/tokens.py has more texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <quern/tokenizer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static qn_tokenizer *learned(const char *which, const char *corpus, size_t size) {
    qn_tokenizer *t;
    qn_error err = {0};
    if (qn_tokenizer_learn(which, corpus, size, 1, &t, &err) != QN_OK)
        fail_msg("%s: %s", which, err.what);
    return t;
}

/* Encodes and compares with numbers that end with -1; then decodes, which must give `back`. */
static void same(const qn_tokenizer *t, const char *text, size_t size, const char *back,
                 size_t back_size, const int *numbers) {
    qn_tokens *tokens;
    char decoded[256];
    size_t length;
    assert_int_equal(qn_tokenizer_encode(t, text, size, 1, &tokens, NULL), QN_OK);
    uint64_t count = 0;
    for (; numbers[count] >= 0; count++) {
        assert_true(count < qn_tokens_count(tokens));
        assert_int_equal(qn_tokens_numbers(tokens)[count], numbers[count]);
    }
    assert_int_equal(qn_tokens_count(tokens), count);
    assert_int_equal(qn_tokenizer_decode(t, qn_tokens_numbers(tokens), count, decoded,
                                         sizeof decoded, &length, NULL),
                     QN_OK);
    assert_int_equal(length, back_size);
    assert_memory_equal(decoded, back, length);
    qn_tokens_free(tokens);
}

#define SAME(t, text, back, ...)                                                                   \
    same(t, text, sizeof(text) - 1, back, sizeof(back) - 1, (const int[]){__VA_ARGS__, -1})

static void test_bytes(void **state) {
    (void)state;
    qn_tokenizer *t = learned("bytes", NULL, 0);
    assert_int_equal(qn_tokenizer_size(t), 256);
    assert_int_equal(qn_tokenizer_unknown(t), 256);
    assert_string_equal(qn_tokenizer_json(t, NULL), "{\"kind\": \"bytes\"}");
    SAME(t, "a\0\xFF", "a\0\xFF", 97, 0, 255);
    qn_tokenizer_free(t);
}

static void test_chars(void **state) {
    (void)state;
    const char corpus[] = "banana\n\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\xFF\x80";
    qn_tokenizer *t = learned("chars", corpus, sizeof corpus - 1);
    assert_int_equal(qn_tokenizer_size(t), 10);
    assert_int_equal(qn_tokenizer_unknown(t), 9);
    assert_string_equal(qn_tokenizer_json(t, NULL),
                        "{\"kind\": \"chars\", \"vocabulary\": [10, 97, 98, 110, 233, 8364, "
                        "128512, 1114240, 1114367]}");
    SAME(t, "nab\xC3\xA9\xFF", "nab\xC3\xA9\xFF", 3, 1, 2, 4, 8);
    SAME(t, "a\xF0\x9F\x98z\x80", "a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\x80", 1, 9, 9,
         9, 9, 7);
    qn_tokenizer_free(t);
}

static void test_words(void **state) {
    (void)state;
    const char corpus[] = "the cat, the dog.\nThe caf\xC3\xA9  \xFF_x9";
    qn_tokenizer *t = learned("words", corpus, sizeof corpus - 1);
    assert_string_equal(qn_tokenizer_json(t, NULL),
                        "{\"kind\": \"words\", \"vocabulary\": [32, \"the\", 10, 44, 46, \"The\", "
                        "\"_x9\", \"caf\xC3\xA9\", \"cat\", \"dog\", 1114367]}");
    assert_int_equal(qn_tokenizer_unknown(t), 11);
    SAME(t, "the dog", "the dog", 1, 9);
    SAME(t, "the  dog the,cat ", "the  dog the,cat ", 1, 0, 0, 9, 1, 3, 8, 0);
    SAME(t, "the bird, dog?", "the \xEF\xBF\xBD, dog \xEF\xBF\xBD", 1, 11, 3, 0, 9, 11);
    qn_tokenizer_free(t);
    t = learned("words:4", corpus, sizeof corpus - 1);
    assert_string_equal(qn_tokenizer_json(t, NULL),
                        "{\"kind\": \"words\", \"vocabulary\": [32, \"the\", 10]}");
    SAME(t, "the the cat\n", "the the \xEF\xBF\xBD\n", 1, 1, 3, 2);
    qn_tokenizer_free(t);
}

/* Made again from its text, and with a text of several pieces on several threads. */
static void test_again_and_threads(void **state) {
    (void)state;
    enum { SIZE = 3 << 20 };
    char *text = malloc(SIZE);
    assert_non_null(text);
    uint32_t random = 1;
    for (int k = 0; k < SIZE; k++) {
        random = random * 1664525 + 1013904223;
        text[k] = "ab  \n,\xC3\xA9\xE2\x82\xACqrst_\xFF"[(random >> 24) % 18];
    }
    const char *const which[] = {"bytes", "chars", "words:3000"};
    for (size_t k = 0; k < sizeof which / sizeof *which; k++) {
        qn_tokenizer *t = learned(which[k], text, SIZE), *again;
        size_t size;
        const char *json = qn_tokenizer_json(t, &size);
        assert_int_equal(qn_tokenizer_from_json(json, size, &again, NULL), QN_OK);
        assert_string_equal(json, qn_tokenizer_json(again, NULL));
        assert_string_equal(qn_tokenizer_digest(t), qn_tokenizer_digest(again));
        assert_string_equal(qn_tokenizer_kind(t), qn_tokenizer_kind(again));
        qn_tokens *one, *three;
        assert_int_equal(qn_tokenizer_encode(t, text, SIZE, 1, &one, NULL), QN_OK);
        assert_int_equal(qn_tokenizer_encode(again, text, SIZE, 3, &three, NULL), QN_OK);
        assert_int_equal(qn_tokens_count(one), qn_tokens_count(three));
        assert_memory_equal(qn_tokens_numbers(one), qn_tokens_numbers(three),
                            qn_tokens_count(one) * 4);
        qn_tokens_free(one);
        qn_tokens_free(three);
        qn_tokenizer_free(t);
        qn_tokenizer_free(again);
    }
    free(text);
}

static void refuse(const char *which, qn_status wanted, const char *what) {
    qn_tokenizer *t;
    qn_error err = {0};
    assert_int_equal(qn_tokenizer_learn(which, "a b", 3, 1, &t, &err), wanted);
    assert_null(t);
    if (!strstr(err.what, what) && !strstr(err.remedy, what))
        fail_msg("\"%s\" is not in \"%s\" \"%s\"", what, err.what, err.remedy);
}

static void test_what_is_refused(void **state) {
    (void)state;
    refuse("char", QN_USAGE, "did you mean chars?");
    refuse("sentences", QN_USAGE, "is not a tokenizer");
    refuse("bytes:3", QN_USAGE, "takes nothing after a colon");
    refuse("words:1", QN_USAGE, "2 to 16777216");
    refuse("words:16777217", QN_USAGE, "2 to 16777216");
    qn_tokenizer *t;
    qn_error err = {0};
    assert_int_equal(qn_tokenizer_open("chars", NULL, 0, 1, &t, &err), QN_INPUT);
    assert_non_null(strstr(err.what, "none was given"));
    assert_int_equal(qn_tokenizer_open("bytes", NULL, 0, 5000, &t, &err), QN_USAGE);
    const char *const wrong[] = {
        "[]",
        "{\"kind\": \"byte\"}",
        "{\"kind\": \"bytes\", \"more\": 1}",
        "{\"kind\": \"chars\"}",
        "{\"kind\": \"chars\", \"vocabulary\": [5, 5]}",
        "{\"kind\": \"chars\", \"vocabulary\": [55296]}",
        "{\"kind\": \"chars\", \"vocabulary\": [1114368]}",
        "{\"kind\": \"words\", \"vocabulary\": [\"a\", \"a\"]}",
        "{\"kind\": \"words\", \"vocabulary\": [\"a b\"]}",
        "{\"kind\": \"words\", \"vocabulary\": [\".\"]}",
        "{\"kind\": \"words\", \"vocabulary\": [\"\"]}",
        "{\"kind\": \"words\", \"vocabulary\": [97]}",
    };
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
        assert_int_equal(qn_tokenizer_from_json(wrong[k], strlen(wrong[k]), &t, &err), QN_FORMAT);
    t = learned("chars", "ab", 2);
    size_t length;
    assert_int_equal(qn_tokenizer_decode(t, (const uint32_t[]){0, 3}, 2, NULL, 0, &length, &err),
                     QN_INPUT);
    assert_int_equal(length, 0);
    assert_non_null(strstr(err.what, "token 1 has the number 3"));
    qn_tokenizer_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),           cmocka_unit_test(test_chars),
        cmocka_unit_test(test_words),           cmocka_unit_test(test_again_and_threads),
        cmocka_unit_test(test_what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
