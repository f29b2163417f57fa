/* The columns that options name: the label, those to read, those to leave out. */
#include "data/cells/columns.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "data/cells/cell.h"
#include "data/cells/prose.h"
#include "data/table/rules.h"
#include <string.h>

void qn__columns_release(qn__columns *table) {
    for (uint64_t i = 0; table->names && i < table->shape.columns; i++)
        qn__free(table->names[i]);
    qn__free(table->names);
    qn__free(table->categories);
    qn__free(table->index);
    qn__free(table->special);
    qn__free(table->labels);
    table->labels = NULL;
    table->names = NULL;
    table->categories = NULL;
    table->index = NULL;
    table->special = NULL;
}

void qn__columns_take_name(const qn__columns *table, uint64_t column, char **to) {
    *to = NULL;
    if (!table->names || *table->names[column] == '\0')
        return;
    *to = table->names[column];
    table->names[column] = NULL;
}

void qn__columns_give_labels(qn__columns *table, qn_data *data) {
    data->label_columns = table->labels;
    table->labels = NULL;
}

qn_status qn__columns_note(const qn__columns *table, qn_data *data, qn_error *err) {
    qn__text text = {0};
    if (!table->whole)
        return QN_OK;
    char shown[64];
    qn__cell_show_text(table->names[table->shape.label], shown);
    qn__text_add(
        &text,
        "the label is the one column \"%s\"; for several columns write each name in quotes, "
        "as `data.label_column` '\"x\",\"y\"'",
        shown);
    const qn_status status =
        text.failed ? qn__fail_memory(err, 256, 1) : qn__data_add_note(data, text.data, err);
    qn__text_release(&text);
    return status;
}

void qn__columns_at(const qn__columns *table, uint64_t column, qn_error *err) {
    char shown[64];
    qn__cell_show_text(table->names ? table->names[column] : "", shown);
    qn__at(err, *shown ? "%s, column %llu (%s)" : "%s, column %llu", table->path,
           (unsigned long long)column + 1, shown);
}

/* Columns with this name; the last of them in *out, which stays where there is none. */
static uint64_t find_name(const qn__columns *table, const char *name, uint64_t *out) {
    uint64_t found = 0;
    for (uint64_t i = 0; table->names && i < table->shape.columns; i++) {
        if (strcmp(table->names[i], name) == 0) {
            *out = i;
            found++;
        }
    }
    return found;
}

/* What "last" means, from 1: pandas writes its index after the columns. */
static uint64_t last_column(qn__columns *table) {
    table->left_index |= table->last < table->shape.columns;
    return table->last;
}

/* The column that a text names: a header's name goes before "last", and both before a number.
 * Returns the number of columns that bear the name; 0 leaves *out alone. */
static uint64_t find_column(qn__columns *table, const char *word, uint64_t *out) {
    const uint64_t found = find_name(table, word, out);
    uint64_t number = 0;
    if (found > 0)
        return found;
    if (strcmp(word, "last") == 0)
        number = last_column(table);
    else if (!qn__parse_u64(word, strlen(word), &number) || number > table->shape.columns)
        number = 0;
    if (number > 0)
        *out = number - 1;
    return number > 0;
}

/* An option named no column: says what there is. `what` is for the message. */
static qn_status refuse_column(const qn__columns *table, const char *what, const char *field,
                               const char *word, qn_error *err) {
    unsigned long long columns = (unsigned long long)table->shape.columns;
    char shown[64];
    qn__cell_show_text(word, shown);
    uint64_t number;
    const char *near = NULL; /* a number that is out of range is not a slip in a name */
    if (table->names && !qn__parse_u64(word, strlen(word), &number))
        near = qn__nearest(word, (const char *const *)table->names);
    qn__fail(err, QN_INPUT, "there is no %s \"%s\"", what, shown);
    qn__at(err, "%s, line 1", table->path);
    if (near) {
        qn__cell_show_text(near, shown);
        return qn__remedy(err, QN_INPUT, "did you mean `%s` %s?", field, shown);
    }
    const int label = strcmp(field, "data.label_column") == 0;
    const int list = !label && strcmp(field, "data.weight") != 0;
    return qn__remedy(err, QN_INPUT, "`%s` takes %sa number from 1 to %llu, %s", field,
                      table->names ? "a column's name, " : "", columns,
                      label  ? "or last; `data.unlabelled`: no labels"
                      : list ? "a range of numbers such as 1-2, or last"
                             : "or last");
}

static qn_status find_one(qn__columns *table, const char *what, const char *field, const char *word,
                          uint64_t *out, qn_error *err) {
    const uint64_t found = find_column(table, word, out);
    if (found == 1)
        return QN_OK;
    if (found == 0)
        return refuse_column(table, what, field, word, err);
    qn__fail(err, QN_INPUT, "%llu columns have the name of the %s", (unsigned long long)found,
             what);
    qn__at(err, "%s, line 1", table->path);
    return qn__remedy(err, QN_INPUT, "give the column's number with `%s`", field);
}

/* ------------------------------------------------------------------ lists of columns */

/* "3-7" and "3-last", where no column has that name; 1 when it is such a range of columns. */
static int find_range(qn__columns *table, const char *word, uint64_t *first, uint64_t *last) {
    const char *dash = strchr(word, '-');
    if (!dash || !qn__parse_u64(word, (size_t)(dash - word), first))
        return 0;
    if (strcmp(dash + 1, "last") == 0)
        *last = last_column(table);
    else if (!qn__parse_u64(dash + 1, strlen(dash + 1), last))
        return 0;
    return *first >= 1 && *first <= *last && *last <= table->shape.columns;
}

/* A list of columns as an option, and the marks that it leaves. */
typedef struct list {
    qn__columns *table;
    const char *field;
    uint8_t *mark;   /* of all columns */
    uint64_t *names; /* how many words are names */
    qn_status (*take)(const struct list *l, const char *word, int quoted, qn_error *err);
} list;

/* A column that a user names. */
static qn_status mark_word(const list *l, const char *word, int quoted, qn_error *err) {
    uint64_t first, last;
    (void)quoted;
    if (find_column(l->table, word, &first) == 0 && find_range(l->table, word, &first, &last)) {
        memset(l->mark + first - 1, 1, (size_t)(last - first + 1));
        return QN_OK;
    }
    const qn_status status = find_one(l->table, "column", l->field, word, &first, err);
    if (status == QN_OK)
        l->mark[first] = 1;
    return status;
}

static qn_status mark_columns(const list *l, const char *text, qn_error *err) {
    const char *at = text, *end = text + strlen(text);
    for (;; at++) {
        qn__cell cell;
        at = qn__cell_read(at, end, ',', &cell);
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
static uint64_t first_unmarked(const uint8_t *mark, const qn__row_shape *shape, uint64_t left) {
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

/* A word that names no column although the others do, of a list of names. */
static qn_status need_name(const list *l, const char *word, int quoted, qn_error *err) {
    uint64_t column;
    (void)quoted, (void)err;
    return find_name(l->table, word, &column) > 0 ? QN_OK : QN_INPUT;
}

/* Whether the header has the label of a model, or each of its labels. */
static int has_label(qn__columns *table, const char *label) {
    const list l = {table, "data.label_column", NULL, NULL, need_name};
    uint64_t column;
    return table->names && (find_name(table, label, &column) > 0 ||
                            (strchr(label, ',') && mark_columns(&l, label, NULL) == QN_OK));
}

/* The text that names the label; NULL: nobody does. */
static const char *label_word(qn__columns *table, const qn_data_options *options) {
    const char *given = options->label_column, *expected = options->expected_label;
    uint64_t column;
    if (!expected || !has_label(table, expected))
        return given;
    return !given || (is_place(given) && find_name(table, given, &column) == 0) ? expected : given;
}

/* Whether a text that names labels is a list: as a whole it is not a column. */
static int is_list(qn__columns *table, const char *word) {
    uint64_t first, last;
    return find_column(table, word, &first) == 0 &&
           (strchr(word, ',') || find_range(table, word, &first, &last));
}

/* Whether a text that names one column is also a list whose words all name others. */
static int could_be_list(qn__columns *table, const char *word) {
    const list l = {table, "data.label_column", NULL, NULL, need_name};
    return table->names && strchr(word, ',') && mark_columns(&l, word, NULL) == QN_OK;
}

/* The column of weights. Where it is only expected, it is marked in `left_out`, and what it holds
 * does not matter. */
static qn_status choose_weight(qn__columns *table, const qn_data_options *options,
                               uint64_t *left_out, qn_error *err) {
    qn__row_shape *shape = &table->shape;
    const char *expected = options->expected_weight;
    shape->weight = *left_out = shape->columns;
    if (options->weight)
        return find_one(table, "column of weights", "data.weight", options->weight, &shape->weight,
                        err);
    if (expected && (table->names ? find_name(table, expected, left_out)
                                  : find_column(table, expected, left_out)) > 1)
        *left_out = shape->columns;
    return QN_OK;
}

/* ------------------------------------------------------------------ several labels */

static qn_status add_label(const list *l, uint64_t column, qn_error *err) {
    qn__label_columns *labels = l->table->labels;
    if (l->mark[column]) {
        qn__fail(err, QN_INPUT, "a column is named twice in the list of labels");
        qn__columns_at(l->table, column, err);
        return qn__remedy(err, QN_INPUT, "name it once in `%s`", l->field);
    }
    l->mark[column] = 1;
    labels->at[labels->count++].column = column;
    return QN_OK;
}

/* The next of the list: a column, or a range of columns. */
static qn_status take_label(const list *l, const char *word, int quoted, qn_error *err) {
    uint64_t first, last;
    (void)quoted;
    if (find_column(l->table, word, &first) > 0 || !find_range(l->table, word, &first, &last)) {
        const qn_status status = find_one(l->table, "label column", l->field, word, &first, err);
        return status == QN_OK ? add_label(l, first, err) : status;
    }
    qn_status status = QN_OK;
    for (uint64_t i = first; i <= last && status == QN_OK; i++)
        status = add_label(l, i - 1, err);
    return status;
}

/* Real numbers are not learned together. */
static qn_status refuse_reals(const qn__columns *table, qn_error *err) {
    qn__fail(err, QN_INPUT, "%u columns are labels, and several labels are 0 or 1 each",
             table->labels->count);
    qn__at(err, "%s, line 1", table->path);
    return qn__remedy(
        err, QN_INPUT,
        "labels of 0 and 1 need no `data.task`; to predict several real numbers, make "
        "a model for each, with the others in `data.drop`");
}

static qn_status choose_labels(qn__columns *table, const qn_data_options *options, const char *word,
                               qn_error *err) {
    qn__row_shape *shape = &table->shape;
    uint8_t *mark = qn__alloc(shape->columns, 1, err);
    table->labels =
        qn__alloc(1, sizeof *table->labels + shape->columns * sizeof *table->labels->at, err);
    const list l = {table, "data.label_column", mark, NULL, take_label};
    qn_status status = mark && table->labels ? mark_columns(&l, word, err) : QN_MEMORY;
    qn__free(mark);
    if (status != QN_OK)
        return status;
    shape->label = table->labels->count > 1 ? shape->columns : table->labels->at[0].column;
    if (table->labels->count > 1)
        return options->task && strcmp(options->task, "regress") == 0 ? refuse_reals(table, err)
                                                                      : QN_OK;
    qn__free(table->labels); /* a list of one is an ordinary label */
    table->labels = NULL;
    return QN_OK;
}

static qn_status choose_label(qn__columns *table, const qn_data_options *options,
                              const uint8_t *mark, uint64_t left, qn_error *err) {
    qn__row_shape *shape = &table->shape;
    const char *word = label_word(table, options);
    const char *known = options->expected_label;
    shape->label = first_unmarked(mark, shape, left);
    if (options->unlabelled || (!word && known && (table->names || strchr(known, ','))))
        shape->label = shape->columns;
    else if (word && is_list(table, word))
        return choose_labels(table, options, word, err);
    else if (word) {
        table->whole = could_be_list(table, word) && *word != '"';
        return find_one(table, "label column", "data.label_column", word, &shape->label, err);
    }
    return QN_OK;
}

static qn_status refuse_listed(const qn__columns *table, uint64_t column, const char *what,
                               const char *given, const char *field, qn_error *err) {
    qn__fail(err, QN_INPUT, "the %s cannot be in the list of columns", what);
    qn__columns_at(table, column, err);
    return qn__remedy(err, QN_INPUT, "leave it out of `%s`, or name another %s with `%s`", given,
                      what, field);
}

static qn_status refuse_both(const qn__columns *table, uint64_t column, qn_error *err) {
    qn__fail(err, QN_INPUT, "one column is named as the label and as the weights");
    qn__columns_at(table, column, err);
    return qn__remedy(err, QN_INPUT, "name another one with `data.label_column` or `data.weight`");
}

/* Neither the label nor the weight is a feature or left out, and they are two columns. */
static qn_status check_special(const qn__columns *table, const uint8_t *mark, const char *given,
                               qn_error *err) {
    const qn__row_shape *shape = &table->shape;
    const int weighted = shape->weight < shape->columns;
    if (shape->label < shape->columns && mark[shape->label])
        return refuse_listed(table, shape->label, "label", given, "data.label_column", err);
    for (uint32_t k = 0; table->labels && k < table->labels->count; k++) {
        const uint64_t column = table->labels->at[k].column;
        if (mark[column])
            return refuse_listed(table, column, "label", given, "data.label_column", err);
        if (column == shape->weight)
            return refuse_both(table, column, err);
    }
    if (weighted && mark[shape->weight])
        return refuse_listed(table, shape->weight, "column of weights", given, "data.weight", err);
    if (!weighted || shape->weight != shape->label)
        return QN_OK;
    return refuse_both(table, shape->label, err);
}

static qn_status refuse_line(const char *path, const char *remedy, qn_error *err) {
    qn__at(err, "%s, line 1", path);
    return qn__remedy(err, QN_INPUT, "%s", remedy);
}

static qn_status check_features(const qn__columns *table, uint64_t features, qn_error *err) {
    if (features == 0) {
        qn__fail(err, QN_INPUT,
                 table->shape.columns == 1
                     ? "the only column is the label, so there are no features"
                     : "no column is left for the features");
        return refuse_line(
            table->path,
            table->shape.separator
                ? "columns are separated by comma, semicolon or tab; a file without labels is "
                  "read with `data.unlabelled`; lines of plain text are not a table: they are read "
                  "with `data.tokens` chars `data.context` 256"
                : "give a table with more columns; one without labels is read with "
                  "`data.unlabelled`",
            err);
    }
    if (features <= UINT32_MAX)
        return QN_OK;
    qn__fail(err, QN_INPUT, "the first line has %llu cells, more than 2^32",
             (unsigned long long)table->shape.columns);
    return refuse_line(table->path, "check that the file has line ends", err);
}

/* Marks the index of pandas as left out, but for columns that the options name. */
static qn_status leave_index(qn__columns *table, const qn_data_options *options, uint8_t *mark,
                             qn_error *err) {
    if (!table->index)
        return QN_OK;
    const char *const words[] = {label_word(table, options), options->weight};
    uint8_t *kept = qn__alloc(table->shape.columns, 1, err);
    const list l = {table, "data.category", kept, NULL, mark_word};
    const list labels = {table, "data.label_column", kept, NULL, mark_word};
    qn_status status = kept ? QN_OK : QN_MEMORY;
    if (status == QN_OK && options->category)
        status = mark_columns(&l, options->category, err);
    for (size_t i = 0; status == QN_OK && i < sizeof words / sizeof *words; i++) {
        uint64_t column;
        if (words[i] && find_column(table, words[i], &column) == 1)
            kept[column] = 1;
        else if (i == 0 && words[i] && is_list(table, words[i]))
            status = mark_columns(&labels, words[i], err);
    }
    for (uint64_t i = 0; status == QN_OK && i < table->shape.columns; i++) {
        table->index[i] &= !options->features && !kept[i] && !mark[i];
        mark[i] |= table->index[i];
        table->left_index |= table->index[i];
    }
    qn__free(kept);
    return status;
}

/* Whether a column is the label, the weights, or left out. */
static int is_special(const qn__row_shape *shape, const uint8_t *mark, uint8_t keep, uint64_t left,
                      uint64_t column) {
    return column == shape->label || column == shape->weight || column == left ||
           mark[column] != keep;
}

/* The place of a column among the features. */
static uint32_t feature_of(const qn__columns *table, uint64_t column) {
    uint64_t before = 0;
    for (const qn__special *at = table->special; at->column < column; at++)
        before++;
    return (uint32_t)(column - before);
}

/* `keep` of mark is read beside the label and the weight, but for the column `left`. */
static qn_status list_special(qn__columns *table, const uint8_t *mark, uint8_t keep, uint64_t left,
                              qn__column_kind label, qn_error *err) {
    qn__row_shape *shape = &table->shape;
    uint64_t count = 0;
    size_t special = 0;
    for (uint64_t i = 0; i < shape->columns; i++)
        special += (size_t)is_special(shape, mark, keep, left, i);
    table->special = qn__alloc(special + 1, sizeof *table->special, err);
    if (!table->special)
        return QN_MEMORY;
    for (uint64_t i = 0; i < shape->columns; i++)
        if (is_special(shape, mark, keep, left, i))
            table->special[count++] = (qn__special){.column = i,
                                                    .kind = i == shape->label    ? label
                                                            : i == shape->weight ? QN__COLUMN_WEIGHT
                                                                                 : QN__COLUMN_SKIP};
    table->special[count].column = UINT64_MAX;
    shape->special = table->special;
    const uint64_t features = shape->columns - count;
    const uint32_t labels = table->labels ? table->labels->count : 0;
    const qn_status status = check_features(table, features - labels, err);
    shape->features = (uint32_t)features;
    for (uint32_t k = 0; k < labels; k++)
        table->labels->at[k].feature = feature_of(table, table->labels->at[k].column);
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
    if (find_name(l->table, word, &column) == 1)
        l->mark[column] = 1;
    return QN_OK;
}

static int is_label(const qn__columns *table, uint64_t column) {
    for (uint32_t k = 0; table->labels && k < table->labels->count; k++)
        if (table->labels->at[k].column == column)
            return 1;
    return 0;
}

/* A feature that has this place in other data. */
static qn_status mark_place(const list *l, const char *word, int quoted, qn_error *err) {
    const qn__special *special = l->table->special;
    uint64_t place;
    (void)err;
    if (quoted || !qn__parse_u64(word, strlen(word), &place))
        return QN_OK;
    for (uint64_t column = 0; column < l->table->shape.columns; column++) {
        if (column == special->column)
            special++;
        else if (!is_label(l->table, column) && --place == 0)
            l->mark[column] = 1;
    }
    return QN_OK;
}

/* By names where the list and the file have any, else by places. */
static qn_status mark_known(qn__columns *table, const char *known, qn_error *err) {
    uint64_t names = 0;
    list l = {table, "data.expected_categories", table->categories, &names, mark_name};
    const qn_status status = table->names ? mark_columns(&l, known, err) : QN_OK;
    l.take = mark_place;
    return status == QN_OK && names == 0 ? mark_columns(&l, known, err) : status;
}

/* The word that says that no column holds texts. */
static int is_none(const qn__columns *table, const char *text) {
    uint64_t column;
    return strcmp(text, "none") == 0 && find_name(table, text, &column) == 0;
}

/* Marks the columns of texts, in other data or because a user says so, among those of categories.
 */
static qn_status mark_texts(qn__columns *table, const qn_data_options *options, qn_error *err) {
    qn__columns texts = *table;
    const int given = options->text && !is_none(table, options->text);
    if (!given && !options->expected_text)
        return QN_OK;
    texts.categories = qn__alloc(table->shape.columns, 1, err);
    if (!texts.categories)
        return QN_MEMORY;
    const list l = {&texts, "data.text", texts.categories, NULL, mark_word};
    qn_status status = given ? mark_columns(&l, options->text, err) : QN_OK;
    if (status == QN_OK)
        status = check_special(table, texts.categories, l.field, err);
    if (status == QN_OK && options->expected_text)
        status = mark_known(&texts, options->expected_text, err);
    for (uint64_t i = 0; i < table->shape.columns; i++)
        if (texts.categories[i])
            table->categories[i] = QN__SAID_TEXT;
    qn__free(texts.categories);
    return status;
}

/* Marks the columns that hold categories in other data, or because a user says so. */
static qn_status mark_categories(qn__columns *table, const qn_data_options *options,
                                 qn_error *err) {
    if (!options->expected_categories && !options->category && !options->text &&
        !options->expected_text)
        return QN_OK;
    table->categories = qn__alloc(table->shape.columns, 1, err);
    if (!table->categories)
        return QN_MEMORY;
    const list l = {table, "data.category", table->categories, NULL, mark_word};
    qn_status status = options->category ? mark_columns(&l, options->category, err) : QN_OK;
    if (status == QN_OK)
        status = check_special(table, table->categories, l.field, err);
    if (status == QN_OK && options->expected_categories)
        status = mark_known(table, options->expected_categories, err);
    if (status == QN_OK)
        status = mark_texts(table, options, err);
    uint64_t column = 0;
    while (column < table->shape.columns && !table->categories[column])
        column++;
    if (column == table->shape.columns) {
        qn__free(table->categories);
        table->categories = NULL;
    }
    return status;
}

qn_status qn__columns_choose(qn__columns *table, const qn_data_options *options, qn_error *err) {
    const char *names = options->features ? options->features : options->drop;
    table->shape.dates = qn__rule_holds(options, QN__RULE_DATES);
    table->shape.date_format = table->shape.dates ? options->date_format : NULL;
    uint8_t *mark = qn__alloc(table->shape.columns, 1, err);
    if (!mark)
        return QN_MEMORY;
    const list l = {table, options->features ? "data.features" : "data.drop", mark, NULL,
                    mark_word};
    uint64_t left = table->shape.columns;
    table->last = table->shape.columns;
    while (table->index && table->last > 1 && table->index[table->last - 1])
        table->last--;
    qn_status status = names ? mark_columns(&l, names, err) : QN_OK;
    if (status == QN_OK)
        status = leave_index(table, options, mark, err);
    if (status == QN_OK)
        status = choose_weight(table, options, &left, err);
    if (status == QN_OK)
        status = choose_label(table, options, mark, left, err);
    if (status == QN_OK)
        status = check_special(table, mark, l.field, err);
    for (uint32_t k = 0; status == QN_OK && table->labels && k < table->labels->count; k++)
        mark[table->labels->at[k].column] = options->features != NULL; /* it is read */
    const int real = options->task && strcmp(options->task, "regress") == 0;
    if (status == QN_OK)
        status = list_special(table, mark, options->features != NULL, left,
                              real ? QN__COLUMN_REAL : QN__COLUMN_INDEX, err);
    if (status == QN_OK)
        status = mark_categories(table, options, err);
    qn__free(mark);
    return status;
}
