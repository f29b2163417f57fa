/* Block fixed point (docs/exactness.md 15): absolute maxima (absmax), exponents, and numbers as
 * integers.
 *
 * An integer of 7, 14 or 21 bits is stored as one, two or three *digits* of base 128, the lowest
 * first. A digit is a byte from -64 to 63, the last one from -64 to 64. Four bytes that are
 * consecutive along the sum of a product are a *word*. An operand has a row for each row or column
 * of the product: the words of the lowest digits, then those of the next digits. Word w of digit d
 * of row r is at (r * digits + d) * width + w. */
#define QN_NOT_FINITE 0x7fffffff

/* 15.2: the exponent t of a block, from the bits of its absmax. Half of the last kept bit is added
 * first: an absmax that rounds up to 2^(bits - 1) gets the next exponent. The lower bound keeps 2^t
 * and 2^-t normal numbers. */
QN_FN qn_i32 qn_block_exponent(qn_u32 bits, qn_u32 absmax) {
    const qn_u32 e = (absmax + (1u << (24u - bits))) >> 23;
    if (absmax >= 0x7f800000u)
        return QN_NOT_FINITE;
    return (qn_i32)(e > 32u ? e : 32u) - 125 - (qn_i32)bits;
}

/* 2^t and 2^-t, both normal numbers; NaN and 0 for a block that is not finite (15.3). */
QN_FN float qn_block_factor(qn_i32 t) {
    return qn_as_float(t == QN_NOT_FINITE ? 0x7fc00000 : (t + 127) * 0x800000);
}
QN_FN float qn_block_inverse(qn_i32 t) {
    return t == QN_NOT_FINITE ? 0.0f : qn_as_float((127 - t) * 0x800000);
}

/* floor(log2(power)) of a positive normal number. */
QN_FN qn_i32 qn_log_of(float power) { return (qn_i32)(qn_as_u32(power) >> 23) - 127; }

/* 15.6: whether |n * 2^s| reaches the limit; and the integer nearest to n * 2^s when it does
 * not. */
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
    /* The quotient, rounded down, and the remainder, which is not negative. */
    const qn_u64 unit = (qn_u64)1 << -s, half_way = unit >> 1, rest = (qn_u64)n & (unit - 1u);
    const qn_i64 whole = n >> -s;
    return whole + (rest > half_way || (rest == half_way && (whole & 1) != 0) ? 1 : 0);
}

/* Writes a sum of grains to its place, or adds it there: by an atomic where other groups have the
 * rest of the grains (k_blocks > 1). */
QN_FN void qn_put_units(QN_GLOBAL qn_i64 *to, qn_i64 units, qn_u32 k_blocks, qn_u32 flags) {
    if (k_blocks > 1u)
        qn_atomic_add64(to, units);
    else if ((flags & QN_GRADIENT_ADD) != 0u)
        *to = qn_plus(*to, units);
    else
        *to = units;
}

/* What is known of a grain before its inputs and errors are multiplied (15.6). */
typedef struct qn_scale {
    qn_i32 s;       /* the product counts in 2^s = 2^(ta + td) */
    qn_u32 finite;  /* 0: a block is not finite (15.3) */
    qn_u32 settled; /* 1: s >= 0 and every partial is below the limit: no rounding, no check */
} qn_scale;

QN_FN qn_scale qn_scale_of(qn_u32 bits, qn_u32 inputs, qn_u32 errors, qn_u32 grain, float limit) {
    qn_scale scale;
    const qn_i32 ta = qn_block_exponent(bits, inputs), td = qn_block_exponent(bits, errors);
    /* Every partial is below 2^top: grain products, each below 2^(2 * bits - 2). */
    qn_i32 top = 2 * (qn_i32)bits - 2;
    for (qn_u32 n = grain - 1u; n != 0u; n >>= 1)
        ++top;
    scale.finite = ta != QN_NOT_FINITE && td != QN_NOT_FINITE ? 1u : 0u;
    scale.s = scale.finite != 0u ? ta + td : 0;
    scale.settled = scale.s >= 0 && top + scale.s <= qn_log_of(limit) ? 1u : 0u;
    return scale;
}

/* c plus the four products of the signed bytes of a and b. */
#if QN_PRODUCTS & QN_WITH_PLAIN
#undef qn_dot
#endif
#ifndef qn_dot
#ifndef qn_multiply_add
#define qn_multiply_add(a, b, c) ((a) * (b) + (c))
#endif
QN_FN qn_i32 qn_byte(qn_i32 word, qn_u32 shift) { return (qn_i32)((qn_u32)word << shift) >> 24; }
QN_FN qn_i32 qn_dot(qn_i32 a, qn_i32 b, qn_i32 c) {
    c = qn_multiply_add(qn_byte(a, 24u), qn_byte(b, 24u), c);
    c = qn_multiply_add(qn_byte(a, 16u), qn_byte(b, 16u), c);
    c = qn_multiply_add(qn_byte(a, 8u), qn_byte(b, 8u), c);
    return qn_multiply_add(qn_byte(a, 0u), qn_byte(b, 0u), c);
}
#endif

QN_FN qn_i32 qn_quantize(float v, float inverse) {
    return inverse == 0.0f ? 0 : qn_i32_of(v * inverse);
}

/* Digit d of `digits`, as a byte. Every digit but the last is signed, so a carry of 64 is added. */
QN_FN qn_u32 qn_digit(qn_i32 q, qn_u32 d, qn_u32 digits) {
    for (qn_u32 below = 0u; below < d; ++below)
        q = (q + 64) >> 7;
    if (d + 1u < digits)
        q = ((q + 64) & 127) - 64;
    return (qn_u32)q & 255u;
}

/* Writes the word of four integers for each digit; the digits are `width` words apart. */
QN_FN void qn_write_words(QN_GLOBAL qn_u32 *to, qn_u32 digits, qn_u32 width, qn_i32 q0, qn_i32 q1,
                          qn_i32 q2, qn_i32 q3) {
    for (qn_u32 d = 0u; d < digits; ++d)
        to[(qn_u64)d * width] = qn_digit(q0, d, digits) | qn_digit(q1, d, digits) << 8 |
                                qn_digit(q2, d, digits) << 16 | qn_digit(q3, d, digits) << 24;
}

/* Words of n numbers along a sum: a multiple of eight, a slab. The last slab is padded with
 * zeros. */
QN_FN qn_u32 qn_width(qn_u32 n) { return (n + 31u) / 32u * 8u; }

/* Words of a grain. Each grain begins a new word and is padded with zeros. Grains of more than four
 * words have a multiple of four words, which matrix instructions need. */
QN_FN qn_u32 qn_grain_words(qn_u32 grain) {
    return grain > 16u ? (grain + 15u) / 16u * 4u : (grain + 3u) / 4u;
}

QN_FN qn_u32 qn_magnitude(float v) { return qn_as_u32(v) & 0x7fffffffu; }
QN_FN qn_u32 qn_larger(qn_u32 a, qn_u32 b) { return a > b ? a : b; }

/* Names of functions that exist once for each width and tile: NAME_i14_large. */
#define QN_JOIN(name, bits, size) QN_JOIN_NAMES(name, bits, size)
#define QN_JOIN_NAMES(name, bits, size) name##_##bits##_##size
