/* Kernels of the self-test and the measurements: a function of each element of an array, with the
 * stride of the grid, and single operations. */
QN_FN float qn_map_one(float x, qn_u32 op) {
    if (op == QN_MAP_EXP)
        return qn_exp(x);
    if (op == QN_MAP_LOG)
        return qn_log(x);
    if (op == QN_MAP_TANH)
        return qn_tanh(x);
    if (op == QN_MAP_SIGMOID)
        return qn_sigmoid(x);
    if (op == QN_MAP_COSPI)
        return qn_cospi(x);
    if (op == QN_MAP_SQRT)
        return qn_sqrt(x);
    if (op == QN_MAP_GELU)
        return qn_gelu(x);
    if (op == QN_MAP_GELU_SLOPE)
        return qn_gelu_slope(x);
    if (op == QN_MAP_SILU)
        return qn_silu(x);
    if (op == QN_MAP_SILU_SLOPE)
        return qn_silu_slope(x);
    if (op == QN_MAP_GELU_TANH)
        return qn_gelu_tanh(x);
    if (op == QN_MAP_GELU_TANH_SLOPE)
        return qn_gelu_tanh_slope(x);
    return x;
}

QN_KERNEL(256)
qn_map(QN_GLOBAL const float *in, QN_GLOBAL float *out, qn_u64 count, qn_u32 op) {
    const qn_u64 lanes = (qn_u64)qn_groups(0) * 256u;
    for (qn_u64 i = (qn_u64)qn_group(0) * 256u + qn_lane(); i < count; i += lanes)
        out[i] = qn_map_one(in[i], op);
}

QN_FN qn_u64 qn_trial_one(qn_u32 a, qn_u32 b, qn_u32 c, qn_u32 op) {
    const float x = qn_as_float(a), y = qn_as_float(b), z = qn_as_float(c);
    const qn_u64 pair = (qn_u64)b << 32 | a;
    if (op == QN_TRIAL_ADD)
        return qn_as_u32(x + y);
    if (op == QN_TRIAL_MUL)
        return qn_as_u32(x * y);
    if (op == QN_TRIAL_FMA)
        return qn_as_u32(qn_fma(x, y, z));
    if (op == QN_TRIAL_MUL_ADD)
        return qn_as_u32(x * y + z);
    if (op == QN_TRIAL_DIV)
        return qn_as_u32(qn_div(x, y));
    if (op == QN_TRIAL_SQRT)
        return qn_as_u32(qn_sqrt(x));
    if (op == QN_TRIAL_TO_UNITS)
        return (qn_u64)qn_i64_of(x);
    if (op == QN_TRIAL_FROM_SUM)
        return qn_as_u32(qn_float_of((qn_i64)pair));
    if (op == QN_TRIAL_LESS)
        return x < y ? 1u : 0u;
    if (op == QN_TRIAL_PRODUCT)
        return (qn_u64)a * b;
    if (op == QN_TRIAL_ADD64)
        return pair + ((qn_u64)a << 32 | c);
    if (op == QN_TRIAL_SHIFT64)
        return (qn_u64)((qn_i64)pair >> (c & 63u));
    if (op == QN_TRIAL_DOT)
        return (qn_u32)qn_dot((qn_i32)a, (qn_i32)b, (qn_i32)c >> 8);
    if (op == QN_TRIAL_INT32)
        return (qn_u32)qn_i32_of(x);
    if (op == QN_TRIAL_UNITS)
        return (qn_u64)qn_units_of((qn_i64)pair >> 2, -1 - (qn_i32)(c & 63u));
    return 0u;
}

QN_KERNEL(256)
qn_trial(QN_GLOBAL const qn_u32 *a, QN_GLOBAL const qn_u32 *b, QN_GLOBAL const qn_u32 *c,
         QN_GLOBAL qn_u64 *out, qn_u64 count, qn_u32 op) {
    const qn_u64 lanes = (qn_u64)qn_groups(0) * 256u;
    for (qn_u64 i = (qn_u64)qn_group(0) * 256u + qn_lane(); i < count; i += lanes)
        out[i] = qn_trial_one(a[i], b[i], c[i], op);
}
