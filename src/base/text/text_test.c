/* Numbers and words as text. Oracles: exact fractions (the table's bits come from Python's
 * fractions module), the C library's strtof and strtoull, and round trips. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/text/text.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t random_state = 20261121;

static uint32_t next_random(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 32);
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static int parse(const char *text, float *out) { return qn__parse_float(text, strlen(text), out); }

static void test_table_of_shortest_texts(void **state) {
    (void)state;
    static const struct {
        float value;
        const char *text;
    } table[] = {
        {0.0f, "0"},
        {-0.0f, "-0"},
        {1.0f, "1"},
        {0.1f, "0.1"},
        {0.001f, "0.001"},
        {1e-8f, "1e-08"},
        {16777216.0f, "16777216"},
        {1.0f / 3, "0.33333334"},
        {0.2f * 3, "0.6"},
        {-2.5e10f, "-2.5e+10"},
        {0x1p-149f, "1e-45"},
        {0x1p-126f, "1.1754944e-38"},
        {0x1.fffffep127f, "3.4028235e+38"},
        {0x1.000002p0f, "1.0000001"},
        {123456789.0f, "1.2345679e+08"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char text[32];
        qn__float_text(table[i].value, text);
        assert_string_equal(text, table[i].text);
    }
}

/* The first number of digits that reads back, also beside powers of two. */
static void check_shortest(uint32_t bits) {
    char want[32], text[32];
    float value;
    memcpy(&value, &bits, sizeof value);
    for (int digits = 1; digits <= 9; digits++) {
        snprintf(want, sizeof want, "%.*g", digits, (double)value);
        if (strtof(want, NULL) == value)
            break;
    }
    qn__float_text(value, text);
    assert_string_equal(text, want);
}

static void test_shortest_floats(void **state) {
    (void)state;
    for (int i = 0; i < 6000; i++) {
        const uint32_t bits = next_random();
        check_shortest(bits);
        check_shortest(0x3f000000 | bits >> 9);                 /* from 0.5 to 2 */
        check_shortest((bits & 0x7f800000) + (bits >> 28) - 8); /* beside a power of two */
    }
}

/* As people write numbers; the digits are those of the shortest text. */
static void test_plain_texts(void **state) {
    (void)state;
    static const struct {
        float value;
        const char *text;
    } table[] = {
        {350000.0f, "350000"},
        {-2.5e7f, "-25000000"},
        {1e14f, "100000000000000"},
        {1e15f, "1e+15"},
        {1.5e-5f, "0.000015"},
        {-1e-5f, "-0.00001"},
        {9e-6f, "9e-06"},
        {0.0f, "0"},
        {-0.0f, "-0"},
        {350000.5f, "350000.5"},
        {123456789.0f, "123456790"},
        {0.25f, "0.25"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char text[40];
        qn__float_plain(table[i].value, text);
        assert_string_equal(text, table[i].text);
    }
    for (int i = 0; i < 20000; i++) {
        const float value = float_of(next_random());
        char text[40];
        float back = 0;
        if (!isfinite(value))
            continue;
        qn__float_plain(value, text);
        assert_true(qn__parse_float(text, strlen(text), &back) && back == value);
    }
}

/* The text reads back to the same bits; with one digit less it does not. */
static void test_round_trip_of_random_bits(void **state) {
    (void)state;
    int tried = 0;
    while (tried < 20000) {
        const uint32_t bits = next_random();
        const float value = float_of(bits);
        if (!isfinite(value))
            continue;
        char text[32], shorter[32];
        qn__float_text(value, text);
        float back;
        assert_true(parse(text, &back));
        assert_int_equal(bits_of(back), bits);
        assert_int_equal(bits_of(strtof(text, NULL)), bits);
        int digits = 1;
        while (snprintf(shorter, sizeof shorter, "%.*g", digits, (double)value) > 0 &&
               bits_of(strtof(shorter, NULL)) != bits)
            digits++;
        assert_string_equal(text, shorter);
        tried++;
    }
}

static void test_table_of_roundings(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint32_t bits;
    } table[] = {
        {"1e-3", 0x3a83126f},
        {"0.1", 0x3dcccccd},
        {"3.4028235e38", 0x7f7fffff},
        {"3.40282356e38", 0x7f7fffff},
        {"3.4028235677973366e38", 0x7f7fffff},
        {"1.17549435e-38", 0x00800000},
        {"1.17549431e-38", 0x00800000},
        {"1.4e-45", 0x00000001},
        {"7e-46", 0x00000000},
        {"7.006492321624085e-46", 0x00000000},
        {"7.006492321624086e-46", 0x00000001},
        {"16777217", 0x4b800000},
        {"16777217.0000000000000000000000001", 0x4b800001},
        {"16777219", 0x4b800002},
        {"1.00000005960464477539062499", 0x3f800000},
        {"1.000000059604644775390625", 0x3f800000},
        {"1.00000005960464477539062501", 0x3f800001},
        {"33554435", 0x4c000001},
        {"8589973000", 0x50000026},
        {"-0", 0x80000000},
        {"0.30000000000000004", 0x3e99999a},
        {"123456789012345678901234567890", 0x6fc77488},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        float value = 42;
        assert_true(parse(table[i].text, &value));
        if (bits_of(value) != table[i].bits)
            fail_msg("%s gave %08" PRIx32 ", not %08" PRIx32, table[i].text, bits_of(value),
                     table[i].bits);
    }
}

/* Numbers around the midpoints of two floats, with 9 to 60 digits: double rounding would show
 * there. */
static void test_random_decimals_against_strtof(void **state) {
    (void)state;
    for (int i = 0; i < 60000; i++) {
        const float value = float_of(next_random() & 0x7fffffff);
        if (!isfinite(value) || value >= 0x1p127f)
            continue;
        const double half = ((double)value + (double)nextafterf(value, INFINITY)) / 2;
        char text[128];
        const uint32_t kind = next_random() % 4;
        if (kind == 0)
            snprintf(text, sizeof text, "%.*e", 8 + (int)(next_random() % 52), half);
        else if (kind == 1)
            snprintf(text, sizeof text, "%.*e", 15 + (int)(next_random() % 5), half);
        else if (kind == 2)
            snprintf(text, sizeof text, "%" PRIu32 ".%09" PRIu32 "%010" PRIu32,
                     next_random() % 1000, next_random() % 1000000000, next_random());
        else
            snprintf(text, sizeof text, "%" PRIu32 "%" PRIu32 "e%d", next_random(),
                     next_random() % 1000000000, (int)(next_random() % 60) - 40);
        float got = 42;
        assert_true(parse(text, &got));
        const float expected = strtof(text, NULL);
        if (bits_of(got) != bits_of(expected))
            fail_msg("%s gave %a, not %a", text, (double)got, (double)expected);
    }
}

static void test_long_numbers(void **state) {
    (void)state;
    enum { LONG = 100000 };
    static char text[LONG + 64];
    float value;
    /* 0.000...01e100000 */
    memset(text, '0', LONG);
    text[1] = '.';
    strcpy(text + LONG, "1e99999");
    assert_true(parse(text, &value));
    assert_true(value == 1);
    /* the midpoint of 1 and its successor, and a 1 far behind */
    memset(text, '0', LONG);
    memcpy(text, "1.000000059604644775390625", 26);
    text[LONG] = 0;
    assert_true(parse(text, &value));
    assert_true(value == 1.0f);
    text[LONG - 1] = '1';
    assert_true(parse(text, &value));
    assert_true(value == 0x1.000002p0f);
    memset(text, '9', LONG);
    assert_false(parse(text, &value));
}

static void test_what_is_no_float(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",      " ",    "1 ",    " 1",     "+",    "-",        ".",
        "e5",    "1e",   "1e+",   "1e-",    "0x10", "nan",      "NaN",
        "inf",   "-inf", "1,5",   "1.5.2",  "1e5.", "--1",      "+-1",
        "1_000", "1e39", "-1e39", "3.5e38", "1f",   "infinity", "1e999999999999999999999999",
        "٣",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        float value = 42;
        if (parse(bad[i], &value))
            fail_msg("\"%s\" was taken for %g", bad[i], (double)value);
        assert_true(value == 42);
    }
    float value = 42;
    assert_false(qn__parse_float("1\0", 2, &value));
    static const char *const good[] = {"1",   "+1",   "1.",    "1.0", "01",
                                       "1e0", "1E+0", "10e-1", ".1e1"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(parse(good[i], &value));
        assert_true(value == 1);
    }
    assert_true(parse("1e-999999999999999999999999", &value));
    assert_int_equal(bits_of(value), 0);
    assert_true(qn__parse_float("12345", 2, &value));
    assert_true(value == 12);
}

static void test_whole_numbers(void **state) {
    (void)state;
    static const char *const bad[] = {"",
                                      "-1",
                                      "+1",
                                      " 1",
                                      "1 ",
                                      "1.0",
                                      "0x1",
                                      "1e3",
                                      "a",
                                      "18446744073709551616",
                                      "99999999999999999999999999"};
    uint64_t value = 42;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(qn__parse_u64(bad[i], strlen(bad[i]), &value));
    assert_int_equal(value, 42);
    assert_true(qn__parse_u64("18446744073709551615", 20, &value));
    assert_true(value == UINT64_MAX);
    assert_true(qn__parse_u64("007", 3, &value));
    assert_int_equal(value, 7);
    assert_true(qn__parse_u64("1234", 2, &value));
    assert_int_equal(value, 12);
}

static void test_nearest_words(void **state) {
    (void)state;
    static const char *const words[] = {"momentum", "adam", "adamw", "sgd", "cross-entropy", NULL};
    static const struct {
        const char *word, *nearest;
    } table[] = {
        {"adam", "adam"},
        {"adm", "adam"},
        {"adamww", "adamw"},
        {"sdg", "sgd"},
        {"SGD", NULL},
        {"momentun", "momentum"},
        {"monmetum", "momentum"},
        {"crossentropy", "cross-entropy"},
        {"x", NULL},
        {"", NULL},
        {"something", NULL},
        {"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", NULL},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const char *got = qn__nearest(table[i].word, words);
        if (!got || !table[i].nearest)
            assert_true(got == table[i].nearest);
        else
            assert_string_equal(got, table[i].nearest);
    }
    static const char *const none[] = {NULL};
    assert_null(qn__nearest("adam", none));
}

static void test_growing_text(void **state) {
    (void)state;
    qn__text text = {0};
    for (int i = 0; i < 1000; i++)
        qn__text_add(&text, "%03d,", i);
    assert_int_equal(text.failed, 0);
    assert_int_equal(text.size, 4000);
    assert_int_equal(strlen(text.data), 4000);
    assert_memory_equal(text.data + 3996, "999,", 5);
    qn__text_release(&text);
    assert_null(text.data);

    qn__text_add_json(&text, "a\"b\\c/\n\t\x01\x7f\xc3\xa9\xff|\xed\xa0\x80");
    assert_string_equal(text.data, "\"a\\\"b\\\\c/\\n\\t\\u0001\x7f\xc3\xa9\xef\xbf\xbd|"
                                   "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
    qn__text_release(&text);
    qn__text_release(&text);
}

/* A comma as the user's decimal point must not matter. */
static void test_no_locale_matters(void **state) {
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
    const char *set = NULL;
    for (size_t i = 0; i < 4 && !set; i++)
        set = setlocale(LC_ALL, names[i]);
    if (!set) {
        print_message("skipped: no locale with a decimal comma is installed\n");
        skip();
    }
    char text[32];
    float value = 0;
    qn__float_text(0.5f, text);
    const int good = parse("1.00000005960464477539062501", &value);
    qn__text growing = {0};
    qn__text_add(&growing, "%g", 1.5);
    setlocale(LC_ALL, "C");
    assert_string_equal(text, "0.5");
    assert_true(good && value == 0x1.000002p0f);
    assert_string_equal(growing.data, "1.5");
    qn__text_release(&growing);
}

static void test_percent(void **state) {
    (void)state;
    static const char *const pairs[][2] = {{"a%20b%c3%A9", "a b\xC3\xA9"},
                                           {"5%", "5%"},
                                           {"%4", "%4"},
                                           {"%g1%41", "%g1A"},
                                           {"a%00b", "a%00b"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; ++i) {
        char *text = qn__percent_decode(pairs[i][0], strlen(pairs[i][0]), NULL);
        assert_string_equal(text, pairs[i][1]);
        qn__free(text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_of_shortest_texts),
        cmocka_unit_test(test_shortest_floats),
        cmocka_unit_test(test_plain_texts),
        cmocka_unit_test(test_round_trip_of_random_bits),
        cmocka_unit_test(test_table_of_roundings),
        cmocka_unit_test(test_random_decimals_against_strtof),
        cmocka_unit_test(test_long_numbers),
        cmocka_unit_test(test_what_is_no_float),
        cmocka_unit_test(test_whole_numbers),
        cmocka_unit_test(test_nearest_words),
        cmocka_unit_test(test_percent),
        cmocka_unit_test(test_growing_text),
        cmocka_unit_test(test_no_locale_matters),
    };
    print_message("seed %llu\n", (unsigned long long)random_state);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
