/* The weight gradient of a convolution in integer arithmetic (docs/exactness.md 17.12).
 *
 * The depths of a product are the output pixels of a grain, and within each its items. They are
 * packed in chunks that stay in the L2 cache. A task has some blocks of weights (a tap and a panel
 * of inputs each) and a group of panels of outputs: the errors of a chunk are packed once for all
 * its blocks. Sums over chunks are exact, so their order does not matter. cpu_tiles_gradient.c does
 * the same by tiles, where it can. */
#include "device/cpu/worker/cpu_gradient_sums.h"
#include <math.h>
#include <string.h>

enum { BLOCK = QN__PANEL * QN__PANEL };

typedef struct task {
    const qn__cpu_pass *pass;
    qn__cpu_core *core;
    const qn__cpu_layer *l;
    const qn__cpu_plan *plan;
    uint32_t first, blocks; /* of weights */
    uint32_t taps, apart;   /* the first `taps` are `apart` blocks from each other */
    uint32_t out, panels;   /* panels of outputs */
} task;

/* The number of the task's block b: after the taps of a panel of inputs come those of the next. */
static uint32_t block_of(const task *t, uint32_t b) {
    return t->first + b % t->taps * t->apart + b / t->taps;
}

/* A grain, and `count` of its depths from `from` on. */
typedef struct chunk {
    uint32_t item, items;
    uint64_t from;
    uint32_t count;
} chunk;

/* The rows of the errors, in units of 16 floats. */
static void list_errors(const task *t, const chunk *c, uint32_t *list) {
    const uint32_t all = t->pass->batch->items;
    uint64_t pixel = c->from / c->items;
    uint32_t item = (uint32_t)(c->from % c->items);
    for (uint32_t i = 0; i < c->count; ++i) {
        list[i] = (uint32_t)(pixel * all + c->item + item);
        if (++item == c->items) {
            item = 0;
            ++pixel;
        }
    }
}

/* The rows of the inputs at a tap; `outside` where it is outside the picture. */
static void list_inputs(const task *t, const chunk *c, uint32_t tap, uint32_t outside,
                        uint32_t *list) {
    const qn__cpu_axis *axis = t->l->outputs.axis;
    const uint32_t width = axis[1].size, all = t->pass->batch->items;
    uint32_t pixel = (uint32_t)(c->from / c->items), item = (uint32_t)(c->from % c->items);
    for (uint32_t i = 0; i < c->count; ++pixel, item = 0) {
        const int64_t y = qn__cpu_reads(&axis[0], pixel / width, tap / axis[1].kernel);
        const int64_t x = qn__cpu_reads(&axis[1], pixel % width, tap % axis[1].kernel);
        const int inside = y >= 0 && x >= 0;
        const uint64_t from = inside ? (uint64_t)(y * axis[1].limit + x) * all + c->item : 0;
        for (; item < c->items && i < c->count; ++item, ++i)
            list[i] = inside ? (uint32_t)(from + item) : outside;
    }
}

/* Multiplies a chunk; block after block to sums(block), with `how`. */
static void multiply(const task *t, const chunk *c, qn__intgemm_out how, double factor,
                     double *doubles, int64_t *exact) {
    const qn__worker *w = t->pass->worker;
    const qn__cpu_layer *l = t->l;
    qn__cpu_rows_space *buffer = &t->core->buffer;
    const size_t size = w->intgemm->size(w->bits, c->count), cells = (size_t)t->panels * BLOCK;
    list_errors(t, c, buffer->list[1]);
    for (uint32_t p = 0; p < t->panels; ++p)
        w->intgemm->right_items(w->bits, c->count, buffer->list[1], buffer->inverse[1], NULL,
                                l->error + (t->out + p) * l->out_stride,
                                (char *)buffer->right + p * size);
    for (uint32_t b = 0; b < t->blocks; ++b) {
        const uint32_t block = t->first + b;
        const float *from = l->input + block % l->in_panels * l->in_stride;
        int64_t some[QN__OUT_GROUP * BLOCK];
        list_inputs(t, c, block / l->in_panels, (uint32_t)((w->nothing - from) / QN__PANEL),
                    buffer->list[0]);
        w->intgemm->left_items(w->bits, c->count, buffer->list[0], buffer->inverse[0], NULL, from,
                               t->core->operand);
        w->intgemm->outer(w->bits, c->count, 1, t->core->operand, t->panels, buffer->right, how,
                          factor, how == QN__INTGEMM_ADD ? (void *)(doubles + b * cells) : some);
        for (size_t i = 0; how == QN__INTGEMM_INTEGER && i < cells; ++i)
            exact[b * cells + i] += some[i];
    }
}

/* Multiplies a grain by tiles. */
static void multiply_tiles(const task *t, uint32_t item, uint32_t items, const qn__cpu_grain *grain,
                           qn__intgemm_out how, double *doubles, int64_t *exact) {
    const size_t count = (size_t)t->blocks * t->panels * BLOCK;
    const double factor = ldexp(1.0, grain->exponent - t->plan->shift);
    const qn__cpu_tiles_task own = {.in = t->first % t->l->in_panels,
                                    .tap = t->first / t->l->in_panels,
                                    .inputs = t->blocks / t->taps,
                                    .taps = t->taps,
                                    .out = t->out,
                                    .panels = t->panels,
                                    .item = item,
                                    .items = items,
                                    .input = grain->input,
                                    .error = grain->error};
    if (how == QN__INTGEMM_ADD)
        memset(exact, 0, count * sizeof *exact);
    qn__cpu_tiles_gradient(t->pass, t->core, t->l, &own, exact);
    for (size_t i = 0; how == QN__INTGEMM_ADD && i < count; ++i)
        doubles[i] += (double)exact[i] * factor;
}

/* Multiplies all chunks of a grain. */
static void multiply_grain(const task *t, uint32_t item, uint32_t items, const qn__cpu_grain *grain,
                           qn__intgemm_out how, double *doubles, int64_t *exact) {
    const uint64_t depths = (uint64_t)items * t->l->out_pixels;
    const double factor = ldexp(1.0, grain->exponent - t->plan->shift);
    qn__cpu_rows_space *buffer = &t->core->buffer;
    if (t->l->tiles.span) {
        multiply_tiles(t, item, items, grain, how, doubles, exact);
        return;
    }
    for (uint32_t i = 0; i < QN__CHUNK; ++i) {
        buffer->inverse[0][i] = grain->input;
        buffer->inverse[1][i] = grain->error;
    }
    for (uint64_t from = 0; from < depths; from += QN__CHUNK) {
        const uint64_t left = depths - from;
        const chunk c = {item, items, from, left < QN__CHUNK ? (uint32_t)left : QN__CHUNK};
        multiply(t, &c, how, factor, doubles, exact);
    }
}

int qn__cpu_add_units(const qn__worker *w, int32_t exponent, size_t count, const int64_t *exact,
                      int64_t *wide) {
    int bad = 0;
    for (size_t i = 0; i < count; ++i) {
        int64_t units;
        if (qn__intgemm_units(exact[i], exponent, w->program->partial_limit, &units))
            wide[i] += units;
        else
            bad = 1;
    }
    return bad;
}

/* Adds a grain's integers in units to the sums. Returns 1 when one is out of range. */
static int add_units(const task *t, const qn__cpu_grain *grain, const int64_t *exact,
                     int64_t *wide) {
    int bad = 0;
    for (uint32_t b = 0; b < t->blocks; ++b) {
        const size_t count = (size_t)qn__cpu_rows_of(t->l, block_of(t, b)) * QN__PANEL;
        for (uint32_t p = 0; p < t->panels; ++p) {
            const size_t at = ((size_t)b * t->panels + p) * BLOCK;
            bad |=
                qn__cpu_add_units(t->pass->worker, grain->exponent, count, exact + at, wide + at);
        }
    }
    return bad;
}

/* Sums over all grains. Returns 1 when a partial was out of range. */
static int sum_all(const task *t, int64_t *exact, qn__cpu_sums *s) {
    const size_t count = (size_t)t->blocks * t->panels * BLOCK;
    const uint32_t grain = t->pass->worker->program->grain, all = t->pass->batch->items;
    const qn__cpu_grain *own = t->plan->grain;
    int bad = t->plan->bad;
    s->kind = t->plan->kind;
    s->shift = t->plan->shift;
    if (s->kind == QN__SUMS_DOUBLE)
        memset(s->narrow, 0, count * sizeof *s->narrow);
    else
        memset(s->wide, 0, count * sizeof *s->wide);
    for (uint32_t item = 0; item < all && !bad; item += grain, ++own) {
        const uint32_t items = all - item < grain ? all - item : grain;
        if (!own->waits)
            continue;
        if (s->kind == QN__SUMS_DOUBLE) {
            multiply_grain(t, item, items, own, QN__INTGEMM_ADD, s->narrow, exact);
            continue;
        }
        memset(exact, 0, count * sizeof *exact);
        multiply_grain(t, item, items, own, QN__INTGEMM_INTEGER, NULL, exact);
        bad |= add_units(t, own, exact, s->wide);
    }
    return bad;
}

static int gradient_task(const task *t, const qn__update *update) {
    const qn__cpu_pass *pass = t->pass;
    const qn__cpu_layer *l = t->l;
    int64_t *exact = (int64_t *)(void *)t->core->gradient;
    qn__cpu_sums s = {.update = update, .partial = NULL, .absmax = NULL};
    s.narrow = (double *)(void *)(exact + QN__INT_CELLS);
    s.wide = (int64_t *)(void *)(s.narrow + QN__INT_CELLS);
    if (sum_all(t, exact, &s))
        return 1;
    for (uint32_t b = 0; b < t->blocks; ++b)
        for (uint32_t p = 0; p < t->panels; ++p) {
            const uint32_t block = block_of(t, b), rows = qn__cpu_rows_of(l, block);
            const size_t from = ((size_t)b * t->panels + p) * BLOCK;
            qn__cpu_keep_weights(pass, l, block, rows, t->out + p, &s, from);
        }
    return 0;
}

/* By tiles a task has taps of some panels of inputs, otherwise some blocks. */
static task task_of(const qn__cpu_pass *pass, qn__cpu_core *core, const qn__cpu_layer *l,
                    const qn__cpu_walk_task *own) {
    task t = {.pass = pass,
              .core = core,
              .l = l,
              .plan = &core->plan,
              .out = own->out,
              .panels = own->panels};
    if (l->woven) {
        const uint32_t skip = own->row * l->tiles.task_panels;
        const uint32_t more = own->panels > skip ? own->panels - skip : 0;
        t.out = own->out + skip;
        t.panels = more < l->tiles.task_panels ? more : l->tiles.task_panels;
        t.blocks = t.taps = l->task_taps;
        t.apart = 1;
        return t;
    }
    const uint32_t inputs = l->tiles.span ? l->tiles.task_inputs : l->in_panels;
    const uint32_t columns = qn__tiles_parts(l->in_panels, inputs);
    const uint32_t all = l->tiles.span ? l->taps : qn__cpu_blocks(l);
    const uint32_t first = own->row / columns * l->task_taps, left = all - first;
    const uint32_t in = own->row % columns * inputs, more = l->in_panels - in;
    t.taps = left < l->task_taps ? left : l->task_taps;
    t.blocks = l->tiles.span ? t.taps * (more < inputs ? more : inputs) : t.taps;
    t.apart = l->tiles.span ? l->in_panels : 1;
    t.first = l->tiles.span ? first * l->in_panels + in : first;
    return t;
}

void qn__cpu_walk_intgemm_gradient(const qn__cpu_pass *pass, int thread, uint32_t layer,
                                   uint32_t phase) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    qn__cpu_core *core = &w->core[thread];
    qn__update update = {0};
    if (l->taps == 0)
        return;
    qn__cpu_plan_walk(pass, layer, 0, pass->batch->items, &core->plan);
    if (pass->update) {
        update = *pass->update;
        update.gradient = ldexpf(update.gradient, core->plan.shift);
    }
    for (qn__cpu_walk_task own; qn__cpu_take_walk(pass, thread, layer, phase, &own);) {
        const task t = task_of(pass, core, l, &own);
        qn__cpu_end_walk(pass, thread, layer, &own, gradient_task(&t, &update));
    }
}
