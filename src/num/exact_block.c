/* Exact sums of blocks. Numbers that lie within some 73 powers of two are added in vectors, by
 * exact_extract.h; others are added each alone. */
#include "num/exact_block.h"

/* What every 64-bit processor has in one register. */
#define QN_LANES 2
#define QN_EXTRACT
#include "num/exact_extract.h"

int qn__exact_extract(const double *x, size_t count, double level[QN__EXACT_LEVELS]) {
    return extract_block(x, count, level);
}

static size_t add_each(qn__exact_sum *sum, const double *x, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(x[i]))
            return i;
        qn__exact_add(sum, x[i]);
    }
    return count;
}

static size_t add_block(qn__exact_sum *sum, const double *x, size_t count) {
    const size_t even = count - count % QN__EXACT_STEP;
    double level[QN__EXACT_LEVELS];
    size_t from = 0;
    int whole = 0;
    if (even > 0)
        whole = qn__exact_avx2_here() ? qn__exact_extract_avx2(x, even, level)
                                      : qn__exact_extract(x, even, level);
    if (whole) {
        for (int l = 0; l < QN__EXACT_LEVELS; l++)
            qn__exact_add(sum, level[l]);
        from = even;
    }
    return from + add_each(sum, x + from, count - from);
}

size_t qn__exact_add_doubles(qn__exact_sum *sum, const double *values, size_t count) {
    for (size_t i = 0; i < count; i += QN__EXACT_BLOCK) {
        const size_t some = count - i < QN__EXACT_BLOCK ? count - i : QN__EXACT_BLOCK;
        const size_t added = add_block(sum, values + i, some);
        if (added < some)
            return i + added;
    }
    return count;
}

size_t qn__exact_add_floats(qn__exact_sum *sum, const float *values, size_t count) {
    double wide[256];
    const size_t most = sizeof wide / sizeof *wide;
    for (size_t i = 0; i < count; i += most) {
        const size_t some = count - i < most ? count - i : most;
        for (size_t k = 0; k < some; k++)
            wide[k] = (double)values[i + k];
        const size_t added = add_block(sum, wide, some);
        if (added < some)
            return i + added;
    }
    return count;
}

/* Halves of 32 bits: 2^20 of them fit 64 bits. */
void qn__exact_add_integers(qn__exact_sum *sum, const uint64_t *values, size_t count,
                            int is_signed) {
    const size_t most = (size_t)1 << 20;
    for (size_t i = 0; i < count; i += most) {
        const size_t end = count - i < most ? count : i + most;
        uint64_t low = 0, high = 0, negative = 0;
        for (size_t k = i; k < end; k++) {
            low += values[k] & 0xFFFFFFFF;
            high += values[k] >> 32;
            negative += values[k] >> 63;
        }
        qn__exact_add_scaled(sum, low, 0, 0);
        qn__exact_add_scaled(sum, high, 32, 0);
        if (is_signed)
            qn__exact_add_scaled(sum, negative, 64, 1);
    }
}
