/* Sums of partials that are checked one by one, and where a task's sums are written. */
#include "device/cpu/worker/cpu_gradient_sums.h"
#include "device/cpu/worker/cpu_kinds.h"
#include "device/cpu/worker/cpu_picked.h"
#include "num/sums.h"
#include <math.h>
#include <string.h>

int qn__cpu_add_partials(const qn__worker *w, size_t grains, size_t count, const float *partial,
                         int64_t *wide) {
    const float limit = w->program->partial_limit;
    const uint32_t bits = w->kernels->absmax(grains * count, partial);
    float absmax;
    int bad = 0;
    memcpy(&absmax, &bits, sizeof absmax);
    const int usual = absmax < fminf(limit, 0x1p51f);
    for (; grains > 0; --grains, partial += count)
        if (usual) {
            w->kernels->add_rounded(count, partial, wide);
        } else {
            for (size_t i = 0; i < count; ++i)
                if (fabsf(partial[i]) < limit)
                    wide[i] += qn__to_units(partial[i]);
                else
                    bad = 1;
        }
    return bad;
}

static const void *begin_of(const qn__cpu_sums *s, size_t from) {
    return s->kind == QN__SUMS_INT64    ? (const void *)(s->wide + from)
           : s->kind == QN__SUMS_DOUBLE ? (const void *)(s->narrow + from)
                                        : (const void *)(s->partial + from);
}

static int64_t *integers_of(const qn__worker *w, qn__cpu_sums *s, size_t from, size_t count) {
    w->kernels->integers(count, s->kind, begin_of(s, from), s->wide + from);
    for (size_t i = from; s->shift > 0 && i < from + count; ++i)
        s->wide[i] *= INT64_C(1) << s->shift;
    return s->wide + from;
}

static void add_integers(size_t count, const int64_t *from, int adds, int64_t *to) {
    for (size_t i = 0; i < count; ++i)
        to[i] = adds ? to[i] + from[i] : from[i];
}

/* Applies or stores the sums of blocks of 16 x 16 weights (or of 16 biases) of which `rows` rows
 * are inputs. They begin at element `from` of s, the parameters at element `at`. */
static void finish_sums(const qn__cpu_pass *pass, const qn__cpu_layer *l, int is_weight,
                        uint32_t rows, size_t at, qn__cpu_sums *s, size_t from) {
    const size_t count = (size_t)rows * QN__PANEL;
    int64_t *kept = s->kept ? s->kept + at : NULL;
    if (kept)
        add_integers(count, integers_of(pass->worker, s, from, count), s->adds, kept);
    if (kept && s->more)
        return;
    float *const *slot = is_weight ? l->weight_slot : l->bias_slot;
    if (pass->update) {
        const qn__update own = qn__update_of(s->update, l->layer);
        const qn__program *p = pass->worker->program;
        const int decays = (is_weight ? qn__weights_decay : qn__others_decay)(p, l->layer);
        pass->worker->kernels->update(
            p, &own, decays, count, kept ? QN__SUMS_INT64 : s->kind,
            kept ? kept : begin_of(s, from), (is_weight ? l->weights : l->bias) + at,
            slot[0] ? slot[0] + at : NULL, slot[1] ? slot[1] + at : NULL, s->absmax);
        qn__cpu_average(pass->worker, &own, count, (is_weight ? l->weights : l->bias) + at, slot,
                        at);
        return;
    }
    add_integers(count, integers_of(pass->worker, s, from, count), 1,
                 (is_weight ? l->weight_sums : l->bias_sums) + at);
}

/* Writes the sums of a block to the outlet: a row of 16 inputs for each output. */
static void put_weights(const qn__cpu_pass *pass, const qn__cpu_layer *l, uint32_t block,
                        uint32_t rows, uint32_t panel, qn__cpu_sums *s, size_t from) {
    const uint32_t out = panel * QN__PANEL, left = qn__cpu_outputs(l) - out;
    const uint32_t columns = left < QN__PANEL ? left : QN__PANEL;
    const uint32_t depth = l->layer->depth;
    const uint64_t first = qn__program_sum(pass->worker->program, qn__layer_matrix(l->layer));
    int64_t *to = pass->outlet->words + first + (uint64_t)out * depth;
    if (block + 1 < qn__cpu_blocks(l))
        qn__cpu_fetch_rows(to + qn__cpu_first_of(l, block + 1), depth, columns,
                           qn__cpu_rows_of(l, block + 1), 1);
    to += qn__cpu_first_of(l, block);
    int64_t *sum = integers_of(pass->worker, s, from, (size_t)rows * QN__PANEL);
    int64_t had[QN__PANEL * QN__PANEL];
    if (s->adds) {
        if (columns < QN__PANEL)
            memset(had, 0, sizeof had);
        pass->worker->kernels->transpose(columns, rows, to, depth, had, QN__PANEL);
        add_integers((size_t)rows * QN__PANEL, had, 1, sum);
    }
    pass->worker->kernels->transpose(rows, columns, sum, QN__PANEL, to, depth);
}

/* Whether the sums of a layer go to the outlet. A pass that also updates has it for tied weights.
 */
static int goes_out(const qn__cpu_pass *pass, const qn__cpu_layer *l) {
    return pass->outlet && (!pass->update || l->layer->tied);
}

void qn__cpu_keep_weights(const qn__cpu_pass *pass, const qn__cpu_layer *l, uint32_t block,
                          uint32_t rows, uint32_t panel, qn__cpu_sums *s, size_t from) {
    const size_t at = ((size_t)panel * qn__cpu_blocks(l) + block) * QN__PANEL * QN__PANEL;
    if (goes_out(pass, l))
        put_weights(pass, l, block, rows, panel, s, from);
    else
        finish_sums(pass, l, 1, rows, at, s, from);
}

static void put_biases(const qn__cpu_pass *pass, const qn__cpu_layer *l, uint32_t panel,
                       qn__cpu_sums *s) {
    const uint32_t out = panel * QN__PANEL, left = qn__cpu_outputs(l) - out;
    add_integers(
        left < QN__PANEL ? left : QN__PANEL, integers_of(pass->worker, s, 0, QN__PANEL), s->adds,
        pass->outlet->words + qn__program_sum(pass->worker->program, l->layer->biases) + out);
}

void qn__cpu_keep_biases(const qn__cpu_pass *pass, const qn__cpu_layer *l, uint32_t panel,
                         qn__cpu_sums *s) {
    if (goes_out(pass, l))
        put_biases(pass, l, panel, s);
    else
        finish_sums(pass, l, 0, 1, (size_t)panel * QN__PANEL, s, 0);
}

/* Of `count` items from `first` on. */
static void bias_partials(const qn__cpu_pass *pass, const qn__cpu_layer *l, uint32_t out,
                          uint32_t first, uint32_t count, float *partial) {
    const qn__worker *w = pass->worker;
    const size_t at = out * l->out_stride + (size_t)first * QN__PANEL;
    const float *errors = l->kind->unrolls ? qn__cpu_unrolled(l) : l->error;
    if (l->pool)
        qn__cpu_picked_partials(pass, l, out, first, count, partial);
    else
        w->kernels->bias_partials(count, w->program->grain, l->out_pixels,
                                  (size_t)pass->batch->items * QN__PANEL, errors + at, partial);
}

int qn__cpu_bias_task(const qn__cpu_pass *pass, uint32_t layer, uint32_t out) {
    const qn__worker *w = pass->worker;
    const uint32_t grain = w->program->grain;
    const uint64_t most =
        (uint64_t)grain * (QN__OUT_GROUP * QN__PANEL); /* the capacity of the buffer */
    const qn__cpu_layer *l = &w->layer[layer];
    const uint32_t items = pass->batch->items;
    qn__cpu_sums_space buffer;
    qn__cpu_sums s = {.narrow = buffer.narrow, .wide = buffer.wide, .partial = buffer.partial};
    int bad = 0;
    if (l->layer->no_biases)
        return 0;
    s.kind = QN__SUMS_INT64;
    s.shift = 0;
    s.update = pass->update;
    s.absmax = NULL;
    memset(s.wide, 0, QN__PANEL * sizeof *s.wide);
    const uint32_t grains = (items - 1) / grain + 1;
    if (l->summed)
        bad = qn__cpu_add_partials(w, grains, QN__PANEL,
                                   l->bias_partials + (size_t)out * grains * QN__PANEL, s.wide);
    for (uint64_t i = 0; i < items && !l->summed; i += most) {
        const uint32_t n = (uint32_t)(items - i < most ? items - i : most);
        bias_partials(pass, l, out, (uint32_t)i, n, s.partial);
        bad |= qn__cpu_add_partials(w, (n - 1) / grain + 1, QN__PANEL, s.partial, s.wide);
    }
    if (!bad)
        qn__cpu_keep_biases(pass, l, out, &s);
    return bad;
}

int qn__cpu_take_walk(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase,
                      qn__cpu_walk_task *task) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const uint32_t groups = qn__cpu_groups(l);
    const qn__cpu_grid grid = {groups, l->tasks, 1};
    uint32_t group, row;
    if (!qn__cpu_take(w, thread, phase, grid, &group, &row))
        return 0;
    group = pass->outlet ? groups - 1 - group : group;
    const uint32_t out = group * l->group, beside = l->out_panels - out;
    *task = (qn__cpu_walk_task){group, row, out, beside < l->group ? beside : l->group};
    return 1;
}

void qn__cpu_end_walk(const qn__cpu_pass *pass, int thread, uint32_t layer,
                      const qn__cpu_walk_task *task, int bad) {
    const uint32_t panels = task->row == 0 && !pass->outlet ? task->panels : 0;
    for (uint32_t p = task->out; p < task->out + panels; ++p)
        bad |= qn__cpu_bias_task(pass, layer, p);
    if (bad)
        qn__cpu_failed(&pass->worker->core[thread], layer);
    if (pass->outlet)
        qn__cpu_progress(pass, thread, layer, task->group);
}
