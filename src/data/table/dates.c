#include "data/table/dates.h"

#include "base/encoding.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* `least` to `most` digits at *at; 1, and *at after them, when there are so many and no more. */
static int take_digits(const char **at, size_t least, size_t most) {
    const size_t count = strspn(*at, "0123456789");
    if (count < least || count > most)
        return 0;
    *at += count;
    return 1;
}

static int take(const char **at, const char *one_of) {
    if (**at == '\0' || !strchr(one_of, **at))
        return 0;
    ++*at;
    return 1;
}

/* Three numbers with the same separator: the year first or last. */
static int take_date(const char **at) {
    const char *p = *at;
    const int year_first = strspn(p, "0123456789") == 4;
    if (!take_digits(&p, year_first ? 4 : 1, year_first ? 4 : 2))
        return 0;
    const char separator[2] = {*p, '\0'};
    if (!take(&p, year_first ? "-/" : "./-") || !take_digits(&p, 1, 2) || !take(&p, separator) ||
        !take_digits(&p, year_first ? 1 : 4, year_first ? 2 : 4))
        return 0;
    *at = p;
    return 1;
}

static int take_zone(const char **at) {
    if (take(at, "Zz"))
        return 1;
    return take(at, "+-") && take_digits(at, 2, 4) && (!take(at, ":") || take_digits(at, 2, 2));
}

/* Hours, minutes, and perhaps seconds with a fraction. */
static int take_time(const char **at) {
    if (!take_digits(at, 1, 2) || !take(at, ":") || !take_digits(at, 2, 2))
        return 0;
    if (take(at, ":") && (!take_digits(at, 2, 2) || (take(at, ".,") && !take_digits(at, 1, 9))))
        return 0;
    return **at == '\0' || take_zone(at);
}

int qn__is_date(const char *text) {
    const int date = take_date(&text);
    if (date && *text == '\0')
        return 1;
    if (date && !take(&text, " Tt"))
        return 0;
    return take_time(&text) && *text == '\0';
}

/* ---------------------------------------------------------------------------------- the calendar
 */

static int is_leap(int year) { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }

static int days_in(int year, int month) {
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[month - 1] + (month == 2 && is_leap(year));
}

/* Days before the first of January of a year, from 0001-01-01. */
static int64_t days_before(int year) {
    const int64_t past = year - 1;
    return past * 365 + past / 4 - past / 100 + past / 400;
}

int qn__days_of(int year, int month, int day, int64_t *days) {
    if (year < 1 || year > 9999 || month < 1 || month > 12 || day < 1 || day > days_in(year, month))
        return 0;
    *days = QN__DAYS_FIRST + days_before(year) + day - 1;
    for (int m = 1; m < month; ++m)
        *days += days_in(year, m);
    return 1;
}

void qn__date_of(int64_t days, int *year, int *month, int *day) {
    const int64_t since = days - QN__DAYS_FIRST;
    int y = (int)(since / 366) + 1; /* too early by a few years at most */
    while (days_before(y + 1) <= since)
        ++y;
    int64_t rest = since - days_before(y);
    int m = 1;
    while (rest >= days_in(y, m))
        rest -= days_in(y, m++);
    *year = y;
    *month = m;
    *day = (int)rest + 1;
}

int64_t qn__days_of_moment(int64_t moment) {
    return moment / QN__DAY_MICROSECONDS - (moment % QN__DAY_MICROSECONDS < 0);
}

/* ---------------------------------------------------------------------------------------- texts */

/* What has been read of a text. */
typedef struct fields {
    int year, month, day, yearday; /* -1: not named */
    int hour, minute, second, microsecond;
    int afternoon; /* 1: %p said PM; 0: AM; -1: neither */
    int zone;      /* minutes east of Greenwich */
    int has_time, has_zone;
} fields;

/* A text that is read from the left. */
typedef struct scan {
    const char *at, *end;
} scan;

static int is_digit(const scan *s) { return s->at < s->end && *s->at >= '0' && *s->at <= '9'; }

static int next_is(const scan *s, char c) { return s->at < s->end && *s->at == c; }

/* A number of `least` to `most` digits, as many as there are. */
static int number(scan *s, int least, int most, int *out) {
    int count = 0;
    *out = 0;
    for (; count < most && is_digit(s); ++count)
        *out = *out * 10 + (*s->at++ - '0');
    return count >= least;
}

/* One to nine digits after the point of a second. */
static int fraction(scan *s, int *microsecond) {
    int count = 0;
    *microsecond = 0;
    for (; count < 9 && is_digit(s); ++count, ++s->at)
        if (count < 6)
            *microsecond = *microsecond * 10 + (*s->at - '0');
    for (int i = count; i < 6; ++i)
        *microsecond *= 10;
    return count > 0;
}

static int character(scan *s, char c) {
    if (!next_is(s, c))
        return 0;
    ++s->at;
    return 1;
}

/* Z, +01, +0100, +01:00. */
static int zone(scan *s, fields *p) {
    int hours, minutes = 0;
    p->has_zone = 1;
    if (character(s, 'Z') || character(s, 'z'))
        return 1;
    const int west = next_is(s, '-');
    if (!character(s, '+') && !character(s, '-'))
        return 0;
    if (!number(s, 2, 2, &hours) ||
        ((character(s, ':') || is_digit(s)) && !number(s, 2, 2, &minutes)))
        return 0;
    p->zone = (hours * 60 + minutes) * (west ? -1 : 1);
    return hours < 24 && minutes < 60;
}

/* The moment of all parts; 0 where one is out of range, or the moment in UTC is. */
static int join(const fields *p, qn__moment *out) {
    int64_t days;
    const int hour = p->afternoon < 0 ? p->hour : p->hour % 12 + 12 * p->afternoon;
    if (p->yearday >= 0) {
        if (p->yearday < 1 || p->yearday > 365 + is_leap(p->year) ||
            !qn__days_of(p->year, 1, 1, &days))
            return 0;
        days += p->yearday - 1;
    } else if (!qn__days_of(p->year, p->month, p->day, &days)) {
        return 0;
    }
    if (hour > 23 || p->minute > 59 || p->second > 59)
        return 0;
    const int64_t seconds = ((int64_t)hour * 60 + p->minute - p->zone) * 60 + p->second;
    out->at = days * QN__DAY_MICROSECONDS + seconds * 1000000 + p->microsecond;
    out->has_time = p->has_time;
    out->has_zone = p->has_zone;
    return out->at >= QN__DAYS_FIRST * QN__DAY_MICROSECONDS &&
           out->at < QN__DAYS_END * QN__DAY_MICROSECONDS;
}

static const fields nothing = {.year = -1, .month = -1, .day = -1, .yearday = -1, .afternoon = -1};

int qn__moment_read(const char *text, size_t size, qn__moment *out) {
    scan s = {text, text + size};
    fields p = nothing;
    if (!number(&s, 4, 4, &p.year) || !character(&s, '-') || !number(&s, 2, 2, &p.month) ||
        !character(&s, '-') || !number(&s, 2, 2, &p.day))
        return 0;
    if (s.at == s.end)
        return join(&p, out);
    p.has_time = 1;
    if (!(character(&s, 'T') || character(&s, 't') || character(&s, ' ')) ||
        !number(&s, 2, 2, &p.hour) || !character(&s, ':') || !number(&s, 2, 2, &p.minute))
        return 0;
    if (character(&s, ':') &&
        (!number(&s, 2, 2, &p.second) ||
         ((character(&s, '.') || character(&s, ',')) && !fraction(&s, &p.microsecond))))
        return 0;
    if (s.at < s.end) {
        while (character(&s, ' '))
            ;
        if (!zone(&s, &p))
            return 0;
    }
    return s.at == s.end && join(&p, out);
}

/* ------------------------------------------------------------------------------------- formats */

static const char *const months[] = {"january",   "february", "march",    "april",
                                     "may",       "june",     "july",     "august",
                                     "september", "october",  "november", "december"};

/* The name of a month, in full or its first three letters. */
static int month_name(scan *s, int *month) {
    const size_t left = (size_t)(s->end - s->at);
    for (int m = 0; m < 12; ++m) {
        const size_t whole = strlen(months[m]);
        const size_t size = left >= whole && strncasecmp(s->at, months[m], whole) == 0 ? whole : 3;
        if (left < size || strncasecmp(s->at, months[m], size) != 0)
            continue;
        s->at += size;
        *month = m + 1;
        return 1;
    }
    return 0;
}

static int half_of_day(scan *s, int *afternoon) {
    if (s->end - s->at < 2 || (s->at[1] | 32) != 'm' ||
        ((*s->at | 32) != 'a' && (*s->at | 32) != 'p'))
        return 0;
    *afternoon = (*s->at | 32) == 'p';
    s->at += 2;
    return 1;
}

static int short_year(scan *s, int *year) {
    if (!number(s, 2, 2, year))
        return 0;
    *year += *year < 69 ? 2000 : 1900;
    return 1;
}

static int take_directive(char directive, scan *s, fields *p) {
    p->has_time |= strchr("HIMSfp", directive) != NULL;
    switch (directive) {
    case 'Y':
        return number(s, 4, 4, &p->year);
    case 'y':
        return short_year(s, &p->year);
    case 'm':
        return number(s, 1, 2, &p->month);
    case 'd':
        return number(s, 1, 2, &p->day);
    case 'j':
        return number(s, 1, 3, &p->yearday);
    case 'b':
    case 'B':
        return month_name(s, &p->month);
    case 'H':
        return number(s, 1, 2, &p->hour);
    case 'I':
        return number(s, 1, 2, &p->hour) && p->hour >= 1 && p->hour <= 12;
    case 'p':
        return half_of_day(s, &p->afternoon);
    case 'M':
        return number(s, 1, 2, &p->minute);
    case 'S':
        return number(s, 1, 2, &p->second);
    case 'f':
        return fraction(s, &p->microsecond);
    case 'z':
        return zone(s, p);
    default:
        return character(s, '%');
    }
}

int qn__moment_read_as(const char *format, const char *text, size_t size, qn__moment *out) {
    scan s = {text, text + size};
    fields p = nothing;
    for (; *format; ++format) {
        if (*format == ' ') {
            if (!character(&s, ' '))
                return 0;
            while (character(&s, ' '))
                ;
        } else if (*format != '%') {
            if (!character(&s, *format))
                return 0;
        } else if (!take_directive(*++format, &s, &p)) {
            return 0;
        }
    }
    return s.at == s.end && join(&p, out);
}

static qn_status refuse_format(const char *format, const char *why, qn_error *err) {
    const char *quote = *format ? "\"" : "";
    qn__fail(err, QN_USAGE, "the date format %s%.60s%s%s%s", quote, format, quote,
             *format ? " " : "", why);
    return qn__remedy(
        err, QN_USAGE,
        "`data.date_format` takes %%Y %%y %%m %%d %%j %%b %%B %%H %%I %%p %%M %%S %%f "
        "%%z, such as %%d.%%m.%%Y or %%m/%%d/%%Y %%H:%%M");
}

/* A recipe holds the format as text, and a quoted cell of a CSV file writes `"` twice. */
static int is_plain_text(const char *text) {
    size_t left = strlen(text), size;
    for (; left > 0; text += size, left -= size)
        if (*text == '"' || (size = qn__utf8_length(text, left)) == 0)
            return 0;
    return 1;
}

qn_status qn__date_format_check(const char *format, qn_error *err) {
    static const char known[] = "YymdjbBHIpMSfz%";
    if (!is_plain_text(format))
        return refuse_format("", "is not UTF-8, or has a quotation mark", err);
    if (strlen(format) >= QN__DATE_FORMAT)
        return refuse_format(format, "is longer than 63 bytes", err);
    unsigned count[128] = {0};
    for (const char *at = format; *at; ++at) {
        if (*at != '%')
            continue;
        if (!*++at || !strchr(known, *at))
            return refuse_format(format, "has a letter after % that is unknown", err);
        if (++count[(unsigned char)*at] > 1 && *at != '%')
            return refuse_format(format, "names a part twice", err);
    }
    const unsigned year = count['Y'] + count['y'], month = count['m'] + count['b'] + count['B'];
    const unsigned hour = count['H'] + count['I'];
    if (year != 1 || month + count['j'] != 1 || count['d'] + count['j'] != 1)
        return refuse_format(format, "does not name year, month and day once each", err);
    if (count['z'] > 0 && hour == 0)
        return refuse_format(format, "names a zone without an hour", err);
    if (hour > 1 || count['I'] != count['p'] ||
        (count['M'] + count['S'] + count['f'] > 0 && hour == 0))
        return refuse_format(format, "does not name the hour once, or %I without %p", err);
    return QN_OK;
}

void qn__moment_text(int64_t moment, int time, int zoned, char text[QN__MOMENT_TEXT]) {
    int year, month, day;
    const int64_t days = qn__days_of_moment(moment);
    qn__date_of(days, &year, &month, &day);
    int used = snprintf(text, QN__MOMENT_TEXT, "%04d-%02d-%02d", year, month, day);
    if (!time)
        return;
    const int64_t rest = moment - days * QN__DAY_MICROSECONDS, seconds = rest / 1000000;
    used += snprintf(text + used, (size_t)(QN__MOMENT_TEXT - used), "T%02d:%02d:%02d",
                     (int)(seconds / 3600), (int)(seconds / 60 % 60), (int)(seconds % 60));
    if (rest % 1000000 != 0) {
        used +=
            snprintf(text + used, (size_t)(QN__MOMENT_TEXT - used), ".%06d", (int)(rest % 1000000));
        while (text[used - 1] == '0')
            text[--used] = '\0';
    }
    if (zoned)
        snprintf(text + used, (size_t)(QN__MOMENT_TEXT - used), "Z");
}
