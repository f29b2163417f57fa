#include "layer/lost.h"

#include "num/intgemm_reference.h"

/* Multiplications of the items of a report, in one direction, and of a report of one item. The
 * reference takes a second for so many. */
#define MOST_WORK (UINT64_C(1) << 23)
#define MOST_OF_ONE (UINT64_C(1) << 28)

void qn__lost_block(int bits, uint64_t count, const float *values, qn__lost *to) {
    const int32_t t = qn__block_exponent(bits, qn__absmax(count, values, 1));
    if (t == QN__NOT_FINITE)
        return;
    const float inverse = qn__block_inverse(t);
    for (uint64_t i = 0; i < count; ++i) {
        const int there = values[i] != 0.0f;
        to->values += (uint64_t)there;
        to->lost += (uint64_t)(there && qn__quantize(values[i], inverse) == 0);
    }
}

void qn__lost_blocks(int bits, uint64_t count, uint64_t size, const float *values, qn__lost *to) {
    for (uint64_t at = 0; at < count; at += size)
        qn__lost_block(bits, size, values + at, to);
}

uint32_t qn__lost_items(const qn__program *p) {
    uint64_t work = 1;
    for (uint32_t l = 0; l < p->layers; ++l)
        work += p->layer[l].out * (uint64_t)p->layer[l].depth;
    const uint64_t fit = MOST_WORK / work;
    return fit >= p->grain ? p->grain : fit ? (uint32_t)fit : work <= MOST_OF_ONE;
}
