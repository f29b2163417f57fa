/* Which rows one product of a picture computes, and which blocks it reads (cpu_walk.h).
 *
 * A window of 3 pixels with a border of 1 over a row of 5 pixels gives three runs. Pixels 1 to 3
 * read the same taps, so one product computes them all:
 *
 *     pixel of the output    0     1 2 3     4
 *     taps that it reads    12      012      01
 *     run                    0       1       2
 *
 * The functions here only count: from the number of a run to its rows, and from a run to the
 * offsets of its blocks. */
#include "device/cpu/worker/cpu_walk.h"

#include "device/cpu/float/cpu_kernels.h"
#include "num/blend.h"

int64_t qn__cpu_reads(const qn__cpu_axis *axis, uint32_t at, uint32_t k) {
    const int64_t offset = (int64_t)k * axis->dilation - axis->pad;
    int64_t from;
    if (axis->fitted) {
        const qn__cover c = axis->back
                                ? qn__fitted_readers(axis->fitted, at, axis->limit, axis->size)
                                : qn__fitted_taps(axis->fitted, at, axis->size, axis->limit);
        return c.begin + k < c.end ? (int64_t)c.begin + k : -1;
    }
    if (axis->back) {
        from = (int64_t)at * axis->spread - offset;
        if (from < 0 || from % axis->stride != 0)
            return -1;
        from /= axis->stride;
    } else {
        from = (int64_t)at * axis->stride + offset;
        if (axis->spread > 1 && (from < 0 || from % axis->spread != 0))
            return -1;
        from /= axis->spread;
    }
    return from >= 0 && from < axis->limit ? from : -1;
}

void qn__cpu_walk_axes(const qn__layer *layer, int back, qn__cpu_axis axis[2]) {
    const qn__window *w = &layer->window;
    const uint32_t in[2] = {layer->from.height, layer->from.width};
    const uint32_t out[2] = {layer->to.height, layer->to.width};
    int single = 1;
    for (int d = 0; d < 2; ++d) {
        axis[d] = (qn__cpu_axis){back ? in[d] : out[d],
                                 back ? out[d] : in[d],
                                 w->kernel[d],
                                 w->stride[d],
                                 w->pad[d],
                                 w->dilation[d],
                                 back,
                                 qn__layer_spread(layer, d),
                                 layer->fitted};
        single &= !layer->fitted && w->kernel[d] == 1 && w->stride[d] == 1 && w->pad[d] == 0 &&
                  qn__layer_spread(layer, d) == 1;
    }
    if (!single)
        return;
    axis[1].size = axis[1].limit = in[0] * in[1];
    axis[0].size = axis[0].limit = 1;
}

/* Whether neighbours `at` and at + 1 read the same taps, at neighbouring positions. */
static int alike(const qn__cpu_axis *axis, uint32_t at) {
    if (axis->stride != 1 || axis->spread != 1)
        return 0;
    for (uint32_t k = 0; k < axis->kernel; ++k)
        if ((qn__cpu_reads(axis, at, k) < 0) != (qn__cpu_reads(axis, at + 1, k) < 0))
            return 0;
    return 1;
}

void qn__cpu_walk_begin(qn__cpu_walk *walk, uint32_t items, uint32_t most) {
    const qn__cpu_axis *axis = &walk->axis[1];
    const uint32_t pixels = items < most ? most / items : 1;
    uint32_t first = 0;
    if (walk->items == items && walk->most == most && walk->begin[walk->pieces] == axis->size)
        return;
    walk->items = items;
    walk->most = most;
    /* With rounding down, a part has up to whole - 1 items more than others. */
    const uint32_t each = walk->whole && items > most ? most - walk->whole + 1 : most;
    walk->parts = (items + each - 1) / each;
    walk->pieces = 0;
    for (uint32_t x = 0; x < axis->size; ++x)
        if (x == 0 || x - first >= pixels || (!walk->any && !alike(axis, x - 1)))
            walk->begin[walk->pieces++] = first = x;
    walk->begin[walk->pieces] = axis->size;
}

/* The first item of a part. */
static uint32_t begin_of(const qn__cpu_walk *walk, uint32_t part) {
    const uint32_t item = (uint32_t)((uint64_t)walk->items * part / walk->parts);
    return walk->whole && part < walk->parts ? item / walk->whole * walk->whole : item;
}

qn__cpu_walk_run qn__cpu_run_at(const qn__cpu_walk *walk, uint32_t index) {
    const uint32_t part = index % walk->parts, piece = index / walk->parts % walk->pieces;
    const uint32_t y = index / walk->parts / walk->pieces;
    const uint32_t first = begin_of(walk, part), end = begin_of(walk, part + 1);
    const uint32_t x = walk->begin[piece], pixels = walk->begin[piece + 1] - x;
    return (qn__cpu_walk_run){.y = y,
                              .x = x,
                              .pixels = pixels,
                              .item = first,
                              .rows = pixels * (end - first),
                              .row = ((size_t)y * walk->axis[1].size + x) * walk->items + first};
}

uint32_t qn__cpu_run_blocks(const qn__cpu_walk *walk, const qn__cpu_walk_run *run, size_t stride,
                            size_t *a, size_t *b) {
    const qn__cpu_axis *vertical = &walk->axis[0], *horizontal = &walk->axis[1];
    uint32_t count = 0;
    for (uint32_t j = 0; j < vertical->kernel; ++j) {
        const uint32_t ky = vertical->back ? vertical->kernel - 1 - j : j;
        const int64_t y = qn__cpu_reads(vertical, run->y, ky);
        for (uint32_t i = 0; y >= 0 && i < horizontal->kernel; ++i) {
            const uint32_t kx = horizontal->back ? horizontal->kernel - 1 - i : i;
            const int64_t x = qn__cpu_reads(horizontal, run->x, kx);
            if (x < 0)
                continue;
            const size_t pixel = (size_t)y * horizontal->limit + (size_t)x;
            const size_t row = pixel * walk->items + run->item;
            const size_t tap = ((size_t)ky * horizontal->kernel + kx) * walk->panels;
            for (size_t p = 0; p < walk->panels; ++p, ++count) {
                a[count] = p * stride + row * QN__PANEL;
                b[count] = (tap + p) * QN__PANEL * QN__PANEL;
            }
        }
    }
    return count;
}

void qn__cpu_run_taps(const qn__cpu_walk *walk, const qn__cpu_walk_run *run, size_t stride,
                      size_t nothing, size_t *a) {
    const qn__cpu_axis *vertical = &walk->axis[0], *horizontal = &walk->axis[1];
    for (uint32_t ky = 0; ky < vertical->kernel; ++ky) {
        const int64_t y = qn__cpu_reads(vertical, run->y, ky);
        for (uint32_t kx = 0; kx < horizontal->kernel; ++kx) {
            const int64_t x = qn__cpu_reads(horizontal, run->x, kx);
            const size_t pixel = (size_t)(y * horizontal->limit + x);
            const size_t row = pixel * walk->items + run->item;
            for (size_t p = 0; p < walk->panels; ++p)
                *a++ = y < 0 || x < 0 ? nothing : p * stride + row * QN__PANEL;
        }
    }
}
