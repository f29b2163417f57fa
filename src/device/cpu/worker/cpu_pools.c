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
#include <string.h>

/* Windows are within the picture. */
static void run_forward(const qn__cpu_pass *pass, int thread, const qn__cpu_layer *l,
                        const qn__cpu_walk_run *run, uint32_t panel, float *to) {
    const float *a = qn__cpu_input(pass, l) + panel * l->in_stride;
    const qn__cpu_axis *axis = l->outputs.axis;
    const size_t pixel = (size_t)pass->batch->items * QN__PANEL, row = axis[1].limit * pixel;
    const size_t count = (size_t)run->rows / run->pixels * QN__PANEL;
    const float *from = a + run->y * axis[0].stride * row + run->x * axis[1].stride * pixel +
                        (size_t)run->item * QN__PANEL;
    size_t *tap = pass->worker->core[thread].blocks;
    uint32_t taps = 0;
    for (size_t y = 0; y < axis[0].kernel; ++y)
        for (size_t x = 0; x < axis[1].kernel; ++x)
            tap[taps++] = y * row + x * pixel;
    pass->worker->kernels->pool(run->pixels, count, taps, tap, axis[1].stride * pixel, from,
                                l->kind->picks ? 0.0f : 1.0f / (float)taps, to);
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
    const float *input = l->input + panel * l->in_stride + item, *own = NULL;
    for (uint32_t t = 0; t <= tap; ++t) {
        const int64_t iy = qn__cpu_reads(&axis[0], (uint32_t)y, t / axis[1].kernel);
        const int64_t ix = qn__cpu_reads(&axis[1], (uint32_t)x, t % axis[1].kernel);
        own = input + (size_t)(iy * axis[1].limit + ix) * pixel;
        if (t < tap)
            earlier[t] = own;
    }
    k->add_first(count, tap, earlier, own, l->output + at, l->error + at, error);
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
                k->add_scaled(count, 1.0f / (float)taps,
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
        .run_back = run_back, .leads = 1, .reads_input = 1, .reads_output = 1, .picks = PICKS,     \
        .whole_rows = 1                                                                            \
    }

const qn__cpu_kind qn__cpu_maxpool = POOL(1), qn__cpu_avgpool = POOL(0),
                   qn__cpu_globalpool = POOL(0);
