/* Philox4x32-10 (docs/exactness.md, 3.1). There is no loop, so that a compiler can put a loop of
 * callers into vectors. */
typedef struct qn_four {
    qn_u32 x, y, z, w;
} qn_four;

QN_FN qn_four qn_philox_round(qn_four c, qn_u32 k0, qn_u32 k1) {
    const qn_u32 h0 = qn_mul_high(0xD2511F53u, c.x), l0 = 0xD2511F53u * c.x;
    const qn_u32 h1 = qn_mul_high(0xCD9E8D57u, c.z), l1 = 0xCD9E8D57u * c.z;
    c.x = h1 ^ c.y ^ k0;
    c.y = l1;
    c.z = h0 ^ c.w ^ k1;
    c.w = l0;
    return c;
}

QN_FN qn_four qn_philox(qn_four c, qn_u32 k0, qn_u32 k1) {
    const qn_u32 d0 = 0x9E3779B9u, d1 = 0xBB67AE85u;
    c = qn_philox_round(c, k0, k1);
    c = qn_philox_round(c, k0 + d0, k1 + d1);
    c = qn_philox_round(c, k0 + 2u * d0, k1 + 2u * d1);
    c = qn_philox_round(c, k0 + 3u * d0, k1 + 3u * d1);
    c = qn_philox_round(c, k0 + 4u * d0, k1 + 4u * d1);
    c = qn_philox_round(c, k0 + 5u * d0, k1 + 5u * d1);
    c = qn_philox_round(c, k0 + 6u * d0, k1 + 6u * d1);
    c = qn_philox_round(c, k0 + 7u * d0, k1 + 7u * d1);
    c = qn_philox_round(c, k0 + 8u * d0, k1 + 8u * d1);
    return qn_philox_round(c, k0 + 9u * d0, k1 + 9u * d1);
}
