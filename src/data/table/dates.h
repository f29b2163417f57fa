/* Dates and times: the calendar, and how texts are read and written (docs/exactness.md 23.10).
 *
 * A moment is a whole number of microseconds since 1970-01-01 00:00:00 in the proleptic Gregorian
 * calendar, without leap seconds. Years are 1 to 9999. */
#ifndef QN_DATA_TABLE_DATES_H
#define QN_DATA_TABLE_DATES_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

#define QN__DAY_MICROSECONDS ((int64_t)86400000000)
/* 0001-01-01 and 10000-01-01, in days since 1970-01-01. */
#define QN__DAYS_FIRST ((int64_t)-719162)
#define QN__DAYS_END ((int64_t)2932897)

/* 1 for a text that people take for a date (2024-02-29, 2024/2/29, 29.2.2024, 2/29/2024), a time
 * (8:30, 08:30:15.25), or a date and a time with a blank or a T between them; a zone may follow a
 * time (Z, +01:00). Months and days are not checked. */
int qn__is_date(const char *text);

/* ---------------------------------------------------------------------------------- the calendar
 */

/* The day number of a date that exists; 0 otherwise. */
int qn__days_of(int year, int month, int day, int64_t *days);
/* `days` is in [QN__DAYS_FIRST, QN__DAYS_END). Months and days count from 1. */
void qn__date_of(int64_t days, int *year, int *month, int *day);
/* The largest whole number that is not above moment / microseconds of a day. */
int64_t qn__days_of_moment(int64_t moment);

/* ---------------------------------------------------------------------------------------- texts */

/* What a text says beside the moment. */
typedef struct qn__moment {
    int64_t at;
    int has_time; /* it names a time of the day */
    int has_zone; /* it names a zone; `at` is then in UTC */
} qn__moment;

/* ISO 8601: 2024-02-29; then, after a T or a blank, 08:30, 08:30:15 or 08:30:15.25 (up to nine
 * digits, of which six count), and a zone Z, +01, +0100 or +01:00. Returns 0 for all else, for
 * dates that do not exist, and for years below 1 and above 9999. */
int qn__moment_read(const char *text, size_t size, qn__moment *out);

/* The same by a format: characters that stand for themselves, and %Y %y %m %d %j %b %B %H %I %p %M
 * %S %f %z %%, as C's strptime and Python's datetime have them. A blank stands for one or more. %b
 * and %B take English names, short or in full. %y from 69 to 99 means 1969 to 1999, others 2000 to
 * 2068. */
int qn__moment_read_as(const char *format, const char *text, size_t size, qn__moment *out);

/* Bytes of a format, with its NUL, at most. */
enum { QN__DATE_FORMAT = 64 };
/* Checks that a format names a whole date, once each. Fails with QN_USAGE. */
qn_status qn__date_format_check(const char *format, qn_error *err);

/* As ISO 8601 has it: 2024-02-29; with `time` 2024-02-29T08:30:00 and as many decimals as are
 * needed; with `zone` a Z after it. */
enum { QN__MOMENT_TEXT = 40 };
void qn__moment_text(int64_t moment, int time, int zone, char text[QN__MOMENT_TEXT]);

#endif
