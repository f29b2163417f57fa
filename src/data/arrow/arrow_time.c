#include "data/arrow/arrow_time.h"

#include "data/table/dates.h"

static int unit_of(char letter, qn__time_type *type) {
    static const struct {
        char letter;
        int64_t seconds, parts;
    } units[] = {
        {'D', 86400, 0}, {'s', 1, 0}, {'m', 0, 1000}, {'u', 0, 1000000}, {'n', 0, 1000000000}};
    for (size_t i = 0; i < sizeof units / sizeof *units; ++i)
        if (units[i].letter == letter) {
            type->seconds = units[i].seconds;
            type->parts = units[i].parts;
            return 1;
        }
    return 0;
}

int qn__time_type_of(const char *format, qn__time_type *out) {
    *out = (qn__time_type){.width = 8};
    if (format[0] != 't' || !format[1] || !format[2] || !unit_of(format[2], out))
        return 0;
    const char *rest = format + 3;
    if (format[1] == 's') {
        out->form = QN__TIME_MOMENT;
        out->zone = rest[0] == ':' && rest[1] != '\0';
        return format[2] != 'D' && rest[0] == ':';
    }
    if (*rest)
        return 0;
    if (format[1] == 'd') {
        out->form = QN__TIME_DATE;
        out->width = format[2] == 'D' ? 4 : 8;
        return format[2] == 'D' || format[2] == 'm';
    }
    out->form = QN__TIME_SPAN;
    if (format[1] == 't' && (format[2] == 's' || format[2] == 'm'))
        out->width = 4;
    return format[2] != 'D' && (format[1] == 't' || format[1] == 'D');
}

int64_t qn__time_moment(const qn__time_type *type, int64_t value) {
    const int64_t first = QN__DAYS_FIRST * QN__DAY_MICROSECONDS,
                  end = QN__DAYS_END * QN__DAY_MICROSECONDS;
    int64_t moment;
    if (type->seconds) {
        if (__builtin_mul_overflow(value, type->seconds * 1000000, &moment))
            return INT64_MIN;
    } else if (type->parts > 1000000) {
        const int64_t nanoseconds = type->parts / 1000000;
        moment = value / nanoseconds - (value % nanoseconds < 0);
    } else if (__builtin_mul_overflow(value, 1000000 / type->parts, &moment)) {
        return INT64_MIN;
    }
    return moment >= first && moment < end ? moment : INT64_MIN;
}

double qn__time_seconds(const qn__time_type *type, int64_t value) {
    return type->seconds ? (double)value * (double)type->seconds
                         : (double)value / (double)type->parts;
}
