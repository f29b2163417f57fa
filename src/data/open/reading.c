/* qn_data_reading: what a reader of a written file has to be told (docs/exactness.md 2.1). */
#include "base/memory.h"
#include "base/system/float_state.h"
#include "base/text/text.h"
#include "data/cells/label_columns.h"
#include "data/cells/prose.h"
#include "data/cells/text_set.h"
#include "data/write/formats.h"
#include <math.h>
#include <quern/convert.h>
#include <stdio.h>
#include <string.h>

/* Different labels; 0 where they are too far apart to be class numbers. */
static uint64_t different(const qn_data *data) {
    uint64_t found = 0;
    uint8_t *seen = data->classes / 2 <= data->items ? qn__alloc(data->classes, 1, NULL) : NULL;
    for (uint64_t i = 0; seen && i < data->items; i++) {
        found += !seen[data->labels[i]];
        seen[data->labels[i]] = 1;
    }
    qn__free(seen);
    return found;
}

static int value_of(const qn_data *data, uint32_t class, double *value) {
    const char *name = qn_data_class_name(data, class);
    return qn__class_value(&(qn__cell){.text = name, .size = strlen(name)}, value);
}

/* How many of the names of classes are numbers; *whole: all of them are whole ones. */
static uint32_t numbers(const qn_data *data, int *whole) {
    uint32_t count = 0;
    double value;
    *whole = 1;
    for (uint32_t k = 0; qn_data_class_name(data, k); k++)
        if (qn__text_content(qn_data_class_name(data, k)) == QN__CONTENT_NUMBER) {
            count++;
            *whole &= !value_of(data, k, &value) || value == floor(value);
        }
    return count;
}

/* 1 when the names ascend as a reader sorts them: numbers by value, then texts bytewise. */
static int ascend(const qn_data *data) {
    int fine = 1;
    for (uint32_t k = 1; k < data->schema->classes; k++) {
        double one = 0, other = 0;
        const int before = value_of(data, k - 1, &one), after = value_of(data, k, &other);
        const int texts = strcmp(qn_data_class_name(data, k - 1), qn_data_class_name(data, k)) < 0;
        fine &= before && after   ? one < other || (one == other && texts)
                : before || after ? before
                                  : texts;
    }
    return fine;
}

/* 1 when all names are whole numbers that a reader takes for the labels, and are others. */
static int become_numbers(const qn_data *data) {
    const uint32_t classes = data->schema->classes;
    double greatest = 0, value = 0;
    int same = 1;
    for (uint32_t k = 0; k < classes; k++) {
        if (!value_of(data, k, &value) || value < 0 || value != floor(value))
            return 0;
        greatest = value > greatest ? value : greatest;
        same &= value == k;
    }
    return !same && greatest + 1 <= 2.0 * classes;
}

/* 1 when the labels are other numbers once a file of the format was read. */
static int renumbers(const qn__format *f, const qn_data *data) {
    if (!f->counts || !data->labels)
        return 0;
    const uint64_t count = different(data);
    if (qn__data_target(data) != QN__TARGET_CLASS)
        return data->classes > 2 * count;
    return count < data->schema->classes || !ascend(data) || (f->texts && become_numbers(data));
}

static int all_whole(const qn_data *data) {
    for (uint64_t i = 0; i < data->items; i++)
        if (data->targets[i] != floorf(data->targets[i]))
            return 0;
    return 1;
}

static const char *task_of(const qn__format *f, const qn_data *data) {
    int whole;
    if (!f->counts || data->several)
        return NULL;
    if (data->targets)
        return all_whole(data) ? "regress" : NULL;
    const uint32_t count = f->texts ? numbers(data, &whole) : 0;
    return count > 0 && (count < data->schema->classes || !whole) ? "classify" : NULL;
}

/* 1 when a name stands above a number in the first line of items, so that it is a header. */
static int shows_header(const qn_data *data) {
    const float *first = qn__data_item(data, 0);
    const char *label = qn_data_label_name(data);
    char made[QN__LABEL_NAME];
    for (uint32_t k = 0; data->several && k < data->several->each; k++)
        if (qn__written_label_texts(data, k) == 0 && qn__several_of(data, 0)[k] != QN__NO_TARGET &&
            qn__text_content(qn__written_label_name(data, k, made)) == QN__CONTENT_TEXT)
            return 1;
    if ((data->targets || qn__data_target(data) == QN__TARGET_INDEX) &&
        (!label || qn__text_content(label) == QN__CONTENT_TEXT))
        return 1;
    for (uint32_t k = 0; k < data->features; k++) {
        const char *name = qn_data_feature_name(data, k);
        if (qn_data_categories(data, k) == 0 && (data->type == QN_U8 || first[k] == first[k]) &&
            (!name || qn__text_content(name) == QN__CONTENT_TEXT))
            return 1;
    }
    return 0;
}

/* 1 when a column is called by this number: a list of columns then means that one. */
static int is_name(const qn_data *data, uint32_t number) {
    char digits[16];
    snprintf(digits, sizeof digits, "%u", (unsigned)number);
    for (uint32_t k = 0; k < data->features; k++)
        if (qn_data_feature_name(data, k) && strcmp(qn_data_feature_name(data, k), digits) == 0)
            return 1;
    char made[QN__LABEL_NAME];
    for (uint32_t k = 0; k < qn__written_labels(data); k++)
        if (strcmp(qn__written_label_name(data, k, made), digits) == 0)
            return 1;
    return data->weight_name && strcmp(data->weight_name, digits) == 0;
}

/* 1 when a reader would take the column for another kind: CSV has texts that may be numbers or
 * missing ones, and the words of a column may look like texts or not. */
static int is_mistaken(const qn_data *data, uint32_t k, int csv) {
    const uint32_t count = qn_data_categories(data, k);
    uint32_t i = csv ? 0 : count;
    while (i < count && qn__text_content(qn_data_category(data, k, i)) == QN__CONTENT_TEXT)
        i++;
    return i < count ||
           (count > 0 && (qn_data_text_inputs(data, k) > 0) != qn__prose_looks(data, k));
}

/* The columns that are mistaken for others, by their places in the file: those of texts, or else
 * categories. */
static void add_columns(const qn_data *data, int texts, int csv, qn__text *text) {
    const uint32_t before = 1 + qn__written_labels(data);
    const char *between = texts ? "`data.text` " : "`data.category` ";
    for (uint32_t k = 0; k < data->features; k++) {
        if ((qn_data_text_inputs(data, k) > 0) != texts || !is_mistaken(data, k, csv))
            continue;
        qn__text_add(text, "%s%s", *between == '`' && text->size ? " " : "", between);
        if (is_name(data, k + before) && qn_data_feature_name(data, k))
            qn__text_add(text, "\"%s\"", qn_data_feature_name(data, k));
        else
            qn__text_add(text, "%u", (unsigned)(k + before));
        between = ",";
    }
}

/* A name of a column as a word of a shell: in single quotes where it has other signs than these. */
static void add_word(qn__text *text, const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    const int quote = word[strspn(word, plain)] != '\0';
    qn__text_add(text, " %s", quote ? "'" : "");
    for (const char *at = word; *at; at++)
        qn__text_add(text, *at == '\'' ? "'\\''" : "%c", *at);
    qn__text_add(text, "%s", quote ? "'" : "");
}

static void add_option(qn__text *text, const char *option, const char *value) {
    qn__text_add(text, "%s`%s`", text->size ? " " : "", option);
    if (*value)
        add_word(text, value);
}

/* Several labels, by their names. */
static void add_label_list(const qn_data *data, qn__text *text) {
    qn__text list = {0};
    char made[QN__LABEL_NAME];
    const char *named = qn_data_label_name(data);
    int whole = 0; /* a column has the whole list for a name */
    for (uint32_t k = 0; named && k < data->features; k++)
        whole |= qn_data_feature_name(data, k) && strcmp(qn_data_feature_name(data, k), named) == 0;
    for (uint32_t k = 0; k < qn__written_labels(data) && (whole || !named); k++)
        qn__text_add(&list, whole ? "%s\"%s\"" : "%s%s", k ? "," : "",
                     qn__written_label_name(data, k, made));
    named = whole ? list.data : named;
    add_option(text, "data.label_column", named ? named : list.data ? list.data : "");
    qn__text_release(&list);
}

/* 1 when one of several labels has texts, and only one of them is here: which of the two it is
 * cannot be seen, unless it is one of a known pair. */
static int has_text_alone(const qn__format *f, const qn_data *data) {
    for (uint32_t k = 0; f->categories && data->several && k < qn__written_labels(data); k++) {
        uint64_t count[2] = {0, 0};
        if (qn__written_label_texts(data, k) == 0 ||
            qn__label_text_value(qn__written_label_text(data, k, 0)) >= 0)
            continue;
        for (uint64_t i = 0; i < data->items; i++) {
            const uint8_t target = qn__several_of(data, i)[k];
            if (target != QN__NO_TARGET)
                count[target]++;
        }
        if ((count[0] == 0) != (count[1] == 0))
            return 1;
    }
    return 0;
}

/* 1 when a text loses what float32 does not hold of some column: numbers with a fraction do so, and
 * all that LIBSVM has. */
static int loses(const qn__format *f, const qn_data *data) {
    for (uint32_t k = 0; data->wide && f->texts && k < data->features; k++)
        if (qn_data_real(data, k) || (!f->categories && qn_data_whole(data, k)))
            return 1;
    return 0;
}

void qn_data_reading(const qn_data *data, const char *name, char *text, size_t capacity) {
    QN__OWN_FLOATS;
    const qn__format *f = qn__format_named(name);
    qn__text options = {0};
    if (capacity > 0 && text)
        *text = '\0';
    if (!data || !f || !text || capacity == 0)
        return;
    const char *task = task_of(f, data);
    const int labelled = qn__data_labelled(data), table = f->categories, csv = table && !f->typed;
    if (!labelled && table)
        add_option(&options, "data.unlabelled", "");
    if (labelled && f->labels_apart)
        add_option(&options, "data.labels_path", "FILE");
    if (data->several && table)
        add_label_list(data, &options);
    if (data->weights && f->weights)
        add_option(&options, "data.weight",
                   table && data->weight_name ? data->weight_name : "weight");
    if (f->tokens && *data->tokens)
        add_option(&options, "data.tokens", QN__TOKENS_IDS);
    if (task)
        add_option(&options, "data.task", task);
    if (csv && !shows_header(data))
        add_option(&options, "data.header", "yes");
    for (int texts = 0; table && texts < 2; texts++)
        add_columns(data, texts, csv, &options);
    const char *others = loses(f, data) ? "columns that float32 cannot hold are rounded to it when "
                                          "they are read, so its digest is another"
                         : renumbers(f, data)
                             ? "its classes get other numbers when it is read, so its digest is "
                               "another"
                         : has_text_alone(f, data)
                             ? "a label has one of its two texts alone, so only a model that knows "
                               "both can read it"
                             : "";
    snprintf(text, capacity, "%s%s%s%s", options.size ? "read it with " : "",
             options.size ? options.data : "", options.size && *others ? "; " : "", others);
    qn__text_release(&options);
}
