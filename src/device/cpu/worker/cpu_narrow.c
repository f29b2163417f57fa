/* Gradients of a network that is one dense layer with few outputs, such as logistic regression, in
 * float32. The usual phases write all inputs of a batch to panels and read them again from memory
 * for each product, which here takes less time than the reading. So each core does all of some
 * items at once: their inputs stay in its L1 cache from the fetch to the gradient. */
#include "device/cpu/worker/cpu_gradient_sums.h"
#include <string.h>

enum {
    MOST_OUTPUTS = 4, /* with more, the usual gradient fills its vectors well enough */
    MOST_PANELS = 64,
    TILE_ITEMS = 64, /* whose inputs stay in the cache */
    TASK_TILES = 4
};

static uint32_t tile_items(const qn__worker *w) {
    const uint32_t grain = w->program->grain;
    return grain < TILE_ITEMS ? TILE_ITEMS / grain * grain : grain;
}

int qn__cpu_is_narrow(const qn__worker *w, const qn__batch *batch) {
    const qn__cpu_layer *l = &w->layer[0];
    return !w->bits && !w->program->lists && w->program->layers == 1 && !l->walks &&
           l->in_pixels == 1 && l->layer->out <= MOST_OUTPUTS && l->in_panels <= MOST_PANELS &&
           !w->program->augment && !w->program->mix && !l->layer->drop_threshold &&
           batch->feed->labels &&
           (uint64_t)tile_items(w) * TASK_TILES * (uint64_t)w->threads <= batch->items;
}

/* Integers of one thread: the sums of [output][input], then 16 for each bias. */
static size_t sums_of(const qn__cpu_layer *l) {
    return (size_t)l->layer->out * (l->in_panels + 1) * QN__PANEL;
}

/* Those of parameters. */
static size_t counted_of(const qn__cpu_layer *l) {
    return sums_of(l) - (l->layer->no_biases ? l->layer->out * QN__PANEL : 0);
}

size_t qn__cpu_narrow_space(const qn__worker *w) { return sums_of(&w->layer[0]); }

/* Rows of a tile, with those that fill its last lanes. */
static size_t tile_rows(const qn__worker *w) {
    return (tile_items(w) + QN__PANEL - 1) / QN__PANEL * QN__PANEL;
}

/* Whether inputs can be used where they are: consecutive floats without scaling, and after the
 * last one there are enough others. */
static int is_in_place(const qn__cpu_pass *pass, uint64_t item, uint32_t items) {
    const qn__feed *feed = pass->batch->feed;
    return qn__element_of(feed->type)->fetch == QN__FETCH_FLOATS && !feed->rows &&
           !pass->batch->order && items % QN__PANEL == 0 &&
           pass->worker->program->scale == QN__SCALE_NONE &&
           (feed->items - item - items) * feed->features >= QN__PANEL;
}

/* The inputs of a tile, or a copy in this thread's part of the panels of all inputs. */
static qn__cpu_items fetch(const qn__cpu_pass *pass, int thread, uint32_t first, uint32_t items) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[0];
    const qn__feed *feed = pass->batch->feed;
    uint64_t *item = w->fetch.item[w->fetch.current] + first;
    float *tile = w->fetch.inputs[w->fetch.current] + (size_t)thread * tile_rows(w) * QN__PANEL;
    qn__batch_items(pass->batch, first, items, item);
    if (is_in_place(pass, item[0], items))
        return (qn__cpu_items){qn__batch_values(pass->batch, first, item[0]), feed->features,
                               QN__PANEL, feed->features, l->in_panels};
    for (uint32_t i = 0; i < items; ++i)
        qn__cpu_scale_item(w, feed, qn__batch_values(pass->batch, first + i, item[i]),
                           tile + (size_t)i * QN__PANEL, l->in_stride);
    return (qn__cpu_items){tile, QN__PANEL, l->in_stride, feed->features, l->in_panels};
}

/* Adds the partials of the grains of a tile. Returns 1 when one was out of range. */
static int add_partials(const qn__cpu_pass *pass, qn__cpu_items inputs, const float *errors,
                        uint32_t items, int64_t *sums) {
    const qn__worker *w = pass->worker;
    const uint32_t grain = w->program->grain;
    _Alignas(64) float partial[MOST_OUTPUTS * (MOST_PANELS + 1) * QN__PANEL];
    int bad = 0;
    for (uint32_t i = 0; i < items; i += grain) {
        w->kernels->outer_few(items - i < grain ? items - i : grain, w->layer[0].layer->out,
                              &inputs, errors + i, tile_rows(w), partial);
        bad |= qn__cpu_add_partials(w, 1, counted_of(&w->layer[0]), partial, sums);
        inputs.at += grain * inputs.row;
    }
    return bad;
}

/* Some items from the fetch to their gradients. Returns 1 when a partial was out of range. */
static int compute(const qn__cpu_pass *pass, int thread, uint32_t first, uint32_t items,
                   int64_t *sums) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[0];
    const size_t rows = tile_rows(w);
    const qn__cpu_items inputs = fetch(pass, thread, first, items);
    float *z = l->error + (size_t)thread * rows * QN__PANEL;
    w->kernels->dots(items, l->layer->out, &inputs, l->weights, l->bias, z, rows);
    for (uint32_t i = 0; i < items; i += QN__PANEL)
        qn__cpu_loss_lanes(pass, &w->core[thread], first + i,
                           items - i < QN__PANEL ? items - i : QN__PANEL, z + i, rows);
    return add_partials(pass, inputs, z, items, sums);
}

void qn__cpu_narrow(const qn__cpu_pass *pass, int thread) {
    qn__worker *w = pass->worker;
    qn__cpu_core *core = &w->core[thread];
    const uint32_t tile = tile_items(w), task_items = tile * TASK_TILES;
    const uint32_t items = pass->batch->items;
    const qn__cpu_grid grid = {(items - 1) / task_items + 1, 1, 1};
    int64_t *sums = w->losses.narrow_sums + sums_of(&w->layer[0]) * (size_t)thread;
    int bad = 0;
    memset(sums, 0, sums_of(&w->layer[0]) * sizeof *sums);
    core->tally = (qn__cpu_tally){0};
    for (uint32_t task, row; qn__cpu_take(w, thread, 0, grid, &task, &row);) {
        const uint32_t first = task * task_items;
        const uint32_t end = items - first < task_items ? items : first + task_items;
        for (uint32_t i = first; i < end; i += tile)
            bad |= compute(pass, thread, i, end - i < tile ? end - i : tile, sums);
        qn__cpu_tally_items(pass, first, end, &core->tally);
    }
    if (bad)
        qn__cpu_failed(core, 0);
}

/* After all threads: their sums are added to the worker's, unless one was out of range. */
void qn__cpu_narrow_end(const qn__cpu_pass *pass) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[0];
    const uint32_t outputs = l->layer->out;
    const size_t inputs = (size_t)l->in_panels * QN__PANEL;
    for (int t = 0; t < w->threads; ++t) {
        const int64_t *sums = w->losses.narrow_sums + sums_of(l) * (size_t)t;
        if (w->core[t].failed_layer)
            continue;
        for (uint32_t o = 0; o < outputs; ++o, sums += inputs)
            for (size_t k = 0; k < inputs; ++k)
                l->weight_sums[k * QN__PANEL + o] += sums[k];
        for (uint32_t o = 0; o < outputs; ++o)
            l->bias_sums[o] += sums[o * QN__PANEL];
    }
}
