/* Exact moments by integers.
 *
 * A float32 is m * 2^(e - 150) with m < 2^24 and e from 1 to 254. The exponents fall into 32 groups
 * of 8. Within a group all numbers are integers of at most 31 bits with one unit. Their squares
 * have 62 bits and their cubes 93. They are added in digits of 32 bits to counters of 64 bits,
 * which hold 2^31 of them. */
#include "num/moments.h"
#include "base/binary/float_bits.h"
#include "num/moments_block.h"
#include <math.h>
#include <string.h>

enum { GROUPS = 32, MOST = 1 << 30, BLOCK = QN__MOMENT_BLOCK };

typedef qn__moment_group group;

/* Adds m * 2^shift < 2^31 with the sign of the float `bits`. The digits of a cube have the sign of
 * their product. */
static inline void add_integer(group *g, uint32_t bits, uint32_t m, uint32_t shift) {
    const int64_t sign = -(int64_t)(bits >> 31); /* (v ^ sign) - sign negates where it is -1 */
    const int64_t x = (((int64_t)m << shift) ^ sign) - sign;
    const uint64_t square = (uint64_t)(x * x);
    const int64_t low = (int64_t)(square & 0xFFFFFFFF) * x, high = (int64_t)(square >> 32) * x;
    g->first += x;
    g->second[0] += square & 0xFFFFFFFF;
    g->second[1] += square >> 32;
    g->third[0] += low & 0xFFFFFFFF;
    g->third[1] += (low >> 32) + (high & 0xFFFFFFFF);
    g->third[2] += high >> 32;
}

static void add_signed(qn__exact_sum *sum, int64_t value, int power) {
    const uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    if (value != 0)
        qn__exact_add_scaled(sum, magnitude, power, value < 0);
}

/* The integers of a group are multiples of 2^unit. */
static void add_group(qn__moments *m, const group *g, int unit) {
    add_signed(&m->first, g->first, unit);
    for (int d = 0; d < 2; d++)
        add_signed(&m->second, (int64_t)g->second[d], 2 * unit + 32 * d);
    for (int d = 0; d < 3; d++)
        add_signed(&m->third, g->third[d], 3 * unit + 32 * d);
}

/* The greatest exponent of a block. */
static uint32_t top_of(const float *values, size_t count) {
    uint32_t most = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t bits = qn__float_bits(values[i]) & 0x7F800000;
        most = bits > most ? bits : most;
    }
    return most >> 23;
}

/* A float in its group. A subnormal number has the unit of the least normal ones. */
static void add_to_groups(group groups[GROUPS], uint32_t bits) {
    const uint32_t e = bits >> 23 & 0xFF, normal = e > 0, place = e + 1 - normal;
    add_integer(&groups[place >> 3], bits, (bits & 0x7FFFFF) | normal << 23, place & 7);
}

/* Goes through the floats from number `i` on, a multiple of 8; as qn__moment_add_avx2. */
static void add_rest(group *g, const float *values, size_t i, size_t count, uint32_t least,
                     uint8_t *outside) {
    group block = *g; /* in registers */
    memset(outside + i / 8, 0, (count - i + 7) / 8);
    for (; i < count; i++) {
        const uint32_t bits = qn__float_bits(values[i]);
        const uint32_t shift = (bits >> 23 & 0xFF) - least; /* huge where the exponent is below */
        if (shift <= 7)
            add_integer(&block, bits, (bits & 0x7FFFFF) | 0x800000, shift);
        else
            outside[i / 8] |= (uint8_t)(1 << i % 8);
    }
    *g = block;
}

static void add_outside(group groups[GROUPS], const float *values, uint8_t outside) {
    for (; outside; outside &= (uint8_t)(outside - 1)) {
        const uint32_t bits = qn__float_bits(values[__builtin_ctz(outside)]);
        if (bits << 1 != 0)
            add_to_groups(groups, bits);
    }
}

/* Most numbers of a block have one of its 8 greatest exponents. They are integers with one unit,
 * whose sums stay in registers. The others go to the groups. */
static void add_block(qn__moments *m, int avx2, group groups[GROUPS], const float *values,
                      size_t count) {
    const uint32_t top = top_of(values, count), least = top > 8 ? top - 7 : 1;
    uint8_t outside[BLOCK / 8];
    group block = {0};
    const size_t done = avx2 ? qn__moment_add_avx2(&block, values, count, least, outside) : 0;
    add_rest(&block, values, done, count, least, outside);
    for (size_t i = 0; i < count; i += 8)
        if (outside[i / 8])
            add_outside(groups, values + i, outside[i / 8]);
    add_group(m, &block, (int)least - 150);
}

void qn__moments_add(qn__moments *m, const float *values, size_t count) {
    const int avx2 = qn__moment_avx2_here();
    m->count += count;
    while (count > 0) {
        group groups[GROUPS] = {{0}};
        const size_t part = count < MOST ? count : MOST;
        for (size_t from = 0; from < part; from += BLOCK)
            add_block(m, avx2, groups, values + from, part - from < BLOCK ? part - from : BLOCK);
        for (int k = 0; k < GROUPS; k++)
            add_group(m, &groups[k], 8 * k - 150);
        values += part;
        count -= part;
    }
}

void qn__moments_merge(qn__moments *m, qn__moments *other) {
    m->count += other->count;
    qn__exact_merge(&m->first, &other->first);
    qn__exact_merge(&m->second, &other->second);
    qn__exact_merge(&m->third, &other->third);
}

/* ------------------------------------------------------------------ results */

/* A difference of natural numbers: terms with their signs, added and subtracted at the end. */
typedef struct difference {
    qn__natural side[2]; /* the terms above zero and those below */
} difference;

static void add_term(difference *d, const qn__natural *term, int sign) {
    qn__natural *side = &d->side[sign < 0], sum;
    if (sign == 0 || term->size == 0)
        return;
    qn__natural_add(side, term, &sum);
    *side = sum;
}

/* The magnitude; returns the sign. */
static int settle(const difference *d, qn__natural *out) {
    const int sign = qn__natural_compare(&d->side[0], &d->side[1]);
    if (sign >= 0)
        qn__natural_subtract(&d->side[0], &d->side[1], out);
    else
        qn__natural_subtract(&d->side[1], &d->side[0], out);
    return sign;
}

/* n * sum of products - product of sums, which is n^2 times a covariance. `sign` is that of the
 * product of the sums a and b. */
static int centre(uint64_t n, qn__exact_sum *products, const qn__natural *a, const qn__natural *b,
                  int sign, qn__natural *out) {
    difference d = {.side = {{.size = 0}, {.size = 0}}};
    qn__natural sum, term;
    const int own = qn__exact_magnitude(products, &sum);
    qn__natural_multiply(&sum, n, &term);
    add_term(&d, &term, own);
    qn__natural_product(a, b, &term);
    add_term(&d, &term, -sign);
    return settle(&d, out);
}

/* n n C - 3 n S Q + 2 S S S, which is n^3 times the third central moment. */
static int centre_third(qn__moments *m, qn__natural *out) {
    difference d = {.side = {{.size = 0}, {.size = 0}}};
    qn__natural s, q, c, one, two;
    const int sign = qn__exact_magnitude(&m->first, &s);
    const int third = qn__exact_magnitude(&m->third, &c);
    qn__exact_magnitude(&m->second, &q);
    qn__natural_multiply(&c, m->count, &one);
    qn__natural_multiply(&one, m->count, &two);
    add_term(&d, &two, third);
    qn__natural_product(&s, &q, &one);
    qn__natural_multiply(&one, 3 * m->count, &two);
    add_term(&d, &two, -sign);
    qn__natural_product(&s, &s, &one);
    qn__natural_product(&one, &s, &two);
    qn__natural_multiply(&two, 2, &one);
    add_term(&d, &one, sign);
    return settle(&d, out);
}

static void one_of(uint64_t value, qn__natural *out) {
    *out = (qn__natural){.digit = {(uint32_t)value, (uint32_t)(value >> 32)}, .size = 2};
    qn__natural_trim(out);
}

/* a / (f * g), or its root; f and g are counts. */
static double over(const qn__natural *a, uint64_t f, uint64_t g, int root) {
    qn__natural one, two;
    one_of(f, &one);
    qn__natural_multiply(&one, g, &two);
    return qn__natural_ratio(a, &two, root);
}

static double with_sign(double value, int sign) { return sign < 0 ? -value : value; }

/* The root of n (n - 1) M3^2 / ((n - 2)^2 M2^3), with M2 = n^2 m2 and M3 = n^3 m3. */
static double skewness(qn__moments *m, const qn__natural *second) {
    qn__natural third, one, two, below;
    const uint64_t n = m->count;
    const int sign = centre_third(m, &third);
    if (sign == 0)
        return 0.0;
    qn__natural_product(second, second, &one);
    qn__natural_product(&one, second, &two);
    qn__natural_multiply(&two, n - 2, &one);
    qn__natural_multiply(&one, n - 2, &below);
    qn__natural_product(&third, &third, &one);
    qn__natural_multiply(&one, n, &two);
    qn__natural_multiply(&two, n - 1, &one);
    return with_sign(qn__natural_ratio(&one, &below, 1), sign);
}

void qn__moments_finish(qn__moments *m, qn__moments_results *out) {
    const double none = (double)NAN;
    const uint64_t n = m->count;
    *out = (qn__moments_results){none, none, none, none, none, none};
    if (n == 0)
        return;
    qn__natural sum, value;
    const int sign = qn__exact_magnitude(&m->first, &sum);
    out->sum = with_sign(over(&sum, 1, 1, 0), sign);
    out->mean = with_sign(over(&sum, n, 1, 0), sign);
    centre(n, &m->second, &sum, &sum, sign * sign, &value);
    out->deviation_of_all = over(&value, n, n, 1);
    if (n < 2)
        return;
    out->variance = over(&value, n, n - 1, 0);
    out->deviation = over(&value, n, n - 1, 1);
    if (n > 2 && value.size > 0)
        out->skewness = skewness(m, &value);
}

double qn__moments_mean(uint64_t n, qn__exact_sum *sum) {
    qn__natural value;
    const int sign = qn__exact_magnitude(sum, &value);
    return with_sign(over(&value, n, 1, 0), sign);
}

void qn__moments_side_of(uint64_t n, qn__exact_sum *sum, qn__exact_sum *squares,
                         qn__moments_side *out) {
    out->sign = qn__exact_magnitude(sum, &out->sum);
    centre(n, squares, &out->sum, &out->sum, out->sign * out->sign, &out->spread);
}

void qn__moments_pair(uint64_t n, const qn__moments_side *one, const qn__moments_side *other,
                      qn__exact_sum *products, double *covariance, double *correlation) {
    qn__natural both, product, square;
    *covariance = *correlation = (double)NAN;
    if (n < 2)
        return;
    const int sign = centre(n, products, &one->sum, &other->sum, one->sign * other->sign, &both);
    *covariance = with_sign(over(&both, n, n - 1, 0), sign);
    if (one->spread.size == 0 || other->spread.size == 0)
        return;
    qn__natural_product(&one->spread, &other->spread, &product);
    qn__natural_product(&both, &both, &square);
    *correlation = with_sign(qn__natural_ratio(&square, &product, 1), sign);
}

/* a * part in pieces of 28 bits, which are exact binary64 products. */
static void add_part(qn__exact_sum *sum, float a, const uint64_t part[2], int bits) {
    const uint64_t mask = ((uint64_t)1 << 28) - 1;
    const uint64_t pieces[4] = {part[0] & mask, part[0] >> 28 & mask,
                                (part[0] >> 56 | part[1] << 8) & mask, part[1] >> 20};
    for (int i = 0; i < 4; i++)
        qn__exact_add(sum, ldexp((double)a * (double)pieces[i], 28 * i - bits));
}

double qn__moments_between(float a, float b, const uint64_t part[2], int bits) {
    qn__exact_sum sum = {.pending = 0};
    qn__natural value;
    qn__exact_add(&sum, (double)a);
    add_part(&sum, -a, part, bits);
    add_part(&sum, b, part, bits);
    const int sign = qn__exact_magnitude(&sum, &value);
    return with_sign(over(&value, 1, 1, 0), sign);
}

double qn__moments_edge(float a, float b, uint64_t part, uint64_t all) {
    qn__exact_sum sum = {.pending = 0};
    qn__natural value;
    const uint64_t there[2] = {part, 0}, rest[2] = {all - part, 0};
    add_part(&sum, a, rest, 0);
    add_part(&sum, b, there, 0);
    const int sign = qn__exact_magnitude(&sum, &value);
    return with_sign(over(&value, all, 1, 0), sign);
}
