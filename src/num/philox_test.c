/* Philox against the known answers of its authors (Random123, kat_vectors), and the layout of the
 * counter against docs/exactness.md 3.2. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "num/philox.h"
#include <string.h>

static void test_known_answers(void **state) {
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], words[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; ++i) {
        uint32_t words[4];
        qn__philox(known[i].counter, known[i].key, words);
        for (int w = 0; w < 4; ++w)
            assert_int_equal(words[w], known[i].words[w]);
    }
}

static void test_counter_of_a_word(void **state) {
    (void)state;
    const uint64_t seed = 0x123456789abcdef0u, item = (1ull << 40) + 9;
    const uint32_t counter[4] = {250, 9, 5, 3u << 24 | 200u << 16 | 1u << 8};
    const uint32_t key[2] = {0x9abcdef0u, 0x12345678u};
    uint32_t words[4], same[4];
    qn__words(seed, QN__PURPOSE_DROPOUT, 200, 5, item, 250, words);
    qn__philox(counter, key, same);
    assert_memory_equal(words, same, sizeof words);
    assert_int_equal(words[3], 0x2667e885); /* element 1003, computed from the text in Python */
    const uint32_t deep[4] = {(3u << 30) + 250, 9, 5, 3u << 24 | 232u << 16 | 1u << 8};
    qn__words(seed, QN__PURPOSE_DROPOUT, 1000, 5, item, 250, words);
    qn__philox(deep, key, same);
    assert_memory_equal(words, same, sizeof words);
}

/* Different purposes, layers, epochs, items or elements have different words. */
static void test_every_argument_counts(void **state) {
    (void)state;
    uint32_t words[7][4];
    qn__words(1, 1, 1, 1, 1, 1, words[0]);
    qn__words(2, 1, 1, 1, 1, 1, words[1]);
    qn__words(1, 2, 1, 1, 1, 1, words[2]);
    qn__words(1, 1, 2, 1, 1, 1, words[3]);
    qn__words(1, 1, 1, 2, 1, 1, words[4]);
    qn__words(1, 1, 1, 1, 2, 1, words[5]);
    qn__words(1, 1, 1, 1, 1, 2, words[6]);
    for (int i = 0; i < 7; ++i)
        for (int j = 0; j < i; ++j)
            assert_true(memcmp(words[i], words[j], sizeof words[i]) != 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),
        cmocka_unit_test(test_counter_of_a_word),
        cmocka_unit_test(test_every_argument_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
