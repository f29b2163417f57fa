#include "data/table/date_parts.h"

#include "base/text/text.h"
#include "data/table/dates.h"
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    uint32_t width; /* values that are inputs of their own; 1: a number */
    int first;      /* of these */
} rows[QN__DATE_PARTS] = {{"year", 1, 0},    {"quarter", 4, 1}, {"month", 12, 1}, {"day", 1, 0},
                          {"weekday", 7, 0}, {"yearday", 1, 0}, {"hour", 24, 0},  {"minute", 1, 0},
                          {"second", 1, 0},  {"days", 1, 0}};

const char *qn__date_part_name(qn__date_part part) { return rows[part].name; }

uint32_t qn__date_parts_usual(int time) {
    return 1u << QN__PART_YEAR | 1u << QN__PART_MONTH | 1u << QN__PART_WEEKDAY |
           1u << QN__PART_DAYS | (time ? 1u << QN__PART_HOUR : 0);
}

void qn__date_parts_text(uint32_t set, char text[QN__DATE_PARTS_TEXT]) {
    size_t used = 0;
    text[0] = '\0';
    for (int part = 0; part < QN__DATE_PARTS; ++part)
        if (set >> part & 1)
            used += (size_t)snprintf(text + used, QN__DATE_PARTS_TEXT - used, "%s%s",
                                     used ? "," : "", rows[part].name);
}

uint32_t qn__date_inputs(uint32_t set) {
    uint32_t inputs = 0;
    for (int part = 0; part < QN__DATE_PARTS; ++part)
        inputs += set >> part & 1 ? rows[part].width : 0;
    return inputs;
}

/* The value of each part; those of parts with inputs of their own count from 0. */
static void values_of(int64_t moment, int value[QN__DATE_PARTS]) {
    int year, month, day;
    int64_t first = 0;
    const int64_t days = qn__days_of_moment(moment);
    const int64_t seconds = (moment - days * QN__DAY_MICROSECONDS) / 1000000;
    qn__date_of(days, &year, &month, &day);
    qn__days_of(year, 1, 1, &first);
    value[QN__PART_YEAR] = year;
    value[QN__PART_QUARTER] = (month - 1) / 3;
    value[QN__PART_MONTH] = month - 1;
    value[QN__PART_DAY] = day;
    /* 1970-01-01 was a Thursday, and 0001-01-01 a Monday. */
    value[QN__PART_WEEKDAY] = (int)((days - QN__DAYS_FIRST) % 7);
    value[QN__PART_YEARDAY] = (int)(days - first) + 1;
    value[QN__PART_HOUR] = (int)(seconds / 3600);
    value[QN__PART_MINUTE] = (int)(seconds / 60 % 60);
    value[QN__PART_SECOND] = (int)(seconds % 60);
    value[QN__PART_DAYS] = (int)days;
}

static void encode(uint32_t set, int64_t moment, int numbers_alone, float *to) {
    int value[QN__DATE_PARTS];
    values_of(moment, value);
    for (int part = 0; part < QN__DATE_PARTS; ++part) {
        if (!(set >> part & 1))
            continue;
        if (rows[part].width == 1)
            *to = (float)value[part];
        else if (!numbers_alone)
            to[value[part]] = 1.0f;
        to += rows[part].width;
    }
}

void qn__date_encode(uint32_t set, int64_t moment, float *to) { encode(set, moment, 0, to); }

void qn__date_encode_numbers(uint32_t set, int64_t moment, float *to) {
    encode(set, moment, 1, to);
}

/* The part of input *at, which becomes the number of its value; QN__DATE_PARTS: there is none. */
static int part_at(uint32_t set, uint32_t *at) {
    int part = 0;
    for (; part < QN__DATE_PARTS; ++part) {
        const uint32_t width = set >> part & 1 ? rows[part].width : 0;
        if (*at < width)
            return part;
        *at -= width;
    }
    return part;
}

int qn__date_is_choice(uint32_t set, uint32_t at) {
    const int part = part_at(set, &at);
    return part < QN__DATE_PARTS && rows[part].width > 1;
}

void qn__date_input_name(uint32_t set, uint32_t at, char text[32]) {
    const int part = part_at(set, &at);
    text[0] = '\0';
    if (part < QN__DATE_PARTS && rows[part].width == 1)
        snprintf(text, 32, "%s", rows[part].name);
    else if (part < QN__DATE_PARTS)
        snprintf(text, 32, "%s=%d", rows[part].name, rows[part].first + (int)at);
}

static qn_status refuse_part(const char *word, int twice, qn_error *err) {
    const char *names[QN__DATE_PARTS + 1] = {NULL};
    char list[160] = "";
    for (int part = 0; part < QN__DATE_PARTS; ++part) {
        names[part] = rows[part].name;
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", part ? ", " : "",
                 rows[part].name);
    }
    const char *near = qn__nearest(word, names);
    qn__fail(err, QN_USAGE,
             twice ? "\"%.40s\" stands twice in the parts of dates"
                   : "\"%.40s\" is not a part of a date",
             word);
    if (near && !twice)
        return qn__remedy(err, QN_USAGE, "did you mean %s?", near);
    return qn__remedy(err, QN_USAGE, "`data.dates` takes names separated by commas: %s", list);
}

static int part_of(const char *word) {
    int part = 0;
    while (part < QN__DATE_PARTS && strcmp(rows[part].name, word) != 0)
        ++part;
    return part;
}

qn_status qn__date_parts_read(const char *list, uint32_t *set, qn_error *err) {
    uint32_t found = 0;
    for (const char *at = list;; ++at) {
        char word[48];
        at += strspn(at, " ");
        const size_t size = strcspn(at, ",");
        size_t used = size;
        while (used > 0 && at[used - 1] == ' ')
            --used;
        snprintf(word, sizeof word, "%.*s", (int)(used < 40 ? used : 40), at);
        const int part = part_of(word);
        if (part == QN__DATE_PARTS || found >> part & 1)
            return refuse_part(word, part < QN__DATE_PARTS, err);
        found |= 1u << part;
        at += size;
        if (!*at)
            break;
    }
    *set = found;
    return QN_OK;
}
