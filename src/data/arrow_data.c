/* Tables handed over by the Arrow C interfaces (docs/exactness.md 2.1.9). */
#include "base/argument.h"
#include "base/float_state.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/arrow_numbers.h"
#include "data/arrow_table.h"
#include "data/commas.h"
#include "data/csv_header.h"
#include "data/data_options.h"
#include "data/fill.h"
#include "data/label_values.h"
#include "data/labels.h"
#include "data/text_column.h"
#include "num/host.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* A column on its way into the data set. */
typedef struct filling {
    const qn__arrow_table *table;
    qn_data *data;
    uint64_t column;
    uint32_t feature;
    qn__arrow_kind kind;
    const qn__arrow_number
        *plain;         /* a feature whose values are there already; NULL: they are not */
    int category;       /* somebody said that the column holds categories */
    int odd;            /* a value that is no whole number up to 255 */
    qn__text_set texts; /* of TEXT */
    double *number;     /* labels of FLOAT */
} filling;

static qn_status refuse(const filling *f, uint64_t item, const char *remedy, qn_error *err) {
    return qn__arrow_refuse(f->table, f->column, item, remedy, err);
}

static qn_status refuse_number(const filling *f, uint64_t item, double number, qn_error *err) {
    qn__fail(err, QN_INPUT,
             isinf(number) ? "the value is infinite" : "the value is beyond the range of float32");
    return refuse(f, item,
                  "replace infinite values and scale others; NaN and null are missing values", err);
}

/* ------------------------------------------------------------------ features */

static qn_status find_odd(void *user, uint64_t item, const qn__arrow_cell *cell, qn_error *err) {
    filling *f = user;
    (void)item, (void)err;
    f->odd |= cell->missing || (uint64_t)cell->whole > 255;
    return QN_OK;
}

static qn_status put_byte(void *user, uint64_t item, const qn__arrow_cell *cell, qn_error *err) {
    const filling *f = user;
    (void)err;
    ((uint8_t *)f->data->memory)[item * f->data->features + f->feature] = (uint8_t)cell->whole;
    return QN_OK;
}

static void put_missing(filling *f, float *to) {
    qn__set_missing(to);
    f->data->missing = 1;
}

static qn_status put_float(void *user, uint64_t item, const qn__arrow_cell *cell, qn_error *err) {
    filling *f = user;
    float *to = (float *)f->data->memory + item * f->data->features + f->feature;
    *to = f->kind == QN__ARROW_FLOAT ? (float)cell->number
          : f->kind == QN__ARROW_INT ? (float)cell->whole
                                     : (float)(uint64_t)cell->whole;
    f->odd |= f->kind == QN__ARROW_FLOAT || cell->missing || (uint64_t)cell->whole > 255;
    if (cell->missing || isnan(*to))
        put_missing(f, to);
    return isinf(*to) ? refuse_number(f, item, cell->number, err) : QN_OK;
}

/* The text of a cell that is a category: a number as CSV files have it. 0: it is missing. */
static size_t text_of(const filling *f, const qn__arrow_cell *cell, char number[40],
                      const char **text) {
    *text = f->kind == QN__ARROW_TEXT ? cell->text : number;
    if (cell->missing || f->kind == QN__ARROW_EMPTY ||
        (f->kind == QN__ARROW_FLOAT && isnan(cell->number)))
        return 0;
    if (f->kind == QN__ARROW_TEXT)
        return cell->size;
    if (f->kind == QN__ARROW_FLOAT && cell->number == floor(cell->number) &&
        fabs(cell->number) < 0x1p53)
        snprintf(number, 40, "%.0f", cell->number);
    else if (f->kind == QN__ARROW_FLOAT)
        qn__float_text((float)cell->number, number);
    else if (f->kind == QN__ARROW_INT)
        snprintf(number, 40, "%" PRId64, cell->whole);
    else
        snprintf(number, 40, "%" PRIu64, (uint64_t)cell->whole);
    return strlen(number);
}

/* The number of a category in the order of appearance. */
static qn_status put_text(void *user, uint64_t item, const qn__arrow_cell *cell, qn_error *err) {
    filling *f = user;
    uint32_t number = 0;
    float *to = (float *)f->data->memory + item * f->data->features + f->feature;
    char digits[40];
    const char *text;
    const size_t size = text_of(f, cell, digits, &text);
    if (size == 0) {
        put_missing(f, to);
        return QN_OK;
    }
    const qn_status status = qn__text_column_add(&f->texts, text, size, 0, &number, err);
    *to = (float)number;
    return status == QN_INPUT ? refuse(f, item, "leave the column out with `data.drop`", err)
                              : status;
}

static qn_status settle_category(filling *f, qn_error *err) {
    qn__feature *feature = &f->data->schema->feature[f->feature];
    uint32_t *order = qn__text_column_sort(&f->texts, 0, err);
    if (!order)
        return QN_MEMORY;
    float *to = (float *)f->data->memory + f->feature;
    for (uint64_t i = 0; i < f->data->items; i++, to += f->data->features)
        if (!isnan(*to))
            *to = (float)order[(uint32_t)*to];
    qn__free(order);
    qn__text_column_take(&f->texts, &feature->categories, &feature->category);
    if (!f->category && f->data->comma == 0 && qn__comma_example(feature))
        f->data->comma = f->feature + 1;
    return QN_OK;
}

/* Its values are there already. */
static void note_plain(const filling *f) {
    f->data->schema->feature[f->feature].bytes = !f->plain->odd && f->data->type == QN_F32;
}

static qn_status fill_feature(filling *f, qn_error *err) {
    const int text = f->kind == QN__ARROW_TEXT || f->category;
    if (f->plain) {
        note_plain(f);
        return QN_OK;
    }
    qn__arrow_take *put = text ? put_text : f->data->type == QN_U8 ? put_byte : put_float;
    const qn_status status = qn__arrow_each(f->table, f->column, put, f, err);
    f->data->schema->feature[f->feature].bytes =
        !text && !f->odd && f->kind != QN__ARROW_EMPTY && f->data->type == QN_F32;
    return status == QN_OK && text ? settle_category(f, err) : status;
}

/* ------------------------------------------------------------------ labels */

static qn_status refuse_missing(const filling *f, uint64_t item, qn_error *err) {
    qn__fail(err, QN_INPUT, "the label is missing");
    return refuse(f, item,
                  "fill it in, leave the row out, or name another column with "
                  "`data.label_column`; `data.unlabelled`: no labels",
                  err);
}

static qn_status take_label(void *user, uint64_t item, const qn__arrow_cell *cell, qn_error *err) {
    filling *f = user;
    qn_data *data = f->data;
    uint32_t number = 0;
    if (cell->missing || (f->kind == QN__ARROW_FLOAT && isnan(cell->number)) ||
        (f->kind == QN__ARROW_TEXT && cell->size == 0))
        return refuse_missing(f, item, err);
    if (f->kind == QN__ARROW_FLOAT) {
        f->number[item] = cell->number;
        return isfinite((float)cell->number) ? QN_OK : refuse_number(f, item, cell->number, err);
    }
    if (f->kind == QN__ARROW_TEXT) {
        const qn_status status =
            qn__text_column_add(&f->texts, cell->text, cell->size, 1, &number, err);
        data->labels[item] = (int32_t)number;
        return status == QN_INPUT
                   ? refuse(f, item, "name another column with `data.label_column`", err)
                   : status;
    }
    const int is_signed = f->kind == QN__ARROW_INT;
    if (data->targets) {
        data->targets[item] = is_signed ? (float)cell->whole : (float)(uint64_t)cell->whole;
        return QN_OK;
    }
    if (cell->whole > INT32_MAX || cell->whole < (is_signed ? -(int64_t)INT32_MAX : 0)) {
        qn__fail(err, QN_INPUT, "the label is 2^31 or more");
        return refuse(f, item, QN__QUANTITIES_REMEDY, err);
    }
    data->labels[item] = (int32_t)cell->whole;
    return QN_OK;
}

static qn_status settle_numbers(filling *f, const char *task, qn_error *err) {
    uint64_t item = 0;
    const qn_status status = qn__labels_from_numbers(f->data, f->number, task, &item, err);
    return status == QN_INPUT ? refuse(f, item, QN__QUANTITIES_REMEDY, err) : status;
}

static qn_status fill_labels(filling *f, const char *task, qn_error *err) {
    const int regress = task && strcmp(task, "regress") == 0;
    const int real = f->kind == QN__ARROW_FLOAT, text = f->kind == QN__ARROW_TEXT;
    qn_status status = QN_OK;
    if (text && regress) {
        qn__fail(err, QN_INPUT, "the labels are texts, and regression needs numbers");
        return refuse(f, 0,
                      "leave `data.task` out, or name another column with "
                      "`data.label_column`",
                      err);
    }
    if (real)
        status =
            (f->number = qn__alloc(f->data->items, sizeof *f->number, err)) ? QN_OK : QN_MEMORY;
    else
        status = regress ? qn__data_need_targets(f->data, err) : qn__data_need_labels(f->data, err);
    if (status == QN_OK)
        status = qn__arrow_each(f->table, f->column, take_label, f, err);
    if (status == QN_OK && text)
        status = qn__labels_from_texts(f->data, &f->texts, err);
    return status == QN_OK && real ? settle_numbers(f, task, err) : status;
}

/* ------------------------------------------------------------------ weights */

static qn_status take_weight(void *user, uint64_t item, const qn__arrow_cell *cell, qn_error *err) {
    filling *f = user;
    float weight = f->kind == QN__ARROW_FLOAT ? (float)cell->number
                   : f->kind == QN__ARROW_INT ? (float)cell->whole
                                              : (float)(uint64_t)cell->whole;
    if (cell->missing || !isfinite(weight) || weight < 0.0f) {
        qn__fail(err, QN_INPUT, "the weight is not a finite number from 0");
        return refuse(f, item, "correct it, or name another column with `data.weight`", err);
    }
    f->data->weights[item] = weight;
    return QN_OK;
}

static qn_status fill_weights(filling *f, qn_error *err) {
    if (f->kind == QN__ARROW_TEXT) {
        qn__fail(err, QN_INPUT, "the weights are texts");
        return refuse(f, 0, "name a column of numbers with `data.weight`", err);
    }
    f->data->weights = qn__alloc(f->data->items, sizeof *f->data->weights, err);
    if (!f->data->weights)
        return QN_MEMORY;
    const qn_status status = qn__arrow_each(f->table, f->column, take_weight, f, err);
    return status == QN_OK
               ? qn__data_check_weights(f->data->weights, f->data->items, f->table->name, err)
               : status;
}

/* ------------------------------------------------------------------ the table */

/* The columns that the options choose, by the rules for CSV. */
static qn_status choose_columns(const qn__arrow_table *table, const qn_data_options *options,
                                qn__csv_header *header, qn_error *err) {
    *header = (qn__csv_header){.path = table->name};
    header->shape.columns = table->columns;
    header->names = qn__alloc(table->columns + 1, sizeof *header->names, err);
    if (!header->names)
        return QN_MEMORY;
    for (uint64_t i = 0; i < table->columns; i++) {
        const char *name = table->schema.children[i]->name;
        if (!(header->names[i] = qn__copy_text(name ? name : "", err)))
            return QN_MEMORY;
    }
    const qn_status status = qn__csv_choose_columns(header, options, err);
    if (status == QN_INPUT)
        qn__at(err, "the schema of %s", table->name);
    return status;
}

/* 1 for a column that is a feature; *special goes on to the next that is none. */
static int is_feature(const qn__special **special, uint64_t column) {
    if ((*special)->column != column)
        return 1;
    ++*special;
    return 0;
}

/* The features that are plain columns of numbers, in their order. */
typedef struct plain_columns {
    qn__arrow_number *number;
    uint32_t count;
    int done; /* their values are in the data set */
} plain_columns;

/* A column that is a feature and no plain one; odd: it is no column of bytes. */
static qn_status look_at(const qn__arrow_table *table, uint64_t column, int category, int *odd,
                         qn_error *err) {
    filling f = {.table = table, .column = column};
    qn_status status = qn__arrow_kind_of(table, column, &f.kind, err);
    f.odd = (f.kind != QN__ARROW_INT && f.kind != QN__ARROW_UINT) || category;
    if (status == QN_OK && !f.odd)
        status = qn__arrow_each(table, column, find_odd, &f, err);
    *odd = f.odd;
    return status;
}

/* Finds the plain columns, and whether bytes are enough: integers up to 255 in all features, none
 * missing. */
static qn_status choose_type(const qn__arrow_table *table, const qn__csv_header *header,
                             plain_columns *plain, qn_data *data, qn_error *err) {
    const qn__special *special = header->special;
    uint32_t feature = 0;
    plain->number = qn__alloc(header->shape.features, sizeof *plain->number, err);
    if (!plain->number)
        return QN_MEMORY;
    data->type = QN_U8;
    qn_status status = QN_OK;
    for (uint64_t c = 0; c < table->columns; c++) {
        const int category = header->categories && header->categories[c];
        int odd = 0;
        if (!is_feature(&special, c))
            continue;
        if (!category && qn__arrow_is_plain(table, c))
            plain->number[plain->count++] = (qn__arrow_number){.column = c, .feature = feature};
        else
            status = look_at(table, c, category, &odd, err);
        if (status != QN_OK)
            return status;
        data->type = odd ? QN_F32 : data->type;
        feature++;
    }
    qn__arrow_find_odd(table, plain->number, plain->count, table->pool);
    for (uint32_t k = 0; k < plain->count; k++)
        data->type = plain->number[k].odd ? QN_F32 : data->type;
    return QN_OK;
}

static qn_status make_room(const qn__arrow_table *table, const qn__csv_header *header,
                           plain_columns *plain, qn_data *data, qn_error *err) {
    data->items = table->items;
    data->features = header->shape.features;
    data->release = qn__free; /* first: without it the schema is a view's */
    if (qn__data_need_schema(data, err) != QN_OK)
        return QN_MEMORY;
    const qn_status status = choose_type(table, header, plain, data, err);
    if (status != QN_OK)
        return status;
    data->memory = qn__alloc(data->items, qn__data_stride(data), err);
    data->values = data->memory;
    if (data->memory)
        plain->done = qn__arrow_put_numbers(table, plain->number, plain->count, data, table->pool);
    return data->memory ? QN_OK : QN_MEMORY;
}

static qn_status fill_column(filling *f, const qn__csv_header *header, const char *task,
                             qn_error *err) {
    const int label = f->column == header->shape.label, weight = f->column == header->shape.weight;
    qn__schema *schema = f->data->schema;
    f->category = header->categories && header->categories[f->column];
    qn_status status = qn__arrow_kind_of(f->table, f->column, &f->kind, err);
    if (status == QN_OK)
        status = label    ? fill_labels(f, task, err)
                 : weight ? fill_weights(f, err)
                          : fill_feature(f, err);
    if (status == QN_OK)
        qn__csv_header_take_name(header, f->column,
                                 label    ? &schema->label
                                 : weight ? &f->data->weight_name
                                          : &schema->feature[f->feature].name);
    qn__text_set_release(&f->texts);
    qn__free(f->number);
    return status;
}

static qn_status fill_columns(const qn__arrow_table *table, const qn__csv_header *header,
                              const char *task, plain_columns *plain, qn_data *data,
                              qn_error *err) {
    const qn__special *special = header->special;
    const qn__arrow_number *next = plain->number, *end = next;
    uint32_t feature = 0;
    qn_status status = make_room(table, header, plain, data, err);
    if (status == QN_OK && plain->done) {
        next = plain->number;
        end = next + plain->count;
    }
    for (uint64_t c = 0; c < table->columns && status == QN_OK; c++) {
        const int is_one = is_feature(&special, c);
        filling f = {.table = table, .data = data, .column = c, .feature = feature};
        if (next < end && next->column == c)
            f.plain = next++;
        if (is_one || c == header->shape.label || c == header->shape.weight)
            status = fill_column(&f, header, task, err);
        feature += (uint32_t)is_one;
    }
    if (status == QN_OK)
        data->schema->target = qn__data_target(data);
    return status;
}

/* A column is of use unless the options leave it out. */
static qn_status tell_wanted(const qn__arrow_source *source, const qn__csv_header *header,
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

static qn_status fill(const qn__arrow_source *source, qn__arrow_table *table,
                      const qn_data_options *options, qn_data *data, qn_error *err) {
    qn__csv_header header;
    plain_columns plain = {0};
    qn_status status = choose_columns(table, options, &header, err);
    if (status == QN_OK && source->want)
        status = tell_wanted(source, &header, err);
    if (status == QN_OK)
        status = qn__arrow_read_parts(source, table, err);
    if (status == QN_OK)
        status = fill_columns(table, &header, options->task, &plain, data, err);
    qn__free(plain.number);
    qn__csv_header_release(&header);
    return status;
}

qn_status qn__arrow_fill(const qn__arrow_source *source, const qn_data_options *options,
                         qn_data *data, qn_error *err) {
    qn__arrow_table table;
    qn_status status = qn__arrow_read_schema(source, &table, err);
    if (status == QN_OK)
        status = fill(source, &table, options, data, err);
    qn__arrow_release(&table);
    return status;
}

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
    const qn__arrow_source source = {.stream = stream, .name = "the Arrow stream"};
    qn_data *data = qn__alloc(1, sizeof *data, err);
    if (!data)
        return QN_MEMORY;
    data->format = "arrow";
    options.expected_categories = NULL; /* a column has its type */
    status = qn__arrow_fill(&source, &options, data, err);
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
