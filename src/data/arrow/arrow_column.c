/* The cells of a column that comes by the Arrow C Data interface. Buffer 0 has a bit for each value
 * that is not null; a column without nulls may lack it. */
#include "base/binary/half.h"
#include "data/arrow/arrow_decimal.h"
#include "data/arrow/arrow_parts.h"
#include "data/arrow/arrow_table.h"
#include "data/arrow/arrow_time.h"
#include "data/arrow/arrow_types.h"
#include "data/cells/cell.h"
#include <inttypes.h>
#include <stdio.h>
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

/* The type of the words of a list; its letter is 0 where it holds something else. */
static cell_type words_of(const qn__arrow_table *table, const struct ArrowSchema *type) {
    const int list = strcmp(type->format, "+l") == 0 || strcmp(type->format, "+L") == 0;
    const struct ArrowSchema *of =
        table->words && list && type->n_children == 1 ? type->children[0] : NULL;
    if (!of || !of->format || of->dictionary || is_other_bytes(of))
        return (cell_type){0};
    const cell_type word = type_of(of->format);
    return is_text(word.letter) || is_index(word.letter) ? word : (cell_type){0};
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
    if (words_of(table, type).letter) {
        *kind = QN__ARROW_TEXT;
        *scale = 0;
        return QN_OK;
    }
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

/* ------------------------------------------------------------------ lists of words */

/* A column of lists. */
typedef struct lists {
    const qn__arrow_table *table;
    uint64_t column;
    cell_type word;
    qn__scratch text; /* the words of an item */
} lists;

static const char contradiction[] = "the value contradicts the Arrow format";

static qn_status refuse_item(const lists *l, uint64_t item, const char *what, int64_t word,
                             qn_error *err) {
    if (what == contradiction) {
        qn__fail(err, QN_INPUT, "%s", what);
        return qn__arrow_refuse(l->table, l->column, item,
                                "correct the program that made the stream", err);
    }
    qn__fail(err, QN_INPUT, "%s: number %" PRId64 " of a list, from 0", what, word);
    return qn__arrow_refuse(l->table, l->column, item,
                            "a list is read as a text of words: write texts without white space, "
                            "or whole numbers",
                            err);
}

enum { NUMBER_MOST = 24 };

/* What is wrong with the word at `at`, which becomes *cell; a number is written to `number`. NULL:
 * nothing. */
static const char *word_at(const lists *l, const struct ArrowArray *words, int64_t at,
                           char number[NUMBER_MOST], qn__arrow_cell *cell) {
    *cell = (qn__arrow_cell){0};
    if (!value_at(&l->word, words, at, cell))
        return contradiction;
    if (cell->missing)
        return "a word is missing";
    if (is_text(l->word.letter))
        return qn__word_fault(cell->text, cell->size);
    cell->size = (size_t)(l->word.letter == 'L'
                              ? snprintf(number, NUMBER_MOST, "%" PRIu64, (uint64_t)cell->whole)
                              : snprintf(number, NUMBER_MOST, "%" PRId64, cell->whole));
    cell->text = number;
    return NULL;
}

/* The words from `begin` to `end` with a space between two of them. */
static qn_status join(lists *l, uint64_t item, const struct ArrowArray *words, int64_t begin,
                      int64_t end, qn__arrow_cell *out, qn_error *err) {
    char number[NUMBER_MOST];
    qn__arrow_cell word;
    uint64_t size = 1;
    for (int64_t k = begin; k < end; k++) {
        const char *what = word_at(l, words, words->offset + k, number, &word);
        if (what)
            return refuse_item(l, item, what, k - begin, err);
        size += word.size + 1;
    }
    char *text = qn__scratch_need(&l->text, size, 1, err);
    if (!text)
        return QN_MEMORY;
    *out = (qn__arrow_cell){.text = text};
    for (int64_t k = begin; k < end; k++) {
        word_at(l, words, words->offset + k, number, &word);
        if (k > begin)
            text[out->size++] = ' ';
        memcpy(text + out->size, word.text, word.size);
        out->size += word.size;
    }
    return QN_OK;
}

/* The list at `at` of a part's column as a text. */
static qn_status list_at(lists *l, uint64_t item, const struct ArrowArray *a, int64_t at,
                         qn__arrow_cell *cell, qn_error *err) {
    const struct ArrowArray *words = a->n_children == 1 && a->children ? a->children[0] : NULL;
    const char wide = l->table->schema.children[l->column]->format[1] == 'L' ? 'l' : 'i';
    cell->missing = is_null(a, at);
    if (cell->missing)
        return QN_OK;
    if (!words || words->offset < 0 || words->n_buffers < 0 ||
        (words->n_buffers > 0 && !words->buffers) || a->n_buffers < 2 || !a->buffers[1])
        return refuse_item(l, item, contradiction, 0, err);
    const int64_t begin = whole_at(wide, a->buffers[1], at),
                  end = whole_at(wide, a->buffers[1], at + 1);
    if (begin < 0 || end < begin || end > words->length ||
        words->length > INT64_MAX - words->offset)
        return refuse_item(l, item, contradiction, 0, err);
    return join(l, item, words, begin, end, cell, err);
}

static qn_status each_list(lists *l, qn__arrow_take *take, void *user, qn_error *err) {
    uint64_t item = l->table->first;
    for (uint64_t p = 0; p < l->table->parts; p++) {
        const struct ArrowArray *part = &l->table->part[p], *a = part->children[l->column];
        for (int64_t i = 0; i < part->length; i++, item++) {
            qn__arrow_cell cell = {0};
            qn_status status = list_at(l, item, a, part->offset + a->offset + i, &cell, err);
            if (status == QN_OK)
                status = take(user, item, &cell, err);
            if (status != QN_OK)
                return status;
        }
    }
    return QN_OK;
}

/* ------------------------------------------------------------------ all cells */

qn_status qn__arrow_each(const qn__arrow_table *table, uint64_t column, qn__arrow_take *take,
                         void *user, qn_error *err) {
    const struct ArrowSchema *type = table->schema.children[column];
    const cell_type outer = type_of(type->format),
                    inner = type->dictionary ? type_of(type->dictionary->format) : (cell_type){0};
    uint64_t item = table->first;
    lists l = {.table = table, .column = column, .word = words_of(table, type)};
    if (l.word.letter) {
        const qn_status status = each_list(&l, take, user, err);
        qn__scratch_release(&l.text);
        return status;
    }
    for (uint64_t p = 0; p < table->parts; p++) {
        const struct ArrowArray *part = &table->part[p], *a = part->children[column];
        const int64_t begin = part->offset + a->offset;
        for (int64_t i = 0; i < part->length; i++, item++) {
            qn__arrow_cell cell = {0};
            if (!cell_at(&outer, &inner, a, begin + i, &cell)) {
                qn__fail(err, QN_INPUT, "%s", contradiction);
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
