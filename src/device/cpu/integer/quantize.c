/* From floats and bytes to integers: the scale of a block, and the digits of every byte. */
#include "base/binary/float_bits.h"
#include "device/cpu/integer/intgemm.h"
#include <math.h>

static float power_of_two(int32_t exponent) {
    return qn__float_of_bits((uint32_t)(exponent + 127) << 23);
}

/* Exponents of 15.2 are from -114 to 123, so that both powers are normal numbers. */
void qn__cpu_block_scales(int bits, uint32_t count, const uint32_t *absmax, float *factor,
                          float *inverse) {
    for (uint32_t i = 0; i < count; ++i) {
        const int32_t t = qn__block_exponent(bits, absmax[i]);
        factor[i] = t == QN__NOT_FINITE ? NAN : power_of_two(t);
        inverse[i] = t == QN__NOT_FINITE ? 0.0f : power_of_two(-t);
    }
}

/* 5.1 */
static float value_of(qn__scale scale, uint32_t byte) {
    const float divisor = scale == QN__SCALE_FRACTION ? 256.0f : 255.0f;
    return scale == QN__SCALE_NONE ? (float)byte : (float)byte / divisor;
}

uint32_t qn__cpu_byte_bits(qn__scale scale, uint32_t byte) {
    return qn__float_bits(value_of(scale, byte));
}

/* The integer in a block with this inverse. A byte that is too large for the block cannot occur in
 * one. */
static int32_t integer_of(int bits, float value, float inverse) {
    const int32_t most = (INT32_C(1) << (bits - 1)) - 1, q = qn__quantize(value, inverse);
    return q < most ? q : most;
}

static void put_digits(int bits, int32_t q, uint32_t byte, int8_t digit[3][256]) {
    for (int i = bits / 7 - 1; i > 0; --i) {
        const int32_t low = ((q + 64) & 127) - 64;
        digit[i][byte] = (int8_t)low;
        q = (q - low) / 128;
    }
    digit[0][byte] = (int8_t)(q < INT8_MAX ? q : INT8_MAX);
}

/* For sums over items. */
static void put_item_digits(int bits, int32_t q, uint32_t byte, int8_t digit[3][256]) {
    if (bits != 14) {
        put_digits(bits, q, byte, digit);
        return;
    }
    digit[0][byte] = (int8_t)(q / 256); /* bytes never represent negative numbers */
    digit[1][byte] = (int8_t)(uint8_t)(q % 256);
}

void qn__cpu_make_digits(int bits, qn__scale scale, qn__cpu_digits *to) {
    const uint32_t smallest = qn__cpu_byte_bits(scale, 1);
    float factor, inverse;
    qn__cpu_block_scales(bits, 1, &smallest, &factor, &inverse);
    to->first = qn__float_bits(inverse) >> 23;
    for (uint32_t block = 0; block < QN__BYTE_BLOCKS; ++block, inverse /= 2)
        for (uint32_t byte = 0; byte < 256; ++byte) {
            const int32_t q = integer_of(bits, value_of(scale, byte), inverse);
            put_digits(bits, q, byte, to->digit[block]);
            for (int d = 0; d < 3; ++d)
                put_item_digits(bits, q << d, byte, to->item_digit[block][d]);
        }
}
