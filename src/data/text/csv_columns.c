/* The columns that options name: the label, those to read, those to leave out. */
#include "base/memory.h"
#include "base/text/text.h"
#include "data/table/rules.h"
#include "data/text/csv_header.h"
#include <string.h>

/* Columns with this name; the last of them in *out, which stays where there is none. */
static uint64_t find_name(const qn__csv_header *header, const char *name, uint64_t *out) {
    uint64_t found = 0;
    for (uint64_t i = 0; header->names && i < header->shape.columns; i++) {
        if (strcmp(header->names[i], name) == 0) {
            *out = i;
            found++;
        }
    }
    return found;
}

/* What "last" means, from 1: pandas writes its index after the columns. */
static uint64_t last_column(qn__csv_header *header) {
    header->left_index |= header->last < header->shape.columns;
    return header->last;
}

/* The column that a text names: a header's name goes before "last", and both before a number.
 * Returns the number of columns that bear the name; 0 leaves *out alone. */
static uint64_t find_column(qn__csv_header *header, const char *word, uint64_t *out) {
    const uint64_t found = find_name(header, word, out);
    uint64_t number = 0;
    if (found > 0)
        return found;
    if (strcmp(word, "last") == 0)
        number = last_column(header);
    else if (!qn__parse_u64(word, strlen(word), &number) || number > header->shape.columns)
        number = 0;
    if (number > 0)
        *out = number - 1;
    return number > 0;
}

/* An option named no column: says what there is. `what` is for the message. */
static qn_status refuse_column(const qn__csv_header *header, const char *what, const char *field,
                               const char *word, qn_error *err) {
    unsigned long long columns = (unsigned long long)header->shape.columns;
    char shown[64];
    qn__csv_show(word, shown);
    uint64_t number;
    const char *near = NULL; /* a number that is out of range is not a slip in a name */
    if (header->names && !qn__parse_u64(word, strlen(word), &number))
        near = qn__nearest(word, (const char *const *)header->names);
    qn__fail(err, QN_INPUT, "there is no %s \"%s\"", what, shown);
    qn__at(err, "%s, line 1", header->path);
    if (near) {
        qn__csv_show(near, shown);
        return qn__remedy(err, QN_INPUT, "did you mean `%s` %s?", field, shown);
    }
    const int label = strcmp(field, "data.label_column") == 0;
    const int list = !label && strcmp(field, "data.weight") != 0;
    return qn__remedy(err, QN_INPUT, "`%s` takes %sa number from 1 to %llu, %s", field,
                      header->names ? "a column's name, " : "", columns,
                      label  ? "or last; `data.unlabelled`: no labels"
                      : list ? "a range of numbers such as 1-2, or last"
                             : "or last");
}

static qn_status find_one(qn__csv_header *header, const char *what, const char *field,
                          const char *word, uint64_t *out, qn_error *err) {
    const uint64_t found = find_column(header, word, out);
    if (found == 1)
        return QN_OK;
    if (found == 0)
        return refuse_column(header, what, field, word, err);
    qn__fail(err, QN_INPUT, "%llu columns have the name of the %s", (unsigned long long)found,
             what);
    qn__at(err, "%s, line 1", header->path);
    return qn__remedy(err, QN_INPUT, "give the column's number with `%s`", field);
}

/* ------------------------------------------------------------------ lists of columns */

/* "3-7" and "3-last", where no column has that name; 1 when it is such a range of columns. */
static int find_range(qn__csv_header *header, const char *word, uint64_t *first, uint64_t *last) {
    const char *dash = strchr(word, '-');
    if (!dash || !qn__parse_u64(word, (size_t)(dash - word), first))
        return 0;
    if (strcmp(dash + 1, "last") == 0)
        *last = last_column(header);
    else if (!qn__parse_u64(dash + 1, strlen(dash + 1), last))
        return 0;
    return *first >= 1 && *first <= *last && *last <= header->shape.columns;
}

/* A list of columns as an option, and the marks that it leaves. */
typedef struct list {
    qn__csv_header *header;
    const char *field;
    uint8_t *mark;   /* of all columns */
    uint64_t *names; /* how many words are names */
    qn_status (*take)(const struct list *l, const char *word, int quoted, qn_error *err);
} list;

/* A column that a user names. */
static qn_status mark_word(const list *l, const char *word, int quoted, qn_error *err) {
    uint64_t first, last;
    (void)quoted;
    if (find_column(l->header, word, &first) == 0 && find_range(l->header, word, &first, &last)) {
        memset(l->mark + first - 1, 1, (size_t)(last - first + 1));
        return QN_OK;
    }
    const qn_status status = find_one(l->header, "column", l->field, word, &first, err);
    if (status == QN_OK)
        l->mark[first] = 1;
    return status;
}

static qn_status mark_columns(const list *l, const char *text, qn_error *err) {
    const char *at = text, *end = text + strlen(text);
    for (;; at++) {
        qn__cell cell;
        at = qn__cell_read(at, end, ',', 1, &cell);
        if (cell.broken) {
            qn__fail(err, QN_USAGE, "the quotes in the list of columns do not pair");
            return qn__remedy(err, QN_USAGE, "separate the columns in `%s` by commas", l->field);
        }
        char *word = qn__copy_unquoted(cell.text, cell.size, cell.quoted, err);
        const qn_status status = word ? l->take(l, word, cell.quoted, err) : QN_MEMORY;
        qn__free(word);
        if (status != QN_OK || at == end)
            return status;
    }
}

/* ------------------------------------------------------------------ what is read */

/* The label, where nobody named it: the first column that no option names. */
static uint64_t first_unmarked(const uint8_t *mark, const qn__csv_shape *shape, uint64_t left) {
    uint64_t column = 0;
    while (column + 1 < shape->columns &&
           (mark[column] || column == shape->weight || column == left))
        column++;
    return column;
}

/* Whether a text counts columns instead of naming one. */
static int is_place(const char *word) {
    uint64_t number;
    return strcmp(word, "last") == 0 || qn__parse_u64(word, strlen(word), &number);
}

/* The text that names the label; NULL: nobody does. */
static const char *label_word(const qn__csv_header *header, const qn_data_options *options) {
    const char *given = options->label_column, *expected = options->expected_label;
    uint64_t column;
    if (!expected || !header->names || find_name(header, expected, &column) == 0)
        return given;
    return !given || (is_place(given) && find_name(header, given, &column) == 0) ? expected : given;
}

/* The column of weights. Where it is only expected, it is marked in `left_out`, and what it holds
 * does not matter. */
static qn_status choose_weight(qn__csv_header *header, const qn_data_options *options,
                               uint64_t *left_out, qn_error *err) {
    qn__csv_shape *shape = &header->shape;
    const char *expected = options->expected_weight;
    shape->weight = *left_out = shape->columns;
    if (options->weight)
        return find_one(header, "column of weights", "data.weight", options->weight, &shape->weight,
                        err);
    if (expected && (header->names ? find_name(header, expected, left_out)
                                   : find_column(header, expected, left_out)) > 1)
        *left_out = shape->columns;
    return QN_OK;
}

static qn_status choose_label(qn__csv_header *header, const qn_data_options *options,
                              const uint8_t *mark, uint64_t left, qn_error *err) {
    qn__csv_shape *shape = &header->shape;
    const char *word = label_word(header, options);
    shape->label = first_unmarked(mark, shape, left);
    if (options->unlabelled || (!word && options->expected_label && header->names))
        shape->label = shape->columns;
    else if (word)
        return find_one(header, "label column", "data.label_column", word, &shape->label, err);
    return QN_OK;
}

static qn_status refuse_listed(const qn__csv_header *header, uint64_t column, const char *what,
                               const char *given, const char *field, qn_error *err) {
    qn__fail(err, QN_INPUT, "the %s cannot be in the list of columns", what);
    qn__csv_at_column(header, column, err);
    return qn__remedy(err, QN_INPUT, "leave it out of `%s`, or name another %s with `%s`", given,
                      what, field);
}

/* Neither the label nor the weight is a feature or left out, and they are two columns. */
static qn_status check_special(const qn__csv_header *header, const uint8_t *mark, const char *given,
                               qn_error *err) {
    const qn__csv_shape *shape = &header->shape;
    const int weighted = shape->weight < shape->columns;
    if (shape->label < shape->columns && mark[shape->label])
        return refuse_listed(header, shape->label, "label", given, "data.label_column", err);
    if (weighted && mark[shape->weight])
        return refuse_listed(header, shape->weight, "column of weights", given, "data.weight", err);
    if (!weighted || shape->weight != shape->label)
        return QN_OK;
    qn__fail(err, QN_INPUT, "one column is named as the label and as the weights");
    qn__csv_at_column(header, shape->label, err);
    return qn__remedy(err, QN_INPUT, "name another one with `data.label_column` or `data.weight`");
}

static qn_status check_features(const qn__csv_header *header, uint64_t features, qn_error *err) {
    if (features == 0) {
        qn__fail(err, QN_INPUT,
                 header->shape.columns == 1
                     ? "the only column is the label, so there are no features"
                     : "no column is left for the features");
        return qn__csv_refuse_line(
            header->path, 1,
            header->shape.separator
                ? "columns are separated by comma, semicolon or tab; a file without labels is "
                  "read with `data.unlabelled`; lines of plain text are not a table and cannot be "
                  "read"
                : "give a table with more columns; one without labels is read with "
                  "`data.unlabelled`",
            err);
    }
    if (features <= UINT32_MAX)
        return QN_OK;
    qn__fail(err, QN_INPUT, "the first line has %llu cells, more than 2^32",
             (unsigned long long)header->shape.columns);
    return qn__csv_refuse_line(header->path, 1, "check that the file has line ends", err);
}

/* Marks the index of pandas as left out, but for columns that the options name. */
static qn_status leave_index(qn__csv_header *header, const qn_data_options *options, uint8_t *mark,
                             qn_error *err) {
    const char *const words[] = {label_word(header, options), options->weight};
    if (!header->index)
        return QN_OK;
    uint8_t *kept = qn__alloc(header->shape.columns, 1, err);
    const list l = {header, "data.category", kept, NULL, mark_word};
    qn_status status = kept ? QN_OK : QN_MEMORY;
    if (status == QN_OK && options->category)
        status = mark_columns(&l, options->category, err);
    for (size_t i = 0; status == QN_OK && i < sizeof words / sizeof *words; i++) {
        uint64_t column;
        if (words[i] && find_column(header, words[i], &column) == 1)
            kept[column] = 1;
    }
    for (uint64_t i = 0; status == QN_OK && i < header->shape.columns; i++) {
        header->index[i] &= !options->features && !kept[i] && !mark[i];
        mark[i] |= header->index[i];
        header->left_index |= header->index[i];
    }
    qn__free(kept);
    return status;
}

/* Whether a column is the label, the weights, or left out. */
static int is_special(const qn__csv_shape *shape, const uint8_t *mark, uint8_t keep, uint64_t left,
                      uint64_t column) {
    return column == shape->label || column == shape->weight || column == left ||
           mark[column] != keep;
}

/* `keep` of mark is read beside the label and the weight, but for the column `left`. */
static qn_status list_special(qn__csv_header *header, const uint8_t *mark, uint8_t keep,
                              uint64_t left, qn__column_kind label, qn_error *err) {
    qn__csv_shape *shape = &header->shape;
    uint64_t count = 0;
    size_t special = 0;
    for (uint64_t i = 0; i < shape->columns; i++)
        special += (size_t)is_special(shape, mark, keep, left, i);
    header->special = qn__alloc(special + 1, sizeof *header->special, err);
    if (!header->special)
        return QN_MEMORY;
    for (uint64_t i = 0; i < shape->columns; i++)
        if (is_special(shape, mark, keep, left, i))
            header->special[count++] =
                (qn__special){.column = i,
                              .kind = i == shape->label    ? label
                                      : i == shape->weight ? QN__COLUMN_WEIGHT
                                                           : QN__COLUMN_SKIP};
    header->special[count].column = UINT64_MAX;
    shape->special = header->special;
    const uint64_t features = shape->columns - count;
    const qn_status status = check_features(header, features, err);
    shape->features = (uint32_t)features;
    return status;
}

/* ------------------------------------------------------------------ categories */

/* A column that has this name in other data. */
static qn_status mark_name(const list *l, const char *word, int quoted, qn_error *err) {
    uint64_t column, place;
    (void)err;
    if (!quoted && qn__parse_u64(word, strlen(word), &place))
        return QN_OK;
    ++*l->names;
    if (find_name(l->header, word, &column) == 1)
        l->mark[column] = 1;
    return QN_OK;
}

/* A feature that has this place in other data. */
static qn_status mark_place(const list *l, const char *word, int quoted, qn_error *err) {
    const qn__special *special = l->header->special;
    uint64_t place;
    (void)err;
    if (quoted || !qn__parse_u64(word, strlen(word), &place))
        return QN_OK;
    for (uint64_t column = 0; column < l->header->shape.columns; column++) {
        if (column == special->column)
            special++;
        else if (--place == 0)
            l->mark[column] = 1;
    }
    return QN_OK;
}

/* By names where the list and the file have any, else by places. */
static qn_status mark_known(qn__csv_header *header, const char *known, qn_error *err) {
    uint64_t names = 0;
    list l = {header, "data.expected_categories", header->categories, &names, mark_name};
    const qn_status status = header->names ? mark_columns(&l, known, err) : QN_OK;
    l.take = mark_place;
    return status == QN_OK && names == 0 ? mark_columns(&l, known, err) : status;
}

/* Marks the columns that hold categories in other data, or because a user says so. */
static qn_status mark_categories(qn__csv_header *header, const qn_data_options *options,
                                 qn_error *err) {
    if (!options->expected_categories && !options->category)
        return QN_OK;
    header->categories = qn__alloc(header->shape.columns, 1, err);
    if (!header->categories)
        return QN_MEMORY;
    const list l = {header, "data.category", header->categories, NULL, mark_word};
    qn_status status = options->category ? mark_columns(&l, options->category, err) : QN_OK;
    if (status == QN_OK)
        status = check_special(header, header->categories, l.field, err);
    if (status == QN_OK && options->expected_categories)
        status = mark_known(header, options->expected_categories, err);
    uint64_t column = 0;
    while (column < header->shape.columns && !header->categories[column])
        column++;
    if (column == header->shape.columns) {
        qn__free(header->categories);
        header->categories = NULL;
    }
    return status;
}

qn_status qn__csv_choose_columns(qn__csv_header *header, const qn_data_options *options,
                                 qn_error *err) {
    const char *names = options->features ? options->features : options->drop;
    header->shape.dates = qn__rule_holds(options, QN__RULE_DATES);
    header->shape.date_format = header->shape.dates ? options->date_format : NULL;
    uint8_t *mark = qn__alloc(header->shape.columns, 1, err);
    if (!mark)
        return QN_MEMORY;
    const list l = {header, options->features ? "data.features" : "data.drop", mark, NULL,
                    mark_word};
    uint64_t left = header->shape.columns;
    header->last = header->shape.columns;
    while (header->index && header->last > 1 && header->index[header->last - 1])
        header->last--;
    qn_status status = names ? mark_columns(&l, names, err) : QN_OK;
    if (status == QN_OK)
        status = leave_index(header, options, mark, err);
    if (status == QN_OK)
        status = choose_weight(header, options, &left, err);
    if (status == QN_OK)
        status = choose_label(header, options, mark, left, err);
    if (status == QN_OK)
        status = check_special(header, mark, l.field, err);
    const int real = options->task && strcmp(options->task, "regress") == 0;
    if (status == QN_OK)
        status = list_special(header, mark, options->features != NULL, left,
                              real ? QN__COLUMN_REAL : QN__COLUMN_INDEX, err);
    if (status == QN_OK)
        status = mark_categories(header, options, err);
    qn__free(mark);
    return status;
}
