#include "num/ratio.h"
#include "base/binary/float_bits.h"

#include <math.h>

static void natural_of(uint64_t value, qn__natural *out) {
    *out = (qn__natural){.digit = {(uint32_t)value, (uint32_t)(value >> 32)}, .size = 2};
    qn__natural_trim(out);
}

static double divide(qn__exact_sum *sum, uint64_t b, int root) {
    qn__natural above, below;
    const int sign = qn__exact_magnitude(sum, &above);
    natural_of(b, &below);
    const double value = qn__natural_ratio(&above, &below, root);
    return sign < 0 ? -value : value;
}

double qn__ratio_of(uint64_t a, uint64_t b) {
    qn__natural above, below;
    natural_of(a, &above);
    natural_of(b, &below);
    return qn__natural_ratio(&above, &below, 0);
}

double qn__ratio_of_sum(qn__exact_sum *sum, uint64_t b) { return divide(sum, b, 0); }

double qn__ratio_root(qn__exact_sum *sum, uint64_t b) { return divide(sum, b, 1); }

double qn__ratio_of_sums(qn__exact_sum *sum, qn__exact_sum *total) {
    qn__natural above, below;
    const int sign = qn__exact_magnitude(sum, &above);
    qn__exact_magnitude(total, &below);
    const double value = qn__natural_ratio(&above, &below, 0);
    return sign < 0 ? -value : value;
}

void qn__ratio_add_product(qn__exact_sum *sum, uint64_t a, uint64_t b) {
    uint64_t product;
    if (!__builtin_mul_overflow(a, b, &product)) {
        qn__exact_add_u64(sum, product);
        return;
    }
    for (int i = 0; i < 4; i++)
        qn__exact_add_scaled(sum,
                             (a >> 32 * (i & 1) & 0xFFFFFFFF) * (b >> 16 * (i & 2) & 0xFFFFFFFF),
                             32 * (i & 1) + 16 * (i & 2), 0);
}

void qn__ratio_add_times(qn__exact_sum *sum, double value, uint64_t factor) {
    if (factor == 1) {
        qn__exact_add(sum, value);
        return;
    }
    const uint64_t bits = qn__double_bits(value);
    const int exponent = (int)(bits >> 52 & 0x7FF);
    const uint64_t mantissa = (bits & 0xFFFFFFFFFFFFF) | (uint64_t)(exponent > 0) << 52;
    const int power = (exponent > 0 ? exponent : 1) - 1075;
    for (int i = 0; i < 4; i++)
        qn__exact_add_scaled(
            sum, (mantissa >> 32 * (i & 1) & 0xFFFFFFFF) * (factor >> 16 * (i & 2) & 0xFFFFFFFF),
            power + 32 * (i & 1) + 16 * (i & 2), (int)(bits >> 63));
}

double qn__ratio_explained(qn__exact_sum *errors, qn__exact_sum *labels, qn__exact_sum *squares,
                           uint64_t w) {
    qn__natural s, q, e, one, spread, left;
    qn__exact_magnitude(labels, &s);
    qn__exact_magnitude(squares, &q);
    qn__exact_magnitude(errors, &e);
    qn__natural_product(&s, &s, &one);
    qn__natural_multiply(&q, w, &left);
    qn__natural_subtract(&left, &one, &spread); /* w w times the variance of the labels */
    if (spread.size == 0)
        return (double)NAN;
    qn__natural_multiply(&e, w, &one);
    if (qn__natural_compare(&spread, &one) >= 0) {
        qn__natural_subtract(&spread, &one, &left);
        return qn__natural_ratio(&left, &spread, 0);
    }
    qn__natural_subtract(&one, &spread, &left);
    return -qn__natural_ratio(&left, &spread, 0);
}
