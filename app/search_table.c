#include "search_table.h"
#include "jsonline.h"
#include "search_file.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SETTING_ROOM = 512 };

/* A setting: means and deviations over its folds. NaN where a fold has none. */
typedef struct row {
    uint32_t setting;
    double mean[SEARCH_METRICS], deviation[SEARCH_METRICS];
} row;

int search_metric_named(const char *name) {
    for (int m = 0; m < SEARCH_METRICS; m++)
        if (strcmp(name, search_metric_names[m]) == 0)
            return m;
    return -1;
}

/* Sums in the order of the folds, so they are the same wherever the runs were. */
static void fill_row(const search_runs *r, uint32_t setting, row *to) {
    const search_result *result = &r->result[setting * r->folds];
    to->setting = setting;
    for (int m = 0; m < SEARCH_METRICS; m++) {
        double sum = 0, squares = 0;
        for (uint32_t k = 0; k < r->folds; k++)
            sum += result[k].number[m];
        to->mean[m] = sum / r->folds;
        for (uint32_t k = 0; k < r->folds; k++) {
            const double d = result[k].number[m] - to->mean[m];
            squares += d * d;
        }
        to->deviation[m] = sqrt(squares / r->folds);
    }
}

static int is_more_better(search_metric m) {
    return m == SEARCH_ACCURACY || m == SEARCH_F1 || m == SEARCH_AUC || m == SEARCH_R2;
}

/* Below 0: a is better. NaN is the worst. */
static int compare(const row *a, const row *b, search_metric m) {
    const double x = a->mean[m], y = b->mean[m];
    if (isnan(x) || isnan(y))
        return (isnan(x) != 0) - (isnan(y) != 0);
    if (x == y)
        return 0;
    return (x > y) == is_more_better(m) ? -1 : 1;
}

/* Equal ones by their loss, then in the order of the grid. */
static void sort(row *rows, uint32_t count, search_metric by) {
    for (uint32_t i = 1; i < count; i++) {
        const row own = rows[i];
        uint32_t at = i;
        while (at > 0) {
            int order = compare(&own, &rows[at - 1], by);
            order = order != 0 ? order : compare(&own, &rows[at - 1], SEARCH_LOSS);
            if (order >= 0)
                break;
            rows[at] = rows[at - 1];
            at--;
        }
        rows[at] = own;
    }
}

static const search_metric of_classes[] = {SEARCH_ACCURACY, SEARCH_F1, SEARCH_AUC, SEARCH_LOSS};
static const search_metric of_numbers[] = {SEARCH_RMSE, SEARCH_MAE, SEARCH_R2, SEARCH_LOSS};

static void print_number(double mean, double deviation) {
    char text[48];
    snprintf(text, sizeof text, "%.4g +- %.2g", mean, deviation);
    printf("%-20s  ", isnan(mean) ? "failed" : text);
}

static void print_rows(const search_table *t, const row *rows) {
    const search_metric *shown = t->real ? of_numbers : of_classes;
    char text[SETTING_ROOM];
    printf("%-20s  ", search_metric_names[t->by]);
    for (int i = 0; i < 4; i++)
        if (shown[i] != t->by)
            printf("%-9s  ", search_metric_names[shown[i]]);
    printf("setting\n");
    for (uint32_t s = 0; s < t->runs->settings; s++) {
        print_number(rows[s].mean[t->by], rows[s].deviation[t->by]);
        for (int i = 0; i < 4; i++)
            if (shown[i] != t->by && isnan(rows[s].mean[shown[i]]))
                printf("%-9s  ", "-");
            else if (shown[i] != t->by)
                printf("%-9.4g  ", rows[s].mean[shown[i]]);
        printf("%s\n", grid_describe(t->grid, rows[s].setting, text, sizeof text));
    }
}

static void number_fields(const double number[SEARCH_METRICS]) {
    for (int m = 0; m < SEARCH_METRICS; m++)
        json_number(search_metric_names[m], number[m]);
}

static void setting_field(const search_table *t, const row *r) {
    char text[SETTING_ROOM];
    const search_result *result = &t->runs->result[r->setting * t->runs->folds];
    json_open(NULL, '{');
    json_text("setting", grid_describe(t->grid, r->setting, text, sizeof text));
    json_text("command", t->command[r->setting]);
    json_open("mean", '{');
    number_fields(r->mean);
    json_close('}');
    json_open("deviation", '{');
    number_fields(r->deviation);
    json_close('}');
    json_open("folds", '[');
    for (uint32_t k = 0; k < t->runs->folds; k++) {
        json_open(NULL, '{');
        json_count("items", result[k].items);
        number_fields(result[k].number);
        json_text("model", result[k].digest);
        json_number("seconds", result[k].seconds);
        json_close('}');
    }
    json_close(']');
    json_close('}');
}

static void print_json(const search_table *t, const row *rows) {
    json_begin("search");
    json_count("folds", t->runs->folds);
    json_text("by", search_metric_names[t->by]);
    json_open("settings", '[');
    for (uint32_t s = 0; s < t->runs->settings; s++)
        setting_field(t, &rows[s]);
    json_close(']');
    json_end();
}

uint32_t search_table_print(const search_table *t, int json) {
    row *rows = calloc(t->runs->settings, sizeof *rows);
    if (!rows)
        return 0;
    for (uint32_t s = 0; s < t->runs->settings; s++)
        fill_row(t->runs, s, &rows[s]);
    sort(rows, t->runs->settings, t->by);
    if (json)
        print_json(t, rows);
    else
        print_rows(t, rows);
    const uint32_t best = rows[0].setting;
    free(rows);
    return best;
}
