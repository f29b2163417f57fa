/* The cells of a column behind the Arrow C Data interface. Buffer 0 has a bit for each value that
 * is not null; a column without nulls may lack it. */
#include "data/arrow_table.h"
#include "data/half.h"
#include <string.h>

/* Types by the letter of their format; "vu" is 'v' here. */
static const char integers[] = "bcsil", unsigned_integers[] = "CSIL";

enum { VIEW = 16, VIEW_INSIDE = 12 }; /* bytes of a utf8_view, and of a text inside it */

/* The letter of a format of one; 'v' for "vu"; 0 for another one. */
static char letter_of(const char *format) {
    if (strcmp(format, "vu") == 0)
        return 'v';
    return strlen(format) == 1 && strchr("nbcsilCSILefguU", *format) ? *format : '\0';
}

static int is_text(char letter) { return letter == 'u' || letter == 'U' || letter == 'v'; }

static int is_float(char letter) { return letter >= 'e' && letter <= 'g'; }

static int is_index(char letter) {
    return letter && letter != 'b' &&
           (strchr(integers, letter) || strchr(unsigned_integers, letter));
}

static qn_status refuse_type(const qn__arrow_table *table, uint64_t column, qn_error *err) {
    const struct ArrowSchema *type = table->schema.children[column];
    const char *format = type->dictionary ? type->dictionary->format : type->format;
    const char *what = *format == 't'   ? "dates, times or spans of time"
                       : *format == 'd' ? "decimals"
                       : *format == '+' ? "lists or records"
                       : *format == 'z' || *format == 'Z' || *format == 'w' || *format == 'v'
                           ? "bytes"
                           : "a type that is unknown";
    qn__fail(err, QN_INPUT, "the column holds %s (format \"%.20s\"%s)", what, format,
             type->dictionary ? " in a dictionary" : "");
    return qn__arrow_refuse(
        table, column, 0, "convert it to numbers or texts, or leave it out with `data.drop`", err);
}

qn_status qn__arrow_kind_of(const qn__arrow_table *table, uint64_t column, qn__arrow_kind *kind,
                            qn_error *err) {
    const struct ArrowSchema *type = table->schema.children[column];
    const char letter = letter_of(type->format);
    const char *values = type->dictionary ? type->dictionary->format : "";
    const char inner = type->dictionary && values ? letter_of(values) : '\0';
    if (type->dictionary ? !is_index(letter) || !is_text(inner) : !letter)
        return refuse_type(table, column, err);
    if (type->dictionary || is_text(letter))
        *kind = QN__ARROW_TEXT;
    else if (strchr(integers, letter))
        *kind = QN__ARROW_INT;
    else if (strchr(unsigned_integers, letter))
        *kind = QN__ARROW_UINT;
    else
        *kind = is_float(letter) ? QN__ARROW_FLOAT : QN__ARROW_EMPTY;
    return QN_OK;
}

static int is_null(const struct ArrowArray *a, int64_t at) {
    const uint8_t *valid = a->n_buffers > 0 ? a->buffers[0] : NULL;
    return a->null_count != 0 && valid && !(valid[at / 8] >> at % 8 & 1);
}

/* The value at `at` of a buffer of numbers, which need not be aligned. */
#define LOAD(type)                                                                                 \
    type value;                                                                                    \
    memcpy(&value, (const char *)buffer + (size_t)at * sizeof value, sizeof value)

#define LOAD_WHOLE(type)                                                                           \
    {                                                                                              \
        LOAD(type);                                                                                \
        return (int64_t)value;                                                                     \
    }

static int64_t whole_at(char letter, const void *buffer, int64_t at) {
    switch (letter) {
    case 'b':
        return ((const uint8_t *)buffer)[at / 8] >> at % 8 & 1;
    case 'c':
        LOAD_WHOLE(int8_t)
    case 'C':
        LOAD_WHOLE(uint8_t)
    case 's':
        LOAD_WHOLE(int16_t)
    case 'S':
        LOAD_WHOLE(uint16_t)
    case 'i':
        LOAD_WHOLE(int32_t)
    case 'I':
        LOAD_WHOLE(uint32_t)
    case 'L':
        LOAD_WHOLE(uint64_t)
    default:
        LOAD_WHOLE(int64_t)
    }
}

static double float_at(char letter, const void *buffer, int64_t at) {
    if (letter == 'e') {
        LOAD(uint16_t);
        return qn__half_value(value);
    }
    if (letter == 'f') {
        LOAD(float);
        return (double)value;
    }
    LOAD(double);
    return value;
}

/* ------------------------------------------------------------------ texts */

static int view_at(const struct ArrowArray *a, int64_t at, qn__arrow_cell *cell) {
    const char *view = (const char *)a->buffers[1] + VIEW * (size_t)at;
    int32_t head[4]; /* length, first bytes, buffer, offset */
    memcpy(head, view, sizeof head);
    cell->size = (size_t)head[0];
    cell->text = view + sizeof *head;
    if (head[0] >= 0 && head[0] <= VIEW_INSIDE)
        return 1;
    const int64_t buffers = a->n_buffers - 3;
    if (head[0] < 0 || head[2] < 0 || head[2] >= buffers || head[3] < 0 ||
        !a->buffers[a->n_buffers - 1])
        return 0;
    int64_t size;
    memcpy(&size, (const char *)a->buffers[a->n_buffers - 1] + (size_t)head[2] * sizeof size,
           sizeof size);
    if (head[3] > size - head[0] || !a->buffers[2 + head[2]])
        return 0;
    cell->text = (const char *)a->buffers[2 + head[2]] + head[3];
    return 1;
}

/* 0 when the array contradicts itself. */
static int text_at(char letter, const struct ArrowArray *a, int64_t at, qn__arrow_cell *cell) {
    if (a->n_buffers < 3 || !a->buffers[1])
        return 0;
    if (letter == 'v')
        return view_at(a, at, cell);
    const char wide = letter == 'U' ? 'l' : 'i';
    const int64_t begin = whole_at(wide, a->buffers[1], at),
                  end = whole_at(wide, a->buffers[1], at + 1);
    if (begin < 0 || end < begin || (end > begin && !a->buffers[2]))
        return 0;
    cell->text = end > begin ? (const char *)a->buffers[2] + begin : "";
    cell->size = (size_t)(end - begin);
    return 1;
}

/* ------------------------------------------------------------------ cells */

/* `letter` is that of the column's format, `inner` that of its dictionary, or 0: reading them again
 * for each cell takes longer than the cell. */
static int cell_at(char letter, char inner, const struct ArrowArray *a, int64_t at,
                   qn__arrow_cell *cell) {
    cell->missing = letter == 'n' || is_null(a, at);
    if (cell->missing)
        return 1;
    if (a->n_buffers < 2 || !a->buffers[1])
        return 0;
    if (inner) {
        const struct ArrowArray *values = a->dictionary;
        const int64_t index = whole_at(letter, a->buffers[1], at);
        if (index < 0 || index >= values->length)
            return 0;
        cell->missing = is_null(values, values->offset + index);
        return cell->missing || text_at(inner, values, values->offset + index, cell);
    }
    if (is_text(letter))
        return text_at(letter, a, at, cell);
    if (is_float(letter))
        cell->number = float_at(letter, a->buffers[1], at);
    else
        cell->whole = whole_at(letter, a->buffers[1], at);
    return 1;
}

qn_status qn__arrow_each(const qn__arrow_table *table, uint64_t column, qn__arrow_take *take,
                         void *user, qn_error *err) {
    const struct ArrowSchema *type = table->schema.children[column];
    const char letter = letter_of(type->format);
    const char inner = type->dictionary ? letter_of(type->dictionary->format) : '\0';
    uint64_t item = table->first;
    for (uint64_t p = 0; p < table->parts; p++) {
        const struct ArrowArray *part = &table->part[p], *a = part->children[column];
        const int64_t begin = part->offset + a->offset;
        for (int64_t i = 0; i < part->length; i++, item++) {
            qn__arrow_cell cell = {0};
            if (!cell_at(letter, inner, a, begin + i, &cell)) {
                qn__fail(err, QN_INPUT, "the value contradicts the Arrow format");
                return qn__arrow_refuse(table, column, item,
                                        "correct the program that made the stream", err);
            }
            const qn_status status = take(user, item, &cell, err);
            if (status != QN_OK)
                return status;
        }
    }
    return QN_OK;
}
