/* Rows of layers with pixels (docs/exactness.md 16). Rows stand in the order grain, pixel, item of
 * the grain: the items of a pixel follow one another, and a grain's chain of a weight goes through
 * its rows. */

/* The pixel of a row, and its item. */
typedef struct qn_pixel {
    qn_u32 begin, items; /* of the grain */
    qn_u32 item;         /* of the grain */
    qn_u32 y, x;
} qn_pixel;

/* Grains have no more items than the pass, so that no product of theirs is too large. */
QN_FN qn_u32 qn_grain_of(QN_GLOBAL const qn_step *step) {
    return step->grain < step->items ? step->grain : step->items;
}

QN_FN qn_u32 qn_grain_items(QN_GLOBAL const qn_step *step, qn_u32 begin) {
    const qn_u32 grain = qn_grain_of(step), left = step->items - begin;
    return left < grain ? left : grain;
}

QN_FN qn_pixel qn_pixel_of(QN_GLOBAL const qn_step *step, qn_u32 height, qn_u32 width, qn_u32 row) {
    qn_pixel p;
    const qn_u32 span = qn_grain_of(step) * height * width, g = row / span, rest = row - g * span;
    p.begin = g * qn_grain_of(step);
    p.items = qn_grain_items(step, p.begin);
    const qn_u32 at = rest / p.items;
    p.item = rest - at * p.items;
    p.y = at / width;
    p.x = at - p.y * width;
    return p;
}

/* The pixel of the next row. */
QN_FN qn_pixel qn_next_pixel(QN_GLOBAL const qn_step *step, qn_u32 height, qn_u32 width,
                             qn_pixel p) {
    if (++p.item < p.items)
        return p;
    p.item = 0u;
    if (++p.x < width)
        return p;
    p.x = 0u;
    if (++p.y < height)
        return p;
    p.y = 0u;
    p.begin += p.items;
    p.items = p.begin < step->items ? qn_grain_items(step, p.begin) : 1u;
    return p;
}

/* The row of the same item in an array of `pixels`. */
QN_FN qn_u32 qn_row_of(qn_pixel p, qn_u32 pixels, qn_u32 at) {
    return p.begin * pixels + at * p.items + p.item;
}

/* A further position of a sequence: where it is, and how many rows of the pass come before. */
typedef struct qn_growth {
    qn_u32 sequence, before, position;
} qn_growth;

QN_FN qn_growth qn_growth_of(qn_u64 number) {
    qn_growth p;
    p.sequence = (qn_u32)(number >> (QN_PLACE_POSITIONS + QN_PLACE_ROWS));
    p.before = (qn_u32)(number >> QN_PLACE_POSITIONS) & ((1u << QN_PLACE_ROWS) - 1u);
    p.position = (qn_u32)number & ((1u << QN_PLACE_POSITIONS) - 1u);
    return p;
}

/* The row of a layer's table of pixels that belongs to a row of outputs. */
QN_FN qn_u32 qn_table_row(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_u64 *numbers,
                          qn_pixel p, qn_u32 width, qn_u32 row) {
    return step->sequences != 0u ? qn_growth_of(numbers[row]).position : p.y * width + p.x;
}

/* The dropout word of channel c of a row. */
QN_FN qn_u32 qn_pixel_word(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_u64 *numbers,
                           qn_pixel p, qn_u32 width, qn_u32 channels, qn_u32 c, qn_u32 layer,
                           qn_u64 seed) {
    const qn_u32 k = (p.y * width + p.x) * channels + c;
    return qn_word_of(qn_dropout_words(seed, layer, step->epoch, numbers[p.begin + p.item], k / 4u),
                      k, 2u);
}

#define QN_OUTSIDE 0xffffffffu

/* A coordinate of a tap, or QN_OUTSIDE. */
QN_FN qn_u32 qn_tap_at(qn_i32 at, qn_u32 divisor, qn_u32 limit) {
    qn_i32 q = at;
    if (divisor != 1u) {
        q = at / (qn_i32)divisor;
        if (q * (qn_i32)divisor != at)
            return QN_OUTSIDE;
    }
    return (qn_u32)q < limit ? (qn_u32)q : QN_OUTSIDE;
}

/* The pixel that tap number `tap` of pixel p reads, in *y and *x. 0: it lies outside. */
QN_FN qn_u32 qn_find_tap(QN_GLOBAL const qn_taps *taps, qn_pixel p, qn_u32 tap, qn_u32 *y,
                         qn_u32 *x) {
    const qn_u32 i = tap / taps->window[1], j = tap - i * taps->window[1];
    *y = qn_tap_at((qn_i32)(p.y * taps->stride[0] + i * taps->dilation[0]) + taps->first[0],
                   taps->divisor[0], taps->from_height);
    *x = qn_tap_at((qn_i32)(p.x * taps->stride[1] + j * taps->dilation[1]) + taps->first[1],
                   taps->divisor[1], taps->from_width);
    return *y != QN_OUTSIDE && *x != QN_OUTSIDE ? 1u : 0u;
}

/* The place of channel c at pixel (y, x) of the row's item, in the array that is read. */
QN_FN qn_u64 qn_place_of_tap(QN_GLOBAL const qn_taps *taps, qn_pixel p, qn_u32 y, qn_u32 x,
                             qn_u32 c) {
    const qn_u32 width = taps->from_width, pixels = taps->from_height * width;
    const qn_u32 channels = taps->channels, at = y * width + x;
    if (taps->planar != 0u)
        return (qn_u64)(p.begin + p.item) * qn_ld(channels * pixels) + c * pixels + at;
    return (qn_u64)qn_row_of(p, pixels, at) * qn_ld(channels) + c;
}

/* The first pixel of grain g. */
QN_FN qn_pixel qn_grain_pixel(QN_GLOBAL const qn_step *step, qn_u32 g) {
    qn_pixel p;
    p.begin = g * qn_grain_of(step);
    p.items = qn_grain_items(step, p.begin);
    p.item = p.y = p.x = 0u;
    return p;
}

/* Numbers of a channel at a pixel of a grain: that of item i is at + i * stride. */
typedef struct qn_series {
    qn_u64 at, stride;
    qn_u32 items;
} qn_series;

QN_FN qn_series qn_series_of(QN_GLOBAL const qn_taps *taps, qn_pixel p, qn_u32 y, qn_u32 x,
                             qn_u32 c) {
    qn_series s;
    p.item = 0u;
    s.at = qn_place_of_tap(taps, p, y, x, c);
    s.stride = taps->planar != 0u ? qn_ld(taps->channels * taps->from_height * taps->from_width)
                                  : qn_ld(taps->channels);
    s.items = p.items;
    return s;
}

/* The 16 columns of a row that a run of 16 lanes processes. */
typedef struct qn_sixteen {
    qn_u32 row, column;
} qn_sixteen;

QN_FN qn_sixteen qn_sixteen_of(qn_u32 ld) {
    qn_sixteen s;
    const qn_u32 piece = qn_group(0) * 8u + qn_lane() / 16u, blocks = ld / 16u;
    s.row = piece / blocks;
    s.column = (piece - s.row * blocks) * 16u + qn_lane() % 16u;
    return s;
}
