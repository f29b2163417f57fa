#include "data/text/csv_notes.h"

#include "base/memory.h"
#include "base/text/text.h"
#include "data/cells/commas.h"
#include "data/cells/quantities.h"
#include "data/cells/row_numbers.h"
#include "data/table/date_parts.h"
#include "data/table/dates.h"
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
static void note_label(const qn__row_shape *shape, const qn_data_options *options,
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

static int is_feature(qn__column_kind kind) {
    return kind == QN__COLUMN_MISSING || kind == QN__COLUMN_CATEGORY || kind == QN__COLUMN_DATE;
}

static int holds_dates(const qn__feature *feature) {
    uint32_t i = 0;
    while (i < feature->categories && qn__is_date(feature->category[i]))
        i++;
    return i > 0 && i == feature->categories;
}

/* Columns that a note is about: the first few by name. */
typedef struct columns {
    char names[256];
    uint32_t count;
} columns;

static void add_column(columns *d, const char *name, uint64_t column) {
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

/* The first text that is not a date that can be read, where most of the others are; else NULL. */
static const char *broken_date(const qn__feature *feature, const char *format) {
    const char *broken = NULL;
    uint32_t read = 0;
    for (uint32_t i = 0; i < feature->categories; i++) {
        const char *text = feature->category[i];
        qn__moment moment;
        const int is_date =
            qn__cell_moment(&(qn__cell){.text = text, .size = strlen(text)}, format, &moment);
        read += is_date != 0;
        broken = broken || is_date ? broken : text;
    }
    return read > feature->categories / 2 ? broken : NULL;
}

/* Whether all texts are dates that could be read, but some name a zone and some do not. */
static int has_some_zones(const qn__feature *feature) {
    uint32_t zones = 0, read = 0;
    for (uint32_t i = 0; i < feature->categories; i++) {
        qn__moment moment;
        if (!qn__moment_read(feature->category[i], strlen(feature->category[i]), &moment))
            return 0;
        read++;
        zones += moment.has_zone != 0;
    }
    return zones > 0 && zones < read;
}

/* `remedy` follows what is said of the columns. */
static void note_dates(const columns *d, const char *remedy, qn__text *text) {
    const int one = d->count == 1;
    if (d->count == 0)
        return;
    qn__text_add(text,
                 "\nthe column%s %s hold%s dates or times, which are read as categories; %s, or "
                 "leave them out with `data.drop`",
                 one ? "" : "s", d->names, one ? "s" : "", remedy);
}

static void note_broken(const columns *d, const char *not_date, qn__text *text) {
    char shown[64];
    const int one = d->count == 1;
    if (d->count == 0)
        return;
    qn__cell_show_text(not_date, shown);
    qn__text_add(text,
                 "\nthe column%s %s hold%s dates, but \"%s\" is not one that can be read, so the "
                 "texts are categories; correct such cells, or leave the column%s out with "
                 "`data.drop`",
                 one ? "" : "s", d->names, one ? "s" : "", shown, one ? "" : "s");
}

/* Columns that were read as dates, and what a network gets of the first of them. */
static void note_parts(const qn_data *data, qn__text *text) {
    char parts[QN__DATE_PARTS_TEXT];
    columns found = {.count = 0};
    uint32_t first = 0;
    for (uint32_t k = 0; data->schema && k < data->features; k++) {
        const qn__feature *f = &data->schema->feature[k];
        if (!f->dates)
            continue;
        first = first ? first : f->dates;
        add_column(&found, f->name, k);
    }
    if (found.count == 0)
        return;
    qn__date_parts_text(first, parts);
    qn__text_add(text,
                 "\nthe column%s %s hold%s dates, of which a network gets %s; choose others with "
                 "`data.dates`",
                 found.count == 1 ? "" : "s", found.names, found.count == 1 ? "s" : "", parts);
}

/* Categories that are something else to a person. */
typedef struct findings {
    columns dates, zones, broken, quantities; /* `zones`: dates, some of them with a zone;
                                                 `broken`: some are not dates */
    const char *example, *not_date;           /* of a quantity; of `broken` */
} findings;

/* Looks at the columns that are categories, though nobody called them so. */
static void look_at_categories(const qn__csv_header *header, const qn__row_shape *shape,
                               qn_data *data, findings *found) {
    const qn__special *special = shape->special;
    uint32_t feature = 0;
    for (uint64_t column = 0; data->schema && column < shape->columns; column++) {
        const int is_special = special->column == column;
        const int is_one = is_special && special->kind == QN__COLUMN_CATEGORY;
        const qn__feature *f = &data->schema->feature[feature];
        feature += !is_special || is_feature(special->kind);
        special += is_special;
        if (!is_one || (header->table.categories && header->table.categories[column]))
            continue;
        const char *not_date = shape->dates ? broken_date(f, shape->date_format) : NULL;
        if (not_date) {
            found->not_date = found->not_date ? found->not_date : not_date;
            add_column(&found->broken, f->name, column);
        } else if (shape->dates && holds_dates(f)) /* else the model has categories there */
            add_column(has_some_zones(f) ? &found->zones : &found->dates, f->name, column);
        const char *quantity = qn__quantity_example(f->category, f->categories);
        if (data->comma == 0 && qn__comma_example(f)) {
            data->comma = feature;
        } else if (quantity) {
            found->example = *found->example ? found->example : quantity;
            add_column(&found->quantities, f->name, column);
        }
    }
}

/* Columns whose decimal commas were read. */
static void note_commas(const qn__row_shape *shape, const qn_data *data, qn__text *text) {
    columns found = {.count = 0};
    const qn__special *special = shape->special;
    uint32_t feature = 0;
    for (uint64_t column = 0; data->schema && column < shape->columns; column++) {
        const int is_special = special->column == column, is_label = column == shape->label;
        const int is_one = !is_special || is_feature(special->kind);
        if (is_special && special->commas)
            add_column(&found, is_label ? data->schema->label : data->schema->feature[feature].name,
                       column);
        feature += is_one ? 1u : 0u;
        special += is_special;
    }
    if (found.count > 0)
        qn__text_add(text,
                     "\nthe column%s %s hold%s numbers with a decimal comma: 1,5 is read as 1.5",
                     found.count == 1 ? "" : "s", found.names, found.count == 1 ? "s" : "");
}

/* Categories, and classes that nobody called so, that are quantities with a sign or a unit. */
static void note_quantities(const qn_data_options *options, const qn_data *data,
                            const columns *found, const char *example, qn__text *text) {
    const qn__schema *schema = data->schema;
    const char *class =
        schema && !options->task ? qn__quantity_example(schema->class_name, schema->classes) : NULL;
    if (found->count > 0)
        qn__text_add(text,
                     "\nthe column%s %s hold%s texts such as \"%.40s\", which are read as "
                     "categories; write plain numbers, such as 1234.5, where quantities are meant",
                     found->count == 1 ? "" : "s", found->names, found->count == 1 ? "s" : "",
                     example);
    if (class)
        qn__text_add(text,
                     "\nthe label holds texts such as \"%.40s\", which are read as classes; write "
                     "plain numbers, such as 1234.5, where quantities are meant",
                     class);
}

/* Features, and a label that nobody named, which only number the rows. Names are in the schema. */
static void note_row_numbers(const qn__row_shape *shape, const qn_data_options *options,
                             const qn_data *data, qn__text *text) {
    const qn__special *special = shape->special;
    uint32_t feature = 0;
    int named = 0;
    for (uint32_t k = 0; data->schema && k < data->features; k++)
        named |= data->schema->feature[k].name != NULL;
    named |= data->schema && data->schema->label;
    for (uint64_t column = 0; column < shape->columns; column++) {
        const int is_label = column == shape->label, is_special = special->column == column;
        const int is_one = !is_special || is_feature(special->kind);
        qn__seen_column seen = {.number = column + 1, .named = named, .is_label = is_label};
        if (is_one)
            seen.feature = feature++;
        special += is_special;
        if (!is_one && (!is_label || options->label_column))
            continue;
        if (data->schema)
            seen.name = is_label ? data->schema->label : data->schema->feature[seen.feature].name;
        qn__note_row_numbers(data, &seen, text);
    }
}

qn_status qn__csv_look_back(const qn__csv_header *header, const qn__row_shape *shape,
                            const qn_data_options *options, qn_data *data, qn_error *err) {
    qn__text text = {0};
    findings found = {.example = ""};
    if (header->note)
        qn__text_add(&text, "\n%s", header->note);
    note_label(shape, options, data, &text);
    look_at_categories(header, shape, data, &found);
    note_dates(&found.dates,
               shape->date_format
                   ? "correct `data.date_format`, whose form they do not have"
                   : "say how they are written with `data.date_format`, such as %d.%m.%Y "
                     "(2026-11-28 needs none, in the years 1 to 9999)",
               &text);
    note_broken(&found.broken, found.not_date, &text);
    note_dates(&found.zones, "name a zone in all cells or in none", &text);
    if (!options->dates && !options->expected_rules)
        note_parts(data, &text);
    if (!options->expected_rules) {
        note_quantities(options, data, &found.quantities, found.example, &text);
        note_commas(shape, data, &text);
        note_row_numbers(shape, options, data, &text);
    }
    if (text.data && !text.failed)
        data->note = qn__copy_text(text.data + 1, err);
    const int failed = text.failed || (text.data && !data->note);
    qn__text_release(&text);
    return failed ? QN_MEMORY : QN_OK;
}
