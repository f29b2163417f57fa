/* Block fixed point (docs/exactness.md 15): greatest magnitudes, exponents, and numbers as integers.
 *
 * An integer of 7, 14 or 21 bits is kept as one, two or three *digits* to the base of 128, the lowest
 * first, each from -64 to 63 and the last from -64 to 64: bytes. Four bytes that follow each other
 * along the sum of a product are a *word*. An operand has a row for each row or column of the
 * product: the words of the lowest digits, then those of the next ones; word w of digit d of row r is
 * at (r * digits + d) * width + w. */
#define QN_NOT_FINITE 0x7fffffff

/* 15.2: t, from the bits of the greatest magnitude. */
QN_FN qn_i32 qn_block_exponent(qn_u32 bits, qn_u32 greatest) {
    const qn_u32 e = (greatest + (1u << (24u - bits))) >> 23;
    if (greatest >= 0x7f800000u)
        return QN_NOT_FINITE;
    return (qn_i32)(e > 32u ? e : 32u) - 125 - (qn_i32)bits;
}

/* 2^t and 2^-t, both normal numbers; NaN and 0 of a block that is not finite (15.3). */
QN_FN float qn_block_factor(qn_i32 t) {
    return qn_as_float(t == QN_NOT_FINITE ? 0x7fc00000 : (t + 127) * 0x800000);
}
QN_FN float qn_block_inverse(qn_i32 t) {
    return t == QN_NOT_FINITE ? 0.0f : qn_as_float((127 - t) * 0x800000);
}

/* The logarithm of a power of two, or the next one below. */
QN_FN qn_i32 qn_log_of(float power) { return (qn_i32)(qn_as_u32(power) >> 23) - 127; }

/* 15.6: whether n * 2^s leaves its range, and the integer nearest to it where it does not. */
QN_FN qn_u32 qn_units_leave(qn_i64 n, qn_i32 s, float limit) {
    const qn_i32 bound = qn_log_of(limit) - s;
    const qn_u64 size = n < 0 ? (qn_u64)0 - (qn_u64)n : (qn_u64)n;
    if (n == 0 || s < -63)
        return 0u;
    return bound < 0 || (bound < 64 && size >> (bound & 63) != 0u) ? 1u : 0u;
}
QN_FN qn_i64 qn_units_of(qn_i64 n, qn_i32 s) {
    if (n == 0 || s < -63)
        return 0;
    if (s >= 0)
        return (qn_i64)((qn_u64)n << (s & 63));
    /* The whole part, rounded down, and the rest, which is not negative. */
    const qn_u64 unit = (qn_u64)1 << -s, half_way = unit >> 1, rest = (qn_u64)n & (unit - 1u);
    const qn_i64 whole = n >> -s;
    return whole + (rest > half_way || (rest == half_way && (whole & 1) != 0) ? 1 : 0);
}

/* c and the four products of the signed bytes of a and b. */
#ifndef qn_dot
QN_FN qn_i32 qn_byte(qn_i32 word, qn_u32 shift) { return (qn_i32)((qn_u32)word << shift) >> 24; }
QN_FN qn_i32 qn_dot(qn_i32 a, qn_i32 b, qn_i32 c) {
    return c + qn_byte(a, 24u) * qn_byte(b, 24u) + qn_byte(a, 16u) * qn_byte(b, 16u) +
           qn_byte(a, 8u) * qn_byte(b, 8u) + qn_byte(a, 0u) * qn_byte(b, 0u);
}
#endif

QN_FN qn_i32 qn_fix(float v, float inverse) {
    return inverse == 0.0f ? 0 : qn_i32_of(v * inverse);
}

/* Digit d of `digits`, as a byte. */
QN_FN qn_u32 qn_digit(qn_i32 q, qn_u32 d, qn_u32 digits) {
    for (qn_u32 below = 0u; below < d; ++below)
        q = (q + 64) >> 7;
    if (d + 1u < digits)
        q = ((q + 64) & 127) - 64;
    return (qn_u32)q & 255u;
}

/* The words of four integers, `width` words from digit to digit. */
QN_FN void qn_write_words(QN_GLOBAL qn_u32 *to, qn_u32 digits, qn_u32 width, qn_i32 q0, qn_i32 q1,
                          qn_i32 q2, qn_i32 q3) {
    for (qn_u32 d = 0u; d < digits; ++d)
        to[(qn_u64)d * width] = qn_digit(q0, d, digits) | qn_digit(q1, d, digits) << 8 |
                                qn_digit(q2, d, digits) << 16 | qn_digit(q3, d, digits) << 24;
}

/* Words of n numbers along a sum: whole slabs of eight, the last filled up with zeros. */
QN_FN qn_u32 qn_width(qn_u32 n) { return (n + 31u) / 32u * 8u; }

/* Words of a grain: each begins a word of its own. */
QN_FN qn_u32 qn_grain_words(qn_u32 grain) { return (grain + 3u) / 4u; }

QN_FN qn_u32 qn_magnitude(float v) { return qn_as_u32(v) & 0x7fffffffu; }
QN_FN qn_u32 qn_greater(qn_u32 a, qn_u32 b) { return a > b ? a : b; }

/* An error by the factor of its output's weights, which makes the c of 15.5. */
QN_FN float qn_weighed(float v, qn_u32 flags, qn_u32 bits, QN_GLOBAL const qn_u32 *greatest,
                       qn_u32 column) {
    if ((flags & QN_FIX_WEIGHED) == 0u)
        return v;
    return v * qn_block_factor(qn_block_exponent(bits, greatest[column]));
}

/* FIX_ITEMS: a group takes an item at a time. */
#define QN_FIX_LANES 128u
QN_KERNEL(128)
qn_fix_items(QN_GLOBAL const qn_step *step, QN_GLOBAL const float *from,
             QN_GLOBAL const qn_u32 *outputs, QN_GLOBAL qn_u32 *items, QN_GLOBAL qn_u32 *grains,
             QN_GLOBAL qn_u32 *to, qn_u32 columns, qn_u32 bits, qn_u32 output, qn_u32 grain,
             qn_u32 flags) {
    QN_LOCAL qn_u32 plain[QN_FIX_LANES], weighed[QN_FIX_LANES];
    const qn_u32 lane = qn_lane(), ld = qn_ld(columns), digits = bits / 7u;
    const qn_u32 width = qn_width(columns);
    QN_GLOBAL const qn_u32 *times = outputs + output;
    for (qn_u32 item = qn_group(0); item < step->items; item += qn_groups(0)) {
        QN_GLOBAL const float *x = from + (qn_u64)item * ld;
        qn_u32 most = 0u, most_weighed = 0u;
        for (qn_u32 c = lane; c < columns; c += QN_FIX_LANES) {
            most = qn_greater(most, qn_magnitude(x[c]));
            most_weighed = qn_greater(most_weighed,
                                      qn_magnitude(qn_weighed(x[c], flags, bits, times, c)));
        }
        plain[lane] = most;
        weighed[lane] = most_weighed;
        qn_barrier();
        for (qn_u32 other = QN_FIX_LANES / 2u; other > 0u; other /= 2u) {
            if (lane < other) {
                plain[lane] = qn_greater(plain[lane], plain[lane + other]);
                weighed[lane] = qn_greater(weighed[lane], weighed[lane + other]);
            }
            qn_barrier();
        }
        if (lane == 0u) {
            items[item] = weighed[0];
            if ((flags & QN_FIX_GRAINS) != 0u)
                qn_atomic_max(&grains[grain + item / step->grain], plain[0]);
        }
        const float inverse = qn_block_inverse(qn_block_exponent(bits, weighed[0]));
        QN_GLOBAL qn_u32 *words = to + (qn_u64)item * digits * width;
        for (qn_u32 w = lane; w < width && (flags & QN_FIX_WORDS) != 0u; w += QN_FIX_LANES) {
            qn_i32 q[4];
            for (qn_u32 e = 0u; e < 4u; ++e) {
                const qn_u32 c = 4u * w + e;
                q[e] = c < columns ? qn_fix(qn_weighed(x[c], flags, bits, times, c), inverse) : 0;
            }
            qn_write_words(words + w, digits, width, q[0], q[1], q[2], q[3]);
        }
        qn_barrier();
    }
}

/* FIX_GRAINS: a group takes 32 items of a grain by 32 columns at a time and turns them over. */
QN_KERNEL(256)
qn_fix_grains(QN_GLOBAL const qn_step *step, QN_GLOBAL const float *from,
              QN_GLOBAL const qn_u32 *greatest, QN_GLOBAL qn_u32 *to, qn_u32 columns, qn_u32 bits,
              qn_u32 first) {
    QN_LOCAL qn_i32 block[32 * 33];
    const qn_u32 lane = qn_lane(), ld = qn_ld(columns), digits = bits / 7u;
    const qn_u32 items = step->items, grain = step->grain, words = qn_grain_words(grain);
    const qn_u32 grains = (items + grain - 1u) / grain, width = grains * words;
    const qn_u32 across = (columns + 31u) / 32u, parts = (grain + 31u) / 32u;
    const qn_u64 blocks = (qn_u64)grains * parts * across;
    for (qn_u64 n = qn_group(0); n < blocks; n += qn_groups(0)) {
        const qn_u32 column = (qn_u32)(n % across) * 32u, part = (qn_u32)(n / across % parts);
        const qn_u32 g = (qn_u32)(n / across / parts), begin = g * grain + part * 32u;
        const qn_u32 end = items - g * grain < grain ? items : (g + 1u) * grain;
        const float inverse = qn_block_inverse(qn_block_exponent(bits, greatest[first + g]));
        const qn_u32 c = lane % 32u;
        for (qn_u32 r = lane / 32u; r < 32u; r += 8u) {
            const qn_u32 inside = begin + r < end && column + c < columns ? 1u : 0u;
            block[r * 33u + c] =
                inside != 0u ? qn_fix(from[(qn_u64)(begin + r) * ld + column + c], inverse) : 0;
        }
        qn_barrier();
        const qn_u32 row = lane / 8u, w = lane % 8u;
        if (column + row < columns && part * 8u + w < words) {
            QN_LOCAL_POINTER const qn_i32 *q = block + w * 4u * 33u + row;
            qn_write_words(to + (qn_u64)(column + row) * digits * width + g * words + part * 8u + w,
                           digits, width, q[0], q[33], q[66], q[99]);
        }
        qn_barrier();
    }
}

/* GREATEST: a group takes 64 inputs by 16 outputs at a time. */
QN_KERNEL(256)
qn_greatest(QN_GLOBAL const float *parameters, QN_GLOBAL qn_u32 *outputs, qn_u64 weights, qn_u32 in,
            qn_u32 out, qn_u32 output) {
    QN_LOCAL qn_u32 part[256];
    const qn_u32 lane = qn_lane(), ld = qn_ld(out), across = ld / 16u, down = (in + 63u) / 64u;
    const qn_u64 blocks = (qn_u64)across * down;
    for (qn_u64 n = qn_group(0); n < blocks; n += qn_groups(0)) {
        const qn_u32 o = (qn_u32)(n % across) * 16u + lane % 16u;
        const qn_u32 begin = (qn_u32)(n / across) * 64u, end = in - begin < 64u ? in : begin + 64u;
        qn_u32 most = 0u;
        for (qn_u32 k = begin + lane / 16u; k < end; k += 16u)
            most = qn_greater(most, qn_magnitude(parameters[weights + (qn_u64)k * ld + o]));
        part[lane] = most;
        qn_barrier();
        if (lane < 16u) {
            for (qn_u32 t = 1u; t < 16u; ++t)
                most = qn_greater(most, part[t * 16u + lane]);
            qn_atomic_max(&outputs[output + o], most);
        }
        qn_barrier();
    }
}

/* FIX_WEIGHTS: a group takes 32 inputs by 32 outputs at a time, and writes them both ways. */
QN_KERNEL(256)
qn_fix_weights(QN_GLOBAL const float *parameters, QN_GLOBAL const qn_u32 *outputs,
               QN_GLOBAL qn_u32 *by_output, QN_GLOBAL qn_u32 *by_input, qn_u64 weights, qn_u32 in,
               qn_u32 out, qn_u32 output, qn_u32 bits, qn_u32 flags) {
    QN_LOCAL qn_i32 block[32 * 33];
    const qn_u32 lane = qn_lane(), ld = qn_ld(out), digits = bits / 7u;
    const qn_u32 across = (out + 31u) / 32u, down = (in + 31u) / 32u;
    const qn_u64 blocks = (qn_u64)across * down;
    for (qn_u64 n = qn_group(0); n < blocks; n += qn_groups(0)) {
        const qn_u32 o = (qn_u32)(n % across) * 32u, k = (qn_u32)(n / across) * 32u;
        const qn_u32 c = lane % 32u, row = lane / 8u, w = lane % 8u;
        const float inverse =
            o + c < out ? qn_block_inverse(qn_block_exponent(bits, outputs[output + o + c])) : 0.0f;
        for (qn_u32 r = lane / 32u; r < 32u; r += 8u)
            block[r * 33u + c] =
                k + r < in && o + c < out
                    ? qn_fix(parameters[weights + (qn_u64)(k + r) * ld + o + c], inverse)
                    : 0;
        qn_barrier();
        if (o + row < out) {
            QN_LOCAL_POINTER const qn_i32 *q = block + w * 4u * 33u + row;
            const qn_u32 width = qn_width(in);
            qn_write_words(by_output + (qn_u64)(o + row) * digits * width + k / 4u + w, digits,
                           width, q[0], q[33], q[66], q[99]);
        }
        if (k + row < in && (flags & QN_FIX_BY_INPUT) != 0u) {
            QN_LOCAL_POINTER const qn_i32 *q = block + row * 33u + w * 4u;
            const qn_u32 width = qn_width(out);
            qn_write_words(by_input + (qn_u64)(k + row) * digits * width + o / 4u + w, digits,
                           width, q[0], q[1], q[2], q[3]);
        }
        qn_barrier();
    }
}
