/* FETCH, BIAS and UPDATE for CPU devices: the vector variants of fetch.cl, sums.cl and
 * update.cl. */
#define QN_FETCH_SHARE 4u
#define QN_UPDATE_SHARE 4096u
#define QN_BIAS_SHARE 64u

/* RN(v / 255) of integers 0 .. 255: a multiplication, then one correction step by the remainder, as
 * in the CPU backend. */
QN_INLINE vf qn_unit_lanes(vf v) {
    const vf r = v_set(1.0f / 255.0f), q = v * r;
    return v_fma(v_fnma(q, v_set(255.0f), v), r, q);
}

/* The functions of fetch.cl, for columns k .. k+15. */
QN_INLINE vf qn_scale_none_lanes(const qn_scaling *scaling, vf v, qn_u32 k) { return v; }

QN_INLINE vf qn_scale_unit_lanes(const qn_scaling *scaling, vf v, qn_u32 k) {
    return scaling->type == QN_VALUES_BYTES ? qn_unit_lanes(v) : qn_div_lanes(v, v_set(255.0f));
}

QN_INLINE vf qn_scale_standard_lanes(const qn_scaling *scaling, vf v, qn_u32 k) {
    return (v - vload16(0, scaling->mean + k)) * vload16(0, scaling->inverse + k);
}

QN_INLINE vf qn_scale_fraction_lanes(const qn_scaling *scaling, vf v, qn_u32 k) {
    return v * v_set(0x1p-8f);
}

QN_INLINE vf qn_scaled_lanes(const qn_scaling *scaling, qn_u32 scale, vf v, qn_u32 k) {
#define QN_KIND(NAME, name)                                                                        \
    if (scale == QN_SCALE_##NAME)                                                                  \
        return qn_scale_##name##_lanes(scaling, v, k);
    QN_SCALES(QN_KIND)
#undef QN_KIND
    return v_float(vi_set(0x7fc00000));
}

/* Columns k .. k+15 of a row as floats. Nothing after the end of the row is read. */
QN_INLINE vf qn_row_lanes(QN_GLOBAL const void *values, qn_u64 from, qn_u32 k, qn_u32 features,
                          qn_u32 type) {
    if (features - k >= 16u && type == QN_VALUES_BYTES)
        return convert_float16(vload16(0, (QN_GLOBAL const qn_u8 *)values + from + k));
    if (features - k >= 16u && type == QN_VALUES_FLOATS)
        return vload16(0, (QN_GLOBAL const float *)values + from + k);
    float last[16] = {0.0f};
    for (qn_u32 i = 0u; i < 16u && k + i < features; ++i)
        last[i] = qn_value(values, type, from + k + i);
    return vload16(0, last);
}

QN_KERNEL(1)
qn_fetch_vector(QN_GLOBAL const qn_step *step, QN_GLOBAL const void *values,
                QN_GLOBAL const qn_u64 *rows, QN_GLOBAL const qn_i32 *labels,
                QN_GLOBAL const float *weights, QN_GLOBAL const float *unit,
                QN_GLOBAL const float *mean, QN_GLOBAL const float *inverse, QN_GLOBAL float *X,
                QN_GLOBAL qn_u64 *numbers, QN_GLOBAL qn_i32 *targets, QN_GLOBAL float *weight,
                qn_u32 features, qn_u32 type, qn_u32 scale, qn_u32 flags) {
    const qn_u32 ld = qn_ld(features), first = qn_group(0) * QN_FETCH_SHARE;
    const qn_scaling scaling = {type, unit, mean, inverse};
    const qn_u32 end = first + QN_FETCH_SHARE < step->items ? first + QN_FETCH_SHARE : step->items;
    for (qn_u32 place = first; place < end; ++place) {
        const qn_u64 number = qn_item_at(step, step->first + place);
        numbers[place] = number;
        if ((flags & QN_FETCH_LABELS) != 0u)
            targets[place] = labels[number];
        weight[place] = (flags & QN_FETCH_WEIGHTS) != 0u ? weights[number] : 1.0f;
        qn_u64 row = (flags & QN_FETCH_ROWS) != 0u ? rows[number] : number;
        if ((flags & QN_FETCH_GATHERED) != 0u)
            row = place;
        for (qn_u32 k = 0u; k < ld; k += 16u) {
            vf v = qn_row_lanes(values, row * features, k, features, type);
            if (features - k >= 16u || scale != QN_SCALE_STANDARD) {
                v = qn_scaled_lanes(&scaling, scale, v, k);
            } else {
                float last[16];
                vstore16(v, 0, last);
                for (qn_u32 i = 0u; k + i < features; ++i)
                    last[i] = qn_scale_standard(&scaling, last[i], k + i);
                v = vload16(0, last);
            }
            qn_write_lanes(X + (qn_u64)place * ld + k, v);
        }
    }
}

QN_KERNEL(1)
qn_bias_vector(QN_GLOBAL const qn_step *step, QN_GLOBAL const float *E, QN_GLOBAL qn_i64 *sums,
               QN_GLOBAL qn_status_words *status, qn_u64 biases, qn_u32 out, qn_u32 layer,
               float limit, qn_u32 flags) {
    const qn_u32 items = step->items, grain = step->grain, ld = qn_ld(out);
    vi outside = vi_set(0);
    for (qn_u32 n = 0u; n < QN_BIAS_SHARE; n += 16u) {
        const qn_u32 column = qn_group(0) * QN_BIAS_SHARE + n;
        if (column >= ld)
            break;
        QN_GLOBAL long16 *to = (QN_GLOBAL long16 *)(sums + biases + column);
        const long16 total = qn_bias_lanes(E + column, ld, items, grain, limit, &outside);
        *to = (flags & QN_GRADIENT_ADD) != 0u ? *to + total : total;
    }
    if (any(outside))
        qn_atomic_max(&status->bad_layer, layer + 1u);
}

QN_KERNEL(1)
qn_update_vector(QN_GLOBAL const qn_step *step, QN_GLOBAL float *parameters, QN_GLOBAL float *slot0,
                 QN_GLOBAL float *slot1, QN_GLOBAL const qn_i64 *sums, qn_u64 begin, qn_u64 count,
                 qn_u32 optimizer, float momentum, float beta1, float beta2, float one_minus_beta1,
                 float one_minus_beta2, float epsilon, float decay, float factor) {
    const qn_u64 first = (qn_u64)qn_group(0) * QN_UPDATE_SHARE;
    const qn_u64 end = first + QN_UPDATE_SHARE < count ? first + QN_UPDATE_SHARE : count;
    const qn_update_rule rule =
        qn_update_rule_of(step, optimizer, momentum, beta1, beta2, one_minus_beta1, one_minus_beta2,
                          epsilon, decay, factor);
    for (qn_u64 n = first; n < end; n += 16u)
        qn_update_lanes(&rule, parameters, slot0, slot1, begin + n,
                        *(QN_GLOBAL const long16 *)(sums + begin + n));
}
