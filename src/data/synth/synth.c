/* Synthetic digits, "digits-1": a skeleton, deformed by a simulated hand, drawn with a pen, then
 * scanned. Only integers, so the bytes are the same on every machine. Each item uses its own random
 * words, so it does not depend on other items.
 *
 * Lengths are in 1/256 of a pixel, factors in 1/65536, unless said otherwise. Right shifts of
 * negative numbers round down, as gcc and clang define it. Nothing in this file may change while it
 * is called "digits-1". */
#include "base/argument.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "data/synth/synth_shapes.h"
#include "data/table/data.h"
#include "num/philox.h"
#include <stdatomic.h>
#include <string.h>

#define SIDE 28
#define PIXELS (SIDE * SIDE)
#define PIXEL 256 /* one pixel's length */
#define ONE 65536 /* the factor 1 */
#define MAX_RADIUS (3 * PIXEL)
#define ROOTS 1024 /* entries of the table of roots: squares up to 4 x 4 pixels */

/* ------------------------------------------------------------------------------- random numbers */

typedef struct dice {
    uint64_t seed, item;
    uint32_t quad, used, words[4];
} dice;

static uint32_t roll(dice *d) {
    if (d->used == 4) {
        qn__words(d->seed, QN__PURPOSE_DIGITS, 0, 0, d->item, d->quad++, d->words);
        d->used = 0;
    }
    return d->words[d->used++];
}

/* A whole number from `low` to `high`, nearly uniform. */
static int32_t between(dice *d, int32_t low, int32_t high) {
    return low + (int32_t)((uint64_t)roll(d) * (uint32_t)(high - low + 1) >> 32);
}

/* A number around 0 that is rarely near its bounds -reach and reach: a sum of four bytes. */
static int32_t about(dice *d, int32_t reach) {
    uint32_t w = roll(d);
    int32_t sum = (int32_t)((w & 255) + (w >> 8 & 255) + (w >> 16 & 255) + (w >> 24)) - 510;
    return sum * reach / 510;
}

/* True with a probability of `percent` percent. */
static int now_and_then(dice *d, int32_t percent) { return between(d, 0, 99) < percent; }

/* ------------------------------------------------------------------ the hand */

typedef struct point {
    int32_t x, y, radius;
} point;

/* Parameters of one simulated hand. */
typedef struct hand {
    int32_t matrix[4]; /* from the sheet's 1/256 units to 1/256 pixels, in 1/65536 */
    int32_t shift_x, shift_y;
    int32_t bend[4];          /* of quadratic terms, in 1/65536 of a unit for a unit squared */
    int32_t wobble;           /* maximum displacement of a point, in 1/256 of the sheet's units */
    int32_t radius, pressure; /* of the pen, and its variation */
} hand;

/* Rotation, slant and stretch in one matrix. Sine and cosine are their series: the angle is below
 * 0.6. */
static void take_stance(dice *d, hand *h) {
    int64_t turn = about(d, 36000), slant = about(d, 48000);
    int64_t size = 13000 + about(d, 3800), narrow = 64000 + about(d, 28000);
    int64_t square = turn * turn >> 16;
    int64_t sine = turn - (square * turn >> 16) / 6;
    int64_t cosine = ONE - square / 2 + (square * square >> 16) / 24;
    int64_t across = size * narrow >> 16;
    h->matrix[0] = (int32_t)(across * cosine >> 16);
    h->matrix[1] = (int32_t)(size * (-(slant * cosine >> 16) - sine) >> 16);
    h->matrix[2] = (int32_t)(across * sine >> 16);
    h->matrix[3] = (int32_t)(size * (cosine - (slant * sine >> 16)) >> 16);
    h->shift_x = SIDE * PIXEL / 2 + about(d, 1100);
    h->shift_y = SIDE * PIXEL / 2 + about(d, 1100);
}

static void take_pen(dice *d, hand *h) {
    for (int i = 0; i < 4; i++)
        h->bend[i] = about(d, 700);
    h->wobble = between(d, 3 * 256, 11 * 256);
    h->radius = between(d, 150, 400);
    h->pressure = between(d, 10, 110);
}

/* A point of a skeleton, displaced by `dx`, `dy`, on the paper. */
static point place(const hand *h, int32_t x, int32_t y) {
    int64_t xx = (int64_t)x * x >> 8, xy = (int64_t)x * y >> 8, yy = (int64_t)y * y >> 8;
    /* minus a typical y*y, so that bending does not move the digit */
    int64_t bent_x = x + ((h->bend[0] * (yy - 640 * 256) + h->bend[1] * xy) >> 16);
    int64_t bent_y = y + ((h->bend[2] * xx + h->bend[3] * xy) >> 16);
    point p = {0};
    p.x = h->shift_x + (int32_t)((h->matrix[0] * bent_x + h->matrix[1] * bent_y) >> 16);
    p.y = h->shift_y + (int32_t)((h->matrix[2] * bent_x + h->matrix[3] * bent_y) >> 16);
    return p;
}

static int32_t clamp(int32_t value, int32_t low, int32_t high) {
    return value < low ? low : value > high ? high : value;
}

/* Places a stroke's points: the stroke is displaced as a whole and each point on its own, except
 * the second of a corner. Returns the number of points. */
static int place_stroke(dice *d, const hand *h, const qn__shape *shape, int stroke, point *out) {
    const int8_t(*points)[2] = shape->points[stroke];
    int32_t away_x = stroke ? about(d, h->wobble) : 0, away_y = stroke ? about(d, h->wobble) : 0;
    int count = shape->count[stroke];
    for (int i = 0; i < count; i++) {
        if (i > 0 && points[i][0] == points[i - 1][0] && points[i][1] == points[i - 1][1]) {
            out[i] = out[i - 1];
            continue;
        }
        int32_t x = points[i][0] * 256 + away_x + about(d, h->wobble);
        int32_t y = points[i][1] * 256 + away_y + about(d, h->wobble);
        out[i] = place(h, x, y);
        out[i].radius = clamp(h->radius + about(d, h->pressure), 110, MAX_RADIUS - PIXEL);
    }
    return count;
}

/* ------------------------------------------------------------------ the pen */

typedef struct paper {
    uint16_t roots[ROOTS]; /* roots[i]: the distance whose square is about i * 1024 */
    uint8_t ink[PIXELS];
} paper;

static void make_roots(paper *sheet) {
    uint32_t root = 0;
    for (uint32_t i = 0; i < ROOTS; i++) {
        uint32_t square = i * 1024 + 512;
        while ((root + 1) * (root + 1) <= square)
            root++;
        sheet->roots[i] = (uint16_t)root;
    }
}

/* One dot of a round pen; its edge fades over one pixel. Where two dots overlap, the darker one
 * counts. */
static void touch(paper *sheet, const point *at) {
    int32_t reach = at->radius + PIXEL / 2;
    int left = clamp((at->x - reach) >> 8, 0, SIDE),
        right = clamp((at->x + reach) >> 8, -1, SIDE - 1);
    int top = clamp((at->y - reach) >> 8, 0, SIDE),
        bottom = clamp((at->y + reach) >> 8, -1, SIDE - 1);
    for (int row = top; row <= bottom; row++) {
        int32_t dy = row * PIXEL + PIXEL / 2 - at->y;
        for (int column = left; column <= right; column++) {
            int32_t dx = column * PIXEL + PIXEL / 2 - at->x;
            uint32_t square = (uint32_t)(dx * dx + dy * dy) >> 10;
            int32_t cover = reach - (square < ROOTS ? sheet->roots[square] : 4 * PIXEL);
            uint8_t *pixel = &sheet->ink[row * SIDE + column];
            cover = clamp(cover, 0, 255);
            *pixel = *pixel > cover ? *pixel : (uint8_t)cover;
        }
    }
}

/* The Catmull-Rom curve through a, b, c, e between b and c, at t = step / steps: with Horner's
 * scheme, b + t ((c - a) + t ((2a - 5b + 4c - e) + t (e - a + 3 (b - c)))) / 2. */
static int32_t curve(int64_t a, int64_t b, int64_t c, int64_t e, int64_t step, int64_t steps) {
    int64_t cubic = e - a + 3 * (b - c), squared = 2 * a - 5 * b + 4 * c - e;
    int64_t value = cubic * step / steps + squared;
    value = value * step / steps + (c - a);
    value = value * step / steps;
    return (int32_t)(b + value / 2);
}

/* Draws the piece between p[1] and p[2] of a curve through p[0..3]. Between the dots `gap_from` and
 * `gap_to` (in 1/256 of the piece) the pen is lifted. */
static void draw_piece(paper *sheet, const point *p[4], int32_t gap_from, int32_t gap_to) {
    int32_t dx = p[2]->x - p[1]->x, dy = p[2]->y - p[1]->y;
    int32_t length = (dx < 0 ? -dx : dx) + (dy < 0 ? -dy : dy);
    int32_t steps = length / 110 + 1;
    for (int32_t step = 0; step <= steps; step++) {
        int32_t along = step * 256 / steps;
        if (along >= gap_from && along < gap_to)
            continue;
        point at = {curve(p[0]->x, p[1]->x, p[2]->x, p[3]->x, step, steps),
                    curve(p[0]->y, p[1]->y, p[2]->y, p[3]->y, step, steps),
                    p[1]->radius + (p[2]->radius - p[1]->radius) * step / steps};
        touch(sheet, &at);
    }
}

/* Draws a stroke; `gap` is the piece that is broken, or -1. */
static void draw_stroke(dice *d, paper *sheet, const point *points, int count, int gap) {
    int32_t gap_from = 256, gap_to = 256;
    if (gap >= 0) {
        gap_from = between(d, 0, 180);
        gap_to = gap_from + between(d, 40, 140);
    }
    for (int i = 0; i + 1 < count; i++) {
        const point *p[4] = {&points[i > 0 ? i - 1 : 0], &points[i], &points[i + 1],
                             &points[i + 2 < count ? i + 2 : i + 1]};
        draw_piece(sheet, p, i == gap ? gap_from : 512, i == gap ? gap_to : 512);
    }
}

/* ------------------------------------------------------------------ the scanner */

/* Blurs along lines that are `other` apart, each of SIDE pixels that are `stride` apart, with the
 * weights side, 256 - 2 side, side. */
static void blur_lines(const uint8_t *from, uint8_t *to, int other, int stride, uint32_t side) {
    for (int line = 0; line < SIDE; line++) {
        for (int i = 0; i < SIDE; i++) {
            int at = line * other + i * stride;
            uint32_t before = i > 0 ? from[at - stride] : 0;
            uint32_t after = i < SIDE - 1 ? from[at + stride] : 0;
            to[at] = (uint8_t)((from[at] * (256 - 2 * side) + (before + after) * side) >> 8);
        }
    }
}

static void scan(dice *d, paper *sheet) {
    uint32_t side = (uint32_t)between(d, 4, 60);
    uint8_t rows[PIXELS];
    blur_lines(sheet->ink, rows, SIDE, 1, side);
    blur_lines(rows, sheet->ink, 1, SIDE, side);
    uint32_t gain = (uint32_t)between(d, 210, 400);
    for (int i = 0; i < PIXELS; i++) {
        uint32_t value = sheet->ink[i] * gain >> 8;
        sheet->ink[i] = (uint8_t)(value < 255 ? value : 255);
    }
}

/* A speck of dirt. */
static void drop_speck(dice *d, paper *sheet) {
    point at = {between(d, 2 * PIXEL, 26 * PIXEL), between(d, 2 * PIXEL, 26 * PIXEL),
                between(d, 0, 130)};
    touch(sheet, &at);
}

/* A short stroke that a fast pen leaves at the beginning or the end of a line. */
static void add_serif(dice *d, paper *sheet, const point *from) {
    point p[3] = {*from, *from, *from};
    p[1].x += about(d, 3 * PIXEL);
    p[1].y += about(d, 2 * PIXEL);
    p[2].x += 2 * (p[1].x - from->x);
    p[2].y += about(d, 3 * PIXEL);
    draw_stroke(d, sheet, p, 3, -1);
}

/* ------------------------------------------------------------------ the digit */

static const qn__shape *choose_shape(dice *d, int digit) {
    int32_t at = between(d, 0, 15);
    int shape = 0;
    while (shape < QN__SHAPES_OF_A_DIGIT - 1 && at >= qn__shapes[digit][shape].weight)
        at -= qn__shapes[digit][shape++].weight;
    return &qn__shapes[digit][shape];
}

static int draw_digit(paper *sheet, uint64_t seed, uint64_t item) {
    dice d = {.seed = seed, .item = item, .used = 4};
    hand h;
    int digit = between(&d, 0, 9);
    const qn__shape *shape = choose_shape(&d, digit);
    take_stance(&d, &h);
    take_pen(&d, &h);
    memset(sheet->ink, 0, sizeof sheet->ink);
    int broken = now_and_then(&d, 6), serif = now_and_then(&d, 12);
    for (int stroke = 0; stroke < QN__STROKES_MAX && shape->count[stroke]; stroke++) {
        point points[QN__STROKE_POINTS];
        int count = place_stroke(&d, &h, shape, stroke, points);
        draw_stroke(&d, sheet, points, count, broken ? between(&d, 0, count - 2) : -1);
        if (serif && stroke == 0)
            add_serif(&d, sheet, &points[now_and_then(&d, 50) ? 0 : count - 1]);
        broken = 0;
    }
    for (int specks = now_and_then(&d, 8) ? between(&d, 1, 3) : 0; specks > 0; specks--)
        drop_speck(&d, sheet);
    scan(&d, sheet);
    return digit;
}

/* ------------------------------------------------------------------ the set */

/* Items that a thread takes at a time. */
#define PIECE 256

typedef struct drawing {
    qn_data *data;
    uint64_t seed, first;
    uint8_t *values;
    paper *sheets; /* one for each thread */
    atomic_ullong next;
} drawing;

static void draw_items(void *context, int thread) {
    drawing *work = context;
    paper *sheet = &work->sheets[thread];
    make_roots(sheet);
    uint64_t from;
    while ((from = atomic_fetch_add(&work->next, PIECE)) < work->data->items) {
        uint64_t left = work->data->items - from, to = from + (left < PIECE ? left : PIECE);
        for (uint64_t i = from; i < to; i++) {
            work->data->labels[i] = draw_digit(sheet, work->seed, work->first + i);
            memcpy(work->values + i * PIXELS, sheet->ink, PIXELS);
        }
    }
}

/* Allocates `items` digits; qn_data_close frees them in every case. */
static qn_status make_table(qn_data *data, uint64_t items, qn_error *err) {
    data->type = QN_U8;
    data->items = items;
    data->features = PIXELS;
    data->channels = 1;
    data->rows = SIDE;
    data->columns = SIDE;
    data->format = "synth";
    data->release = qn__free;
    data->memory = qn__alloc(items, PIXELS, err);
    data->labels = data->memory ? qn__alloc(items, sizeof *data->labels, err) : NULL;
    data->values = data->memory;
    return data->labels ? QN_OK : QN_MEMORY;
}

static qn_status draw_all(drawing *work, qn_error *err) {
    qn__pool *pool;
    uint64_t pieces = work->data->items / PIECE + 1, cores = (uint64_t)qn__cores();
    int threads = (int)(pieces < cores ? pieces : cores);
    work->sheets = qn__alloc((size_t)threads, sizeof *work->sheets, err);
    if (!work->sheets)
        return QN_MEMORY;
    qn_status status = qn__pool_create(threads, 0, &pool, err);
    if (status == QN_OK) {
        qn__pool_run(pool, draw_items, work);
        qn__data_finish(work->data, pool);
        qn__pool_destroy(pool);
    }
    qn__free(work->sheets);
    return status;
}

qn_status qn_data_synth_digits(uint64_t seed, uint64_t first, uint64_t items, qn_data **out,
                               qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    if (items == 0) {
        qn__fail(err, QN_USAGE, "no digits were asked for");
        return qn__remedy(err, QN_USAGE, "give a number of items from 1 on with `synth.items`");
    }
    if (items > QN__ITEMS_MAX || first > QN__ITEMS_MAX - items) {
        qn__fail(err, QN_USAGE, "there are 2^48 digits of a seed, and these would go beyond");
        return qn__remedy(err, QN_USAGE,
                          "give smaller numbers with `synth.first` and `synth.items`");
    }
    if (items > SIZE_MAX / PIXELS)
        return qn__fail_memory(err, SIZE_MAX, PIXELS);
    drawing work = {.seed = seed, .first = first};
    work.data = qn__alloc(1, sizeof *work.data, err);
    if (!work.data)
        return QN_MEMORY;
    qn_status status = make_table(work.data, items, err);
    work.values = work.data->memory;
    if (status == QN_OK)
        status = draw_all(&work, err);
    if (status != QN_OK) {
        qn_data_close(work.data);
        return status;
    }
    *out = work.data;
    return QN_OK;
}
