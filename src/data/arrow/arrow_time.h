/* The types of Arrow that hold dates, times of day and spans of time
 * (https://arrow.apache.org/docs/format/CDataInterface.html, data type description). */
#ifndef QN_DATA_ARROW_ARROW_TIME_H
#define QN_DATA_ARROW_ARROW_TIME_H

#include <stddef.h>
#include <stdint.h>

typedef enum qn__time_form {
    QN__TIME_DATE,   /* a date without a time */
    QN__TIME_MOMENT, /* a date with a time */
    QN__TIME_SPAN    /* a time of day, or a duration: a number of seconds */
} qn__time_form;

typedef struct qn__time_type {
    qn__time_form form;
    size_t width;    /* bytes of a value, 4 or 8 */
    int64_t seconds; /* of a unit, where that is not below one second; else 0 */
    int64_t parts;   /* units of a second; else 0 */
    int zone;        /* 1: a moment is in UTC */
} qn__time_type;

/* 1 when the format is one of these: tdD, tdm, ts?:ZONE, tt?, tD? with s, m, u or n for ?. */
int qn__time_type_of(const char *format, qn__time_type *out);

/* Microseconds since 1970 (data/table/dates.h) of a value, what is smaller being cut off; INT64_MIN
 * where the year is below 1 or above 9999. */
int64_t qn__time_moment(const qn__time_type *type, int64_t value);

/* Seconds of a span, rounded to binary64 once. */
double qn__time_seconds(const qn__time_type *type, int64_t value);

#endif
