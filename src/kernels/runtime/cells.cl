/* The cells of a table on a device, after exact.cl: bytes, or the bits of floats. All is done by
 * integers on these bits, so that a device's floating-point units have no influence. */
#ifdef QN_TABLE_BYTES

typedef qn_u8 qn_cell; /* none is missing */

#else

typedef qn_u32 qn_cell;

/* |x| = significand * 2^(power - 150); subnormal numbers have the power of the smallest others. */
QN_FN qn_u32 qn_power(qn_u32 x) {
    const qn_u32 e = x >> 23 & 0xffu;
    return e + (e == 0u);
}
QN_FN qn_u32 qn_significand(qn_u32 x) {
    return (x & 0x7fffffu) | (qn_u32)((x >> 23 & 0xffu) != 0u) << 23;
}
QN_FN qn_u32 qn_is_missing(qn_u32 x) { return (x & 0x7fffffffu) > 0x7f800000u; }

#endif
