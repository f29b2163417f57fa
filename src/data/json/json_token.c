#include "data/json/json_token.h"
#include "base/encoding.h"
#include "data/cells/cell.h"
#include "base/text/text.h"
#include <stdlib.h>
#include <string.h>

char qn__json_next(qn__json_scan *scan) {
    for (; scan->at < scan->end; scan->at++) {
        const char c = *scan->at;
        if (c == '\n')
            scan->line++;
        else if (c != ' ' && c != '\t' && c != '\r')
            return c;
    }
    return '\0';
}

static void fail(qn__json_scan *scan, char *at, const char *what, qn__token *out) {
    scan->at = at;
    *out = (qn__token){.kind = QN__TOKEN_BAD, .what = what};
}

/* ------------------------------------------------------------------ texts */

/* Four hexadecimal digits, or -1. */
static int32_t read_hex(const char *at, const char *end) {
    int32_t value = 0;
    if (end - at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        const int digit = qn__hex_digit(at[i]);
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* What stands for a character that texts of tables do not have. */
static int32_t replace(qn__json_scan *scan) {
    if (scan->zeros++ == 0)
        scan->zeroed = scan->line;
    return 0xFFFD;
}

/* The character of the escape whose digits begin at *at, which moves after them; -1: there is
 * none. Characters beyond 16 bits are two escapes (surrogates). Texts of tables have no U+0000, and
 * no surrogates, which Python's json module writes alone. */
static int32_t read_character(qn__json_scan *scan, char **at, const char *end) {
    const int32_t first = read_hex(*at, end);
    *at += 4;
    if (first == 0)
        return replace(scan);
    if (first < 0xD800 || first > 0xDFFF)
        return first;
    const int pair = first < 0xDC00 && end - *at >= 6 && (*at)[0] == '\\' && (*at)[1] == 'u';
    const int32_t second = pair ? read_hex(*at + 2, end) : -1;
    if (second < 0xDC00 || second > 0xDFFF)
        return scan->strict ? -1 : replace(scan);
    *at += 6;
    return 0x10000 + (first - 0xD800) * 0x400 + (second - 0xDC00);
}

static char *put_utf8(char *to, int32_t c) {
    if (c < 0x80) {
        *to++ = (char)c;
    } else if (c < 0x800) {
        *to++ = (char)(0xC0 | c >> 6);
        *to++ = (char)(0x80 | (c & 63));
    } else {
        if (c < 0x10000) {
            *to++ = (char)(0xE0 | c >> 12);
        } else {
            *to++ = (char)(0xF0 | c >> 18);
            *to++ = (char)(0x80 | (c >> 12 & 63));
        }
        *to++ = (char)(0x80 | (c >> 6 & 63));
        *to++ = (char)(0x80 | (c & 63));
    }
    return to;
}

/* Decodes the escape at `at` to `to`; NULL: it is none. An escape is longer than its character. */
static char *read_escape(qn__json_scan *scan, char *at, const char *end, char **to) {
    static const char letters[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    if (end - at < 2)
        return NULL;
    const char *letter = at[1] ? strchr(letters, at[1]) : NULL;
    if (letter) {
        *(*to)++ = means[letter - letters];
        return at + 2;
    }
    char *from = at + 2;
    const int32_t character = at[1] == 'u' ? read_character(scan, &from, end) : -1;
    if (character < 0)
        return NULL;
    *to = put_utf8(*to, character);
    return from;
}

/* The first byte from `at` on that ends a text, begins an escape, or is a control character. */
static char *skip_plain(char *at, const char *end, int *high) {
    for (; at < end && *at != '"' && *at != '\\' && (unsigned char)*at >= 0x20; at++)
        *high |= *at & 0x80;
    return at;
}

static void read_text(qn__json_scan *scan, qn__token *out) {
    char *begin = scan->at + 1, *to;
    int high = 0;
    char *at = to = skip_plain(begin, scan->end, &high);
    while (at < scan->end && *at == '\\') {
        char *after = read_escape(scan, at, scan->end, &to);
        if (!after) {
            fail(scan, at, "an escape is not one of JSON, or a name holds half a character", out);
            return;
        }
        at = skip_plain(after, scan->end, &high);
        memmove(to, after, (size_t)(at - after));
        to += at - after;
    }
    if (at == scan->end || *at != '"') {
        fail(scan, at, at == scan->end ? "a text does not end" : "a text holds a control character",
             out);
        return;
    }
    *out = (qn__token){.kind = QN__TOKEN_TEXT, .text = begin, .size = (size_t)(to - begin)};
    if (high && !qn__cell_is_utf8(&(qn__cell){.text = begin, .size = out->size}))
        fail(scan, begin, "a text is not UTF-8", out);
    else
        scan->at = at + 1;
}

/* ------------------------------------------------------------------ numbers */

static char *skip_digits(char *at, const char *end) {
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    return at;
}

/* The end of a number of JSON; NULL: it is none. *whole: it has neither a point nor an exponent. */
static char *number_end(char *at, const char *end, int *whole) {
    *whole = 1;
    at += at < end && *at == '-';
    char *after = skip_digits(at, end);
    if (after == at || (*at == '0' && after > at + 1))
        return NULL;
    if (after < end && *after == '.') {
        *whole = 0;
        at = after + 1;
        if ((after = skip_digits(at, end)) == at)
            return NULL;
    }
    if (after < end && (*after == 'e' || *after == 'E')) {
        *whole = 0;
        at = after + 1;
        at += at < end && (*at == '+' || *at == '-');
        if ((after = skip_digits(at, end)) == at)
            return NULL;
    }
    return after;
}

/* The nearest binary64: by one exact operation (Clinger 1990) where that does, else by the C
 * library. */
static double nearest(const char *at, const char *end) {
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    qn__decimal d;
    qn__decimal_read(at, end, &d);
    if (d.cut || d.mantissa >> 53 || d.exponent < -22 || d.exponent > 22)
        return strtod_l(at, NULL, qn__c_locale());
    const double value = (double)d.mantissa;
    const double scaled = d.exponent < 0 ? value / tens[-d.exponent] : value * tens[d.exponent];
    return d.negative ? -scaled : scaled;
}

/* 1 where the digits are an integer of 64 bits. */
static int read_whole(const char *at, const char *end, int64_t *out) {
    const int negative = *at == '-';
    int64_t sum = 0;
    for (at += negative; at < end; at++)
        if (__builtin_mul_overflow(sum, 10, &sum) ||
            (negative ? __builtin_sub_overflow(sum, *at - '0', &sum)
                      : __builtin_add_overflow(sum, *at - '0', &sum)))
            return 0;
    *out = sum;
    return 1;
}

static void read_number(qn__json_scan *scan, qn__token *out) {
    int whole;
    char *end = number_end(scan->at, scan->end, &whole);
    if (!end) {
        fail(scan, scan->at, "a number is not written as in JSON", out);
        return;
    }
    *out = (qn__token){.kind = QN__TOKEN_WHOLE};
    if (!whole || !read_whole(scan->at, end, &out->whole)) {
        out->kind = QN__TOKEN_NUMBER;
        out->number = nearest(scan->at, end);
    }
    scan->at = end;
}

/* ------------------------------------------------------------------ values */

static int take_word(qn__json_scan *scan, const char *word) {
    const size_t size = strlen(word);
    if ((size_t)(scan->end - scan->at) < size || memcmp(scan->at, word, size) != 0)
        return 0;
    scan->at += size;
    return 1;
}

static void read_word(qn__json_scan *scan, qn__token *out) {
    char *begin = scan->at;
    if (take_word(scan, "null") || take_word(scan, "NaN"))
        *out = (qn__token){.kind = QN__TOKEN_NULL};
    else if (take_word(scan, "true"))
        *out = (qn__token){.kind = QN__TOKEN_BOOL, .whole = 1};
    else if (take_word(scan, "false"))
        *out = (qn__token){.kind = QN__TOKEN_BOOL};
    else if (take_word(scan, "Infinity") || take_word(scan, "-Infinity"))
        fail(scan, begin, "the value is infinite", out);
    else
        fail(scan, begin, "this is not a value of JSON", out);
}

void qn__json_token(qn__json_scan *scan, qn__token *out) {
    const char first = scan->at < scan->end ? *scan->at : '\0';
    if (first == '"')
        read_text(scan, out);
    else if ((first == '-' && scan->at + 1 < scan->end && scan->at[1] != 'I') ||
             (first >= '0' && first <= '9'))
        read_number(scan, out);
    else if (first == '{' || first == '[')
        *out = (qn__token){.kind = first == '{' ? QN__TOKEN_OBJECT : QN__TOKEN_ARRAY};
    else
        read_word(scan, out);
}

/* ------------------------------------------------------------------ arrays of words */

/* Why the value, whose text goes from `at` to the scan's place, is not a word; NULL: it is one.
 * Numbers get their text. */
static const char *check_word(const qn__json_scan *scan, const char *at, qn__token *word) {
    if (word->kind == QN__TOKEN_WHOLE) {
        word->text = at;
        word->size = (size_t)(scan->at - at);
    } else if (word->kind != QN__TOKEN_TEXT) {
        return "a value is neither a text nor a whole number";
    }
    return qn__word_fault(word->text, word->size);
}

/* The words are moved to the front of the array: a comma was before each but the first. */
void qn__json_words(qn__json_scan *scan, qn__token *out) {
    char *const begin = scan->at++, *to = begin;
    char next = qn__json_next(scan);
    while (next != ']') {
        qn__token word;
        qn__json_next(scan);
        char *at = scan->at;
        qn__json_token(scan, &word);
        const char *what = word.kind == QN__TOKEN_BAD ? NULL : check_word(scan, at, &word);
        if (word.kind == QN__TOKEN_BAD || what) {
            scan->at = what ? at : scan->at;
            *out = what ? (qn__token){.kind = QN__TOKEN_ARRAY, .what = what} : word;
            return;
        }
        if (to > begin)
            *to++ = ' ';
        memmove(to, word.text, word.size);
        to += word.size;
        next = qn__json_next(scan);
        if (next != ',' && next != ']') {
            fail(scan, scan->at, "an array has neither ',' nor ']' after a value", out);
            return;
        }
        scan->at += next == ',';
    }
    scan->at++;
    *out = (qn__token){.kind = QN__TOKEN_TEXT, .text = begin, .size = (size_t)(to - begin)};
}
