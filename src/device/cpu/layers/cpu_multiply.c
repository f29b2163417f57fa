/* The end of a product block (docs/exactness.md 24.31). Rows of a factor that is spread are items:
 * those of a pixel of the other one are multiplied by all of them. */
#include "device/cpu/layers/cpu_join.h"
#include <string.h>

/* to[rows] = x[first ..] times y of the same rows, or of their items where y is spread. */
static void multiply(const qn__cpu_pass *pass, size_t first, uint32_t rows, const float *x,
                     const float *y, int spread, float *to) {
    const qn__cpu_kernels *k = pass->worker->kernels;
    const uint32_t items = pass->batch->items;
    for (uint32_t n; rows > 0; rows -= n, first += n, to += (size_t)n * QN__PANEL) {
        const uint32_t item = (uint32_t)(first % items);
        n = !spread ? rows : items - item < rows ? items - item : rows;
        k->multiply((size_t)n * QN__PANEL, x + first * QN__PANEL,
                    y + (spread ? item : first) * QN__PANEL, to);
    }
}

static void run_forward(const qn__cpu_pass *pass, int thread, const qn__cpu_layer *l,
                        const qn__cpu_walk_run *run, uint32_t panel, float *to) {
    (void)thread;
    qn__cpu_joined a = qn__cpu_joined_of(pass, l, 0), b = qn__cpu_joined_of(pass, l, 1);
    if (a.pixels < b.pixels) {
        const qn__cpu_joined other = a;
        a = b;
        b = other;
    }
    multiply(pass, run->row, run->rows, a.values + panel * a.stride, b.values + panel * b.stride,
             b.pixels < a.pixels, to);
}

static void part_back(const qn__cpu_pass *pass, const qn__cpu_layer *l, int second, uint32_t panel,
                      uint32_t first, uint32_t rows, float *error) {
    const qn__cpu_kernels *k = pass->worker->kernels;
    const qn__cpu_joined own = qn__cpu_joined_of(pass, l, second);
    const qn__cpu_joined other = qn__cpu_joined_of(pass, l, !second);
    const float *delta = l->error + panel * l->out_stride;
    const float *factor = other.values + panel * other.stride;
    const size_t count = (size_t)rows * QN__PANEL, pixel = (size_t)pass->batch->items * QN__PANEL;
    if (own.pixels == l->out_pixels) {
        multiply(pass, first, rows, delta, factor, other.pixels < own.pixels, error);
        return;
    }
    memset(error, 0, count * sizeof *error);
    for (size_t at = (size_t)first * QN__PANEL, p = 0; p < l->out_pixels; ++p, at += pixel)
        k->multiply_add(count, delta + at, factor + at, error);
    k->scale(count, 1.0f, error);
}

const qn__cpu_kind qn__cpu_multiply = {.forward = qn__cpu_walk_forward,
                                       .backward = qn__cpu_join_backward,
                                       .run = run_forward,
                                       .part_back = part_back,
                                       .leads = 1,
                                       .reads_input = 1};
