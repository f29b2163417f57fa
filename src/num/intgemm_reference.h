/* Block fixed point: the integers of docs/exactness.md 15. Products of them as plain loops, the
 * reference for every backend, are those of layer/product.h. */
#ifndef QN_NUM_INTGEMM_REFERENCE_H
#define QN_NUM_INTGEMM_REFERENCE_H

#include "num/program.h"
#include <math.h>

/* The bits of infinity; those of a NaN's magnitude are larger. */
#define QN__INFINITE UINT32_C(0x7f800000)

/* The exponent of a block that holds a NaN or an infinity. */
#define QN__NOT_FINITE INT32_MAX

/* The most inputs and outputs of a layer, and items of a grain: a sum of products then fits 63
 * bits. */
#define QN__INTGEMM_LONGEST (UINT32_C(1) << 22)

/* B: 7, 14 or 21; 0 for float32. */
static inline int qn__arith_bits(qn__arith arith) { return 7 * (int)arith; }

/* The same of a layer's products. */
static inline int qn__layer_bits(qn__arith arith, const qn__layer *layer) {
    return qn__layer_is_integer(layer) ? qn__arith_bits(arith) : 0;
}

/* The same of all that a layer of the program multiplies: also the scores and values of attention
 * (25.25). */
static inline int qn__program_bits(const qn__program *program, const qn__layer *layer) {
    if (layer->kind == QN__LAYER_ATTENTION)
        return program->attention_arith == QN__ATTENTION_INTEGERS ? qn__arith_bits(program->arith)
                                                                  : 0;
    return qn__layer_bits(program->arith, layer);
}

/* 15.2: t, from the bits of the block's absmax. */
static inline int32_t qn__block_exponent(int bits, uint32_t absmax) {
    const int32_t e = (int32_t)((absmax + (UINT32_C(1) << (24 - bits))) >> 23);
    if (absmax >= QN__INFINITE)
        return QN__NOT_FINITE;
    return (e > 32 ? e : 32) - 125 - bits;
}

/* 2^t, and the factor that makes a value an integer, 2^-t. A block that is not finite has NaN and
 * 0. */
static inline float qn__block_factor(int32_t t) {
    return t == QN__NOT_FINITE ? NAN : ldexpf(1.0f, t);
}
static inline float qn__block_inverse(int32_t t) {
    return t == QN__NOT_FINITE ? 0.0f : ldexpf(1.0f, -t);
}

/* 15.2: q; 0 in a block that is not finite. */
static inline int32_t qn__quantize(float v, float inverse) {
    return inverse == 0.0f ? 0 : (int32_t)rintf(v * inverse);
}

/* The bits of the largest |v| of v[0], v[stride], ...; a NaN is larger than everything. */
uint32_t qn__absmax(uint64_t count, const float *v, uint64_t stride);

/* 15.6: the integer nearest to n * 2^s, ties to even, in *units. Returns 0, with *units unchanged,
 * when |n * 2^s| is not below `limit`, a power of two from 1 to 2^61. Every s is allowed. */
int qn__intgemm_units(int64_t n, int64_t s, float limit, int64_t *units);

#endif
