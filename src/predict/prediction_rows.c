#include "predict/prediction_rows.h"

#include "base/memory.h"
#include "model/formats/model.h"
#include "predict/next_lines.h"
#include "predict/tag_lines.h"
#include <stdio.h>
#include <string.h>

/* Bytes of a name such as "prediction16777216". */
enum { NAME = 32 };

/* ------------------------------------------------------------------ columns */

/* Columns beside those with a number: item, file, label, prediction, score; or those of next tokens
 * (7). */
enum { PLAIN = 8 };

static uint32_t numbered(const qn_predictions *p) {
    const uint32_t more = p->top > 1 ? 2 * (p->top - 1) : 0;
    return more + (p->shown && !p->next ? p->outputs : 0);
}

static void add_column(qn__prediction_table *t, const char *name, qn__sink_type type) {
    t->column[t->table.columns++] = (qn__sink_column){name, type, 0};
}

static void add_numbered(qn__prediction_table *t, const char *word, uint32_t number,
                         qn__sink_type type) {
    char *name = t->names + (size_t)t->table.columns * NAME;
    snprintf(name, NAME, "%.16s%u", word, number);
    add_column(t, name, type);
}

/* Classes are texts where they have names. */
static qn__sink_type class_type(const qn__schema *schema) {
    return schema && schema->classes > 0 ? QN__SINK_TEXT : QN__SINK_INTEGER;
}

static void add_tag_columns(qn__prediction_table *t, const qn_predictions *p) {
    add_column(t, "item", QN__SINK_INTEGER);
    if (p->data->several)
        add_column(t, "label", QN__SINK_TEXT);
    add_column(t, "prediction", QN__SINK_TEXT);
}

/* The probability of each label has a column with the label's name, or its number. */
static void add_label_columns(qn__prediction_table *t, const qn_predictions *p) {
    for (uint32_t o = 0; o < p->outputs; ++o)
        if (p->table && o < p->table->classes)
            add_column(t, p->table->class_name[o], QN__SINK_SINGLE);
        else
            add_numbered(t, p->kind->output, o, QN__SINK_SINGLE);
}

/* Whether items have files. A rank without images knows it by the format alone. */
static int has_files(const qn_data *data) {
    return data->items > 0 ? qn_data_item_name(data, 0) != NULL
                           : data->format && strncmp(data->format, "images", 6) == 0;
}

static void add_columns(qn__prediction_table *t, const qn_predictions *p) {
    add_column(t, "item", QN__SINK_INTEGER);
    if (has_files(p->data))
        add_column(t, "file", QN__SINK_TEXT);
    if (p->several) {
        add_label_columns(t, p);
        return;
    }
    if (qn__predicts_labelled(p))
        add_column(t, "label", p->real ? QN__SINK_SINGLE : class_type(p->data->schema));
    if (qn__predicts_one(p))
        add_column(t, "prediction", p->real ? QN__SINK_SINGLE : class_type(p->table));
    if (qn__predicts_one(p) && !p->real)
        add_column(t, "score", QN__SINK_SINGLE);
    for (uint32_t k = 2; k <= p->top; ++k) {
        add_numbered(t, "prediction", k, class_type(p->table));
        add_numbered(t, "score", k, QN__SINK_SINGLE);
    }
    for (uint32_t o = 0; p->shown && o < p->outputs; ++o)
        add_numbered(t, p->kind->output, o, QN__SINK_SINGLE);
}

static qn__next_lines next_lines(const qn_predictions *p) {
    return (qn__next_lines){.data = p->made ? p->made : p->data,
                            .first = p->first,
                            .counts = &p->tokens,
                            .positions = p->next->answers,
                            .each = p->shown,
                            .tokenizer = p->tokenizer};
}

qn_status qn__prediction_table_make(const qn_predictions *p, qn__prediction_table *out,
                                    qn_error *err) {
    const uint64_t most = (uint64_t)PLAIN + numbered(p);
    *out = (qn__prediction_table){.table = {.name = "predictions", .keys = 1}};
    out->column = qn__alloc(most, sizeof *out->column, err);
    out->names = out->column ? qn__alloc(most, NAME, err) : NULL;
    if (!out->names) {
        qn__free(out->column);
        out->column = NULL;
        return QN_MEMORY;
    }
    if (p->next) {
        const qn__next_lines lines = next_lines(p);
        out->table.columns = qn__next_columns(&lines, out->column);
        out->table.keys = p->shown ? 2 : 1;
    } else if (qn__predicts_tags(p)) {
        add_tag_columns(out, p);
    } else {
        add_columns(out, p);
    }
    out->table.column = out->column;
    return QN_OK;
}

void qn__prediction_table_release(qn__prediction_table *t) {
    qn__free(t->column);
    qn__free(t->names);
    *t = (qn__prediction_table){0};
}

/* ------------------------------------------------------------------ rows */

static qn__sink_cell whole(int64_t value) {
    return (qn__sink_cell){QN__SINK_INTEGER, {.whole = value}};
}

static qn__sink_cell single(float value) {
    return (qn__sink_cell){QN__SINK_SINGLE, {.number = value}};
}

static qn__sink_cell words(const char *text) {
    return (qn__sink_cell){QN__SINK_TEXT, {.text = text}};
}

/* A class by its name, or by its number where it has none. */
static qn__sink_cell class_cell(const qn__schema *schema, int32_t number) {
    return schema && (uint32_t)number < schema->classes ? words(schema->class_name[number])
                                                        : whole(number);
}

/* The class that follows `last` in the order of the outputs: the greatest of those that are less,
 * or equal with a later number. The number of outputs: there is none. */
static uint32_t next_class(const float *output, uint32_t outputs, uint32_t last) {
    uint32_t best = outputs;
    for (uint32_t o = 0; o < outputs; ++o) {
        const int later = output[o] < output[last] || (o > last && output[o] == output[last]);
        if (later && (best == outputs || output[o] > output[best]))
            best = o;
    }
    return best;
}

static uint32_t fill_top(const qn_predictions *p, uint64_t item, qn__sink_cell *cell) {
    const float *output = p->output + item * p->outputs;
    uint32_t o = (uint32_t)p->classes[item], used = 0;
    for (uint32_t k = 2; k <= p->top; ++k) {
        o = next_class(output, p->outputs, o);
        cell[used++] = class_cell(p->table, (int32_t)o);
        cell[used++] = single(output[o]);
    }
    return used;
}

/* The cells of an item; those of an item that lacks a value stay missing. */
static void fill(const qn_predictions *p, uint64_t item, qn__sink_cell *cell) {
    const char *name = qn_data_item_name(p->data, item);
    uint32_t used = 0;
    cell[used++] = whole((int64_t)(p->first + item));
    if (name)
        cell[used++] = words(name);
    if (p->real && qn__predicts_labelled(p))
        cell[used++] = single(p->data->targets[item] + 0.0f); /* no "-0" */
    if (!p->real && qn__predicts_labelled(p))
        cell[used++] = class_cell(p->data->schema, p->data->labels[item]);
    if (!qn__has_prediction(p, item))
        return;
    if (!p->real && !p->several)
        cell[used++] = class_cell(p->table, p->classes[item]);
    if (qn__predicts_one(p) && !p->several)
        cell[used++] = single(p->real ? p->scores[item] + 0.0f : p->scores[item]);
    if (p->top > 1)
        used += fill_top(p, item, cell + used);
    for (uint32_t o = 0; p->shown && o < p->outputs; ++o)
        cell[used++] = single(p->output[item * p->outputs + o]);
}

static qn_status add_tags(const qn_predictions *p, uint64_t item, qn__sink *sink, qn_error *err) {
    const qn__tag_lines lines = {.data = p->data,
                                 .answers = p->answers,
                                 .positions = p->several->answers,
                                 .rows = qn__recipe_vocabulary(qn__model_recipe_of(p->several)),
                                 .table = p->table};
    char *label = p->data->several ? qn__tag_line_of_labels(&lines, item, err) : NULL;
    char *tags = label || !p->data->several ? qn__tag_line(&lines, item, err) : NULL;
    const qn__sink_cell cells[] = {whole((int64_t)(p->first + item)), words(label), words(tags)};
    qn__sink_cell row[3] = {cells[0], cells[label ? 1 : 2], cells[2]};
    const qn_status status = tags ? qn__sink_add(sink, row, err) : QN_MEMORY;
    qn__free(label);
    qn__free(tags);
    return status;
}

static qn_status add_item(const qn_predictions *p, uint64_t item, uint32_t columns,
                          qn__sink_cell *cells, qn__sink *sink, qn_error *err) {
    memset(cells, 0, columns * sizeof *cells); /* all are missing */
    fill(p, item, cells);
    return qn__sink_add(sink, cells, err);
}

qn_status qn__prediction_rows_add(const qn_predictions *p, const qn__prediction_table *table,
                                  qn__sink *sink, qn_error *err) {
    const uint32_t columns = table->table.columns;
    const uint64_t first = p->shown ? p->range.row : p->range.text;
    const uint64_t end = p->shown ? p->range.row_end : p->range.text_end;
    qn__sink_cell *cells = qn__alloc(columns, sizeof *cells, err);
    qn_status status = cells ? QN_OK : QN_MEMORY;
    for (uint64_t item = first; status == QN_OK && item < end; ++item)
        if (p->next) {
            const qn__next_lines lines = next_lines(p);
            status = qn__next_add_rows(&lines, item, sink, err);
        } else {
            status = qn__predicts_tags(p) ? add_tags(p, item, sink, err)
                                          : add_item(p, item, columns, cells, sink, err);
        }
    qn__free(cells);
    return status;
}
