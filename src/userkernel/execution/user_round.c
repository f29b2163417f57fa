/* Rounds the exact value of a sum to float or double: to the nearest number, ties to even. The sum
 * is given as its highest 64 bits, their place, and whether anything lies below them. */
#include "userkernel/execution/user_round.h"

#include <string.h>

/* The bits of a number of the type are its exponent less 1, then a mantissa of all its bits: so
 * they also have the right exponent after a carry, and where the number is subnormal. */
int qn__user_round(uint64_t bits, int place, int rest, int negative, qn__user_type type,
                   uint64_t *value) {
    const int narrow = type == QN__USER_F32, shift = __builtin_clzll(bits);
    const int least = narrow ? -149 : -1074, width = narrow ? 24 : 53;
    bits <<= shift;
    place -= shift;
    const int unit = place + 64 - width > least ? place + 64 - width : least, drop = unit - place;
    uint64_t kept = drop > 63 ? 0 : bits >> drop;
    if (drop <= 64) {
        const uint64_t half = (uint64_t)1 << (drop - 1), lost = bits & (half * 2 - 1);
        kept += lost > half || (lost == half && (rest || kept & 1));
    }
    const uint64_t infinity = (uint64_t)(narrow ? 0xFF : 0x7FF) << (width - 1);
    const uint64_t number = ((uint64_t)(unit - least) << (width - 1)) + kept;
    if (unit - least > 0x7FF || number >= infinity)
        return 0;
    const uint64_t all = number | (uint64_t)(negative != 0) << (narrow ? 31 : 63);
    *value = all;
    if (narrow) {
        *value = 0;
        memcpy(value, &(uint32_t){(uint32_t)all}, sizeof(uint32_t));
    }
    return 1;
}

int qn__user_round_sum(qn__exact_sum *sum, qn__user_type type, uint64_t *value) {
    qn__natural natural;
    int place, rest = 0;
    const int sign = qn__exact_magnitude(sum, &natural);
    *value = 0;
    if (sign == 0)
        return 1;
    const uint64_t bits = qn__natural_leading_bits(&natural, &place, &rest);
    return qn__user_round(bits, place, rest, sign < 0, type, value);
}
