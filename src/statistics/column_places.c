#include "statistics/column_places.h"

#include "num/moments.h"
#include <math.h>

uint32_t qn__column_bins(uint64_t count) {
    uint32_t bins = 1;
    while (bins < 63 && (uint64_t)1 << (bins - 1) < count)
        bins++;
    return bins;
}

/* q is a 53-bit integer over 2^bits. */
qn__quantile_place qn__quantile_place_of(double q, uint64_t count) {
    int exponent;
    const uint64_t digits = (uint64_t)ldexp(frexp(q, &exponent), 53);
    const uint64_t n = count - 1;
    qn__quantile_place p = {.bits = 53 - exponent};
    /* the product in two words: 53 bits times 48 bits */
    const uint64_t low = (digits & 0xFFFFFFFF) * (n & 0xFFFFFFFF);
    const uint64_t cross1 = (digits >> 32) * (n & 0xFFFFFFFF);
    const uint64_t cross2 = (digits & 0xFFFFFFFF) * (n >> 32);
    const uint64_t middle = (low >> 32) + (cross1 & 0xFFFFFFFF) + (cross2 & 0xFFFFFFFF);
    const uint64_t high =
        (digits >> 32) * (n >> 32) + (cross1 >> 32) + (cross2 >> 32) + (middle >> 32);
    const uint64_t word = (low & 0xFFFFFFFF) | middle << 32;
    if (q == 0)
        return (qn__quantile_place){.bits = 52};
    if (p.bits >= 64) {
        p.rank = p.bits == 64 ? high : high >> (p.bits - 64);
        p.part[0] = word;
        p.part[1] = p.bits == 64 ? 0 : high & (((uint64_t)1 << (p.bits - 64)) - 1);
    } else {
        p.rank = high << (64 - p.bits) | word >> p.bits;
        p.part[0] = word & (((uint64_t)1 << p.bits) - 1);
    }
    return p;
}

float qn__column_at_least(double edge) {
    float value = (float)edge;
    if ((double)value < edge)
        value = nextafterf(value, INFINITY);
    return value + 0.0f;
}

void qn__column_set_edges(float least, float greatest, double *edges, uint32_t *bins) {
    *bins = least < greatest ? *bins : 1;
    for (uint32_t i = 0; i <= *bins; i++)
        edges[i] = qn__moments_edge(least, greatest, i, *bins);
}
