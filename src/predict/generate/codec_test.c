/* Texts of tokens that come one after the other: together they are the text of all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "predict/generate/codec.h"

static const char affixes[] =
    "{\"model\": {\"type\": \"BPE\", \"unk_token\": \"?\", \"continuing_subword_prefix\": \"#\", "
    "\"end_of_word_suffix\": \"_\", \"vocab\": {\"?\": 0, \"a_\": 1, \"a\": 2, \"#a\": 3, "
    "\"#a_\": 4, \"_\": 5}, \"merges\": []}}";
static const char pieces[] = "{\"model\": {\"type\": \"WordPiece\", \"unk_token\": \"?\", "
                             "\"vocab\": {\"?\": 0, \"a\": 1, \"##a\": 2, \"b\": 3, \"##b\": 4}}}";
static const char unigram[] =
    "{\"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": \"\\u2581\", "
    "\"prepend_scheme\": \"always\"}, \"model\": {\"type\": \"Unigram\", \"unk_id\": 0, "
    "\"vocab\": [[\"?\", 0], [\"\\u2581\", -1], [\"\\u2581a\", -2], [\"a\", -3], "
    "[\"\\u2581b\", -4]]}}";

static qn_tokenizer *opened(const char *kind, const char *json) {
    char path[] = "/tmp/codec-test-XXXXXX", which[64];
    qn_tokenizer *t = NULL;
    qn_error err = {0};
    FILE *file = fdopen(mkstemp(path), "w");
    fputs(json, file);
    fclose(file);
    snprintf(which, sizeof which, "%s:%s", kind, path);
    const qn_status status = qn_tokenizer_open(which, NULL, 0, 1, &t, &err);
    remove(path);
    if (status != QN_OK)
        fail_msg("%s: %s", kind, err.what);
    return t;
}

/* All texts of four tokens below `size`, after prompts of one to three. */
static void try_all(qn_tokenizer *t, uint32_t size) {
    const qn__codec c = {.tokenizer = t, .vocabulary = size};
    for (uint32_t all = 0; all < size * size * size * size; all++) {
        const uint32_t token[] = {all % size, all / size % size, all / size / size % size,
                                  all / size / size / size};
        for (uint32_t prompt = 1; prompt <= 3; prompt++) {
            char whole[64] = "", own[64] = "";
            size_t length, before, at = 0;
            assert_int_equal(qn_tokenizer_decode(t, token, 4, whole, 63, &length, NULL), QN_OK);
            assert_int_equal(qn_tokenizer_decode(t, token, prompt, NULL, 0, &before, NULL), QN_OK);
            for (uint32_t count = prompt + 1; count <= 4; count++) {
                char *text;
                size_t more;
                assert_int_equal(qn__codec_last(&c, token, prompt, count, &text, &more, NULL),
                                 QN_OK);
                assert_int_equal(text[more], 0);
                memcpy(own + at, text, more);
                at += more;
                qn__free(text);
            }
            assert_int_equal(at, length - before);
            assert_memory_equal(own, whole + before, at);
        }
    }
    qn_tokenizer_free(t);
}

static void test_tokens_add_what_the_whole_text_has(void **unused) {
    qn_tokenizer *words = NULL;
    (void)unused;
    try_all(opened("bpe", affixes), 6);
    try_all(opened("wordpiece", pieces), 5);
    try_all(opened("unigram", unigram), 5);
    assert_int_equal(qn_tokenizer_learn("words", "a b, a", 6, 1, &words, NULL), QN_OK);
    try_all(words, qn_tokenizer_size(words));
}

static void test_numbers_have_spaces_between(void **unused) {
    const qn__codec c = {.vocabulary = 100};
    const uint32_t token[] = {7, 80, 9};
    (void)unused;
    for (uint32_t count = 2; count <= 3; count++) {
        char *text;
        size_t size;
        assert_int_equal(qn__codec_last(&c, token, 1, count, &text, &size, NULL), QN_OK);
        assert_string_equal(text, count == 2 ? "80" : " 9");
        assert_int_equal(size, 2);
        qn__free(text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens_add_what_the_whole_text_has),
        cmocka_unit_test(test_numbers_have_spaces_between),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
