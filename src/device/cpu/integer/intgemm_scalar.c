/* Integer products for any machine, one number at a time: the reference for the other tables. An
 * operand is an array of int32_t, [depth][16] for both blocks and panels; sums are int64_t. */
#include "base/binary/float_bits.h"
#include "device/cpu/integer/intgemm.h"
#include <string.h>

enum { P = QN__PANEL };

static size_t qn_cpu_size_int_scalar(int bits, uint32_t k) {
    (void)bits;
    return (size_t)k * P * sizeof(int32_t);
}

/* from(row, column) of intgemm.h. */
static float at(const float *from, const size_t *blocks, uint32_t row, uint32_t column) {
    return from[blocks[column / P] + (size_t)row * P + column % P];
}

static void qn_cpu_absmax_int_scalar(uint32_t rows, uint32_t k, const float *from,
                                     const size_t *blocks, const float *times, uint32_t *absmax) {
    for (uint32_t r = 0; r < rows; ++r) {
        absmax[r] = 0;
        for (uint32_t c = 0; c < k; ++c) {
            const float v = times ? at(from, blocks, r, c) * times[c] : at(from, blocks, r, c);
            const uint32_t bits = qn__float_bits(v) & 0x7fffffffu;
            absmax[r] = bits > absmax[r] ? bits : absmax[r];
        }
    }
}

static void qn_cpu_left_int_scalar(int bits, uint32_t rows, uint32_t k, const float *from,
                                   const size_t *blocks, const float *times, const float *inverse,
                                   void *to) {
    int32_t *q = to;
    (void)bits;
    for (uint32_t c = 0; c < k; ++c, q += P)
        for (uint32_t r = 0; r < P; ++r) {
            const float v = r < rows ? at(from, blocks, r, c) * (times ? times[c] : 1.0f) : 0.0f;
            q[r] = r < rows ? qn__quantize(v, inverse[r]) : 0;
        }
}

static void qn_cpu_left_across_int_scalar(int bits, uint32_t k, const uint32_t *list,
                                          const float *from, const float inverse[QN__PANEL],
                                          void *to) {
    int32_t *q = to;
    (void)bits;
    for (uint32_t t = 0; t < k; ++t, q += P)
        for (uint32_t r = 0; r < P; ++r)
            q[r] = qn__quantize(from[(size_t)list[t] * P + r], inverse[r]);
}

static void qn_cpu_right_int_scalar(int bits, uint32_t k, const float *from,
                                    const float inverse[QN__PANEL], void *to) {
    int32_t *q = to;
    (void)bits;
    for (uint32_t t = 0; t < k; ++t, from += P, q += P)
        for (uint32_t c = 0; c < P; ++c)
            q[c] = qn__quantize(from[c], inverse[c]);
}

static void qn_cpu_right_transposed_int_scalar(int bits, uint32_t columns, uint32_t k,
                                               const float *from, const size_t *blocks,
                                               const float *inverse, void *to) {
    int32_t *q = to;
    (void)bits;
    for (uint32_t t = 0; t < k; ++t, q += P)
        for (uint32_t c = 0; c < P; ++c)
            q[c] = c < columns ? qn__quantize(at(from, blocks, c, t), inverse[t]) : 0;
}

/* Left and right have the same format here. */
static void qn_cpu_items_int_scalar(int bits, uint32_t count, const uint32_t *list,
                                    const float *inverse, const uint8_t *doubled, const float *from,
                                    void *to) {
    int32_t *q = to;
    (void)bits;
    for (uint32_t t = 0; t < count; ++t, q += P)
        for (uint32_t c = 0; c < P; ++c)
            q[c] = qn__quantize(from[(size_t)list[t] * P + c], inverse[t]) *
                   (INT32_C(1) << (doubled ? doubled[t] : 0));
}

/* Any sum that fits 64 bits. */
static int32_t qn_cpu_largest_int_scalar(int bits, uint32_t k) {
    (void)bits;
    (void)k;
    return INT32_MAX;
}

/* sums[j] = sum over t < k of a[t * 16] * b[t * 16 + j]. */
static void row_by_panel(uint32_t k, const int32_t *a, const int32_t *b, int64_t sums[P]) {
    memset(sums, 0, P * sizeof *sums);
    for (uint32_t t = 0; t < k; ++t, a += P, b += P)
        for (uint32_t j = 0; j < P; ++j)
            sums[j] += (int64_t)*a * b[j];
}

static void qn_cpu_product_int_scalar(int bits, uint32_t rows, uint32_t k, const void *left,
                                      uint32_t panels, const void *right, const float *row,
                                      const float *column, const float *start, float *c,
                                      size_t c_stride) {
    const size_t size = (size_t)k * P;
    (void)bits;
    for (uint32_t p = 0; p < panels; ++p)
        for (uint32_t i = 0; i < rows; ++i) {
            const int32_t *a = (const int32_t *)left + i / P * size + i % P;
            float *to = c + p * c_stride + (size_t)i * P;
            int64_t n[P];
            row_by_panel(k, a, (const int32_t *)right + p * size, n);
            for (uint32_t j = 0; j < P; ++j)
                to[j] = column ? fmaf((float)n[j], row[i] * column[p * P + j], start[p * P + j])
                               : (float)n[j] * row[i];
        }
}

/* Stores element `at` of out as QN__INTGEMM_* requires. */
static void put(qn__intgemm_out how, double factor, int64_t n, void *out, size_t at) {
    switch (how) {
    case QN__INTGEMM_FLOAT:
        ((float *)out)[at] = (float)n;
        break;
    case QN__INTGEMM_FIRST:
        ((double *)out)[at] = rint((double)n * factor);
        break;
    case QN__INTGEMM_ADD:
        ((double *)out)[at] += rint((double)n * factor);
        break;
    case QN__INTGEMM_INTEGER:
        ((int64_t *)out)[at] = n;
        break;
    }
}

static void qn_cpu_outer_int_scalar(int bits, uint32_t k, uint32_t blocks, const void *left,
                                    uint32_t panels, const void *right, qn__intgemm_out how,
                                    double factor, void *out) {
    const size_t size = (size_t)k * P;
    (void)bits;
    for (uint32_t i = 0; i < blocks * panels; ++i) {
        const int32_t *block = (const int32_t *)left + i % blocks * size;
        const int32_t *panel = (const int32_t *)right + i / blocks * size;
        for (uint32_t r = 0; r < P; ++r) {
            int64_t n[P];
            row_by_panel(k, block + r, panel, n);
            for (uint32_t c = 0; c < P; ++c)
                put(how, factor, n[c], out, ((size_t)i * P + r) * P + c);
        }
    }
}

const qn__intgemm qn__intgemm_scalar = {
    .name = "scalar",
    .size = qn_cpu_size_int_scalar,
    .absmax = qn_cpu_absmax_int_scalar,
    .left = qn_cpu_left_int_scalar,
    .left_across = qn_cpu_left_across_int_scalar,
    .right = qn_cpu_right_int_scalar,
    .right_transposed = qn_cpu_right_transposed_int_scalar,
    .left_items = qn_cpu_items_int_scalar,
    .right_items = qn_cpu_items_int_scalar,
    .largest = qn_cpu_largest_int_scalar,
    .product = qn_cpu_product_int_scalar,
    .outer = qn_cpu_outer_int_scalar,
};
