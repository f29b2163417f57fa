/* Pools: docs/exactness.md 16.5 to 16.7. Forward, an output is the greatest value or the mean of
 * its window. Backward, each pixel of the input gathers from the windows that read it:
 *
 *     input      a b c d e f      window 0: a b c, window 1: d e f (stride 3)
 *     maxpool    error of b = error of window 0, if b is the first greatest of a, b, c; else 0
 *     avgpool    error of b = error of window 0 / 3
 *
 * Gathering needs no lock, and a pixel adds its windows in ascending order whoever computes it. The
 * pass over the pixels is that of convolutions (cpu_walk_phases.c). */
#include "device/cpu/worker/cpu_kinds.h"
#include "layer/pooling.h"
#include "num/blend.h"
#include <string.h>

/* The pixels of the input that position `at` of the outputs reads in one direction. */
static qn__cover inside(const qn__cpu_axis *axis, uint32_t at) {
    if (axis->fitted)
        return qn__fitted_taps(axis->fitted, at, axis->size, axis->limit);
    const uint32_t begin = at * axis->stride, end = begin + axis->kernel; /* with the padding */
    const uint32_t limit = axis->limit + axis->pad;
    return (qn__cover){begin < axis->pad ? 0 : begin - axis->pad,
                       (end < limit ? end : limit) - axis->pad};
}

/* Of the run from pixel x on: how many have windows of the same width, each so many pixels after
 * the one before. */
static uint32_t alike(const qn__cpu_axis *axis, uint32_t x, uint32_t pixels, uint32_t *step) {
    qn__cover last = inside(axis, x);
    const uint32_t width = last.end - last.begin;
    uint32_t count = 1;
    *step = 0;
    for (; count < pixels; ++count) {
        const qn__cover next = inside(axis, x + count);
        if (next.end - next.begin != width || (count > 1 && next.begin - last.begin != *step))
            break;
        *step = next.begin - last.begin;
        last = next;
    }
    return count;
}

/* Pixels from x on, whose windows are alike. */
static void run_alike(const qn__cpu_pass *pass, int thread, const qn__cpu_layer *l,
                      const qn__cpu_walk_run *run, uint32_t x, uint32_t pixels, uint32_t step,
                      const float *a, float *to) {
    const qn__cpu_axis *axis = l->outputs.axis;
    const size_t pixel = (size_t)pass->batch->items * QN__PANEL, row = axis[1].limit * pixel;
    const size_t count = (size_t)run->rows / run->pixels * QN__PANEL;
    const qn__cover rows = inside(&axis[0], run->y), columns = inside(&axis[1], x);
    uint32_t taps = 0;
    size_t *tap = pass->worker->core[thread].blocks;
    for (uint32_t y = 0; y < rows.end - rows.begin; ++y)
        for (uint32_t i = 0; i < columns.end - columns.begin; ++i)
            tap[taps++] = y * row + i * pixel;
    const float *from =
        a + rows.begin * row + columns.begin * pixel + (size_t)run->item * QN__PANEL;
    pass->worker->kernels->pool(pixels, count, taps, tap, step * pixel, from,
                                l->kind->picks ? 0.0f : qn__pool_share(l->layer, run->y, x), to);
}

static void run_forward(const qn__cpu_pass *pass, int thread, const qn__cpu_layer *l,
                        const qn__cpu_walk_run *run, uint32_t panel, float *to) {
    const float *a = qn__cpu_input(pass, l) + panel * l->in_stride;
    const size_t count = (size_t)run->rows / run->pixels * QN__PANEL;
    for (uint32_t p = 0, pixels, step; p < run->pixels; p += pixels) {
        pixels = alike(&l->outputs.axis[1], run->x + p, run->pixels - p, &step);
        run_alike(pass, thread, l, run, run->x + p, pixels, step, a, to + p * count);
    }
}

/* The windows that read pixel `at` of the input in one direction. */
static qn__cover readers(const qn__cpu_axis *axis, uint32_t at) {
    if (axis->fitted)
        return qn__fitted_readers(axis->fitted, at, axis->size, axis->limit);
    const uint32_t padded = at + axis->pad, end = padded / axis->stride + 1;
    return (qn__cover){padded < axis->kernel ? 0 : (padded - axis->kernel) / axis->stride + 1,
                       end < axis->size ? end : axis->size};
}

/* The error that the window (y, x) passes to the pixel (own_y, own_x) of its picture. */
static void unpool_one(const qn__cpu_pass *pass, const qn__cpu_layer *l,
                       const qn__cpu_walk_run *run, uint32_t panel, uint32_t own_y, uint32_t own_x,
                       uint32_t y, uint32_t x, const float **earlier, float *error) {
    const qn__cpu_kernels *k = pass->worker->kernels;
    const qn__cpu_axis *axis = l->outputs.axis;
    const size_t count = (size_t)run->rows / run->pixels * QN__PANEL;
    const size_t item = (size_t)run->item * QN__PANEL, pixel = pass->batch->items * QN__PANEL;
    const size_t at = ((size_t)y * axis[1].size + x) * pixel + item + panel * l->out_stride;
    const float *input = l->input + panel * l->in_stride + item;
    const qn__cover rows = inside(&axis[0], y), columns = inside(&axis[1], x);
    uint32_t taps = 0; /* up to the pixel's own */
    for (uint32_t iy = rows.begin; iy <= own_y; ++iy)
        for (uint32_t ix = columns.begin; ix < (iy < own_y ? columns.end : own_x + 1); ++ix)
            earlier[taps++] = input + ((size_t)iy * axis[1].limit + ix) * pixel;
    k->add_first(count, taps - 1, earlier, earlier[taps - 1], l->output + at, l->error + at, error);
}

/* The errors of a run, one panel: windows in ascending order. */
static void run_back(const qn__cpu_pass *pass, int thread, const qn__cpu_layer *l,
                     const qn__cpu_walk_run *run, uint32_t panel, float *error) {
    const qn__cpu_kernels *k = pass->worker->kernels;
    const size_t count = (size_t)run->rows / run->pixels * QN__PANEL;
    const size_t pixel = (size_t)pass->batch->items * QN__PANEL;
    const uint32_t across = l->outputs.axis[1].size;
    const float *delta = l->error + panel * l->out_stride + (size_t)run->item * QN__PANEL;
    const qn__cover rows = readers(&l->outputs.axis[0], run->y);
    for (uint32_t own = run->x; own < run->x + run->pixels; ++own, error += pixel) {
        const qn__cover columns = readers(&l->outputs.axis[1], own);
        memset(error, 0, count * sizeof *error);
        for (uint32_t y = rows.begin; y < rows.end; ++y)
            for (uint32_t x = columns.begin; x < columns.end; ++x)
                if (l->kind->picks)
                    unpool_one(pass, l, run, panel, run->y, own, y, x,
                               pass->worker->core[thread].taps, error);
                else
                    k->add_scaled(count, qn__pool_share(l->layer, y, x),
                                  delta + ((size_t)y * across + x) * pixel, error);
    }
}

/* A run of bilinear outputs, or of errors of their inputs, one panel: a sum in ascending order over
 * the inputs that an output reads, or over the outputs that read an input. */
static void blend(const qn__cpu_pass *pass, const qn__cpu_layer *l, const qn__cpu_walk_run *run,
                  uint32_t panel, float *to, int back) {
    qn__cover (*const cover)(uint32_t, uint32_t, uint32_t) =
        back ? qn__blend_readers : qn__blend_taps;
    const qn__cpu_axis *axis = l->outputs.axis;
    const size_t count = (size_t)run->rows / run->pixels * QN__PANEL;
    const size_t pixel = (size_t)pass->batch->items * QN__PANEL;
    const float *from =
        (back ? l->error + panel * l->out_stride : qn__cpu_input(pass, l) + panel * l->in_stride) +
        (size_t)run->item * QN__PANEL;
    const uint32_t factor[2] = {axis[0].size / axis[0].limit, axis[1].size / axis[1].limit};
    const uint32_t across = back ? axis[1].size : axis[1].limit;
    const qn__cover rows = cover(run->y, factor[0], axis[0].limit);
    const float unit = qn__blend_unit(l->layer);
    for (uint32_t own = run->x; own < run->x + run->pixels; ++own, to += back ? pixel : count) {
        const qn__cover columns = cover(own, factor[1], axis[1].limit);
        memset(to, 0, count * sizeof *to);
        for (uint32_t y = rows.begin; y < rows.end; ++y)
            for (uint32_t x = columns.begin; x < columns.end; ++x) {
                const uint32_t weight =
                    qn__blend_weight(back ? y : run->y, back ? run->y : y, factor[0],
                                     axis[0].limit) *
                    qn__blend_weight(back ? x : own, back ? own : x, factor[1], axis[1].limit);
                pass->worker->kernels->add_scaled(count, (float)weight * unit,
                                                  from + ((size_t)y * across + x) * pixel, to);
            }
    }
}

static void enlarge(const qn__cpu_pass *pass, int thread, const qn__cpu_layer *l,
                    const qn__cpu_walk_run *run, uint32_t panel, float *to) {
    if (l->layer->fitted == QN__BLENDS)
        blend(pass, l, run, panel, to, 0);
    else
        run_forward(pass, thread, l, run, panel, to);
}

static void enlarge_back(const qn__cpu_pass *pass, int thread, const qn__cpu_layer *l,
                         const qn__cpu_walk_run *run, uint32_t panel, float *error) {
    if (l->layer->fitted == QN__BLENDS)
        blend(pass, l, run, panel, error, 1);
    else
        run_back(pass, thread, l, run, panel, error);
}

#define POOL(PICKS, FORWARD, BACK)                                                                 \
    {                                                                                              \
        .forward = qn__cpu_walk_forward, .backward = qn__cpu_walk_backward, .run = FORWARD,        \
        .run_back = BACK, .leads = 1, .reads_input = PICKS, .reads_output = PICKS, .picks = PICKS, \
        .whole_rows = 1                                                                            \
    }

const qn__cpu_kind qn__cpu_maxpool = POOL(1, run_forward, run_back),
                   qn__cpu_avgpool = POOL(0, run_forward, run_back),
                   qn__cpu_globalpool = POOL(0, run_forward, run_back),
                   qn__cpu_upsample = POOL(0, enlarge, enlarge_back);
