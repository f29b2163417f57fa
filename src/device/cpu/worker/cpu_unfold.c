/* Pictures of the first layer, when they are fetched: a row of its inputs has all factors of an
 * output pixel, or, below a pool, the channels of a pixel. A picture is first copied with its
 * padding, the channels of a pixel beside one another. Then factor t of every output pixel is at
 * the same place relative to the pixel, and the factors of a row of its window follow one another.
 * Several items are unfolded together: their rows of a pixel follow one another, those of two
 * pixels are far apart. */
#include "device/cpu/worker/cpu_worker.h"
#include <string.h>

/* Layers that do not unfold read single pixels. */
static qn__window window_of(const qn__cpu_layer *l) {
    const qn__window one = {{1, 1}, {1, 1}, {0, 0}, {1, 1}};
    return l->unfolds ? l->layer->window : one;
}

static qn__shape shape_of(const qn__cpu_layer *l) {
    return l->unfolds ? l->layer->to : l->layer->from;
}

/* Height or width of the part of a padded picture that is read. */
static size_t extent(const qn__cpu_layer *l, int d) {
    const qn__window w = window_of(l);
    const qn__shape to = shape_of(l);
    const size_t pixels = d ? to.width : to.height;
    return (pixels - 1) * w.stride[d] + (size_t)(w.kernel[d] - 1) * w.dilation[d] + 1;
}

size_t qn__cpu_unfold_space(const qn__cpu_layer *l) {
    return l->layer->from.channels * extent(l, 0) * extent(l, 1);
}

/* Factors that follow one another. */
static size_t segment_of(const qn__cpu_layer *l) {
    const qn__window w = window_of(l);
    return l->layer->from.channels * (w.dilation[1] == 1 ? w.kernel[1] : (size_t)1);
}

void qn__cpu_unfold_begin(const qn__cpu_layer *l, size_t *factors) {
    const size_t width = extent(l, 1), channels = l->layer->from.channels;
    const qn__window w = window_of(l);
    for (size_t ky = 0; ky < w.kernel[0]; ++ky)
        for (size_t kx = 0; kx < w.kernel[1]; ++kx)
            for (size_t c = 0; c < channels; ++c)
                *factors++ = (ky * w.dilation[0] * width + kx * w.dilation[1]) * channels + c;
}

/* Pictures of one call, within half a megabyte. */
enum { MOST_FLOATS = 1 << 17 };

uint32_t qn__cpu_unfold_items(const qn__cpu_layer *l) {
    const size_t fit = MOST_FLOATS / qn__cpu_unfold_space(l);
    return fit < 1 ? 1 : fit < QN__TILE_ROWS ? (uint32_t)fit : QN__TILE_ROWS;
}

void qn__cpu_pad(const qn__cpu_layer *l, const float *from, float *to) {
    const size_t height = extent(l, 0), width = extent(l, 1);
    const qn__shape shape = l->layer->from;
    const qn__window w = window_of(l);
    const size_t left = w.pad[1] < width ? w.pad[1] : width;
    const size_t inside = width - left < shape.width ? width - left : shape.width;
    memset(to, 0, qn__cpu_unfold_space(l) * sizeof *to);
    for (size_t y = w.pad[0]; y < height && y - w.pad[0] < shape.height; ++y)
        for (uint32_t c = 0; c < shape.channels; ++c) {
            const float *row = from + ((size_t)c * shape.height + y - w.pad[0]) * shape.width;
            float *pixel = to + (y * width + left) * shape.channels + c;
            for (size_t x = 0; x < inside; ++x)
                pixel[x * shape.channels] = row[x];
        }
}

/* A row of each of `count` pictures, one panel. */
static void unfold_pixel(const float *pixel, size_t capacity, uint32_t count, const size_t *factors,
                         uint32_t left, float *to) {
    const size_t end = left < QN__PANEL ? left : QN__PANEL;
    for (uint32_t i = 0; i < count; ++i, pixel += capacity, to += QN__PANEL) {
        for (size_t t = 0; t < end; ++t)
            to[t] = pixel[factors[t]];
        for (size_t t = end; t < QN__PANEL; ++t)
            to[t] = 0.0f;
    }
}

/* Panels of a row that is put together before it is written. */
enum { ROW_PANELS = 16 };

typedef float rows[QN__TILE_ROWS][(ROW_PANELS + 1) * QN__PANEL];

/* A row of each of `count` pictures, all panels, segment by segment: each copies whole vectors, and
 * the next one overwrites what was too much. */
static void gather(const float *pixel, size_t capacity, uint32_t count, const size_t *factors,
                   const qn__cpu_layer *l, size_t segment, rows row) {
    const size_t all = l->channels, end = (size_t)l->in_panels * QN__PANEL;
    for (uint32_t i = 0; i < count; ++i, pixel += capacity) {
        for (size_t t = 0; t < all; t += segment)
            for (size_t k = 0; k < segment; k += QN__PANEL)
                memcpy(row[i] + t + k, pixel + factors[t] + k, QN__PANEL * sizeof **row);
        memset(row[i] + all, 0, (end - all) * sizeof **row);
    }
}

/* Writes them panel by panel. The next pixel's, `ahead` floats further on, come into the cache. */
static void scatter(uint32_t count, size_t panels, rows row, size_t stride, size_t ahead,
                    float *to) {
    for (size_t p = 0; p < panels; ++p, to += stride)
        for (size_t i = 0; i < count; ++i) {
            __builtin_prefetch(to + ahead + i * QN__PANEL, 1, 3);
            memcpy(to + i * QN__PANEL, row[i] + p * QN__PANEL, QN__PANEL * sizeof *to);
        }
}

void qn__cpu_unfold(const qn__cpu_layer *l, const size_t *factors, const float *padded,
                    uint32_t count, uint32_t items, size_t stride, float *to) {
    const size_t width = extent(l, 1), capacity = qn__cpu_unfold_space(l);
    const size_t segment = segment_of(l), channels = l->layer->from.channels;
    const size_t next = (size_t)items * QN__PANEL;
    const qn__window w = window_of(l);
    const qn__shape shape = shape_of(l);
    _Alignas(64) rows row;
    for (size_t y = 0; y < shape.height; ++y)
        for (size_t x = 0; x < shape.width; ++x, to += next) {
            const float *pixel = padded + (y * w.stride[0] * width + x * w.stride[1]) * channels;
            if (l->in_panels <= ROW_PANELS) {
                gather(pixel, capacity, count, factors, l, segment, row);
                scatter(count, l->in_panels, row, stride, next, to);
                continue;
            }
            for (uint32_t p = 0; p < l->in_panels; ++p)
                unfold_pixel(pixel, capacity, count, factors + p * QN__PANEL,
                             l->channels - p * QN__PANEL, to + p * stride);
        }
}
