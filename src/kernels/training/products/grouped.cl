/* GROUPED_*: convolutions with groups (docs/exactness.md 17.6). A chain has the channels of one
 * group alone, which are few: depthwise a single one. So there is no product of matrices. A lane
 * computes its chain from the arrays of the layer. */

/* A chain: what a tap reads, and where the weights of the taps are. */
typedef struct qn_grouped {
    qn_u32 first, links;          /* channels that are read at a tap */
    qn_u64 weight;                /* of the first link of the first tap */
    qn_u64 next_tap, next_weight; /* to the weight of the next tap, and of the next link */
} qn_grouped;

QN_FN float qn_grouped_chain(QN_GLOBAL const qn_taps *taps, qn_pixel p, QN_GLOBAL const float *from,
                             QN_GLOBAL const float *weights, qn_grouped g, float acc) {
    const qn_u32 count = taps->window[0] * taps->window[1];
    const qn_u32 next = taps->planar != 0u ? taps->from_height * taps->from_width : 1u;
    QN_ROLLED
    for (qn_u32 tap = 0u; tap < count; ++tap) {
        qn_u32 y, x;
        if (qn_find_tap(taps, p, tap, &y, &x) == 0u)
            continue;
        const qn_u64 at = qn_place_of_tap(taps, p, y, x, g.first);
        const qn_u64 weight = g.weight + tap * g.next_tap;
        QN_ROLLED
        for (qn_u32 n = 0u; n < g.links; ++n)
            acc = qn_fma(from[at + (qn_u64)n * next], weights[weight + n * g.next_weight], acc);
    }
    return acc;
}

QN_KERNEL(128)
qn_grouped_forward(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                   QN_GLOBAL const float *A, QN_GLOBAL const float *parameters, QN_GLOBAL float *Y,
                   QN_GLOBAL float *D, QN_GLOBAL const qn_u64 *numbers, qn_u64 weights,
                   qn_u64 biases, qn_u32 index, qn_u32 out, qn_u32 groups, qn_u32 layer,
                   qn_u32 activation, qn_u32 threshold, float keep, qn_u64 seed) {
    QN_GLOBAL const qn_taps *taps = all + index;
    const qn_u32 ld = qn_ld(out), height = taps->height, width = taps->width;
    const qn_sixteen s = qn_sixteen_of(ld);
    if (s.row >= step->items * height * width)
        return;
    const qn_u32 o = s.column;
    const qn_u64 at = (qn_u64)s.row * ld + o;
    float z = 0.0f;
    qn_u32 word = 0u;
    if (o < out) {
        const qn_pixel p = qn_pixel_of(step, height, width, s.row);
        qn_grouped g;
        g.links = taps->channels / groups;
        g.first = o / (out / groups) * g.links;
        g.weight = weights + o;
        g.next_weight = ld;
        g.next_tap = (qn_u64)g.links * ld;
        z = qn_grouped_chain(taps, p, A, parameters, g, parameters[biases + o]);
        if (threshold != 0u)
            word = qn_pixel_word(step, numbers, p, width, out, o, layer, seed);
    }
    Y[at] = z + 0.0f;
    qn_finish_forward(Y + at, D + at, o, out, activation, threshold, keep, word);
}

QN_KERNEL(128)
qn_grouped_errors(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                  QN_GLOBAL const float *E, QN_GLOBAL const float *parameters,
                  QN_GLOBAL const float *Y, QN_GLOBAL float *B, QN_GLOBAL const qn_u64 *numbers,
                  qn_u64 weights, qn_u32 index, qn_u32 in, qn_u32 groups, qn_u32 flags,
                  qn_u32 layer, qn_u32 activation, qn_u32 threshold, float keep, qn_u64 seed) {
    QN_GLOBAL const qn_taps *taps = all + index;
    const qn_u32 ld = qn_ld(in), height = taps->height, width = taps->width;
    const qn_sixteen s = qn_sixteen_of(ld);
    if (s.row >= step->items * height * width)
        return;
    const qn_u32 c = s.column;
    const qn_u64 at = (qn_u64)s.row * ld + c;
    float e = 0.0f;
    qn_u32 word = 0u;
    if (c < in) {
        const qn_pixel p = qn_pixel_of(step, height, width, s.row);
        const qn_u32 reads = in / groups, own = c / reads;
        const qn_u64 row = qn_ld(taps->channels), tap = reads * row;
        qn_grouped g;
        g.links = taps->channels / groups;
        g.first = own * g.links;
        /* The last tap comes first (qn_taps). */
        g.weight = weights + (taps->window[0] * taps->window[1] - 1u) * tap +
                   (c - own * reads) * row + g.first;
        g.next_weight = 1u;
        g.next_tap = (qn_u64)0 - tap;
        e = qn_grouped_chain(taps, p, E, parameters, g, 0.0f);
        if (threshold != 0u)
            word = qn_pixel_word(step, numbers, p, width, in, c, layer, seed);
    }
    e = e + 0.0f;
    B[at] = (flags & QN_PIXELS_ADD) != 0u ? e + B[at] : e;
    qn_finish_errors(B + at, Y + at, c, in, activation, threshold, keep, word);
}

/* A weight of a grain: what it multiplies, and output o. `tap` after the last: the bias. */
QN_FN float qn_grouped_partial(QN_GLOBAL const qn_taps *taps, qn_pixel p, QN_GLOBAL const float *A,
                               QN_GLOBAL const float *E, qn_u32 tap, qn_u32 channel, qn_u32 o,
                               qn_u32 ld) {
    const qn_u32 width = taps->width, pixels = taps->height * width;
    const qn_u32 bias = tap == taps->window[0] * taps->window[1] ? 1u : 0u;
    float acc = 0.0f;
    QN_ROLLED
    for (qn_u32 at = 0u; at < pixels; ++at) {
        qn_u32 y = 0u, x = 0u;
        p.y = at / width;
        p.x = at - p.y * width;
        if (bias == 0u && qn_find_tap(taps, p, tap, &y, &x) == 0u)
            continue;
        const qn_series a = qn_series_of(taps, p, y, x, channel);
        const qn_u64 e = (qn_u64)qn_row_of(p, pixels, at) * ld + o;
        QN_ROLLED
        for (qn_u32 i = 0u; i < a.items; ++i)
            acc = qn_fma(E[e + (qn_u64)i * ld], bias != 0u ? 1.0f : A[a.at + i * a.stride], acc);
    }
    return acc;
}

QN_KERNEL(128)
qn_grouped_gradient(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                    QN_GLOBAL const float *A, QN_GLOBAL const float *E, QN_GLOBAL qn_i64 *sums,
                    QN_GLOBAL qn_status_words *status, qn_u64 weights, qn_u32 index, qn_u32 out,
                    qn_u32 groups, qn_u32 layer, qn_u32 rows, float limit, qn_u32 k_blocks,
                    qn_u32 flags) {
    QN_GLOBAL const qn_taps *taps = all + index;
    const qn_u32 ld = qn_ld(out), reads = taps->channels / groups, grain = qn_grain_of(step);
    const qn_u32 grains = (step->items + grain - 1u) / grain;
    const qn_u32 end = qn_block_begin(grains, qn_group(2) + 1u, k_blocks);
    const qn_sixteen s = qn_sixteen_of(ld);
    if (s.row >= rows)
        return;
    const qn_u32 o = s.column, tap = s.row / reads;
    const qn_u32 channel = o / (out / groups) * reads + (s.row - tap * reads);
    QN_GLOBAL qn_i64 *to = sums + weights + (qn_u64)s.row * ld + o;
    qn_i64 total = 0;
    qn_u32 bad = 0u;
    QN_ROLLED
    for (qn_u32 g = qn_block_begin(grains, qn_group(2), k_blocks); g < end && o < out; ++g) {
        const float partial =
            qn_grouped_partial(taps, qn_grain_pixel(step, g), A, E, tap, channel, o, ld);
        bad |= qn_leaves(partial, limit);
        total = qn_plus(total, qn_i64_of(partial));
    }
    qn_put_units(to, total, k_blocks, flags);
    if (bad != 0u)
        qn_atomic_max(&status->bad_layer, layer + 1u);
}
