/* A max pool with the convolution below it: cpu_picked.h. */
#include "device/cpu/worker/cpu_picked.h"
#include "device/cpu/worker/cpu_kinds.h"

enum { APART = QN__PANEL }; /* floats more between panels: not all in few sets of the cache */

/* -------------------------------------------------------------------------------------- shape */

/* The layer that alone reads the outputs of `of`; NULL: there is none. */
static qn__cpu_layer *reader(const qn__worker *w, const qn__cpu_layer *of) {
    qn__cpu_layer *found = NULL;
    int readers = 0;
    for (uint32_t i = 0; i < w->program->layers; ++i) {
        qn__cpu_layer *l = &w->layer[i];
        readers += (l->below == of) + (l->other == of);
        found = l->below == of ? l : found;
    }
    return readers == 1 ? found : NULL;
}

static int is_whole(const qn__cpu_axis *axis) {
    return !axis->fitted && axis->pad == 0 && axis->dilation == 1 && axis->kernel == axis->stride &&
           axis->size * axis->stride == axis->limit;
}

/* Whether the convolution is by tiles, or its pictures are woven, in all passes. */
static int is_tiled(const qn__worker *w, const qn__cpu_layer *l, uint32_t across) {
    if (!l->tiles.span || (l->below && !l->tiles.way[1].steps))
        return 0;
    if (l->woven)
        return qn__cpu_run_rows(w, qn__cpu_depth(l)) >= across * QN__TILES_ITEMS;
    const int has_rows = l->outputs.axis[0].size == l->layer->to.height; /* or it is one row */
    return has_rows && l->tiles.way[0].steps && l->tiles.way[0].pixels >= across;
}

static int is_picked(const qn__worker *w, const qn__cpu_layer *l, const qn__cpu_layer *pool) {
    const qn__cpu_axis *axis = pool->outputs.axis;
    const qn__activation activation = l->layer->activation;
    return pool->kind->picks && is_whole(&axis[0]) && is_whole(&axis[1]) &&
           axis[0].kernel * axis[1].kernel <= QN__PICKED_TAPS &&
           pool->layer->activation == QN__ACT_NONE &&
           (activation == QN__ACT_NONE || activation == QN__ACT_RELU) &&
           !l->layer->drop_threshold && is_tiled(w, l, axis[1].kernel);
}

void qn__cpu_picked_shape(qn__worker *w) {
    for (uint32_t i = 0; i + 1 < w->program->layers && !w->program->recompute; ++i) {
        qn__cpu_layer *l = &w->layer[i], *pool = l->walks && l->taps ? reader(w, l) : NULL;
        if (!pool || pool != l + 1 || !is_picked(w, l, pool))
            continue;
        l->pool = pool;
        pool->pools = l;
        qn__cpu_tiles_whole(l, pool->outputs.axis[1].kernel);
    }
}

int qn__cpu_is_pooled(const qn__cpu_pass *pass, const qn__cpu_layer *l) {
    return pass->training && l->pool;
}

void qn__cpu_picked_carve(qn__cpu_arena *a, const qn__worker *w, qn__cpu_layer *l) {
    const size_t each = (size_t)l->out_pixels * l->out_panels;
    l->picked = l->pool ? qn__cpu_carve(a, w->capacity, each * sizeof *l->picked) : NULL;
}

/* Pixels of a row that are computed before they are pooled. */
static uint32_t pixels_at_once(const qn__worker *w, const qn__cpu_layer *l) {
    const uint32_t across = l->pool->outputs.axis[1].kernel;
    if (!l->woven)
        return l->tiles.way[0].pixels;
    return qn__cpu_run_rows(w, qn__cpu_depth(l)) / QN__TILES_ITEMS / across * across;
}

void qn__cpu_picked_carve_results(qn__cpu_arena *a, const qn__worker *w,
                                  qn__cpu_tiles_space *space) {
    size_t most = 0;
    for (uint32_t i = 0; i < w->program->layers; ++i) {
        const qn__cpu_layer *l = &w->layer[i];
        const size_t rows = l->pool ? (size_t)l->pool->outputs.axis[0].kernel *
                                          pixels_at_once(w, l) * QN__TILES_ITEMS
                                    : 0;
        const size_t floats = rows ? (rows * QN__PANEL + APART) * l->out_panels : 0;
        most = floats > most ? floats : most;
    }
    space->results = qn__cpu_carve(a, most, sizeof(float));
}

qn__cpu_unpooled qn__cpu_unpooled_at(const qn__cpu_layer *l, const qn__cpu_tiles_space *space,
                                     uint32_t pixels, uint32_t items) {
    const uint32_t height = l->pool->outputs.axis[0].kernel;
    const size_t pixel = (size_t)items * QN__PANEL;
    return (qn__cpu_unpooled){.height = height,
                              .pixels = pixels,
                              .items = items,
                              .from = space->results,
                              .row = pixels * pixel,
                              .pixel = pixel,
                              .panel = height * pixels * pixel + APART};
}

/* ------------------------------------------------------------------------------------- forward */

/* The window that begins at column x of these results, one panel. Returns its number. */
static size_t pool_window(const qn__cpu_pass *pass, const qn__cpu_layer *l,
                          const qn__cpu_unpooled *u, uint32_t x, uint32_t panel) {
    const qn__cpu_layer *pool = l->pool;
    const uint32_t across = pool->outputs.axis[1].kernel, width = l->layer->to.width;
    const size_t all = pass->batch->items;
    const size_t window =
        (size_t)(u->y / u->height) * pool->outputs.axis[1].size + (u->x + x) / across;
    uint16_t *bits = l->picked + panel * l->out_pixels * all + u->item;
    qn__conv_pool p = {.rows = u->items,
                       .relu = l->layer->activation == QN__ACT_RELU,
                       .y = pool->output + panel * pool->out_stride +
                            (window * all + u->item) * QN__PANEL};
    for (uint32_t dy = 0; dy < u->height; ++dy)
        for (uint32_t dx = 0; dx < across; ++dx, ++p.taps) {
            p.x[p.taps] = u->from + panel * u->panel + dy * u->row + (x + dx) * u->pixel;
            p.mask[p.taps] = bits + ((size_t)(u->y + dy) * width + u->x + x + dx) * all;
        }
    pass->worker->intgemm->conv->pool(&p);
    return window;
}

void qn__cpu_pool_results(const qn__cpu_pass *pass, int thread, uint32_t layer,
                          const qn__cpu_unpooled *u) {
    const qn__cpu_layer *l = &pass->worker->layer[layer], *pool = l->pool;
    const uint32_t across = pool->outputs.axis[1].kernel;
    for (uint32_t x = 0; x < u->pixels; x += across) {
        uint32_t row = 0;
        for (uint32_t p = 0; p < l->out_panels; ++p) {
            row = (uint32_t)pool_window(pass, l, u, x, p) * pass->batch->items + u->item;
            qn__cpu_after_product(pass, thread, layer + 1, p, row, u->items,
                                  pool->output + p * pool->out_stride + (size_t)row * QN__PANEL);
        }
        qn__cpu_note_outputs(pass, layer + 1, row, u->items, 0, l->out_panels);
    }
}

/* Runs of the outputs of a row of windows, of some items. */
static void pool_row(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t y,
                     uint32_t item, uint32_t items) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const uint32_t width = l->layer->to.width, most = pixels_at_once(w, l);
    const uint32_t each = items % QN__PANEL ? 1 : most; /* a block of rows has one pixel */
    float *results = w->core[thread].tiles.results;
    for (uint32_t x = 0, n; x < width; x += n) {
        n = width - x < most ? width - x : most;
        qn__cpu_unpooled u = qn__cpu_unpooled_at(l, &w->core[thread].tiles, n, items);
        u.y = y * u.height;
        u.x = x;
        u.item = item;
        for (uint32_t dy = 0; dy < u.height; ++dy)
            for (uint32_t dx = 0; dx < n; dx += each) {
                const qn__cpu_walk_run run = {.x = (u.y + dy) * width + x + dx,
                                              .pixels = each < n ? each : n,
                                              .item = item,
                                              .rows = (each < n ? each : n) * items};
                qn__cpu_walk_run_product(pass, thread, layer, &run, 0, l->out_panels,
                                         results + dy * u.row + dx * u.pixel, u.panel);
            }
        qn__cpu_pool_results(pass, thread, layer, &u);
    }
}

void qn__cpu_picked_forward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    qn__worker *w = pass->worker;
    const uint32_t items = pass->batch->items;
    const qn__cpu_grid grid = {w->layer[layer].pool->outputs.axis[0].size,
                               qn__tiles_parts(items, QN__TILES_ITEMS), 1};
    for (uint32_t y, part; qn__cpu_take(w, thread, phase, grid, &y, &part);) {
        const uint32_t item = part * QN__TILES_ITEMS, left = items - item;
        pool_row(pass, thread, layer, y, item, left < QN__TILES_ITEMS ? left : QN__TILES_ITEMS);
    }
}

/* -------------------------------------------------------------------------------------- errors */

const float *qn__cpu_picked_at(const qn__cpu_pass *pass, const qn__cpu_layer *l, uint32_t panel,
                               size_t pixel, uint32_t item, const uint16_t **bits) {
    const qn__cpu_layer *pool = l->pool;
    const qn__cpu_axis *axis = pool->outputs.axis;
    const size_t all = pass->batch->items, width = l->layer->to.width;
    const size_t y = pixel / width / axis[0].kernel, x = pixel % width / axis[1].kernel;
    *bits = l->picked + (panel * l->out_pixels + pixel) * all + item;
    return pool->error + panel * pool->out_stride +
           ((y * axis[1].size + x) * all + item) * QN__PANEL;
}

void qn__cpu_picked_partials(const qn__cpu_pass *pass, const qn__cpu_layer *l, uint32_t panel,
                             uint32_t first, uint32_t count, float *partial) {
    const qn__worker *w = pass->worker;
    const qn__cpu_axis *axis = l->pool->outputs.axis;
    qn__conv_picked p = {.width = l->layer->to.width,
                         .height = l->layer->to.height,
                         .across = axis[1].kernel,
                         .down = axis[0].kernel,
                         .items = pass->batch->items};
    p.error = qn__cpu_picked_at(pass, l, panel, 0, first, &p.mask);
    w->intgemm->conv->picked_partials(&p, count, w->program->grain, partial);
}
