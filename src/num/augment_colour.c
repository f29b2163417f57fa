/* The word of an augmentation that changes colours: jitter (docs/exactness.md 24.54). */
#include "num/augment_words.h"
#include <math.h>
#include <string.h>

/* Elements of the words that an item draws; those of the four strengths follow ORDER. */
enum { ORDER = 32, STRENGTH = 33, STRENGTHS = 4 };

/* The values of a picture, one plane a channel. */
typedef struct colours {
    size_t pixels;
    uint32_t channels;
    uint8_t *plane[3]; /* where there are three channels */
    uint8_t *all;
} colours;

static int32_t grey(int32_t red, int32_t green, int32_t blue) {
    return (19595 * red + 38470 * green + 7471 * blue + 0x8000) >> 16;
}

static uint8_t blend(int32_t factor, int32_t value, int32_t with) {
    const int32_t mixed = (factor * value + (0x10000 - factor) * with + 0x8000) >> 16;
    return (uint8_t)(mixed < 0 ? 0 : mixed > 255 ? 255 : mixed);
}

static void blend_all(const colours *p, int32_t factor, int32_t with) {
    const size_t count = p->pixels * p->channels;
    uint8_t *restrict value = p->all;
    for (size_t i = 0; i < count; ++i)
        value[i] = blend(factor, value[i], with);
}

static void brightness(const colours *p, int32_t factor) { blend_all(p, factor, 0); }

static uint64_t sum_of_grey(const colours *p) {
    const uint8_t *restrict red = p->plane[0], *restrict green = p->plane[1],
                            *restrict blue = p->plane[2];
    uint64_t sum = 0;
    for (size_t i = 0; i < p->pixels; ++i)
        sum += (uint32_t)grey(red[i], green[i], blue[i]);
    return sum;
}

static uint64_t sum_of_all(const colours *p) {
    uint64_t sum = 0;
    for (size_t i = 0; i < p->pixels * p->channels; ++i)
        sum += p->all[i];
    return sum;
}

static void contrast(const colours *p, int32_t factor) {
    const size_t count = p->channels == 3 ? p->pixels : p->pixels * p->channels;
    const uint64_t sum = p->channels == 3 ? sum_of_grey(p) : sum_of_all(p);
    blend_all(p, factor, (int32_t)((2 * sum + count) / (2 * count)));
}

static void saturation(const colours *p, int32_t factor) {
    uint8_t *restrict red = p->plane[0], *restrict green = p->plane[1],
                      *restrict blue = p->plane[2];
    const size_t pixels = p->pixels;
    for (size_t i = 0; i < pixels; ++i) {
        const int32_t with = grey(red[i], green[i], blue[i]);
        red[i] = blend(factor, red[i], with);
        green[i] = blend(factor, green[i], with);
        blue[i] = blend(factor, blue[i], with);
    }
}

static int32_t lesser(int32_t a, int32_t b) { return a < b ? a : b; }
static int32_t greater(int32_t a, int32_t b) { return a > b ? a : b; }

/* One value of a pixel whose hue is `at`, in units of 1 / (6 * unit) of a turn, plus n sixths. */
static uint8_t of_hue(int32_t most, int32_t at, int32_t n, int32_t unit) {
    int32_t k = at + n * unit;
    k -= k >= 6 * unit ? 6 * unit : 0;
    const int32_t t = greater(0, lesser(lesser(k, 4 * unit - k), unit));
    return (uint8_t)(most - ((t + (1 << 13)) >> 14));
}

/* `turn` in units of 2^-14 of a turn. Without differences all are 0, and the pixel stays. */
static void hue(const colours *p, int32_t turn) {
    uint8_t *restrict red = p->plane[0], *restrict green = p->plane[1],
                      *restrict blue = p->plane[2];
    const size_t pixels = p->pixels;
    for (size_t i = 0; i < pixels; ++i) {
        const int32_t r = red[i], g = green[i], b = blue[i];
        const int32_t most = greater(r, greater(g, b));
        const int32_t d = most - lesser(r, lesser(g, b)), unit = d << 14;
        const int32_t a = r == most ? g - b : g == most ? 2 * d + b - r : 4 * d + r - g;
        int32_t at = a * (1 << 14) + 6 * d * turn; /* from -4 to 8 units */
        at += at < 0 ? 6 * unit : 0;
        at -= at >= 6 * unit ? 6 * unit : 0;
        red[i] = of_hue(most, at, 5, unit);
        green[i] = of_hue(most, at, 3, unit);
        blue[i] = of_hue(most, at, 1, unit);
    }
}

static void act(const qn__augment_picture *p, const colours *c, uint32_t which, float strength) {
    static void (*const change[STRENGTHS])(const colours *, int32_t) = {
        [QN__JITTER_BRIGHTNESS] = brightness,
        [QN__JITTER_CONTRAST] = contrast,
        [QN__JITTER_SATURATION] = saturation,
        [QN__JITTER_HUE] = hue,
    };
    const int is_hue = which == QN__JITTER_HUE;
    const int64_t most = (int64_t)rintf(strength * (is_hue ? 0x1p14f : 0x1p16f));
    const int64_t shift = qn__augment_draw(p, STRENGTH + which, 2 * most + 1) - most;
    if (strength > 0.0f)
        change[which](c, (int32_t)(is_hue ? shift : 0x10000 + shift));
}

void qn__augment_jitter(const qn__augment_picture *p, const qn__augment_word *word,
                        const uint8_t *from, uint8_t *to) {
    const size_t pixels = (size_t)p->shape.height * p->shape.width;
    const size_t plane = p->shape.channels == 3 ? pixels : 0;
    const colours c = {pixels, p->shape.channels, {to, to + plane, to + 2 * plane}, to};
    uint32_t list[STRENGTHS] = {0, 1, 2, 3};
    int64_t order = qn__augment_draw(p, ORDER, 24);
    memcpy(to, from, pixels * p->shape.channels);
    for (uint32_t left = STRENGTHS; left > 0; order /= left--) {
        const uint32_t at = (uint32_t)(order % left);
        act(p, &c, list[at], word->number[list[at]]);
        memmove(list + at, list + at + 1, (left - 1 - at) * sizeof *list);
    }
}
