/* Pictures of the first layer, when they are fetched: a row of its inputs has all factors of an
 * output pixel, or, below a pool, the channels of a pixel. A picture is first copied with its
 * padding. Then factor t of every output pixel is at the same place relative to the pixel. Several
 * items are unfolded together: their rows of a pixel follow one another, those of two pixels are
 * far apart. */
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

size_t qn__cpu_unfold_room(const qn__cpu_layer *l) {
    return l->layer->from.channels * extent(l, 0) * extent(l, 1);
}

void qn__cpu_unfold_begin(const qn__cpu_layer *l, size_t *factors) {
    const size_t height = extent(l, 0), width = extent(l, 1);
    const qn__window w = window_of(l);
    for (size_t ky = 0; ky < w.kernel[0]; ++ky)
        for (size_t kx = 0; kx < w.kernel[1]; ++kx)
            for (size_t c = 0; c < l->layer->from.channels; ++c)
                *factors++ = (c * height + ky * w.dilation[0]) * width + kx * w.dilation[1];
}

/* Pictures of one call, within half a megabyte. */
enum { MOST_FLOATS = 1 << 17 };

uint32_t qn__cpu_unfold_items(const qn__cpu_layer *l) {
    const size_t fit = MOST_FLOATS / qn__cpu_unfold_room(l);
    return fit < 1 ? 1 : fit < QN__TILE_ROWS ? (uint32_t)fit : QN__TILE_ROWS;
}

void qn__cpu_pad(const qn__cpu_layer *l, const float *from, float *to) {
    const size_t height = extent(l, 0), width = extent(l, 1);
    const qn__shape shape = l->layer->from;
    const qn__window w = window_of(l);
    const size_t left = w.pad[1] < width ? w.pad[1] : width;
    const size_t inside = width - left < shape.width ? width - left : shape.width;
    memset(to, 0, qn__cpu_unfold_room(l) * sizeof *to);
    for (uint32_t c = 0; c < shape.channels; ++c)
        for (size_t y = w.pad[0]; y < height && y - w.pad[0] < shape.height; ++y)
            memcpy(to + (c * height + y) * width + left,
                   from + ((size_t)c * shape.height + y - w.pad[0]) * shape.width,
                   inside * sizeof *to);
}

/* A row of each of `count` pictures, one panel. */
static void unfold_pixel(const float *pixel, size_t room, uint32_t count, const size_t *factors,
                         uint32_t left, float *to) {
    const size_t end = left < QN__PANEL ? left : QN__PANEL;
    for (uint32_t i = 0; i < count; ++i, pixel += room, to += QN__PANEL) {
        for (size_t t = 0; t < end; ++t)
            to[t] = pixel[factors[t]];
        for (size_t t = end; t < QN__PANEL; ++t)
            to[t] = 0.0f;
    }
}

void qn__cpu_unfold(const qn__cpu_layer *l, const size_t *factors, const float *padded,
                    uint32_t count, uint32_t items, size_t stride, float *to) {
    const size_t width = extent(l, 1), room = qn__cpu_unfold_room(l);
    const qn__window w = window_of(l);
    const qn__shape shape = shape_of(l);
    for (size_t y = 0; y < shape.height; ++y)
        for (size_t x = 0; x < shape.width; ++x, to += (size_t)items * QN__PANEL)
            for (uint32_t p = 0; p < l->in_panels; ++p)
                unfold_pixel(padded + y * w.stride[0] * width + x * w.stride[1], room, count,
                             factors + p * QN__PANEL, l->channels - p * QN__PANEL, to + p * stride);
}
