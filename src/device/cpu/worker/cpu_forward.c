/* Fetching inputs, the forward pass, and dropout. */
#include "device/cpu/worker/cpu_worker.h"
#include <string.h>

static void raise_to(uint32_t *absmax, uint32_t bits) {
    if (bits > *absmax)
        *absmax = bits;
}

/* Bits of the largest |input| that the scaling can give; 0 if only the inputs can tell. */
static uint32_t input_bound(qn__scale scale, qn__fetch fetch) {
    if (scale == QN__SCALE_UNIT)
        return 0x3f800000u; /* 1 */
    if (scale == QN__SCALE_FRACTION)
        return 0x3f7f0000u; /* 255 / 256 */
    return scale == QN__SCALE_NONE && fetch == QN__FETCH_BYTES ? 0x437f0000u /* 255 */ : 0;
}

/* All inputs of a list. Those that it lacks are not scaled (25.60). */
static void scale_list(const qn__worker *w, const qn__feed *feed, const qn__list *list, float *to,
                       size_t stride) {
    const uint32_t panels = (feed->features + QN__PANEL - 1) / QN__PANEL;
    const int scales = w->program->scale == QN__SCALE_STANDARD;
    for (uint32_t p = 0; p < panels; ++p)
        memset(to + p * stride, 0, QN__PANEL * sizeof *to);
    for (uint64_t i = 0; i < list->count; ++i) {
        const uint32_t k = list->pair[i].at;
        const float value = list->pair[i].value;
        to[k / QN__PANEL * stride + k % QN__PANEL] =
            scales ? (value - w->fetch.mean[k]) * w->fetch.inverse[k] : value;
    }
}

void qn__cpu_scale_item(const qn__worker *w, const qn__feed *feed, const void *row, float *to,
                        size_t stride) {
    const qn__program *p = w->program;
    if (qn__element_of(feed->type)->fetch == QN__FETCH_LISTS) {
        scale_list(w, feed, row, to, stride);
        return;
    }
    w->kernels->input[qn__element_of(feed->type)->fetch](p->scale, w->fetch.mean, w->fetch.inverse,
                                                         feed->features, row, to, stride);
}

static void fetch_one(const qn__worker *w, const qn__feed *feed, const void *row, float *to,
                      size_t stride, uint32_t *absmax) {
    const uint32_t panels = (feed->features + QN__PANEL - 1) / QN__PANEL;
    const uint32_t bound = input_bound(w->program->scale, qn__element_of(feed->type)->fetch);
    qn__cpu_scale_item(w, feed, row, to, stride);
    if (w->bits)
        return;
    raise_to(absmax, bound);
    for (uint32_t panel = 0; !bound && panel < panels; ++panel)
        raise_to(absmax, w->kernels->absmax(QN__PANEL, to + panel * stride));
}

/* Prefetches an item's values: items are at random places of a table that exceeds the caches. */
static const void *prefetch_item(const qn__batch *batch, uint32_t place, uint64_t item) {
    const qn__feed *feed = batch->feed;
    const size_t size = qn__feed_stride(feed);
    const char *from = qn__batch_values(batch, place, item);
    for (size_t i = 0; i < size; i += 64)
        __builtin_prefetch(from + i);
    if (feed->labels)
        __builtin_prefetch(feed->labels + item);
    if (feed->weights)
        __builtin_prefetch(feed->weights + item);
    return from;
}

/* Pictures of the items at.first .., with their values at `row`, that are unfolded later. */
static void fetch_padded(const qn__worker *w, const qn__feed *feed, const void *const *row,
                         qn__cpu_tile at, float *scratch, float *inputs, uint32_t *absmax) {
    const qn__cpu_layer *l = &w->layer[0];
    const size_t space = qn__cpu_unfold_space(l);
    for (size_t i = 0; i < at.items; ++i) {
        fetch_one(w, feed, row[i], scratch, QN__PANEL, absmax);
        qn__cpu_pad(l, scratch, inputs + (at.first + i) * space);
    }
}

/* The same as rows. `items`: in integer arithmetic, the absmax of each. */
static void fetch_pictures(const qn__worker *w, const qn__batch *batch, const void *const *row,
                           qn__cpu_tile at, float *scratch, size_t stride, float *inputs,
                           uint32_t *absmax, uint32_t *items) {
    const qn__cpu_layer *l = &w->layer[0];
    const size_t capacity = qn__cpu_unfold_space(l), features = batch->feed->features;
    const uint32_t most = qn__cpu_unfold_items(l);
    float *padded = scratch + (features + QN__PANEL - 1) / QN__PANEL * QN__PANEL;
    for (uint32_t i = 0; i < at.items; i += most) {
        const uint32_t count = at.items - i < most ? at.items - i : most;
        for (uint32_t j = 0; j < count; ++j) {
            fetch_one(w, batch->feed, row[i + j], scratch, QN__PANEL, absmax);
            if (w->bits)
                items[at.first + i + j] = qn__absmax(features, scratch, 1);
            qn__cpu_pad(l, scratch, padded + j * capacity);
        }
        const qn__cpu_unfolding all = {.pixels = l->in_pixels,
                                       .panels = l->in_panels,
                                       .count = count,
                                       .next = (size_t)batch->items * QN__PANEL,
                                       .stride = stride};
        qn__cpu_unfold(l, w->fetch.segments, &all, padded,
                       inputs + (size_t)(at.first + i) * QN__PANEL);
    }
}

/* The same, woven: at.first is a multiple of 16. */
static void fetch_woven(const qn__worker *w, const qn__feed *feed, const void *const *row,
                        qn__cpu_tile at, float *scratch, float *inputs, uint32_t *absmax,
                        uint32_t *items) {
    const qn__cpu_layer *l = &w->layer[0];
    const size_t stride = qn__cpu_woven_stride(feed->features);
    for (size_t i = 0; i < at.items; ++i) {
        fetch_one(w, feed, row[i], scratch + i * stride, QN__PANEL, absmax);
        items[at.first + i] = qn__absmax(feed->features, scratch + i * stride, 1);
    }
    qn__cpu_weave(l, at.items, scratch, stride, inputs + qn__cpu_woven_floats(l, at.first));
}

/* Fetches items at.first .. of a batch, with their zeros or as operands. */
static void fetch_tile(const qn__cpu_pass *pass, const qn__batch *batch, int into, uint32_t tile,
                       qn__cpu_tile at, const qn__cpu_core *core, uint32_t *absmax) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[0];
    const size_t stride = qn__cpu_stride(batch->items * l->in_pixels);
    float *inputs = w->fetch.inputs[into];
    const void *row[QN__PANEL];
    uint64_t *item = w->fetch.item[into] + at.first;
    qn__batch_items(batch, at.first, at.items, item);
    if (w->takes_lists)
        return;
    for (uint32_t i = 0; i < at.items; ++i)
        row[i] = prefetch_item(batch, at.first + i, item[i]);
    if (pass->training && (w->program->augment || w->program->mix))
        qn__cpu_augment(w, batch, core, at, item, row);
    if (pass->training && w->program->moves_answers)
        qn__cpu_show_answers(w, batch, core, at, into);
    if (qn__cpu_from_bytes(w, batch->feed)) {
        qn__cpu_bytes_fetched(w, at.first, at.items, (const uint8_t *const *)row,
                              &w->fetch.rows[into]);
        return;
    }
    if (l->pictures) {
        fetch_padded(w, batch->feed, row, at, core->scratch, inputs, absmax);
        return;
    }
    if (l->woven) {
        fetch_woven(w, batch->feed, row, at, core->scratch, inputs, absmax,
                    w->fetch.rows[into].absmax);
        return;
    }
    if (l->walks) {
        fetch_pictures(w, batch, row, at, core->scratch, stride, inputs, absmax,
                       w->fetch.rows[into].absmax);
        return;
    }
    for (uint32_t i = 0; i < at.items; ++i)
        fetch_one(w, batch->feed, row[i], inputs + (size_t)(at.first + i) * QN__PANEL, stride,
                  absmax);
    if (qn__cpu_packs_fetched(w))
        qn__cpu_intgemm_fetched(w, at.first, at.items, inputs, w->fetch.input_blocks[into],
                                &w->fetch.rows[into]);
    else if (!w->bits)
        qn__cpu_note_zeros(w, &w->fetch.zeros[into], tile, at, inputs, stride);
}

void qn__cpu_fetch(const qn__cpu_pass *pass, const qn__batch *batch, int into, int thread,
                   uint32_t phase, uint32_t *absmax) {
    qn__worker *w = pass->worker;
    const uint32_t height = w->bits ? QN__PANEL : w->kernels->rows;
    const uint32_t blocks = (batch->items + QN__PANEL - 1) / QN__PANEL;
    const qn__cpu_grid grid = {w->bits ? blocks : qn__cpu_tiles(batch->items, height), 1, 1};
    for (uint32_t tile, row; qn__cpu_take(w, thread, phase, grid, &tile, &row);) {
        const uint32_t first = tile * QN__PANEL, left = batch->items - first;
        const qn__cpu_tile block = {first, left < QN__PANEL ? left : QN__PANEL};
        fetch_tile(pass, batch, into, tile,
                   w->bits ? block : qn__cpu_tile_at(batch->items, height, tile), &w->core[thread],
                   absmax);
    }
}

/* Columns after the last output hold 1/2 after sigmoid and hardsigmoid, and NaN where an input is
 * infinite. They do not count for the absmax of a block of integers. The chains of a layer above
 * with several taps or pixels run over them, and multiply them by weights of 0. */
static int padding_matters(const qn__worker *w, uint32_t layer) {
    const qn__cpu_layer *l = &w->layer[layer];
    if (w->bits)
        return l->layer->activation == QN__ACT_SIGMOID ||
               l->layer->activation == QN__ACT_HARDSIGMOID;
    return l->clears && l->layer->to.channels % QN__PANEL > 0;
}

static void clear_padding(uint32_t columns, uint32_t rows, float *out) {
    for (uint32_t i = 0; i < rows; ++i, out += QN__PANEL)
        memset(out + columns, 0, (QN__PANEL - columns) * sizeof *out);
}

int qn__cpu_is_plain(const qn__cpu_pass *pass, uint32_t layer, uint32_t panel) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const qn__activation activation = l->layer->activation;
    const int simple =
        activation == QN__ACT_NONE || activation == QN__ACT_RELU || activation == QN__ACT_RELU6;
    return !w->bits && simple && !(panel + 1 == l->out_panels && padding_matters(w, layer)) &&
           !(l->dropped && pass->training);
}

void qn__cpu_note_absmax(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t bits) {
    if (pass->training)
        raise_to(&pass->worker->core[thread].absmax_input[layer + 1], bits);
}

void qn__cpu_after_product(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t panel,
                           uint32_t first, uint32_t rows, float *out) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const size_t count = (size_t)rows * QN__PANEL;
    const float *result = out;
    if (l->slope && pass->training)
        w->kernels->activate_and_slope(l->layer->activation, count, out,
                                       l->slope + (out - l->output));
    else
        w->kernels->activate(l->layer->activation, count, out);
    if (panel + 1 == l->out_panels && padding_matters(w, layer))
        clear_padding(l->layer->to.channels - panel * QN__PANEL, rows, out);
    if (!pass->training || (w->bits && !l->dropped))
        return;
    if (l->dropped) {
        float *to = l->dropped + (out - l->output);
        qn__cpu_dropout(pass, layer, panel, first, rows, out, to);
        result = to;
    }
    if (!w->bits)
        raise_to(&w->core[thread].absmax_input[layer + 1], w->kernels->absmax(count, result));
}

static int has_minus_zero(size_t count, const float *x) {
    uint32_t found = 0;
    for (size_t i = 0; i < count; ++i) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        found |= bits == 0x80000000u;
    }
    return found != 0;
}

/* The first layer's product over the tiles of a block, without the inputs that are zero. */
static void product_some(const qn__cpu_pass *pass, uint32_t block, uint32_t panel,
                         uint32_t panels) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[0];
    const qn__cpu_zeros *zeros = &w->fetch.zeros[w->fetch.current];
    const size_t stride = l->out_stride,
                 weights = (size_t)qn__cpu_blocks(l) * QN__PANEL * QN__PANEL;
    const uint32_t height = w->kernels->rows, whole = QN__BLOCK_ITEMS / height;
    const float *b = l->weights + panel * weights, *start = l->bias + panel * QN__PANEL;
    for (uint32_t tile = block * whole; tile < (block + 1) * whole; ++tile) {
        const qn__cpu_tile at = qn__cpu_tile_at(l->rows, height, tile);
        const float *a = w->fetch.inputs[w->fetch.current] + (size_t)at.first * QN__PANEL;
        float *c = l->output + panel * stride + (size_t)at.first * QN__PANEL;
        int redo = 0;
        if (at.items == 0)
            break;
        w->kernels->matmul_some(at.items, zeros->count[tile],
                                zeros->list + (size_t)tile * l->in_panels * QN__PANEL, &l->forward,
                                a, b, weights, c, stride, start, panels);
        for (uint32_t p = 0; p < panels; ++p)
            redo |= has_minus_zero((size_t)at.items * QN__PANEL, c + p * stride);
        if (redo)
            w->kernels->matmul(at.items, &l->forward, a, b, weights, c, stride, start, panels);
    }
}

/* The product of one task: `rows` items from `item` on by some panels. */
static void product(const qn__cpu_pass *pass, uint32_t layer, int some, uint32_t item,
                    uint32_t rows, uint32_t panel, uint32_t panels) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const size_t first = (size_t)item * QN__PANEL;
    const size_t weights = (size_t)qn__cpu_blocks(l) * QN__PANEL * QN__PANEL;
    if (w->bits) {
        qn__cpu_intgemm_product(pass, layer, item, rows, panel, panels);
        return;
    }
    if (w->takes_lists) {
        qn__cpu_lists_product(pass, item, rows, panel, panels);
        return;
    }
    if (some) {
        product_some(pass, item / QN__BLOCK_ITEMS, panel, panels);
        return;
    }
    w->kernels->matmul(rows, &l->forward, qn__cpu_input(pass, l) + first,
                       l->weights + panel * weights, weights,
                       l->output + panel * l->out_stride + first, l->out_stride,
                       l->bias + panel * QN__PANEL, panels);
}

/* Whether a core computes its own items by all outputs, rather than all items by its own outputs.
 * Then only this core reads the operands that it packed and the outputs that it computed, but it
 * reads all weights. That is better if a batch is larger than the weights, by the bytes that move
 * between cores: 2 for each integer, 4 for each output. */
static int is_by_items(const qn__cpu_pass *pass, const qn__cpu_layer *l) {
    const uint64_t threads = (uint64_t)pass->worker->threads;
    const uint64_t in = l->layer->in, out = l->layer->out;
    if (!pass->worker->bits || l->rows < 2 * QN__PANEL * threads)
        return 0;
    return threads * in * out * 2 < l->rows * (threads * in * 2 + out * 4);
}

void qn__cpu_forward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const int by_items = is_by_items(pass, l);
    const uint32_t width = w->bits ? QN__OUT_GROUP : w->kernels->panels;
    const uint32_t groups = (l->out_panels + width - 1) / width;
    const uint32_t height =
        w->bits ? qn__cpu_intgemm_items(pass, l->rows, l->intgemm.right_size, by_items ? 1 : groups)
                : QN__BLOCK_ITEMS;
    const uint32_t blocks = (l->rows + height - 1) / height;
    const qn__cpu_grid grid = {by_items ? blocks : groups, by_items ? groups : blocks, 0};
    const int some = layer == 0 && !w->takes_lists && qn__cpu_mostly_zero(pass);
    for (uint32_t column, row; qn__cpu_take(w, thread, phase, grid, &column, &row);) {
        const uint32_t panel = (by_items ? row : column) * width;
        const uint32_t first = (by_items ? column : row) * height;
        const uint32_t left = l->rows - first;
        const uint32_t rows = left < height ? left : height;
        const uint32_t panels = l->out_panels - panel < width ? l->out_panels - panel : width;
        float *out = l->output + panel * l->out_stride + (size_t)first * QN__PANEL;
        product(pass, layer, some, first, rows, panel, panels);
        for (uint32_t p = 0; p < panels; ++p)
            qn__cpu_after_product(pass, thread, layer, panel + p, first, rows,
                                  out + p * l->out_stride);
        if (w->bits)
            qn__cpu_note_outputs(pass, layer, first, rows, panel, panels);
    }
}
