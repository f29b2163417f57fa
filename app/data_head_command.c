/* quern data head: the first items of a data file. */

#include "columns.h"
#include "command.h"
#include "jsonline.h"
#include "message.h"
#include "paths.h"
#include "shared_rows.h"
#include "sources.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct head_flags {
    source_flags from;
    uint64_t items;
    int json;
} head_flags;

#define AT(member) .place = offsetof(head_flags, member)

static const option head_options[] = {
    {.heading = "Options",
     .letter = 'n',
     ROW_COUNT("items", items, 1, 10000, "how many items"),
     .fallback = "5"},
    {ROW_JSON(json, "print one JSON object instead, with all columns")},
    SOURCE_FILE_OPTIONS(offsetof(head_flags, from)),
    {.name = NULL}};

/* Features, and labels, that fit a line, about. */
enum { MOST_FEATURES = 8, MOST_LABELS = 8, CELL_CAPACITY = 40 };

/* What is shown: the labels, the features that fit, the weights. A mask is not a column. */
typedef struct table {
    const qn_data *data;
    const column *columns;
    uint64_t items;
    qn_several several; /* each is 0: an item has one label, or none */
    uint32_t labels;    /* that are shown */
    uint32_t features;  /* of them */
} table;

/* A number as the shortest text that gives the same float32. */
static const char *number(float value, char buffer[CELL_CAPACITY]) {
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(buffer, CELL_CAPACITY, "%.*g", digits, (double)value);
        if (strtof(buffer, NULL) == value)
            break;
    }
    return buffer;
}

/* Label `c` of an item. NULL: it is missing. */
static const char *label_text(const table *t, uint64_t item, uint32_t c,
                              char buffer[CELL_CAPACITY]) {
    const qn_data *data = t->data;
    if (t->several.each > 0) {
        const uint8_t target = t->several.target[item * t->several.each + c];
        snprintf(buffer, CELL_CAPACITY, "%u", (unsigned)target);
        return target == 255 ? NULL : buffer;
    }
    if (qn_data_targets(data))
        return number(qn_data_targets(data)[item], buffer);
    const int32_t label = qn_data_labels(data)[item];
    const char *name = qn_data_class_name(data, (uint32_t)label);
    snprintf(buffer, CELL_CAPACITY, "%" PRId32, label);
    return name ? name : buffer;
}

/* NULL: the value is missing. */
static const char *value_text(const qn_data *data, uint64_t item, uint32_t k,
                              char buffer[CELL_CAPACITY]) {
    if (qn_data_type_of(data) != QN_F32) {
        snprintf(buffer, CELL_CAPACITY, "%.0f", columns_value(data, item, k));
        return buffer;
    }
    const float value = (float)columns_value(data, item, k);
    if (value != value)
        return NULL;
    if (qn_data_dates(data, k, NULL, 0) != QN_DATE_NONE) {
        qn_data_date(data, item, k, buffer, CELL_CAPACITY);
        return buffer;
    }
    qn_data_exact(data, item, k, buffer, CELL_CAPACITY);
    if (*buffer)
        return buffer;
    return qn_data_categories(data, k) ? qn_data_category(data, k, (uint32_t)value)
                                       : number(value, buffer);
}

/* Columns of the table: the labels, where there are any, then the features, then the weights. */
static uint32_t count_columns(const table *t) {
    return t->labels + t->features + (qn_data_weights(t->data) != NULL);
}

static const char *label_name(const table *t, uint32_t c) {
    return t->several.each > 0 ? qn_data_class_name(t->data, c) : qn_data_label_name(t->data);
}

/* Line 0 has the names, line 1 the types; the items follow. */
static const char *cell(const table *t, uint64_t line, uint32_t c, char buffer[CELL_CAPACITY]) {
    const qn_data *data = t->data;
    const uint32_t labelled = t->labels, k = c - labelled;
    const char *name = c < labelled      ? label_name(t, c)
                       : k < t->features ? qn_data_feature_name(data, k)
                                         : qn_data_weight_name(data);
    if (line == 0 && c >= labelled && k < t->features)
        snprintf(buffer, CELL_CAPACITY, "f%" PRIu32, k);
    else if (c < labelled && t->several.each > 0)
        snprintf(buffer, CELL_CAPACITY, "label%" PRIu32, c);
    else
        strcpy(buffer, c < labelled ? "label" : "weight");
    if (line == 0)
        return name ? name : buffer;
    if (c < labelled && line > 1) {
        const char *label = label_text(t, line - 2, c, buffer);
        return label ? label : "-";
    }
    if (c < labelled)
        return qn_data_targets(data) ? "real label" : t->several.each > 0 ? "0 or 1" : "class";
    if (k >= t->features)
        return line == 1 ? "weight" : number(qn_data_weights(data)[line - 2], buffer);
    if (line == 1)
        return columns_type(data, t->columns, k);
    const char *value = value_text(data, line - 2, k, buffer);
    return value ? value : "-";
}

static void print(const table *t) {
    char buffer[CELL_CAPACITY], *to = buffer;
    const uint32_t count = count_columns(t), rest = qn_data_features(t->data) - t->features;
    const uint32_t labels = t->labels < t->several.each ? t->several.each - t->labels : 0;
    int width[MOST_LABELS + MOST_FEATURES + 1] = {0};
    for (uint64_t line = 0; line < t->items + 2; line++)
        for (uint32_t c = 0; c < count; c++) {
            const int needed = columns_width(cell(t, line, c, to));
            width[c] = needed > width[c] ? needed : width[c];
        }
    for (uint64_t line = 0; line < t->items + 2; line++) {
        for (uint32_t c = 0; c < count; c++) {
            columns_print_cell(cell(t, line, c, to), c + 1 < count ? width[c] + 2 : 0);
        }
        putchar('\n');
    }
    if (labels && t->several.rows == 0)
        printf("and %" PRIu32 " more labels\n", labels);
    if (t->several.rows > 0)
        printf("and a mask of %" PRIu32 "x%" PRIu32 " pixels\n", t->several.rows,
               t->several.columns);
    if (rest)
        printf("and %" PRIu32 " more features\n", rest);
}

/* Numbers are numbers, texts and dates are texts, and what is missing is null. */
static void print_json_value(const table *t, uint64_t item, uint32_t c) {
    char buffer[CELL_CAPACITY];
    const qn_data *data = t->data;
    const uint32_t labelled = t->labels, k = c - labelled;
    const char *text = c < labelled      ? label_text(t, item, c, buffer)
                       : k < t->features ? value_text(data, item, k, buffer)
                                         : cell(t, item + 2, c, buffer);
    const int is_feature = c >= labelled && k < t->features;
    const int is_date = is_feature && qn_data_dates(data, k, NULL, 0) != QN_DATE_NONE;
    char exact[CELL_CAPACITY] = "";
    if (text && is_feature && !is_date)
        qn_data_exact(data, item, k, exact, sizeof exact);
    if (*exact)
        json_value(NULL, exact);
    else if (text && text == buffer && !is_date)
        json_number(NULL, strtod(text, NULL));
    else
        json_text(NULL, text);
}

static void print_json(const table *t, const char *path) {
    char buffer[CELL_CAPACITY];
    json_begin("head");
    json_text("file", path);
    json_open("columns", '[');
    for (uint32_t c = 0; c < count_columns(t); c++) {
        json_open(NULL, '{');
        json_text("name", cell(t, 0, c, buffer));
        json_text("type", cell(t, 1, c, buffer));
        json_close('}');
    }
    json_close(']');
    json_open("items", '[');
    for (uint64_t i = 0; i < t->items; i++) {
        json_open(NULL, '[');
        for (uint32_t c = 0; c < count_columns(t); c++)
            print_json_value(t, i, c);
        json_close(']');
    }
    json_close(']');
    json_end();
}

/* What the types follow from. Bytes are whole numbers, and none is missing. */
static column *find_columns(const qn_data *data) {
    if (qn_data_type_of(data) == QN_F32)
        return columns_find(data);
    column *columns = calloc(qn_data_features(data), sizeof *columns);
    for (uint32_t k = 0; columns && k < qn_data_features(data); k++)
        columns[k].whole = 1;
    return columns;
}

/* 8 labels and features, or with `all` all. */
static table table_of(const qn_data *data, const column *columns, uint64_t items, int all) {
    const uint32_t features = qn_data_features(data);
    qn_error err;
    table t = {.data = data,
               .columns = columns,
               .items = items < qn_data_items(data) ? items : qn_data_items(data),
               .several.size = sizeof t.several,
               .features = all || features < MOST_FEATURES ? features : MOST_FEATURES};
    qn_data_several(data, &t.several, &err);
    t.labels = t.several.rows > 0   ? 0
               : t.several.each > 0 ? t.several.each
                                    : qn_data_target(data) != QN_TARGET_NONE;
    if (!all && t.labels > MOST_LABELS)
        t.labels = MOST_LABELS;
    return t;
}

static int run(const command *self, int argc, char **argv) {
    head_flags f = {.items = 5, .from = {.keep_doubles = 1}};
    arguments given;
    qn_data *data = NULL;
    int code = options_read(self, argc - 3, argv + 3, &f, &given);
    if (code >= 0)
        return code;
    message_setup(self->name, 0, f.json);
    paths files = {.count = 0};
    source_take_operands(&f.from, &given);
    paths_add_files(&files, "FILE", "--labels", source_data(&f.from));
    code = paths_check(&files, 1);
    if (code < 0)
        code = source_open(source_data(&f.from), &f.from, 0, NULL, &data);
    if (code >= 0)
        return code;
    column *columns = find_columns(data);
    const table t = table_of(data, columns, f.items, f.json);
    if (!columns)
        code = message_fail(QN_MEMORY, "out of memory", "", "");
    else if (f.json)
        print_json(&t, given.operand[0]);
    else
        print(&t);
    free(columns);
    qn_data_close(data);
    return columns ? EXIT_DONE : code;
}

const command data_head_command = {
    .name = "data head",
    .summary = "show the first items of a data file",
    .usage = "quern data head FILE... [-n N] [options]",
    .about = "Reads what \"quern data info\" reads; - is the standard input. Prints the names of "
             "the columns, what they hold, and the first items, as a table: "
             "the label first, then the features. A missing value is a dash. Of several labels "
             "and of the features the first 8 are shown; --json has all of them, and null for a "
             "missing value.",
    .operand = "FILE",
    .most_operands = MOST_FILES + 1,
    .options = head_options,
    .examples = "quern data head heart.parquet --label sick\n"
                "quern data head table.csv -n 20 --json",
    .run = run};
