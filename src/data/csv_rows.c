/* Parses one line of CSV into numbers. Nearly all cells take the fast path: digits, then a
 * separator. */
#include "base/text.h"
#include "data/csv.h"
#include <math.h>

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

/* The label from a number: whole, 0 or more, below 2^31. "3.0" and "3e0" are 3. */
static qn__row_fault take_label(const qn__decimal *decimal, int32_t *label) {
    uint64_t value = decimal->mantissa;
    int exponent = decimal->exponent;
    if (decimal->cut && exponent < 0)
        return QN__ROW_LABEL_BROKEN;
    for (; exponent < 0 && value != 0; exponent++) {
        if (value % 10 != 0)
            return QN__ROW_LABEL_BROKEN;
        value /= 10;
    }
    if (decimal->negative && value != 0)
        return QN__ROW_LABEL_SIGN;
    for (; exponent > 0 && value != 0 && value <= INT32_MAX; exponent--)
        value *= 10;
    if (value > INT32_MAX || (decimal->cut && value != 0))
        return QN__ROW_LABEL_RANGE;
    *label = (int32_t)value;
    return QN__ROW_FINE;
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
        p = qn__cell_read(at, end, separator, 0, &cell);
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

/* A label's cell. On failure *cell holds the cell for the message. */
static const char *take_label_cell(const char *at, const char *end, char separator, int32_t *label,
                                   qn__cell *cell, qn__row_fault *fault) {
    qn__decimal decimal;
    const char *p = qn__cell_read(at, end, separator, 0, cell);
    if (cell->broken)
        *fault = QN__ROW_QUOTE;
    else if (cell->size == 0)
        *fault = QN__ROW_NO_LABEL;
    else if (!qn__cell_number(cell, &decimal))
        *fault = QN__ROW_LABEL_TEXT;
    else
        *fault = take_label(&decimal, label);
    return p;
}

const char *qn__row_bytes(const qn__csv_shape *shape, const char *at, const char *end,
                          uint8_t *values, int32_t *label) {
    int done = 0;
    for (uint64_t column = 0; column < shape->columns; column++) {
        if (done)
            return NULL;
        if (column == shape->label) {
            qn__cell cell;
            qn__row_fault fault;
            at = take_label_cell(at, end, shape->separator, label, &cell, &fault);
            if (fault != QN__ROW_FINE)
                return NULL;
        } else {
            at = take_byte(at, end, shape->separator, values++);
            if (!at)
                return NULL;
        }
        at = step_over(at, end, &done);
    }
    return done ? at : NULL;
}

/* A number's cell, slow path: quotes, blanks, many digits, and errors. */
static qn__row_fault take_odd_float(const qn__cell *cell, float *value) {
    qn__decimal decimal;
    if (cell->broken)
        return QN__ROW_QUOTE;
    if (cell->size == 0)
        return QN__ROW_EMPTY;
    if (!qn__cell_number(cell, &decimal))
        return qn__cell_is_gap(cell) ? QN__ROW_INFINITE : QN__ROW_TEXT;
    if (qn__decimal_to_float(&decimal, value))
        return QN__ROW_FINE;
    if (!qn__parse_float(cell->text, cell->size, value) || !isfinite(*value))
        return QN__ROW_RANGE;
    return QN__ROW_FINE;
}

static const char *take_float(const char *at, const char *end, char separator, float *value,
                              qn__cell *cell, qn__row_fault *fault) {
    qn__decimal decimal;
    *fault = QN__ROW_FINE;
    const char *p = qn__decimal_read(at, end, &decimal);
    if (p && ends_cell(p, end, separator) && qn__decimal_to_float(&decimal, value))
        return p;
    p = qn__cell_read(at, end, separator, 0, cell);
    *fault = take_odd_float(cell, value);
    return p;
}

/* Cells in the line, for a line that has too few or too many. */
static uint64_t count_cells(const char *line, const char *end, char separator) {
    uint64_t count = 0;
    int done = 0;
    while (!done) {
        qn__cell cell;
        line = qn__cell_read(line, end, separator, 0, &cell);
        line = step_over(line, end, &done);
        count++;
    }
    return count;
}

/* Distinguishes a blank line from one with a wrong number of cells. Returns NULL, as the parser
 * that fails has to. */
static const char *fail_ragged(const qn__csv_shape *shape, const char *line, const char *end,
                               qn__row_failure *failure) {
    qn__cell cell;
    const char *first = qn__cell_read(line, end, shape->separator, 0, &cell);
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
static const char *fail_row(const qn__csv_shape *shape, const char *line, const char *end,
                            qn__row_fault fault, uint64_t column, const qn__cell *cell,
                            qn__row_failure *failure) {
    if (fault != QN__ROW_QUOTE && count_cells(line, end, shape->separator) != shape->columns)
        return fail_ragged(shape, line, end, failure);
    return fail_cell(failure, fault, column, cell);
}

const char *qn__row_floats(const qn__csv_shape *shape, const char *at, const char *end,
                           float *values, int32_t *label, qn__row_failure *failure) {
    const char *line = at;
    int done = 0;
    for (uint64_t column = 0; column < shape->columns; column++) {
        qn__cell cell = {0};
        qn__row_fault fault;
        if (done)
            return fail_ragged(shape, line, end, failure);
        if (column == shape->label)
            at = take_label_cell(at, end, shape->separator, label, &cell, &fault);
        else
            at = take_float(at, end, shape->separator, values++, &cell, &fault);
        if (fault != QN__ROW_FINE)
            return fail_row(shape, line, end, fault, column, &cell, failure);
        at = step_over(at, end, &done);
    }
    return done ? at : fail_ragged(shape, line, end, failure);
}
