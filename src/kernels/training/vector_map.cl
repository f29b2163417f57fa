/* MAP for CPU devices, the vector variant of trial.cl's. It calls the same functions as the other
 * vector kernels, so that tests over all arguments and measurements cover them. None of them calls
 * cospi, gelu or silu. */
#define QN_MAP_SHARE 4096u

QN_INLINE vf qn_map_lanes(vf x, qn_u32 op) {
    if (op == QN_MAP_EXP)
        return qn_exp_lanes(x);
    if (op == QN_MAP_LOG)
        return qn_log_lanes(x);
    if (op == QN_MAP_TANH)
        return qn_tanh_lanes(x);
    if (op == QN_MAP_SIGMOID)
        return qn_sigmoid_lanes(x);
    if (op == QN_MAP_SQRT)
        return qn_sqrt_lanes(x);
    return x;
}

QN_KERNEL(1)
qn_map_vector(QN_GLOBAL const float *in, QN_GLOBAL float *out, qn_u64 count, qn_u32 op) {
    const qn_u64 first = (qn_u64)qn_group(0) * QN_MAP_SHARE;
    const qn_u64 end = first + QN_MAP_SHARE < count ? first + QN_MAP_SHARE : count;
    qn_u64 i = first;
    for (; op != QN_MAP_COSPI && op < QN_MAP_GELU && i + 16u <= end; i += 16u)
        vstore16(qn_map_lanes(vload16(0, in + i), op), 0, out + i);
    for (; i < end; ++i)
        out[i] = qn_map_one(in[i], op);
}
