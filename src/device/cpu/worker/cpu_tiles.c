/* Convolutions of integers by tiles: forward, and errors (docs/exactness.md 17.12).
 *
 * A task has some items of a part of some rows of outputs. It makes the integers of each row of
 * pixels that it reads once, in a ring of as many rows as the window has: for each item its pixels
 * one after the other, channels innermost. A step of a product has 64 channels of one tap, which
 * are a cache line of each item. So a tile is read where it is, at any pixel:
 *
 *     128 channels, a window of 3 x 3: 18 steps, six for each row of the window
 *     item 0     | pixel -1  | pixel 0   | pixel 1   | pixel 2   | ...
 *     steps        0    1      2    3      4    5                    of output pixel 0
 *                              0    1      2    3      4    5        of output pixel 1
 *
 * Pixels outside are zeros, so that all outputs of a row are alike. Errors are a convolution too,
 * if the stride is 1: the taps come in the reverse order.
 *
 * Tiles whose rows cross lines take four times as long to load, so every pixel begins a line. With
 * 16 or 32 channels the line goes on with those of the next pixels, and a step has several taps:
 *
 *     32 channels    line of pixel 0: pixel 0, pixel 1 | of pixel 1: pixel 1, pixel 2 | ...
 *     steps of a window of 3: taps 0 and 1 | tap 2, and weights of zeros
 */
#include "device/cpu/worker/cpu_picked.h"
#include "device/cpu/worker/cpu_worker.h"
#include <string.h>

enum {
    TASKS = 4, /* for each core */
    GROUPS = QN__STEP_DEPTHS / QN__PANEL
};

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* A convolution: what it reads, and where its results go. */
typedef struct conv {
    const qn__cpu_pass *pass;
    const qn__cpu_layer *l;
    int back;   /* it is that of errors */
    int pooled; /* rows of windows are pooled in the core's memory */
    const qn__cpu_way *way;
    const qn__cpu_walk *walk;
    const qn__cpu_tiles_space *space;
    uint32_t items; /* of the batch */
    const float *from, *times;
    size_t stride;
    const uint32_t *absmax; /* of each item */
    int64_t pad[2];         /* position i reads i * stride - pad and its neighbours */
    qn__conv_product product;
    float *to;
} conv;

/* The task's items, and its rectangle of outputs. */
typedef struct part {
    uint32_t item, items, x, pixels, y, end;
} part;

/* Rows that are computed together: of a window of a pool, or one. */
static uint32_t height_of(const conv *k) {
    return k->pooled ? k->l->pool->outputs.axis[0].kernel : 1;
}

static qn__cpu_grid grid_of(const conv *k, uint32_t *bands) {
    const qn__cpu_axis *axis = k->walk->axis;
    const uint32_t tasks =
        qn__tiles_parts(k->items, QN__TILES_ITEMS) * qn__tiles_parts(axis[1].size, k->way->pixels);
    *bands = least(axis[0].size / height_of(k),
                   qn__tiles_parts(TASKS * (uint32_t)k->pass->worker->threads, tasks));
    return (qn__cpu_grid){tasks * *bands, 1, 1};
}

static part part_of(const conv *k, uint32_t bands, uint32_t index) {
    const qn__cpu_axis *axis = k->walk->axis;
    const uint32_t parts = qn__tiles_parts(k->items, QN__TILES_ITEMS), item = index % parts;
    const uint32_t columns = qn__tiles_parts(axis[1].size, k->way->pixels);
    const uint32_t column = index / parts % columns, band = index / parts / columns;
    part p = {.item = item * QN__TILES_ITEMS, .x = column * k->way->pixels};
    p.items = least(QN__TILES_ITEMS, k->items - p.item);
    p.pixels = least(k->way->pixels, axis[1].size - p.x);
    const uint64_t rows = axis[0].size / height_of(k);
    p.y = (uint32_t)(rows * band / bands) * height_of(k);
    p.end = (uint32_t)(rows * (band + 1) / bands) * height_of(k);
    return p;
}

/* A panel of pixel x of a row, and its bits if these are the errors of a pool; zeros where there is
 * none. */
static const float *values_at(const conv *k, const part *p, uint32_t y, int64_t x, uint32_t panel,
                              const uint16_t **bits) {
    const qn__cpu_axis *axis = &k->walk->axis[1];
    const size_t pixel = (size_t)y * axis->limit + (size_t)x;
    const float *nothing = k->pass->worker->nothing;
    const int picked = k->back && k->l->pool;
    *bits = picked ? (const uint16_t *)(const void *)nothing : NULL;
    if (x < 0 || x >= axis->limit || panel >= k->walk->panels)
        return nothing;
    if (picked)
        return qn__cpu_picked_at(k->pass, k->l, panel, pixel, p->item, bits);
    return k->from + panel * k->stride + (pixel * k->items + p->item) * QN__PANEL;
}

/* Makes the operands of row y of the pixels that are read. Channels after the last panel, and those
 * of pixels that the window does not reach, have weights of zeros. */
static void make_row(const conv *k, const part *p, uint32_t y, char *to) {
    const qn__cpu_way *way = k->way;
    const uint32_t panels = k->walk->panels;
    const int64_t first = (int64_t)p->x * k->walk->axis[1].stride - k->pad[1];
    qn__conv_rows r = {.bits = k->pass->worker->bits,
                       .items = p->items,
                       .inverse = k->space->inverse,
                       .row = way->row,
                       .plane = qn__cpu_way_plane(way)};
    for (uint32_t i = 0; i < way->positions * way->chunks; ++i, to += QN__STEP_DEPTHS) {
        for (uint32_t g = 0; g < GROUPS; ++g) {
            const uint32_t beside = way->joined > 1 ? g / panels : 0;
            const uint32_t panel = way->joined > 1 ? g % panels : i % way->chunks * GROUPS + g;
            r.from[g] = values_at(k, p, y, first + i / way->chunks + beside, panel, &r.mask[g]);
            r.times[g] = k->times ? k->times + (size_t)least(panel, panels - 1) * QN__PANEL : NULL;
        }
        r.to = to;
        k->pass->worker->intgemm->conv->rows(&r);
    }
}

/* The rows of the window inside the picture for row y of the outputs: makes those that are new, and
 * lists where their steps begin. Returns the first row of the window, 0 if all are outside. */
static uint32_t find_rows(const conv *k, const part *p, uint32_t y, int64_t *slot,
                          uint32_t *steps) {
    const qn__cpu_axis *axis = &k->walk->axis[0];
    const size_t size = qn__cpu_way_plane(k->way) * qn__planes(k->pass->worker->bits);
    uint32_t first = axis->kernel;
    *steps = 0;
    for (uint32_t ky = 0; ky < axis->kernel; ++ky) {
        const int64_t from = (int64_t)y * axis->stride - k->pad[0] + ky;
        if (from < 0 || from >= axis->limit)
            continue;
        const uint32_t own = (uint32_t)from % axis->kernel;
        const size_t at = own * size;
        if (slot[own] != from)
            make_row(k, p, (uint32_t)from, k->space->rows + at);
        slot[own] = from;
        first = least(first, ky);
        for (uint32_t q = 0; q < k->way->row_steps; ++q)
            k->space->step[(*steps)++] = at + (size_t)q * k->way->joined * QN__STEP_DEPTHS;
    }
    return *steps > 0 ? first : 0;
}

/* The tiles of row y of the outputs, whose results of pixel x and the part's items begin at to + x
 * * pixel. Returns their number. */
static uint32_t list_tiles(const conv *k, const part *p, float *to, size_t pixel) {
    uint32_t count = 0;
    for (uint32_t x = 0; x < p->pixels; ++x, to += pixel)
        for (uint32_t i = 0; i < p->items; i += QN__PANEL)
            k->space->tile[count++] = (qn__conv_tile){
                k->space->rows + (size_t)x * k->walk->axis[1].stride * k->way->pixel +
                    i * k->way->row,
                k->space->factor + i, to + (size_t)i * QN__PANEL, least(QN__PANEL, p->items - i)};
    return count;
}

/* Computes row y of a part, to `to`. */
static void compute_row(const conv *k, const part *p, uint32_t y, float *to, size_t pixel,
                        size_t panel, int64_t *slot) {
    qn__conv_product product = k->product;
    const uint32_t ky = find_rows(k, p, y, slot, &product.steps);
    product.right += (size_t)ky * k->way->row_steps * QN__TILE_BYTES;
    product.tiles = list_tiles(k, p, to, pixel);
    product.c_stride = panel;
    k->pass->worker->intgemm->conv->product(&product);
}

static void begin_part(const conv *k, const part *p, int64_t *slot) {
    qn__cpu_block_scales(k->pass->worker->bits, p->items, k->absmax + p->item, k->space->factor,
                         k->space->inverse);
    for (uint32_t i = 0; i < k->walk->axis[0].kernel; ++i)
        slot[i] = -1;
}

/* The rows of pixel x of row y. */
static uint32_t row_at(const conv *k, const part *p, uint32_t y, uint32_t x) {
    return (y * k->walk->axis[1].size + p->x + x) * k->items + p->item;
}

static conv conv_of(const qn__cpu_pass *pass, int thread, const qn__cpu_layer *l, int back) {
    const qn__worker *w = pass->worker;
    const qn__cpu_intgemm *packed = &l->intgemm;
    const qn__cpu_way *way = &l->tiles.way[back];
    conv k = {.pass = pass,
              .l = l,
              .back = back,
              .pooled = !back && qn__cpu_is_pooled(pass, l),
              .way = way,
              .walk = back ? &l->inputs : &l->outputs,
              .space = &w->core[thread].tiles,
              .items = pass->batch->items,
              .from = back ? l->error : qn__cpu_input(pass, l),
              .stride = back ? l->out_stride : l->in_stride,
              .times = back ? packed->factor : NULL,
              .absmax = back ? packed->scaled_absmax : packed->input.absmax,
              .to = back ? qn__cpu_passes(l) : qn__cpu_target(pass, l)->output};
    for (int d = 0; d < 2; ++d) {
        const qn__cpu_axis *axis = &k.walk->axis[d];
        k.pad[d] = back ? (int64_t)axis->kernel - 1 - axis->pad : axis->pad;
    }
    k.product = (qn__conv_product){.bits = w->bits,
                                   .panels = back ? l->in_panels : l->out_panels,
                                   .offset = k.space->step,
                                   .tile = k.space->tile,
                                   .left_row = way->row,
                                   .left_plane = qn__cpu_way_plane(way),
                                   .right = back ? packed->transposed : packed->right,
                                   .plane = (size_t)way->steps * QN__TILE_BYTES,
                                   .panel = qn__cpu_tiles_weights(w, l, back),
                                   .column = back ? NULL : packed->factor,
                                   .start = back ? NULL : l->bias};
    return k;
}

/* Results of a pixel: outputs have their activation, errors go on to the layer below. */
static void finish_pixel(const conv *k, int thread, uint32_t layer, uint32_t row, uint32_t items) {
    const qn__cpu_pass *pass = k->pass;
    const qn__cpu_layer *l = k->l;
    for (uint32_t p = 0; p < k->product.panels; ++p)
        if (k->back)
            qn__cpu_after_errors(pass, &pass->worker->core[thread], layer, p, row, items);
        else
            qn__cpu_follow(pass, thread, layer, p, row, items,
                           k->to + p * l->out_stride + (size_t)row * QN__PANEL);
    if (k->back)
        qn__cpu_note_passed(pass, layer, row, items, 0, k->product.panels);
    else
        qn__cpu_note_outputs(pass, layer, row, items, 0, k->product.panels);
}

/* Row y of a part, and what follows its results. */
static void whole_row(const conv *k, const part *p, int thread, uint32_t layer, uint32_t y,
                      int64_t *slot) {
    const size_t row = row_at(k, p, y, 0);
    compute_row(k, p, y, k->to + row * QN__PANEL, (size_t)k->items * QN__PANEL,
                (k->back ? k->l->below : k->l)->out_stride, slot);
    for (uint32_t x = 0; x < p->pixels; ++x)
        finish_pixel(k, thread, layer, row_at(k, p, y, x), p->items);
}

/* Rows of a window from y on, which are pooled. */
static void pooled_rows(const conv *k, const part *p, int thread, uint32_t layer, uint32_t y,
                        int64_t *slot) {
    qn__cpu_unpooled u = qn__cpu_unpooled_at(k->l, k->space, p->pixels, p->items);
    u.y = y;
    u.x = p->x;
    u.item = p->item;
    for (uint32_t i = 0; i < u.height; ++i)
        compute_row(k, p, y + i, k->space->results + i * u.row, u.pixel, u.panel, slot);
    qn__cpu_pool_results(k->pass, thread, layer, &u);
}

static void convolve(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase,
                     int back) {
    qn__worker *w = pass->worker;
    const conv k = conv_of(pass, thread, &w->layer[layer], back);
    int64_t *slot = w->core[thread].tiles.slot;
    uint32_t bands;
    const qn__cpu_grid grid = grid_of(&k, &bands);
    for (uint32_t index, none; qn__cpu_take(w, thread, phase, grid, &index, &none);) {
        const part own = part_of(&k, bands, index);
        begin_part(&k, &own, slot);
        for (uint32_t y = own.y; y < own.end; y += height_of(&k))
            (k.pooled ? pooled_rows : whole_row)(&k, &own, thread, layer, y, slot);
    }
}

void qn__cpu_tiles_forward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    convolve(pass, thread, layer, phase, 0);
}

void qn__cpu_tiles_backward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    convolve(pass, thread, layer, phase, 1);
}
