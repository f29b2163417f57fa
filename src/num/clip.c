#include "num/clip.h"

#include <math.h>

/* Adds `value` * 2^shift, shift from 0 to 95. */
static void add_shifted(qn__squares *to, uint64_t value, unsigned shift) {
    const unsigned first = shift / 64, by = shift % 64;
    uint64_t part[2] = {value << by, by ? value >> (64 - by) : 0};
    unsigned carry = 0;
    for (unsigned w = first; w < 3; ++w) {
        const uint64_t more = w - first < 2 ? part[w - first] : 0;
        const uint64_t sum = to->word[w] + more, whole = sum + carry;
        carry = sum < more || whole < sum;
        to->word[w] = whole;
    }
}

/* With m = h * 2^32 + l the square is hh * 2^64 + 2 * hl * 2^32 + ll. The halves of these products
 * are added apart, so that no addition carries and compilers vectorise the loop; 2^31 of them fit
 * 64 bits. */
static void add_some(qn__squares *to, const int64_t *sums, uint32_t count) {
    uint64_t low[3] = {0}, high[3] = {0};
    for (uint32_t i = 0; i < count; ++i) {
        const uint64_t m = sums[i] < 0 ? -(uint64_t)sums[i] : (uint64_t)sums[i];
        const uint64_t l = (uint32_t)m, h = m >> 32, ll = l * l, hl = h * l, hh = h * h;
        low[0] += (uint32_t)ll;
        high[0] += ll >> 32;
        low[1] += (uint32_t)hl;
        high[1] += hl >> 32;
        low[2] += (uint32_t)hh;
        high[2] += hh >> 32;
    }
    static const unsigned shift[] = {0, 33, 64};
    for (int k = 0; k < 3; ++k) {
        add_shifted(to, low[k], shift[k]);
        add_shifted(to, high[k], shift[k] + 32);
    }
}

void qn__squares_add(qn__squares *squares, const int64_t *sums, uint64_t count) {
    enum { MOST = 1 << 30 };
    for (uint64_t at = 0; at < count; at += MOST)
        add_some(squares, sums + at, count - at < MOST ? (uint32_t)(count - at) : MOST);
}

static int bits_of(const qn__squares *q) {
    for (int w = 2; w >= 0; --w)
        if (q->word[w])
            return 64 * w + 64 - __builtin_clzll(q->word[w]);
    return 0;
}

/* floor(sqrt(x)) */
static uint64_t root_of(uint64_t x) {
    uint64_t root = 0;
    for (uint64_t bit = (uint64_t)1 << 31; bit > 0; bit >>= 1)
        if ((root | bit) * (root | bit) <= x)
            root |= bit;
    return root;
}

float qn__squares_root(const qn__squares *q) {
    const int bits = bits_of(q), cut = bits > 64 ? bits - 64 + bits % 2 : 0;
    const int word = cut / 64, by = cut % 64;
    /* x: the uppermost 63 or 64 bits, or all of fewer; `rest`: whether others are set. */
    uint64_t x = q->word[word] >> by, rest = 0;
    if (by && word < 2)
        x |= q->word[word + 1] << (64 - by);
    for (int w = 0; w < word; ++w)
        rest |= q->word[w];
    rest |= by ? q->word[word] << (64 - by) : 0;
    const int raise = x >> 62 || x == 0 ? 0 : (__builtin_clzll(x)) / 2 * 2;
    x <<= raise;
    /* 32 bits of the root and one that says whether more follow: they are rounded as the root is.
     */
    const uint64_t root = root_of(x);
    return ldexpf((float)(2 * root + (rest != 0 || root * root != x)), (cut - raise) / 2 - 1);
}

void qn__update_clip(const qn__program *program, const int64_t *sums, qn__update *update) {
    qn__squares squares = {{0}};
    if (program->clip == 0.0f)
        return;
    for (uint32_t l = program->frozen; l < program->layers; ++l) {
        const qn__layer *layer = &program->layer[l];
        if (!qn__program_trains(program, l))
            continue;
        qn__squares_add(&squares, sums + qn__program_sum(program, layer->weights),
                        qn__layer_running(layer) - layer->weights);
    }
    const float root = qn__squares_root(&squares);
    if (root * update->gradient > program->clip)
        update->gradient = program->clip / root;
}
