#include "layer/lost.h"

#include "num/intgemm_reference.h"

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
