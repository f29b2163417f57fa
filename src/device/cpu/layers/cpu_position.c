/* position learned: a parameter of each channel at each position is added (docs/exactness.md
 * 25.12). position sinusoid: numbers that stay are (25.13). */
#include "device/cpu/worker/cpu_gradient_sums.h"
#include "device/cpu/worker/cpu_kinds.h"
#include "device/cpu/worker/cpu_norms.h"
#include "layer/turned.h"
#include <string.h>

/* Adds own[panel][position][16]. A row is a position of an item, items fastest. */
static void add_numbers(const qn__cpu_pass *pass, const qn__cpu_layer *l, const float *own,
                        const qn__cpu_walk_run *run, uint32_t panel, float *to) {
    const float *from = qn__cpu_input(pass, l) + panel * l->in_stride + run->row * QN__PANEL;
    own += (size_t)panel * (l->vectors ? l->vector_pixels : qn__cpu_positions(pass->worker, l)) *
           QN__PANEL;
    for (uint32_t i = 0; i < run->rows; ++i, from += QN__PANEL, to += QN__PANEL) {
        const size_t at = qn__cpu_position_of(pass, run->row + i);
        for (uint32_t c = 0; c < QN__PANEL; ++c)
            to[c] = from[c] + own[at * QN__PANEL + c];
    }
}

static void add_run(const qn__cpu_pass *pass, int thread, const qn__cpu_layer *l,
                    const qn__cpu_walk_run *run, uint32_t panel, float *to) {
    (void)thread;
    add_numbers(pass, l, l->bias, run, panel, to);
}

static void add_sinusoid(const qn__cpu_pass *pass, int thread, const qn__cpu_layer *l,
                         const qn__cpu_walk_run *run, uint32_t panel, float *to) {
    (void)thread;
    add_numbers(pass, l, l->turned, run, panel, to);
}

static void pass_run(const qn__cpu_pass *pass, int thread, const qn__cpu_layer *l,
                     const qn__cpu_walk_run *run, uint32_t panel, float *error) {
    (void)pass;
    (void)thread;
    memcpy(error, l->error + panel * l->out_stride + run->row * QN__PANEL,
           (size_t)run->rows * QN__PANEL * sizeof *error);
}

static int sum_position(const qn__cpu_pass *pass, const float *error, int64_t *sums) {
    const qn__worker *w = pass->worker;
    const uint32_t grain = w->program->grain, all = pass->batch->items;
    float partial[QN__PANEL];
    for (uint32_t item = 0; item < all; item += grain) {
        const uint32_t items = all - item < grain ? all - item : grain;
        w->kernels->bias_partials(items, items, 1, 0, error + (size_t)item * QN__PANEL, partial);
        if (qn__cpu_add_partials(w, 1, QN__PANEL, partial, sums))
            return 1;
        if (all - item <= grain)
            break; /* a grain may be as large as numbers are */
    }
    return 0;
}

static int sums_of_panel(const qn__cpu_pass *pass, uint32_t layer, uint32_t panel) {
    const qn__cpu_layer *l = &pass->worker->layer[layer];
    const size_t apart = (size_t)pass->batch->items * QN__PANEL;
    for (uint32_t at = 0; at < l->vector_pixels; ++at) {
        int64_t sums[QN__PANEL] = {0};
        if (at < l->out_pixels && /* no item of the batch has others */
            sum_position(pass, l->error + panel * l->out_stride + at * apart, sums))
            return 1;
        qn__cpu_norm_put(pass, l, panel, at, sums);
    }
    return 0;
}

const qn__cpu_kind qn__cpu_position = {.forward = qn__cpu_walk_forward,
                                       .backward = qn__cpu_walk_backward,
                                       .run = add_run,
                                       .run_back = pass_run,
                                       .sums = sums_of_panel,
                                       .leads = 1};

/* [panel][position][16], as the parameters of position learned. */
static void carve_sinusoid(qn__cpu_arena *a, const qn__worker *w, qn__cpu_layer *l) {
    const uint32_t pairs = qn__turned_pairs(l->layer);
    const uint32_t positions = qn__cpu_positions(w, l);
    l->turned = qn__cpu_carve(a, (size_t)l->out_panels * QN__PANEL, positions * sizeof(float));
    for (uint32_t i = 0; a->base && i < pairs; ++i) {
        const float frequency = qn__turn_frequency(&l->layer->turns, pairs, i);
        float *to =
            l->turned + (size_t)(2 * i / QN__PANEL) * positions * QN__PANEL + 2 * i % QN__PANEL;
        for (uint32_t p = 0; p < positions; ++p, to += QN__PANEL) {
            const float angle = (float)p * frequency;
            qn__turn(angle, to + 1, to);
        }
    }
}

const qn__cpu_kind qn__cpu_sinusoid = {.forward = qn__cpu_walk_forward,
                                       .backward = qn__cpu_walk_backward,
                                       .run = add_sinusoid,
                                       .run_back = pass_run,
                                       .carve = carve_sinusoid,
                                       .leads = 1};
