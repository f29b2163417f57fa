/* The superaccumulator, and its results as float32.
 *
 * Results are rounded by integer operations only. A quotient or a root is computed to at least 26
 * bits and a sticky bit, which is set if the remainder is not zero; these give the float32. */
#include "num/exact_sum.h"
#include "base/binary/float_bits.h"
#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------ summing */

/* Each of 2^30 additions changes a limb by less than 2^32, so that it stays below 2^62. */
#define PENDING_MAX ((uint32_t)1 << 30)

/* Reduces every limb but the last to 0 .. 2^32 - 1; the last keeps the sign. */
static void carry(qn__exact_sum *sum) {
    for (int i = 0; i < QN__EXACT_LIMBS - 1; i++) {
        int64_t digit = sum->limb[i] & 0xFFFFFFFF;
        sum->limb[i + 1] += (sum->limb[i] - digit) / ((int64_t)1 << 32);
        sum->limb[i] = digit;
    }
    sum->pending = 0;
}

/* Adds or subtracts value * 2^(32 limb + shift), with shift < 32. */
static void add_shifted(qn__exact_sum *sum, uint64_t value, int limb, int shift, int negative) {
    uint64_t low = value << shift;
    uint64_t high = shift ? value >> (64 - shift) : 0;
    int64_t a = (int64_t)(low & 0xFFFFFFFF), b = (int64_t)(low >> 32), c = (int64_t)high;
    int64_t sign = negative ? -1 : 1;
    sum->limb[limb] += sign * a;
    sum->limb[limb + 1] += sign * b;
    sum->limb[limb + 2] += sign * c;
    if (++sum->pending >= PENDING_MAX)
        carry(sum);
}

void qn__exact_add(qn__exact_sum *sum, double value) {
    const uint64_t bits = qn__double_bits(value);
    int exponent = (int)(bits >> 52 & 0x7FF);
    uint64_t mantissa = bits & 0xFFFFFFFFFFFFF;
    if (exponent == 0)
        exponent = 1; /* subnormal: the same unit as the smallest normal numbers, 2^-1074 */
    else
        mantissa |= (uint64_t)1 << 52;
    /* value = mantissa * 2^(exponent - 1075) */
    int place = exponent - 1075 + QN__EXACT_SCALE;
    add_shifted(sum, mantissa, place / 32, place % 32, (int)(bits >> 63));
}

void qn__exact_add_u64(qn__exact_sum *sum, uint64_t value) {
    add_shifted(sum, value & 0xFFFFFFFF, QN__EXACT_SCALE / 32, 0, 0);
    add_shifted(sum, value >> 32, QN__EXACT_SCALE / 32 + 1, 0, 0);
}

void qn__exact_add_scaled(qn__exact_sum *sum, uint64_t value, int power, int negative) {
    const int place = power + QN__EXACT_SCALE;
    add_shifted(sum, value, place / 32, place % 32, negative);
}

void qn__exact_merge(qn__exact_sum *sum, qn__exact_sum *other) {
    carry(sum);
    carry(other);
    for (int i = 0; i < QN__EXACT_LIMBS; i++)
        sum->limb[i] += other->limb[i];
    carry(sum);
}

/* After a carry a negative sum has digits up to its last limb, all of them the largest: the limb
 * below takes the sign. */
void qn__exact_limbs(qn__exact_sum *sum, uint32_t *first, uint32_t *end) {
    uint32_t low = 0, high = QN__EXACT_LIMBS;
    carry(sum);
    for (int i = QN__EXACT_LIMBS - 1; i > 0 && sum->limb[i] == -1; i--) {
        sum->limb[i] = 0;
        sum->limb[i - 1] -= (int64_t)1 << 32;
    }
    while (high > 0 && sum->limb[high - 1] == 0)
        high--;
    while (low < high && sum->limb[low] == 0)
        low++;
    if (low == high)
        return;
    *first = *first == *end || low < *first ? low : *first;
    *end = high > *end ? high : *end;
}

int qn__exact_compare(qn__exact_sum *sum, qn__exact_sum *other) {
    carry(sum);
    carry(other);
    for (int i = QN__EXACT_LIMBS - 1; i >= 0; i--)
        if (sum->limb[i] != other->limb[i])
            return sum->limb[i] > other->limb[i] ? 1 : -1;
    return 0;
}

/* The square has up to 48 bits. Each half has 24 at most, so its product with w is exact. */
void qn__exact_add_square(qn__exact_sum *sum, float x, float w) {
    const double square = (double)x * (double)x;
    uint64_t bits;
    memcpy(&bits, &square, sizeof bits);
    bits &= ~(((uint64_t)1 << 29) - 1);
    double high;
    memcpy(&high, &bits, sizeof high);
    qn__exact_add(sum, high * (double)w);
    qn__exact_add(sum, (square - high) * (double)w);
}

/* ------------------------------------------------------------------ rounding */

int qn__exact_magnitude(qn__exact_sum *sum, qn__natural *out) {
    carry(sum);
    int negative = sum->limb[QN__EXACT_LIMBS - 1] < 0;
    uint32_t digits[QN__EXACT_LIMBS + 1];
    int64_t borrow = 0;
    for (int i = 0; i < QN__EXACT_LIMBS; i++) {
        int64_t value = (negative ? -sum->limb[i] : sum->limb[i]) + borrow;
        digits[i] = (uint32_t)(value & 0xFFFFFFFF);
        borrow = (value - (value & 0xFFFFFFFF)) / ((int64_t)1 << 32);
    }
    digits[QN__EXACT_LIMBS] = (uint32_t)borrow;
    int first = 0;
    while (first < QN__EXACT_LIMBS && digits[first] == 0)
        first++;
    out->size = QN__EXACT_LIMBS + 1 - first;
    out->place = 32 * first - QN__EXACT_SCALE;
    memcpy(out->digit, digits + first, (size_t)out->size * sizeof *digits);
    qn__natural_trim(out);
    return out->size == 0 ? 0 : negative ? -1 : 1;
}

/* The float nearest to (bits + a remainder when rest is 1) * 2^place, ties to even. ldexpf would
 * round subnormal numbers a second time, so the bits below the last place are removed here. */
static float round_float(uint64_t bits, int place, int rest) {
    if (bits == 0)
        return 0.0f;
    int width = 64 - __builtin_clzll(bits);
    int unit = width + place - 24; /* power of two of the result's last place */
    if (unit < -149)
        unit = -149;
    int drop = unit - place;
    if (drop <= 0) /* few bits, which all fit: exact */
        return ldexpf((float)bits, place);
    if (drop > 64)
        return 0.0f;
    uint64_t kept = drop == 64 ? 0 : bits >> drop;
    uint64_t half = (uint64_t)1 << (drop - 1);
    uint64_t lost = bits & (half * 2 - 1);
    if (lost > half || (lost == half && (rest || kept & 1)))
        kept++;
    return ldexpf((float)kept, unit);
}

/* The largest r with r*r <= x < 2^63, bit by bit. */
static uint64_t integer_root(uint64_t x) {
    uint64_t root = 0;
    for (int bit = 31; bit >= 0; bit--) {
        uint64_t trial = root | (uint64_t)1 << bit;
        if (trial * trial <= x)
            root = trial;
    }
    return root;
}

float qn__exact_mean(qn__exact_sum *sum, uint64_t n) {
    qn__natural value;
    int sign = qn__exact_magnitude(sum, &value), place, rest;
    if (sign == 0)
        return 0.0f;
    qn__natural_lengthen(&value, 4); /* the quotient keeps at least 128 - 48 bits */
    rest = qn__natural_divide(&value, n);
    uint64_t bits = qn__natural_leading_bits(&value, &place, &rest);
    float mean = round_float(bits, place, rest);
    return mean == 0.0f ? 0.0f : sign < 0 ? -mean : mean;
}

float qn__exact_deviation(qn__exact_sum *sum, qn__exact_sum *squares, uint64_t n) {
    qn__natural s, q, a, b, difference;
    qn__exact_magnitude(sum, &s);
    qn__exact_magnitude(squares, &q);
    qn__natural_multiply(&q, n, &a);
    qn__natural_product(&s, &s, &b);
    qn__natural_subtract(&a, &b, &difference);
    if (difference.size == 0)
        return 0.0f;
    qn__natural_lengthen(&difference, 6); /* two divisions take at most 96 bits */
    int place, rest = qn__natural_divide(&difference, n);
    rest |= qn__natural_divide(&difference, n);
    uint64_t bits = qn__natural_leading_bits(&difference, &place, &rest);
    uint64_t root = integer_root(bits);
    rest |= root * root != bits;
    return round_float(root, place / 2, rest);
}

/* ------------------------------------------------------------------ with weights */

float qn__exact_weighted_mean(qn__exact_sum *sum, qn__exact_sum *weights) {
    qn__natural s, w;
    int place, rest;
    const int sign = qn__exact_magnitude(sum, &s);
    qn__exact_magnitude(weights, &w);
    if (sign == 0)
        return 0.0f;
    const uint64_t bits = qn__natural_quotient(&s, &w, &place, &rest);
    const float mean = round_float(bits, place, rest);
    return mean == 0.0f ? 0.0f : sign < 0 ? -mean : mean;
}

float qn__exact_weighted_deviation(qn__exact_sum *sum, qn__exact_sum *squares,
                                   qn__exact_sum *weights) {
    qn__natural s, q, w, a, b;
    int place, rest;
    qn__exact_magnitude(sum, &s);
    qn__exact_magnitude(squares, &q);
    qn__exact_magnitude(weights, &w);
    qn__natural_product(&w, &q, &a);
    qn__natural_product(&s, &s, &b);
    qn__natural_subtract(&a, &b, &q);
    if (q.size == 0)
        return 0.0f;
    qn__natural_product(&w, &w, &b);
    const uint64_t bits = qn__natural_quotient(&q, &b, &place, &rest);
    const uint64_t root = integer_root(bits);
    rest |= root * root != bits;
    return round_float(root, place / 2, rest);
}

/* RN(w * n / W) by long integers. */
static float exact_share(float w, uint64_t n, const qn__natural *whole) {
    qn__exact_sum part = {.pending = 0};
    qn__natural a;
    int place, rest;
    const double low = (double)(n & 0xFFFFFF), high = (double)(n >> 24) * 0x1p24;
    qn__exact_add(&part, (double)w * low);
    qn__exact_add(&part, (double)w * high);
    if (qn__exact_magnitude(&part, &a) == 0)
        return 0.0f;
    const uint64_t bits = qn__natural_quotient(&a, whole, &place, &rest);
    return round_float(bits, place, rest);
}

/* Binary64 has 29 bits more than the result. Four roundings move a quotient by less than 2^-50 of
 * it, so long integers are needed only where both ends of 2^-49 round to different floats. */
void qn__exact_shares(qn__exact_sum *weights, uint64_t n, float *w) {
    qn__natural whole;
    int place, rest = 0;
    qn__exact_magnitude(weights, &whole);
    const double leading = (double)qn__natural_leading_bits(&whole, &place, &rest);
    const double sum = ldexp(leading, place);
    float before = 0.0f, share = 0.0f;
    for (uint64_t i = 0; i < n; i++) {
        if (w[i] != before) { /* weights of classes are few */
            const double near = (double)w[i] * (double)n / sum;
            const float below = (float)(near * (1 - 0x1p-49));
            const float above = (float)(near * (1 + 0x1p-49));
            before = w[i];
            share = below == above ? below : exact_share(before, n, &whole);
        }
        w[i] = share;
    }
}
