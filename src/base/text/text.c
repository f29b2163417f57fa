#include "base/text/text.h"

#include "base/encoding.h"
#include "base/memory.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The fewest digits that may read back as the value: its first nine digits as a whole number lie
 * less than one from it, and each float is read from at most 2^-24 of it to either side. A shorter
 * text that is farther off than both together reads back as another float. */
static int fewest_digits(float value) {
    char text[32];
    uint32_t number = 0, unit = 100000000;
    int digits = 1;
    if (!isnormal(value))
        return 1;
    snprintf(text, sizeof text, "%.8e", fabs((double)value));
    for (const char *at = text; *at != 'e'; at++)
        number = *at == '.' ? number : number * 10 + (uint32_t)(*at - '0');
    for (; digits < 9; digits++, unit /= 10) {
        const uint32_t over = number % unit, off = over < unit - over ? over : unit - over;
        if (off <= (number >> 24) + 2)
            break;
    }
    return digits;
}

void qn__float_text(float value, char *text) {
    const locale_t before = uselocale(qn__c_locale());
    for (int digits = fewest_digits(value); digits <= 9; digits++) {
        snprintf(text, 32, "%.*g", digits, (double)value);
        float back;
        /* Nine digits always suffice; a NaN or an infinity never reads back and is left as
         * printf writes it. The sign of a zero is part of it. */
        if (qn__parse_float(text, strlen(text), &back) && back == value)
            break;
    }
    uselocale(before);
}

static int gives_back(const char *text, double value) {
    float near;
    return strtod(text, NULL) == value &&
           (!qn__parse_float(text, strlen(text), &near) || near == (float)value);
}

/* Adds `step`, 1 or -1, to the last of 18 digits. That is less than half of what lies between two
 * doubles. */
static void move_last(char *text, int step) {
    char *at = text + strcspn(text, "e") - 1;
    const char end = step > 0 ? '9' : '0', begin = step > 0 ? '0' : '9';
    for (; at > text && (*at == end || *at == '.'); at--)
        if (*at == end)
            *at = begin;
    if (*at >= '0' && *at <= '9')
        *at = (char)(*at + step);
}

void qn__real_text(double value, char text[QN__REAL_TEXT]) {
    const locale_t before = uselocale(qn__c_locale());
    int digits = 15;
    snprintf(text, QN__REAL_TEXT, "%.*g", digits, value);
    while (digits < 18 && !gives_back(text, value))
        snprintf(text, QN__REAL_TEXT, "%.*g", ++digits, value);
    if (!gives_back(text, value)) { /* between two floats: to the side of the even one */
        snprintf(text, QN__REAL_TEXT, "%#.18g", value);
        move_last(text, fabs((double)(float)value) > fabs(value) ? 1 : -1);
    }
    uselocale(before);
}

/* Positional digits up to here: 0.00001 to below 10^15. */
enum { PLAIN_LEAST = -5, PLAIN_MOST = 15 };

void qn__float_plain(float value, char text[40]) {
    char digits[16], *end;
    size_t count = 0, used = 0;
    qn__float_text(value, text);
    const char *e = strchr(text, 'e');
    const long power = e ? strtol(e + 1, &end, 10) : 0;
    if (!e || power < PLAIN_LEAST || power >= PLAIN_MOST)
        return;
    for (const char *at = text; at < e && count < sizeof digits; at++)
        if (*at >= '0' && *at <= '9')
            digits[count++] = *at;
    used = text[0] == '-';
    for (long place = power < 0 ? 0 : power; place >= 0 || place > power - (long)count; place--) {
        if (place == -1)
            text[used++] = '.';
        const long at = power - place;
        text[used++] = at >= 0 && at < (long)count ? digits[at] : '0';
    }
    text[used] = '\0';
}

int qn__parse_u64(const char *text, size_t size, uint64_t *out) {
    uint64_t value = 0;
    if (size == 0)
        return 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value))
            return 0;
    }
    *out = value;
    return 1;
}

/* The midpoint of two floats has at most 113 significant digits. So of a longer number only this
 * many count, and whether a later digit is not zero. */
enum { DIGITS_MAX = 128 };

/* (-1)^negative * 0.d1 d2 d3 ... * 10^point, d1 > 0 unless `count` is 0 */
typedef struct decimal {
    char digits[DIGITS_MAX];
    int count;
    int64_t point;
    int negative;
} decimal;

/* Appends a digit; `whole` is 1 before the decimal point. */
static void take_digit(decimal *number, char digit, int whole) {
    if (number->count == 0 && digit == '0') {
        number->point -= !whole; /* leading zeros count only after the point */
        return;
    }
    number->point += whole;
    if (number->count < DIGITS_MAX)
        number->digits[number->count++] = digit;
    else if (digit != '0')
        number->digits[DIGITS_MAX - 1] = '1'; /* sticky: more digits follow that are not zero */
}

/* The exponent after 'e', clamped far beyond the range of a float. Returns its length in bytes,
 * sign included, or 0 when there is no digit. */
static size_t scan_exponent(const char *text, size_t size, int64_t *exponent) {
    const int64_t far = (int64_t)1 << 60;
    const int negative = size > 0 && text[0] == '-';
    const size_t sign = size > 0 && (text[0] == '-' || text[0] == '+');
    size_t at = sign;
    int64_t value = 0;
    for (; at < size && text[at] >= '0' && text[at] <= '9'; at++)
        value = value < far / 16 ? value * 10 + (text[at] - '0') : far;
    *exponent = negative ? -value : value;
    return at == sign ? 0 : at;
}

/* [+-] digits [. digits] [e [+-] digits], at least one digit before the exponent. */
static int scan_decimal(const char *text, size_t size, decimal *number) {
    *number = (decimal){.negative = size > 0 && text[0] == '-'};
    size_t at = size > 0 && (text[0] == '-' || text[0] == '+');
    const size_t begin = at;
    for (; at < size && text[at] >= '0' && text[at] <= '9'; at++)
        take_digit(number, text[at], 1);
    size_t digits = at - begin;
    if (at < size && text[at] == '.') {
        const size_t after = ++at;
        for (; at < size && text[at] >= '0' && text[at] <= '9'; at++)
            take_digit(number, text[at], 0);
        digits += at - after;
    }
    if (digits == 0)
        return 0;
    if (at < size && (text[at] == 'e' || text[at] == 'E')) {
        int64_t exponent;
        const size_t length = scan_exponent(text + at + 1, size - at - 1, &exponent);
        if (length == 0)
            return 0;
        number->point += exponent;
        at += 1 + length;
    }
    return at == size;
}

/* The common case without the C library: 19 digits fit an integer, and powers of ten up to 22 are
 * exact doubles, so the double is within two units of its last place of the number. Rounding it
 * once more gives the correctly rounded float unless the midpoint of two floats is that close. That
 * case, and subnormal and huge results, are left to the slow path. Returns 1 when it converted. */
static int convert_fast(const decimal *number, float *out) {
    static const double powers[23] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                      1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                      1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const int64_t shift = number->point - number->count;
    if (number->count > 19 || shift < -22 || shift > 22)
        return 0;
    uint64_t whole = 0;
    for (int i = 0; i < number->count; i++)
        whole = whole * 10 + (uint64_t)(number->digits[i] - '0');
    const double value = shift < 0 ? (double)whole / powers[-shift] : (double)whole * powers[shift];
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint64_t below = bits & 0x1fffffff; /* the 29 bits that a float does not have */
    const uint64_t half = 0x10000000, doubt = 4;
    if (value < 0x1p-126 || value > 0x1.fffffep127 ||
        (below > half - doubt && below < half + doubt))
        return 0;
    *out = (float)(number->negative ? -value : value);
    return 1;
}

/* strtof rounds once, from the decimal number, with the C library's multi-precision arithmetic. */
static float convert_slow(const decimal *number) {
    char text[DIGITS_MAX + 32];
    int64_t point = number->point;
    point = point < -100000 ? -100000 : point > 100000 ? 100000 : point;
    snprintf(text, sizeof text, "%s0.%.*se%d", number->negative ? "-" : "", number->count,
             number->digits, (int)point);
    return strtof_l(text, NULL, qn__c_locale());
}

int qn__parse_float(const char *text, size_t size, float *out) {
    decimal number;
    if (!scan_decimal(text, size, &number))
        return 0;
    float value;
    if (number.count == 0)
        value = number.negative ? -0.0f : 0.0f;
    else if (!convert_fast(&number, &value))
        value = convert_slow(&number);
    if (!isfinite(value))
        return 0;
    *out = value;
    return 1;
}

int qn__parse_real(const char *text, size_t size, double *out) {
    char copy[64];
    decimal number;
    if (size >= sizeof copy || !scan_decimal(text, size, &number))
        return 0;
    memcpy(copy, text, size);
    copy[size] = '\0';
    const locale_t before = uselocale(qn__c_locale());
    const double value = strtod(copy, NULL);
    uselocale(before);
    if (!isfinite(value))
        return 0;
    *out = value;
    return 1;
}

enum { WORD_MAX = 63 };

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* The optimal string alignment distance: the number of letters to insert, drop or replace, or of
 * neighbours to swap, to turn one word into the other. Row i of the table holds the distances of
 * the first i letters of `a` from each prefix of `b`; three rows are enough. */
static size_t distance(const char *a, size_t a_size, const char *b, size_t b_size) {
    size_t rows[3][WORD_MAX + 1];
    for (size_t j = 0; j <= b_size; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_size; i++) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *second = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b_size; j++) {
            row[j] = least(least(row[j - 1], above[j]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], second[j - 2] + 1);
        }
    }
    return rows[a_size % 3][b_size];
}

const char *qn__nearest(const char *word, const char *const *list) {
    const size_t size = strlen(word);
    if (size > WORD_MAX)
        return NULL;
    const char *best = NULL;
    size_t best_distance = size / 3 > 2 ? size / 3 : 2;
    best_distance++; /* the first distance that is too large */
    for (; *list; list++) {
        const size_t length = strlen(*list);
        if (length > WORD_MAX)
            continue;
        const size_t d = distance(word, size, *list, length);
        /* If every letter would change, it is not a typing error. */
        if (d < best_distance && (d < size || d == 0) && (d < length || d == 0)) {
            best = *list;
            best_distance = d;
        }
    }
    return best;
}

/* Space for `more` bytes and a NUL after `size`; 0 when memory is short. */
static int reserve(qn__text *text, size_t more) {
    size_t need;
    if (text->failed || __builtin_add_overflow(text->size, more, &need) ||
        __builtin_add_overflow(need, (size_t)1, &need)) {
        text->failed = 1;
        return 0;
    }
    if (need <= text->capacity)
        return 1;
    size_t capacity = text->capacity > 128 ? text->capacity : 128;
    while (capacity < need)
        capacity = capacity > SIZE_MAX / 2 ? need : capacity * 2;
    char *data = realloc(text->data, capacity);
    if (!data) {
        text->failed = 1;
        return 0;
    }
    text->data = data;
    text->capacity = capacity;
    return 1;
}

static void append(qn__text *text, const char *bytes, size_t size) {
    if (!reserve(text, size))
        return;
    memcpy(text->data + text->size, bytes, size);
    text->size += size;
    text->data[text->size] = 0;
}

/* Most texts fit in the space that there is: they are formatted once. */
void qn__text_add(qn__text *text, const char *format, ...) {
    va_list arguments, again;
    if (!reserve(text, 0))
        return;
    const locale_t before = uselocale(qn__c_locale());
    const size_t room = text->capacity - text->size;
    char *at = text->data + text->size;
    va_start(arguments, format);
    va_copy(again, arguments);
    const int size = vsnprintf(at, room, format, arguments);
    va_end(arguments);
    if (size >= 0 && (size_t)size < room) {
        text->size += (size_t)size;
    } else {
        *at = '\0';
        text->failed |= size < 0;
        if (size >= 0 && reserve(text, (size_t)size)) {
            vsnprintf(text->data + text->size, (size_t)size + 1, format, again);
            text->size += (size_t)size;
        }
    }
    va_end(again);
    uselocale(before);
}

void qn__text_add_bytes(qn__text *text, const void *bytes, size_t size) {
    if (size == 0 || !reserve(text, size))
        return;
    memcpy(text->data + text->size, bytes, size);
    text->size += size;
    text->data[text->size] = '\0';
}

/* Escapes what RFC 8259 requires and nothing else; an invalid UTF-8 byte becomes U+FFFD. */
void qn__text_add_json(qn__text *text, const char *utf8) {
    if (!utf8) {
        append(text, "null", 4);
        return;
    }
    size_t left = strlen(utf8);
    append(text, "\"", 1);
    while (left > 0) {
        const size_t length = qn__utf8_length(utf8, left);
        const char *named = strchr("\bb\ff\nn\rr\tt", *utf8);
        if (length == 0)
            append(text, "\xef\xbf\xbd", 3);
        else if (*utf8 == '"' || *utf8 == '\\')
            qn__text_add(text, "\\%c", *utf8);
        else if ((unsigned char)*utf8 < 0x20 && named)
            qn__text_add(text, "\\%c", named[1]);
        else if ((unsigned char)*utf8 < 0x20)
            qn__text_add(text, "\\u%04x", (unsigned)(unsigned char)*utf8);
        else
            append(text, utf8, length);
        utf8 += length ? length : 1;
        left -= length ? length : 1;
    }
    append(text, "\"", 1);
}

void qn__text_add_number(qn__text *text, const char *key, int digits, double value) {
    if (isfinite(value))
        qn__text_add(text, ", \"%s\": %.*g", key, digits, value);
    else
        qn__text_add(text, ", \"%s\": null", key);
}

void qn__text_release(qn__text *text) {
    free(text->data);
    *text = (qn__text){0};
}

char *qn__text_take(qn__text *text, qn_error *err) {
    char *copy = NULL;
    if (text->failed)
        qn__fail_memory(err, text->size + 1, 1);
    else
        copy = qn__copy_text(text->data ? text->data : "", err);
    qn__text_release(text);
    return copy;
}

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

int qn__hex_digit(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

char *qn__percent_decode(const char *text, size_t size, qn_error *err) {
    char *out = qn__alloc(size + 1, 1, err), *to = out;
    for (size_t i = 0; out && i < size; i++) {
        const int high = text[i] == '%' && i + 2 < size ? qn__hex_digit(text[i + 1]) : -1;
        const int low = high >= 0 ? qn__hex_digit(text[i + 2]) : -1;
        const int byte = low >= 0 ? high * 16 + low : 0;
        *to++ = byte > 0 ? (char)byte : text[i];
        i += byte > 0 ? 2 : 0;
    }
    return out;
}

int qn__same_word(const char *name, const char *word, size_t size) {
    if (strlen(name) != size)
        return 0;
    for (size_t i = 0; i < size; ++i)
        if (lower(word[i]) != name[i])
            return 0;
    return 1;
}
