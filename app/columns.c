#include "columns.h"
#include "format.h"
#include "jsonline.h"
#include "plain.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 2026-11-28T13:30:15.250001Z is the longest text of a date. */
enum {
    WIDEST_NAME = 24,
    WIDEST_CELL = 27,
    RANGE_CAPACITY = 40,
    DESCRIPTION = RANGE_CAPACITY + 64,
    DAY = sizeof "2026-11-28"
};

/* Exact values of a column that float32 does not hold. */
static void find_exact(const qn_data *data, uint32_t k, column *c) {
    const int64_t *whole = qn_data_whole(data, k);
    const double *real = qn_data_real(data, k);
    uint64_t least = 0, greatest = 0;
    int any = 0;
    for (uint64_t i = 0; (whole || real) && i < qn_data_items(data); i++) {
        if (whole ? whole[i] == INT64_MIN : isnan(real[i]))
            continue;
        if (!any || (whole ? whole[i] < whole[least] : real[i] < real[least]))
            least = i;
        if (!any || (whole ? whole[i] > whole[greatest] : real[i] > real[greatest]))
            greatest = i;
        any = 1;
    }
    if (!any)
        return;
    c->whole = whole != NULL;
    c->least_item = least;
    c->greatest_item = greatest;
    c->least = whole ? (double)whole[least] : real[least];
    c->greatest = whole ? (double)whole[greatest] : real[greatest];
}

static void add_value(column *c, uint64_t item, double v) {
    c->missing += isnan(v) != 0;
    c->whole &= isnan(v) || v == floor(v);
    if (v < c->least) {
        c->least = v;
        c->least_item = item;
    }
    if (v > c->greatest) {
        c->greatest = v;
        c->greatest_item = item;
    }
}

double columns_number(qn_data_type type, const void *values, uint32_t k) {
    switch (type) {
    case QN_U8:
        return ((const uint8_t *)values)[k];
    case QN_TOKENS16:
        return ((const uint16_t *)values)[k];
    case QN_TOKENS32:
        return ((const uint32_t *)values)[k];
    case QN_F32:
        break;
    }
    return (double)((const float *)values)[k];
}

double columns_value(const qn_data *data, uint64_t item, uint32_t k) {
    return columns_number(qn_data_type_of(data), qn_data_item(data, item), k);
}

column *columns_find(const qn_data *data) {
    const uint32_t features = qn_data_features(data);
    const qn_data_type type = qn_data_type_of(data);
    const uint64_t items = qn_data_items(data);
    column *columns = malloc(features * sizeof *columns);
    for (uint32_t k = 0; columns && k < features; k++)
        columns[k] = (column){.least = HUGE_VAL, .greatest = -HUGE_VAL, .whole = 1};
    for (uint64_t i = 0; columns && i < items; i++) {
        const void *values = qn_data_item(data, i);
        for (uint32_t k = 0; k < features; k++)
            add_value(&columns[k], i, columns_number(type, values, k));
    }
    for (uint32_t k = 0; columns && k < features; k++)
        if (columns[k].missing == items)
            columns[k].least = columns[k].greatest = 0;
    for (uint32_t k = 0; columns && k < features; k++)
        find_exact(data, k, &columns[k]);
    return columns;
}

const char *columns_type(const qn_data *data, const column *columns, uint32_t k) {
    if (qn_data_text_inputs(data, k))
        return "text";
    if (qn_data_categories(data, k))
        return "category";
    if (columns[k].missing == qn_data_items(data))
        return "empty";
    const qn_date_kind dates = qn_data_dates(data, k, NULL, 0);
    if (dates != QN_DATE_NONE)
        return dates == QN_DATE_DAYS ? "date" : dates == QN_DATE_TIMES ? "time" : "UTC time";
    return columns[k].whole ? "whole number" : "number";
}

/* The days of the earliest and the latest date. */
static void find_days(const qn_data *data, const column *c, uint32_t k, char least[DAY],
                      char greatest[DAY]) {
    qn_data_date(data, c->least_item, k, least, DAY);
    qn_data_date(data, c->greatest_item, k, greatest, DAY);
}

/* The texts of a category as far as there is space, or a range. */
static void describe(const qn_data *data, const column *columns, uint32_t k,
                     char text[DESCRIPTION]) {
    const uint32_t count = qn_data_categories(data, k);
    char least[32], greatest[32];
    size_t used = 0;
    *text = '\0';
    if (qn_data_text_inputs(data, k)) {
        char features[QN_TEXT_FEATURES];
        qn_data_text_features(data, k, features, sizeof features);
        snprintf(text, DESCRIPTION, "%s different, %s inputs for %s", format_count(count, least),
                 format_count(qn_data_text_inputs(data, k), greatest),
                 strcmp(features, "words:1..2") == 0 ? "their words" : features);
        return;
    }
    if (qn_data_dates(data, k, NULL, 0) != QN_DATE_NONE &&
        columns[k].missing < qn_data_items(data)) {
        find_days(data, &columns[k], k, least, greatest);
        snprintf(text, DESCRIPTION, "%s to %s", least, greatest);
        return;
    }
    qn_data_exact(data, columns[k].least_item, k, least, sizeof least);
    qn_data_exact(data, columns[k].greatest_item, k, greatest, sizeof greatest);
    if (*least && *greatest) {
        snprintf(text, DESCRIPTION, "%s to %s", least, greatest);
        return;
    }
    if (count == 0 && columns[k].missing < qn_data_items(data))
        snprintf(text, DESCRIPTION, "%s to %s", format_quantity(columns[k].least, least),
                 format_quantity(columns[k].greatest, greatest));
    for (uint32_t i = 0; i < count; i++) {
        const char *name = qn_data_category(data, k, i);
        if (used + strlen(name) + 2 > RANGE_CAPACITY) {
            snprintf(text + used, 32, "%s%" PRIu32 " %s", used ? " and " : "", count - i,
                     used ? "more" : "texts");
            return;
        }
        used += (size_t)snprintf(text + used, RANGE_CAPACITY, "%s%s", i ? ", " : "", name);
    }
}

/* Bytes of a text that are printed: whole characters, at most `widest` bytes. */
static int bytes_of(const char *name, size_t widest) {
    size_t size = strlen(name);
    if (size <= widest)
        return (int)size;
    for (size = widest; size > 0 && ((unsigned char)name[size] & 0xC0) == 0x80;)
        size--;
    return (int)size;
}

static int width_of(const char *name) { return bytes_of(name, WIDEST_NAME); }

/* Characters that `size` bytes of UTF-8 take on the screen, about. */
static int characters(const char *name, int size) {
    int count = 0;
    for (int i = 0; i < size; i++)
        count += ((unsigned char)name[i] & 0xC0) != 0x80;
    return count;
}

static const char *name_of(const qn_data *data, uint32_t k) {
    const char *name = qn_data_feature_name(data, k);
    return name ? name : "";
}

void columns_print_name(const char *text, int size) {
    (void)plain_print(stdout, text, (size_t)size, size);
}

int columns_width(const char *text) { return characters(text, bytes_of(text, WIDEST_CELL)); }

void columns_print_cell(const char *text, int width) {
    const int size = bytes_of(text, WIDEST_CELL), used = characters(text, size);
    columns_print_name(text, size);
    printf("%*s", width > used ? width - used : 0, "");
}

/* What a network gets of dates. */
static void print_dates(const qn_data *data, uint32_t shown) {
    for (uint32_t k = 0; k < shown; k++) {
        char parts[QN_DATE_TEXT];
        if (qn_data_dates(data, k, parts, sizeof parts) == QN_DATE_NONE)
            continue;
        printf("          a network gets of feature %" PRIu32 ": ", k + 1);
        for (const char *at = parts; *at; at++)
            printf(*at == ',' ? ", " : "%c", *at);
        putchar('\n');
    }
}

void columns_print(const qn_data *data, const column *columns, uint32_t most) {
    const uint32_t features = qn_data_features(data), shown = features < most ? features : most;
    int widest = 4;
    for (uint32_t k = 0; k < shown; k++) {
        const int size = width_of(name_of(data, k)), width = characters(name_of(data, k), size);
        widest = width > widest ? width : widest;
    }
    printf("columns   %7s  %-*s  %-12s  %9s  %s\n", "feature", widest, "name", "type", "missing",
           "values");
    for (uint32_t k = 0; k < shown; k++) {
        char text[DESCRIPTION];
        const char *name = name_of(data, k);
        const int size = width_of(name);
        describe(data, columns, k, text);
        printf("          %7" PRIu32 "  ", k + 1);
        columns_print_name(name, size);
        printf("%*s  %-12s  %9" PRIu64 "  ", widest - characters(name, size), "",
               columns_type(data, columns, k), columns[k].missing);
        columns_print_name(text, (int)strlen(text));
        putchar('\n');
    }
    if (shown < features)
        printf("          and %" PRIu32 " more\n", features - shown);
    print_dates(data, shown);
}

/* The least or the greatest value. */
static void print_end(const char *key, const qn_data *data, uint32_t k, uint64_t item,
                      double value) {
    char exact[32];
    qn_data_exact(data, item, k, exact, sizeof exact);
    if (*exact)
        json_value(key, exact);
    else
        json_number(key, value);
}

void columns_print_json(const qn_data *data, const column *columns) {
    json_open("table", '[');
    for (uint32_t k = 0; k < qn_data_features(data); k++) {
        const uint32_t categories = qn_data_categories(data, k);
        char parts[QN_DATE_TEXT], least[DAY], greatest[DAY];
        json_open(NULL, '{');
        json_text("name", qn_data_feature_name(data, k));
        json_text("type", columns_type(data, columns, k));
        json_count("missing", columns[k].missing);
        if (qn_data_text_inputs(data, k)) {
            json_count("texts", categories);
            json_count("inputs", qn_data_text_inputs(data, k));
            qn_data_text_features(data, k, parts, sizeof parts);
            json_text("features", parts);
        } else if (categories) {
            json_open("categories", '[');
            for (uint32_t i = 0; i < categories; i++)
                json_text(NULL, qn_data_category(data, k, i));
            json_close(']');
        } else if (qn_data_dates(data, k, parts, sizeof parts) != QN_DATE_NONE) {
            find_days(data, &columns[k], k, least, greatest);
            json_text("min", least);
            json_text("max", greatest);
            json_text("dates", parts);
        } else {
            print_end("min", data, k, columns[k].least_item, columns[k].least);
            print_end("max", data, k, columns[k].greatest_item, columns[k].greatest);
        }
        json_close('}');
    }
    json_close(']');
}
