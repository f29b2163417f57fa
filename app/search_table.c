#include "search_table.h"
#include "jsonline.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SETTING_CAPACITY = 512 };

int search_metric_named(const char *name) {
    for (int m = 0; m < QN_SEARCH_METRICS; m++)
        if (strcmp(name, qn_search_metric_name((qn_search_metric)m)) == 0)
            return m;
    return -1;
}

static qn_search_mean mean_of(const search_table *t, uint32_t setting) {
    qn_search_mean mean = {.size = sizeof mean};
    (void)qn_search_mean_get(t->search, setting, &mean, NULL);
    return mean;
}

static const qn_search_metric of_classes[] = {QN_SEARCH_ACCURACY, QN_SEARCH_F1, QN_SEARCH_AUC,
                                              QN_SEARCH_LOSS};
static const qn_search_metric of_numbers[] = {QN_SEARCH_RMSE, QN_SEARCH_MAE, QN_SEARCH_R2,
                                              QN_SEARCH_LOSS};

static void print_number(double mean, double deviation) {
    char text[48];
    snprintf(text, sizeof text, "%.4g +- %.2g", mean, deviation);
    printf("%-20s  ", isnan(mean) ? "failed" : text);
}

static void print_rows(const search_table *t, const uint32_t *order) {
    const qn_search_metric *shown = t->real ? of_numbers : of_classes;
    char text[SETTING_CAPACITY];
    printf("%-20s  ", qn_search_metric_name(t->by));
    for (int i = 0; i < 4; i++)
        if (shown[i] != t->by)
            printf("%-9s  ", qn_search_metric_name(shown[i]));
    printf("setting\n");
    for (uint32_t s = 0; s < t->grid->settings; s++) {
        const qn_search_mean row = mean_of(t, order[s]);
        print_number(row.mean[t->by], row.deviation[t->by]);
        for (int i = 0; i < 4; i++)
            if (shown[i] != t->by && isnan(row.mean[shown[i]]))
                printf("%-9s  ", "-");
            else if (shown[i] != t->by)
                printf("%-9.4g  ", row.mean[shown[i]]);
        printf("%s\n", grid_describe(t->grid, order[s], text, sizeof text));
    }
}

static void number_fields(const double number[QN_SEARCH_METRICS]) {
    for (int m = 0; m < QN_SEARCH_METRICS; m++)
        json_number(qn_search_metric_name((qn_search_metric)m), number[m]);
}

static void fold_field(const search_table *t, uint32_t setting, uint32_t fold) {
    qn_search_result r = {.size = sizeof r};
    (void)qn_search_get(t->search, setting, fold, &r, NULL);
    json_open(NULL, '{');
    json_count("items", r.items);
    number_fields(r.number);
    json_text("model", r.model);
    json_number("seconds", r.seconds);
    json_close('}');
}

static void setting_field(const search_table *t, uint32_t setting) {
    char text[SETTING_CAPACITY];
    const qn_search_mean row = mean_of(t, setting);
    json_open(NULL, '{');
    json_text("setting", grid_describe(t->grid, setting, text, sizeof text));
    json_text("command", t->command[setting]);
    json_open("mean", '{');
    number_fields(row.mean);
    json_close('}');
    json_open("deviation", '{');
    number_fields(row.deviation);
    json_close('}');
    json_open("folds", '[');
    for (uint32_t k = 0; k < t->folds; k++)
        fold_field(t, setting, k);
    json_close(']');
    json_close('}');
}

static void print_json(const search_table *t, const uint32_t *order) {
    json_begin("search");
    json_count("folds", t->folds);
    json_text("by", qn_search_metric_name(t->by));
    json_open("settings", '[');
    for (uint32_t s = 0; s < t->grid->settings; s++)
        setting_field(t, order[s]);
    json_close(']');
    json_end();
}

void search_table_print(const search_table *t, const uint32_t *order, int json) {
    if (json)
        print_json(t, order);
    else
        print_rows(t, order);
}
