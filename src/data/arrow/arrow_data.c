/* Tables handed over by the Arrow C interfaces (docs/exactness.md 2.1.9). */
#include "base/argument.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "data/arrow/arrow_columns.h"
#include "data/arrow/arrow_numbers.h"
#include "data/arrow/pandas_index.h"
#include "data/cells/cell.h"
#include "data/cells/columns.h"
#include "data/cells/label_columns.h"
#include "data/cells/labels.h"
#include "data/tokens/text_items.h"
#include "data/cells/row_numbers.h"
#include "data/table/data_options.h"
#include "data/table/part_reading.h"
#include "data/table/rules.h"
#include "data/table/table_space.h"
#include "num/host.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Rows after which the parts of a stream are released. */
enum { PORTION_ROWS = 1 << 16 };

/* ------------------------------------------------------------------ columns */

/* The columns that the options choose, by the rules for CSV. */
static qn_status choose_columns(const qn__arrow_table *table, const qn_data_options *options,
                                qn__columns *header, qn_error *err) {
    *header = (qn__columns){.path = table->name};
    header->shape.columns = table->columns;
    header->names = qn__alloc(table->columns + 1, sizeof *header->names, err);
    if (!header->names)
        return QN_MEMORY;
    for (uint64_t i = 0; i < table->columns; i++) {
        const char *name = table->schema.children[i]->name;
        if (!(header->names[i] = qn__copy_text(name ? name : "", err)))
            return QN_MEMORY;
    }
    qn_status status = QN_OK;
    if (qn__rule_holds(options, QN__RULE_INDEX))
        status = qn__pandas_index(&table->schema, &header->index, err);
    if (status == QN_OK)
        status = qn__columns_choose(header, options, err);
    if (status == QN_INPUT)
        qn__at(err, "the schema of %s", table->name);
    return status;
}

/* Says which columns were left out as the index of pandas. */
static qn_status note_index(const qn__columns *header, qn_data *data, qn_error *err) {
    enum { SHOWN = 3 };
    char text[480], names[256] = "", shown[64];
    int count = 0;
    data->rules |= header->left_index ? QN__RULE_INDEX : 0u;
    for (uint64_t i = 0; header->index && i < header->shape.columns; i++)
        if (header->index[i] && ++count <= SHOWN) {
            qn__cell_show_text(header->names[i], shown);
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s\"%s\"",
                     count > 1 ? ", " : "", shown);
        }
    if (count == 0)
        return QN_OK;
    snprintf(
        text, sizeof text,
        "pandas calls the column%s %s%s its index, so %s left out; to read it, name the columns "
        "with `data.features`, or write the frame after reset_index()",
        count > 1 ? "s" : "", names, count > SHOWN ? " and others" : "",
        count > 1 ? "they are" : "it is");
    return qn__data_add_note(data, text, err);
}

/* A column is of use unless the options leave it out. */
static qn_status tell_wanted(const qn__arrow_source *source, const qn__columns *header,
                             qn_error *err) {
    const uint64_t columns = header->shape.columns;
    uint8_t *wanted = qn__alloc(columns, 1, err);
    if (!wanted)
        return QN_MEMORY;
    memset(wanted, 1, (size_t)columns);
    for (const qn__special *s = header->special; s->column < columns; s++)
        wanted[s->column] = s->kind != QN__COLUMN_SKIP;
    source->want(source->stream, wanted);
    qn__free(wanted);
    return QN_OK;
}

/* A table on its way into the data set. */
typedef struct filling {
    const qn__arrow_source *source;
    const qn_data_options *options;
    qn__arrow_table *table;
    qn_data *data;
    qn__columns header;
    qn__arrow_column *column; /* those that are used */
    uint64_t columns;
    qn__arrow_number *number; /* features that are plain columns of numbers in this portion */
    uint32_t plain;
    int made; /* there is space for the values of data->items items */
    int kept; /* it was asked whether doubles are kept */
    qn__wide_gather gather;
} filling;

static void add_column(filling *f, uint64_t column, qn__arrow_use use) {
    qn_data *data = f->data;
    f->column[f->columns++] =
        (qn__arrow_column){.table = f->table,
                           .options = f->options,
                           .data = data,
                           .column = column,
                           .use = use,
                           .feature = use == QN__ARROW_FEATURE ? data->features++ : 0,
                           .category = f->header.categories ? f->header.categories[column] : 0};
}

static qn_status begin_columns(filling *f, const char *task, qn_error *err) {
    const qn__special *special = f->header.special;
    qn_status status = QN_OK;
    f->column = qn__alloc(f->table->columns, sizeof *f->column, err);
    f->number = qn__alloc(f->header.shape.features, sizeof *f->number, err);
    if (!f->column || !f->number)
        return QN_MEMORY;
    for (uint64_t c = 0; c < f->table->columns && status == QN_OK; c++) {
        const uint64_t before = f->columns;
        if (special->column != c)
            add_column(f, c, QN__ARROW_FEATURE);
        else if (c == f->header.shape.label)
            add_column(f, c, QN__ARROW_LABEL);
        else if (c == f->header.shape.weight)
            add_column(f, c, QN__ARROW_WEIGHT);
        special += special->column == c;
        if (f->columns > before)
            status = qn__arrow_column_begin(&f->column[before], task, err);
    }
    return status;
}

/* Which columns may be wide, from the schema. */
static qn_status begin_gather(filling *f, const qn_data_options *options, qn_error *err) {
    const qn_status status =
        qn__wide_gather_begin(&f->gather, f->data, f->data->features, options->expected_rules, err);
    int real;
    for (uint64_t i = 0; status == QN_OK && i < f->columns; i++) {
        qn__arrow_column *c = &f->column[i];
        if (c->use != QN__ARROW_FEATURE || c->category ||
            !qn__arrow_may_be_wide(f->table, c->column, &real))
            continue;
        c->gather = &f->gather;
        qn__wide_gather_column(&f->gather, c->feature, real);
    }
    return status;
}

/* ------------------------------------------------------------------ portions */

/* Finds the plain columns, and whether bytes are enough: integers up to 255 in all features, none
 * missing. The columns of a table of floats need no look. */
static qn_status look_at_columns(filling *f, int *not_bytes, qn_error *err) {
    const int bytes = !f->made || f->data->type == QN_U8;
    qn_status status = QN_OK;
    f->plain = 0;
    for (uint64_t i = 0; i < f->columns && status == QN_OK; i++) {
        qn__arrow_column *c = &f->column[i];
        if (c->use != QN__ARROW_FEATURE)
            continue;
        c->there = !c->category && qn__arrow_is_plain(f->table, c->column);
        if (c->there)
            f->number[f->plain++] = (qn__arrow_number){c->column, c->feature, c->not_bytes};
        else if (bytes)
            status = qn__arrow_column_look(c, err);
    }
    qn__arrow_find_not_bytes(f->table, f->number, f->plain, f->table->pool);
    uint32_t plain = 0;
    *not_bytes = 0;
    for (uint64_t i = 0; i < f->columns; i++) {
        qn__arrow_column *c = &f->column[i];
        if (c->there)
            c->not_bytes = f->number[plain++].not_bytes;
        *not_bytes |= c->use == QN__ARROW_FEATURE && c->not_bytes;
    }
    return status;
}

static qn_status reserve(filling *f, qn_data_type type, qn_error *err) {
    qn_data *data = f->data;
    data->type = type;
    data->items = f->table->items;
    data->release = qn__free; /* first: without it the schema is a view's */
    f->made = 1;
    qn_status status = qn__data_need_schema(data, err);
    if (status == QN_OK)
        status = qn__table_space_make(data, err);
    for (uint64_t i = 0; i < f->columns && status == QN_OK; i++)
        status = qn__arrow_column_make_space(&f->column[i], err);
    return status;
}

/* A longer array, with what the first `kept` items have. `empty`: what others have; NULL: zeros. */
static qn_status lengthen(void **array, size_t size, uint64_t kept, uint64_t items,
                          const qn__wide_value *empty, qn_error *err) {
    if (!*array)
        return QN_OK;
    void *more = qn__alloc(items, size, err);
    if (!more)
        return QN_MEMORY;
    memcpy(more, *array, (size_t)kept * size);
    for (uint64_t i = kept; empty && i < items; i++)
        ((qn__wide_value *)more)[i] = *empty;
    qn__free(*array);
    *array = more;
    return QN_OK;
}

/* What a column keeps beside the matrix. */
static qn_status lengthen_column(qn__arrow_column *c, uint64_t kept, uint64_t items,
                                 qn_error *err) {
    qn__wide_column_state *wide = c->gather ? &c->gather->column[c->feature] : NULL;
    const qn__wide_value moment = {.whole = QN__WIDE_MISSING};
    const qn__wide_value missing = {.whole = wide ? qn__wide_missing(wide->held) : 0};
    qn_status status = lengthen((void **)&c->number, sizeof *c->number, kept, items, NULL, err);
    if (status == QN_OK)
        status = lengthen((void **)&c->value, sizeof *c->value, kept, items, &moment, err);
    if (status == QN_OK && wide)
        status = lengthen((void **)&wide->value, sizeof *wide->value, kept, items, &missing, err);
    return status;
}

/* Space for the items of a stream whose end is not known, at least twice as many as before. */
static qn_status grow(filling *f, qn_error *err) {
    qn_data *data = f->data;
    const uint64_t kept = f->table->first, twice = 2 * data->items;
    const uint64_t items = f->table->items > twice ? f->table->items : twice;
    qn_status status =
        lengthen((void **)&data->labels, sizeof *data->labels, kept, items, NULL, err);
    if (status == QN_OK)
        status = lengthen((void **)&data->targets, sizeof *data->targets, kept, items, NULL, err);
    if (status == QN_OK)
        status = lengthen((void **)&data->weights, sizeof *data->weights, kept, items, NULL, err);
    for (uint64_t i = 0; i < f->columns && status == QN_OK; i++)
        status = lengthen_column(&f->column[i], kept, items, err);
    data->items = items;
    return status == QN_OK ? qn__table_space_grow(data, kept, err) : status;
}

static qn_status take_portion(filling *f, qn_error *err) {
    int not_bytes = 0;
    qn_status status = look_at_columns(f, &not_bytes, err);
    if (status == QN_OK && !f->made)
        status = reserve(f, not_bytes ? QN_F32 : QN_U8, err);
    else if (status == QN_OK && f->table->items > f->data->items)
        status = grow(f, err);
    if (status == QN_OK && f->options->keep_doubles && !f->kept)
        status = qn__wide_gather_doubles(&f->gather, err);
    f->kept = 1;
    if (status == QN_OK && not_bytes && f->data->type == QN_U8)
        status = qn__table_space_widen(f->data, f->table->first, err);
    if (status != QN_OK)
        return status;
    const int done = qn__arrow_put_numbers(f->table, f->number, f->plain, f->data, f->table->pool);
    for (uint64_t i = 0; i < f->columns && status == QN_OK; i++) {
        f->column[i].there &= done; /* else the first value to be refused is looked for */
        status = qn__arrow_column_take(&f->column[i], err);
    }
    if (status != QN_OK || f->data->type == QN_U8)
        return status;
    return qn__arrow_gather(f->table, f->number, f->plain, &f->gather, f->table->pool, err);
}

static qn_status take_portions(filling *f, qn_error *err) {
    qn_status status;
    do {
        status = qn__arrow_read_parts(f->source, f->table, err);
        if (f->table->is_empty)
            qn__part_is_empty(f->data->part);
        if (status == QN_OK && f->table->rows > 0)
            status = take_portion(f, err);
    } while (status == QN_OK && qn__arrow_next_portion(f->source, f->table));
    f->data->items = f->table->items; /* there may be space for more */
    return status == QN_OK ? qn__arrow_check_end(f->table, err) : status;
}

/* ------------------------------------------------------------------ the end */

/* Categories get their numbers, item by item: the table may be larger than memory. */
static qn_status number_categories(filling *f, qn_error *err) {
    const qn_data *data = f->data;
    const qn__arrow_column **column =
        (const qn__arrow_column **)qn__alloc(f->columns, sizeof *column, err);
    if (!column)
        return QN_MEMORY;
    uint64_t count = 0;
    for (uint64_t i = 0; i < f->columns; i++)
        if (f->column[i].order)
            column[count++] = &f->column[i];
    for (uint64_t i = 0; i < data->items && count > 0; i++) {
        float *item = (float *)qn__table_space_values(data) + i * data->features;
        for (uint64_t k = 0; k < count; k++) {
            float *to = &item[column[k]->feature];
            if (!isnan(*to))
                *to = (float)column[k]->order[(uint32_t)*to];
        }
    }
    qn__free((void *)column);
    return QN_OK;
}

static void take_name(filling *f, const qn__arrow_column *c) {
    qn__schema *schema = f->data->schema;
    qn__columns_take_name(&f->header, c->column,
                          c->use == QN__ARROW_LABEL    ? &schema->label
                          : c->use == QN__ARROW_WEIGHT ? &f->data->weight_name
                                                       : &schema->feature[c->feature].name);
}

/* Gives the table the exact values that its columns have kept. */
static qn_status keep_exact(filling *f, qn_error *err) {
    qn_data *data = f->data;
    qn__exact *exact = qn__alloc(data->features, sizeof *exact, err);
    if (!exact)
        return QN_MEMORY;
    for (uint64_t i = 0; i < f->columns; i++)
        if (f->column[i].use == QN__ARROW_FEATURE)
            exact[f->column[i].feature] = f->column[i].exact;
    const qn_status status = qn__wide_make(data, exact, err);
    for (uint64_t i = 0; i < f->columns && status == QN_OK; i++) {
        const qn__arrow_column *c = &f->column[i];
        if (c->exact != QN__EXACT_NONE)
            memcpy((void *)(uintptr_t)qn__wide_column(data, c->feature), c->value,
                   (size_t)data->items * sizeof *c->value);
    }
    qn__free(exact);
    return status;
}

static qn_status settle(filling *f, const char *task, qn_error *err) {
    qn_status status = QN_OK;
    for (uint64_t i = 0; i < f->columns && status == QN_OK; i++) {
        status = qn__arrow_column_settle(&f->column[i], task, err);
        if (status == QN_OK)
            take_name(f, &f->column[i]);
    }
    if (status == QN_OK)
        status = number_categories(f, err);
    if (status == QN_OK)
        status = keep_exact(f, err);
    if (status == QN_OK)
        f->data->schema->target = qn__data_target(f->data);
    return status;
}

static qn_status note_row_numbers(const filling *f, const qn_data_options *options, qn_error *err) {
    const qn__schema *schema = f->data->schema;
    qn_status status = QN_OK;
    qn__text text = {0};
    for (uint64_t i = 0; i < f->columns && !options->expected_rules; i++) {
        const qn__arrow_column *c = &f->column[i];
        const int is_label = c->use == QN__ARROW_LABEL;
        const qn__seen_column seen = {.number = c->column + 1,
                                      .name = is_label ? schema->label
                                                       : schema->feature[c->feature].name,
                                      .named = f->table->columns > 1,
                                      .is_label = is_label,
                                      .feature = c->feature};
        if (c->use == QN__ARROW_FEATURE || (is_label && !options->label_column))
            qn__note_row_numbers(f->data, &seen, &text);
    }
    if (text.data && !text.failed)
        status = qn__data_add_note(f->data, text.data + 1, err);
    else if (text.failed)
        status = qn__fail_memory(err, 1, 1 << 12);
    qn__text_release(&text);
    return status;
}

static qn_status fill(filling *f, const qn_data_options *options, qn_error *err) {
    qn_status status = choose_columns(f->table, options, &f->header, err);
    if (status == QN_OK)
        status = note_index(&f->header, f->data, err);
    qn__columns_give_labels(&f->header, f->data);
    if (status == QN_OK)
        status = qn__columns_note(&f->header, f->data, err);
    if (status == QN_OK && f->source->want)
        status = tell_wanted(f->source, &f->header, err);
    if (status == QN_OK)
        status = begin_columns(f, options->task, err);
    if (status == QN_OK)
        status = begin_gather(f, options, err);
    if (status == QN_OK)
        status = take_portions(f, err);
    if (status == QN_OK)
        status = settle(f, options->task, err);
    if (status == QN_OK)
        status = qn__wide_gather_end(&f->gather, err);
    return status == QN_OK ? note_row_numbers(f, options, err) : status;
}

qn_status qn__arrow_fill(const qn__arrow_source *source, const qn_data_options *options,
                         qn_data *data, qn_error *err) {
    qn__arrow_table table;
    filling f = {.source = source, .options = options, .table = &table, .data = data};
    qn_status status = qn__arrow_read_schema(source, &table, err);
    table.words = qn__text_items_wanted(options);
    if (status == QN_OK) {
        status = fill(&f, options, err);
        qn__columns_release(&f.header);
    }
    for (uint64_t i = 0; i < f.columns; i++)
        qn__arrow_column_release(&f.column[i]);
    qn__wide_gather_release(&f.gather);
    qn__free(f.column);
    qn__free(f.number);
    qn__arrow_release(&table);
    return status;
}

/* ------------------------------------------------------------------ the public function */

static qn_status take_options(const qn_data_options *given, qn_data_options *options,
                              qn_error *err) {
    const qn_status status = qn__data_options_take("qn_data_from_arrow", given, options, err);
    if (status != QN_OK || (!options->labels_path && !options->header))
        return status;
    qn__fail(err, QN_USAGE, "a table of Arrow has no file of labels and no lines");
    return qn__remedy(err, QN_USAGE, "leave `%s` out",
                      options->labels_path ? "data.labels_path" : "data.header");
}

static qn_status open_stream(struct ArrowArrayStream *stream, const qn_data_options *given,
                             qn_data **out, qn_error *err) {
    *out = NULL;
    qn_data_options options;
    qn_status status = take_options(given, &options, err);
    if (status == QN_OK)
        status = qn__host_check(err);
    if (status != QN_OK)
        return status;
    const qn__arrow_source source = {.stream = stream,
                                     .name = "the Arrow stream",
                                     .portion_rows = options.keep_doubles ? 0 : PORTION_ROWS};
    qn_data *data = qn__alloc(1, sizeof *data, err);
    if (!data)
        return QN_MEMORY;
    data->format = "arrow";
    options.expected_categories = NULL; /* a column has its type */
    status = qn__arrow_fill(&source, &options, data, err);
    if (status == QN_OK)
        status = qn__label_columns_take(data, &options, source.name, err);
    if (status == QN_OK)
        status = qn__text_columns(data, 1, &options, source.name, err);
    if (status == QN_OK)
        status = qn__labels_settle(data, &options, 1, source.name, err);
    if (status == QN_OK)
        status = qn__data_finish_later(data, err);
    if (status != QN_OK) {
        qn_data_close(data);
        return status;
    }
    *out = data;
    return QN_OK;
}

qn_status qn_data_from_arrow(struct ArrowArrayStream *stream, const qn_data_options *options,
                             qn_data **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(stream, err);
    const qn_status status =
        out ? open_stream(stream, options, out, err) : qn__fail_null(err, __func__, "out");
    if (stream->release)
        stream->release(stream);
    return status;
}
