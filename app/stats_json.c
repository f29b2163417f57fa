#include "jsonline.h"
#include "stats.h"

static void print_numbers(const qn_column_statistics *c) {
    json_number("sum", c->sum);
    json_number("mean", c->mean);
    json_number("variance", c->variance);
    json_number("deviation", c->deviation);
    json_number("population_deviation", c->population_deviation);
    json_number("skewness", c->skewness);
    json_number("min", c->minimum);
    json_number("max", c->maximum);
}

static void print_counts(const char *key, const uint64_t *counts, uint32_t count) {
    json_open(key, '[');
    for (uint32_t i = 0; i < count; i++)
        json_count(NULL, counts[i]);
    json_close(']');
}

static void print_doubles(const char *key, const double *numbers, uint64_t count) {
    json_open(key, '[');
    for (uint64_t i = 0; i < count; i++)
        json_number(NULL, numbers[i]);
    json_close(']');
}

static void print_date(const char *key, const qn_statistics *found, uint32_t column,
                       uint32_t class_index, qn_statistic which, uint32_t index) {
    char date[40];
    qn_statistics_date(found, column, class_index, which, index, date, sizeof date);
    json_text(key, *date ? date : NULL);
}

/* What the numbers of a column of dates stand for. */
static void print_dates(const qn_statistics *found, const stats_wanted *wanted, uint32_t column,
                        uint32_t class_index) {
    json_open("dates", '{');
    print_date("mean", found, column, class_index, QN_STATISTIC_MEAN, 0);
    print_date("min", found, column, class_index, QN_STATISTIC_MINIMUM, 0);
    print_date("max", found, column, class_index, QN_STATISTIC_MAXIMUM, 0);
    json_open("quantiles", '[');
    for (uint32_t i = 0; i < wanted->quantile_count; i++)
        print_date(NULL, found, column, class_index, QN_STATISTIC_QUANTILE, i);
    json_close(']');
    json_close('}');
}

static void print_edges(const qn_statistics *found, uint32_t column, int dates) {
    uint32_t bins;
    const double *edges = qn_statistics_edges(found, column, &bins);
    if (!edges)
        return;
    print_doubles("edges", edges, (uint64_t)bins + 1);
    if (!dates)
        return;
    json_open("edge_dates", '[');
    for (uint32_t i = 0; i <= bins; i++)
        print_date(NULL, found, column, QN_ALL_CLASSES, QN_STATISTIC_EDGE, i);
    json_close(']');
}

/* The members of one column, of all items or of a class. */
static void print_members(const qn_statistics *found, const stats_wanted *wanted, uint32_t column,
                          uint32_t class_index) {
    qn_column_statistics c = {.size = sizeof c};
    const uint64_t *categories = qn_statistics_categories(found, column, class_index);
    const uint64_t *histogram = qn_statistics_histogram(found, column, class_index);
    const double *quantiles = qn_statistics_quantiles(found, column, class_index);
    uint32_t bins;
    qn_statistics_edges(found, column, &bins);
    if (qn_statistics_column(found, column, class_index, &c, NULL) != QN_OK)
        return;
    json_count("count", c.count);
    json_count("missing", c.missing);
    if (qn_data_text_inputs(wanted->data, column))
        return;
    if (categories) {
        print_counts("categories", categories, qn_data_categories(wanted->data, column));
        return;
    }
    print_numbers(&c);
    print_doubles("quantiles", quantiles, wanted->quantile_count);
    if (histogram)
        print_counts("histogram", histogram, bins);
    if (qn_data_dates(wanted->data, column, NULL, 0) != QN_DATE_NONE)
        print_dates(found, wanted, column, class_index);
}

static void print_column(const qn_statistics *found, const stats_wanted *wanted, uint32_t column) {
    const qn_data *data = wanted->data;
    const int label = column == qn_data_features(data);
    const int texts = !label && qn_data_text_inputs(data, column) > 0;
    const uint32_t categories = label || texts ? 0 : qn_data_categories(data, column);
    static const char *const types[] = {"number", "date", "time", "UTC time"}; /* of qn_date_kind */
    const qn_date_kind dates = qn_data_dates(data, column, NULL, 0);
    json_open(NULL, '{');
    json_text("name", label ? qn_data_label_name(data) : qn_data_feature_name(data, column));
    json_text("type", label ? "label" : texts ? "text" : categories ? "category" : types[dates]);
    print_members(found, wanted, column, QN_ALL_CLASSES);
    print_edges(found, column, dates != QN_DATE_NONE);
    if (categories) {
        json_open("category_names", '[');
        for (uint32_t i = 0; i < categories; i++)
            json_text(NULL, qn_data_category(data, column, i));
        json_close(']');
    }
    if (wanted->by_class) {
        json_open("by_class", '[');
        for (uint32_t i = 0; i < qn_data_classes(data); i++) {
            json_open(NULL, '{');
            print_members(found, wanted, column, i);
            json_close('}');
        }
        json_close(']');
    }
    json_close('}');
}

static void print_matrix(const char *key, const double *matrix, uint32_t side) {
    if (!matrix)
        return;
    json_open(key, '[');
    for (uint32_t i = 0; i < side; i++)
        print_doubles(NULL, matrix + (size_t)i * side, side);
    json_close(']');
}

void stats_print_json(const qn_statistics *found, const stats_wanted *wanted) {
    const uint32_t columns = qn_statistics_columns(found);
    const qn_data *data = wanted->data;
    json_begin("statistics");
    json_text("file", wanted->path);
    json_count("items", stats_items(wanted));
    print_doubles("quantiles", wanted->quantile, wanted->quantile_count);
    json_open("class_names", '[');
    for (uint32_t i = 0; i < qn_data_classes(data) && qn_data_class_name(data, i); i++)
        json_text(NULL, qn_data_class_name(data, i));
    json_close(']');
    json_open("columns", '[');
    for (uint32_t k = 0; k < columns; k++)
        print_column(found, wanted, k);
    json_close(']');
    print_matrix("covariance", qn_statistics_covariance(found), columns);
    print_matrix("correlation", qn_statistics_correlation(found), columns);
    json_text("digest", wanted->parts ? qn_parts_digest(wanted->parts) : qn_data_digest(data));
    json_end();
}
