/* Sums to and from other workers: reporting the complete part of a share, fetching the sums, and
 * the update by the totals of all; and the work after all weights have changed. */
#include "base/system/clock.h"
#include "device/cpu/worker/cpu_gradient_sums.h"
#include "device/cpu/worker/cpu_table.h"
#include "device/cpu/worker/cpu_worker.h"
#include "num/sums.h"
#include <string.h>

enum {
    BLOCK = QN__PANEL * QN__PANEL,
    TASK_PANELS = 4 * QN__STRIP, /* panels of inputs in one task */
    ALONE = 1 << 15 /* parameters that one core updates in less time than it takes to wake others */
};

/* ------------------------------------------------------------------------------------- progress */

void qn__cpu_begin_progress(qn__worker *w) {
    const uint32_t layers = w->program->layers;
    for (uint32_t l = 0; l < layers; ++l)
        for (uint32_t g = 0; g <= qn__cpu_groups(&w->layer[l]); ++g)
            atomic_store_explicit(&w->layer[l].done[g], 0, memory_order_relaxed);
    w->progress.next_layer = layers;
    w->progress.next_group = qn__cpu_groups(&w->layer[layers - 1]);
    w->progress.told = qn__program_sums(w->program);
}

/* Whether the next group is complete; then also the first of its words. A layer that does not train
 * has none. */
static int is_complete(const qn__worker *w, uint64_t *first) {
    const qn__cpu_layer *l = &w->layer[w->progress.next_layer - 1];
    const uint32_t groups = qn__cpu_groups(l), group = w->progress.next_group;
    if (!qn__program_trains(w->program, w->progress.next_layer - 1))
        return 1;
    const uint32_t tasks = l->vectors == 0 && !l->layer->tied ? 0
                           : group == groups                  ? l->out_panels
                                                              : l->tasks;
    if (atomic_load_explicit(&l->done[group], memory_order_acquire) < tasks)
        return 0;
    *first = qn__program_sum(w->program, group == groups || l->layer->tied
                                             ? l->layer->biases
                                             : l->layer->weights + (uint64_t)group * l->group *
                                                                       QN__PANEL * l->layer->depth);
    return 1;
}

void qn__cpu_progress(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t group) {
    qn__worker *w = pass->worker;
    if (!pass->outlet->ready)
        return;
    atomic_fetch_add_explicit(&w->layer[layer].done[group], 1, memory_order_release);
    if (thread != 0)
        return;
    uint64_t first = w->progress.told;
    while (w->progress.next_layer > w->program->frozen && is_complete(w, &first)) {
        if (w->progress.next_group > 0)
            --w->progress.next_group;
        else if (--w->progress.next_layer > w->program->frozen)
            w->progress.next_group = qn__cpu_groups(&w->layer[w->progress.next_layer - 1]);
    }
    if (first < w->progress.told)
        pass->outlet->ready(pass->outlet->user, first, w->progress.told - first);
    w->progress.told = first;
}

/* ---------------------------------------------------------------------------- out of the panels */

/* A block of weights, possibly cut at the border, in both layouts. */
typedef struct block {
    size_t panels;          /* offset in panels */
    uint64_t sum;           /* where that of its first weight is among all */
    uint32_t rows, columns; /* inputs, outputs */
} block;

static block block_at(const qn__worker *w, const qn__cpu_layer *l, uint32_t panel, uint32_t in) {
    const uint32_t out = panel * QN__PANEL, left = qn__cpu_outputs(l) - out;
    const uint64_t first = qn__program_sum(w->program, qn__layer_matrix(l->layer));
    return (block){((size_t)panel * qn__cpu_blocks(l) + in) * BLOCK,
                   first + (uint64_t)out * l->layer->depth + qn__cpu_first_of(l, in),
                   qn__cpu_rows_of(l, in), left < QN__PANEL ? left : QN__PANEL};
}

static void collect_block(const qn__cpu_pass *pass, const qn__cpu_layer *l, uint32_t panel,
                          uint32_t in) {
    const block b = block_at(pass->worker, l, panel, in);
    int64_t transposed[BLOCK], *sums = l->weight_sums + b.panels;
    pass->worker->kernels->transpose(b.rows, b.columns, sums, QN__PANEL, transposed, QN__PANEL);
    for (uint32_t o = 0; o < b.columns; ++o)
        for (uint32_t k = 0; k < b.rows; ++k)
            pass->into[b.sum + (uint64_t)o * l->layer->depth + k] += transposed[o * QN__PANEL + k];
    memset(sums, 0, BLOCK * sizeof *sums);
}

static void collect_biases(const qn__cpu_pass *pass, const qn__cpu_layer *l, uint32_t panel) {
    for (uint32_t i = 0; i < qn__cpu_pieces(l); ++i) {
        const qn__cpu_piece p = qn__cpu_piece_at(l, panel, i);
        int64_t *sums = l->bias_sums + p.at;
        for (uint32_t o = 0; o < p.columns; ++o)
            pass->into[qn__program_sum(pass->worker->program, p.canonical) + o] += sums[o];
        memset(sums, 0, QN__PANEL * sizeof *sums);
    }
}

/* -------------------------------------------------------------------------------- the update */

/* Padding beyond the last output gets sums of 0 and stays 0. */
static void update_block(const qn__cpu_pass *pass, const qn__cpu_layer *l, uint32_t panel,
                         uint32_t in) {
    const qn__worker *w = pass->worker;
    const block b = block_at(pass->worker, l, panel, in);
    const qn__update own = qn__update_of(pass->update, l->layer);
    int64_t sums[BLOCK];
    if (b.columns < QN__PANEL)
        memset(sums, 0, sizeof sums);
    if (in + 1 < qn__cpu_blocks(l)) {
        const block next = block_at(w, l, panel, in + 1);
        qn__cpu_fetch_rows(pass->totals + next.sum, l->layer->depth, next.columns, next.rows, 0);
    }
    w->kernels->transpose(b.columns, b.rows, pass->totals + b.sum, l->layer->depth, sums,
                          QN__PANEL);
    w->kernels->update(w->program, &own, qn__weights_decay(w->program, l->layer),
                       (size_t)b.rows * QN__PANEL, QN__SUMS_INT64, sums, l->weights + b.panels,
                       w->slots > 0 ? l->weight_slot[0] + b.panels : NULL,
                       w->slots > 1 ? l->weight_slot[1] + b.panels : NULL, NULL);
    qn__cpu_average(w, &own, (size_t)b.rows * QN__PANEL, l->weights + b.panels, l->weight_slot,
                    b.panels);
}

static void update_biases(const qn__cpu_pass *pass, const qn__cpu_layer *l, uint32_t panel) {
    for (uint32_t i = 0; i < qn__cpu_pieces(l); ++i) {
        const qn__cpu_piece p = qn__cpu_piece_at(l, panel, i);
        int64_t sums[QN__PANEL] = {0};
        memcpy(sums, pass->totals + qn__program_sum(pass->worker->program, p.canonical),
               p.columns * sizeof *sums);
        qn__cpu_update_piece(pass->worker, pass->update, l, &p, sums);
    }
}

/* ------------------------------------------------------------------------------------ all blocks
 */

/* In integer arithmetic: packs the new weights of a task. */
static void new_weights(const qn__cpu_pass *pass, const qn__cpu_layer *l, uint32_t panel,
                        uint32_t first, uint32_t end) {
    qn__worker *w = pass->worker;
    const uint32_t layer = (uint32_t)(l - w->layer), strip = first / QN__STRIP;
    const uint32_t strips = (end - first + QN__STRIP - 1) / QN__STRIP;
    for (uint32_t s = strip; s < strip + strips; ++s) {
        const uint32_t in = s * QN__STRIP, left = qn__cpu_blocks(l) - in;
        uint32_t *absmax = qn__cpu_strip_absmax(l, panel, s);
        memset(absmax, 0, QN__PANEL * sizeof *absmax);
        w->kernels->absmax_columns((left < QN__STRIP ? left : QN__STRIP) * QN__PANEL,
                                   l->weights + ((size_t)panel * qn__cpu_blocks(l) + in) * BLOCK,
                                   absmax);
        qn__cpu_strip_changed(w, layer, panel, s);
    }
    qn__cpu_count_strips(w, layer, panel / QN__OUT_GROUP, strips);
}

static void one_task(const qn__cpu_pass *pass, const qn__cpu_layer *l, uint32_t panel,
                     uint32_t row) {
    const uint32_t first = row * TASK_PANELS;
    const uint32_t left = qn__cpu_blocks(l) - first;
    const uint32_t end = first + (left < TASK_PANELS ? left : TASK_PANELS);
    for (uint32_t in = first; in < end; ++in)
        if (pass->into)
            collect_block(pass, l, panel, in);
        else if (pass->totals)
            update_block(pass, l, panel, in);
    if (!pass->into && qn__cpu_is_dense_integer(pass->worker, l))
        new_weights(pass, l, panel, first, end);
    if (row == 0 && pass->into)
        collect_biases(pass, l, panel);
    else if (row == 0 && pass->totals)
        update_biases(pass, l, panel);
}

static void all_tasks(void *context, int thread) {
    const qn__cpu_pass *pass = context;
    qn__worker *w = pass->worker;
    const double begun = qn__now();
    /* Weights that do not train have no sums, but are packed. */
    for (uint32_t i = 0; i < w->program->layers; ++i) {
        const qn__cpu_layer *l = &w->layer[i];
        if ((pass->into || pass->totals) && !qn__program_trains(w->program, i))
            continue;
        if (pass->tied && !l->layer->tied)
            continue;
        const uint32_t rows = (qn__cpu_blocks(l) + TASK_PANELS - 1) / TASK_PANELS;
        const uint32_t least = l->vectors > 0; /* row 0 has them */
        const qn__cpu_grid grid = {l->out_panels, rows > least ? rows : least, 1};
        for (uint32_t panel, row; qn__cpu_take(w, thread, i, grid, &panel, &row);)
            one_task(pass, l, panel, row);
    }
    w->core[thread].busy += qn__now() - begun;
}

static void run(qn__cpu_pass *pass) {
    qn__worker *w = pass->worker;
    qn__cpu_begin_phases(w);
    if (w->program->parameters < ALONE)
        all_tasks(pass, 0);
    else
        qn__pool_run(w->pool, all_tasks, pass);
}

/* 0: no grains were ever trained. */
static int has_sums(const qn__worker *w) {
    for (uint32_t i = 0; i < w->program->layers; ++i)
        if (w->layer[i].weight_sums)
            return 1;
    return 0;
}

qn_status qn__cpu_collect(qn__worker *w, int64_t *sums, qn__tally *tally, qn_error *err) {
    qn__cpu_pass pass = {.worker = w, .into = sums};
    if (w->takes_lists)
        qn__cpu_lists_collect(w, sums);
    else if (has_sums(w))
        run(&pass);
    const int failed = qn__tally_add(tally, &w->losses.tally);
    w->losses.tally = (qn__tally){0};
    return failed ? qn__fail(err, QN_NUMERIC, "the sum of the losses became too large") : QN_OK;
}

qn_status qn__cpu_update(qn__worker *w, const qn__update *update, const int64_t *sums,
                         qn_error *err) {
    qn__cpu_pass pass = {.worker = w, .update = update, .totals = sums};
    (void)err;
    w->derived.stale = w->derived.stale ? w->derived.stale : 1;
    w->derived.folded = 0;
    run(&pass);
    return QN_OK;
}

void qn__cpu_update_tied(qn__worker *w, const qn__update *update, const int64_t *sums) {
    qn__cpu_pass pass = {.worker = w, .update = update, .totals = sums, .tied = 1};
    run(&pass);
}

void qn__cpu_pack_weights(qn__worker *w) {
    qn__cpu_pass pass = {.worker = w};
    w->derived.stale = 2;
    qn__cpu_begin_changes(w);
    run(&pass);
}
