/* Opens and closes a CPU worker; loads and saves its parameters. */
#include "device/cpu/worker/cpu_worker.h"

#include "base/memory.h"
#include "device/cpu/cpu_isa.h"
#include "device/cpu/cpu_selftest.h"
#include "device/cpu/worker/cpu_table.h"
#include "num/sums.h"
#include <string.h>

/* An arena in the worker's one block of memory. With base NULL it only counts bytes. */
typedef struct arena {
    char *base;
    size_t used;
    int overflow;
} arena;

static void *carve(arena *a, size_t count, size_t size) {
    size_t bytes, end;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX - 128 ||
        __builtin_add_overflow(a->used, (bytes + 63) / 64 * 64 + 64, &end)) {
        a->overflow = 1;
        return NULL;
    }
    void *at = a->base ? a->base + a->used : NULL;
    a->used = end;
    return at;
}

static void carve_rows(arena *a, const qn__worker *w, uint32_t k, qn__cpu_rows *rows) {
    const size_t blocks = (w->room + QN__PANEL - 1) / QN__PANEL;
    rows->left = carve(a, blocks, w->intgemm->size(w->bits, k));
    rows->factor = carve(a, w->room, sizeof(float));
    rows->absmax = carve(a, w->room, sizeof(uint32_t));
}

static void carve_plan(arena *a, const qn__program *p, qn__cpu_plan *plan) {
    const size_t items = p->batch, grains = (items + p->grain - 1) / p->grain;
    plan->grain = carve(a, grains, sizeof *plan->grain);
    plan->group = carve(a, grains, sizeof *plan->group);
    plan->list = carve(a, items, sizeof *plan->list);
    plan->input_inverse = carve(a, items, sizeof(float));
    plan->error_inverse = carve(a, items, sizeof(float));
    plan->input_doubled = carve(a, items, 1);
    plan->error_doubled = carve(a, items, 1);
}

/* The width with the largest operands of sums over items. */
static int widest_items(const qn__worker *w) {
    return w->bits | (w->intgemm->left_raw ? QN__WIDE : 0);
}

/* Layer 0 uses the worker's two sets of inputs. */
static void carve_intgemm(arena *a, const qn__worker *w, uint32_t index) {
    const qn__program *p = w->program;
    const qn__intgemm *intgemm = w->intgemm;
    qn__cpu_layer *l = &w->layer[index];
    qn__cpu_intgemm *packed = &l->intgemm;
    const size_t outputs = (size_t)l->out_panels * QN__PANEL;
    packed->right_size = intgemm->size(w->bits, l->layer->in);
    packed->transposed_size = intgemm->size(w->bits, l->layer->out);
    packed->right = carve(a, l->out_panels, packed->right_size);
    packed->transposed = index ? carve(a, l->in_panels, packed->transposed_size) : NULL;
    packed->factor = carve(a, outputs, sizeof(float));
    packed->inverse = carve(a, outputs, sizeof(float));
    packed->strip_absmax = carve(a, outputs * qn__cpu_strips(l), sizeof(uint32_t));
    packed->changed = carve(a, qn__cpu_groups(l), sizeof(qn__cpu_counter));
    if (index)
        carve_rows(a, w, l->layer->in, &packed->input);
    carve_rows(a, w, l->layer->out, &packed->error);
    packed->operands = qn__cpu_operands(intgemm, widest_items(w), p->batch, p->grain);
    packed->input_items = carve(a, l->in_panels, packed->operands);
    packed->error_items = carve(a, l->out_panels, packed->operands);
    carve_plan(a, p, &packed->plan);
}

static void carve_layer(arena *a, qn__worker *w, uint32_t index) {
    qn__cpu_layer *l = &w->layer[index];
    const size_t weights = (size_t)l->in_panels * l->out_panels * QN__PANEL * QN__PANEL;
    const size_t outputs = (size_t)l->out_panels * QN__PANEL;
    l->weights = carve(a, weights, sizeof(float));
    l->bias = carve(a, outputs, sizeof(float));
    for (uint32_t s = 0; s < w->slots; ++s) {
        l->weight_slot[s] = carve(a, weights, sizeof(float));
        l->bias_slot[s] = carve(a, outputs, sizeof(float));
    }
    if (w->bits)
        carve_intgemm(a, w, index);
    l->blocks = carve(a, (size_t)l->in_panels + l->out_panels, sizeof(size_t));
    l->transposed_blocks = carve(a, l->out_panels, sizeof(size_t));
    l->output = carve(a, outputs * w->room, sizeof(float));
    l->error = carve(a, outputs * w->room, sizeof(float));
    l->dropped = l->layer->drop_threshold ? carve(a, outputs * w->room, sizeof(float)) : NULL;
}

/* Panels of 16 x 16 weights that a core transposes at a time. */
static size_t transposed_panels(const qn__worker *w) {
    const qn__cpu_layer *last = &w->layer[w->program->layers - 1];
    size_t panels = 1;
    for (uint32_t l = 0; l < w->program->layers; ++l)
        panels = w->layer[l].out_panels > panels ? w->layer[l].out_panels : panels;
    const size_t fused = !w->bits && last->layer->out <= QN__FUSE_OUTPUTS
                             ? (size_t)last->in_panels * last->out_panels
                             : 0;
    return fused > panels ? fused : panels;
}

/* Memory for one block of inputs or errors of the last layer, or for the operands of one group of
 * grains; and for a plan of the gradient. */
static void carve_lists(arena *a, const qn__worker *w, qn__cpu_core *core) {
    const qn__program *p = w->program;
    const qn__intgemm *intgemm = w->intgemm;
    const qn__layer *last = &p->layer[p->layers - 1];
    const size_t in = intgemm->size(w->bits, last->in), out = intgemm->size(w->bits, last->out);
    const size_t block = in > out ? in : out;
    const size_t operands = (1 + QN__OUT_GROUP) * intgemm->size(widest_items(w), p->batch);
    core->operand = carve(a, block > operands ? block : operands, 1);
    carve_plan(a, p, &core->plan);
}

/* The largest number of panels of a layer's inputs or outputs. */
static uint32_t most_panels(const qn__worker *w) {
    uint32_t most = 0;
    for (uint32_t l = 0; l < w->program->layers; ++l) {
        most = w->layer[l].in_panels > most ? w->layer[l].in_panels : most;
        most = w->layer[l].out_panels > most ? w->layer[l].out_panels : most;
    }
    return most;
}

static void carve_all(arena *a, qn__worker *w) {
    const uint32_t layers = w->program->layers;
    const size_t inputs = (size_t)w->layer[0].in_panels * QN__PANEL;
    const size_t outputs = (size_t)w->layer[layers - 1].out_panels * QN__PANEL;
    for (uint32_t l = 0; l < layers; ++l)
        carve_layer(a, w, l);
    for (int i = 0; i < 2; ++i) {
        const size_t tiles = qn__cpu_tiles((uint32_t)w->room, w->kernels->rows);
        w->inputs[i] = carve(a, inputs * w->room, sizeof(float));
        w->item[i] = carve(a, w->room, sizeof(uint64_t));
        w->input_blocks[i] = carve(a, w->layer[0].in_panels, sizeof(size_t));
        if (w->bits) {
            carve_rows(a, w, w->layer[0].layer->in, &w->rows[i]);
            w->rows[i].bytes = carve(a, (w->room + QN__PANEL - 1) / QN__PANEL,
                                     (size_t)w->layer[0].in_panels * QN__BYTE_PANEL);
            continue;
        }
        w->zeros[i].some = carve(a, (size_t)w->layer[0].in_panels * w->room, sizeof(uint16_t));
        w->zeros[i].list = carve(a, tiles * inputs, sizeof(uint32_t));
        w->zeros[i].count = carve(a, tiles, sizeof(uint32_t));
    }
    w->weight_blocks = carve(a, most_panels(w), sizeof(size_t));
    w->mean = carve(a, inputs, sizeof(float));
    w->inverse = carve(a, inputs, sizeof(float));
    w->digits = w->bits ? carve(a, 1, sizeof *w->digits) : NULL;
    w->loss = carve(a, w->room, sizeof(float));
    w->chosen = carve(a, w->room, sizeof(int32_t));
    w->label = carve(a, w->room, sizeof(int32_t));
    for (int t = 0; t < w->threads; ++t) {
        qn__cpu_core core = {0};
        core.scratch = carve(a, transposed_panels(w) * QN__PANEL * QN__PANEL, sizeof(float));
        core.rows = carve(a, 2 * outputs * QN__PANEL, sizeof(float));
        core.absmax_input = carve(a, layers + 1, sizeof(uint32_t));
        core.absmax_error = carve(a, layers + 1, sizeof(uint32_t));
        if (w->bits)
            carve_lists(a, w, &core);
        if (a->base)
            w->core[t] = core;
    }
}

static void connect(qn__worker *w) {
    const qn__program *p = w->program;
    for (size_t i = 0; i < most_panels(w); ++i)
        w->weight_blocks[i] = i * QN__PANEL * QN__PANEL;
    for (uint32_t l = 0; l < p->layers; ++l)
        for (size_t i = 0; i < w->layer[l].out_panels; ++i)
            w->layer[l].transposed_blocks[i] = i * w->layer[l].in_panels * QN__PANEL * QN__PANEL;
    for (uint32_t l = 1; l < p->layers; ++l)
        w->layer[l].input =
            w->layer[l - 1].dropped ? w->layer[l - 1].dropped : w->layer[l - 1].output;
    if (w->bits && p->scale != QN__SCALE_STANDARD)
        qn__cpu_make_digits(w->bits, p->scale, w->digits);
    if (p->scale == QN__SCALE_STANDARD) {
        memcpy(w->mean, p->mean, p->layer[0].in * sizeof *w->mean);
        memcpy(w->inverse, p->inverse, p->layer[0].in * sizeof *w->inverse);
    }
}

/* Allocates all memory of a worker whose threads and kernels are chosen. */
static qn_status allocate(qn__worker *w, qn_error *err) {
    const qn__program *p = w->program;
    w->layer = qn__alloc(p->layers, sizeof *w->layer, err);
    w->core = qn__alloc((size_t)w->threads, sizeof *w->core, err);
    w->counter = qn__alloc(qn__cpu_phases(p) * (size_t)w->threads, sizeof *w->counter, err);
    if (!w->layer || !w->core || !w->counter)
        return QN_MEMORY;
    size_t done = 0;
    for (uint32_t l = 0; l < p->layers; ++l) {
        w->layer[l].layer = &p->layer[l];
        w->layer[l].in_panels = (p->layer[l].in + QN__PANEL - 1) / QN__PANEL;
        w->layer[l].out_panels = (p->layer[l].out + QN__PANEL - 1) / QN__PANEL;
        done += qn__cpu_groups(&w->layer[l]) + 1;
    }
    w->done = qn__alloc(done, sizeof *w->done, err);
    if (!w->done)
        return QN_MEMORY;
    for (uint32_t l = p->layers; l-- > 0;)
        w->layer[l].done = w->done + (done -= qn__cpu_groups(&w->layer[l]) + 1);
    arena count = {0};
    carve_all(&count, w);
    if (count.overflow)
        return qn__fail_memory(err, SIZE_MAX, 1);
    w->block = qn__alloc_pages(count.used, err); /* a small batch does not use most of the room */
    if (!w->block)
        return QN_MEMORY;
    w->block_size = count.used;
    arena fill = {.base = w->block};
    carve_all(&fill, w);
    connect(w);
    return QN_OK;
}

qn_status qn__cpu_open(uint32_t index, const qn_compute *compute, const qn__program *program,
                       qn__worker **out, qn_error *err) {
    (void)index;
    *out = NULL;
    qn_status status = qn__cpu_check(compute, err);
    if (status != QN_OK)
        return status;
    const qn__cpu_isa *isa = qn__cpu_isa_find(compute->isa);
    status = qn__cpu_selftest(isa, err);
    if (status != QN_OK)
        return status;
    qn__worker *w = qn__alloc(1, sizeof *w, err);
    if (!w)
        return QN_MEMORY;
    w->program = program;
    w->kernels = isa->kernels;
    w->intgemm = isa->intgemm;
    w->threads = compute->threads ? compute->threads : qn__cores();
    w->bits = qn__arith_bits(program->arith);
    w->slots = qn__optimizer_slots(program->optimizer);
    w->room = qn__apply_room(program);
    if (program->batch > w->room)
        w->room = program->batch;
    ++w->room; /* for the row that separates panels */
    status = qn__pool_create(w->threads, 0, &w->pool, err);
    if (status == QN_OK)
        status = allocate(w, err);
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
    qn__pool_destroy(w->pool);
    for (uint32_t l = 0; w->layer && l < w->program->layers; ++l) {
        qn__free(w->layer[l].weight_sums);
        qn__free(w->layer[l].bias_sums);
    }
    qn__free_pages(w->block, w->block_size);
    qn__free(w->counter);
    qn__free(w->done);
    qn__free(w->core);
    qn__free(w->layer);
    qn__free(w);
}

/* Position of weight (output o, input k) in panels. */
static size_t place(const qn__cpu_layer *l, uint32_t o, uint32_t k) {
    const size_t row = (size_t)(o / QN__PANEL) * l->in_panels * QN__PANEL + k;
    return row * QN__PANEL + o % QN__PANEL;
}

void qn__cpu_pack(const qn__cpu_layer *l, const float *weights, const float *bias, float *to,
                  float *to_bias) {
    for (uint32_t o = 0; o < l->layer->out; ++o)
        for (uint32_t k = 0; k < l->layer->in; ++k)
            to[place(l, o, k)] = weights[(size_t)o * l->layer->in + k];
    memcpy(to_bias, bias, l->layer->out * sizeof *bias);
}

void qn__cpu_unpack(const qn__cpu_layer *l, const float *from, const float *from_bias,
                    float *weights, float *bias) {
    for (uint32_t o = 0; o < l->layer->out; ++o)
        for (uint32_t k = 0; k < l->layer->in; ++k)
            weights[(size_t)o * l->layer->in + k] = from[place(l, o, k)];
    memcpy(bias, from_bias, l->layer->out * sizeof *bias);
}

static void clear_sums(qn__worker *w) {
    memset(&w->tally, 0, sizeof w->tally);
    for (uint32_t i = 0; i < w->program->layers; ++i) {
        const qn__cpu_layer *l = &w->layer[i];
        const size_t outputs = (size_t)l->out_panels * QN__PANEL;
        if (!l->weight_sums)
            continue;
        memset(l->weight_sums, 0, outputs * l->in_panels * QN__PANEL * sizeof *l->weight_sums);
        memset(l->bias_sums, 0, outputs * sizeof *l->bias_sums);
    }
}

qn_status qn__cpu_load(qn__worker *w, const qn__state *state, qn_error *err) {
    (void)err;
    for (uint32_t i = 0; i < w->program->layers; ++i) {
        const qn__cpu_layer *l = &w->layer[i];
        const uint64_t at = l->layer->weights, bias = l->layer->biases;
        qn__cpu_pack(l, state->parameters + at, state->parameters + bias, l->weights, l->bias);
        for (uint32_t s = 0; s < w->slots && state->slot[s]; ++s)
            qn__cpu_pack(l, state->slot[s] + at, state->slot[s] + bias, l->weight_slot[s],
                         l->bias_slot[s]);
    }
    clear_sums(w);
    if (w->bits)
        qn__cpu_pack_weights(w);
    return QN_OK;
}

qn_status qn__cpu_save(qn__worker *w, qn__state *state, qn_error *err) {
    (void)err;
    for (uint32_t i = 0; i < w->program->layers; ++i) {
        const qn__cpu_layer *l = &w->layer[i];
        const uint64_t at = l->layer->weights, bias = l->layer->biases;
        qn__cpu_unpack(l, l->weights, l->bias, state->parameters + at, state->parameters + bias);
        for (uint32_t s = 0; s < w->slots && state->slot[s]; ++s)
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
        if (l->weight_sums)
            continue;
        l->bias_sums = qn__alloc(outputs, sizeof(int64_t), err);
        l->weight_sums = qn__alloc(outputs * l->in_panels * QN__PANEL, sizeof(int64_t), err);
        if (!l->weight_sums || !l->bias_sums)
            return QN_MEMORY;
    }
    return QN_OK;
}

/* The items of some grains. */
static qn__batch part_of(const qn__worker *w, const qn__batch *batch, uint32_t first,
                         uint32_t count) {
    const uint32_t grain = w->program->grain, from = first * grain;
    const uint32_t to =
        batch->items - from < count * (uint64_t)grain ? batch->items : from + count * grain;
    qn__batch part = *batch;
    part.first += from;
    part.items = to - from;
    return part;
}

qn_status qn__cpu_train_grains(qn__worker *w, const qn__batch *batch, uint32_t first,
                               uint32_t count, qn_error *err) {
    const qn__batch part = part_of(w, batch, first, count);
    qn_status status = need_sums(w, err);
    if (status != QN_OK)
        return status;
    qn__cpu_pass pass = {.worker = w, .batch = &part, .training = 1};
    return qn__cpu_run(&pass, &w->tally, err);
}

qn_status qn__cpu_train_share(qn__worker *w, const qn__batch *batch, uint32_t first, uint32_t count,
                              const qn__outlet *outlet, qn__tally *tally, qn_error *err) {
    const qn__batch part = part_of(w, batch, first, count);
    qn__cpu_pass pass = {.worker = w, .batch = &part, .outlet = outlet, .training = 1};
    qn__cpu_begin_progress(w);
    return qn__cpu_run(&pass, tally, err);
}

qn_status qn__cpu_train_step(qn__worker *w, const qn__batch *batch, const qn__batch *next,
                             const qn__update *update, qn__tally *tally, qn_error *err) {
    qn__cpu_pass pass = {
        .worker = w, .batch = batch, .next = next, .update = update, .training = 1};
    return qn__cpu_run(&pass, tally, err);
}

qn_status qn__cpu_apply(qn__worker *w, const qn__batch *batch, qn__applied *applied,
                        qn__tally *tally, qn_error *err) {
    qn__applied nothing = {0};
    qn__cpu_pass pass = {.worker = w, .batch = batch, .applied = applied ? applied : &nothing};
    return qn__cpu_run(&pass, tally, err);
}

int qn__cpu_busy(const qn__worker *w, double *seconds, int room) {
    for (int t = 0; t < w->threads && t < room; ++t)
        seconds[t] = w->core[t].busy;
    return w->threads;
}
