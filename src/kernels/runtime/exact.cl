/* The first of `count` parts that belongs to a block: blocks share them evenly. Without a product
 * of 64 bits, whose division is a call that makes ptxas spill. */
QN_FN qn_u32 qn_block_begin(qn_u32 count, qn_u32 block, qn_u32 blocks) {
    const qn_u32 each = count / blocks, more = count - each * blocks;
    return block * each + (block < more ? block : more);
}

/* Correctly rounded division and square root (1.2) by integer arithmetic, for OpenCL devices that
 * do not offer them. The quotient or root is computed with two or three bits more than a float has.
 * Its lowest bit is sticky: it is set when the remainder is not zero. The final rounding thus sees
 * whether the exact value is above, at or below the middle of two floats. */
#ifdef QN_DIVIDE_BY_INTEGERS

/* A positive float as mantissa * 2^exponent, with a mantissa of 24 bits. Subnormal numbers are
 * normalised. */
QN_FN qn_u32 qn_mantissa(qn_u32 bits) {
    qn_u32 m = bits & 0x7fffffu;
    if (bits >> 23 != 0u)
        return m | 0x800000u;
    while (m < 0x800000u)
        m <<= 1;
    return m;
}

QN_FN qn_i32 qn_exponent(qn_u32 bits) {
    qn_i32 e = (qn_i32)(bits >> 23);
    qn_u32 m = bits & 0x7fffffu;
    if (e != 0)
        return e - 150;
    for (e = -149; m < 0x800000u; m <<= 1)
        --e;
    return e;
}

/* RN(m * 2^e), as bits without a sign. 2^25 <= m < 2^27; the lowest bit of m is sticky. */
QN_FN qn_u32 qn_packed(qn_u32 m, qn_i32 e) {
    qn_i32 drop = m >= 0x4000000u ? 3 : 2; /* leaves 24 bits */
    if (e + drop < -149)
        drop = -149 - e; /* leaves the bits of a subnormal number */
    if (drop > 28)
        return 0u; /* less than half of the smallest subnormal number */
    qn_u32 kept = m >> drop, rest = m & ((1u << drop) - 1u), half_way = 1u << (drop - 1);
    if (rest > half_way || (rest == half_way && (kept & 1u) != 0u))
        ++kept;
    e += drop;
    if (kept == 0x1000000u) {
        kept >>= 1;
        ++e;
    }
    if (kept < 0x800000u)
        return kept; /* subnormal: e is -149 */
    if (e + 150 >= 255)
        return 0x7f800000u;
    return (qn_u32)(e + 150) << 23 | (kept & 0x7fffffu);
}

QN_FN float qn_div(float a, float b) {
    const qn_u32 sign = (qn_as_u32(a) ^ qn_as_u32(b)) & 0x80000000u;
    const qn_u32 x = qn_as_u32(a) & 0x7fffffffu, y = qn_as_u32(b) & 0x7fffffffu;
    if (x > 0x7f800000u || y > 0x7f800000u || (x == y && (x == 0u || x == 0x7f800000u)))
        return qn_as_float(0x7fc00000u);
    if (x == 0x7f800000u || y == 0u)
        return qn_as_float(sign | 0x7f800000u);
    if (x == 0u || y == 0x7f800000u)
        return qn_as_float(sign);
    /* 2^25 < quotient < 2^27 */
    const qn_u64 n = (qn_u64)qn_mantissa(x) << 26, d = qn_mantissa(y);
    const qn_u64 q = n / d;
    const qn_u32 m = (qn_u32)q | (q * d != n ? 1u : 0u);
    return qn_as_float(sign | qn_packed(m, qn_exponent(x) - qn_exponent(y) - 26));
}

QN_FN float qn_sqrt(float a) {
    const qn_u32 x = qn_as_u32(a);
    if (x == 0u || x == 0x80000000u || x == 0x7f800000u)
        return a;
    if (x > 0x7f800000u)
        return qn_as_float(0x7fc00000u); /* NaN or negative */
    qn_i32 e = qn_exponent(x);
    qn_u64 n = (qn_u64)qn_mantissa(x) << 28;
    if ((e & 1) != 0) {
        n <<= 1; /* 2^51 <= n < 2^53 */
        e -= 1;
    }
    qn_u64 root = 0u, rest = n;
    for (qn_u64 bit = (qn_u64)1 << 52; bit != 0u; bit >>= 2) {
        const qn_u64 t = root + bit;
        root >>= 1;
        if (rest >= t) {
            rest -= t;
            root += bit;
        }
    }
    /* n is a * 2^(28 - e), so that the root, 2^25.5 <= root < 2^26.5, is sqrt(a) * 2^(14 - e/2). */
    return qn_as_float(qn_packed((qn_u32)root | (rest != 0u ? 1u : 0u), e / 2 - 14));
}

#endif

/* The integer nearest to x, |x| < 2^62, ties to even, in three parts of 22 bits. Adding 1.5 * 2^23
 * rounds a part to an integer, which is then in the low bits of the sum. The remainder of x is
 * exact. Faster on processors whose conversion to 64 bits takes more time than these ten
 * operations. */
QN_FN qn_i64 qn_i64_in_thirds(float x) {
    const float whole = 0x1.8p23f;
    const float high = qn_fma(x, 0x1p-44f, whole);
    const float rest = qn_fma(high - whole, -0x1p44f, x);
    const float middle = qn_fma(rest, 0x1p-22f, whole);
    const float low = qn_fma(middle - whole, -0x1p22f, rest) + whole;
    const qn_u64 bits = ((qn_u64)qn_as_u32(high) << 44) + ((qn_u64)qn_as_u32(middle) << 22) +
                        (qn_u64)qn_as_u32(low);
    return (qn_i64)(bits - ((qn_u64)0x4b400000u << 44) - ((qn_u64)0x4b400000u << 22) -
                    (qn_u64)0x4b400000u);
}
#ifdef QN_CONVERT_IN_THIRDS
#define qn_i64_of(x) qn_i64_in_thirds(x)
#endif

/* 1 when |x| reaches the limit or x is a NaN, for which the comparison is false. */
QN_FN qn_u32 qn_leaves(float x, float limit) { return qn_abs(x) < limit ? 0u : 1u; }

/* Adds partials. The sum may wrap when a partial is out of range (8.7); the step is then
 * rejected. */
QN_FN qn_i64 qn_plus(qn_i64 a, qn_i64 b) { return (qn_i64)((qn_u64)a + (qn_u64)b); }
