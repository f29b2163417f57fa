/* The cells of a column that comes by the Arrow C Data interface. Buffer 0 has a bit for each value
 * that is not null; a column without nulls may lack it. */
#include "base/binary/half.h"
#include "data/arrow/arrow_decimal.h"
#include "data/arrow/arrow_table.h"
#include "data/arrow/arrow_time.h"
#include "data/arrow/arrow_types.h"
#include <string.h>

/* Types by the letter of their format. Bytes are read as texts, and views of both are 'v' here. */
static const char integers[] = "bcsil", unsigned_integers[] = "CSIL";

enum { VIEW = 16, VIEW_INSIDE = 12 }; /* bytes of a utf8_view, and of a text inside it */

/* How the values of a column are read. */
typedef struct cell_type {
    char letter;  /* of the format: see below; 0: it is not read */
    size_t width; /* of a decimal ('d'): its bytes and its scale */
    int scale;
    qn__time_type time; /* of dates and times ('t') */
} cell_type;

static cell_type type_of(const char *format) {
    cell_type type = {0};
    if (format[0] == 'v' && (strcmp(format, "vu") == 0 || strcmp(format, "vz") == 0))
        type.letter = 'v';
    else if (strcmp(format, "z") == 0 || strcmp(format, "Z") == 0)
        type.letter = *format == 'z' ? 'u' : 'U';
    else if (*format == 'd' && qn__arrow_decimal_format(format, &type.width, &type.scale))
        type.letter = 'd';
    else if (*format == 't' && qn__time_type_of(format, &type.time))
        type.letter = 't';
    else if (strlen(format) == 1 && strchr("nbcsilCSILefguU", *format))
        type.letter = *format;
    return type;
}

static int is_text(char letter) { return letter == 'u' || letter == 'U' || letter == 'v'; }

static int is_float(char letter) { return letter >= 'e' && letter <= 'g'; }

static int is_index(char letter) {
    return letter && letter != 'b' &&
           (strchr(integers, letter) || strchr(unsigned_integers, letter));
}

/* Bytes of an extension type, such as geometries, are not the texts that a reader wants. */
static int is_other_bytes(const struct ArrowSchema *type) {
    const char *format = type->format;
    char name[QN__EXTENSION_CAPACITY];
    return strchr("zZv", *format) && strcmp(format, "vu") != 0 && qn__arrow_extension(type, name);
}

static qn__arrow_kind kind_of(const cell_type *type) {
    const char letter = type->letter;
    if (letter == 'd')
        return QN__ARROW_DECIMAL;
    if (letter == 't')
        return type->time.form == QN__TIME_SPAN ? QN__ARROW_FLOAT : QN__ARROW_DATE;
    if (is_text(letter))
        return QN__ARROW_TEXT;
    if (strchr(integers, letter))
        return QN__ARROW_INT;
    if (strchr(unsigned_integers, letter))
        return QN__ARROW_UINT;
    return is_float(letter) ? QN__ARROW_FLOAT : QN__ARROW_EMPTY;
}

qn_status qn__arrow_kind_of(const qn__arrow_table *table, uint64_t column, qn__arrow_kind *kind,
                            int *scale, qn_error *err) {
    const struct ArrowSchema *type = table->schema.children[column];
    const cell_type outer = type_of(type->format);
    const char *values = type->dictionary ? type->dictionary->format : NULL;
    const cell_type inner = values ? type_of(values) : (cell_type){0};
    if (is_other_bytes(type) ||
        (type->dictionary ? !is_index(outer.letter) || !inner.letter : !outer.letter))
        return qn__arrow_refuse_type(table, column, err);
    *kind = kind_of(type->dictionary ? &inner : &outer);
    *scale = type->dictionary ? inner.scale : outer.scale;
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

static void time_at(const qn__time_type *type, const void *buffer, int64_t at,
                    qn__arrow_cell *cell) {
    const int64_t value = whole_at(type->width == 4 ? 'i' : 'l', buffer, at);
    if (type->form == QN__TIME_SPAN)
        cell->number = qn__time_seconds(type, value);
    else
        cell->whole = qn__time_moment(type, value);
}

/* The value at `at` of an array without a dictionary. */
static int value_at(const cell_type *type, const struct ArrowArray *a, int64_t at,
                    qn__arrow_cell *cell) {
    cell->missing = type->letter == 'n' || is_null(a, at);
    if (cell->missing)
        return 1;
    if (a->n_buffers < 2 || !a->buffers[1])
        return 0;
    if (is_text(type->letter))
        return text_at(type->letter, a, at, cell);
    if (type->letter == 't')
        time_at(&type->time, a->buffers[1], at, cell);
    else if (is_float(type->letter))
        cell->number = float_at(type->letter, a->buffers[1], at);
    else if (type->letter == 'd')
        cell->decimal = qn__arrow_decimal_load(
            (const char *)a->buffers[1] + type->width * (size_t)at, type->width, type->scale);
    else
        cell->whole = whole_at(type->letter, a->buffers[1], at);
    return 1;
}

/* `inner` is the type of the values of a dictionary; its letter is 0 where there is none. The types
 * are the caller's: reading them again for each cell takes longer than the cell. */
static int cell_at(const cell_type *type, const cell_type *inner, const struct ArrowArray *a,
                   int64_t at, qn__arrow_cell *cell) {
    if (!inner->letter)
        return value_at(type, a, at, cell);
    cell->missing = is_null(a, at);
    if (cell->missing)
        return 1;
    if (a->n_buffers < 2 || !a->buffers[1])
        return 0;
    const struct ArrowArray *values = a->dictionary;
    const int64_t index = whole_at(type->letter, a->buffers[1], at);
    return index >= 0 && index < values->length &&
           value_at(inner, values, values->offset + index, cell);
}

/* What follows from a decimal for those that take numbers or whole ones. */
static void settle_decimal(const cell_type *type, qn__arrow_cell *cell) {
    if (type->letter != 'd' || cell->missing)
        return;
    cell->number = qn__arrow_decimal_number(&cell->decimal);
    cell->whole = type->scale == 0 ? qn__arrow_decimal_whole(&cell->decimal) : 0;
}

qn_status qn__arrow_each(const qn__arrow_table *table, uint64_t column, qn__arrow_take *take,
                         void *user, qn_error *err) {
    const struct ArrowSchema *type = table->schema.children[column];
    const cell_type outer = type_of(type->format),
                    inner = type->dictionary ? type_of(type->dictionary->format) : (cell_type){0};
    uint64_t item = table->first;
    for (uint64_t p = 0; p < table->parts; p++) {
        const struct ArrowArray *part = &table->part[p], *a = part->children[column];
        const int64_t begin = part->offset + a->offset;
        for (int64_t i = 0; i < part->length; i++, item++) {
            qn__arrow_cell cell = {0};
            if (!cell_at(&outer, &inner, a, begin + i, &cell)) {
                qn__fail(err, QN_INPUT, "the value contradicts the Arrow format");
                return qn__arrow_refuse(table, column, item,
                                        "correct the program that made the stream", err);
            }
            settle_decimal(inner.letter ? &inner : &outer, &cell);
            const qn_status status = take(user, item, &cell, err);
            if (status != QN_OK)
                return status;
        }
    }
    return QN_OK;
}
