/* Words of an augmentation that move or mix pixels: resizedcrop, rotate, blur (docs/exactness.md
 * 24.53, 24.55, 24.56). */
#include "num/augment_words.h"
#include "num/elementary.h"
#include "num/philox.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Elements of the words that an item draws. */
enum { CROP_AREA = 8, CROP_RATIO = 9, CROP_ROW = 28, CROP_COLUMN = 29, TURN = 40, SIGMA = 41 };

enum { MOST_TAPS = 63, TRIALS = 10 };

/* Five numbers a column serve every word here; a blur has wider lines, and a plane of 16 bits. */
size_t qn__augment_lines(qn__shape shape) {
    const size_t line = ((size_t)shape.width + MOST_TAPS + 1) / 2 * 2 * sizeof(uint32_t);
    return 5 * line + ((size_t)shape.width * shape.height + 3) / 4 * 4 * sizeof(uint16_t);
}

static uint32_t drawn(const qn__augment_picture *p, uint32_t element) {
    uint32_t word[4];
    qn__words(p->seed, QN__PURPOSE_AUGMENT, 0, p->epoch, p->item, element / 4, word);
    return word[element % 4];
}

int64_t qn__augment_draw(const qn__augment_picture *p, uint32_t element, int64_t count) {
    return (int64_t)(((uint64_t)drawn(p, element) * (uint64_t)count) >> 32);
}

float qn__augment_between(const qn__augment_picture *p, uint32_t element, float low, float high) {
    return fmaf((float)(drawn(p, element) >> 8) * 0x1p-24f, high - low, low);
}

static int64_t whole(float x) { return (int64_t)rintf(x); }

static int64_t limit(int64_t x, int64_t least, int64_t most) {
    return x < least ? least : x > most ? most : x;
}

/* A window of the picture: the first row and column, and how many; [0] is vertical. */
typedef struct window {
    int64_t first[2], side[2];
} window;

/* The window in the middle, where no drawn one fits. */
static window middle(const int64_t size[2], float least, float most) {
    const float ratio = (float)size[1] / (float)size[0];
    window w = {{0, 0}, {size[0], size[1]}};
    if (ratio < least)
        w.side[0] = limit(whole((float)size[1] / least), 1, size[0]);
    else if (ratio > most)
        w.side[1] = limit(whole((float)size[0] * most), 1, size[1]);
    for (int d = 0; d < 2; ++d)
        w.first[d] = (size[d] - w.side[d]) / 2;
    return w;
}

static window draw_window(const qn__augment_picture *p, const float *scale, const float *ratio) {
    const int64_t size[2] = {p->shape.height, p->shape.width};
    const float pixels = (float)size[0] * (float)size[1];
    const float low = qn__log(ratio[0]), high = qn__log(ratio[1]);
    for (uint32_t k = 0; k < TRIALS; ++k) {
        const float area = qn__augment_between(p, CROP_AREA + 2 * k, scale[0], scale[1]) * pixels;
        const float q = qn__exp(qn__augment_between(p, CROP_RATIO + 2 * k, low, high));
        window w = {{0, 0}, {whole(sqrtf(area / q)), whole(sqrtf(area * q))}};
        if (w.side[0] < 1 || w.side[0] > size[0] || w.side[1] < 1 || w.side[1] > size[1])
            continue;
        for (int d = 0; d < 2; ++d)
            w.first[d] = qn__augment_draw(p, CROP_ROW + (uint32_t)d, size[d] - w.side[d] + 1);
        return w;
    }
    return middle(size, ratio[0], ratio[1]);
}

/* Where pixel `at` of `many` is between the `few` of the window, in 256ths of a pixel. */
static int64_t position(int64_t at, int64_t few, int64_t many) {
    const int64_t p = (512 * (2 * at + 1) * few + 2 * many) / (4 * many) - 128;
    return limit(p, 0, 256 * (few - 1));
}

/* The columns of a row as multiples of 256. */
static void stretch_row(size_t width, const uint8_t *row, const uint32_t *at, const uint32_t *next,
                        const uint32_t *share, uint16_t *to) {
    for (size_t x = 0; x < width; ++x)
        to[x] = (uint16_t)((256 - share[x]) * row[at[x]] + share[x] * row[next[x]]);
}

static void mix_rows(size_t width, uint32_t share, const uint16_t *above, const uint16_t *below,
                     uint8_t *to) {
    const uint32_t rest = 256 - share;
    for (size_t x = 0; x < width; ++x)
        to[x] = (uint8_t)((rest * above[x] + share * below[x] + 0x8000) >> 16);
}

/* The taps and shares of all columns, and the last two rows that were stretched. */
typedef struct stretched {
    uint32_t *at, *next, *share;
    uint16_t *row[2];
    int64_t number[2]; /* of the rows in the window; -1: none */
} stretched;

static const uint16_t *row_of(stretched *s, size_t width, const uint8_t *top, int64_t number) {
    const int slot = number & 1;
    if (s->number[slot] != number)
        stretch_row(width, top + (size_t)number * width, s->at, s->next, s->share, s->row[slot]);
    s->number[slot] = number;
    return s->row[slot];
}

void qn__augment_resized_crop(const qn__augment_picture *p, const qn__augment_word *word,
                              const uint8_t *from, uint8_t *to) {
    const size_t width = p->shape.width, height = p->shape.height;
    const window w = draw_window(p, word->number + QN__CROP_SCALE, word->number + QN__CROP_RATIO);
    uint32_t *line = p->lines;
    stretched s = {line,
                   line + width,
                   line + 2 * width,
                   {(uint16_t *)(void *)(line + 3 * width), (uint16_t *)(void *)(line + 4 * width)},
                   {-1, -1}};
    for (size_t x = 0; x < width; ++x) {
        const int64_t at = position((int64_t)x, w.side[1], (int64_t)width);
        s.at[x] = (uint32_t)(w.first[1] + at / 256);
        s.next[x] = s.at[x] + (at / 256 + 1 < w.side[1]);
        s.share[x] = (uint32_t)(at % 256);
    }
    for (uint32_t c = 0; c < p->shape.channels; ++c, from += height * width) {
        const uint8_t *top = from + (size_t)w.first[0] * width;
        s.number[0] = s.number[1] = -1;
        for (size_t y = 0; y < height; ++y, to += width) {
            const int64_t at = position((int64_t)y, w.side[0], (int64_t)height);
            const uint16_t *above = row_of(&s, width, top, at / 256);
            const uint16_t *below = row_of(&s, width, top, limit(at / 256 + 1, 0, w.side[0] - 1));
            mix_rows(width, (uint32_t)(at % 256), above, below, to);
        }
    }
}

/* Each pixel of the result takes the one of the window in which its middle lies. */
void qn__augment_resized_crop_mask(const qn__augment_picture *p, const qn__augment_word *word,
                                   const uint8_t *from, uint8_t *to) {
    const size_t width = p->shape.width, height = p->shape.height;
    const window w = draw_window(p, word->number + QN__CROP_SCALE, word->number + QN__CROP_RATIO);
    uint32_t *at = p->lines;
    for (size_t x = 0; x < width; ++x)
        at[x] = (uint32_t)(w.first[1] + (int64_t)(2 * x + 1) * w.side[1] / (int64_t)(2 * width));
    for (size_t y = 0; y < height; ++y, to += width) {
        const int64_t row = w.first[0] + (int64_t)(2 * y + 1) * w.side[0] / (int64_t)(2 * height);
        const uint8_t *line = from + (size_t)row * width;
        for (size_t x = 0; x < width; ++x)
            to[x] = line[at[x]];
    }
}

/* Where the pixels of a row of the result are read: X and Y of column 0, in units of 2^-17, and
 * what a column adds. */
typedef struct turned {
    int64_t x, y, step_x, step_y;
} turned;

/* What a row of the result reads, for all channels. */
typedef struct readings {
    uint32_t *first; /* the pixel, or the upper left of the four; OUTSIDE */
    uint32_t *right; /* pixels from it to the next column */
    uint32_t *down;  /* to the next row */
    uint32_t *share[2];
} readings;

static const uint32_t OUTSIDE = UINT32_MAX;

/* The first of two taps on a line of `size` pixels, how far the second is, and its share. */
static int64_t two_taps(int64_t at, int64_t size, uint32_t *step, uint32_t *share) {
    const int64_t first = at >> 17;
    *share = (uint32_t)((at & 0x1ffff) >> 9);
    *step = first >= 0 && first + 1 < size;
    return limit(first, 0, size - 1);
}

static void find_readings(qn__shape shape, turned t, int bilinear, const readings *r) {
    const int64_t width = shape.width, height = shape.height;
    for (int64_t x = 0; x < width; ++x, t.x += t.step_x, t.y += t.step_y) {
        const int inside = t.x >= 0 && t.x < width << 17 && t.y >= 0 && t.y < height << 17;
        r->first[x] = OUTSIDE;
        if (!inside)
            continue;
        if (!bilinear) {
            r->first[x] = (uint32_t)((t.y >> 17) * width + (t.x >> 17));
            continue;
        }
        const int64_t column = two_taps(t.x - 0x10000, width, &r->right[x], &r->share[1][x]);
        const int64_t row = two_taps(t.y - 0x10000, height, &r->down[x], &r->share[0][x]);
        r->first[x] = (uint32_t)(row * width + column);
        r->down[x] *= shape.width;
    }
}

static void read_nearest(size_t width, const readings *r, uint8_t fill, const uint8_t *plane,
                         uint8_t *to) {
    for (size_t x = 0; x < width; ++x)
        to[x] = r->first[x] == OUTSIDE ? fill : plane[r->first[x]];
}

static void read_bilinear(size_t width, const readings *r, uint8_t fill, const uint8_t *plane,
                          uint8_t *to) {
    for (size_t x = 0; x < width; ++x) {
        to[x] = fill;
        if (r->first[x] == OUTSIDE)
            continue;
        const uint8_t *at = plane + r->first[x];
        const uint32_t f = r->share[1][x], g = r->share[0][x];
        const uint32_t above = (256 - f) * at[0] + f * at[r->right[x]];
        const uint32_t below = (256 - f) * at[r->down[x]] + f * at[r->down[x] + r->right[x]];
        to[x] = (uint8_t)(((256 - g) * above + g * below + 0x8000) >> 16);
    }
}

/* Cosine and sine of the drawn angle, in units of 2^-16. */
static void draw_turn(const qn__augment_picture *p, float degrees, int64_t *cosine, int64_t *sine) {
    const int64_t most = whole(degrees / 180.0f * 0x1p20f);
    const int64_t drawn_turn = qn__augment_draw(p, TURN, 2 * most + 1) - most;
    const float t = (float)llabs(drawn_turn) * 0x1p-20f;
    *cosine = whole(0x1p16f * qn__cospi(t));
    *sine = whole(0x1p16f * qn__cospi(fabsf(0.5f - t)));
    if (drawn_turn < 0)
        *sine = -*sine;
}

static void turn(const qn__augment_picture *p, float degrees, int bilinear, uint8_t fill,
                 const uint8_t *from, uint8_t *to) {
    const int64_t width = p->shape.width, height = p->shape.height;
    const size_t line = p->shape.width, plane = line * p->shape.height;
    uint32_t *lines = p->lines;
    const readings r = {
        lines, lines + line, lines + 2 * line, {lines + 3 * line, lines + 4 * line}};
    int64_t cosine, sine;
    draw_turn(p, degrees, &cosine, &sine);
    for (int64_t y = 0; y < height; ++y, to += line) {
        const int64_t dx = 1 - width, dy = 2 * y + 1 - height;
        const turned t = {cosine * dx - sine * dy + 0x10000 * width,
                          sine * dx + cosine * dy + 0x10000 * height, 2 * cosine, 2 * sine};
        find_readings(p->shape, t, bilinear, &r);
        for (uint32_t c = 0; c < p->shape.channels; ++c)
            (bilinear ? read_bilinear : read_nearest)(line, &r, fill, from + c * plane,
                                                      to + c * plane);
    }
}

void qn__augment_rotate(const qn__augment_picture *p, const qn__augment_word *word,
                        const uint8_t *from, uint8_t *to) {
    turn(p, word->number[QN__ROTATE_DEGREES], word->number[QN__ROTATE_BILINEAR] != 0.0f,
         (uint8_t)word->number[QN__ROTATE_FILL], from, to);
}

void qn__augment_rotate_mask(const qn__augment_picture *p, const qn__augment_word *word,
                             const uint8_t *from, uint8_t *to) {
    turn(p, word->number[QN__ROTATE_DEGREES], 0, QN__IGNORED, from, to);
}

/* The weights of the taps at the distances 0 to size / 2: with those of both sides 2^16. */
static void find_weights(uint32_t size, float sigma, uint32_t *weight) {
    float g[MOST_TAPS / 2 + 1] = {1.0f}, total = 1.0f;
    weight[0] = 1 << 16;
    for (uint32_t i = 1; i <= size / 2; ++i) {
        const float q = (float)i / sigma;
        g[i] = qn__exp(-0.5f * (q * q));
        total += 2.0f * g[i];
    }
    for (uint32_t i = 1; i <= size / 2; ++i) {
        weight[i] = (uint32_t)whole(g[i] / total * 0x1p16f);
        weight[0] -= 2 * weight[i];
    }
}

/* The number of a column or row that may lie outside of `size` of them: mirrored at the edge. */
static size_t mirrored_at(int64_t at, size_t size) {
    const int64_t last = (int64_t)size - 1;
    return (size_t)(at < 0 ? -at : at > last ? 2 * last - at : at);
}

static void blur_row(size_t width, int64_t reach, const uint32_t *weight, const uint8_t *row,
                     uint32_t *padded, uint32_t *sum, uint16_t *to) {
    for (int64_t x = -reach; x < (int64_t)width + reach; ++x)
        padded[x + reach] = row[mirrored_at(x, width)];
    for (size_t x = 0; x < width; ++x)
        sum[x] = weight[0] * padded[x + (size_t)reach] + 0x80;
    for (int64_t i = 1; i <= reach; ++i) {
        const uint32_t *left = padded + (reach - i), *right = padded + (reach + i);
        for (size_t x = 0; x < width; ++x)
            sum[x] += weight[i] * (left[x] + right[x]);
    }
    for (size_t x = 0; x < width; ++x)
        to[x] = (uint16_t)(sum[x] >> 8);
}

static void blur_column(qn__shape shape, int64_t y, int64_t reach, const uint32_t *weight,
                        const uint16_t *plane, uint32_t *sum, uint8_t *to) {
    const size_t width = shape.width;
    const uint16_t *row = plane + (size_t)y * width;
    for (size_t x = 0; x < width; ++x)
        sum[x] = weight[0] * row[x] + 0x800000;
    for (int64_t i = 1; i <= reach; ++i) {
        const uint16_t *above = plane + mirrored_at(y - i, shape.height) * width;
        const uint16_t *below = plane + mirrored_at(y + i, shape.height) * width;
        for (size_t x = 0; x < width; ++x)
            sum[x] += weight[i] * ((uint32_t)above[x] + below[x]);
    }
    for (size_t x = 0; x < width; ++x)
        to[x] = (uint8_t)(sum[x] >> 24);
}

void qn__augment_blur(const qn__augment_picture *p, const qn__augment_word *word,
                      const uint8_t *from, uint8_t *to) {
    const size_t width = p->shape.width, height = p->shape.height;
    const int64_t reach = word->size / 2;
    const size_t line = (width + MOST_TAPS + 1) / 2 * 2;
    uint32_t *padded = p->lines, *sum = padded + line;
    uint16_t *plane = (uint16_t *)(void *)(padded + 5 * line);
    uint32_t weight[MOST_TAPS / 2 + 1];
    const float *range = word->number + QN__BLUR_SIGMA;
    find_weights(word->size, qn__augment_between(p, SIGMA, range[0], range[1]), weight);
    for (uint32_t c = 0; c < p->shape.channels; ++c) {
        for (size_t y = 0; y < height; ++y, from += width)
            blur_row(width, reach, weight, from, padded, sum, plane + y * width);
        for (size_t y = 0; y < height; ++y, to += width)
            blur_column(p->shape, (int64_t)y, reach, weight, plane, sum, to);
    }
}
