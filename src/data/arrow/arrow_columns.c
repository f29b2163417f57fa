/* The values of a column, by the rules of docs/exactness.md 2.1.9. */
#include "data/arrow/arrow_columns.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "data/cells/commas.h"
#include "data/cells/label_values.h"
#include "data/cells/prose.h"
#include "data/cells/text_column.h"
#include "data/table/dates.h"
#include "data/table/missing.h"
#include "data/table/table_space.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef qn__arrow_column filling;

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

static qn_status find_not_bytes(void *user, uint64_t item, const qn__arrow_cell *cell,
                                qn_error *err) {
    filling *f = user;
    (void)item, (void)err;
    f->not_bytes |= cell->missing || (uint64_t)cell->whole > 255;
    return QN_OK;
}

static qn_status put_byte(void *user, uint64_t item, const qn__arrow_cell *cell, qn_error *err) {
    const filling *f = user;
    (void)err;
    ((uint8_t *)qn__table_space_values(f->data))[item * f->data->features + f->feature] =
        (uint8_t)cell->whole;
    return QN_OK;
}

/* The value as a float32, rounded once. */
static float float_of(const filling *f, const qn__arrow_cell *cell) {
    return f->kind == QN__ARROW_INT    ? (float)cell->whole
           : f->kind == QN__ARROW_UINT ? (float)(uint64_t)cell->whole
                                       : (float)cell->number;
}

/* Whether the type has digits after the point: its labels may be quantities, and it has no bytes.
 */
static int has_fraction(const filling *f) {
    return f->kind == QN__ARROW_FLOAT || (f->kind == QN__ARROW_DECIMAL && f->scale != 0);
}

static void put_missing(filling *f, float *to) {
    qn__set_missing(to);
    f->data->missing = 1;
}

/* Tells of a value that qn__arrow_gather does not see: of a dictionary, or a decimal. */
static qn_status gather(const filling *f, uint64_t item, const qn__arrow_cell *cell,
                        qn_error *err) {
    const int beyond = f->kind == QN__ARROW_UINT      ? cell->whole < 0
                       : f->kind == QN__ARROW_DECIMAL ? !qn__arrow_decimal_fits(&cell->decimal)
                                                      : 0;
    if (f->gather->features == 0 || !qn__wide_is_open(f->gather, &f->gather->column[f->feature]))
        return QN_OK;
    if (!has_fraction(f))
        return qn__wide_gather_whole(f->gather, f->feature, item, beyond ? INT64_MIN : cell->whole,
                                     err);
    const double real =
        f->kind == QN__ARROW_DECIMAL ? qn__arrow_decimal_real(&cell->decimal) : cell->number;
    return qn__wide_gather_real(f->gather, f->feature, item, real, err);
}

static qn_status put_float(void *user, uint64_t item, const qn__arrow_cell *cell, qn_error *err) {
    filling *f = user;
    float *to = (float *)qn__table_space_values(f->data) + item * f->data->features + f->feature;
    *to = float_of(f, cell);
    f->not_bytes |= has_fraction(f) || cell->missing || (uint64_t)cell->whole > 255;
    if (cell->missing || isnan(*to)) {
        put_missing(f, to);
        return QN_OK;
    }
    if (isinf(*to))
        return refuse_number(f, item, cell->number, err);
    return f->gather ? gather(f, item, cell, err) : QN_OK;
}

/* The text of a cell that is a category: a number as CSV files have it. 0: it is missing. */
static size_t text_of(const filling *f, const qn__arrow_cell *cell,
                      char number[QN__ARROW_DECIMAL_CAPACITY], const char **text) {
    *text = f->kind == QN__ARROW_TEXT ? cell->text : number;
    if (cell->missing || f->kind == QN__ARROW_EMPTY ||
        (f->kind == QN__ARROW_FLOAT && isnan(cell->number)))
        return 0;
    if (f->kind == QN__ARROW_TEXT)
        return cell->size;
    if (f->kind == QN__ARROW_DECIMAL)
        return qn__arrow_decimal_text(&cell->decimal, number);
    if (f->kind == QN__ARROW_DATE)
        qn__moment_text(cell->whole, f->dates.time, f->dates.zones > 0, number);
    else if (f->kind == QN__ARROW_FLOAT && cell->number == floor(cell->number) &&
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

/* The text with U+FFFD for each U+0000, as names of columns have it; NULL: out of memory. */
static const char *without_zeros(filling *f, uint64_t item, const char *text, size_t *size,
                                 qn_error *err) {
    static const char replacement[3] = {'\xEF', '\xBF', '\xBD'};
    if (!memchr(text, 0, *size))
        return text;
    if (f->replaced_size < 3 * *size) {
        qn__free(f->replaced);
        f->replaced_size = 3 * *size;
        f->replaced = qn__alloc(f->replaced_size, 1, err);
    }
    char *to = f->replaced;
    for (size_t i = 0; to && i < *size; i++) {
        if (text[i] != 0) {
            *to++ = text[i];
            continue;
        }
        if (f->zeros++ == 0)
            f->zeroed = item;
        memcpy(to, replacement, sizeof replacement);
        to += sizeof replacement;
    }
    *size = to ? (size_t)(to - f->replaced) : 0;
    return f->replaced;
}

static qn_status note_zeros(const filling *f, qn_error *err) {
    const char *name = f->table->schema.children[f->column]->name;
    char note[400];
    if (f->zeros == 0)
        return QN_OK;
    snprintf(note, sizeof note, QN__ZEROS_NOTE " column %" PRIu64 "%s%.80s, item %" PRIu64,
             f->zeros, f->column + 1, name && *name ? ", " : "", name ? name : "", f->zeroed);
    return qn__data_add_note(f->data, note, err);
}

/* A text that becomes tokens. */
static qn_status put_listed(const filling *f, uint64_t item, const char *text, size_t size,
                            float *to, qn_error *err) {
    qn_status status = qn__text_column_check(text, size, err);
    if (status == QN_INPUT)
        return refuse(f, item, "leave the column out with `data.drop`", err);
    *to = 0;
    return qn__text_list_add(f->data->listed, text, size, 0, err);
}

/* The number of a category in the order of appearance. */
static qn_status put_text(void *user, uint64_t item, const qn__arrow_cell *cell, qn_error *err) {
    filling *f = user;
    uint32_t number = 0;
    float *to = (float *)qn__table_space_values(f->data) + item * f->data->features + f->feature;
    char digits[QN__ARROW_DECIMAL_CAPACITY];
    const char *text;
    if (qn__arrow_dates_range(f, item, cell, err) != QN_OK)
        return QN_INPUT;
    size_t size = text_of(f, cell, digits, &text);
    if (size == 0) {
        put_missing(f, to);
        return f->listed ? qn__text_list_add(f->data->listed, NULL, 0, 0, err) : QN_OK;
    }
    text = without_zeros(f, item, text, &size, err);
    if (!text)
        return QN_MEMORY;
    if (f->listed)
        return put_listed(f, item, text, size, to, err);
    int taken = 0;
    qn_status status =
        f->kind == QN__ARROW_TEXT ? qn__arrow_dates_look(f, item, cell, &taken, err) : QN_OK;
    if (status != QN_OK || taken) {
        *to = 0;
        return status;
    }
    status = qn__text_column_add(&f->texts, text, size, 0, &number, err);
    *to = (float)number;
    return status == QN_INPUT ? refuse(f, item, "leave the column out with `data.drop`", err)
                              : status;
}

static int is_text(const filling *f) { return f->kind == QN__ARROW_TEXT || f->category; }

static qn_status take_feature(filling *f, qn_error *err) {
    if (f->there)
        return QN_OK;
    qn__arrow_take *put = is_text(f)                  ? put_text
                          : f->kind == QN__ARROW_DATE ? qn__arrow_dates_put
                          : f->data->type == QN_U8    ? put_byte
                                                      : put_float;
    return qn__arrow_each(f->table, f->column, put, f, err);
}

static qn_status settle_feature(filling *f, qn_error *err) {
    qn_data *data = f->data;
    qn__feature *feature = &data->schema->feature[f->feature];
    feature->said = f->category;
    if (qn__arrow_dates_hold(f))
        return qn__arrow_dates_settle(f, err);
    feature->bytes =
        !is_text(f) && !f->not_bytes && f->kind != QN__ARROW_EMPTY && data->type == QN_F32;
    if (is_text(f) && note_zeros(f, err) != QN_OK)
        return QN_MEMORY;
    if (!is_text(f) || f->listed)
        return QN_OK;
    f->order = qn__text_column_sort(&f->texts, 0, err);
    if (!f->order)
        return QN_MEMORY;
    qn__text_column_give(&f->texts, feature);
    if (!f->category && data->comma == 0 && qn__comma_example(feature))
        data->comma = f->feature + 1;
    return QN_OK;
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
    if (has_fraction(f)) {
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
    const int is_signed = f->kind != QN__ARROW_UINT;
    if (data->targets) {
        data->targets[item] = float_of(f, cell);
        return isinf(data->targets[item]) ? refuse_number(f, item, cell->number, err) : QN_OK;
    }
    if (cell->whole > INT32_MAX || cell->whole < (is_signed ? -(int64_t)INT32_MAX : 0)) {
        qn__fail(err, QN_INPUT, "the label is 2^31 or more");
        return refuse(f, item, QN__LABEL_RANGE_REMEDY, err);
    }
    data->labels[item] = (int32_t)cell->whole;
    return QN_OK;
}

static qn_status settle_numbers(filling *f, const char *task, qn_error *err) {
    uint64_t item = 0;
    const qn_status status = qn__labels_from_numbers(f->data, f->number, task, &item, err);
    return status == QN_INPUT ? refuse(f, item, QN__LABEL_RANGE_REMEDY, err) : status;
}

static qn_status check_label(const filling *f, qn_error *err) {
    if (f->kind != QN__ARROW_TEXT || !f->regress)
        return QN_OK;
    qn__fail(err, QN_INPUT, "the labels are texts, and regression needs numbers");
    return refuse(f, 0,
                  "leave `data.task` out, or name another column with "
                  "`data.label_column`",
                  err);
}

static qn_status make_label_space(filling *f, qn_error *err) {
    if (!has_fraction(f))
        return f->regress ? qn__data_need_targets(f->data, err)
                          : qn__data_need_labels(f->data, err);
    f->number = qn__alloc(f->data->items, sizeof *f->number, err);
    return f->number ? QN_OK : QN_MEMORY;
}

static qn_status settle_labels(filling *f, const char *task, qn_error *err) {
    return f->kind == QN__ARROW_TEXT ? qn__labels_from_texts(f->data, &f->texts, err)
           : has_fraction(f)         ? settle_numbers(f, task, err)
                                     : QN_OK;
}

/* ------------------------------------------------------------------ weights */

static qn_status take_weight(void *user, uint64_t item, const qn__arrow_cell *cell, qn_error *err) {
    filling *f = user;
    const float weight = float_of(f, cell);
    if (cell->missing || !isfinite(weight) || weight < 0.0f) {
        qn__fail(err, QN_INPUT, "the weight is not a finite number from 0");
        return refuse(f, item, "correct it, or name another column with `data.weight`", err);
    }
    f->data->weights[item] = weight;
    return QN_OK;
}

static qn_status check_weight(const filling *f, qn_error *err) {
    if (f->kind != QN__ARROW_TEXT)
        return QN_OK;
    qn__fail(err, QN_INPUT, "the weights are texts");
    return refuse(f, 0, "name a column of numbers with `data.weight`", err);
}

static qn_status make_weight_space(filling *f, qn_error *err) {
    f->data->weights = qn__alloc(f->data->items, sizeof *f->data->weights, err);
    return f->data->weights ? QN_OK : QN_MEMORY;
}

static qn_status settle_weights(const filling *f, qn_error *err) {
    return qn__data_check_weights(f->data->weights, f->data->items, f->table->name, err);
}

/* ------------------------------------------------------------------ any column */

qn_status qn__arrow_column_begin(qn__arrow_column *f, const char *task, qn_error *err) {
    const qn_status status = qn__arrow_kind_of(f->table, f->column, &f->kind, &f->scale, err);
    if (status != QN_OK)
        return status;
    if (qn__arrow_dates_begin(f, err) != QN_OK)
        return QN_INPUT;
    f->not_bytes = f->category || f->kind == QN__ARROW_DATE || f->kind == QN__ARROW_TEXT ||
                   f->kind == QN__ARROW_EMPTY || has_fraction(f);
    f->listed = f->use == QN__ARROW_FEATURE && f->category == QN__SAID_TEXT &&
                qn__text_list_takes(f->data->listed, f->feature);
    f->regress = task && strcmp(task, "regress") == 0;
    if (f->use == QN__ARROW_FEATURE && is_text(f) && !f->listed &&
        !(f->texts.depot = qn__depot_create(err)))
        return QN_MEMORY;
    return f->use == QN__ARROW_LABEL    ? check_label(f, err)
           : f->use == QN__ARROW_WEIGHT ? check_weight(f, err)
                                        : QN_OK;
}

qn_status qn__arrow_column_make_space(qn__arrow_column *f, qn_error *err) {
    return f->use == QN__ARROW_LABEL    ? make_label_space(f, err)
           : f->use == QN__ARROW_WEIGHT ? make_weight_space(f, err)
                                        : QN_OK;
}

qn_status qn__arrow_column_look(qn__arrow_column *f, qn_error *err) {
    return f->not_bytes ? QN_OK : qn__arrow_each(f->table, f->column, find_not_bytes, f, err);
}

qn_status qn__arrow_column_take(qn__arrow_column *f, qn_error *err) {
    return f->use == QN__ARROW_FEATURE
               ? take_feature(f, err)
               : qn__arrow_each(f->table, f->column,
                                f->use == QN__ARROW_LABEL ? take_label : take_weight, f, err);
}

qn_status qn__arrow_column_settle(qn__arrow_column *f, const char *task, qn_error *err) {
    return f->use == QN__ARROW_LABEL    ? settle_labels(f, task, err)
           : f->use == QN__ARROW_WEIGHT ? settle_weights(f, err)
                                        : settle_feature(f, err);
}

void qn__arrow_column_release(qn__arrow_column *f) {
    qn__text_set_release(&f->texts);
    qn__free(f->replaced);
    qn__free(f->number);
    qn__free(f->value);
    qn__free(f->order);
}
