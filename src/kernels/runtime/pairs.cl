/* Exact sums of products of two columns of a table, after the prelude, exact.cl and cells.cl.
 *
 * An item (statistics/pair_device.h) is one sum over at most 2^14 rows. Of floats it looks for the
 * largest exponent of its products first. Those within the next 65 powers of two are integers of
 * one unit and at most 113 bits. Their sum has 127 bits and a sign. An item with a smaller product
 * is left to the host, which is told so. */
#define QN_ONE 0x3f800000u
#define QN_REACH 65u

#ifdef QN_TABLE_BYTES

/* Products of 16 bits; no value is missing. The unit is 1. */
QN_FN void qn_sum_products(QN_GLOBAL qn_u64 *out, QN_GLOBAL const qn_cell *table, qn_u64 columns,
                           qn_u32 left, qn_u32 right, qn_u32 kind, qn_u64 from, qn_u64 to) {
    qn_u32 sum = 0u;
    for (qn_u64 row = from; row < to; ++row)
        sum += (qn_u32)table[row * columns + left] * table[row * columns + right];
    out[0] = sum;
    out[1] = 0u;
    out[2] = 300u;
    out[3] = to - from;
}

#else

/* The factors of a sum: both values; or, where both are there, each of them alone, and each square.
 */
#define QN_FACTORS                                                                                 \
    const qn_u32 a = table[row * columns + left];                                                  \
    const qn_u32 b = table[row * columns + right];                                                 \
    const qn_u32 there = qn_is_missing(a) == 0u && qn_is_missing(b) == 0u;                         \
    const qn_u32 x = kind == 2u || kind == 4u ? b : a;                                             \
    const qn_u32 y = kind == 0u ? b : kind < 3u ? QN_ONE : x;

QN_FN void qn_sum_products(QN_GLOBAL qn_u64 *out, QN_GLOBAL const qn_cell *table, qn_u64 columns,
                           qn_u32 left, qn_u32 right, qn_u32 kind, qn_u64 from, qn_u64 to) {
    qn_u32 top = 0u, below = 0u, taken = 0u;
    qn_u64 low = 0u, high = 0u;
    for (qn_u64 row = from; row < to; ++row) {
        QN_FACTORS
        const qn_u32 power = qn_power(x) + qn_power(y);
        if (there != 0u && x << 1 != 0u && y << 1 != 0u && power > top)
            top = power;
    }
    const qn_u32 base = top > QN_REACH ? top - QN_REACH : 0u;
    for (qn_u64 row = from; row < to; ++row) {
        QN_FACTORS
        const qn_u64 p = there != 0u ? (qn_u64)qn_significand(x) * qn_significand(y) : 0u;
        const qn_u32 power = qn_power(x) + qn_power(y), shift = power - base;
        taken += there;
        if (p != 0u && power < base)
            below = 1u;
        else if (p != 0u) {
            const qn_u32 negative = (x ^ y) >> 31;
            const qn_u64 sign = (qn_u64)0 - (qn_u64)negative;
            const qn_u64 one = shift < 64u ? p << shift : 0u;
            const qn_u64 two = shift < 64u ? (p >> 1) >> (63u - shift) : p << (shift - 64u);
            const qn_u64 added = low + (one ^ sign);
            const qn_u64 next = added + negative;
            high += (two ^ sign) + (added < low) + (next < added);
            low = next;
        }
    }
    out[0] = low;
    out[1] = high;
    out[2] = (qn_u64)below << 32 | base;
    out[3] = taken;
}

#endif

QN_KERNEL(QN_PAIR_LANES)
qn_user_items(QN_GLOBAL qn_u32 *faults, QN_GLOBAL const qn_u64 *number,
              QN_GLOBAL const qn_cell *table, QN_GLOBAL qn_u64 *out, qn_u64 place, qn_u64 first,
              qn_u32 count) {
    const qn_u32 own = qn_group(0) * QN_PAIR_LANES + qn_lane();
    if (own >= count)
        return;
    const qn_u64 item = first + own, rows = number[QN_PAIR_ROWS];
    const qn_u32 pair = (qn_u32)item & (QN_PAIR_SIDE * QN_PAIR_SIDE - 1u);
    const qn_u32 sum = (qn_u32)(item / (QN_PAIR_SIDE * QN_PAIR_SIDE));
    const qn_u32 kinds = (qn_u32)number[QN_PAIR_KINDS], parts = (qn_u32)number[QN_PAIR_PARTS];
    qn_u32 square = sum / kinds / parts + (qn_u32)number[QN_PAIR_FROM], row = 0u;
    const qn_u32 squares = (qn_u32)number[QN_PAIR_SQUARES];
    while (square >= squares - row)
        square -= squares - row++;
    const qn_u32 left = row * QN_PAIR_SIDE + pair / QN_PAIR_SIDE;
    const qn_u32 right = (row + square) * QN_PAIR_SIDE + pair % QN_PAIR_SIDE;
    const qn_u64 from = (qn_u64)(sum / kinds % parts) * QN_PAIR_PART;
    const qn_u64 to = rows - from < QN_PAIR_PART ? rows : from + QN_PAIR_PART;
    const qn_u64 columns = number[QN_PAIR_COLUMNS];
    const qn_u64 wanted = left <= right && right < columns;
    qn_sum_products(out + 4u * own, table, columns, left, right, sum % kinds, from,
                    wanted != 0u ? to : from);
}
