#include "num/mix.h"

#include "num/elementary.h"
#include "num/philox.h"
#include <math.h>
#include <string.h>

/* Words that an item draws: of the layer 1, since those of the layer 0 are the augmentation's. */
enum { LAYER = 1, BOX = 64, TRIALS = 32, WHOLE = 1 << 16 };

/* The logarithm of a number between 0 and 1. */
static float log_of(uint32_t word) { return qn__log((float)(2 * (word >> 9) + 1) * 0x1p-24f); }

/* Beta(alpha, alpha), in units of 2^-16 (Johnk 1964): of two powers of uniform numbers whose sum is
 * at most 1, the share of the first. By logarithms, since both may be too small for a float. */
static uint32_t draw_share(float alpha, uint64_t seed, uint32_t epoch, uint64_t item) {
    uint32_t word[4] = {0};
    float share = 0.5f;
    for (uint32_t trial = 0; trial < TRIALS; ++trial) {
        const uint32_t *own = word + trial % 2 * 2;
        if (trial % 2 == 0) /* words of two trials */
            qn__words(seed, QN__PURPOSE_AUGMENT, LAYER, epoch, item, trial / 2, word);
        const float a = log_of(own[0]) / alpha, b = log_of(own[1]) / alpha;
        share = a == b ? 0.5f : qn__sigmoid(a - b);
        if (qn__exp(a) + qn__exp(b) <= 1.0f)
            break;
    }
    return (uint32_t)rintf(share * (float)WHOLE);
}

/* The partner's box has the share of the area that the item's own values do not have. */
static void draw_box(const qn__mix *mix, const uint32_t word[4], qn__mixing *m) {
    const uint32_t size[2] = {mix->shape.height, mix->shape.width};
    const float root = sqrtf((float)(WHOLE - m->share) * 0x1p-16f);
    uint64_t area = 1;
    for (int d = 0; d < 2; ++d) {
        const int64_t side = (int64_t)rintf((float)size[d] * root);
        const int64_t first = (int64_t)(((uint64_t)word[d] * size[d]) >> 32) - side / 2;
        const int64_t end = first + side;
        m->box[d][0] = (uint32_t)(first < 0 ? 0 : first);
        m->box[d][1] = end < size[d] ? (uint32_t)end : size[d];
        area *= m->box[d][1] - m->box[d][0];
    }
    const uint64_t pixels = (uint64_t)size[0] * size[1];
    m->share = WHOLE - (uint32_t)((2 * WHOLE * area + pixels) / (2 * pixels));
}

qn__mixing qn__mix_of(const qn__mix *mix, uint64_t seed, uint32_t epoch, uint64_t item) {
    qn__mixing m = {.share = draw_share(mix->alpha, seed, epoch, item)};
    uint32_t word[4];
    if (mix->cut) {
        qn__words(seed, QN__PURPOSE_AUGMENT, LAYER, epoch, item, BOX / 4, word);
        draw_box(mix, word, &m);
    }
    m.own = (float)m.share * 0x1p-16f;
    m.other = (float)(WHOLE - m.share) * 0x1p-16f;
    return m;
}

static void mix_bytes(uint32_t share, size_t count, uint8_t *restrict own,
                      const uint8_t *restrict other) {
    for (size_t i = 0; i < count; ++i)
        own[i] = (uint8_t)((share * own[i] + (WHOLE - share) * other[i] + 0x8000) >> 16);
}

static void paste(const qn__mix *mix, const qn__mixing *m, size_t size, char *own,
                  const char *other) {
    const size_t width = mix->shape.width, bytes = (m->box[1][1] - m->box[1][0]) * size;
    for (size_t c = 0; c < mix->shape.channels; ++c)
        for (size_t y = m->box[0][0]; y < m->box[0][1]; ++y) {
            const size_t at = ((c * mix->shape.height + y) * width + m->box[1][0]) * size;
            memcpy(own + at, other + at, bytes);
        }
}

void qn__mix_values(const qn__mix *mix, const qn__mixing *mixing, size_t size, void *own,
                    const void *other) {
    const size_t count = qn__shape_volume(mix->shape);
    const float *partner = other;
    float *value = own;
    if (mix->cut)
        paste(mix, mixing, size, own, other);
    else if (size == 1)
        mix_bytes(mixing->share, count, own, other);
    else
        for (size_t i = 0; i < count; ++i)
            value[i] = qn__mix_two(mixing, value[i], partner[i]);
}
