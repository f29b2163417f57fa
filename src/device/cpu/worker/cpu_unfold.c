/* Pictures of the first layer: a row of its inputs has all factors of an output pixel, or, below a
 * pool, the channels of a pixel. A picture is first copied with its padding, the channels of a
 * pixel beside one another. Then factor t of every output pixel is at the same place relative to
 * the pixel, and the factors of a row of its window follow one another. Several items are unfolded
 * together: their rows of a pixel follow one another, those of two pixels may be far apart.
 *
 * Unfolded inputs are many times as large as the pictures: 7x7 pixels of 3 channels at stride 2 are
 * 160 floats for each 12. So in float32 a convolution keeps the padded pictures, and its phases
 * read rows of windows where they are. A convolution of integers by tiles keeps them woven: the
 * values of 16 items at a place are one vector, so that integers of a factor are made at once for
 * 16 rows. Others unfold pictures when they are fetched. */
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

/* Where a factor is in a padded picture, from the first one of its output pixel on. */
static size_t place_of(const qn__cpu_layer *l, size_t factor) {
    const size_t channels = l->layer->from.channels;
    const qn__window w = window_of(l);
    const size_t tap = factor / channels, ky = tap / w.kernel[1], kx = tap % w.kernel[1];
    return (ky * w.dilation[0] * extent(l, 1) + kx * w.dilation[1]) * channels + factor % channels;
}

size_t qn__cpu_picture_at(const qn__cpu_layer *l, uint32_t y, uint32_t x) {
    const qn__window w = window_of(l);
    return (y * w.stride[0] * extent(l, 1) + x * w.stride[1]) * l->layer->from.channels;
}

qn__cpu_windows qn__cpu_windows_of(const qn__cpu_layer *l) {
    const uint32_t channels = l->layer->from.channels;
    const qn__window w = window_of(l);
    const int one = w.dilation[1] == 1; /* a row of a window is one strip */
    return (qn__cpu_windows){.height = w.kernel[0],
                             .width = one ? 1 : w.kernel[1],
                             .factors = one ? w.kernel[1] * channels : channels,
                             .a_item = qn__cpu_unfold_space(l),
                             .a_column = (size_t)w.stride[1] * channels,
                             .a_row = w.dilation[0] * extent(l, 1) * channels,
                             .a_tap = (size_t)w.dilation[1] * channels};
}

uint32_t qn__cpu_picture_strip(const qn__cpu_layer *l, size_t factor, size_t end, size_t *at) {
    const qn__window w = window_of(l);
    const size_t most = (w.dilation[1] == 1 ? w.kernel[1] : 1) * (size_t)l->layer->from.channels;
    const size_t left = most - factor % most;
    *at = place_of(l, factor);
    return (uint32_t)(left < end - factor ? left : end - factor);
}

void qn__cpu_unfold_begin(const qn__cpu_layer *l, qn__cpu_segments *panel) {
    for (size_t first = 0; first < l->channels; first += QN__PANEL, ++panel) {
        const size_t left = l->channels - first;
        *panel = (qn__cpu_segments){.end = left < QN__PANEL ? left : QN__PANEL};
        for (size_t t = 0; t < panel->end; ++t) {
            const size_t at = place_of(l, first + t);
            if (t > 0 && at == place_of(l, first + t - 1) + 1)
                continue;
            panel->from[panel->count] = at;
            panel->to[panel->count++] = t;
        }
    }
}

/* Pictures of one call, within half a megabyte. */
enum { MOST_FLOATS = 1 << 17 };

uint32_t qn__cpu_unfold_items(const qn__cpu_layer *l) {
    const size_t fit = MOST_FLOATS / qn__cpu_unfold_space(l);
    return fit < 1 ? 1 : fit < QN__TILE_ROWS ? (uint32_t)fit : QN__TILE_ROWS;
}

size_t qn__cpu_woven_floats(const qn__cpu_layer *l, size_t items) {
    return (items + QN__PANEL - 1) / QN__PANEL * QN__PANEL * qn__cpu_unfold_space(l);
}

void qn__cpu_weave_begin(const qn__cpu_layer *l, uint32_t *place) {
    for (uint32_t t = 0; t < l->channels; ++t)
        place[t] = (uint32_t)place_of(l, t);
}

/* Places of a padded picture in a row of pixels, and from a pixel to that below it. */
qn__cpu_weft qn__cpu_weft_of(const qn__cpu_layer *l) {
    const qn__window w = window_of(l);
    const uint32_t channels = l->layer->from.channels;
    return (qn__cpu_weft){.channels = channels,
                          .height = (uint32_t)extent(l, 0),
                          .width = (uint32_t)extent(l, 1),
                          .across = shape_of(l).width,
                          .down = w.stride[0],
                          .right = w.stride[1]};
}

/* A row of pixels of a channel: value x of item i goes to to[x * next + i]. */
static void weave_row(uint32_t items, size_t stride, const float *from, size_t width, size_t next,
                      float *to) {
    for (size_t x = 0; x < width; ++x, ++from, to += next)
        for (uint32_t i = 0; i < items; ++i)
            to[i] = from[i * stride];
}

void qn__cpu_weave(const qn__cpu_layer *l, uint32_t items, const float *from, size_t stride,
                   float *to) {
    const size_t height = extent(l, 0), width = extent(l, 1);
    const qn__shape shape = l->layer->from;
    const qn__window w = window_of(l);
    const size_t left = w.pad[1] < width ? w.pad[1] : width;
    const size_t inside = width - left < shape.width ? width - left : shape.width;
    memset(to, 0, qn__cpu_woven_floats(l, QN__PANEL) * sizeof *to);
    for (size_t y = w.pad[0]; y < height && y - w.pad[0] < shape.height; ++y)
        for (uint32_t c = 0; c < shape.channels; ++c) {
            const float *row = from + ((size_t)c * shape.height + y - w.pad[0]) * shape.width;
            float *pixel = to + ((y * width + left) * shape.channels + c) * QN__PANEL;
            const size_t next = (size_t)shape.channels * QN__PANEL;
            if (items == QN__PANEL)
                weave_row(QN__PANEL, stride, row, inside, next, pixel);
            else
                weave_row(items, stride, row, inside, next, pixel);
        }
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

/* A row of one panel, and nothing after it. */
static void unfold_row(const qn__cpu_segments *s, const float *pixel, float *to) {
    float row[2 * QN__PANEL] = {0};
    for (size_t k = 0; k < s->count; ++k)
        memcpy(row + s->to[k], pixel + s->from[k], QN__PANEL * sizeof *to);
    memset(row + s->end, 0, QN__PANEL * sizeof *row);
    memcpy(to, row, QN__PANEL * sizeof *to);
}

/* Neighbouring pixels of a row, one panel. Each segment is copied as a whole vector, and the next
 * one overwrites what was too much: of the last one, the row of the next picture. */
static void unfold_rows(const qn__cpu_segments *s, const float *pixel, size_t right,
                        uint32_t pixels, size_t next, float *to) {
    static const float zeros[QN__PANEL];
    for (size_t k = 0; k < s->count; ++k) {
        const float *from = pixel + s->from[k];
        float *at = to + s->to[k];
        for (uint32_t p = 0; p < pixels; ++p, from += right, at += next)
            memcpy(at, from, QN__PANEL * sizeof *to);
    }
    for (size_t p = 0; p < pixels && s->end < QN__PANEL; ++p)
        memcpy(to + p * next + s->end, zeros, sizeof zeros);
}

/* The same of one picture whose rows follow one another. So a row has all its segments before the
 * next row overwrites what was too much. */
static void unfold_picture(const qn__cpu_segments *s, const float *pixel, size_t right,
                           uint32_t pixels, float *to) {
    for (; pixels > 1; --pixels, pixel += right, to += QN__PANEL) {
        for (size_t k = 0; k < s->count; ++k)
            memcpy(to + s->to[k], pixel + s->from[k], QN__PANEL * sizeof *to);
        if (s->end < QN__PANEL)
            memset(to + s->end, 0, QN__PANEL * sizeof *to);
    }
    unfold_row(s, pixel, to);
}

/* Neighbouring pixels of a row, from padded pixel `pixel` on. */
static void unfold_pixels(const qn__cpu_segments *s, const qn__cpu_unfolding *u, const float *pixel,
                          size_t space, size_t right, uint32_t pixels, float *to) {
    for (uint32_t i = 0; i < u->count; ++i, pixel += space, to += QN__PANEL)
        for (size_t p = 0; p < u->panels; ++p)
            if (i + 1 < u->count)
                unfold_rows(s + p, pixel, right, pixels, u->next, to + p * u->stride);
            else if (u->count == 1 && u->next == QN__PANEL)
                unfold_picture(s + p, pixel, right, pixels, to + p * u->stride);
            else
                for (size_t k = 0; k < pixels; ++k)
                    unfold_row(s + p, pixel + k * right, to + p * u->stride + k * u->next);
}

void qn__cpu_unfold(const qn__cpu_layer *l, const qn__cpu_segments *segments,
                    const qn__cpu_unfolding *u, const float *padded, float *to) {
    const size_t space = qn__cpu_unfold_space(l), channels = l->layer->from.channels;
    const uint32_t across = shape_of(l).width, end = u->first + u->pixels;
    const qn__window w = window_of(l);
    const size_t right = w.stride[1] * channels, down = w.stride[0] * extent(l, 1) * channels;
    for (uint32_t p = u->first, pixels; p < end; p += pixels, to += pixels * u->next) {
        const uint32_t x = p % across, left = across - x;
        pixels = left < end - p ? left : end - p;
        unfold_pixels(segments + u->panel, u, padded + p / across * down + x * right, space, right,
                      pixels, to);
    }
}
