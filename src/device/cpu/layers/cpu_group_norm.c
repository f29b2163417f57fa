/* groupnorm and layernorm: docs/exactness.md 17.9. A row of 16 channels is a pixel of an item.
 * Where each pixel is normalised by itself, functions of cpu_row_norm.c do it.
 *
 * A task has some items, and the panels of outputs that whole groups take: one where groups do not
 * cross panels, all of them at most. Numbers of a group stand in all lanes of its channels, so that
 * kernels need not know where groups begin. */
#include "device/cpu/worker/cpu_gradient_sums.h"
#include "device/cpu/worker/cpu_norms.h"
#include "device/cpu/layers/cpu_row_norm.h"
#include "num/norm.h"
#include <math.h>
#include <string.h>

enum { WEIGHT, BIAS, MOST_ITEMS = 32, LEAST_ITEMS = 4 };

typedef struct part {
    uint32_t panel, panels, item, items;
} part;

static uint32_t group_size(const qn__cpu_layer *l) {
    return l->layer->from.channels / l->layer->norm_groups;
}

/* Panels that whole groups take. */
static uint32_t span_of(const qn__cpu_layer *l) {
    const uint32_t size = group_size(l);
    return QN__PANEL % size == 0 ? 1 : size % QN__PANEL == 0 ? size / QN__PANEL : l->out_panels;
}

static uint32_t items_of_task(const qn__cpu_pass *pass) {
    const uint32_t tasks = 2 * (uint32_t)pass->worker->threads;
    const uint32_t each = (pass->batch->items + tasks - 1) / tasks;
    const uint32_t whole = (each + LEAST_ITEMS - 1) / LEAST_ITEMS * LEAST_ITEMS;
    return whole > MOST_ITEMS ? MOST_ITEMS : whole;
}

/* Takes the next task. */
static int take(const qn__cpu_pass *pass, int thread, const qn__cpu_layer *l, uint32_t phase,
                part *p) {
    const uint32_t span = span_of(l), most = items_of_task(pass), all = pass->batch->items;
    const qn__cpu_grid grid = {(l->out_panels + span - 1) / span, (all + most - 1) / most, 1};
    uint32_t column, row;
    if (!qn__cpu_take(pass->worker, thread, phase, grid, &column, &row))
        return 0;
    const uint32_t panels = l->out_panels - column * span, items = all - row * most;
    *p = (part){column * span, panels < span ? panels : span, row * most,
                items < most ? items : most};
    return 1;
}

/* Where a panel of the part begins in an array of numbers, and in one of values. */
static size_t number_at(const qn__cpu_pass *pass, const part *p, uint32_t panel) {
    return (panel * (size_t)pass->worker->capacity + p->item) * QN__PANEL;
}

static size_t value_at(const part *p, uint32_t panel, size_t stride) {
    return panel * stride + (size_t)p->item * QN__PANEL;
}

static size_t apart_of(const qn__cpu_pass *pass) { return (size_t)pass->batch->items * QN__PANEL; }

static const float *vector_of(const qn__cpu_layer *l, uint32_t vector, uint32_t panel) {
    return l->bias + vector * l->vector + (size_t)panel * QN__PANEL;
}

/* ------------------------------------------------------------------------------- sums of a group
 */

/* Channels first .. end - 1 of an item. `number` is where the item's numbers of panel 0 begin,
 * `apart` floats before those of panel 1. */
typedef struct group {
    uint32_t first, end;
    size_t number, apart;
    float count; /* m of 17.9 */
} group;

static group group_of(const qn__cpu_pass *pass, const qn__cpu_layer *l, uint32_t first,
                      uint32_t item) {
    const uint32_t size = group_size(l);
    const size_t number = (size_t)item * QN__PANEL;
    const size_t apart = (size_t)pass->worker->capacity * QN__PANEL;
    const float count = (float)((uint64_t)size * l->out_pixels);
    return (group){first, first + size, number, apart, count};
}

/* The lanes of a group from channel c on that are in one panel. */
static uint32_t lanes_of(const group *g, uint32_t c) {
    const uint32_t left = g->end - c, panel = QN__PANEL - c % QN__PANEL;
    return left < panel ? left : panel;
}

static float add_lanes(const float lane[QN__PANEL]) {
    float sum = 0.0f;
    for (int k = 0; k < QN__PANEL; ++k)
        sum = sum + lane[k];
    return sum;
}

/* S of 17.9, of numbers; times `weight`, when it is not NULL. */
static float sum_of(const group *g, const float *numbers, const float *weight) {
    float lane[QN__PANEL] = {0};
    for (uint32_t c = g->first, n; c < g->end; c += n) {
        const uint32_t from = c % QN__PANEL;
        const float *x = numbers + c / QN__PANEL * g->apart + g->number + from;
        n = lanes_of(g, c);
        for (uint32_t k = 0; k < n; ++k) {
            const float own = weight ? weight[c + k] * x[k] : x[k];
            lane[from + k] = lane[from + k] + own;
        }
    }
    return add_lanes(lane);
}

static void fill(const group *g, float *numbers, float value) {
    for (uint32_t c = g->first, n; c < g->end; c += n) {
        float *x = numbers + c / QN__PANEL * g->apart + g->number + c % QN__PANEL;
        n = lanes_of(g, c);
        for (uint32_t k = 0; k < n; ++k)
            x[k] = value;
    }
}

/* Calls `visit` for each group of each item of a part. */
static void each_group(const qn__cpu_pass *pass, const qn__cpu_layer *l, const part *p,
                       void (*visit)(const qn__cpu_layer *l, const group *g)) {
    const uint32_t begin = p->panel * QN__PANEL, size = group_size(l);
    const uint32_t end = (p->panel + p->panels) * QN__PANEL, all = l->layer->from.channels;
    for (uint32_t i = 0; i < p->items; ++i)
        for (uint32_t c = begin; c < end && c < all; c += size) {
            const group g = group_of(pass, l, c, p->item + i);
            visit(l, &g);
        }
}

/* --------------------------------------------------------------------------------------- forward
 *
 * Until the errors come, partial[WEIGHT] has the shifts and partial[BIAS] the factors. */

static void make_shift(const qn__cpu_layer *l, const group *g) {
    float *shift = l->norm.partial[WEIGHT];
    fill(g, shift, sum_of(g, shift, NULL) / (float)(g->end - g->first));
}

/* From the sums of deviations and of their squares. */
static void make_mean(const qn__cpu_layer *l, const group *g) {
    const float *shift = l->norm.partial[WEIGHT];
    const float t = sum_of(g, l->norm.mean, NULL), u = t / g->count;
    const float w = qn__norm_squares(fmaf(-u, t, sum_of(g, l->norm.inverse, NULL)));
    const size_t own = g->first / QN__PANEL * g->apart + g->number + g->first % QN__PANEL;
    fill(g, l->norm.mean, shift[own] + u);
    fill(g, l->norm.inverse, qn__norm_inverse(w / g->count, l->layer->norm_epsilon));
}

/* Lanes after the last channel get a factor of 0. */
static void clear_padding(const qn__cpu_pass *pass, const qn__cpu_layer *l, const part *p) {
    const uint32_t used = l->layer->from.channels % QN__PANEL, last = l->out_panels - 1;
    if (used == 0 || p->panel + p->panels <= last)
        return;
    for (uint32_t i = 0; i < p->items; ++i)
        for (uint32_t k = used; k < QN__PANEL; ++k) {
            const size_t at = number_at(pass, p, last) + (size_t)i * QN__PANEL + k;
            l->norm.mean[at] = l->norm.inverse[at] = l->norm.factor[at] = l->norm.rest[at] = 0.0f;
        }
}

static void measure(const qn__cpu_pass *pass, const qn__cpu_layer *l, const part *p) {
    const qn__cpu_kernels *kernels = pass->worker->kernels;
    const float *input = qn__cpu_input(pass, l);
    for (uint32_t panel = p->panel; panel < p->panel + p->panels; ++panel)
        memcpy(l->norm.partial[WEIGHT] + number_at(pass, p, panel),
               input + value_at(p, panel, l->in_stride),
               (size_t)p->items * QN__PANEL * sizeof *input);
    each_group(pass, l, p, make_shift);
    for (uint32_t panel = p->panel; panel < p->panel + p->panels; ++panel) {
        const size_t at = number_at(pass, p, panel);
        kernels->item_moments(
            p->items, l->out_pixels, apart_of(pass), input + value_at(p, panel, l->in_stride),
            l->norm.partial[WEIGHT] + at, l->norm.mean + at, l->norm.inverse + at);
    }
    each_group(pass, l, p, make_mean);
    clear_padding(pass, l, p);
}

static void forward_panel(const qn__cpu_pass *pass, int thread, uint32_t layer, const part *p,
                          uint32_t panel) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const size_t at = number_at(pass, p, panel);
    const float *input = qn__cpu_input(pass, l) + value_at(p, panel, l->in_stride);
    const float *weight = vector_of(l, WEIGHT, panel);
    float *output = l->output + value_at(p, panel, l->out_stride);
    float *factor = l->norm.partial[BIAS] + at;
    for (size_t i = 0; i < (size_t)p->items * QN__PANEL; ++i)
        factor[i] = weight[i % QN__PANEL] * l->norm.inverse[at + i];
    for (uint32_t pixel = l->out_pixels; pixel-- > 0;) {
        const size_t from = pixel * apart_of(pass);
        w->kernels->item_normalise(p->items, input + from, l->norm.mean + at, factor,
                                   vector_of(l, BIAS, panel), output + from);
        qn__cpu_norm_finish(pass, thread, layer, panel, pixel * pass->batch->items + p->item,
                            p->items, output + from);
    }
}

static void forward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    const qn__cpu_layer *l = &pass->worker->layer[layer];
    for (part p; take(pass, thread, l, phase, &p);) {
        measure(pass, l, &p);
        for (uint32_t panel = p.panel + p.panels; panel-- > p.panel;)
            forward_panel(pass, thread, layer, &p, panel);
    }
}

/* -------------------------------------------------------------------------------------- backward
 */

static void sum_errors(const qn__cpu_pass *pass, const qn__cpu_layer *l, const part *p,
                       uint32_t panel) {
    const size_t at = number_at(pass, p, panel);
    pass->worker->kernels->item_slopes(
        p->items, l->out_pixels, apart_of(pass), l->error + value_at(p, panel, l->out_stride),
        l->input + value_at(p, panel, l->in_stride), l->norm.mean + at, l->norm.partial[BIAS] + at,
        l->norm.partial[WEIGHT] + at);
}

static void make_slopes(const qn__cpu_layer *l, const group *g) {
    const size_t own = g->first / QN__PANEL * g->apart + g->number + g->first % QN__PANEL;
    const float *weight = vector_of(l, WEIGHT, 0);
    const float inverse = l->norm.inverse[own];
    fill(g, l->norm.factor, sum_of(g, l->norm.partial[BIAS], weight) / g->count);
    fill(g, l->norm.rest,
         sum_of(g, l->norm.partial[WEIGHT], weight) * inverse * inverse / g->count);
}

/* What each item contributes to the weights. */
static void scale_products(const qn__cpu_pass *pass, const qn__cpu_layer *l, const part *p,
                           uint32_t panel) {
    const size_t at = number_at(pass, p, panel);
    float *products = l->norm.partial[WEIGHT] + at;
    for (size_t i = 0; i < (size_t)p->items * QN__PANEL; ++i)
        products[i] = products[i] * l->norm.inverse[at + i];
}

static void backward_panel(const qn__cpu_pass *pass, int thread, uint32_t layer, const part *p,
                           uint32_t panel) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer], *below = l->below;
    const size_t at = number_at(pass, p, panel);
    const float *delta = l->error + value_at(p, panel, l->out_stride);
    const float *input = l->input + value_at(p, panel, l->in_stride);
    float *error = qn__cpu_passes(l) + value_at(p, panel, below->out_stride);
    for (uint32_t pixel = l->out_pixels; pixel-- > 0;) {
        const size_t from = pixel * apart_of(pass);
        const uint32_t first = pixel * pass->batch->items + p->item;
        w->kernels->item_errors(p->items, delta + from, input + from, l->norm.mean + at,
                                l->norm.inverse + at, vector_of(l, WEIGHT, panel),
                                l->norm.factor + at, l->norm.rest + at, error + from);
        qn__cpu_after_errors(pass, &w->core[thread], layer, panel, first, p->items);
        if (w->bits)
            qn__cpu_note_passed(pass, layer, first, p->items, panel, 1);
    }
}

static void backward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    const qn__cpu_layer *l = &pass->worker->layer[layer];
    for (part p; take(pass, thread, l, phase, &p);) {
        for (uint32_t panel = p.panel; panel < p.panel + p.panels; ++panel)
            sum_errors(pass, l, &p, panel);
        each_group(pass, l, &p, make_slopes);
        for (uint32_t panel = p.panel + p.panels; panel-- > p.panel;) {
            backward_panel(pass, thread, layer, &p, panel);
            scale_products(pass, l, &p, panel);
        }
    }
}

/* The sums over grains of one vector's panel: an item's number adds to the chain of its grain. */
static int finish_vector(const qn__cpu_pass *pass, const qn__cpu_layer *l, uint32_t panel,
                         uint32_t vector) {
    const qn__worker *w = pass->worker;
    const uint32_t grain = w->program->grain, all = pass->batch->items;
    const float *from = l->norm.partial[vector] + panel * (size_t)w->capacity * QN__PANEL;
    int64_t sums[QN__PANEL] = {0};
    float partial[QN__PANEL];
    for (uint32_t item = 0; item < all; item += grain) {
        const uint32_t items = all - item < grain ? all - item : grain;
        w->kernels->bias_partials(items, items, 1, apart_of(pass), from + (size_t)item * QN__PANEL,
                                  partial);
        if (qn__cpu_add_partials(w, 1, QN__PANEL, partial, sums))
            return 1;
        if (all - item <= grain)
            break; /* a grain may be as large as numbers are */
    }
    qn__cpu_norm_put(pass, l, panel, vector, sums);
    return 0;
}

static int sums_of_panel(const qn__cpu_pass *pass, uint32_t layer, uint32_t panel) {
    const qn__cpu_layer *l = &pass->worker->layer[layer];
    const part all = {panel, 1, 0, pass->batch->items};
    int bad = 0;
    if (!qn__cpu_passes_errors(pass->worker, l)) { /* no errors went below */
        sum_errors(pass, l, &all, panel);
        scale_products(pass, l, &all, panel);
    }
    for (uint32_t v = 0; v < l->vectors; ++v)
        bad |= finish_vector(pass, l, panel, v);
    return bad;
}

static void carve(qn__cpu_arena *a, const qn__worker *w, qn__cpu_layer *l) {
    const size_t row = (size_t)l->out_panels * QN__PANEL * sizeof(float);
    float **const array[] = {&l->norm.mean,       &l->norm.inverse, &l->norm.partial[0],
                             &l->norm.partial[1], &l->norm.factor,  &l->norm.rest};
    for (size_t i = 0; i < sizeof array / sizeof *array; ++i)
        *array[i] = qn__cpu_carve(a, (size_t)w->capacity, row);
}

const qn__cpu_kind qn__cpu_groupnorm = {.forward = forward,
                                        .backward = backward,
                                        .sums = sums_of_panel,
                                        .carve = carve,
                                        .reads_input = 1};

/* layernorm has one group, unless each pixel is normalised by itself. */
static void layer_forward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    (pass->worker->layer[layer].layer->norm_alone ? qn__cpu_row_norm_forward
                                                  : forward)(pass, thread, layer, phase);
}

static void layer_backward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    (pass->worker->layer[layer].layer->norm_alone ? qn__cpu_row_norm_backward
                                                  : backward)(pass, thread, layer, phase);
}

static int layer_sums(const qn__cpu_pass *pass, uint32_t layer, uint32_t panel) {
    return (pass->worker->layer[layer].layer->norm_alone ? qn__cpu_row_norm_sums
                                                         : sums_of_panel)(pass, layer, panel);
}

static void layer_carve(qn__cpu_arena *a, const qn__worker *w, qn__cpu_layer *l) {
    (l->layer->norm_alone ? qn__cpu_row_norm_carve : carve)(a, w, l);
}

const qn__cpu_kind qn__cpu_layernorm = {.forward = layer_forward,
                                        .backward = layer_backward,
                                        .sums = layer_sums,
                                        .carve = layer_carve,
                                        .reads_input = 1};
