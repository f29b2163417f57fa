/* Exact totals of what the items of a user kernel assigned, after the prelude and exact.cl. The
 * words are those of qn__user_total_words (userkernel/execution/user_sums.h), so the host only adds
 * them. All is done by integers on the bits of the numbers: a device needs no binary64 here, and
 * its floating-point units have no influence.
 *
 * A group takes every so manieth item. For a sum of real numbers it looks for their largest
 * exponent. All numbers within the next 42 powers of two are integers of one unit and at most 95
 * bits, which each lane adds in three digits of 32 bits, without looking at other lanes. What is
 * smaller is added to the limbs number by number.
 *
 * A kernel calls each function that has a barrier once, and no barrier is in a loop. Portable
 * Computing Language 3.1 (LLVM 15) crashes otherwise, or computes wrongly. */
typedef unsigned short qn_u16;

#define QN_TOTAL_LANES 128u
#define QN_LIMBS 68u /* as QN__EXACT_LIMBS */
#define QN_UNIT 34u  /* the limb of 2^0 */
#define QN_NO_ITEM (~0u)

/* ---------------------------------------------------------------- adding a word */

QN_FN void qn_add_word(QN_GLOBAL qn_u64 *word, qn_u64 value) { qn_atomic_add64(word, value); }
QN_FN void qn_add_local(QN_LOCAL_POINTER qn_u64 *word, qn_u64 value) {
    qn_atomic_add64(word, value);
}

/* value ^ sign - sign: -value where sign is all ones. */
#define QN_SIGNED(value, sign) (((value) ^ (sign)) - (sign))

/* Adds magnitude * 2^(place - 1088) with a sign to limbs. */
#define QN_ADD_SCALED(name, WORDS, add)                                                            \
    QN_FN void name(WORDS *limb, qn_u64 magnitude, qn_u32 place, qn_u64 sign) {                    \
        const qn_u32 at = place >> 5, shift = place & 31u;                                         \
        const qn_u64 low = magnitude << shift, high = (magnitude >> 1) >> (63u - shift);           \
        if ((low & 0xffffffffu) != 0u)                                                             \
            add(limb + at, QN_SIGNED(low & 0xffffffffu, sign));                                    \
        if (low >> 32 != 0u)                                                                       \
            add(limb + at + 1u, QN_SIGNED(low >> 32, sign));                                       \
        if (high != 0u)                                                                            \
            add(limb + at + 2u, QN_SIGNED(high, sign));                                            \
    }
QN_ADD_SCALED(qn_add_scaled_global, QN_GLOBAL qn_u64, qn_add_word)
QN_ADD_SCALED(qn_add_scaled_local, QN_LOCAL_POINTER qn_u64, qn_add_local)

/* Words of a group in local memory: set to zero, and added to those of all groups. */
QN_FN void qn_clear_words(QN_LOCAL_POINTER qn_u64 *own, qn_u32 words) {
    for (qn_u32 i = qn_lane(); i < words; i += QN_TOTAL_LANES)
        own[i] = 0u;
    qn_barrier();
}

QN_FN void qn_add_words(QN_GLOBAL qn_u64 *word, QN_LOCAL_POINTER const qn_u64 *own, qn_u32 words) {
    qn_barrier();
    for (qn_u32 i = qn_lane(); i < words; i += QN_TOTAL_LANES)
        if (own[i] != 0u)
            qn_add_word(word + i, own[i]);
}

/* ---------------------------------------------------------------- the bits of real numbers */

/* |x| = mantissa * 2^(place - 1088); subnormal numbers have the place of the smallest others. */
QN_FN qn_u64 qn_mantissa_f64(qn_u64 bits) {
    return (bits & 0xfffffffffffffu) | (qn_u64)((bits >> 52 & 0x7ffu) != 0u) << 52;
}
QN_FN qn_u32 qn_place_f64(qn_u64 bits) {
    const qn_u32 e = (qn_u32)(bits >> 52) & 0x7ffu;
    return e + (e == 0u) + 13u;
}
#define qn_sign_f64(bits) ((qn_u64)0 - ((bits) >> 63))
QN_FN qn_u64 qn_mantissa_f32(qn_u32 bits) {
    return (bits & 0x7fffffu) | (qn_u32)((bits >> 23 & 0xffu) != 0u) << 23;
}
QN_FN qn_u32 qn_place_f32(qn_u32 bits) {
    const qn_u32 e = bits >> 23 & 0xffu;
    return e + (e == 0u) + 938u;
}
#define qn_sign_f32(bits) ((qn_u64)0 - (qn_u64)((bits) >> 31))

/* ---------------------------------------------------------------- sums */

/* All lanes of a group become one: half of them take those of the other half, and so on. */
#define QN_HALVE(lanes, statement)                                                                 \
    {                                                                                              \
        const qn_u32 apart = lanes;                                                                \
        if (lane < apart) {                                                                        \
            statement;                                                                             \
        }                                                                                          \
        qn_barrier();                                                                              \
    }
#define QN_HALVES(statement)                                                                       \
    QN_HALVE(64u, statement)                                                                       \
    QN_HALVE(32u, statement)                                                                       \
    QN_HALVE(16u, statement)                                                                       \
    QN_HALVE(8u, statement)                                                                        \
    QN_HALVE(4u, statement)                                                                        \
    QN_HALVE(2u, statement)                                                                        \
    QN_HALVE(1u, statement)

QN_FN void qn_add_digits(QN_LOCAL_POINTER qn_u64 *board, qn_u32 lane, qn_u32 apart) {
    board[lane] += board[lane + apart];
    board[QN_TOTAL_LANES + lane] += board[QN_TOTAL_LANES + lane + apart];
    board[2u * QN_TOTAL_LANES + lane] += board[2u * QN_TOTAL_LANES + lane + apart];
}

/* Adds three digits of each lane, in the first places of `board`, which has three words for each
 * lane. Lanes must come to a barrier before it is used again. */
QN_FN void qn_gather(QN_LOCAL_POINTER qn_u64 *board, qn_u64 low, qn_u64 middle, qn_u64 high) {
    const qn_u32 lane = qn_lane();
    board[lane] = low;
    board[QN_TOTAL_LANES + lane] = middle;
    board[2u * QN_TOTAL_LANES + lane] = high;
    qn_barrier();
    QN_HALVES(qn_add_digits(board, lane, apart))
}

/* The greatest number of all lanes, for each of them. */
QN_FN qn_u32 qn_greatest(QN_LOCAL_POINTER qn_u32 *tops, qn_u32 number) {
    const qn_u32 lane = qn_lane();
    tops[lane] = number;
    qn_barrier();
    QN_HALVES(tops[lane] = tops[lane] > tops[lane + apart] ? tops[lane] : tops[lane + apart])
    return tops[0];
}

/* What a group's items have in the window of `reach` places below the largest one is added by the
 * lanes; the rest, number by number, to `limbs`, which are in local memory. A mantissa and `reach`
 * have at most 95 bits. */
#define QN_SUM_REALS(name, type, kind, reach)                                                      \
    QN_FN void name(QN_GLOBAL qn_u64 *limb, QN_GLOBAL const type *values, qn_u32 count,            \
                    QN_LOCAL_POINTER qn_u64 *board, QN_LOCAL_POINTER qn_u32 *tops,                 \
                    QN_LOCAL_POINTER qn_u64 *limbs) {                                              \
        const qn_u32 stride = qn_groups(0) * QN_TOTAL_LANES;                                       \
        const qn_u32 from = qn_group(0) * QN_TOTAL_LANES + qn_lane();                              \
        qn_u64 digit0 = 0u, digit1 = 0u, digit2 = 0u;                                              \
        qn_u32 top = 0u;                                                                           \
        qn_clear_words(limbs, QN_LIMBS);                                                           \
        for (qn_u32 i = from; i < count; i += stride) {                                            \
            const qn_u32 place = qn_place_##kind(values[i]);                                       \
            top = place > top ? place : top;                                                       \
        }                                                                                          \
        top = qn_greatest(tops, top);                                                              \
        const qn_u32 base = top > reach ? top - reach : 0u;                                        \
        for (qn_u32 i = from; i < count; i += stride) {                                            \
            const type bits = values[i];                                                           \
            const qn_u64 m = qn_mantissa_##kind(bits), sign = qn_sign_##kind(bits);                \
            const qn_u32 place = qn_place_##kind(bits), shift = place - base;                      \
            if (place >= base) {                                                                   \
                const qn_u64 low = m << shift, high = (m >> 1) >> (63u - shift);                   \
                digit0 += QN_SIGNED(low & 0xffffffffu, sign);                                      \
                digit1 += QN_SIGNED(low >> 32, sign);                                              \
                digit2 += QN_SIGNED(high, sign);                                                   \
            } else if (m != 0u) {                                                                  \
                qn_add_scaled_local(limbs, m, place, sign);                                        \
            }                                                                                      \
        }                                                                                          \
        qn_gather(board, digit0, digit1, digit2);                                                  \
        if (qn_lane() < 3u) {                                                                      \
            const qn_u64 all = board[qn_lane() * QN_TOTAL_LANES], sign = (qn_u64)0 - (all >> 63);  \
            qn_add_scaled_local(limbs, QN_SIGNED(all, sign), base + 32u * qn_lane(), sign);        \
        }                                                                                          \
        qn_add_words(limb, limbs, QN_LIMBS);                                                       \
    }
QN_SUM_REALS(qn_sum_f64, qn_u64, f64, 42u)
QN_SUM_REALS(qn_sum_f32, qn_u32, f32, 63u)

/* The lane's first digits of all groups go to one word each. */
QN_FN void qn_add_gathered(QN_GLOBAL qn_u64 *word, QN_LOCAL_POINTER const qn_u64 *board) {
    if (qn_lane() < 3u && board[qn_lane() * QN_TOTAL_LANES] != 0u)
        qn_add_word(word + qn_lane(), board[qn_lane() * QN_TOTAL_LANES]);
    qn_barrier();
}

QN_FN void qn_sum_integers(QN_GLOBAL qn_u64 *limb, QN_GLOBAL const qn_u64 *values, qn_u32 count,
                           qn_u32 is_signed, QN_LOCAL_POINTER qn_u64 *board) {
    const qn_u32 stride = qn_groups(0) * QN_TOTAL_LANES;
    qn_u64 digit0 = 0u, digit1 = 0u, digit2 = 0u;
    for (qn_u32 i = qn_group(0) * QN_TOTAL_LANES + qn_lane(); i < count; i += stride) {
        digit0 += values[i] & 0xffffffffu;
        digit1 += values[i] >> 32;
        digit2 -= is_signed != 0u ? values[i] >> 63 : 0u;
    }
    qn_gather(board, digit0, digit1, digit2);
    qn_add_gathered(limb + QN_UNIT, board);
}

QN_FN void qn_count(QN_GLOBAL qn_u64 *word, QN_GLOBAL const qn_u8 *values, qn_u32 count,
                    QN_LOCAL_POINTER qn_u64 *board) {
    const qn_u32 stride = qn_groups(0) * QN_TOTAL_LANES;
    qn_u64 taken = 0u;
    for (qn_u32 i = qn_group(0) * QN_TOTAL_LANES + qn_lane(); i < count; i += stride)
        taken += values[i] != 0u;
    qn_gather(board, taken, 0u, 0u);
    qn_add_gathered(word, board);
}

/* ---------------------------------------------------------------- extremes */

/* Numbers in the order of their types, as unsigned ones of `width` bits; zeros are equal. */
QN_FN qn_u64 qn_key_u(qn_u64 bits, qn_u32 width) { return bits; }
QN_FN qn_u64 qn_key_i(qn_u64 bits, qn_u32 width) { return bits ^ (qn_u64)1 << (width - 1u); }
QN_FN qn_u64 qn_key_f(qn_u64 bits, qn_u32 width) {
    const qn_u64 sign = (qn_u64)1 << (width - 1u), magnitude = bits & (sign - 1u);
    return magnitude == 0u ? sign : (bits & sign) != 0u ? sign - magnitude : sign + magnitude;
}

QN_FN void qn_take_better(QN_LOCAL_POINTER qn_u64 *board, QN_LOCAL_POINTER qn_u32 *items,
                          qn_u32 lane, qn_u32 apart) {
    const qn_u64 own = board[lane], other = board[lane + apart];
    board[QN_TOTAL_LANES + lane] += board[QN_TOTAL_LANES + lane + apart];
    if (other < own || (other == own && items[lane + apart] < items[lane])) {
        board[lane] = other;
        items[lane] = items[lane + apart];
    }
}

/* The best of the lanes' keys, and of equal ones the first item; and the sum of `taken`. */
QN_FN void qn_gather_best(QN_LOCAL_POINTER qn_u64 *board, QN_LOCAL_POINTER qn_u32 *items,
                          qn_u64 key, qn_u32 item, qn_u64 taken) {
    const qn_u32 lane = qn_lane();
    board[lane] = key;
    board[QN_TOTAL_LANES + lane] = taken;
    items[lane] = item;
    qn_barrier();
    QN_HALVES(qn_take_better(board, items, lane, apart))
}

/* word[0]: items that took part; then for each group its best number and that item's number + 1, or
 * zeros. `flip`: all ones for the greatest. */
#define QN_EXTREME(name, type)                                                                     \
    QN_FN void name(QN_GLOBAL qn_u64 *word, QN_GLOBAL const type *values,                          \
                    QN_GLOBAL const qn_u8 *took, qn_u64 first, qn_u32 count, qn_u32 kind,          \
                    qn_u64 flip, QN_LOCAL_POINTER qn_u64 *board, QN_LOCAL_POINTER qn_u32 *items) { \
        const qn_u32 stride = qn_groups(0) * QN_TOTAL_LANES;                                       \
        qn_u64 best = ~(qn_u64)0, taken = 0u;                                                      \
        qn_u32 item = QN_NO_ITEM;                                                                  \
        for (qn_u32 i = qn_group(0) * QN_TOTAL_LANES + qn_lane(); i < count; i += stride) {        \
            const qn_u64 key = qn_key(values[i], kind, 8u * (qn_u32)sizeof(type)) ^ flip;          \
            if (took[i] == 0u)                                                                     \
                continue;                                                                          \
            ++taken;                                                                               \
            if (key < best || item == QN_NO_ITEM) {                                                \
                best = key;                                                                        \
                item = i;                                                                          \
            }                                                                                      \
        }                                                                                          \
        qn_gather_best(board, items, best, item, taken);                                           \
        if (qn_lane() == 0u && items[0] != QN_NO_ITEM) {                                           \
            QN_GLOBAL qn_u64 *own = word + 1u + 2u * qn_group(0);                                  \
            const qn_u64 value = values[items[0]], at = first + items[0] + 1u;                     \
            const qn_u64 known = qn_key(own[0], kind, 8u * (qn_u32)sizeof(type)) ^ flip;           \
            qn_add_word(word, board[QN_TOTAL_LANES]);                                              \
            if (own[1] == 0u || board[0] < known || (board[0] == known && at < own[1])) {          \
                own[0] = value;                                                                    \
                own[1] = at;                                                                       \
            }                                                                                      \
        }                                                                                          \
        qn_barrier();                                                                              \
    }
#define QN_KEY_U 0u
#define QN_KEY_I 1u
#define QN_KEY_F 2u
QN_FN qn_u64 qn_key(qn_u64 bits, qn_u32 kind, qn_u32 width) {
    return kind == QN_KEY_U   ? qn_key_u(bits, width)
           : kind == QN_KEY_I ? qn_key_i(bits, width)
                              : qn_key_f(bits, width);
}
QN_EXTREME(qn_extreme_8, qn_u8)
QN_EXTREME(qn_extreme_16, qn_u16)
QN_EXTREME(qn_extreme_32, qn_u32)
QN_EXTREME(qn_extreme_64, qn_u64)

/* ---------------------------------------------------------------- bins */

/* Bins of each item, in global memory, or in local memory if they are few: then the many items of a
 * group that go to one bin do not wait for those of all other groups. */
#define QN_EACH_BIN(body)                                                                          \
    const qn_u32 stride = qn_groups(0) * QN_TOTAL_LANES;                                           \
    for (qn_u32 i = qn_group(0) * QN_TOTAL_LANES + qn_lane(); i < count; i += stride)              \
        if (bin[i] >= 0) {                                                                         \
            body                                                                                   \
        }
#define QN_BINS(space, WORDS, add)                                                                 \
    QN_FN void qn_bins_f64_##space(WORDS *word, QN_GLOBAL const qn_u64 *values,                    \
                                   QN_GLOBAL const qn_i32 *bin, qn_u32 count) {                    \
        QN_EACH_BIN(qn_add_scaled_##space(word + QN_LIMBS * (qn_u32)bin[i],                        \
                                          qn_mantissa_f64(values[i]), qn_place_f64(values[i]),     \
                                          qn_sign_f64(values[i]));)                                \
    }                                                                                              \
    QN_FN void qn_bins_f32_##space(WORDS *word, QN_GLOBAL const qn_u32 *values,                    \
                                   QN_GLOBAL const qn_i32 *bin, qn_u32 count) {                    \
        QN_EACH_BIN(qn_add_scaled_##space(word + QN_LIMBS * (qn_u32)bin[i],                        \
                                          qn_mantissa_f32(values[i]), qn_place_f32(values[i]),     \
                                          qn_sign_f32(values[i]));)                                \
    }                                                                                              \
    QN_FN void qn_bins_integers_##space(WORDS *word, QN_GLOBAL const qn_u64 *values,               \
                                        QN_GLOBAL const qn_i32 *bin, qn_u32 count,                 \
                                        qn_u32 is_signed) {                                        \
        QN_EACH_BIN(WORDS *own = word + 3u * (qn_u32)bin[i]; const qn_u64 x = values[i];           \
                    if (x != 0u) {                                                                 \
                        add(own, x & 0xffffffffu);                                                 \
                        if (x >> 32 != 0u)                                                         \
                            add(own + 1, x >> 32);                                                 \
                        if (is_signed != 0u && x >> 63 != 0u)                                      \
                            add(own + 2, ~(qn_u64)0);                                              \
                    })                                                                             \
    }                                                                                              \
    QN_FN void qn_bins_count_##space(WORDS *word, QN_GLOBAL const qn_u8 *values,                   \
                                     QN_GLOBAL const qn_i32 *bin, qn_u32 count) {                  \
        QN_EACH_BIN(if (values[i] != 0u) add(word + (qn_u32)bin[i], 1u);)                          \
    }
QN_BINS(global, QN_GLOBAL qn_u64, qn_add_word)
QN_BINS(local, QN_LOCAL_POINTER qn_u64, qn_add_local)
