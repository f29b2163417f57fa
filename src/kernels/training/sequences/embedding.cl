/* EMBEDDING_* (docs/exactness.md 25.10): rows of weights by the numbers of tokens. The tokens of an
 * item are a row of A. An occurrence is a token at a position; occurrences are numbered item after
 * item. */
#define QN_NO_TOKEN 0xffffffffu

QN_FN qn_u32 qn_token_at(QN_GLOBAL const float *A, qn_u32 tokens, qn_u32 inputs, qn_u32 item,
                         qn_u32 at) {
    const float value = A[(qn_u64)item * qn_ld(inputs) + at];
    return value >= 0.0f && value < (float)tokens ? (qn_u32)value : QN_NO_TOKEN;
}

/* 25.37: the length of an item. 0 tokens: all positions count. */
QN_FN qn_u32 qn_length_of(QN_GLOBAL const float *A, qn_u32 tokens, qn_u32 inputs, qn_u32 item,
                          qn_u32 positions) {
    qn_u32 length = positions;
    while (tokens != 0u && length > 0u &&
           qn_token_at(A, tokens, inputs, item, length - 1u) == QN_NO_TOKEN)
        --length;
    return length;
}

QN_FN qn_u32 qn_token_of(QN_GLOBAL const float *A, qn_u32 tokens, qn_u32 inputs, qn_u32 positions,
                         qn_u32 k) {
    const qn_u32 item = k / positions;
    return qn_token_at(A, tokens, inputs, item, k - item * positions);
}

/* Where channel c of a token is among the weights. Tied weights are those of the last layer: `tied`
 * is then the length of its rows, each of which has a channel; 0: rows are tokens. */
QN_FN qn_u64 qn_token_weight(qn_u32 tied, qn_u32 channels, qn_u32 token, qn_u32 c) {
    return tied != 0u ? (qn_u64)c * tied + token : (qn_u64)token * qn_ld(channels) + c;
}

/* The row of an occurrence in an array of outputs: pixels.cl. */
QN_FN qn_u32 qn_token_row(QN_GLOBAL const qn_step *step, qn_u32 positions, qn_u32 k) {
    const qn_u32 item = k / positions, grain = qn_grain_of(step), begin = item / grain * grain;
    return begin * positions + (k - item * positions) * qn_grain_items(step, begin) +
           (item - begin);
}

QN_KERNEL(128)
qn_embedding_forward(QN_GLOBAL const qn_step *step, QN_GLOBAL const float *A,
                     QN_GLOBAL const float *parameters, QN_GLOBAL float *Y, QN_GLOBAL float *D,
                     QN_GLOBAL const qn_u64 *numbers, qn_u64 weights, qn_u32 tokens, qn_u32 inputs,
                     qn_u32 positions, qn_u32 channels, qn_u32 tied, qn_u32 layer,
                     qn_u32 activation, qn_u32 threshold, float keep, qn_u64 seed) {
    const qn_u32 ld = qn_ld(channels), c = qn_sixteen_of(ld).column, row = qn_sixteen_of(ld).row;
    if (row >= step->items * positions)
        return;
    const qn_pixel p = qn_pixel_of(step, 1u, positions, row);
    const qn_u32 token = qn_token_at(A, tokens, inputs, p.begin + p.item, p.x);
    const qn_u64 at = (qn_u64)row * ld + c;
    qn_u32 word = 0u;
    if (c < channels && threshold != 0u)
        word = qn_pixel_word(step, numbers, p, positions, channels, c, layer, seed);
    Y[at] = c < channels && token != QN_NO_TOKEN
                ? parameters[weights + qn_token_weight(tied, channels, token, c)]
                : 0.0f;
    qn_finish_forward(Y + at, D + at, c, channels, activation, threshold, keep, word);
}

/* links: of each occurrence 1 + the next one of its token in its grain, 0 without one. Then, of all
 * occurrences, whether it is the first one in its grain. */
QN_KERNEL(128)
qn_embedding_links(QN_GLOBAL const qn_step *step, QN_GLOBAL const float *A, QN_GLOBAL qn_u32 *links,
                   qn_u32 tokens, qn_u32 inputs, qn_u32 positions) {
    const qn_u32 count = step->items * positions, k = qn_group(0) * 128u + qn_lane();
    if (k >= count)
        return;
    const qn_u32 span = qn_grain_of(step) * positions, begin = k / span * span;
    const qn_u32 end = count - begin < span ? count : begin + span;
    const qn_u32 token = qn_token_of(A, tokens, inputs, positions, k);
    qn_u32 next = k + 1u, before = k;
    while (next < end && qn_token_of(A, tokens, inputs, positions, next) != token)
        ++next;
    while (before > begin && qn_token_of(A, tokens, inputs, positions, before - 1u) != token)
        --before;
    links[k] = next < end ? next + 1u : 0u;
    links[count + k] = before == begin && token != QN_NO_TOKEN ? 1u : 0u;
}

/* A lane has a channel, and goes through some occurrences. Sums of other tokens stay as they are.
 */
QN_KERNEL(128)
qn_embedding_gradient(QN_GLOBAL const qn_step *step, QN_GLOBAL const float *A,
                      QN_GLOBAL const qn_u32 *links, QN_GLOBAL const float *E,
                      QN_GLOBAL qn_i64 *sums, QN_GLOBAL qn_status_words *status, qn_u64 weights,
                      qn_u32 tokens, qn_u32 inputs, qn_u32 positions, qn_u32 channels, qn_u32 tied,
                      qn_u32 layer, float limit, qn_u32 k_blocks) {
    const qn_u32 ld = qn_ld(channels), c = qn_group(0) * 128u + qn_lane();
    const qn_u32 count = step->items * positions;
    const qn_u32 end = qn_block_begin(count, qn_group(2) + 1u, k_blocks);
    qn_u32 bad = 0u;
    if (c >= channels)
        return;
    QN_ROLLED
    for (qn_u32 k = qn_block_begin(count, qn_group(2), k_blocks); k < end; ++k) {
        float partial = 0.0f;
        if (links[count + k] == 0u)
            continue;
        QN_ROLLED
        for (qn_u32 next = k + 1u; next != 0u; next = links[next - 1u])
            partial = partial + E[(qn_u64)qn_token_row(step, positions, next - 1u) * ld + c];
        bad |= qn_leaves(partial, limit);
        const qn_u32 token = qn_token_of(A, tokens, inputs, positions, k);
        qn_put_units(sums + weights + qn_token_weight(tied, channels, token, c), qn_i64_of(partial),
                     k_blocks, QN_GRADIENT_ADD);
    }
    if (bad != 0u)
        qn_atomic_max(&status->bad_layer, layer + 1u);
}
