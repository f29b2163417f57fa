/* The weight gradient of a convolution.
 *
 * The chain of a weight runs over the output pixels of a grain and, within each, over its items. A
 * task has one panel of inputs, some taps and a group of panels of outputs. It goes through the
 * pixels of a grain in pieces that stay in the L1 cache, and through all its taps for each piece:
 * the taps read nearly the same inputs and the same errors. Between two pieces the sums are stored,
 * so each chain keeps its order. */
#include "device/cpu/worker/cpu_gradient_sums.h"
#include <string.h>

enum { BLOCK = QN__PANEL * QN__PANEL, PIECE_ROWS = 96 };

typedef struct task {
    const qn__cpu_layer *l;
    const qn__cpu_summing *how;
    uint32_t in, tap, taps; /* a panel of inputs, taps from `tap` on */
    uint32_t out, panels;   /* panels of outputs */
    uint32_t items;         /* of the batch */
} task;

/* Narrows the positions *from .. *to - 1 to those that read an input at tap k. */
static void narrow_to(const qn__cpu_axis *axis, uint32_t k, uint32_t *from, uint32_t *to) {
    while (*from < *to && qn__cpu_reads(axis, *from, k) < 0)
        ++*from;
    while (*from < *to && qn__cpu_reads(axis, *to - 1, k) < 0)
        --*to;
}

/* Adds the output pixels rows y .. y_end - 1, columns x .. x_end - 1 to the partials of a tap. */
static void add_piece(const qn__worker *w, const task *t, uint32_t tap, uint32_t y, uint32_t y_end,
                      uint32_t x, uint32_t x_end, uint32_t item, uint32_t items, float *partial) {
    const qn__cpu_layer *l = t->l;
    const qn__cpu_axis *axis = l->outputs.axis;
    const uint32_t ky = tap / axis[1].kernel, kx = tap % axis[1].kernel;
    const size_t row = QN__PANEL, pixel = t->items * row;
    narrow_to(&axis[0], ky, &y, &y_end);
    narrow_to(&axis[1], kx, &x, &x_end);
    if (y >= y_end || x >= x_end)
        return;
    qn__cpu_span span = {items,
                         x_end - x,
                         y_end - y,
                         axis[1].stride * pixel,
                         axis[0].stride * axis[1].limit * pixel,
                         pixel,
                         axis[1].size * pixel};
    if (items == t->items && axis[1].stride == 1) { /* neighbours are consecutive rows */
        span.items *= span.columns;
        span.columns = 1;
    }
    const size_t from = (size_t)qn__cpu_reads(&axis[0], y, ky) * axis[1].limit +
                        (size_t)qn__cpu_reads(&axis[1], x, kx);
    const float *a = l->input + t->in * l->in_stride + from * pixel + item * row;
    const float *d =
        l->error + t->out * l->out_stride + ((size_t)y * axis[1].size + x) * pixel + item * row;
    w->kernels->outer(&span, a, NULL, d, l->out_stride, partial, QN__PARTIAL_RAW, partial,
                      t->panels);
}

/* The partials of one grain. */
static void add_grain(const qn__worker *w, const task *t, uint32_t item, uint32_t items,
                      float *partial) {
    const qn__cpu_axis *axis = t->l->outputs.axis;
    const uint32_t height = axis[0].size, width = axis[1].size;
    const uint32_t pixels = items < PIECE_ROWS ? PIECE_ROWS / items : 1;
    const uint32_t columns = pixels < width ? pixels : width;
    const uint32_t rows = pixels / width > 1 ? pixels / width : 1;
    memset(partial, 0, (size_t)t->taps * t->panels * BLOCK * sizeof *partial);
    for (uint32_t y = 0; y < height; y += rows)
        for (uint32_t x = 0; x < width; x += columns)
            for (uint32_t k = 0; k < t->taps; ++k)
                add_piece(w, t, t->tap + k, y, y + rows < height ? y + rows : height, x,
                          x + columns < width ? x + columns : width, item, items,
                          partial + (size_t)k * t->panels * BLOCK);
}

/* Adds the partials of a grain to the sums, as sum_narrow and sum_wide of cpu_gradient.c. */
static int keep(const qn__worker *w, const task *t, const float *partial, int *held,
                qn__cpu_sums *s) {
    static const qn__cpu_span nothing;
    const size_t cells = (size_t)t->panels * BLOCK, count = t->taps * cells;
    const uint32_t rows = qn__cpu_rows_of(t->l, t->in);
    int bad = 0;
    if (!t->how->narrow) {
        for (size_t at = 0; at < count; at += BLOCK)
            bad |= qn__cpu_add_partials(w, 1, (size_t)rows * QN__PANEL, partial + at, s->wide + at);
        return bad;
    }
    if (*held == (int)t->how->flush_every) {
        w->kernels->flush(count, s->narrow, s->wide);
        *held = 0;
    }
    const qn__partial how = s->kind == QN__SUMS_FLOAT ? QN__PARTIAL_ONLY
                            : *held                   ? QN__PARTIAL_ADD
                                                      : QN__PARTIAL_FIRST;
    ++*held;
    for (size_t at = 0; at < count; at += cells)
        w->kernels->outer(&nothing, partial, NULL, partial, 0, partial + at, how,
                          s->kind == QN__SUMS_FLOAT ? (void *)(s->partial + at)
                                                    : (void *)(s->narrow + at),
                          t->panels);
    return 0;
}

/* Sums over all grains. Returns 1 when a partial was out of range. */
static int sum_all(const qn__worker *w, const task *t, float *partial, qn__cpu_sums *s) {
    const size_t count = (size_t)t->taps * t->panels * BLOCK;
    const uint32_t grain = w->program->grain, grains = (t->items + grain - 1) / grain;
    int bad = 0, held = 0;
    s->kind = QN__SUMS_DOUBLE;
    if (t->how->narrow && grains == 1)
        s->kind = QN__SUMS_FLOAT;
    else if (!t->how->narrow || grains > t->how->flush_every) {
        s->kind = QN__SUMS_INT64;
        memset(s->wide, 0, count * sizeof *s->wide);
    }
    for (uint32_t item = 0; item < t->items; item += grain) {
        const uint32_t left = t->items - item;
        add_grain(w, t, item, left < grain ? left : grain, partial);
        bad |= keep(w, t, partial, &held, s);
    }
    if (t->how->narrow && s->kind == QN__SUMS_INT64)
        w->kernels->flush(count, s->narrow, s->wide);
    return bad;
}

static int gradient_task(const qn__cpu_pass *pass, int thread, const task *t) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = t->l;
    float *partial = w->core[thread].gradient;
    qn__cpu_sums s = {.partial = partial + QN__WALK_CELLS, .update = pass->update};
    const uint32_t rows = qn__cpu_rows_of(l, t->in);
    s.narrow = (double *)(void *)(s.partial + QN__WALK_CELLS);
    s.wide = (int64_t *)(void *)(s.narrow + QN__WALK_CELLS);
    if (sum_all(w, t, partial, &s))
        return 1;
    for (uint32_t k = 0; k < t->taps; ++k)
        for (uint32_t p = 0; p < t->panels; ++p) {
            const uint32_t block = (t->tap + k) * l->in_panels + t->in;
            const size_t from = ((size_t)k * t->panels + p) * BLOCK;
            if (pass->outlet)
                qn__cpu_put_weights(pass, l, block, rows, t->out + p, &s, from);
            else
                qn__cpu_finish_sums(pass, 1, rows,
                                    ((size_t)(t->out + p) * qn__cpu_blocks(l) + block) * BLOCK, &s,
                                    from, l->weights, l->weight_slot, l->weight_sums);
        }
    return 0;
}

void qn__cpu_walk_gradient(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const qn__cpu_summing how = qn__cpu_choose_sums(pass, layer);
    const uint32_t groups = qn__cpu_groups(l), taps = l->task_taps;
    const qn__cpu_grid grid = {groups, l->tasks, 1};
    for (uint32_t group, row; qn__cpu_take(w, thread, phase, grid, &group, &row);) {
        if (pass->outlet)
            group = groups - 1 - group;
        const uint32_t out = group * QN__OUT_GROUP, beside = l->out_panels - out;
        const uint32_t tap = row / l->in_panels * taps, left = l->taps - tap;
        const task t = {.l = l,
                        .how = &how,
                        .in = row % l->in_panels,
                        .tap = tap,
                        .taps = left < taps ? left : taps,
                        .out = out,
                        .panels = beside < QN__OUT_GROUP ? beside : QN__OUT_GROUP,
                        .items = pass->batch->items};
        int bad = gradient_task(pass, thread, &t);
        for (uint32_t p = out; row == 0 && p < out + t.panels && !pass->outlet; ++p)
            bad |= qn__cpu_bias_task(pass, layer, p);
        if (bad)
            qn__cpu_failed(&w->core[thread], layer);
        if (pass->outlet)
            qn__cpu_progress(pass, thread, layer, group);
    }
}
