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
#include <string.h>

/* Taps first .. end - 1 of the window of position `at` lie inside. */
static void inside(const qn__cpu_axis *axis, uint32_t at, uint32_t *first, uint32_t *end) {
    const uint32_t begin = at * axis->stride; /* in the padded picture */
    const uint32_t left = axis->limit + axis->pad - begin;
    *first = begin < axis->pad ? axis->pad - begin : 0;
    *end = axis->kernel < left ? axis->kernel : left;
}

/* Of the run from pixel x on: how many read the taps of x's own columns. */
static uint32_t alike(const qn__cpu_axis *axis, uint32_t x, uint32_t pixels) {
    uint32_t first, end, count = 1;
    inside(axis, x, &first, &end);
    if (first > 0)
        return 1;
    for (uint32_t f, e; count < pixels; ++count) {
        inside(axis, x + count, &f, &e);
        if (e != end)
            break;
    }
    return count;
}

/* Pixels from x on, whose windows read the same columns of taps. */
static void run_alike(const qn__cpu_pass *pass, int thread, const qn__cpu_layer *l,
                      const qn__cpu_walk_run *run, uint32_t x, uint32_t pixels, const float *a,
                      float *to) {
    const qn__cpu_axis *axis = l->outputs.axis;
    const size_t pixel = (size_t)pass->batch->items * QN__PANEL, row = axis[1].limit * pixel;
    const size_t count = (size_t)run->rows / run->pixels * QN__PANEL;
    uint32_t first[2], end[2], taps = 0;
    size_t *tap = pass->worker->core[thread].blocks;
    inside(&axis[0], run->y, &first[0], &end[0]);
    inside(&axis[1], x, &first[1], &end[1]);
    for (uint32_t ky = first[0]; ky < end[0]; ++ky)
        for (uint32_t kx = first[1]; kx < end[1]; ++kx)
            tap[taps++] = (ky - first[0]) * row + (kx - first[1]) * pixel;
    const float *from = a + (run->y * axis[0].stride + first[0] - axis[0].pad) * row +
                        (x * axis[1].stride + first[1] - axis[1].pad) * pixel +
                        (size_t)run->item * QN__PANEL;
    pass->worker->kernels->pool(pixels, count, taps, tap, axis[1].stride * pixel, from,
                                l->kind->picks ? 0.0f : qn__pool_share(l->layer, run->y, x), to);
}

static void run_forward(const qn__cpu_pass *pass, int thread, const qn__cpu_layer *l,
                        const qn__cpu_walk_run *run, uint32_t panel, float *to) {
    const float *a = qn__cpu_input(pass, l) + panel * l->in_stride;
    const size_t count = (size_t)run->rows / run->pixels * QN__PANEL;
    for (uint32_t p = 0, pixels; p < run->pixels; p += pixels) {
        pixels = alike(&l->outputs.axis[1], run->x + p, run->pixels - p);
        run_alike(pass, thread, l, run, run->x + p, pixels, a, to + p * count);
    }
}

/* The error that one window passes to a pixel of its picture at tap (ky, kx). `y`, `x`: the window.
 */
static void unpool_one(const qn__cpu_pass *pass, const qn__cpu_layer *l,
                       const qn__cpu_walk_run *run, uint32_t panel, uint32_t tap, int64_t y,
                       int64_t x, const float **earlier, float *error) {
    const qn__cpu_kernels *k = pass->worker->kernels;
    const qn__cpu_axis *axis = l->outputs.axis;
    const size_t count = (size_t)run->rows / run->pixels * QN__PANEL;
    const size_t item = (size_t)run->item * QN__PANEL, pixel = pass->batch->items * QN__PANEL;
    const size_t at = (size_t)(y * axis[1].size + x) * pixel + item + panel * l->out_stride;
    const float *input = l->input + panel * l->in_stride + item;
    uint32_t taps = 0; /* inside, up to the pixel's own */
    for (uint32_t t = 0; t <= tap; ++t) {
        const int64_t iy = qn__cpu_reads(&axis[0], (uint32_t)y, t / axis[1].kernel);
        const int64_t ix = qn__cpu_reads(&axis[1], (uint32_t)x, t % axis[1].kernel);
        if (iy >= 0 && ix >= 0)
            earlier[taps++] = input + (size_t)(iy * axis[1].limit + ix) * pixel;
    }
    k->add_first(count, taps - 1, earlier, earlier[taps - 1], l->output + at, l->error + at, error);
}

/* The errors of a run, one panel: windows in ascending order. */
static void run_back(const qn__cpu_pass *pass, int thread, const qn__cpu_layer *l,
                     const qn__cpu_walk_run *run, uint32_t panel, float *error) {
    const qn__cpu_kernels *k = pass->worker->kernels;
    const qn__cpu_axis *axis = l->inputs.axis;
    const size_t count = (size_t)run->rows / run->pixels * QN__PANEL;
    const size_t pixel = (size_t)pass->batch->items * QN__PANEL;
    const uint32_t taps = axis[0].kernel * axis[1].kernel;
    for (uint32_t p = 0; p < run->pixels; ++p, error += pixel) {
        memset(error, 0, count * sizeof *error);
        for (uint32_t tap = taps; tap-- > 0;) {
            const int64_t y = qn__cpu_reads(&axis[0], run->y, tap / axis[1].kernel);
            const int64_t x = qn__cpu_reads(&axis[1], run->x + p, tap % axis[1].kernel);
            if (y < 0 || x < 0)
                continue;
            if (l->kind->picks)
                unpool_one(pass, l, run, panel, tap, y, x, pass->worker->core[thread].taps, error);
            else
                k->add_scaled(count, qn__pool_share(l->layer, (uint32_t)y, (uint32_t)x),
                              l->error + panel * l->out_stride +
                                  (size_t)(y * axis[1].limit + x) * pixel +
                                  (size_t)run->item * QN__PANEL,
                              error);
        }
    }
}

#define POOL(PICKS)                                                                                \
    {                                                                                              \
        .forward = qn__cpu_walk_forward, .backward = qn__cpu_walk_backward, .run = run_forward,    \
        .run_back = run_back, .leads = 1, .reads_input = PICKS, .reads_output = PICKS,             \
        .picks = PICKS, .whole_rows = 1                                                            \
    }

const qn__cpu_kind qn__cpu_maxpool = POOL(1), qn__cpu_avgpool = POOL(0),
                   qn__cpu_globalpool = POOL(0);
