#include "data/arrow/arrow_decimal.h"
#include "base/binary/float_bits.h"
#include "base/encoding.h"
#include "base/text/text.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIMBS = 4 };

int qn__arrow_decimal_format(const char *format, size_t *width, int *scale) {
    int precision = 0, bits = 128, end = 0;
    if (sscanf(format, "d:%9d,%9d%n", &precision, scale, &end) < 2)
        return 0;
    if (format[end] == ',' && sscanf(format + end, ",%9d", &bits) < 1)
        return 0;
    *width = (size_t)bits / 8;
    return (bits == 32 || bits == 64 || bits == 128 || bits == 256) &&
           *scale >= -QN__ARROW_DECIMAL_SCALE && *scale <= QN__ARROW_DECIMAL_SCALE;
}

qn__arrow_decimal qn__arrow_decimal_load(const void *bytes, size_t width, int scale) {
    uint8_t all[LIMBS * 8];
    qn__arrow_decimal out = {.scale = scale};
    const uint8_t *from = bytes;
    const int big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
    out.negative = from[big ? 0 : width - 1] >> 7;
    memset(all, out.negative ? 0xFF : 0, sizeof all);
    for (size_t i = 0; i < width; i++)
        all[i] = from[big ? width - 1 - i : i];
    unsigned carry = (unsigned)out.negative;
    for (size_t i = 0; i < sizeof all; i++) { /* the magnitude of a negative one is ~x + 1 */
        const unsigned byte = (out.negative ? 255u - all[i] : all[i]) + carry;
        out.limb[i / 8] |= (uint64_t)(byte & 255) << 8 * (i % 8);
        carry = byte >> 8;
    }
    return out;
}

void qn__arrow_decimal_store(const qn__arrow_decimal *decimal, void *bytes) {
    const int big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
    uint64_t carry = decimal->negative != 0;
    for (int i = 0; i < LIMBS; i++) {
        const uint64_t limb = decimal->limb[i];
        const uint64_t out = decimal->negative ? ~limb + carry : limb;
        carry = carry && limb == 0; /* ~0 + 1 */
        memcpy((char *)bytes + 8 * (big ? LIMBS - 1 - i : i), &out, sizeof out);
    }
}

/* Divides the magnitude by 10 and returns the remainder. */
static unsigned next_digit(uint64_t limb[LIMBS]) {
    uint64_t rest = 0;
    for (int i = LIMBS - 1; i >= 0; i--) {
        const uint64_t high = rest << 32 | limb[i] >> 32;
        const uint64_t low = high % 10 << 32 | (limb[i] & 0xFFFFFFFF);
        limb[i] = high / 10 << 32 | low / 10;
        rest = low % 10;
    }
    return (unsigned)rest;
}

static int is_zero(const uint64_t limb[LIMBS]) {
    return (limb[0] | limb[1] | limb[2] | limb[3]) == 0;
}

size_t qn__arrow_decimal_text(const qn__arrow_decimal *decimal,
                              char text[QN__ARROW_DECIMAL_CAPACITY]) {
    char back[QN__ARROW_DECIMAL_CAPACITY]; /* from the last character on */
    uint64_t limb[LIMBS];
    size_t size = 0, out = 0;
    memcpy(limb, decimal->limb, sizeof limb);
    const int zero = is_zero(limb);
    for (int k = decimal->scale; k < 0 && !zero; k++)
        back[size++] = '0';
    for (int k = 0; k < decimal->scale; k++)
        back[size++] = (char)('0' + next_digit(limb));
    if (decimal->scale > 0)
        back[size++] = '.';
    do
        back[size++] = (char)('0' + next_digit(limb));
    while (!is_zero(limb));
    if (decimal->negative)
        back[size++] = '-';
    while (size > 0)
        text[out++] = back[--size];
    text[out] = '\0';
    return out;
}

/* Of the decimal's text, so that it is rounded once, as in a CSV file. */
static double from_text(const qn__arrow_decimal *decimal) {
    char text[QN__ARROW_DECIMAL_CAPACITY];
    float value;
    const size_t size = qn__arrow_decimal_text(decimal, text);
    if (qn__parse_float(text, size, &value))
        return value;
    return decimal->negative ? -(double)INFINITY : (double)INFINITY;
}

/* Whether the double lies half-way between two float32 numbers, or below the normal ones: a second
 * rounding could then go another way than one of the decimal. */
static int is_half_way(double value) {
    return (qn__double_bits(value) & 0x1FFFFFFF) == 0x10000000 || fabs(value) < 0x1p-126;
}

/* 1 where the double nearest to the decimal is one quotient of exact numbers. */
static int nearest(const qn__arrow_decimal *decimal, double *value) {
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const uint64_t *limb = decimal->limb;
    const int scale = decimal->scale;
    if ((limb[1] | limb[2] | limb[3]) != 0 || limb[0] > (uint64_t)1 << 53 || scale < 0 ||
        scale >= (int)(sizeof powers / sizeof *powers))
        return 0;
    *value = (double)limb[0] / powers[scale];
    return 1;
}

double qn__arrow_decimal_number(const qn__arrow_decimal *decimal) {
    double value = 0;
    if (is_zero(decimal->limb))
        return 0;
    if (!nearest(decimal, &value) || (decimal->scale > 0 && is_half_way(value)))
        return from_text(decimal);
    return decimal->negative ? -value : value;
}

double qn__arrow_decimal_real(const qn__arrow_decimal *decimal) {
    char text[QN__ARROW_DECIMAL_CAPACITY];
    double value = 0;
    if (nearest(decimal, &value))
        return decimal->negative ? -value : value;
    qn__arrow_decimal_text(decimal, text);
    return strtod_l(text, NULL, qn__c_locale());
}

int qn__arrow_decimal_fits(const qn__arrow_decimal *decimal) {
    const uint64_t *limb = decimal->limb;
    return (limb[1] | limb[2] | limb[3]) == 0 && limb[0] <= INT64_MAX;
}

int64_t qn__arrow_decimal_whole(const qn__arrow_decimal *decimal) {
    const int64_t whole = (int64_t)decimal->limb[0];
    if (!qn__arrow_decimal_fits(decimal))
        return decimal->negative ? INT64_MIN : INT64_MAX;
    return decimal->negative ? -whole : whole;
}
