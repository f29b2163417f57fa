/* The superaccumulator, and the few operations on long integers that its results need.
 *
 * Results are rounded by integer operations only. A quotient or a root is computed to at least 26
 * bits and a sticky bit, which is set if the remainder is not zero; these give the float32. */
#include "num/exact_sum.h"
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

/* Adds or subtracts value * 2^(32 limb + shift), with shift < 32 and value < 2^53. */
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
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
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

void qn__exact_merge(qn__exact_sum *sum, qn__exact_sum *other) {
    carry(sum);
    carry(other);
    for (int i = 0; i < QN__EXACT_LIMBS; i++)
        sum->limb[i] += other->limb[i];
    carry(sum);
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

/* ------------------------------------------------------------------ long integers */

/* Room for n*Q and S*S, and for shifting them up before a division. */
#define DIGITS (2 * QN__EXACT_LIMBS + 8)

/* A number from 0: the sum of digit[i] * 2^(32 i + place). Digits from `size` on are not set. */
typedef struct natural {
    uint32_t digit[DIGITS];
    int size;  /* digits in use; the highest is not 0 */
    int place; /* power of two of the lowest, a multiple of 32 */
} natural;

static void trim(natural *a) {
    while (a->size > 0 && a->digit[a->size - 1] == 0)
        a->size--;
}

/* The magnitude of a sum, without the zeros below its lowest digit; returns its sign, -1, 0 or
 * 1. */
static int magnitude(qn__exact_sum *sum, natural *out) {
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
    trim(out);
    return out->size == 0 ? 0 : negative ? -1 : 1;
}

/* a *= factor, a digit at a time in two halves of the factor. */
static void multiply(const natural *a, uint64_t factor, natural *out) {
    uint32_t parts[2] = {(uint32_t)factor, (uint32_t)(factor >> 32)};
    memset(out->digit, 0, (size_t)(a->size + 2) * sizeof *out->digit);
    for (int j = 0; j < 2; j++) {
        uint64_t rest = 0;
        for (int i = 0; i < a->size; i++) {
            rest += (uint64_t)a->digit[i] * parts[j] + out->digit[i + j];
            out->digit[i + j] = (uint32_t)rest;
            rest >>= 32;
        }
        out->digit[a->size + j] += (uint32_t)rest;
    }
    out->size = a->size + 2;
    out->place = a->place;
    trim(out);
}

/* `out` is neither of them. */
static void product(const natural *a, const natural *b, natural *out) {
    memset(out->digit, 0, (size_t)(a->size + b->size) * sizeof *out->digit);
    for (int i = 0; i < a->size; i++) {
        uint64_t rest = 0;
        for (int j = 0; j < b->size; j++) {
            rest += (uint64_t)a->digit[i] * b->digit[j] + out->digit[i + j];
            out->digit[i + j] = (uint32_t)rest;
            rest >>= 32;
        }
        out->digit[i + b->size] = (uint32_t)rest;
    }
    out->size = a->size + b->size;
    out->place = a->place + b->place;
    trim(out);
}

/* The digit of weight 2^place. */
static uint32_t digit_at(const natural *a, int place) {
    int i = (place - a->place) / 32;
    return place >= a->place && i < a->size ? a->digit[i] : 0;
}

/* a - b, for a >= b; `out` is neither of them. */
static void subtract(const natural *a, const natural *b, natural *out) {
    int low = a->place < b->place ? a->place : b->place;
    int high = a->place + 32 * a->size;
    if (a->size == 0) {
        *out = (natural){.size = 0};
        return;
    }
    int64_t borrow = 0;
    out->place = low;
    out->size = 0;
    for (int place = low; place < high; place += 32) {
        int64_t value = (int64_t)digit_at(a, place) - digit_at(b, place) + borrow;
        out->digit[out->size++] = (uint32_t)(value & 0xFFFFFFFF);
        borrow = value < 0 ? -1 : 0;
    }
    trim(out);
}

/* Divides in place by n < 2^48 and returns 1 if there is a remainder. The dividend of each digit is
 * the remainder so far and 32 more bits, 80 in all, so that it is processed in two steps of 16
 * bits. */
static int divide(natural *a, uint64_t n) {
    uint64_t rest = 0;
    for (int i = a->size - 1; i >= 0; i--) {
        uint64_t high = rest << 16 | a->digit[i] >> 16;
        rest = high % n;
        uint64_t low = rest << 16 | (a->digit[i] & 0xFFFF);
        rest = low % n;
        a->digit[i] = (uint32_t)(high / n << 16 | low / n);
    }
    trim(a);
    return rest != 0;
}

/* 1, 0 or -1: a is greater than b, equal or less. */
static int compare(const natural *a, const natural *b) {
    const int low = a->place < b->place ? a->place : b->place;
    const int a_top = a->place + 32 * a->size, b_top = b->place + 32 * b->size;
    for (int place = (a_top > b_top ? a_top : b_top) - 32; place >= low; place -= 32) {
        const uint32_t x = digit_at(a, place), y = digit_at(b, place);
        if (x != y)
            return x > y ? 1 : -1;
    }
    return 0;
}

/* The power of two of the highest bit. `a` is not 0. */
static int top_bit(const natural *a) {
    return a->place + 32 * a->size - 1 - __builtin_clz(a->digit[a->size - 1]);
}

/* a / b as leading_bits gives it: 60 bits or more, found one by one, and *rest. Neither is 0. */
static uint64_t quotient(const natural *a, const natural *b, int *place, int *rest) {
    const int wanted = 61 - (top_bit(a) - top_bit(b)), up = wanted - (wanted & 1);
    natural scaled, trial;
    uint64_t bits = 0;
    /* up = 32 * floor(up / 32) + up mod 32, for negative numbers too */
    const int digits = (up - (up & 31)) / 32;
    multiply(a, (uint64_t)1 << (up & 31), &scaled);
    scaled.place += 32 * digits;
    for (int bit = 62; bit >= 0; bit--) {
        multiply(b, bits | (uint64_t)1 << bit, &trial);
        if (compare(&trial, &scaled) <= 0)
            bits |= (uint64_t)1 << bit;
    }
    multiply(b, bits, &trial);
    *rest = compare(&trial, &scaled) != 0;
    *place = -up;
    return bits;
}

/* Appends `count` zero digits, so that the quotient gets as many more. */
static void lengthen(natural *a, int count) {
    memmove(a->digit + count, a->digit, (size_t)a->size * sizeof *a->digit);
    memset(a->digit, 0, (size_t)count * sizeof *a->digit);
    a->size += count;
    a->place -= 32 * count;
}

/* The highest 62 or 63 bits: a number is bits * 2^*place plus, when *rest is 1, a smaller
 * remainder. *place is even, as a square root requires. `a` is not 0. */
static uint64_t leading_bits(const natural *a, int *place, int *rest) {
    int top = a->size - 1;
    uint64_t high = (uint64_t)a->digit[top] << 32 | (top > 0 ? a->digit[top - 1] : 0);
    uint32_t below = top > 1 ? a->digit[top - 2] : 0;
    int zeros = __builtin_clzll(high);
    *place = a->place + 32 * (top - 1);
    /* shifts to the top bit, then one back, and one more if the place would be odd */
    if (zeros > 0) {
        high = high << zeros | (zeros < 32 ? below >> (32 - zeros) : 0);
        below = zeros < 32 ? below << zeros : 0;
        *place -= zeros;
    }
    int down = *place % 2 != 0 ? 1 : 2;
    *rest |= below != 0 || (high & (((uint64_t)1 << down) - 1)) != 0;
    for (int i = 0; i < top - 2; i++)
        *rest |= a->digit[i] != 0;
    *place += down;
    return high >> down;
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
    natural value;
    int sign = magnitude(sum, &value), place, rest;
    if (sign == 0)
        return 0.0f;
    lengthen(&value, 4); /* the quotient keeps at least 128 - 48 bits */
    rest = divide(&value, n);
    uint64_t bits = leading_bits(&value, &place, &rest);
    float mean = round_float(bits, place, rest);
    return mean == 0.0f ? 0.0f : sign < 0 ? -mean : mean;
}

float qn__exact_deviation(qn__exact_sum *sum, qn__exact_sum *squares, uint64_t n) {
    natural s, q, a, b, difference;
    magnitude(sum, &s);
    magnitude(squares, &q);
    multiply(&q, n, &a);
    product(&s, &s, &b);
    subtract(&a, &b, &difference);
    if (difference.size == 0)
        return 0.0f;
    lengthen(&difference, 6); /* two divisions take at most 96 bits */
    int place, rest = divide(&difference, n);
    rest |= divide(&difference, n);
    uint64_t bits = leading_bits(&difference, &place, &rest);
    uint64_t root = integer_root(bits);
    rest |= root * root != bits;
    return round_float(root, place / 2, rest);
}

/* ------------------------------------------------------------------ with weights */

float qn__exact_weighted_mean(qn__exact_sum *sum, qn__exact_sum *weights) {
    natural s, w;
    int place, rest;
    const int sign = magnitude(sum, &s);
    magnitude(weights, &w);
    if (sign == 0)
        return 0.0f;
    const uint64_t bits = quotient(&s, &w, &place, &rest);
    const float mean = round_float(bits, place, rest);
    return mean == 0.0f ? 0.0f : sign < 0 ? -mean : mean;
}

float qn__exact_weighted_deviation(qn__exact_sum *sum, qn__exact_sum *squares,
                                   qn__exact_sum *weights) {
    natural s, q, w, a, b;
    int place, rest;
    magnitude(sum, &s);
    magnitude(squares, &q);
    magnitude(weights, &w);
    product(&w, &q, &a);
    product(&s, &s, &b);
    subtract(&a, &b, &q);
    if (q.size == 0)
        return 0.0f;
    product(&w, &w, &b);
    const uint64_t bits = quotient(&q, &b, &place, &rest);
    const uint64_t root = integer_root(bits);
    rest |= root * root != bits;
    return round_float(root, place / 2, rest);
}

/* RN(w * n / W) by long integers. */
static float exact_share(float w, uint64_t n, const natural *whole) {
    qn__exact_sum part = {.pending = 0};
    natural a;
    int place, rest;
    const double low = (double)(n & 0xFFFFFF), high = (double)(n >> 24) * 0x1p24;
    qn__exact_add(&part, (double)w * low);
    qn__exact_add(&part, (double)w * high);
    if (magnitude(&part, &a) == 0)
        return 0.0f;
    const uint64_t bits = quotient(&a, whole, &place, &rest);
    return round_float(bits, place, rest);
}

/* Binary64 has 29 bits more than the result. Four roundings move a quotient by less than 2^-50 of
 * it, so long integers are needed only where both ends of 2^-49 round to different floats. */
void qn__exact_shares(qn__exact_sum *weights, uint64_t n, float *w) {
    natural whole;
    int place, rest = 0;
    magnitude(weights, &whole);
    const double leading = (double)leading_bits(&whole, &place, &rest);
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
