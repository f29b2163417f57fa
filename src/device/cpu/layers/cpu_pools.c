/* Pools: docs/exactness.md 16.5 to 16.7. Forward, an output is the greatest value or the mean of
 * its window. Backward, each pixel of the input gets errors of the windows that read it:
 *
 *     input      a b c d e f      window 0: a b c, window 1: d e f (stride 3)
 *     maxpool    error of b = error of window 0, if b is the first greatest of a, b, c; else 0
 *     avgpool    error of b = error of window 0 / 3
 *
 * A pixel adds its windows in ascending order, whichever thread computes it. An average gathers, in
 * the pass over the pixels that convolutions have (cpu_walk_phases.c). A maximum is searched for
 * once in each window, and each task adds the errors of its rows of pixels. So neither needs a
 * lock. */
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

/* The taps of a window of those pixels: offsets from its first one on. */
static uint32_t set_taps(const qn__cpu_layer *l, qn__cover rows, qn__cover columns, size_t pixel,
                         size_t *tap) {
    const size_t row = l->outputs.axis[1].limit * pixel;
    uint32_t taps = 0;
    for (uint32_t y = 0; y < rows.end - rows.begin; ++y)
        for (uint32_t x = 0; x < columns.end - columns.begin; ++x)
            tap[taps++] = y * row + x * pixel;
    return taps;
}

/* Pixels from x on, whose windows are alike. */
static void run_alike(const qn__cpu_pass *pass, int thread, const qn__cpu_layer *l,
                      const qn__cpu_walk_run *run, uint32_t x, uint32_t pixels, uint32_t step,
                      const float *a, float *to) {
    const qn__cpu_axis *axis = l->outputs.axis;
    const size_t pixel = (size_t)pass->batch->items * QN__PANEL, row = axis[1].limit * pixel;
    const size_t count = (size_t)run->rows / run->pixels * QN__PANEL;
    const qn__cover rows = inside(&axis[0], run->y), columns = inside(&axis[1], x);
    size_t *tap = pass->worker->core[thread].blocks;
    const uint32_t taps = set_taps(l, rows, columns, pixel, tap);
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

/* The errors of a run of an average, one panel: windows in ascending order. */
static void run_back(const qn__cpu_pass *pass, int thread, const qn__cpu_layer *l,
                     const qn__cpu_walk_run *run, uint32_t panel, float *error) {
    (void)thread;
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
                pass->worker->kernels->add_scaled(count, qn__pool_share(l->layer, y, x),
                                                  delta + ((size_t)y * across + x) * pixel, error);
    }
}

/* Some rows of the inputs of a max pool, one panel, all items. */
typedef struct band {
    const qn__cpu_pass *pass;
    int thread;
    uint32_t layer, panel;
    qn__cover rows;
} band;

/* The errors that row y of windows passes to the band, which has rows.begin .. rows.end - 1 of it.
 * Pixels above them are only compared: the first greatest one may be there. */
static void pick_row(const band *b, uint32_t y, qn__cover rows, float *error) {
    const qn__worker *w = b->pass->worker;
    const qn__cpu_layer *l = &w->layer[b->layer];
    const qn__cpu_axis *axis = l->outputs.axis;
    const size_t pixel = (size_t)b->pass->batch->items * QN__PANEL;
    const qn__cover all = inside(&axis[0], y);
    size_t *tap = w->core[b->thread].blocks;
    for (uint32_t x = 0, windows, step; x < axis[1].size; x += windows) {
        windows = alike(&axis[1], x, axis[1].size - x, &step);
        const qn__cover columns = inside(&axis[1], x);
        const uint32_t width = columns.end - columns.begin;
        const size_t from = ((size_t)all.begin * axis[1].limit + columns.begin) * pixel;
        const size_t at = ((size_t)y * axis[1].size + x) * pixel + b->panel * l->out_stride;
        set_taps(l, all, columns, pixel, tap);
        w->kernels->pick(windows, pixel, (rows.begin - all.begin) * width,
                         (rows.end - all.begin) * width, tap, step * pixel,
                         l->input + b->panel * l->in_stride + from, l->output + at, l->error + at,
                         error + from);
    }
}

/* Rows `first` .. `end` - 1 have the errors of all windows. */
static void finish_picked(const band *b, uint32_t first, uint32_t end) {
    const qn__worker *w = b->pass->worker;
    const size_t row = (size_t)w->layer[b->layer].outputs.axis[1].limit * b->pass->batch->items;
    const uint32_t rows = (uint32_t)((end - first) * row);
    if (rows == 0)
        return;
    qn__cpu_after_errors(b->pass, &w->core[b->thread], b->layer, b->panel, (uint32_t)(first * row),
                         rows);
    if (w->bits)
        qn__cpu_note_passed(b->pass, b->layer, first * row, rows, b->panel, 1);
}

/* Windows in ascending order, so that a pixel gets their errors in this order. A row is cleared
 * before its first window, and complete after its last one. */
static void pick_band(const band *b) {
    const qn__worker *w = b->pass->worker;
    const qn__cpu_layer *l = &w->layer[b->layer];
    const qn__cpu_axis *axis = l->outputs.axis;
    const size_t row = (size_t)axis[1].limit * b->pass->batch->items * QN__PANEL;
    float *error = qn__cpu_passes(l) + b->panel * l->below->out_stride;
    const uint32_t end = readers(&axis[0], b->rows.end - 1).end;
    uint32_t clear = b->rows.begin, done = clear;
    for (uint32_t y = readers(&axis[0], clear).begin; done < b->rows.end; ++y) {
        qn__cover rows = {b->rows.end, b->rows.end};
        if (y < end)
            rows = inside(&axis[0], y);
        rows.begin = rows.begin > done ? rows.begin : done;
        rows.end = rows.end < b->rows.end ? rows.end : b->rows.end;
        if (rows.end > clear)
            memset(error + clear * row, 0, (rows.end - clear) * row * sizeof *error);
        clear = rows.end > clear ? rows.end : clear;
        finish_picked(b, done, rows.begin);
        done = rows.begin;
        if (y < end)
            pick_row(b, y, rows, error);
    }
}

/* A task is a band of rows. At its borders it compares windows that the next band compares, too. */
static void maxpool_back(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    enum { TASKS = 8 }; /* of each thread */
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const uint32_t height = l->outputs.axis[0].limit;
    const uint32_t enough = (TASKS * (uint32_t)w->threads - 1) / l->in_panels + 1;
    const qn__cpu_grid grid = {enough < height ? enough : height, l->in_panels, 0};
    for (uint32_t at, panel; qn__cpu_take(w, thread, phase, grid, &at, &panel);) {
        const uint32_t begin = (uint32_t)((uint64_t)height * at / grid.columns);
        const uint32_t end = (uint32_t)((uint64_t)height * (at + 1) / grid.columns);
        pick_band(&(band){pass, thread, layer, panel, {begin, end}});
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

#define POOL(FORWARD, BACK)                                                                        \
    {                                                                                              \
        .forward = qn__cpu_walk_forward, .backward = qn__cpu_walk_backward, .run = FORWARD,        \
        .run_back = BACK, .leads = 1, .whole_rows = 1                                              \
    }

const qn__cpu_kind qn__cpu_maxpool = {.forward = qn__cpu_walk_forward,
                                      .backward = maxpool_back,
                                      .run = run_forward,
                                      .leads = 1,
                                      .reads_input = 1,
                                      .reads_output = 1,
                                      .picks = 1,
                                      .whole_rows = 1},
                   qn__cpu_avgpool = POOL(run_forward, run_back),
                   qn__cpu_globalpool = POOL(run_forward, run_back),
                   qn__cpu_upsample = POOL(enlarge, enlarge_back);
