#include "image/resample.h"
#include "base/memory.h"
#include <math.h>
#include <string.h>

/* Bits of a weight after the point: with a pixel, and a sum of magnitudes below 2, a sum has 31. */
enum { WEIGHT_BITS = 22, HALF = 1 << (WEIGHT_BITS - 1) };

/* ------------------------------------------------------------------ the weights */

static double bilinear(double x) { return x < 1.0 ? 1.0 - x : 0.0; }

/* The cubic of Keys with -1/2. */
static double bicubic(double x) {
    if (x < 1.0)
        return (1.5 * x - 2.5) * x * x + 1.0;
    return x < 2.0 ? (((x - 5.0) * x + 8.0) * x - 4.0) * -0.5 : 0.0;
}

static const struct {
    double (*at)(double distance);
    double reach;
} filters[QN__FILTERS] = {
    [QN__FILTER_BILINEAR] = {bilinear, 1.0},
    [QN__FILTER_BICUBIC] = {bicubic, 2.0},
};

/* Pixels of one axis of the result: each is a weighted sum of neighbours. */
typedef struct axis {
    uint32_t count, most;   /* pixels; the most neighbours that one has */
    uint32_t *first, *taps; /* the first neighbour of each pixel, and how many it has */
    int32_t *weight;        /* [pixel][most] */
} axis;

static void release(axis *a) {
    qn__free(a->first);
    qn__free(a->taps);
    qn__free(a->weight);
}

/* Halves away from zero. */
static int32_t quantise(double weight) {
    const double scaled = weight * (1 << WEIGHT_BITS);
    return (int32_t)(scaled < 0.0 ? scaled - 0.5 : scaled + 0.5);
}

/* Pixel j of the whole axis, at place i of `a`; `own` holds its weights before they are rounded. */
static void weigh(qn__filter filter, const qn__resampled_axis *of, uint32_t i, double *own,
                  axis *a) {
    const double scale = (double)of->from / of->to, wide = scale < 1.0 ? 1.0 : scale;
    const double reach = filters[filter].reach * wide, inverse = 1.0 / wide;
    const double middle = ((double)of->offset + i + 0.5) * scale;
    const double low = middle - reach + 0.5, high = middle + reach + 0.5;
    const uint32_t first = low > 0.0 ? (uint32_t)low : 0;
    const uint32_t end = high < of->from ? (uint32_t)high : of->from;
    double sum = 0.0;
    for (uint32_t t = 0; t < end - first; t++) {
        own[t] = filters[filter].at(fabs(((double)t + first - middle + 0.5) * inverse));
        sum += own[t];
    }
    a->first[i] = first;
    a->taps[i] = end - first;
    for (uint32_t t = 0; t < end - first; t++)
        a->weight[(size_t)i * a->most + t] = quantise(own[t] / sum);
}

static qn_status make_axis(qn__filter filter, const qn__resampled_axis *of, axis *a,
                           qn_error *err) {
    const double scale = (double)of->from / of->to;
    const double reach = filters[filter].reach * (scale < 1.0 ? 1.0 : scale);
    const uint32_t most = 2 * (uint32_t)ceil(reach) + 1;
    *a = (axis){.count = of->count, .most = most < of->from ? most : of->from};
    a->first = qn__alloc(of->count, sizeof *a->first, err);
    a->taps = qn__alloc(of->count, sizeof *a->taps, err);
    a->weight = qn__alloc((uint64_t)of->count * a->most, sizeof *a->weight, err);
    double *own = qn__alloc(a->most, sizeof *own, err);
    const int made = a->first && a->taps && a->weight && own;
    for (uint32_t i = 0; made && i < of->count; i++)
        weigh(filter, of, i, own, a);
    qn__free(own);
    return made ? QN_OK : QN_MEMORY;
}

/* ------------------------------------------------------------------ the passes */

static uint8_t clip(int32_t sum) {
    const int32_t value = sum >> WEIGHT_BITS;
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* A row of grey pixels along the row. */
static void sum_along_grey(const axis *x, const uint8_t *from, uint8_t *to) {
    for (uint32_t i = 0; i < x->count; i++) {
        const int32_t *weight = x->weight + (size_t)i * x->most;
        const uint8_t *at = from + x->first[i];
        int32_t sum = HALF;
        for (uint32_t t = 0; t < x->taps[i]; t++)
            sum += weight[t] * at[t];
        to[i] = clip(sum);
    }
}

/* A row of colours; the result is [channel][column]. */
static void sum_along_colours(const axis *x, const uint8_t *from, uint8_t *to) {
    for (uint32_t i = 0; i < x->count; i++) {
        const int32_t *weight = x->weight + (size_t)i * x->most;
        const uint8_t *at = from + 3 * (size_t)x->first[i];
        int32_t red = HALF, green = HALF, blue = HALF;
        for (uint32_t t = 0; t < x->taps[i]; t++, at += 3) {
            red += weight[t] * at[0];
            green += weight[t] * at[1];
            blue += weight[t] * at[2];
        }
        to[i] = clip(red);
        to[x->count + i] = clip(green);
        to[2 * (size_t)x->count + i] = clip(blue);
    }
}

static void sum_along(const axis *x, uint32_t channels, const uint8_t *from, uint8_t *to) {
    (channels == 1 ? sum_along_grey : sum_along_colours)(x, from, to);
}

/* Rows of `line` bytes, of which some may be kept only: row y is at rows + y % cycle * line. */
typedef struct row_store {
    const uint8_t *rows;
    size_t line;
    uint32_t cycle;
} row_store;

enum { TILE = 64 };

/* `size` bytes from `at` on of row i of the result, by the rows of its axis. */
static void sum_tile(const axis *y, uint32_t i, const row_store *of, size_t at, size_t size,
                     uint8_t *to) {
    const int32_t *weight = y->weight + (size_t)i * y->most;
    int32_t sum[TILE];
    for (size_t k = 0; k < TILE; k++)
        sum[k] = HALF;
    for (uint32_t t = 0; t < y->taps[i]; t++) {
        const uint8_t *row = of->rows + (y->first[i] + t) % of->cycle * of->line + at;
        const int32_t w = weight[t];
        for (size_t k = 0; k < size; k++)
            sum[k] += w * row[k];
    }
    for (size_t k = 0; k < size; k++)
        to[at + k] = clip(sum[k]);
}

static void sum_across(const axis *y, uint32_t i, const row_store *of, uint8_t *to) {
    for (size_t at = 0; at < of->line; at += TILE)
        sum_tile(y, i, of, at, of->line - at < TILE ? of->line - at : TILE, to);
}

/* ------------------------------------------------------------------ the image */

/* Pillow sums across the rows first where that leaves out more than twice as many rows as the sums
 * along the rows leave out columns. */
static int goes_across_first(const qn__resampling *how) {
    const int64_t rows = (int64_t)how->y.from - how->y.to;
    const int64_t columns = (int64_t)how->x.from - how->x.to;
    return rows > 0 && 2 * columns < rows;
}

/* A row [channel][column] of the result to its planes. */
static void put_row(const qn__resampling *how, uint32_t i, const uint8_t *row, uint8_t *planes) {
    const size_t width = how->x.count, plane = width * how->y.count;
    for (uint32_t c = 0; c < how->channels; c++)
        memcpy(planes + c * plane + i * width, row + c * width, width);
}

/* Along the rows, then across them. The last rows of the first pass are kept, as many as a row of
 * the result may need. */
static qn_status make_along_first(const qn__resampling *how, const axis *y, const axis *x,
                                  const uint8_t *pixels, uint8_t *row, uint8_t *planes,
                                  qn_error *err) {
    const size_t stride = (size_t)how->x.from * how->channels;
    const size_t line = (size_t)how->x.count * how->channels;
    uint8_t *kept = qn__alloc((uint64_t)y->most * line, 1, err);
    const row_store store = {kept, line, y->most};
    uint32_t next = y->first[0];
    for (uint32_t i = 0; kept && i < y->count; i++) {
        for (; next < y->first[i] + y->taps[i]; next++)
            sum_along(x, how->channels, pixels + next * stride, kept + next % y->most * line);
        sum_across(y, i, &store, row);
        put_row(how, i, row, planes);
    }
    qn__free(kept);
    return kept ? QN_OK : QN_MEMORY;
}

static qn_status make_across_first(const qn__resampling *how, const axis *y, const axis *x,
                                   const uint8_t *pixels, uint8_t *row, uint8_t *planes,
                                   qn_error *err) {
    const row_store store = {pixels, (size_t)how->x.from * how->channels, how->y.from};
    uint8_t *own = qn__alloc(store.line, 1, err);
    for (uint32_t i = 0; own && i < y->count; i++) {
        sum_across(y, i, &store, own);
        sum_along(x, how->channels, own, row);
        put_row(how, i, row, planes);
    }
    qn__free(own);
    return own ? QN_OK : QN_MEMORY;
}

qn_status qn__resample_planes(const qn__resampling *how, const uint8_t *pixels, uint8_t *planes,
                              qn_error *err) {
    axis x = {0}, y = {0};
    uint8_t *row = qn__alloc((uint64_t)how->x.count * how->channels, 1, err);
    qn_status status = row ? make_axis(how->filter, &how->x, &x, err) : QN_MEMORY;
    if (status == QN_OK)
        status = make_axis(how->filter, &how->y, &y, err);
    if (status == QN_OK)
        status = (goes_across_first(how) ? make_across_first
                                         : make_along_first)(how, &y, &x, pixels, row, planes, err);
    qn__free(row);
    release(&x);
    release(&y);
    return status;
}
