/* Cells and decimal numbers of CSV text. */
#include "data/cells/cell.h"
#include "base/binary/float_bits.h"
#include "data/table/dates.h"
#include <float.h>
#include <string.h>
#include <strings.h>

static int is_blank(char c, char separator) {
    return (c == ' ' || c == '\t' || c == '\r') && c != separator;
}

/* A quoted cell: `at` is after the opening quote. Two quotes in a row are one quote of the text. */
static const char *read_quoted(const char *at, const char *end, char separator, qn__cell *cell) {
    cell->quoted = 1;
    cell->text = at;
    while (at < end) {
        if (*at != '"') {
            at++;
        } else if (at + 1 < end && at[1] == '"') {
            at += 2;
        } else {
            break;
        }
    }
    cell->size = (size_t)(at - cell->text);
    if (at == end || *at != '"') {
        cell->broken = 1;
        return at;
    }
    at++;
    while (at < end && is_blank(*at, separator))
        at++;
    if (at < end && *at != separator && *at != '\n')
        cell->broken = 1;
    while (at < end && *at != separator && *at != '\n')
        at++;
    return at;
}

const char *qn__cell_read(const char *at, const char *end, char separator, qn__cell *cell) {
    cell->quoted = 0;
    cell->broken = 0;
    while (at < end && is_blank(*at, separator))
        at++;
    if (at < end && *at == '"')
        return read_quoted(at + 1, end, separator, cell);
    cell->text = at;
    while (at < end && *at != separator && *at != '\n')
        at++;
    const char *last = at;
    while (last > cell->text && is_blank(last[-1], separator))
        last--;
    cell->size = (size_t)(last - cell->text);
    return at;
}

/* Reads digits into the mantissa while they fit. Returns the number of digits. Digits that did not
 * fit are counted in *dropped, and noted as a cut unless they are zeros. */
static size_t read_digits(const char **at, const char *end, qn__decimal *out, size_t *dropped) {
    const char *p = *at;
    while (p < end && *p >= '0' && *p <= '9') {
        unsigned digit = (unsigned)(*p++ - '0');
        if (*dropped == 0 && out->mantissa <= (UINT64_MAX - 9) / 10) {
            out->mantissa = out->mantissa * 10 + digit;
        } else {
            out->cut |= digit != 0;
            (*dropped)++;
        }
    }
    size_t count = (size_t)(p - *at);
    *at = p;
    return count;
}

/* A count of digits as part of the exponent. A count beyond any sensible size marks the number as
 * cut, so that qn__parse_float reads it. */
static int places_of(size_t count, qn__decimal *out) {
    out->cut |= count > 1000000;
    return count > 1000000 ? 1000000 : (int)count;
}

/* The exponent after an 'e', limited to seven digits: beyond that the number is zero or
 * infinite. */
static const char *read_exponent(const char *at, const char *end, int *out) {
    int negative = 0, value = 0;
    if (at < end && (*at == '+' || *at == '-'))
        negative = *at++ == '-';
    const char *first = at;
    for (; at < end && *at >= '0' && *at <= '9'; at++)
        if (value < 1000000)
            value = value * 10 + (*at - '0');
    *out = negative ? -value : value;
    return at == first ? NULL : at;
}

const char *qn__decimal_read(const char *at, const char *end, qn__decimal *out) {
    *out = (qn__decimal){0};
    if (at < end && (*at == '+' || *at == '-'))
        out->negative = *at++ == '-';
    size_t dropped = 0;
    size_t digits = read_digits(&at, end, out, &dropped);
    int exponent = places_of(dropped, out);
    if (at < end && *at == '.') {
        at++;
        size_t before = dropped;
        size_t places = read_digits(&at, end, out, &dropped);
        digits += places;
        exponent -= places_of(places - (dropped - before), out);
    }
    if (digits == 0)
        return NULL;
    if (at < end && (*at == 'e' || *at == 'E')) {
        int given = 0;
        at = read_exponent(at + 1, end, &given);
        exponent += given;
    }
    out->exponent = exponent;
    return at;
}

/* Exact powers of ten in binary64. */
static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                              1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                              1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* With a mantissa below 2^53 and a power up to 10^22 both operands are exact, so the quotient or
 * product is the nearest binary64 (Clinger 1990). Rounding it once more to binary32 is right unless
 * it is exactly halfway between two floats. Every such midpoint is a binary64, so a number on one
 * side of it is never rounded past it, only onto it. Subnormal results and those near overflow are
 * left to qn__parse_float. */
int qn__decimal_to_float(const qn__decimal *decimal, float *out) {
    if (decimal->cut || decimal->mantissa >> 53 != 0 || decimal->exponent < -22 ||
        decimal->exponent > 22)
        return 0;
    double value = (double)decimal->mantissa;
    value =
        decimal->exponent < 0 ? value / tens[-decimal->exponent] : value * tens[decimal->exponent];
    if ((qn__double_bits(value) & 0x1FFFFFFF) == 0x10000000)
        return 0;
    if (value != 0 && (value < 2 * (double)FLT_MIN || value > (double)FLT_MAX / 2))
        return 0;
    *out = decimal->negative ? -(float)value : (float)value;
    return 1;
}

qn__row_fault qn__decimal_to_label(const qn__decimal *decimal, int32_t *label) {
    uint64_t value = decimal->mantissa;
    int exponent = decimal->exponent;
    if (decimal->cut && exponent < 0)
        return QN__ROW_LABEL_BROKEN;
    for (; exponent < 0 && value != 0; exponent++) {
        if (value % 10 != 0)
            return QN__ROW_LABEL_BROKEN;
        value /= 10;
    }
    for (; exponent > 0 && value != 0 && value <= INT32_MAX; exponent--)
        value *= 10;
    if (value > INT32_MAX || (decimal->cut && value != 0))
        return QN__ROW_LABEL_RANGE;
    *label = decimal->negative ? -(int32_t)value : (int32_t)value;
    return QN__ROW_FINE;
}

int qn__decimal_to_whole(const qn__decimal *decimal, int64_t *out) {
    uint64_t value = decimal->mantissa;
    int exponent = decimal->exponent;
    if (decimal->cut) /* a fraction, or more digits than 2^63 has */
        return 0;
    for (; exponent < 0 && value != 0; exponent++) {
        if (value % 10 != 0)
            return 0;
        value /= 10;
    }
    for (; exponent > 0 && value != 0; exponent--)
        if (__builtin_mul_overflow(value, (uint64_t)10, &value))
            return 0;
    if (value > INT64_MAX)
        return 0;
    *out = decimal->negative ? -(int64_t)value : (int64_t)value;
    return 1;
}

int qn__cell_number(const qn__cell *cell, qn__decimal *decimal) {
    const char *end = cell->text + cell->size;
    return qn__decimal_read(cell->text, end, decimal) == end && cell->size > 0;
}

/* A word in lower case. */
typedef struct word {
    const char *text;
    size_t size;
} word;
#define WORD(text)                                                                                 \
    { text, sizeof text - 1 }

/* The last word has no text. Most cells differ in their size or in their first letter. */
static int is_word(const char *text, size_t size, const word *words) {
    if (size == 0)
        return 0;
    const char first = *text >= 'A' && *text <= 'Z' ? (char)(*text | 0x20) : *text;
    for (; words->text; words++)
        if (size == words->size && first == *words->text &&
            strncasecmp(text, words->text, size) == 0)
            return 1;
    return 0;
}

qn__content qn__cell_content(const qn__cell *cell) {
    static const word missing[] = {WORD("nan"),  WORD("na"),   WORD("n/a"), WORD("null"),
                                   WORD("#n/a"), WORD("<na>"), WORD("?"),   {NULL, 0}};
    static const word infinite[] = {WORD("inf"), WORD("infinity"), {NULL, 0}};
    static const word none[] = {WORD("none"), {NULL, 0}};
    qn__decimal number;
    const char *text = cell->text;
    size_t size = cell->size;
    if (qn__cell_number(cell, &number))
        return QN__CONTENT_NUMBER;
    if (size > 0 && (*text == '+' || *text == '-')) {
        text++;
        size--;
    }
    if (size == 0 || is_word(text, size, missing))
        return QN__CONTENT_GAP;
    if (is_word(text, size, none))
        return QN__CONTENT_NONE;
    return is_word(text, size, infinite) ? QN__CONTENT_INFINITE : QN__CONTENT_TEXT;
}

int qn__cell_moment(const qn__cell *cell, const char *format, qn__moment *out) {
    return format ? qn__moment_read_as(format, cell->text, cell->size, out)
                  : qn__moment_read(cell->text, cell->size, out);
}

int qn__cell_is_mark(const qn__cell *cell) {
    static const word marks[] = {WORD("none"),
                                 WORD("#na"),
                                 WORD("#n/a n/a"),
                                 WORD("1.#ind"),
                                 WORD("1.#qnan"),
                                 WORD("nat"),
                                 WORD("\\n"),
                                 WORD("."),
                                 WORD("--"),
                                 WORD("---"),
                                 WORD("\xE2\x80\x93"),
                                 /* the dashes of two widths */ WORD("\xE2\x80\x94"),
                                 {NULL, 0}};
    const int sign = cell->size > 0 && (*cell->text == '+' || *cell->text == '-');
    return is_word(cell->text, cell->size, marks) ||
           (sign && is_word(cell->text + 1, cell->size - 1, marks));
}

/* Bytes of the UTF-8 character at `at`, or 0 if it is incomplete or malformed. */
static size_t character(const unsigned char *at, size_t left) {
    size_t size = *at < 0x80                  ? 1
                  : *at >= 0xC2 && *at < 0xE0 ? 2
                  : (*at & 0xF0) == 0xE0      ? 3
                  : *at >= 0xF0 && *at < 0xF5 ? 4
                                              : 0;
    if (size == 0 || size > left)
        return 0;
    for (size_t i = 1; i < size; i++)
        if ((at[i] & 0xC0) != 0x80)
            return 0;
    int overlong = (*at == 0xE0 && at[1] < 0xA0) || (*at == 0xF0 && at[1] < 0x90);
    int beyond = (*at == 0xED && at[1] >= 0xA0) || (*at == 0xF4 && at[1] >= 0x90);
    return overlong || beyond ? 0 : size;
}

void qn__cell_show(const qn__cell *cell, char text[64]) {
    const unsigned char *from = (const unsigned char *)cell->text;
    size_t capacity = 40, i = 0, used = 0;
    while (i < cell->size) {
        size_t size = character(from + i, cell->size - i);
        if (used + (size ? size : 1) > capacity) {
            memcpy(text + used, "...", 3);
            used += 3;
            break;
        }
        if (size == 0 || from[i] < 0x20 || from[i] == 0x7F) {
            text[used++] = '?';
            i++;
        } else {
            memcpy(text + used, from + i, size);
            used += size;
            i += size;
        }
    }
    text[used] = '\0';
}

void qn__cell_show_text(const char *text, char shown[64]) {
    qn__cell_show(&(qn__cell){.text = text, .size = strlen(text)}, shown);
}

int qn__cell_is_utf8(const qn__cell *cell) {
    const unsigned char *text = (const unsigned char *)cell->text;
    for (size_t i = 0; i < cell->size;) {
        const size_t size = character(text + i, cell->size - i);
        if (size == 0 || text[i] == 0)
            return 0;
        i += size;
    }
    return 1;
}

const char *qn__word_fault(const char *text, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (text[i] == ' ' || (text[i] >= '\t' && text[i] <= '\r'))
            return "a word has white space inside";
    return size == 0 ? "a word is empty" : NULL;
}
