/* Words of sums as bytes: they come back as they were, in as few bytes as promised, and other bytes
 * are refused. */
#include "cluster/reduction/packed_words_wide.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 40 * QN__WORDS_GROUP + 3 };

/* The same bytes and words without and with wide instructions. */
static void check_wide(const int64_t *word, size_t words, const unsigned char *bytes,
                       uint64_t size) {
    unsigned char *plain = malloc(qn__words_most(words));
    int64_t got[2][MOST] = {{1, -1}, {1, -1}};
    assert_non_null(plain);
    assert_int_equal(qn__words_pack_plain(word, words, plain), size);
    assert_memory_equal(plain, bytes, size);
    for (int wide = 0; wide < 2; ++wide) {
        qn__packed_words packed = {bytes, size};
        const size_t groups = wide && qn__words_wide_here() ? words / QN__WORDS_GROUP : 0;
        const size_t done = groups ? qn__words_unpack_wide(&packed, groups, 1, got[wide]) : 0;
        assert_true(done <= groups && done + 8 >= groups);
        assert_true(qn__words_unpack_plain(&packed, words - done * QN__WORDS_GROUP, 1,
                                           got[wide] + done * QN__WORDS_GROUP));
        assert_int_equal(packed.left, 0);
    }
    assert_memory_equal(got[0], got[1], sizeof got[0]);
    free(plain);
}

/* Packs into memory of exactly the promised size, which a sanitizer watches. */
static uint64_t pack(const int64_t *word, size_t words, unsigned char **bytes) {
    *bytes = malloc(qn__words_most(words));
    assert_non_null(*bytes);
    const size_t size = qn__words_pack(word, words, *bytes);
    assert_true(size + sizeof *word <= qn__words_most(words));
    unsigned char *exact = realloc(*bytes, size); /* reading beyond the message is an error */
    assert_non_null(exact);
    *bytes = exact;
    return size;
}

static void check(const int64_t *word, size_t words, uint64_t expected) {
    int64_t got[MOST], twice[MOST];
    unsigned char *bytes;
    const uint64_t size = pack(word, words, &bytes);
    assert_int_equal(size, expected);
    for (uint64_t cut = 0; cut <= size; cut += cut + 9 < size ? 9 : 1) {
        unsigned char *part = malloc(cut + 1);
        qn__packed_words packed = {part, cut};
        assert_non_null(part);
        memcpy(part, bytes, cut);
        assert_int_equal(qn__words_unpack(&packed, words, 0, got), cut == size);
        free(part);
    }
    for (size_t i = 0; i < words; ++i)
        twice[i] = word[i];
    check_wide(word, words, bytes, size);
    qn__packed_words packed = {bytes, size};
    assert_true(qn__words_unpack(&packed, words, 1, twice));
    assert_int_equal(packed.left, 0);
    for (size_t i = 0; i < words; ++i)
        assert_true(got[i] == word[i] && (uint64_t)twice[i] == 2 * (uint64_t)word[i]);
    free(bytes);
}

/* A group takes as many bytes a word as the bits between its lowest and its sign need. */
static void test_widths(void **state) {
    (void)state;
    static const struct {
        int64_t a, b;
        uint32_t width;
    } group[] = {{0, 0, 0},
                 {1, 0, 1},
                 {-1, 0, 1},
                 {127, -128, 1},
                 {128, 0, 1},
                 {128, 1, 2},
                 {-129, 0, 2},
                 {INT64_C(1) << 31, 1, 5},
                 {(INT64_C(1) << 31) - 1, INT32_MIN, 4},
                 {0x7fffff * (INT64_C(1) << 20), -0x7fffff * (INT64_C(1) << 20), 3},
                 {INT64_C(1) << 62, 0, 1},
                 {INT64_MIN, 0, 1},
                 {INT64_MIN, 1, 8},
                 {INT64_MAX, INT64_MIN, 8},
                 {INT64_MAX - 7, INT64_MIN, 8}};
    for (size_t k = 0; k < sizeof group / sizeof *group; ++k)
        for (uint32_t at = 0; at < QN__WORDS_GROUP; at += 5) {
            int64_t word[QN__WORDS_GROUP] = {0};
            word[at] = group[k].a;
            word[(at + 7) % QN__WORDS_GROUP] = group[k].b;
            check(word, QN__WORDS_GROUP, 2 + QN__WORDS_GROUP * group[k].width);
        }
}

/* Groups of all widths beside one another, the last one cut. */
static void test_all_lengths(void **state) {
    (void)state;
    uint64_t random = 7;
    for (size_t words = 1; words <= MOST; words += words < 67 ? 1 : 32) {
        int64_t word[MOST];
        uint64_t expected = 0;
        for (size_t i = 0; i < words; ++i) {
            const uint32_t width = 1 + (uint32_t)(i / QN__WORDS_GROUP + words) % 8;
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
            word[i] = (int64_t)(random | UINT64_C(1) << 63 | 1) >> (64 - 8 * width);
            word[i] |= 1;
            if (i % QN__WORDS_GROUP == 0)
                expected += 2;
            expected += width;
        }
        check(word, words, expected);
    }
}

static void test_other_bytes_are_refused(void **state) {
    (void)state;
    int64_t word[QN__WORDS_GROUP];
    unsigned char bytes[2 + 9 * QN__WORDS_GROUP] = {9, 0};
    qn__packed_words packed = {bytes, sizeof bytes};
    assert_false(qn__words_unpack(&packed, QN__WORDS_GROUP, 0, word));
    bytes[0] = 8;
    bytes[1] = 64;
    packed = (qn__packed_words){bytes, sizeof bytes};
    assert_false(qn__words_unpack(&packed, QN__WORDS_GROUP, 0, word));
    bytes[1] = 63;
    packed = (qn__packed_words){bytes, sizeof bytes};
    assert_true(qn__words_unpack(&packed, QN__WORDS_GROUP, 0, word));
    assert_int_equal(packed.left, QN__WORDS_GROUP);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_widths),
                                       cmocka_unit_test(test_all_lengths),
                                       cmocka_unit_test(test_other_bytes_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
