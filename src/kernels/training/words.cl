/* Random numbers (section 3) and the order of items (section 4). */
/* 6.5: the words of outputs 4*quad .. 4*quad+3 of an item; purpose 3 of section 3. A layer with
 * QN_DROP_PATH has the first word for all (24.33). */
QN_FN qn_four qn_dropout_words(qn_u64 seed, qn_u32 layer, qn_u32 epoch, qn_u64 item, qn_u32 quad) {
    const qn_u32 path = layer & QN_DROP_PATH;
    layer = layer ^ path;
    quad = path != 0u ? 0u : quad;
    qn_four c;
    c.x = quad + (layer >> 8 << 30);
    c.y = (qn_u32)item;
    c.z = epoch;
    c.w = (3u << 24) + ((layer & 0xFFu) << 16) + (qn_u32)(item >> 32);
    c = qn_philox(c, (qn_u32)seed, (qn_u32)(seed >> 32));
    if (path != 0u)
        c.y = c.z = c.w = c.x;
    return c;
}

/* 4.2 */
QN_FN qn_u32 qn_mix(qn_u32 v, qn_u32 k) {
    qn_u32 h = v + k;
    h ^= h >> 16;
    h *= 0x7FEB352Du;
    h ^= h >> 15;
    h *= 0x846CA68Bu;
    h ^= h >> 16;
    return h;
}

/* 4.3 */
QN_FN qn_u64 qn_item_at(QN_GLOBAL const qn_step *step, qn_u64 position) {
    if (step->domain == 0u)
        return position;
    const qn_u32 low_mask = (1u << step->right) - 1u, high_mask = (1u << step->left) - 1u;
    qn_u64 x = position;
    do {
        qn_u32 high = (qn_u32)(x >> step->right), low = (qn_u32)x & low_mask;
        for (qn_u32 round = 0u; round < 8u; round += 2u) {
            high ^= qn_mix(low, step->keys[round]) & high_mask;
            low ^= qn_mix(high, step->keys[round + 1u]) & low_mask;
        }
        x = (qn_u64)high << step->right | low;
    } while (x >= step->domain);
    return x;
}
