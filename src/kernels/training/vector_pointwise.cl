/* Functions of sixteen numbers of a row: 6.4, 6.5, 8.5, and the rounding to integers, 8.7. */
/* The dropout words of columns 4*quad .. 4*quad+15: Philox (3.1) of four quads, one in each
 * lane. */
QN_INLINE uint16 qn_dropout_lanes(qn_u64 seed, qn_u32 layer, qn_u32 epoch, qn_u64 item,
                                  qn_u32 quad) {
    const qn_u32 path = layer & QN_DROP_PATH;
    layer = layer ^ path;
    quad = path != 0u ? 0u : quad;
    const qn_u32 place = (3u << 24) + ((layer & 0xFFu) << 16) + (qn_u32)(item >> 32);
    uint4 x = (uint4)(quad + (layer >> 8 << 30)) + (uint4)(0u, 1u, 2u, 3u);
    uint4 y = (uint4)((qn_u32)item), z = (uint4)(epoch), w = (uint4)(place);
    qn_u32 k0 = (qn_u32)seed, k1 = (qn_u32)(seed >> 32);
    for (qn_u32 round = 0u; round < 10u; ++round) {
        const ulong4 p0 = convert_ulong4(x) * (ulong4)(0xD2511F53u);
        const ulong4 p1 = convert_ulong4(z) * (ulong4)(0xCD9E8D57u);
        x = convert_uint4(p1 >> 32) ^ y ^ (uint4)(k0);
        z = convert_uint4(p0 >> 32) ^ w ^ (uint4)(k1);
        y = convert_uint4(p1);
        w = convert_uint4(p0);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    if (path != 0u)
        return (uint16)(x.s0);
    return (uint16)(x.s0, y.s0, z.s0, w.s0, x.s1, y.s1, z.s1, w.s1, x.s2, y.s2, z.s2, w.s2, x.s3,
                    y.s3, z.s3, w.s3);
}

QN_INLINE vf qn_dropped_lanes(uint16 words, qn_u32 threshold, float keep, vf y) {
    return select(y * v_set(keep), v_set(0.0f), words < (uint16)(threshold));
}

/* Sets columns from `columns` on, which are padding, to +0. */
QN_INLINE vf qn_within_lanes(vf x, qn_u32 column, qn_u32 columns) {
    const vi lane = (vi)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return select(v_set(0.0f), x, lane < (vi)((qn_i32)(columns - column)));
}

/* x rounded to integers, ties to even, in float32. Adding 2^23 with the sign of x rounds off the
 * fraction; numbers from 2^23 on have none. The sign of a zero may change, which integers do not
 * have. */
#ifdef __AVX512F__
#define QN_HAS_ROUND __has_builtin(__builtin_elementwise_roundeven)
#else
#define QN_HAS_ROUND 0
#endif
#if QN_HAS_ROUND
QN_INLINE vf qn_intgemm_lanes(vf x) { return __builtin_elementwise_roundeven(x); }
#else
QN_INLINE vf qn_intgemm_lanes(vf x) {
    const vf big = v_float((v_bits(x) & vi_set(-0x7fffffff - 1)) | vi_set(0x4b000000));
    return v_sel_lt(fabs(x), v_set(0x1p23f), (x + big) - big, x);
}
#endif

/* Division and square root, correctly rounded. */
#ifdef QN_CORRECT_DIVIDE
#define qn_div_lanes(a, b) ((a) / (b))
#define qn_sqrt_lanes(a) sqrt(a)
#else
QN_INLINE vf qn_div_lanes(vf a, vf b) {
    float x[16], y[16];
    vstore16(a, 0, x);
    vstore16(b, 0, y);
    for (qn_u32 i = 0u; i < 16u; ++i)
        x[i] = qn_div(x[i], y[i]);
    return vload16(0, x);
}
QN_INLINE vf qn_sqrt_lanes(vf a) {
    float x[16];
    vstore16(a, 0, x);
    for (qn_u32 i = 0u; i < 16u; ++i)
        x[i] = qn_sqrt(x[i]);
    return vload16(0, x);
}
#endif

QN_INLINE vf qn_read_lanes(QN_GLOBAL const float *p) { return *(QN_GLOBAL const vf *)p; }
QN_INLINE void qn_write_lanes(QN_GLOBAL float *p, vf x) { *(QN_GLOBAL vf *)p = x; }

/* Transposes 16 x 16 numbers in four steps; each interleaves every vector with the one 8 places
 * on. */
QN_INLINE void qn_transpose(vf x[16]) {
    QN_FULL
    for (qn_u32 round = 0u; round < 4u; ++round) {
        vf y[16];
        QN_FULL
        for (qn_u32 i = 0u; i < 8u; ++i) {
            const vf a = x[i], b = x[i + 8u];
            y[2u * i] = (vf)(a.s0, b.s0, a.s1, b.s1, a.s2, b.s2, a.s3, b.s3, a.s4, b.s4, a.s5, b.s5,
                             a.s6, b.s6, a.s7, b.s7);
            y[2u * i + 1u] = (vf)(a.s8, b.s8, a.s9, b.s9, a.sa, b.sa, a.sb, b.sb, a.sc, b.sc, a.sd,
                                  b.sd, a.se, b.se, a.sf, b.sf);
        }
        QN_FULL
        for (qn_u32 i = 0u; i < 16u; ++i)
            x[i] = y[i];
    }
}

/* The epilogue for sixteen numbers and their dropout words. */
#define QN_EPILOGUE_FN QN_INLINE
#define QN_EPILOGUE(name) name##_lanes
#define QN_EPILOGUE_NUMBERS vf
#define QN_EPILOGUE_WORDS uint16
