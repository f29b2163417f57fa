/* Dates: the calendar, texts and their formats, and the inputs that a network gets. The expected
 * values are those of Python's datetime; tests/test_dates.py compares many more. */
#include "data/table/date_parts.h"
#include "data/table/dates.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* Every day of all years, beside a plain count. */
static void test_calendar(void **state) {
    (void)state;
    static const int length[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t day_number = QN__DAYS_FIRST, found;
    for (int year = 1; year <= 9999; ++year)
        for (int month = 1; month <= 12; ++month) {
            const int leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            const int days = length[month - 1] + (month == 2 && leap);
            for (int day = 1; day <= days; ++day, ++day_number) {
                int y, m, d;
                assert_true(qn__days_of(year, month, day, &found));
                assert_int_equal(found, day_number);
                qn__date_of(day_number, &y, &m, &d);
                assert_true(y == year && m == month && d == day);
            }
            assert_false(qn__days_of(year, month, days + 1, &found));
        }
    assert_int_equal(day_number, QN__DAYS_END);
    assert_false(qn__days_of(0, 1, 1, &found));
    assert_false(qn__days_of(10000, 1, 1, &found));
    assert_int_equal(qn__days_of_moment(-1), -1);
    assert_int_equal(qn__days_of_moment(-QN__DAY_MICROSECONDS), -1);
    assert_int_equal(qn__days_of_moment(QN__DAY_MICROSECONDS), 1);
}

static void test_texts(void **state) {
    (void)state;
    static const struct {
        const char *text, *again;
    } fine[] = {{"1970-01-01", "1970-01-01"},
                {"0001-01-01", "0001-01-01"},
                {"9999-12-31", "9999-12-31"},
                {"2024-02-29", "2024-02-29"},
                {"2024-02-29T08:30", "2024-02-29T08:30:00"},
                {"2024-02-29 08:30:15", "2024-02-29T08:30:15"},
                {"2024-02-29 08:30:15.25", "2024-02-29T08:30:15.25"},
                {"2024-02-29 08:30:15,123456789", "2024-02-29T08:30:15.123456"},
                {"2024-02-29T00:30:00+02:00", "2024-02-28T22:30:00Z"},
                {"2024-02-29T00:30:00+0200", "2024-02-28T22:30:00Z"},
                {"2024-02-29T23:30:00-01", "2024-03-01T00:30:00Z"},
                {"1969-12-31T23:59:59.999999 Z", "1969-12-31T23:59:59.999999Z"}};
    static const char *const wrong[] = {"",
                                        "2024",
                                        "2024-02",
                                        "2023-02-29",
                                        "2024-13-01",
                                        "2024-00-10",
                                        "2024-1-1",
                                        "24-01-01",
                                        "2024/01/01",
                                        "20240101",
                                        "0000-01-01",
                                        "2024-01-01T",
                                        "2024-01-01T8:30",
                                        "2024-01-01T24:00",
                                        "2024-01-01T08:60",
                                        "2024-01-01x",
                                        "08:30",
                                        "2024-01-01T08:30:",
                                        "2024-01-01T08:30:1.",
                                        "2024-01-01T08:30+25",
                                        "2024-01-01 08:30:00.1234567890",
                                        "0001-01-01T00:00+01",
                                        "9999-12-31T23:59-01"};
    for (size_t i = 0; i < sizeof fine / sizeof fine[0]; ++i) {
        qn__moment m;
        char text[QN__MOMENT_TEXT];
        assert_true(qn__moment_read(fine[i].text, strlen(fine[i].text), &m));
        qn__moment_text(m.at, m.has_time, m.has_zone, text);
        assert_string_equal(text, fine[i].again);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
        qn__moment m;
        if (qn__moment_read(wrong[i], strlen(wrong[i]), &m))
            fail_msg("\"%s\" was read", wrong[i]);
    }
}

static void test_formats(void **state) {
    (void)state;
    static const struct {
        const char *format, *text, *again;
    } fine[] = {{"%d.%m.%Y", "29.2.2024", "2024-02-29"},
                {"%m/%d/%y", "02/29/24", "2024-02-29"},
                {"%m/%d/%y", "02/28/69", "1969-02-28"},
                {"%Y%m%d", "20240229", "2024-02-29"},
                {"%b %d, %Y", "Feb 29, 2024", "2024-02-29"},
                {"%Yé%m %d", "2024é02 29", "2024-02-29"},
                {"%B %d, %Y", "FEBRUARY  29, 2024", "2024-02-29"},
                {"%d %B %Y", "1 may 2024", "2024-05-01"},
                {"%Y-%j", "2024-366", "2024-12-31"},
                {"%d.%m.%Y %H:%M:%S.%f", "1.2.2024 7:08:09.5", "2024-02-01T07:08:09.5"},
                {"%m/%d/%Y %I:%M %p", "1/2/2024 12:05 AM", "2024-01-02T00:05:00"},
                {"%m/%d/%Y %I:%M %p", "1/2/2024 12:05 pm", "2024-01-02T12:05:00"},
                {"%m/%d/%Y %I:%M %p", "1/2/2024 1:05 PM", "2024-01-02T13:05:00"},
                {"%d%%%m%%%Y %H%z", "1%2%2024 10+0130", "2024-02-01T08:30:00Z"}};
    static const struct {
        const char *format, *text;
    } wrong[] = {{"%d.%m.%Y", "2.29.2024"},
                 {"%d.%m.%Y", "1.2.24"},
                 {"%d.%m.%Y", "1.2.2024 "},
                 {"%Y-%j", "2023-366"},
                 {"%b %d, %Y", "Fe 29, 2024"},
                 {"%m/%d/%Y %I:%M %p", "1/2/2024 13:05 PM"},
                 {"%m/%d/%Y %I:%M %p", "1/2/2024 1:05"},
                 {"%d  %m %Y", "1    2 2024"},
                 {"%d.%m.%Y %H%z", "1.1.0001 0+00:01"},
                 {"%d.%m.%Y", ""}};
    static const char *const refused[] = {
        "",           "%Y",          "%Y-%m",       "%d.%m.%Y %Y",    "%d.%m.%y %Y", "%q",
        "%d.%m.%Y %", "%d.%m.%Y %M", "%d.%m.%Y %I", "%d.%m.%Y %H %I", "%Y %j %d",    "%b %m %d %Y",
        "%d.%m.%Y%z", "%Y%m%d\xff",  "%Y%m%d\xc3",  "%Y%m%d \"x\""};
    for (size_t i = 0; i < sizeof fine / sizeof fine[0]; ++i) {
        qn__moment m;
        char text[QN__MOMENT_TEXT];
        assert_int_equal(qn__date_format_check(fine[i].format, NULL), QN_OK);
        assert_true(qn__moment_read_as(fine[i].format, fine[i].text, strlen(fine[i].text), &m));
        qn__moment_text(m.at, m.has_time, m.has_zone, text);
        assert_string_equal(text, fine[i].again);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
        qn__moment m;
        assert_false(qn__moment_read_as(wrong[i].format, wrong[i].text, strlen(wrong[i].text), &m));
    }
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; ++i) {
        qn_error err = {0};
        assert_int_equal(qn__date_format_check(refused[i], &err), QN_USAGE);
        assert_non_null(strstr(err.remedy, "data.date_format"));
    }
}

static void test_parts(void **state) {
    (void)state;
    uint32_t set;
    char name[32];
    float input[64] = {0};
    qn__moment m;
    assert_int_equal(qn__date_parts_read(" hour,year , weekday,days,quarter", &set, NULL), QN_OK);
    assert_int_equal(qn__date_inputs(set), 1 + 4 + 7 + 24 + 1);
    assert_true(qn__moment_read("2024-02-29T23:05", 16, &m));
    qn__date_encode(set, m.at, input);
    float expected[64] = {0};
    expected[0] = 2024;
    expected[1] = 1;           /* the first quarter */
    expected[5 + 3] = 1;       /* a Thursday */
    expected[12 + 23] = 1;     /* 23 h */
    expected[12 + 24] = 19782; /* days */
    assert_memory_equal(input, expected, sizeof input);
    static const char *const names[] = {"year",      "quarter=1", "quarter=4",
                                        "weekday=0", "hour=23",   "days"};
    static const uint32_t places[] = {0, 1, 4, 5, 35, 36};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; ++i) {
        qn__date_input_name(set, places[i], name);
        assert_string_equal(name, names[i]);
    }
    memset(input, 0, sizeof input);
    qn__date_encode_numbers(set, -1, input); /* 1969-12-31T23:59:59.999999 */
    memset(expected, 0, sizeof expected);
    expected[0] = 1969;
    expected[36] = -1;
    assert_memory_equal(input, expected, sizeof input);
    static const char *const wrong[] = {"", "year,", "yaer", "year,year", "year month", "Year"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i)
        assert_int_equal(qn__date_parts_read(wrong[i], &set, NULL), QN_USAGE);
    qn_error err = {0};
    qn__date_parts_read("yaer", &set, &err);
    assert_string_equal(err.remedy, "did you mean year?");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_calendar),
                                       cmocka_unit_test(test_texts), cmocka_unit_test(test_formats),
                                       cmocka_unit_test(test_parts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
