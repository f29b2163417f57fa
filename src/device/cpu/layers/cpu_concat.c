/* The end of a concat block (docs/exactness.md 24.32). Channels are in panels of 16, so those of
 * the second path begin within a panel where the first has not a multiple of 16. */
#include "device/cpu/layers/cpu_join.h"
#include <string.h>

/* Columns of a batch array from one of them on. */
typedef struct columns {
    const float *values;
    size_t stride;
    uint32_t first, count;
} columns;

/* to[rows][16], from lane `lane` on, = those columns, at most what is left of the 16. */
static void copy(const columns *c, size_t row, uint32_t rows, uint32_t lane, float *to) {
    for (uint32_t i = 0, n; i < c->count; i += n) {
        const uint32_t column = c->first + i, from = column % QN__PANEL;
        const float *x = c->values + column / QN__PANEL * c->stride + row * QN__PANEL + from;
        n = QN__PANEL - from < c->count - i ? QN__PANEL - from : c->count - i;
        if (n == QN__PANEL)
            memcpy(to, x, (size_t)rows * QN__PANEL * sizeof *to);
        else
            for (size_t r = 0; r < rows; ++r)
                memcpy(to + r * QN__PANEL + lane + i, x + r * QN__PANEL, n * sizeof *to);
    }
}

static uint32_t lesser(uint32_t a, uint32_t b) { return a < b ? a : b; }

static void run_forward(const qn__cpu_pass *pass, int thread, const qn__cpu_layer *l,
                        const qn__cpu_walk_run *run, uint32_t panel, float *to) {
    const qn__cpu_joined a = qn__cpu_joined_of(pass, l, 0), b = qn__cpu_joined_of(pass, l, 1);
    const uint32_t from = l->layer->from.channels, all = l->layer->to.channels;
    const uint32_t begin = panel * QN__PANEL, end = lesser(begin + QN__PANEL, all);
    const uint32_t cut = from < begin ? begin : lesser(from, end);
    const columns first = {a.values, a.stride, begin, cut - begin};
    const columns second = {b.values, b.stride, cut - from, end - cut};
    (void)thread;
    if (end < begin + QN__PANEL)
        memset(to, 0, (size_t)run->rows * QN__PANEL * sizeof *to);
    if (first.count)
        copy(&first, run->row, run->rows, 0, to);
    if (second.count)
        copy(&second, run->row, run->rows, cut - begin, to);
    pass->worker->kernels->scale((size_t)run->rows * QN__PANEL, 1.0f, to);
}

static void part_back(const qn__cpu_pass *pass, const qn__cpu_layer *l, int second, uint32_t panel,
                      uint32_t first, uint32_t rows, float *error) {
    const uint32_t from = l->layer->from.channels, begin = panel * QN__PANEL;
    const uint32_t own = second ? l->layer->second.channels : from;
    const columns c = {l->error, l->out_stride, (second ? from : 0) + begin,
                       lesser(QN__PANEL, own - begin)};
    (void)pass;
    if (c.count < QN__PANEL)
        memset(error, 0, (size_t)rows * QN__PANEL * sizeof *error);
    copy(&c, first, rows, 0, error);
}

const qn__cpu_kind qn__cpu_concat = {.forward = qn__cpu_walk_forward,
                                     .backward = qn__cpu_join_backward,
                                     .run = run_forward,
                                     .part_back = part_back,
                                     .leads = 1};
