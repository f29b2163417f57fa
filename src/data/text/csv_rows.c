/* Parses one row of CSV into numbers. Nearly all cells take the fast path: digits, then a
 * separator. */
#include "base/text/text.h"
#include "data/cells/commas.h"
#include "data/cells/text_set.h"
#include "data/table/dates.h"
#include "data/table/missing.h"
#include "data/table/wide.h"
#include "data/text/csv.h"
#include "data/text/csv_quotes.h"
#include <math.h>
#include <string.h>

/* Whether a cell's text may end at `at`. */
static int ends_cell(const char *at, const char *end, char separator) {
    return at == end || *at == separator || *at == '\n';
}

/* Moves from the end of a cell to the next cell. After the last cell of the line *done becomes 1
 * and the result is the start of the next line. */
static const char *step_over(const char *at, const char *end, int *done) {
    *done = at == end || *at == '\n';
    return at == end ? end : at + 1;
}

/* A whole number from 0 to 255 that fills its cell: fast path and slow path. */
static const char *take_byte(const char *at, const char *end, char separator, uint8_t *value) {
    unsigned sum = 0;
    const char *p = at;
    for (; p < end && *p >= '0' && *p <= '9' && sum <= 255; p++)
        sum = sum * 10 + (unsigned)(*p - '0');
    if (sum > 255)
        return NULL;
    if (p == at || !ends_cell(p, end, separator)) {
        qn__cell cell;
        p = qn__cell_read(at, end, separator, &cell);
        if (cell.broken || cell.size == 0)
            return NULL;
        sum = 0;
        for (size_t i = 0; i < cell.size; i++) {
            if (cell.text[i] < '0' || cell.text[i] > '9')
                return NULL;
            sum = sum * 10 + (unsigned)(cell.text[i] - '0');
            if (sum > 255)
                return NULL;
        }
    }
    *value = (uint8_t)sum;
    return p;
}

/* A number's cell, in all forms: quotes, blanks, many digits, and what is wrong with it. */
static qn__row_fault take_odd_float(const qn__cell *cell, float *value) {
    qn__decimal decimal;
    if (cell->broken)
        return QN__ROW_QUOTE;
    if (cell->size == 0)
        return QN__ROW_EMPTY;
    if (!qn__cell_number(cell, &decimal))
        return qn__cell_content(cell) == QN__CONTENT_TEXT ? QN__ROW_TEXT : QN__ROW_INFINITE;
    if (qn__decimal_to_float(&decimal, value))
        return QN__ROW_FINE;
    if (!qn__parse_float(cell->text, cell->size, value) || !isfinite(*value))
        return QN__ROW_RANGE;
    return QN__ROW_FINE;
}

/* Whether float32 holds the whole numbers of a column. */
static void note_wide(const qn__decimal *decimal, uint8_t *seen) {
    int64_t whole;
    if (*seen & QN__SEEN_FRACTION ||
        (decimal->exponent == 0 && !decimal->cut && decimal->mantissa <= 1 << 24))
        return;
    if (!qn__decimal_to_whole(decimal, &whole))
        *seen |= QN__SEEN_FRACTION;
    else if ((float)whole >= 0x1p63f || (int64_t)(float)whole != whole)
        *seen |= QN__SEEN_WIDE;
}

static const char *take_float(const char *at, const char *end, char separator, float *value,
                              uint8_t *seen, qn__cell *cell, qn__row_fault *fault) {
    qn__decimal decimal;
    *fault = QN__ROW_FINE;
    const char *p = qn__decimal_read(at, end, &decimal);
    if (p && ends_cell(p, end, separator) && qn__decimal_to_float(&decimal, value)) {
        note_wide(&decimal, seen);
        return p;
    }
    p = qn__cell_read(at, end, separator, cell);
    *fault = take_odd_float(cell, value);
    if (*fault == QN__ROW_FINE && qn__cell_number(cell, &decimal))
        note_wide(&decimal, seen);
    return p;
}

/* A whole label. */
static qn__row_fault take_index(const qn__cell *cell, int32_t *label) {
    qn__decimal decimal;
    if (qn__cell_number(cell, &decimal))
        return qn__decimal_to_label(&decimal, label);
    const qn__content content = qn__cell_content(cell);
    if (content == QN__CONTENT_INFINITE)
        return QN__ROW_INFINITE;
    return content == QN__CONTENT_GAP ? QN__ROW_NO_LABEL : QN__ROW_LABEL_TEXT;
}

static qn__row_fault take_real(const qn__cell *cell, float *target) {
    const qn__content content = qn__cell_content(cell);
    if (content == QN__CONTENT_GAP)
        return QN__ROW_NO_LABEL;
    if (content == QN__CONTENT_TEXT || content == QN__CONTENT_NONE)
        return QN__ROW_LABEL_TEXT;
    return take_odd_float(cell, target);
}

/* A class by its text, or by that of its number. */
static qn__row_fault take_class(const qn__cell *cell, const qn__text_set *texts, int32_t *label) {
    char text[40];
    qn__cell name = *cell;
    const qn__content content = qn__cell_content(cell);
    if (content == QN__CONTENT_GAP)
        return QN__ROW_NO_LABEL;
    if (content == QN__CONTENT_INFINITE)
        return QN__ROW_INFINITE;
    if (content == QN__CONTENT_NUMBER && !qn__class_number(cell, text, &name))
        return QN__ROW_LABEL_RANGE;
    const uint32_t number = qn__text_set_find(texts, &name);
    *label = (int32_t)number;
    return number == QN__NO_TEXT ? QN__ROW_ENCODING : QN__ROW_FINE;
}

static qn__row_fault take_gap(float *value) {
    qn__set_missing(value);
    return QN__ROW_FINE;
}

static int is_gap(const qn__special *special, const qn__cell *cell) {
    return qn__cell_content(cell) == QN__CONTENT_GAP || (special->marks && qn__cell_is_mark(cell));
}

static qn__row_fault take_number(const qn__special *special, const qn__cell *cell, float *value) {
    const qn__row_fault fault = take_odd_float(cell, value);
    if (fault == QN__ROW_EMPTY ||
        (fault == QN__ROW_INFINITE && qn__cell_content(cell) != QN__CONTENT_INFINITE) ||
        (fault == QN__ROW_TEXT && is_gap(special, cell)))
        return take_gap(value);
    return fault;
}

static qn__row_fault take_category(const qn__special *special, const qn__cell *cell, float *value) {
    const uint32_t number = qn__text_set_find(special->texts, cell);
    if (number == QN__NO_TEXT) /* no missing cell was collected */
        return is_gap(special, cell) ? take_gap(value) : QN__ROW_ENCODING;
    *value = (float)number;
    return QN__ROW_FINE;
}

/* The list has the text already. */
static qn__row_fault take_listed(const qn__special *special, const qn__cell *cell, float *value) {
    if (is_gap(special, cell))
        return take_gap(value);
    *value = 0;
    return qn__cell_is_utf8(cell) ? QN__ROW_FINE : QN__ROW_ENCODING;
}

static qn__row_fault take_date(const qn__special *special, const qn__cell *cell, const char *format,
                               float *value, uint64_t row) {
    qn__moment moment;
    if (is_gap(special, cell))
        return take_gap(value);
    if (!qn__cell_moment(cell, format, &moment))
        return QN__ROW_TEXT; /* the file has changed since its cells were counted */
    *value = (float)qn__days_of_moment(moment.at);
    if (special->exact)
        special->exact[row].whole = moment.at;
    return QN__ROW_FINE;
}

static qn__row_fault take_weight(const qn__cell *cell, float *weight) {
    const qn__row_fault fault = take_odd_float(cell, weight);
    if (fault == QN__ROW_QUOTE || fault == QN__ROW_RANGE)
        return fault;
    if (fault != QN__ROW_FINE || *weight < 0.0f)
        return QN__ROW_WEIGHT;
    *weight = *weight == 0.0f ? 0.0f : *weight; /* without a sign */
    return QN__ROW_FINE;
}

/* A cell of a special column. A feature goes to *value.
 * On failure the cell is left in *cell for the message. */
static const char *take_special(const qn__special *special, const char *at, const char *end,
                                const qn__row_shape *shape, float *value,
                                const qn__row_places *places, qn__cell *cell,
                                qn__row_fault *fault) {
    const char *next = qn__cell_read(at, end, shape->separator, cell);
    *fault = QN__ROW_FINE;
    if (cell->broken) {
        *fault = QN__ROW_QUOTE;
        return next;
    }
    char number[QN__COMMA_BYTES];
    qn__cell own = {.text = number}, read = *cell;
    if (special->commas && qn__comma_read(cell, number, &own.size) >= 0)
        read = own;
    switch (special->kind) {
    case QN__COLUMN_SKIP:
        break;
    case QN__COLUMN_MISSING:
        *fault = take_number(special, &read, value);
        break;
    case QN__COLUMN_CATEGORY:
        *fault = (special->listed ? take_listed : take_category)(special, cell, value);
        break;
    case QN__COLUMN_DATE:
        *fault = take_date(special, cell, shape->date_format, value, places->row);
        break;
    case QN__COLUMN_INDEX:
        *fault = take_index(&read, places->label);
        break;
    case QN__COLUMN_CLASS:
        *fault = take_class(cell, special->texts, places->label);
        break;
    case QN__COLUMN_REAL:
        *fault = take_real(&read, places->label);
        break;
    case QN__COLUMN_WEIGHT:
        *fault = take_weight(cell, places->weight);
        break;
    }
    return next;
}

static int is_feature(qn__column_kind kind) {
    return kind == QN__COLUMN_MISSING || kind == QN__COLUMN_CATEGORY || kind == QN__COLUMN_DATE;
}

/* One to three digits and the separator after them, as in nearly all cells of bytes. Returns the
 * start of the next cell, or NULL where the cell has another form. */
static inline const char *take_digits(const char *at, const char *end, char separator,
                                      uint8_t *value) {
    if (end - at < 4)
        return NULL;
    unsigned sum = 0;
    for (int i = 0; i < 4; i++) {
        const unsigned digit = (unsigned char)at[i] - (unsigned)'0';
        if (digit > 9) {
            *value = (uint8_t)sum;
            return at[i] == separator && i > 0 && sum <= 255 ? at + i + 1 : NULL;
        }
        sum = sum * 10 + digit;
    }
    return NULL;
}

/* The cells of `count` plain features; NULL where one is not a byte, or missing. */
static const char *take_bytes(const char *at, const char *end, char separator, uint64_t count,
                              uint8_t *values, int *done) {
    int last = *done;
    for (uint64_t i = 0; i < count; i++) {
        if (last)
            return NULL;
        const char *const next = take_digits(at, end, separator, &values[i]);
        if (next) {
            at = next;
            continue;
        }
        at = take_byte(at, end, separator, &values[i]);
        if (!at)
            return NULL;
        at = step_over(at, end, &last);
    }
    *done = last;
    return at;
}

const char *qn__row_bytes(const qn__row_shape *shape, const char *at, const char *end,
                          uint8_t *values, const qn__row_places *places) {
    uint64_t column = 0;
    int done = 0;
    for (const qn__special *special = shape->special; at; special++) {
        const uint64_t stop = special->column < shape->columns ? special->column : shape->columns;
        at = take_bytes(at, end, shape->separator, stop - column, values, &done);
        values += stop - column;
        column = stop + 1;
        if (!at || stop == shape->columns)
            break;
        qn__cell cell;
        qn__row_fault fault;
        float none; /* a table of bytes has no special features */
        if (done)
            return NULL;
        at = take_special(special, at, end, shape, &none, places, &cell, &fault);
        if (fault != QN__ROW_FINE)
            return NULL;
        at = step_over(at, end, &done);
    }
    return done ? at : NULL;
}

const char *qn__row_listed(const qn__row_shape *shape, const char *at, const char *end,
                           const qn__special *listed, qn__text_list *list, qn_error *err) {
    const char *const line_end = qn__row_end(shape, at, end);
    qn__cell cell = {.broken = 1};
    for (uint64_t column = 0; column <= listed->column && at <= line_end; column++)
        at = qn__cell_read(at, line_end, shape->separator, &cell) + 1;
    const int gap = cell.broken || is_gap(listed, &cell);
    const char *text = gap ? NULL : cell.text;
    return qn__text_list_add(list, text, cell.size, cell.quoted, err) == QN_OK
               ? line_end + (line_end < end)
               : NULL;
}

/* Cells in the whole line, for a line that has too few or too many. */
static uint64_t count_cells(const char *line, const char *end, char separator) {
    uint64_t count = 0;
    int done = 0;
    while (!done) {
        qn__cell cell;
        line = qn__cell_read(line, end, separator, &cell);
        line = step_over(line, end, &done);
        count++;
    }
    return count;
}

/* Distinguishes a blank line from one with a wrong number of cells. Returns NULL, as the parser
 * that fails has to. */
static const char *fail_ragged(const qn__row_shape *shape, const char *line, const char *end,
                               qn__row_failure *failure) {
    qn__cell cell;
    const char *first = qn__cell_read(line, end, shape->separator, &cell);
    qn__cell_show(&cell, failure->text);
    failure->column = count_cells(line, end, shape->separator);
    failure->fault = failure->column > shape->columns ? QN__ROW_MANY : QN__ROW_FEW;
    if ((first == end || *first == '\n') && cell.size == 0 && !cell.quoted)
        failure->fault = QN__ROW_BLANK;
    return NULL;
}

static const char *fail_cell(qn__row_failure *failure, qn__row_fault fault, uint64_t column,
                             const qn__cell *cell) {
    failure->fault = fault;
    failure->column = column;
    qn__cell_show(cell, failure->text);
    return NULL;
}

/* If both a cell and the number of cells are wrong, the number is the likelier mistake and is
 * reported, unless quotes make the count doubtful. */
static const char *fail_row(const qn__row_shape *shape, const char *line, const char *end,
                            qn__row_fault fault, uint64_t column, const qn__cell *cell,
                            qn__row_failure *failure) {
    if (fault != QN__ROW_QUOTE && count_cells(line, end, shape->separator) != shape->columns)
        return fail_ragged(shape, line, end, failure);
    return fail_cell(failure, fault, column, cell);
}

/* Notes a cell that is not a byte. */
static void note_odd(uint8_t *seen, const char *at, const char *end, char separator) {
    uint8_t byte;
    if (!(*seen & QN__SEEN_NOT_BYTE) && !take_byte(at, end, separator, &byte))
        *seen |= QN__SEEN_NOT_BYTE;
}

/* The same of a feature of a special column. */
static void note_special(const qn__special *special, const qn__cell *cell, uint8_t *seen) {
    qn__decimal decimal;
    *seen |= QN__SEEN_NOT_BYTE | (special->commas ? QN__SEEN_FRACTION : 0);
    if (special->kind == QN__COLUMN_MISSING && !(*seen & QN__SEEN_FRACTION) &&
        qn__cell_number(cell, &decimal))
        note_wide(&decimal, seen);
}

const char *qn__row_floats(const qn__row_shape *shape, const char *at, const char *end,
                           float *values, const qn__row_places *places, qn__row_failure *failure) {
    const qn__special *special = shape->special;
    const uint64_t columns = shape->columns;
    const char separator = shape->separator, *line = at;
    uint64_t next = special->column;
    uint8_t none = QN__SEEN_NOT_BYTE | QN__SEEN_FRACTION,
            *seen = places->seen ? places->seen : &none;
    const int step = places->seen != NULL;
    int done = 0;
    for (uint64_t column = 0; column < columns; column++) {
        qn__cell cell;
        qn__row_fault fault;
        if (done)
            return fail_ragged(shape, line, end, failure);
        if (column == next) {
            at = take_special(special, at, end, shape, values, places, &cell, &fault);
            if (columns == 1 && cell.size == 0 && !cell.quoted) /* no missing value */
                return fail_ragged(shape, line, end, failure);
            if (is_feature(special->kind)) {
                note_special(special, &cell, seen);
                seen += step;
                values++;
            }
            next = (++special)->column;
        } else {
            note_odd(seen, at, end, separator);
            at = take_float(at, end, separator, values++, seen, &cell, &fault);
            seen += step;
        }
        if (fault != QN__ROW_FINE)
            return fail_row(shape, line, end, fault, column, &cell, failure);
        at = step_over(at, end, &done);
    }
    return done ? at : fail_ragged(shape, line, end, failure);
}

const char *qn__line_end(const char *at, const char *end) {
    const char *found = memchr(at, '\n', (size_t)(end - at));
    return found ? found : end;
}

const char *qn__row_end(const qn__row_shape *shape, const char *at, const char *end) {
    return shape->spread ? qn__csv_row_end(at, end, shape->separator, QN__CSV_CELL)
                         : qn__line_end(at, end);
}

const char *qn__row_whole(const qn__row_shape *shape, const char *at, const char *end,
                          const uint64_t *column, uint32_t count, int64_t *const *to,
                          uint64_t row) {
    const char *const line_end = qn__row_end(shape, at, end);
    qn__decimal decimal;
    qn__cell cell;
    for (uint64_t c = 0, j = 0; j < count && at <= line_end; c++) {
        at = qn__cell_read(at, line_end, shape->separator, &cell) + 1;
        if (c < column[j])
            continue;
        if (qn__cell_number(&cell, &decimal))
            (void)qn__decimal_to_whole(&decimal, &to[j][row]);
        j++;
    }
    return line_end + (line_end < end);
}

const char *qn__row_count(const qn__row_shape *shape, const char *at, const char *end,
                          qn__row_failure *failure) {
    if (count_cells(at, end, shape->separator) != shape->columns)
        return fail_ragged(shape, at, end, failure);
    at = qn__row_end(shape, at, end);
    return at + (at < end);
}
