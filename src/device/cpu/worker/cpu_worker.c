/* Opens and closes a CPU worker; loads and saves its parameters. */
#include "device/cpu/worker/cpu_worker.h"

#include "base/memory.h"
#include "device/cpu/cpu_isa.h"
#include "device/cpu/cpu_selftest.h"
#include "device/cpu/worker/cpu_alone.h"
#include "num/sums.h"
#include <string.h>

static int threads_of(const qn_compute *compute) {
    return compute->threads ? compute->threads : qn__cores();
}

static void describe(qn__worker *w, const qn_compute *compute, const qn__program *program,
                     const qn__cpu_isa *isa) {
    w->program = program;
    w->kernels = isa->kernels;
    w->intgemm = isa->intgemm;
    w->threads = threads_of(compute);
    w->bits = qn__arith_bits(program->arith);
    w->slots = qn__program_slots(program);
    w->takes_lists = qn__cpu_takes_lists(program);
}

/* Both layers of tied weights make sums of them, so no task of the gradient has the whole sum.
 * Those of float32 are updated after the pass, all others in it. In integer arithmetic the update
 * packs the new weights, and all of them wait. */
static uint64_t step_sums(const qn__program *program) {
    const uint64_t tied = qn__program_tied(program);
    return tied && qn__arith_bits(program->arith) ? qn__program_sums(program) : tied;
}

/* Of the space for predictions, which may be larger, only what a training uses. */
uint64_t qn__cpu_memory(const qn_compute *compute, const qn__program *program, uint32_t items) {
    qn__worker w = {0};
    qn__program own = *program;
    own.batch = own.part = items ? items : 1;
    own.grain = own.grain < own.batch ? own.grain : own.batch;
    const qn__cpu_isa *isa = qn__cpu_isa_find(compute->isa);
    describe(&w, compute, &own, isa ? isa : qn__cpu_isa_find(NULL));
    w.capacity = (size_t)items + 1;
    const size_t bytes = qn__cpu_count_memory(&w);
    return bytes == SIZE_MAX ? UINT64_MAX : bytes + step_sums(program) * sizeof *w.step_sums;
}

/* Host jobs need threads only. */
static qn_status open_plain(qn__worker *w, const qn_compute *compute, qn_error *err) {
    w->threads = threads_of(compute);
    w->core = qn__alloc((uint64_t)w->threads, sizeof *w->core, err);
    return w->core ? qn__pool_create(w->threads, 0, &w->pool, err) : QN_MEMORY;
}

static qn_status open_network(qn__worker *w, const qn_compute *compute, const qn__program *program,
                              qn_error *err) {
    const qn__cpu_isa *isa = qn__cpu_isa_find(compute->isa);
    qn_status status = qn__cpu_selftest(isa, err);
    if (status != QN_OK)
        return status;
    describe(w, compute, program, isa);
    /* A picture may take a megabyte in each layer: apply takes a batch of them at a time. */
    const uint32_t part = qn__program_part(program);
    w->capacity = qn__program_window(program) ? part : qn__apply_space(program);
    if (part > w->capacity)
        w->capacity = part;
    ++w->capacity; /* for the row that separates panels */
    status = qn__pool_create(w->threads, 0, &w->pool, err);
    return status == QN_OK ? qn__cpu_allocate(w, err) : status;
}

qn_status qn__cpu_open(uint32_t index, const qn_compute *compute, const qn__program *program,
                       qn__worker **out, qn_error *err) {
    (void)index;
    *out = NULL;
    qn_status status = qn__cpu_check(compute, err);
    if (status != QN_OK)
        return status;
    qn__worker *w = qn__alloc(1, sizeof *w, err);
    if (!w)
        return QN_MEMORY;
    status = program ? open_network(w, compute, program, err) : open_plain(w, compute, err);
    if (status != QN_OK) {
        qn__cpu_close(w);
        return status;
    }
    *out = w;
    return QN_OK;
}

void qn__cpu_close(qn__worker *w) {
    if (!w)
        return;
    qn__cpu_alone_free(w);
    qn__pool_destroy(w->pool);
    qn__cpu_lists_free(w);
    for (uint32_t l = 0; w->layer && l < w->program->layers; ++l) {
        qn__free(w->layer[l].weight_sums);
        qn__free(w->layer[l].bias_sums);
    }
    qn__free(w->losses.narrow_sums);
    qn__free(w->step_sums);
    qn__cpu_release(w);
    qn__free(w);
}

/* Position of weight (output o, input k) in panels. */
static size_t place(const qn__cpu_layer *l, uint32_t o, uint32_t k) {
    const uint32_t row = k % l->weight_channels;
    const size_t block = (size_t)k / l->weight_channels * l->weight_panels + row / QN__PANEL;
    const size_t at = (size_t)(o / QN__PANEL) * qn__cpu_blocks(l) + block;
    return (at * QN__PANEL + row % QN__PANEL) * QN__PANEL + o % QN__PANEL;
}

void qn__cpu_pack(const qn__cpu_layer *l, const float *weights, const float *bias, float *to,
                  float *to_bias) {
    const uint32_t outputs = qn__cpu_outputs(l), depth = l->layer->depth;
    for (uint32_t o = 0; o < outputs; ++o)
        for (uint32_t k = 0; k < depth; ++k)
            to[place(l, o, k)] = weights[(size_t)o * depth + k];
    for (uint32_t i = 0; i < l->out_panels * qn__cpu_pieces(l); ++i) {
        const qn__cpu_piece p = qn__cpu_piece_at(l, i % l->out_panels, i / l->out_panels);
        memcpy(to_bias + p.at, bias + (p.canonical - l->layer->biases), p.columns * sizeof *bias);
    }
}

void qn__cpu_unpack(const qn__cpu_layer *l, const float *from, const float *from_bias,
                    float *weights, float *bias) {
    const uint32_t outputs = qn__cpu_outputs(l), depth = l->layer->depth;
    for (uint32_t o = 0; o < outputs; ++o)
        for (uint32_t k = 0; k < depth; ++k)
            weights[(size_t)o * depth + k] = from[place(l, o, k)];
    for (uint32_t i = 0; i < l->out_panels * qn__cpu_pieces(l); ++i) {
        const qn__cpu_piece p = qn__cpu_piece_at(l, i % l->out_panels, i / l->out_panels);
        memcpy(bias + (p.canonical - l->layer->biases), from_bias + p.at, p.columns * sizeof *bias);
    }
}

static void clear_sums(qn__worker *w) {
    memset(&w->losses.tally, 0, sizeof w->losses.tally);
    qn__cpu_lists_forget(w);
    for (uint32_t i = 0; i < w->program->layers; ++i) {
        const qn__cpu_layer *l = &w->layer[i];
        const size_t outputs = (size_t)l->out_panels * QN__PANEL;
        if (!l->weight_sums)
            continue;
        memset(l->weight_sums, 0, outputs * qn__cpu_blocks(l) * QN__PANEL * sizeof *l->weight_sums);
        memset(l->bias_sums, 0, l->vectors * l->vector * sizeof *l->bias_sums);
    }
}

qn_status qn__cpu_load(qn__worker *w, const qn__state *state, qn_error *err) {
    (void)err;
    for (uint32_t i = 0; i < w->program->layers; ++i) {
        const qn__cpu_layer *l = &w->layer[i];
        const uint64_t at = qn__layer_matrix(l->layer), bias = l->layer->biases;
        qn__cpu_pack(l, state->parameters + at, state->parameters + bias, l->weights, l->bias);
        for (uint32_t s = 0; s < w->slots && state->slot[s]; ++s)
            if (qn__cpu_has_slot(w, i, s))
                qn__cpu_pack(l, state->slot[s] + at, state->slot[s] + bias, l->weight_slot[s],
                             l->bias_slot[s]);
    }
    clear_sums(w);
    w->derived.folded = 0;
    if (w->bits)
        qn__cpu_pack_weights(w);
    return QN_OK;
}

qn_status qn__cpu_save(qn__worker *w, qn__state *state, qn_error *err) {
    (void)err;
    for (uint32_t i = 0; i < w->program->layers; ++i) {
        const qn__cpu_layer *l = &w->layer[i];
        const uint64_t at = qn__layer_matrix(l->layer), bias = l->layer->biases;
        qn__cpu_unpack(l, l->weights, l->bias, state->parameters + at, state->parameters + bias);
        for (uint32_t s = 0; s < w->slots && state->slot[s]; ++s)
            if (qn__cpu_has_slot(w, i, s))
                qn__cpu_unpack(l, l->weight_slot[s], l->bias_slot[s], state->slot[s] + at,
                               state->slot[s] + bias);
    }
    return QN_OK;
}

/* Sums are allocated when the worker first shares a step with others. */
static qn_status need_sums(qn__worker *w, qn_error *err) {
    for (uint32_t i = 0; i < w->program->layers; ++i) {
        qn__cpu_layer *l = &w->layer[i];
        const size_t outputs = (size_t)l->out_panels * QN__PANEL;
        if (l->weight_sums || l->vectors == 0 || !qn__program_trains(w->program, i))
            continue;
        l->bias_sums = qn__alloc(l->vectors * l->vector, sizeof(int64_t), err);
        l->weight_sums = qn__alloc(outputs * qn__cpu_blocks(l) * QN__PANEL, sizeof(int64_t), err);
        if (!l->weight_sums || !l->bias_sums)
            return QN_MEMORY;
    }
    return QN_OK;
}

static qn_status need_narrow_sums(qn__worker *w, qn_error *err) {
    if (!w->losses.narrow_sums)
        w->losses.narrow_sums = qn__alloc(qn__cpu_narrow_space(w) * (size_t)w->threads,
                                          sizeof *w->losses.narrow_sums, err);
    return w->losses.narrow_sums ? QN_OK : QN_MEMORY;
}

/* The items of some grains. */
static qn__batch part_of(const qn__worker *w, const qn__batch *batch, uint32_t first,
                         uint32_t count) {
    const uint32_t grain = w->program->grain, from = first * grain;
    const uint32_t to =
        batch->items - from < count * (uint64_t)grain ? batch->items : from + count * grain;
    return qn__batch_part(batch, from, to - from);
}

static qn_status need_step_sums(qn__worker *w, qn_error *err) {
    if (!w->step_sums)
        w->step_sums = qn__alloc(step_sums(w->program), sizeof *w->step_sums, err);
    return w->step_sums ? QN_OK : QN_MEMORY;
}

static qn_status train_grains(qn__worker *w, const qn__batch *part, qn_error *err) {
    qn_status status = w->takes_lists ? qn__cpu_lists_need(w, err) : need_sums(w, err);
    if (status == QN_OK && w->slices.lends)
        status = need_step_sums(w, err);
    if (status != QN_OK)
        return status;
    qn__cpu_pass pass = {.worker = w, .batch = part, .training = 1};
    pass.narrow = qn__cpu_is_narrow(w, part);
    if (pass.narrow && need_narrow_sums(w, err) != QN_OK)
        return QN_MEMORY;
    return qn__cpu_run(&pass, &w->losses.tally, err);
}

/* Sums of lists are not in the order of the words before they are complete. */
static qn_status train_lists(qn__worker *w, const qn__batch *part, int64_t *words, qn__tally *tally,
                             qn_error *err) {
    const qn_status status = train_grains(w, part, err);
    memset(words, 0, (size_t)qn__program_sums(w->program) * sizeof *words);
    return status == QN_OK ? qn__cpu_collect(w, words, tally, err) : status;
}

static qn_status train_in_place(qn__worker *w, const qn__batch *part, const qn__outlet *sums,
                                qn_error *err) {
    if (w->takes_lists)
        return train_lists(w, part, sums->words, sums->tally, err);
    qn__cpu_pass pass = {.worker = w, .batch = part, .outlet = sums, .training = 1};
    qn__cpu_begin_progress(w);
    return qn__cpu_run(&pass, sums->tally, err);
}

static qn_status step_on_lists(qn__worker *w, const qn__batch *batch, const qn__update *update,
                               qn__tally *tally, qn_error *err) {
    int64_t *words = qn__alloc(qn__program_sums(w->program), sizeof *words, err);
    qn_status status = words ? train_lists(w, batch, words, tally, err) : QN_MEMORY;
    if (status == QN_OK)
        status = qn__cpu_update(w, update, words, err);
    qn__free(words);
    return status;
}

static qn_status step_by_sums(qn__worker *w, const qn__batch *batch, const qn__batch *next,
                              const qn__update *update, qn__tally *tally, qn_error *err) {
    if (need_step_sums(w, err) != QN_OK)
        return QN_MEMORY;
    const qn__outlet own = {.words = w->step_sums, .tally = tally};
    qn__cpu_pass pass = {.worker = w, .batch = batch, .next = next, .outlet = &own, .training = 1};
    pass.update = w->bits ? NULL : update;
    const qn_status status = qn__cpu_run(&pass, tally, err);
    if (status == QN_OK && w->bits)
        return qn__cpu_update(w, update, w->step_sums, err);
    if (status == QN_OK)
        qn__cpu_update_tied(w, update, w->step_sums);
    return status;
}

qn_status qn__cpu_train_step(qn__worker *w, const qn__batch *batch, const qn__batch *next,
                             const qn__update *update, qn__tally *tally, qn_error *err) {
    if (w->takes_lists)
        return step_on_lists(w, batch, update, tally, err);
    if (qn__program_tied(w->program))
        return step_by_sums(w, batch, next, update, tally, err);
    qn__cpu_pass pass = {
        .worker = w, .batch = batch, .next = next, .update = update, .training = 1};
    return qn__cpu_run(&pass, tally, err);
}

/* The items of the batch from `from` on. An output that is not finite is more useful to report than
 * a loss. So the pieces after one whose loss fails are computed, too. */
static qn_status apply(qn__worker *w, const qn__job *job, uint32_t from, uint32_t items,
                       qn__tally *tally, qn_error *err) {
    const uint32_t capacity = (uint32_t)w->capacity - 1, grain = w->program->grain;
    const uint32_t most = items <= capacity ? items : capacity / grain * grain;
    qn_status loss = QN_OK;
    uint32_t at = 0;
    /* Losses of a grain are added in one pass. */
    if (!tally || !qn__feed_labelled(job->batch->feed))
        at = qn__cpu_apply_alone(w, job, from, items);
    for (; at < items; at += most) {
        qn__applied own = qn__applied_from(w->program, job->applied, from + at);
        const uint32_t count = items - at < most ? items - at : most;
        const qn__batch part = qn__batch_part(job->batch, from + at, count);
        qn__cpu_pass pass = {.worker = w, .batch = &part, .applied = &own};
        const qn_status status = qn__cpu_run(&pass, NULL, err);
        if (status != QN_OK)
            return status;
        if (loss == QN_OK)
            loss = qn__cpu_add_tally(&pass, tally, err);
    }
    return loss;
}

qn_status qn__cpu_compute(qn__worker *w, const qn__job *job, uint32_t first, uint32_t count,
                          const qn__outlet *sums, qn_error *err) {
    if (job->kind == QN__JOB_HOST)
        return qn__cpu_host(w, job->host, first, count, sums, err);
    const qn__batch part = part_of(w, job->batch, first, count);
    if (job->kind == QN__JOB_APPLY)
        return apply(w, job, first * w->program->grain, part.items, sums->tally, err);
    return sums->words ? train_in_place(w, &part, sums, err) : train_grains(w, &part, err);
}

int qn__cpu_busy(const qn__worker *w, double *seconds, int capacity) {
    for (int t = 0; t < w->threads && t < capacity; ++t)
        seconds[t] = w->core[t].busy;
    return w->threads;
}
