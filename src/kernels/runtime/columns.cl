/* Exact sums and extremes of a column of a table, and counts of its values, after the prelude,
 * exact.cl and cells.cl.
 *
 * An item (statistics/column_device.h) has at most 2^10 rows of one column: their sum, those of
 * squares and of cubes, the number of values, the least and the greatest one. Of floats it looks
 * for the largest exponent first. Values within the next 28 powers of two are integers of one unit
 * and at most 52 bits. Their sums have 63, 115 and 167 bits with the sign. An item with a smaller
 * value is left to the host, which is told so.
 *
 * The words: the sum; two of squares and three of cubes, the lowest first; values in 32 bits, the
 * exponent of the unit in 8, and in the highest bit whether the item is left to the host; the
 * extremes in 32 bits each. Of an item of a pass they are counts of 32 bits. */
#define QN_COLUMN_REACH 28u
#define QN_COLUMN_WORDS 8u

#ifdef QN_TABLE_BYTES

#define qn_order_key(x) ((qn_u32)(x))
#define qn_is_missing(x) 0u

QN_FN void qn_sum_powers(QN_GLOBAL qn_u64 *out, QN_GLOBAL const qn_cell *table, qn_u64 columns,
                         qn_u64 column, qn_u64 from, qn_u64 to) {
    qn_u32 first = 0u, second = 0u, least = ~0u, greatest = 0u;
    qn_u64 third = 0u;
    for (qn_u64 row = from; row < to; ++row) {
        const qn_u32 x = table[row * columns + column];
        first += x;
        second += x * x;
        third += x * x * x;
        least = x < least ? x : least;
        greatest = x > greatest ? x : greatest;
    }
    out[0] = first;
    out[1] = second;
    out[2] = 0u;
    out[3] = third;
    out[4] = out[5] = 0u;
    out[6] = (to - from) | (qn_u64)150u << 32;
    out[7] = (qn_u64)greatest << 32 | least;
}

#else

/* Numbers that ascend as the floats do; both zeros have the same. */
QN_FN qn_u32 qn_order_key(qn_u32 x) {
    const qn_u32 bits = x << 1 != 0u ? x : 0u;
    return bits ^ (((qn_u32)0 - (bits >> 31)) | 0x80000000u);
}

QN_FN void qn_sum_powers(QN_GLOBAL qn_u64 *out, QN_GLOBAL const qn_cell *table, qn_u64 columns,
                         qn_u64 column, qn_u64 from, qn_u64 to) {
    qn_u32 top = 0u, taken = 0u, below = 0u, least = ~0u, greatest = 0u;
    qn_u64 first = 0u, low = 0u, high = 0u, one = 0u, two = 0u, three = 0u;
    for (qn_u64 row = from; row < to; ++row) {
        const qn_u32 x = table[row * columns + column], there = qn_is_missing(x) == 0u;
        const qn_u32 power = there != 0u && x << 1 != 0u ? qn_power(x) : 0u;
        const qn_u32 key = qn_order_key(x);
        top = power > top ? power : top;
        taken += there;
        least = there != 0u && key < least ? key : least;
        greatest = there != 0u && key > greatest ? key : greatest;
    }
    const qn_u32 base = top > QN_COLUMN_REACH ? top - QN_COLUMN_REACH : 1u;
    for (qn_u64 row = from; row < to; ++row) {
        const qn_u32 x = table[row * columns + column];
        const qn_u32 m = qn_is_missing(x) == 0u ? qn_significand(x) : 0u, power = qn_power(x);
        const qn_u32 is_below = power < base, shift = is_below != 0u ? 0u : power - base;
        const qn_u32 negative = x >> 31;
        const qn_u64 sign = (qn_u64)0 - (qn_u64)negative;
        below |= (qn_u32)(m != 0u) & is_below;
        first += (((qn_u64)m << shift) ^ sign) - sign;
        /* 48 bits, times 2^(2 shift) */
        const qn_u64 square = (qn_u64)m * m;
        const qn_u64 sum = low + (square << 2u * shift);
        high += ((square >> 1) >> (63u - 2u * shift)) + (sum < low);
        low = sum;
        /* 72 bits in two words, times 2^(3 shift) in three */
        const qn_u64 lower = (square & 0xffffffu) * m, upper = (square >> 24) * m;
        const qn_u64 cube = lower + (upper << 24), above = (upper >> 40) + (cube < lower);
        const qn_u32 by = 3u * shift & 63u, whole = 3u * shift >> 6;
        const qn_u64 a = cube << by, b = above << by | (cube >> 1) >> (63u - by);
        const qn_u64 c = (above >> 1) >> (63u - by);
        const qn_u64 s0 = one + ((whole != 0u ? 0u : a) ^ sign), t0 = s0 + negative;
        const qn_u64 carry0 = (qn_u64)(s0 < one) + (t0 < s0);
        const qn_u64 s1 = two + ((whole != 0u ? a : b) ^ sign), t1 = s1 + carry0;
        const qn_u64 carry1 = (qn_u64)(s1 < two) + (t1 < s1);
        one = t0;
        two = t1;
        three += ((whole != 0u ? b : c) ^ sign) + carry1;
    }
    out[0] = first;
    out[1] = low;
    out[2] = high;
    out[3] = one;
    out[4] = two;
    out[5] = three;
    out[6] = (qn_u64)below << 63 | (qn_u64)base << 32 | taken;
    out[7] = (qn_u64)greatest << 32 | least;
}

#endif

/* The sums of an item. The upper half of its number is the tile. */
QN_FN void qn_sum_item(QN_GLOBAL qn_u64 *out, QN_GLOBAL const qn_u64 *number,
                       QN_GLOBAL const qn_cell *table, QN_GLOBAL const qn_u64 *start, qn_u64 item) {
    const qn_u32 tile = (qn_u32)(item >> 32), wide = tile % QN_COLUMN_TILE + 1u;
    const qn_u32 part = (qn_u32)item / wide, within = (qn_u32)item - part * wide;
    qn_sum_powers(out, table, number[QN_COLUMN_COLUMNS],
                  number[QN_COLUMN_FROM] + tile / QN_COLUMN_TILE + within, start[part],
                  start[part + 1u]);
}

#define QN_ALL_KEYS (QN_COLUMN_KEYS * QN_COLUMN_LANES)

/* A group counts the values of its chunk between its keys. Without keys there is nothing to count.
 * The highest bit of the item's number is that of passes. */
QN_FN void qn_count_chunk(QN_LOCAL_POINTER const qn_u32 *key, QN_LOCAL_POINTER qn_u32 *counted,
                          QN_GLOBAL const qn_u64 *number, QN_GLOBAL const qn_cell *table,
                          QN_GLOBAL const qn_u64 *chunk, qn_u64 item) {
    const qn_u32 group = (qn_u32)item / QN_COLUMN_LANES;
    const qn_u32 chunks = (qn_u32)number[QN_COLUMN_CHUNKS], within = group / chunks;
    const qn_u32 at = group - within * chunks;
    const qn_u32 tile = (qn_u32)(item >> 32) & 0x7fffffffu;
    const qn_u64 column = number[QN_COLUMN_FROM] + tile / QN_COLUMN_TILE + within;
    const qn_u64 to = key[0] != ~0u ? chunk[2u * at + 1u] : 0u;
    for (qn_u64 row = chunk[2u * at] + qn_lane(); row < to; row += QN_COLUMN_LANES) {
        const qn_u32 x = table[row * number[QN_COLUMN_COLUMNS] + column], own = qn_order_key(x);
        qn_u32 place = 0u;
        for (qn_u32 step = QN_ALL_KEYS / 2u; step != 0u; step >>= 1)
            place += key[place + step - 1u] <= own ? step : 0u;
        if (qn_is_missing(x) == 0u)
            qn_atomic_add(counted + place, 1u);
    }
}

/* Lanes come to both barriers in any case (totals.cl). */
QN_KERNEL(QN_COLUMN_LANES)
qn_user_items(QN_GLOBAL qn_u32 *faults, QN_GLOBAL const qn_u64 *number,
              QN_GLOBAL const qn_cell *table, QN_GLOBAL const qn_u64 *start, QN_GLOBAL qn_u64 *out,
              QN_GLOBAL const qn_u64 *chunk, QN_GLOBAL const qn_u32 *keys, qn_u64 place,
              qn_u64 first, qn_u32 count) {
    QN_LOCAL qn_u32 key[QN_ALL_KEYS], counted[QN_ALL_KEYS];
    const qn_u32 own = qn_group(0) * QN_COLUMN_LANES + qn_lane(), at = QN_COLUMN_KEYS * qn_lane();
    const qn_u32 here = own < count, passes = (qn_u32)(first >> 63) & here;
    for (qn_u32 i = 0u; i < QN_COLUMN_KEYS; ++i) {
        key[at + i] = passes != 0u ? keys[QN_COLUMN_KEYS * own + i] : 0u;
        counted[at + i] = 0u;
    }
    qn_barrier();
    if (passes != 0u)
        qn_count_chunk(key, counted, number, table, chunk, first + own);
    else if (here != 0u)
        qn_sum_item(out + QN_COLUMN_WORDS * own, number, table, start, first + own);
    qn_barrier();
    for (qn_u32 i = 0u; passes != 0u && i < QN_COLUMN_KEYS; i += 2u)
        out[QN_COLUMN_WORDS * own + i / 2u] = counted[at + i] | (qn_u64)counted[at + i + 1u] << 32;
}
