#include "data/csv_notes.h"

#include "base/memory.h"
#include "base/text.h"
#include "data/commas.h"
#include "data/date_parts.h"
#include "data/dates.h"
#include "data/row_numbers.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* A feature that by its name is the label rather; NULL: there is none, or the label has such a name
 * too. */
static const char *likely_label(const qn__schema *schema) {
    static const char *const names[] = {"label", "labels", "target", "class", "y"};
    enum { NAMES = sizeof names / sizeof names[0] };
    for (size_t i = 0; i < NAMES && schema && schema->label; ++i)
        if (strcasecmp(schema->label, names[i]) == 0)
            return NULL;
    for (size_t i = 0; i < NAMES && schema; ++i)
        for (uint32_t k = 0; k < schema->features; ++k)
            if (schema->feature[k].name && strcasecmp(schema->feature[k].name, names[i]) == 0)
                return schema->feature[k].name;
    return NULL;
}

/* About a label that nobody named. */
static void note_label(const qn__csv_shape *shape, const qn_data_options *options,
                       const qn_data *data, qn__text *text) {
    const int guessed = !options->label_column && shape->label < shape->columns;
    const int real = guessed && data->targets && !options->task;
    const char *likely = guessed && !options->expected_label ? likely_label(data->schema) : NULL;
    if (!real && !likely)
        return;
    const char *name = data->schema->label ? data->schema->label : "";
    qn__text_add(text, "\nthe label is column %llu%s%s", (unsigned long long)shape->label + 1,
                 *name ? ", " : "", name);
    if (likely)
        qn__text_add(text, ", and the column \"%.60s\" is a feature", likely);
    else
        qn__text_add(text, ", which holds real numbers");
    qn__text_add(text, "; name another column with `data.label_column`");
}

static int holds_dates(const qn__feature *feature) {
    uint32_t i = 0;
    while (i < feature->categories && qn__is_date(feature->category[i]))
        i++;
    return i > 0 && i == feature->categories;
}

/* Columns of dates: the first few by name. */
typedef struct dates {
    char names[256];
    uint32_t count;
} dates;

static void add_dates(dates *d, const char *name, uint64_t column) {
    enum { NAMED = 3 };
    const size_t used = strlen(d->names);
    const char *comma = used > 0 ? ", " : "";
    if (++d->count > NAMED)
        snprintf(d->names + used, sizeof d->names - used, "%s",
                 d->count == NAMED + 1 ? " and others" : "");
    else if (name)
        snprintf(d->names + used, sizeof d->names - used, "%s\"%.60s\"", comma, name);
    else
        snprintf(d->names + used, sizeof d->names - used, "%s%llu", comma,
                 (unsigned long long)column + 1);
}

static void note_dates(const dates *d, qn__text *text) {
    const int one = d->count == 1;
    if (d->count == 0)
        return;
    qn__text_add(text, "\nthe column%s %s hold%s dates or times, which are read as categories",
                 one ? "" : "s", d->names, one ? "s" : "");
    qn__text_add(text,
                 "; say how they are written with `data.date_format`, such as %%d.%%m.%%Y, or "
                 "leave them out with `data.drop`");
}

/* Columns that were read as dates, and what a network gets of the first of them. */
static void note_parts(const qn_data *data, qn__text *text) {
    char parts[QN__DATE_PARTS_TEXT];
    dates found = {.count = 0};
    uint32_t first = 0;
    for (uint32_t k = 0; data->schema && k < data->features; k++) {
        const qn__feature *f = &data->schema->feature[k];
        if (!f->dates)
            continue;
        first = first ? first : f->dates;
        add_dates(&found, f->name, k);
    }
    if (found.count == 0)
        return;
    qn__date_parts_text(first, parts);
    qn__text_add(text,
                 "\nthe column%s %s hold%s dates, of which a network gets %s; choose others with "
                 "`data.dates`",
                 found.count == 1 ? "" : "s", found.names, found.count == 1 ? "s" : "", parts);
}

/* Looks at the columns that are categories, though nobody called them so. */
static void look_at_categories(const qn__csv_header *header, const qn__csv_shape *shape,
                               qn_data *data, dates *d) {
    const qn__special *special = shape->special;
    uint32_t feature = 0;
    for (uint64_t column = 0; data->schema && column < shape->columns; column++) {
        const int is_special = special->column == column;
        const int is_one = is_special && special->kind == QN__COLUMN_CATEGORY;
        const qn__feature *f = &data->schema->feature[feature];
        feature += !is_special || is_one || special->kind == QN__COLUMN_GAPS ||
                   special->kind == QN__COLUMN_DATE;
        special += is_special;
        if (!is_one || (header->categories && header->categories[column]))
            continue;
        if (holds_dates(f))
            add_dates(d, f->name, column);
        if (data->comma == 0 && qn__comma_example(f))
            data->comma = feature;
    }
}

/* Features, and a label that nobody named, which only number the rows. Names are in the schema. */
static void note_row_numbers(const qn__csv_shape *shape, const qn_data_options *options,
                             const qn_data *data, qn__text *text) {
    const qn__special *special = shape->special;
    uint32_t feature = 0;
    int named = 0;
    for (uint32_t k = 0; data->schema && k < data->features; k++)
        named |= data->schema->feature[k].name != NULL;
    named |= data->schema && data->schema->label;
    for (uint64_t column = 0; column < shape->columns; column++) {
        const int is_label = column == shape->label, is_special = special->column == column;
        const int is_feature = !is_special || special->kind == QN__COLUMN_CATEGORY ||
                               special->kind == QN__COLUMN_GAPS || special->kind == QN__COLUMN_DATE;
        qn__seen_column seen = {.number = column + 1, .named = named, .is_label = is_label};
        if (is_feature)
            seen.feature = feature++;
        special += is_special;
        if (!is_feature && (!is_label || options->label_column))
            continue;
        if (data->schema)
            seen.name = is_label ? data->schema->label : data->schema->feature[seen.feature].name;
        qn__note_row_numbers(data, &seen, text);
    }
}

qn_status qn__csv_look_back(const qn__csv_header *header, const qn__csv_shape *shape,
                            const qn_data_options *options, qn_data *data, qn_error *err) {
    qn__text text = {0};
    dates found = {.count = 0};
    if (header->note)
        qn__text_add(&text, "\n%s", header->note);
    note_label(shape, options, data, &text);
    look_at_categories(header, shape, data, &found);
    note_dates(&found, &text);
    if (!options->dates)
        note_parts(data, &text);
    if (!options->expected_rules)
        note_row_numbers(shape, options, data, &text);
    if (text.data && !text.failed)
        data->note = qn__copy_text(text.data + 1, err);
    const int failed = text.failed || (text.data && !data->note);
    qn__text_release(&text);
    return failed ? QN_MEMORY : QN_OK;
}
