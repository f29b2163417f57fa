#include "data/arrow/arrow_common.h"
#include "data/arrow/arrow_time.h"
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ types */

qn_status qn__arrow_type_of(const qn__arrow_table *table, uint64_t column, qn__arrow_type *out,
                            qn_error *err) {
    const struct ArrowSchema *type = table->schema.children[column];
    *out = (qn__arrow_type){.kind = QN__ARROW_EMPTY};
    snprintf(out->format, sizeof out->format, "%s",
             type->dictionary ? type->dictionary->format : type->format);
    const qn_status status = qn__arrow_kind_of(table, column, &out->kind, &out->scale, err);
    if (status == QN_OK && *out->format == '+') /* a list of words */
        snprintf(out->format, sizeof out->format, "U");
    return status;
}

static void set(qn__arrow_type *type, qn__arrow_kind kind, const char *format) {
    type->kind = kind;
    snprintf(type->format, sizeof type->format, "%s", format);
}

static int is_whole(const qn__arrow_type *type) {
    return type->kind == QN__ARROW_INT || type->kind == QN__ARROW_UINT;
}

static int is_number(const qn__arrow_type *type) {
    return is_whole(type) || type->kind == QN__ARROW_FLOAT || type->kind == QN__ARROW_DECIMAL;
}

static int is_narrow(const qn__arrow_type *type) {
    return type->kind == QN__ARROW_FLOAT && (*type->format == 'e' || *type->format == 'f');
}

/* Decimals stay ones where all have as many digits after the point. */
static void join_decimals(qn__arrow_type *a, const qn__arrow_type *b) {
    if (a->kind == QN__ARROW_FLOAT || b->kind == QN__ARROW_FLOAT || a->scale != b->scale) {
        set(a, QN__ARROW_FLOAT, "g");
        a->scale = 0;
        return;
    }
    a->kind = QN__ARROW_DECIMAL;
    snprintf(a->format, sizeof a->format, "d:76,%d,256", a->scale);
}

static void join_numbers(qn__arrow_type *a, const qn__arrow_type *b) {
    const int large = *a->format == 'L' || *b->format == 'L';
    if (a->kind == QN__ARROW_DECIMAL || b->kind == QN__ARROW_DECIMAL)
        join_decimals(a, b);
    else if (!is_whole(a) || !is_whole(b))
        set(a, QN__ARROW_FLOAT, is_narrow(a) && is_narrow(b) ? "f" : "g");
    else if (!large)
        set(a, QN__ARROW_INT, "l");
    else if (a->kind == QN__ARROW_UINT && b->kind == QN__ARROW_UINT)
        set(a, QN__ARROW_UINT, "L");
    else
        set(a, QN__ARROW_FLOAT, "g");
}

/* Dates without a time have no zone. */
static int join_dates(qn__arrow_type *a, const qn__arrow_type *b) {
    qn__time_type one, other;
    if (!qn__time_type_of(a->format, &one) || !qn__time_type_of(b->format, &other) ||
        one.zone != other.zone)
        return 0;
    const int moments = one.form == QN__TIME_MOMENT || other.form == QN__TIME_MOMENT;
    set(a, QN__ARROW_DATE, !moments ? "tdm" : one.zone ? "tsu:UTC" : "tsu:");
    return 1;
}

int qn__arrow_join(qn__arrow_type *a, const qn__arrow_type *b) {
    if (b->kind == QN__ARROW_EMPTY)
        return 1;
    if (a->kind == QN__ARROW_EMPTY)
        *a = *b;
    if (is_number(a) && is_number(b))
        join_numbers(a, b);
    else if (a->kind == QN__ARROW_TEXT && b->kind == QN__ARROW_TEXT)
        set(a, QN__ARROW_TEXT, "U");
    else if (a->kind == QN__ARROW_DATE && b->kind == QN__ARROW_DATE)
        return join_dates(a, b);
    else
        return 0;
    return 1;
}

/* ------------------------------------------------------------------ values */

/* Values on their way into another type. */
typedef struct converting {
    qn__arrow_kind from;
    const char *to;
    size_t width;
    uint8_t *valid;
    uint8_t *values; /* or offsets */
    char *text;
    uint64_t at, missing, bytes;
} converting;

static qn_status count_bytes(void *user, uint64_t item, const qn__arrow_cell *cell, qn_error *err) {
    converting *v = user;
    (void)item, (void)err;
    v->bytes += cell->missing ? 0 : cell->size;
    return QN_OK;
}

static void put_valid(converting *v, const qn__arrow_cell *cell) {
    if (!cell->missing)
        v->valid[v->at / 8] |= (uint8_t)(1u << v->at % 8);
    v->missing += cell->missing != 0;
}

static qn_status put_text(void *user, uint64_t item, const qn__arrow_cell *cell, qn_error *err) {
    converting *v = user;
    (void)item, (void)err;
    put_valid(v, cell);
    if (!cell->missing) {
        if (cell->size > 0)
            memcpy(v->text + v->bytes, cell->text, cell->size);
        v->bytes += cell->size;
    }
    const int64_t end = (int64_t)v->bytes;
    memcpy(v->values + 8 * ++v->at, &end, sizeof end);
    return QN_OK;
}

static double number_of(qn__arrow_kind kind, const qn__arrow_cell *cell) {
    switch (kind) {
    case QN__ARROW_INT:
        return (double)cell->whole;
    case QN__ARROW_UINT:
        return (double)(uint64_t)cell->whole;
    case QN__ARROW_DECIMAL:
        return qn__arrow_decimal_real(&cell->decimal);
    default:
        return cell->number;
    }
}

static qn__arrow_decimal decimal_of(qn__arrow_kind kind, const qn__arrow_cell *cell) {
    if (kind == QN__ARROW_DECIMAL)
        return cell->decimal;
    const int negative = kind == QN__ARROW_INT && cell->whole < 0;
    const uint64_t bits = (uint64_t)cell->whole;
    return (qn__arrow_decimal){.limb = {negative ? -bits : bits}, .negative = negative};
}

static qn_status put_value(void *user, uint64_t item, const qn__arrow_cell *cell, qn_error *err) {
    converting *v = user;
    uint8_t *to = v->values + v->width * v->at;
    (void)item, (void)err;
    put_valid(v, cell);
    v->at++;
    if (cell->missing)
        return QN_OK;
    const double number = number_of(v->from, cell);
    const float narrow = (float)number;
    const int64_t thousandth = cell->whole / 1000; /* of a day's microseconds */
    const qn__arrow_decimal decimal = decimal_of(v->from, cell);
    if (*v->to == 'd')
        qn__arrow_decimal_store(&decimal, to);
    else if (*v->to == 'f')
        memcpy(to, &narrow, sizeof narrow);
    else if (*v->to == 'g')
        memcpy(to, &number, sizeof number);
    else
        memcpy(to, strcmp(v->to, "tdm") == 0 ? &thousandth : &cell->whole, sizeof cell->whole);
    return QN_OK;
}

qn_status qn__arrow_convert(const qn__arrow_table *table, uint64_t column, const qn__arrow_type *to,
                            qn__pile *pile, struct ArrowArray *out, qn_error *err) {
    const uint64_t rows = table->rows;
    const int text = to->kind == QN__ARROW_TEXT;
    converting v = {.to = to->format,
                    .width = *to->format == 'd'   ? QN__ARROW_DECIMAL_BYTES
                             : *to->format == 'f' ? sizeof(float)
                                                  : 8};
    int scale;
    qn_status status = qn__arrow_kind_of(table, column, &v.from, &scale, err);
    v.valid = qn__pile_alloc(pile, rows / 8 + 1, 1, err);
    v.values = qn__pile_alloc(pile, rows + 1, v.width, err);
    const void **buffers = qn__pile_alloc(pile, 3, sizeof *buffers, err);
    if (status != QN_OK || !v.valid || !v.values || !buffers)
        return status != QN_OK ? status : QN_MEMORY;
    if (text)
        status = qn__arrow_each(table, column, count_bytes, &v, err);
    if (status == QN_OK && !(v.text = qn__pile_alloc(pile, v.bytes + 1, 1, err)))
        return QN_MEMORY;
    v.bytes = 0;
    if (status == QN_OK)
        status = qn__arrow_each(table, column, text ? put_text : put_value, &v, err);
    buffers[0] = v.valid;
    buffers[1] = v.values;
    buffers[2] = v.text;
    *out = (struct ArrowArray){.length = (int64_t)rows,
                               .null_count = (int64_t)v.missing,
                               .n_buffers = text ? 3 : 2,
                               .buffers = buffers};
    return status;
}
