/* Tables of statistics for a person. */

#include "format.h"
#include "plain.h"
#include "stats.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 20, MOST_COLUMNS = 40, MOST_CLASSES = 20, MOST_CATEGORIES = 20, MOST_PAIRS = 20 };
enum { PER_LINE = 5, TIMES = 3, BAR = 30, SHORT_BAR = 14 };

/* A name in NAME characters: what is longer is cut, and control characters must not reach a
 * terminal. */
static void print_name(const char *name, int indent) {
    printf("%*s", indent, "");
    plain_cell(name, NAME - indent, NAME - indent);
}

static const char *name_of(const qn_data *data, uint32_t column, char buffer[16]) {
    const int label = column == qn_data_features(data);
    const char *name = label ? qn_data_label_name(data) : qn_data_feature_name(data, column);
    snprintf(buffer, 16, "%" PRIu32, column + 1);
    return name ? name : label ? "label" : buffer;
}

static const char *class_name(const qn_data *data, uint32_t index, char buffer[16]) {
    const char *name = qn_data_class_name(data, index);
    snprintf(buffer, 16, "%" PRIu32, index);
    return name ? name : buffer;
}

/* Whether a column holds dates; the label never does. */
static qn_date_kind dates_of(const stats_wanted *wanted, uint32_t column) {
    return qn_data_dates(wanted->data, column, NULL, 0);
}

/* Five digits in ten characters. */
static void print_number(double value) {
    char text[32];
    if (isnan(value)) {
        printf("  %10s", "-");
        return;
    }
    snprintf(text, sizeof text, "%.5g", value);
    printf("  %10s", text);
}

static uint32_t least_of(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* ------------------------------------------------------------------ columns of numbers */

/* What one table shows of a column: moments, or some quantiles. */
typedef struct table {
    const qn_statistics *found;
    const stats_wanted *wanted;
    uint32_t first, count; /* quantiles; 0: moments */
    int times;             /* 1: only columns of dates with times, whose cells are wider */
} table;

enum { DAY = 10, TIME = 19 }; /* characters of 2026-11-28 and 2026-11-28T08:30:15 */

/* A number of a column, or the date that it stands for, cut to the width of the cell. */
static void print_cell(const table *t, uint32_t column, uint32_t class_index, qn_statistic which,
                       uint32_t index, double value) {
    char date[40];
    qn_statistics_date(t->found, column, class_index, which, index, date, sizeof date);
    if (t->times)
        printf(" %*.*s", TIME, TIME, *date ? date : "-");
    else if (*date)
        printf("  %*.*s", DAY, DAY, date);
    else
        print_number(value);
}

static void print_row(const table *t, uint32_t column, uint32_t class_index, const char *name,
                      int indent) {
    qn_column_statistics c = {.size = sizeof c};
    const double *quantiles = qn_statistics_quantiles(t->found, column, class_index);
    qn_statistics_column(t->found, column, class_index, &c, NULL);
    print_name(name, indent);
    for (uint32_t i = 0; i < t->count; i++)
        print_cell(t, column, class_index, QN_STATISTIC_QUANTILE, t->first + i,
                   quantiles[t->first + i]);
    if (t->count == 0) {
        print_cell(t, column, class_index, QN_STATISTIC_MEAN, 0, c.mean);
        if (!t->times) {
            print_number(c.deviation);
            print_number(c.skewness);
        }
        print_cell(t, column, class_index, QN_STATISTIC_MINIMUM, 0, c.minimum);
        print_cell(t, column, class_index, QN_STATISTIC_MAXIMUM, 0, c.maximum);
    }
    putchar('\n');
}

static void print_table(const table *t, uint32_t columns) {
    const qn_data *data = t->wanted->data;
    const uint32_t classes = t->wanted->by_class ? qn_data_classes(data) : 0;
    char buffer[16];
    for (uint32_t k = 0; k < columns; k++) {
        if (!qn_statistics_quantiles(t->found, k, QN_ALL_CLASSES) ||
            (t->times && dates_of(t->wanted, k) <= QN_DATE_DAYS))
            continue;
        print_row(t, k, QN_ALL_CLASSES, name_of(data, k, buffer), 0);
        for (uint32_t c = 0; c < least_of(classes, MOST_CLASSES); c++)
            print_row(t, k, c, class_name(data, c, buffer), 2);
    }
}

static void print_numbers(const qn_statistics *found, const stats_wanted *wanted,
                          uint32_t columns) {
    static const char *const moments[] = {"mean", "deviation", "skewness", "minimum", "maximum"};
    table t = {.found = found, .wanted = wanted};
    printf("\n%-*s", NAME, "column");
    for (int i = 0; i < 5; i++)
        printf("  %10s", moments[i]);
    putchar('\n');
    print_table(&t, columns);
    for (t.first = 0; t.first < wanted->quantile_count; t.first += PER_LINE) {
        t.count = least_of(PER_LINE, wanted->quantile_count - t.first);
        printf("\n%-*s", NAME, "quantile");
        for (uint32_t i = 0; i < t.count; i++)
            printf("  %10.6g", wanted->quantile[t.first + i]);
        putchar('\n');
        print_table(&t, columns);
    }
}

/* The same of dates with times, to the second. */
static void print_times(const qn_statistics *found, const stats_wanted *wanted, uint32_t columns) {
    table t = {.found = found, .wanted = wanted, .times = 1};
    uint32_t k = 0;
    while (k < columns && dates_of(wanted, k) <= QN_DATE_DAYS)
        k++;
    if (k == columns)
        return;
    printf("\n%-*s %*s %*s %*s\n", NAME, "time", TIME, "mean", TIME, "minimum", TIME, "maximum");
    print_table(&t, columns);
    for (t.first = 0; t.first < wanted->quantile_count; t.first += TIMES) {
        t.count = least_of(TIMES, wanted->quantile_count - t.first);
        printf("\n%-*s", NAME, "quantile");
        for (uint32_t i = 0; i < t.count; i++)
            printf(" %*.6g", TIME, wanted->quantile[t.first + i]);
        putchar('\n');
        print_table(&t, columns);
    }
}

static int has_numbers(const qn_statistics *found, uint32_t columns) {
    for (uint32_t k = 0; k < columns; k++)
        if (qn_statistics_quantiles(found, k, QN_ALL_CLASSES))
            return 1;
    return 0;
}

static void print_missing(const qn_statistics *found, const stats_wanted *wanted,
                          uint32_t columns) {
    char buffer[16], count[32];
    int any = 0;
    for (uint32_t k = 0; k < columns; k++) {
        qn_column_statistics c = {.size = sizeof c};
        qn_statistics_column(found, k, QN_ALL_CLASSES, &c, NULL);
        if (c.missing == 0)
            continue;
        if (!any++)
            printf("\n%-*s  %14s\n", NAME, "missing", "values");
        print_name(name_of(wanted->data, k, buffer), 0);
        printf("  %14s\n", format_count(c.missing, count));
    }
}

/* ------------------------------------------------------------------ categories and classes */

static void print_share(const char *name, uint64_t count, uint64_t all) {
    char text[32];
    print_name(name, 2);
    printf("  %14s  %8.2f %%\n", format_count(count, text),
           all ? 100.0 * (double)count / (double)all : 0.0);
}

uint64_t stats_items(const stats_wanted *wanted) {
    return wanted->parts ? qn_parts_items(wanted->parts) : qn_data_items(wanted->data);
}

/* Items of each class; NULL: there are no classes, or memory is short. */
static uint64_t *count_classes(const stats_wanted *wanted) {
    const int32_t *labels = qn_data_labels(wanted->data);
    const uint32_t classes = qn_data_classes(wanted->data);
    const uint64_t *known = qn_parts_class_items(wanted->parts);
    uint64_t *counts = labels && classes <= 1 << 20 ? calloc(classes, sizeof *counts) : NULL;
    if (counts && known)
        memcpy(counts, known, classes * sizeof *counts);
    for (uint64_t i = 0; counts && !known && i < qn_data_items(wanted->data); i++)
        counts[labels[i]]++;
    return counts;
}

static void print_classes(const stats_wanted *wanted) {
    const qn_data *data = wanted->data;
    const uint32_t classes = qn_data_classes(data);
    char buffer[16];
    uint64_t *counts = count_classes(wanted);
    if (!counts)
        return;
    printf("\n%-*s  %14s  %10s\n", NAME, "class", "items", "share");
    for (uint32_t c = 0; c < least_of(classes, MOST_COLUMNS); c++)
        print_share(class_name(data, c, buffer), counts[c], stats_items(wanted));
    if (classes > MOST_COLUMNS)
        printf("  and %" PRIu32 " more\n", classes - MOST_COLUMNS);
    free(counts);
}

static void print_categories(const qn_statistics *found, const stats_wanted *wanted,
                             uint32_t columns) {
    const qn_data *data = wanted->data;
    char buffer[16];
    for (uint32_t k = 0; k < columns; k++) {
        const uint64_t *counts = qn_statistics_categories(found, k, QN_ALL_CLASSES);
        if (!counts || qn_data_text_inputs(data, k))
            continue;
        qn_column_statistics c = {.size = sizeof c};
        const uint32_t words = qn_data_categories(data, k);
        qn_statistics_column(found, k, QN_ALL_CLASSES, &c, NULL);
        putchar('\n');
        print_name(name_of(data, k, buffer), 0);
        printf("  %14s  %10s\n", "items", "share");
        for (uint32_t i = 0; i < least_of(words, MOST_CATEGORIES); i++)
            print_share(qn_data_category(data, k, i), counts[i], c.count);
        if (words > MOST_CATEGORIES)
            printf("  and %" PRIu32 " more\n", words - MOST_CATEGORIES);
    }
}

/* ------------------------------------------------------------------ histograms */

/* An edge, or the date that it stands for, in as many characters. */
static void print_edge(const qn_statistics *found, uint32_t column, uint32_t index, double edge,
                       int width) {
    char date[40];
    qn_statistics_date(found, column, QN_ALL_CLASSES, QN_STATISTIC_EDGE, index, date, sizeof date);
    if (*date)
        printf("%*.*s", width, width, date);
    else
        printf("%*.5g", width, edge);
}

static void print_bins(const qn_statistics *found, uint32_t column, int times) {
    uint32_t bins;
    const double *edges = qn_statistics_edges(found, column, &bins);
    const uint64_t *counts = qn_statistics_histogram(found, column, QN_ALL_CLASSES);
    const uint64_t longest = times ? SHORT_BAR : BAR;
    uint64_t most = 1;
    char text[32];
    for (uint32_t i = 0; i < bins; i++)
        most = counts[i] > most ? counts[i] : most;
    for (uint32_t i = 0; i < bins; i++) {
        printf("  ");
        print_edge(found, column, i, edges[i], times ? TIME : 11);
        printf(" to ");
        print_edge(found, column, i + 1, edges[i + 1], times ? TIME : 11);
        printf("  %14s  ", format_count(counts[i], text));
        for (uint64_t b = 0; b < (counts[i] * longest + most - 1) / most; b++)
            putchar('#');
        putchar('\n');
    }
}

static void print_histograms(const qn_statistics *found, const stats_wanted *wanted,
                             uint32_t columns) {
    char buffer[16];
    for (uint32_t k = 0; k < columns; k++) {
        if (!qn_statistics_edges(found, k, NULL))
            continue;
        putchar('\n');
        print_name(name_of(wanted->data, k, buffer), 0);
        putchar('\n');
        print_bins(found, k, dates_of(wanted, k) > QN_DATE_DAYS);
    }
}

/* ------------------------------------------------------------------ correlation */

typedef struct pair {
    double size; /* the magnitude of the correlation */
    uint32_t one, other;
} pair;

/* The largest correlation first; among equal ones the first columns. */
static int compare_pairs(const void *left, const void *right) {
    const pair *a = left, *b = right;
    if (a->size != b->size)
        return a->size > b->size ? -1 : 1;
    if (a->one != b->one)
        return a->one < b->one ? -1 : 1;
    return a->other < b->other ? -1 : a->other > b->other;
}

static void print_correlation(const qn_statistics *found, const stats_wanted *wanted) {
    const double *matrix = qn_statistics_correlation(found);
    const uint32_t columns = qn_statistics_columns(found);
    char buffer[16];
    size_t used = 0;
    pair *pairs = matrix ? malloc(((size_t)columns * columns / 2 + 1) * sizeof *pairs) : NULL;
    if (!pairs)
        return;
    for (uint32_t a = 0; a < columns; a++)
        for (uint32_t b = a + 1; b < columns; b++)
            if (!isnan(matrix[(size_t)a * columns + b]))
                pairs[used++] = (pair){fabs(matrix[(size_t)a * columns + b]), a, b};
    qsort(pairs, used, sizeof *pairs, compare_pairs);
    printf("\n%-*s  %-*s  %10s\n", NAME, "correlation", NAME, "of", "r");
    for (size_t i = 0; i < used && i < MOST_PAIRS; i++) {
        print_name(name_of(wanted->data, pairs[i].one, buffer), 0);
        printf("  ");
        print_name(name_of(wanted->data, pairs[i].other, buffer), 0);
        print_number(matrix[(size_t)pairs[i].one * columns + pairs[i].other]);
        putchar('\n');
    }
    if (used == 0)
        printf("there is no pair of columns of numbers that vary\n");
    if (used > MOST_PAIRS)
        printf("and %zu pairs with smaller ones; --json has all\n", used - MOST_PAIRS);
    free(pairs);
}

void stats_print(const qn_statistics *found, const stats_wanted *wanted) {
    const uint32_t columns = qn_statistics_columns(found);
    const uint32_t shown = least_of(columns, MOST_COLUMNS);
    char count[32];
    printf("file      %s (%s)\n", wanted->path, qn_data_format(wanted->data));
    printf("items     %s\n", format_count(stats_items(wanted), count));
    if (has_numbers(found, shown))
        print_numbers(found, wanted, shown);
    print_times(found, wanted, shown);
    print_missing(found, wanted, shown);
    print_categories(found, wanted, shown);
    print_classes(wanted);
    print_histograms(found, wanted, shown);
    print_correlation(found, wanted);
    if (shown < columns)
        printf("\nand %" PRIu32 " more columns; --json has all\n", columns - shown);
    if (wanted->by_class && qn_data_classes(wanted->data) > MOST_CLASSES)
        printf("\nonly the first %d classes of each column are shown; --json has all\n",
               MOST_CLASSES);
}
