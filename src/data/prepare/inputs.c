#include "data/prepare/inputs.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "base/text/text.h"
#include "data/cells/category_find.h"
#include "data/cells/commas.h"
#include "data/cells/date_column.h"
#include "data/parts/parts.h"
#include "data/prepare/coded_items.h"
#include "data/table/date_parts.h"
#include "data/table/dates.h"
#include "data/table/remote_rows.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* No category of the model. */
#define NOWHERE QN__NO_CATEGORY
/* Columns that are told of one by one. */
enum { TOLD = 5 };

static uint32_t categories_of(const qn__schema *table, uint32_t column) {
    return table ? table->feature[column].categories : 0;
}

static uint32_t dates_of(const qn__schema *table, uint32_t column) {
    return table ? table->feature[column].dates : 0;
}

uint64_t qn__inputs(const qn__schema *table, uint32_t features) {
    uint64_t inputs = 0;
    for (uint32_t k = 0; table && k < table->features; ++k)
        inputs += qn__feature_inputs(&table->feature[k]);
    return table ? inputs : features;
}

uint32_t qn_data_inputs(const qn_data *data) {
    const uint64_t inputs = data ? qn__inputs(data->schema, data->features) : 0;
    return inputs < UINT32_MAX ? (uint32_t)inputs : UINT32_MAX;
}

void qn__keep_categories(const qn__schema *table, float *mean, float *deviation) {
    const uint64_t texts = qn__schema_text_inputs(table);
    uint64_t at = 0;
    for (uint32_t k = 0; table && k < table->features; ++k) {
        const qn__feature *feature = &table->feature[k];
        const uint32_t inputs = feature->text ? 0 : qn__feature_inputs(feature);
        for (uint32_t i = 0; i < inputs; ++i) {
            if (feature->categories == 0 && !qn__date_is_choice(feature->dates, i))
                continue;
            mean[at + i] = 0.0f;
            deviation[at + i] = 1.0f;
        }
        at += inputs;
    }
    for (const uint64_t end = at + texts; at < end; ++at) { /* they come last */
        mean[at] = 0.0f;
        deviation[at] = 1.0f;
    }
}

/* ------------------------------------------------------------------------------------- refusals */

qn_status qn__refuse_missing(const qn_data *data, const char *what, const char *remedy,
                             qn_error *err) {
    qn__missing_counts missing;
    char name[160], others[64] = "";
    if (!qn__has_missing(data))
        return QN_OK;
    if (qn__missing_count(data, &missing, err) != QN_OK)
        return QN_MEMORY;
    if (missing.columns > 1)
        snprintf(others, sizeof others, ", and %u other column%s some", missing.columns - 1,
                 missing.columns > 2 ? "s" : "");
    qn__column_name(data->schema, missing.feature, name, sizeof name);
    qn__fail(err, QN_INPUT,
             "%s has %" PRIu64 " missing value%s%s; %" PRIu64 " of %" PRIu64
             " items lack one or more",
             name, missing.in_column, missing.in_column == 1 ? "" : "s", others, missing.items,
             data->items);
    qn__at(err, "%s, item %" PRIu64 " (from 0)", what, missing.item);
    return qn__remedy(err, QN_INPUT, "%s", remedy);
}

/* A text of the column with a remedy of its own; NULL: there is none. */
static const char *special_text(const qn__feature *feature) {
    uint32_t i = 0;
    while (i < feature->categories && !qn__text_remedy(feature->category[i]))
        i++;
    return i < feature->categories ? feature->category[i] : NULL;
}

static qn_status refuse_categories(const qn_data *raw, uint32_t column, const char *what,
                                   qn_error *err) {
    char name[160];
    qn__column_name(raw->schema, column, name, sizeof name);
    const qn__feature *feature = &raw->schema->feature[column];
    const char *text = special_text(feature);
    qn__fail(err, QN_MISMATCH, "%s holds texts such as \"%s\", and the model takes numbers there",
             name, text ? text : feature->category[0]);
    qn__at(err, "%s", what);
    return qn__remedy(err, QN_MISMATCH, "%s",
                      text ? qn__text_remedy(text)
                           : "give a file whose columns hold what those of the training data hold");
}

/* A column of dates where the model has none, or the other way round. */
static qn_status refuse_dates(const qn_data *raw, uint32_t column, int dates, const char *what,
                              qn_error *err) {
    char name[160];
    const char *text = dates ? NULL : special_text(&raw->schema->feature[column]);
    qn__column_name(raw->schema, column, name, sizeof name);
    if (text) {
        qn__fail(err, QN_MISMATCH, "%s holds \"%s\", and the model takes dates there", name, text);
        qn__at(err, "%s", what);
        return qn__remedy(err, QN_MISMATCH, "%s", qn__text_remedy(text));
    }
    qn__fail(err, QN_MISMATCH,
             dates ? "%s holds dates, and in the training data it does not"
                   : "%s does not hold dates, and in the training data it does",
             name);
    qn__at(err, "%s", what);
    return qn__remedy(err, QN_MISMATCH,
                      dates ? "give a file whose columns hold what those of the training data hold"
                            : "write dates as 2026-11-28 or 2026-11-28T13:30:00, or say how they "
                              "are written with `data.date_format`");
}

/* -------------------------------------------------------------------------------------- making */

/* What becomes of a column. */
typedef struct column {
    uint32_t at, categories; /* first input; 0 categories: a number or a date */
    uint32_t dates;          /* the model's parts of a date; 0: not a date */
    float fill;
    uint32_t *index;           /* category of the table -> of the model, or NOWHERE */
    uint32_t indexed;          /* categories of the table; 0: it holds numbers */
    qn__category_value *value; /* of the model's categories, or NULL */
    uint64_t missing, unseen;  /* categories */
} column;

typedef struct encoder {
    const qn__encoding *how;
    const qn_data *raw;
    const char *what;
    column *column;
    uint32_t inputs;
    int uncounted; /* 1: what is missing or unseen is not counted: several threads encode */
} encoder;

/* A column that the model knows as categories may hold nothing but numbers or days in another file:
 * then their texts are the categories. */
static uint32_t category_of(const encoder *e, uint32_t k, float value) {
    const column *c = &e->column[k];
    char text[QN__MOMENT_TEXT];
    if (c->indexed)
        return value >= 0 && value < (float)c->indexed ? c->index[(uint32_t)value] : NOWHERE;
    if (dates_of(e->raw->schema, k))
        qn__moment_text(qn__moment_of_days(value), 0, 0, text);
    else
        qn__float_text(value, text);
    return qn__category_find(&e->how->table->feature[k], c->value, text);
}

static int is_all_missing(const qn_data *raw, uint32_t k) {
    uint64_t i = 0;
    if (raw->type != QN_F32)
        return 0;
    while (i < raw->items && qn__is_missing(((const float *)qn__data_item(raw, i))[k]))
        ++i;
    return i == raw->items;
}

static qn_status prepare_column(encoder *e, uint32_t k, qn_error *err) {
    const qn__schema *table = e->how->table, *own = e->raw->schema;
    column *c = &e->column[k];
    c->categories = categories_of(table, k);
    c->dates = dates_of(table, k);
    c->indexed = categories_of(own, k);
    c->fill = e->how->fill ? e->how->fill[k] : 0.0f;
    const int days = dates_of(own, k) && !own->feature[k].time;
    if (table && table->feature[k].text)
        return QN_OK; /* lists.h */
    if (!c->dates != !dates_of(own, k) && !(days && c->categories) &&
        (dates_of(own, k) || !is_all_missing(e->raw, k)))
        return refuse_dates(e->raw, k, dates_of(own, k) != 0, e->what, err);
    if (c->categories == 0 && c->indexed)
        return refuse_categories(e->raw, k, e->what, err);
    if (c->categories > 0 && e->how->by_value &&
        qn__category_values(&table->feature[k], &c->value, err) != QN_OK)
        return QN_MEMORY;
    if (c->indexed == 0)
        return QN_OK;
    if (!(c->index = qn__alloc(c->indexed, sizeof *c->index, err)))
        return QN_MEMORY;
    for (uint32_t i = 0; i < c->indexed; ++i)
        c->index[i] = qn__category_find(&table->feature[k], c->value, own->feature[k].category[i]);
    return QN_OK;
}

static qn_status prepare(encoder *e, qn_error *err) {
    e->column = qn__alloc(e->how->features, sizeof *e->column, err);
    qn_status status = e->column ? QN_OK : QN_MEMORY;
    for (uint32_t k = 0, at = 0; k < e->how->features && status == QN_OK; ++k) {
        status = prepare_column(e, k, err);
        e->column[k].at = at;
        at += e->how->table ? qn__feature_inputs(&e->how->table->feature[k]) : 1;
    }
    return status;
}

/* The input that is 1 for this value of a column of categories, or NOWHERE. */
static uint32_t hot(encoder *e, uint32_t k, float value) {
    column *c = &e->column[k];
    const uint32_t category = qn__is_missing(value) ? NOWHERE : category_of(e, k, value);
    if (!e->uncounted) {
        c->missing += qn__is_missing(value) != 0 ? 1u : 0u;
        c->unseen += category == NOWHERE && !qn__is_missing(value) ? 1u : 0u;
    }
    return category == NOWHERE ? NOWHERE : c->at + category;
}

/* The numbers of a missing date are those of the day that stands for it; of the others, which are
 * one of several, it has none. */
static void encode_date(encoder *e, uint64_t item, uint32_t k, float days, float *to) {
    column *c = &e->column[k];
    if (!qn__is_missing(days)) {
        qn__date_encode(c->dates, qn__data_moment(e->raw, item, k), to);
        return;
    }
    c->missing += e->uncounted ? 0u : 1u;
    qn__date_encode_numbers(c->dates, qn__moment_of_days(c->fill), to);
}

/* `to` holds zeros. */
static void encode_floats(encoder *e, uint64_t item, const float *from, float *to) {
    for (uint32_t k = 0; k < e->how->features; ++k) {
        const column *c = &e->column[k];
        if (c->dates) {
            encode_date(e, item, k, from[k], to + c->at);
            continue;
        }
        if (c->categories == 0) {
            to[c->at] = qn__is_missing(from[k]) ? c->fill : from[k];
            continue;
        }
        const uint32_t input = hot(e, k, from[k]);
        if (input != NOWHERE)
            to[input] = 1.0f;
    }
}

static void encode_bytes(encoder *e, const uint8_t *from, uint8_t *to) {
    for (uint32_t k = 0; k < e->how->features; ++k) {
        const column *c = &e->column[k];
        if (c->categories == 0) {
            to[c->at] = from[k];
            continue;
        }
        const uint32_t input = hot(e, k, (float)from[k]);
        if (input != NOWHERE)
            to[input] = 1;
    }
}

/* "age", "city=Bern": for messages about inputs. */
static int name_input(qn__schema *inputs, uint32_t at, const qn__feature *from, uint32_t category,
                      qn_error *err) {
    char text[160], part[32];
    if (!from->name)
        return 1;
    if (from->dates) {
        qn__date_input_name(from->dates, category, part);
        snprintf(text, sizeof text, "%.110s.%s", from->name, part);
    } else if (from->categories)
        snprintf(text, sizeof text, "%.70s=%.70s", from->name, from->category[category]);
    else
        snprintf(text, sizeof text, "%.150s", from->name);
    inputs->feature[at].name = qn__copy_text(text, err);
    return inputs->feature[at].name != NULL;
}

static qn__schema *name_inputs(const encoder *e, qn_error *err) {
    qn__schema *inputs = qn__schema_create(e->inputs, err);
    int done = inputs != NULL;
    for (uint32_t k = 0; done && e->how->table && k < e->how->features; ++k) {
        const qn__feature *from = &e->how->table->feature[k];
        const uint32_t width = qn__feature_inputs(from);
        for (uint32_t c = 0; done && c < width; ++c)
            done = name_input(inputs, e->column[k].at + c, from, c, err);
    }
    if (done)
        return inputs;
    qn__schema_free(inputs);
    return NULL;
}

static qn_status copy_labels(const qn_data *raw, qn_data *table, qn_error *err) {
    table->labels = raw->labels ? qn__alloc(raw->items, sizeof *table->labels, err) : NULL;
    table->targets = raw->targets ? qn__alloc(raw->items, sizeof *table->targets, err) : NULL;
    table->weights = raw->weights ? qn__alloc(raw->items, sizeof *table->weights, err) : NULL;
    if ((raw->labels && !table->labels) || (raw->targets && !table->targets) ||
        (raw->weights && !table->weights))
        return QN_MEMORY;
    if (raw->labels)
        memcpy(table->labels, raw->labels, raw->items * sizeof *table->labels);
    if (raw->targets)
        memcpy(table->targets, raw->targets, raw->items * sizeof *table->targets);
    if (raw->weights)
        memcpy(table->weights, raw->weights, raw->items * sizeof *table->weights);
    return qn__several_copy(raw, NULL, raw->items, &table->several, err);
}

/* The table of inputs, without labels and values. */
static qn_data *begin_table(const encoder *e, qn_error *err) {
    const qn_data *raw = e->raw;
    qn_data *table = qn__alloc(1, sizeof *table, err);
    if (!table)
        return NULL;
    table->type = raw->type;
    table->items = raw->items;
    table->features = e->inputs;
    table->classes = raw->classes;
    table->format = raw->format;
    memcpy(table->digest, qn_data_digest(raw), sizeof table->digest);
    table->release = qn__free;
    table->schema = name_inputs(e, err);
    if (table->schema)
        return table;
    qn_data_close(table);
    return NULL;
}

/* The same with labels, and space for values. */
static qn_data *make_table(const encoder *e, qn_error *err) {
    qn_data *table = begin_table(e, err);
    if (!table)
        return NULL;
    table->memory = qn__alloc(table->items, qn__data_stride(table), err);
    table->values = table->memory;
    if (table->memory && copy_labels(e->raw, table, err) == QN_OK)
        return table;
    qn_data_close(table);
    return NULL;
}

static void encode_item(encoder *e, uint64_t item, const void *from, void *to) {
    if (e->raw->type == QN_U8)
        encode_bytes(e, from, to);
    else
        encode_floats(e, item, from, to);
}

static void fill_table(encoder *e, qn_data *table) {
    const size_t stride = qn__data_stride(table);
    uint8_t *to = table->memory;
    for (uint64_t i = 0; i < table->items; ++i, to += stride)
        encode_item(e, i, qn__data_item(e->raw, i), to);
}

/* ------------------------------------------------------------------------------------- telling */

static void tell(const qn__encoding_notes *notes, const char *text) {
    notes->tell(notes->user, text);
    qn__float_state_set();
}

static void tell_column(const encoder *e, const qn__encoding_notes *notes, uint32_t k) {
    const column *c = &e->column[k];
    char name[160], text[512];
    qn__column_name(e->how->table, k, name, sizeof name);
    if (c->unseen > 0) {
        snprintf(text, sizeof text,
                 "%s: %" PRIu64 " value%s of %s %s of the model; all inputs of the "
                 "column are 0 there",
                 notes->what, c->unseen, c->unseen == 1 ? "" : "s", name,
                 c->unseen == 1 ? "is not a category" : "are not categories");
        tell(notes, text);
    }
    if (c->missing > 0) {
        snprintf(text, sizeof text, "%s: %" PRIu64 " %s%s of %s %s missing; %s", notes->what,
                 c->missing, c->dates ? "date" : "value", c->missing == 1 ? "" : "s", name,
                 c->missing == 1 ? "is" : "are",
                 c->dates ? "its numbers are those of another day there"
                          : "all inputs of the column are 0 there");
        tell(notes, text);
    }
}

static void tell_all(const encoder *e, const qn__encoding_notes *notes) {
    uint32_t columns = 0;
    uint64_t others = 0;
    char text[256];
    for (uint32_t k = 0; notes->tell && k < e->how->features; ++k) {
        const column *c = &e->column[k];
        if (c->unseen + c->missing == 0)
            continue;
        if (++columns <= TOLD)
            tell_column(e, notes, k);
        else
            others += c->unseen + c->missing;
    }
    if (columns <= TOLD)
        return;
    snprintf(text, sizeof text,
             "%s: %u more columns have %" PRIu64 " values that are missing or not "
             "categories of the model",
             notes->what, columns - TOLD, others);
    tell(notes, text);
}

static int has_categories(const qn__encoding *how) {
    uint32_t k = 0;
    while (k < how->features && categories_of(how->table, k) == 0)
        ++k;
    return k < how->features;
}

/* Whether the matrix of inputs differs from that of the columns. */
static int is_plain(const qn__encoding *how, const qn_data *raw) {
    for (uint32_t k = 0; k < how->features; ++k)
        if (categories_of(how->table, k) || categories_of(raw->schema, k) ||
            dates_of(how->table, k) || dates_of(raw->schema, k))
            return 0;
    return !qn__has_missing(raw);
}

/* Where most of the inputs come from: `column "zip" gives 4000 of 4012 inputs`. */
static void show_widest(const qn__encoding *how, uint32_t inputs, char text[256]) {
    uint32_t widest = 0;
    char name[160];
    for (uint32_t k = 1; k < how->features; ++k)
        if (categories_of(how->table, k) > categories_of(how->table, widest))
            widest = k;
    const uint32_t categories = categories_of(how->table, widest);
    if (categories == 0)
        snprintf(text, 256, "each item has %" PRIu32 " inputs", inputs);
    else
        snprintf(text, 256, "%s gives %" PRIu32 " of %" PRIu32 " inputs",
                 qn__column_name(how->table, widest, name, sizeof name), categories, inputs);
}

static double bytes_of(const qn_data *raw, uint64_t inputs) {
    return (double)raw->items * (double)inputs * qn__element_of(raw->type)->size;
}

double qn__inputs_bytes(const qn__encoding *how, const qn_data *raw) {
    return is_plain(how, raw) || qn__coded_items_possible(raw)
               ? 0
               : bytes_of(raw, qn__inputs(how->table, how->features) -
                                   qn__schema_text_inputs(how->table));
}

static qn_status check_size(const encoder *e, const qn__encoding_notes *notes, qn_error *err) {
    char widest[256];
    show_widest(e->how, e->inputs, widest);
    return qn__inputs_check_size(bytes_of(e->raw, e->inputs), widest, notes, err);
}

static void release(encoder *e) {
    for (uint32_t k = 0; e->column && k < e->how->features; ++k) {
        qn__free(e->column[k].index);
        qn__free(e->column[k].value);
    }
    qn__free(e->column);
}

/* ------------------------------------------------------------------ rows of several ranks */

/* An encoder that lives as long as its table. */
typedef struct kept_encoder {
    encoder own;
    qn__encoding how;
} kept_encoder;

static void code_row(void *user, const void *row, void *item) {
    const kept_encoder *k = user;
    encoder e = k->own;
    qn_data one = *e.raw; /* of the row alone */
    one.items = 1;
    one.values = row;
    e.raw = &one;
    encode_item(&e, 0, row, item);
}

static void release_kept(void *user) {
    kept_encoder *k = user;
    release(&k->own);
    qn__free(k);
}

/* Categories of the rows that the model does not have were to be counted in all rows. */
static int has_unseen(const encoder *e) {
    for (uint32_t k = 0; k < e->how->features; ++k) {
        const column *c = &e->column[k];
        if (c->categories > 0 && c->indexed == 0)
            return 1;
        for (uint32_t i = 0; c->categories > 0 && i < c->indexed; ++i)
            if (c->index[i] == NOWHERE)
                return 1;
    }
    return 0;
}

/* How many values of categories and dates are missing: each rank has told it. */
static void count_missing(const encoder *e) {
    const qn_parts *parts = qn__data_remote(e->raw)->parts;
    for (uint32_t k = 0; k < e->how->features; ++k)
        if (e->column[k].categories || e->column[k].dates)
            e->column[k].missing = qn__parts_missing(parts, k);
}

/* The items are made when they are touched; their labels are those of `raw`. */
static qn_status encode_later(encoder *e, qn_data **out, qn_error *err) {
    kept_encoder *k = qn__alloc(1, sizeof *k, err);
    qn_data *table = k ? begin_table(e, err) : NULL;
    if (!table) {
        qn__free(k);
        return QN_MEMORY;
    }
    k->how = *e->how;
    k->own = *e;
    k->own.how = &k->how;
    k->own.uncounted = 1;
    table->mapped = 1;
    table->labels = e->raw->labels;
    table->targets = e->raw->targets;
    table->weights = e->raw->weights;
    const qn_status status =
        qn__coded_items_open(e->raw, &(qn__item_coder){k, code_row, release_kept}, table, err);
    if (status == QN_OK) {
        *out = table;
        return QN_OK;
    }
    qn__free(k);
    qn_data_close(table);
    return status;
}

/* ------------------------------------------------------------------ the matrix */

static qn_status encode_now(encoder *e, const qn__encoding_notes *notes, qn_data **out,
                            qn_error *err) {
    const qn_status status = check_size(e, notes, err);
    if (status != QN_OK)
        return status;
    if (!(*out = make_table(e, err)))
        return QN_MEMORY;
    fill_table(e, *out);
    tell_all(e, notes);
    return QN_OK;
}

static qn_status encode(encoder *e, const qn__encoding_notes *notes, qn_data **out, qn_error *err) {
    qn_status status = prepare(e, err);
    if (status == QN_OK && qn__coded_items_possible(e->raw) && !has_unseen(e)) {
        count_missing(e);
        status = encode_later(e, out, err);
        if (status == QN_OK) {
            tell_all(e, notes);
            return QN_OK; /* the table has the encoder's memory */
        }
    } else if (status == QN_OK) {
        status = encode_now(e, notes, out, err);
    }
    release(e);
    return status;
}

qn_status qn__make_inputs(const qn__encoding *how, const qn_data *raw,
                          const qn__encoding_notes *notes, qn_data **out, qn_error *err) {
    const uint64_t inputs = qn__inputs(how->table, how->features);
    *out = NULL;
    if (how->missing == QN__MISSING_ERROR || how->missing == QN__MISSING_DROP) {
        const qn_status status = qn__refuse_missing(raw, notes->what, QN__MISSING_REMEDY, err);
        if (status != QN_OK)
            return status;
    }
    if (is_plain(how, raw))
        return QN_OK;
    if (qn__element_is_token(raw->type)) {
        qn__fail(err, QN_MISMATCH, "the data holds numbers of tokens, and the model takes columns");
        qn__at(err, "%s", notes->what);
        return qn__remedy(err, QN_MISMATCH, "leave `data.tokens` out");
    }
    if (inputs > UINT32_MAX)
        return qn__fail(err, QN_INPUT,
                        "the categories of all columns give %" PRIu64 " inputs, which are too many",
                        inputs);
    encoder e = {.how = how, .raw = raw, .what = notes->what, .inputs = (uint32_t)inputs};
    return encode(&e, notes, out, err);
}

/* ------------------------------------------------------------------------------------- digests */

/* The values of an item as the model has them. */
static void take_item(const encoder *e, uint64_t item, float *to) {
    qn__element_of(e->raw->type)->floats(qn__data_item(e->raw, item), e->how->features, to);
    for (uint32_t k = 0; k < e->how->features; ++k) {
        if (e->column[k].categories == 0 || qn__is_missing(to[k]))
            continue;
        const uint32_t category = category_of(e, k, to[k]);
        to[k] = (float)category;
        if (category == NOWHERE)
            qn__set_missing(&to[k]);
    }
}

qn_status qn__inputs_digest(const qn__encoding *how, const qn_data *raw, char digest[65],
                            qn_error *err) {
    encoder e = {.how = how, .raw = raw, .what = "the validation set"};
    qn_data table = *raw;
    table.weights = NULL; /* of training items alone they mean something */
    if (!has_categories(how)) {
        qn__data_digest(&table, NULL, digest);
        return QN_OK;
    }
    float *values = qn__alloc(raw->items, how->features * sizeof *values, err);
    qn_status status = values ? prepare(&e, err) : QN_MEMORY;
    for (uint64_t i = 0; status == QN_OK && i < raw->items; ++i)
        take_item(&e, i, values + (size_t)i * how->features);
    table.type = QN_F32;
    table.index = NULL;
    table.values = (const uint8_t *)values;
    table.values_digest = NULL;
    if (status == QN_OK)
        qn__data_digest(&table, NULL, digest);
    release(&e);
    qn__free(values);
    return status;
}
