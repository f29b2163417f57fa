#include "data/dates.h"

#include <string.h>

/* `least` to `most` digits at *at; 1, and *at behind them, when there are so many and no more. */
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
