/* Words of sums as bytes: they come back as they were, in as few bytes as promised, and other bytes
 * are refused. */
#include "cluster/reduction/packed_words_wide.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 80 * QN__WORDS_GROUP + 3 };

typedef size_t (*packing)(const int64_t *from, size_t words, unsigned char *to);

/* The same bytes and words without and with wide instructions. */
static void check_wide(const int64_t *word, size_t words, int rounds, const unsigned char *bytes,
                       uint64_t size) {
    unsigned char *plain = malloc(qn__words_most(words));
    int64_t got[2][MOST] = {{1, -1}, {1, -1}};
    assert_non_null(plain);
    assert_int_equal(qn__words_pack_plain(word, words, rounds, plain), size);
    assert_memory_equal(plain, bytes, size);
    for (int wide = 0; wide < 2; ++wide) {
        qn__packed_words packed = {bytes, size};
        const size_t groups = wide && qn__words_wide_here() ? words / QN__WORDS_GROUP : 0;
        const size_t done = groups ? qn__words_unpack_wide(&packed, groups, 1, got[wide]) : 0;
        assert_true(done <= groups);
        assert_true(done == groups || packed.left < QN__WORDS_WIDE);
        assert_true(qn__words_unpack_plain(&packed, words - done * QN__WORDS_GROUP, 1,
                                           got[wide] + done * QN__WORDS_GROUP));
        assert_int_equal(packed.left, 0);
    }
    assert_memory_equal(got[0], got[1], sizeof got[0]);
    free(plain);
}

/* Packs into memory of exactly the promised size, which a sanitizer watches. */
static uint64_t pack(packing packs, const int64_t *word, size_t words, unsigned char **bytes) {
    *bytes = malloc(qn__words_most(words));
    assert_non_null(*bytes);
    const size_t size = packs(word, words, *bytes);
    assert_true(size + sizeof *word <= qn__words_most(words));
    unsigned char *exact = realloc(*bytes, size); /* reading beyond the message is an error */
    assert_non_null(exact);
    *bytes = exact;
    return size;
}

/* Packs words, of which `wanted` come back. */
static void check_packing(int rounds, const int64_t *word, const int64_t *wanted, size_t words,
                          uint64_t expected) {
    int64_t got[MOST], twice[MOST];
    unsigned char *bytes;
    const uint64_t size =
        pack(rounds ? qn__words_pack_rounded : qn__words_pack, word, words, &bytes);
    assert_int_equal(size, expected);
    for (uint64_t cut = 0; cut <= size; cut += cut + 9 < size ? 9 : 1) {
        unsigned char *part = malloc(cut + 1);
        qn__packed_words packed = {part, cut};
        assert_non_null(part);
        memcpy(part, bytes, cut);
        assert_int_equal(qn__words_unpack(&packed, words, 0, got), cut == size);
        free(part);
    }
    memcpy(twice, wanted, words * sizeof *twice);
    check_wide(word, words, rounds, bytes, size);
    qn__packed_words packed = {bytes, size};
    assert_true(qn__words_unpack(&packed, words, 1, twice));
    assert_int_equal(packed.left, 0);
    for (size_t i = 0; i < words; ++i)
        assert_true(got[i] == wanted[i] && (uint64_t)twice[i] == 2 * (uint64_t)wanted[i]);
    free(bytes);
}

static void check(const int64_t *word, size_t words, uint64_t expected) {
    check_packing(0, word, word, words, expected);
}

/* A group takes as many bits a word as those between its lowest and its sign, at least 8. */
static void test_widths(void **state) {
    (void)state;
    static const struct {
        int64_t a, b;
        uint32_t bits;
    } group[] = {{0, 0, 0},
                 {1, 0, 8},
                 {127, -128, 8},
                 {128, 0, 8},
                 {128, 1, 9},
                 {-129, 0, 9},
                 {INT64_C(1) << 31, 1, 33},
                 {(INT64_C(1) << 31) - 1, INT32_MIN, 32},
                 {0x7fffff * (INT64_C(1) << 20), -0x7fffff * (INT64_C(1) << 20), 24},
                 {INT64_C(1) << 55, 1, 57},
                 {INT64_C(1) << 56, 1, 64},
                 {INT64_C(1) << 62, 0, 8},
                 {INT64_MIN, 0, 8},
                 {INT64_MIN, 1, 64},
                 {INT64_MAX, INT64_MIN, 64},
                 {INT64_MAX - 7, INT64_MIN, 64}};
    for (size_t k = 0; k < sizeof group / sizeof *group; ++k)
        for (uint32_t at = 0; at < QN__WORDS_GROUP; at += 3) {
            int64_t word[QN__WORDS_GROUP] = {0};
            word[at] = group[k].a;
            word[(at + 5) % QN__WORDS_GROUP] = group[k].b;
            check(word, QN__WORDS_GROUP, QN__WORDS_HEAD + group[k].bits);
        }
}

/* A word of exactly so many bits, the lowest of which is set. */
static int64_t word_of(uint32_t bits, uint64_t *random) {
    *random = *random * UINT64_C(6364136223846793005) + 1442695040888963407;
    return ((int64_t)((*random & UINT64_MAX >> 2) | UINT64_C(1) << 63) >> (64 - bits)) | 1;
}

/* Groups of all widths beside one another, the last one cut. */
static void test_all_lengths(void **state) {
    (void)state;
    uint64_t random = 7;
    for (size_t words = 1; words <= MOST; words += words < 67 ? 1 : 8) {
        int64_t word[MOST];
        uint64_t expected = 0;
        for (size_t i = 0; i < words; i += QN__WORDS_GROUP) {
            const uint32_t bits = 8 + (uint32_t)(i / QN__WORDS_GROUP + words) % 57;
            const size_t n = words - i < QN__WORDS_GROUP ? words - i : QN__WORDS_GROUP;
            for (size_t k = i; k < i + n; ++k)
                word[k] = word_of(bits, &random);
            expected += QN__WORDS_HEAD + (n * (bits > QN__WORDS_MOST ? 64 : bits) + 7) / 8;
        }
        check(word, words, expected);
    }
}

/* Words that are used as floats come back as these, of any size, also beside zeros. */
static void test_nearest_floats(void **state) {
    (void)state;
    uint64_t random = 3;
    for (uint32_t low = 25; low <= 62; ++low)
        for (uint32_t high = low; high <= 62; high += 1 + high % 5) {
            int64_t word[MOST], wanted[MOST];
            for (size_t i = 0; i < MOST; ++i) {
                const uint32_t bits = i % 3 == 0 ? low : i % 3 == 1 ? high : (low + high) / 2;
                word[i] = i % 7 == 0 ? 0 : word_of(bits, &random) * (i % 2 ? 1 : -1);
                wanted[i] = (int64_t)(float)word[i];
            }
            uint64_t expected = 0;
            for (size_t i = 0; i < MOST; i += QN__WORDS_GROUP) {
                unsigned char one[1000];
                const size_t n = MOST - i < QN__WORDS_GROUP ? MOST - i : QN__WORDS_GROUP;
                const size_t exact = qn__words_pack(word + i, n, one);
                const size_t rounded = qn__words_pack_rounded(word + i, n, one);
                if (one[0] < QN__WORDS_FLOATS) /* it is not rounded */
                    memcpy(wanted + i, word + i, n * sizeof *word);
                assert_true(rounded <= exact);
                assert_true(rounded <= QN__WORDS_HEAD + (n * 31 + 7) / 8);
                expected += rounded;
            }
            check_packing(1, word, wanted, MOST, expected);
        }
}

/* Sums whose nearest float is not an int64, or has the least and the largest exponents. */
static void test_floats_at_the_limits(void **state) {
    (void)state;
    int64_t word[QN__WORDS_GROUP] = {INT64_MAX, 1, -1}, wanted[QN__WORDS_GROUP];
    check_packing(1, word, word, QN__WORDS_GROUP, QN__WORDS_HEAD + 64);
    word[0] = INT64_MIN;
    check_packing(1, word, word, QN__WORDS_GROUP, QN__WORDS_HEAD + 64);
    word[0] = INT64_MAX - (INT64_C(1) << 38); /* halfway to 2^63 - 2^39, which is even */
    memcpy(wanted, word, sizeof word);
    wanted[0] = INT64_MAX - (INT64_C(1) << 39) + 1;
    check_packing(1, word, wanted, QN__WORDS_GROUP, QN__WORDS_HEAD + 30);
}

static void test_other_bytes_are_refused(void **state) {
    (void)state;
    static const unsigned char refused[][2] = {{1, 0},     {7, 0},     {8, 64},   {58, 0},
                                               {63, 0},    {65, 0},    {127, 0},  {128, 126},
                                               {152, 126}, {160, 126}, {255, 126}};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; ++i)
        for (uint64_t size = 2; size <= 2 * QN__WORDS_WIDE; size += QN__WORDS_WIDE) {
            int64_t word[QN__WORDS_GROUP];
            unsigned char bytes[2 * QN__WORDS_WIDE] = {refused[i][0], refused[i][1]};
            qn__packed_words packed = {bytes, size};
            assert_false(qn__words_unpack(&packed, QN__WORDS_GROUP, 0, word));
            bytes[0] = 64;
            bytes[1] = 63;
            packed = (qn__packed_words){bytes, sizeof bytes};
            assert_true(qn__words_unpack(&packed, QN__WORDS_GROUP, 0, word));
            assert_int_equal(packed.left, sizeof bytes - QN__WORDS_HEAD - 64);
        }
}

/* Floats of 2^63 and more, among them those that are not finite. */
static void test_large_floats_are_refused(void **state) {
    (void)state;
    for (uint32_t base = 0; base < 256; ++base)
        for (uint64_t size = 2 + 25; size <= 2 * QN__WORDS_WIDE; size += 2 * QN__WORDS_WIDE - 27) {
            int64_t word[QN__WORDS_GROUP];
            unsigned char bytes[2 * QN__WORDS_WIDE] = {128 + 25, (unsigned char)base};
            bytes[2 + 2] = 0x80; /* the bit of 2^23 */
            qn__packed_words packed = {bytes, size};
            assert_int_equal(qn__words_unpack(&packed, QN__WORDS_GROUP, 0, word), base < 189);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_widths),
                                       cmocka_unit_test(test_all_lengths),
                                       cmocka_unit_test(test_nearest_floats),
                                       cmocka_unit_test(test_floats_at_the_limits),
                                       cmocka_unit_test(test_other_bytes_are_refused),
                                       cmocka_unit_test(test_large_floats_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
