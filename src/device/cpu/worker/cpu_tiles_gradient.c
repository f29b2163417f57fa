/* The weight gradient of a convolution of integers by tiles (docs/exactness.md 17.12).
 *
 * The depths of a product are the output pixels of a grain, and within each its items. A task goes
 * through the rows of output pixels. The inputs that a row of taps reads become a left operand
 * once: a tap is an offset into it.
 *
 *     output pixels x to x + 3, 32 items each: two steps of 64 depths
 *     inputs        | x-1 | x | x+1 | x+2 | x+3 | x+4 |
 *     tap 0         |<- step 0 ->|<- step 1 ->|
 *     tap 1               |<- step 0 ->|<- step 1 ->|
 *
 * Sums of 32 bits go on from row to row, until they are full or the grain ends. */
#include "device/cpu/worker/cpu_picked.h"
#include "device/cpu/worker/cpu_worker.h"
#include <string.h>

enum {
    BLOCK = QN__PANEL * QN__PANEL,
    MOST_WOVEN = 2, /* panels of inputs: more of them have tiles forward, if they are unfolded */
    MOST_PICTURE = 3 << 18, /* bytes of a grain's pictures: they stay in the L2 cache */
    MOST_TASK = 3 << 18     /* the same of a task with several panels of inputs */
};

static uint32_t up_to(uint32_t count, uint32_t multiple) {
    return (count + multiple - 1) / multiple * multiple;
}

/* Pixels of a step. */
static uint32_t pixels_of_step(const qn__cpu_tiled *t) {
    return t->span < QN__STEP_DEPTHS ? QN__STEP_DEPTHS / t->span : 1;
}

static uint32_t steps_of(const qn__cpu_tiled *t, uint32_t pixels) {
    return up_to(pixels, pixels_of_step(t)) * t->span / QN__STEP_DEPTHS;
}

/* Neighbouring pixels share a step only where the inputs that they read are neighbours, too. */
static uint32_t span_of(uint32_t items, uint32_t stride) {
    return stride > 1 || items > 32 ? up_to(items, QN__STEP_DEPTHS) : items > 16 ? 32 : 16;
}

/* Whether the pictures of a first layer are woven. Their vectors have 16 items, so that grains must
 * begin with one; and the integers of a grain must fit the L2 cache. */
static void shape_woven(const qn__worker *w, qn__cpu_layer *l) {
    const uint32_t part = (uint32_t)qn__program_part(w->program), grain = w->program->grain;
    const qn__cpu_weft weft = qn__cpu_weft_of(l);
    qn__cpu_tiled *t = &l->tiles;
    if (!l->unfolds || l->in_panels > MOST_WOVEN || (grain % QN__PANEL != 0 && grain < part))
        return;
    t->picture_row = (size_t)up_to(weft.width, pixels_of_step(t)) * t->span;
    t->picture = t->picture_row * weft.height * weft.channels;
    if (t->picture * qn__planes(w->bits) > MOST_PICTURE)
        return;
    l->woven = 1;
    if (weft.across < t->pixels) { /* whole rows */
        t->pixels -= t->pixels % weft.across;
        t->positions = up_to(t->pixels, pixels_of_step(t));
    }
}

void qn__cpu_tiles_shape(const qn__worker *w, qn__cpu_layer *l) {
    const uint32_t part = (uint32_t)qn__program_part(w->program), grain = w->program->grain;
    const qn__cpu_axis *axis = l->outputs.axis;
    qn__cpu_tiled *t = &l->tiles;
    if (!w->bits || !w->intgemm->conv || !qn__planes(w->bits) || !qn__cpu_walks_integers(l) ||
        !qn__cpu_axis_is_plain(&axis[0]) || !qn__cpu_axis_is_plain(&axis[1]) ||
        axis[1].kernel > QN__TILES_TAPS)
        return;
    t->span = span_of(grain < part ? grain : part, axis[1].stride);
    if (t->span > QN__RUN_ROWS) { /* as many zeros stand for a pixel outside */
        t->span = 0;
        return;
    }
    const uint32_t each = pixels_of_step(t), most = QN__TILES_DEPTHS / t->span;
    const uint32_t width = up_to(axis[1].size, each);
    t->pixels = width < most ? width : most;
    t->positions = up_to((t->pixels - 1) * axis[1].stride + axis[1].kernel, each);
    t->row = (size_t)t->positions * t->span;
    t->row += t->row % 256 == 0 ? QN__STEP_DEPTHS : 0; /* not all rows in few sets of the cache */
    t->slot = t->row * QN__PANEL * qn__planes(w->bits);
    shape_woven(w, l);
}

uint32_t qn__cpu_woven_tasks(qn__cpu_layer *l, int threads) {
    const uint32_t panels = l->out_panels < QN__OUT_GROUP ? l->out_panels : QN__OUT_GROUP;
    uint32_t each = panels;
    while (each > 1 && qn__cpu_groups(l) * qn__tiles_parts(panels, each) < (uint32_t)threads)
        each = (each + 1) / 2;
    l->tiles.task_panels = each;
    return qn__tiles_parts(panels, each);
}

/* Bytes of a task for each of its panels of inputs: rows of them, and sums. */
static size_t bytes_of_inputs(const qn__cpu_layer *l, uint32_t taps, uint32_t panels,
                              uint32_t planes) {
    return taps / l->outputs.axis[1].kernel * l->tiles.slot +
           (size_t)taps * panels * planes * QN__TILE_BYTES;
}

/* Whole rows of taps, as in qn__cpu_walk_taps. If these are all taps, as many panels of inputs as
 * leave the task in the L2 cache: the errors are packed once for all of them. */
uint32_t qn__cpu_tiles_taps(qn__cpu_layer *l, int planes, int threads) {
    const uint32_t width = l->outputs.axis[1].kernel;
    const uint32_t panels = l->out_panels < QN__OUT_GROUP ? l->out_panels : QN__OUT_GROUP;
    const uint64_t all = (uint64_t)qn__cpu_blocks(l) * l->out_panels * (l->below ? 2 : 1);
    uint32_t taps = l->taps < QN__TILES_TAPS ? l->taps : QN__TILES_TAPS;
    taps -= taps % width;
    while (taps > width && (uint64_t)taps * panels * (uint32_t)threads > all)
        taps -= width;
    const size_t right =
        (size_t)panels * (uint32_t)planes * steps_of(&l->tiles, l->tiles.pixels) * QN__TILE_BYTES;
    uint32_t inputs = 1;
    for (uint32_t more = 2; taps == l->taps && more <= l->in_panels; ++more)
        if (more * taps <= QN__TILES_BLOCKS &&
            (uint64_t)more * taps * panels * (uint32_t)threads <= all &&
            right + more * bytes_of_inputs(l, taps, panels, (uint32_t)planes) <= MOST_TASK)
            inputs = more;
    l->tiles.task_inputs =
        qn__tiles_parts(l->in_panels, qn__tiles_parts(l->in_panels, inputs)); /* evenly */
    return taps;
}

void qn__cpu_tiles_carve(qn__cpu_arena *a, const qn__worker *w, qn__cpu_tiles_space *space) {
    const uint32_t planes = qn__planes(w->bits);
    size_t left = 0, steps = 0, pixels = 0, sums = 0, picture = 0;
    for (uint32_t i = 0; i < w->program->layers; ++i) {
        const qn__cpu_layer *l = &w->layer[i];
        const qn__cpu_tiled *t = &l->tiles;
        if (!t->span)
            continue;
        const uint32_t inputs = l->woven ? 1 : t->task_inputs;
        const size_t slots = l->task_taps / l->outputs.axis[1].kernel * inputs;
        const size_t blocks = (size_t)l->task_taps * inputs;
        picture = l->woven ? t->picture * planes : picture;
        const size_t own = steps_of(t, t->pixels), read = t->positions;
        const uint32_t panels = l->out_panels < QN__OUT_GROUP ? l->out_panels : QN__OUT_GROUP;
        left = slots * t->slot > left ? slots * t->slot : left;
        steps = own > steps ? own : steps;
        pixels = read > pixels ? read : pixels;
        sums = blocks * panels > sums ? blocks * panels : sums;
    }
    if (!sums)
        return;
    space->sums = qn__cpu_carve(a, sums * planes * BLOCK, sizeof(int32_t));
    space->left = qn__cpu_carve(a, left, 1);
    space->picture = qn__cpu_carve(a, picture, 1);
    space->right = qn__cpu_carve(a, QN__OUT_GROUP * planes * steps, QN__TILE_BYTES);
    space->pixel = qn__cpu_carve(a, pixels, sizeof *space->pixel);
    space->mask = qn__cpu_carve(a, pixels, sizeof *space->mask);
    space->offset = qn__cpu_carve(a, steps, sizeof *space->offset);
}

/* One task at work on a grain: a part of the rows from column x on, `pixels` wide. */
typedef struct work {
    const qn__cpu_pass *pass;
    const qn__worker *w;
    const qn__cpu_layer *l;
    const qn__cpu_tiles_task *task;
    const qn__cpu_tiles_space *space;
    uint32_t items; /* of the batch */
    uint32_t x, pixels, steps;
    uint32_t ky, kys;                   /* rows of taps; panels of factors, if woven */
    size_t left_plane;                  /* bytes of a plane of a left operand */
    int64_t slot[QN__TILES_TAPS];       /* the row of inputs in each slot, or -1 */
    const char *left[QN__TILES_BLOCKS]; /* where each tap begins */
} work;

/* A panel of the inputs of row y that the part reads. */
static void pack_inputs(const work *k, uint32_t panel, uint32_t y, char *to) {
    const qn__cpu_tiled *t = &k->l->tiles;
    const qn__cpu_axis *axis = &k->l->outputs.axis[1];
    const int64_t first = (int64_t)k->x * axis->stride - axis->pad;
    const float *from = k->l->input + panel * k->l->in_stride + k->task->item * QN__PANEL;
    for (uint32_t i = 0; i < t->positions; ++i) {
        const int64_t x = first + i;
        const size_t pixel = (size_t)y * axis->limit + (size_t)x;
        const int inside = x >= 0 && x < axis->limit;
        k->space->pixel[i] = inside ? from + pixel * k->items * QN__PANEL : k->w->nothing;
    }
    k->w->intgemm->conv->left_depths(&(qn__conv_depths){.bits = k->w->bits,
                                                        .items = k->task->items,
                                                        .span = t->span,
                                                        .pixels = t->positions,
                                                        .pixel = k->space->pixel,
                                                        .inverse = k->task->input,
                                                        .to = to,
                                                        .plane = t->row * QN__PANEL,
                                                        .row = t->row});
}

/* The integers of a grain's pictures. */
static void weave_grain(const work *k) {
    const qn__cpu_layer *l = k->l;
    const qn__cpu_tiled *t = &l->tiles;
    const qn__cpu_weft weft = qn__cpu_weft_of(l);
    const size_t block = qn__cpu_woven_floats(l, QN__PANEL);
    qn__conv_woven woven = {.bits = k->w->bits,
                            .items = k->task->items,
                            .span = t->span,
                            .pixels = weft.width,
                            .pixel = (size_t)weft.channels * QN__PANEL,
                            .block = block,
                            .inverse = k->task->input,
                            .to = k->space->picture,
                            .plane = t->picture};
    for (uint32_t c = 0; c < weft.channels; ++c)
        for (uint32_t y = 0; y < weft.height; ++y, woven.to += t->picture_row) {
            woven.from = l->input + k->task->item / QN__PANEL * block +
                         ((size_t)y * weft.width * weft.channels + c) * QN__PANEL;
            k->w->intgemm->conv->woven_depths(&woven);
        }
}

/* Output pixels x, x + 1, ... of a row of factor `factor`: each `apart` pixels of the picture after
 * the one before. */
static void copy_pixels(const work *k, const char *from, uint32_t apart, uint32_t pixels,
                        char *to) {
    const uint32_t span = k->l->tiles.span;
    if (apart == 1) {
        memcpy(to, from, (size_t)pixels * span);
        return;
    }
    for (uint32_t p = 0; p < pixels; ++p, to += span, from += (size_t)apart * span)
        memcpy(to, from, span);
}

/* A left operand of all factors of the part: those of a pixel are at fixed places from it in the
 * grain's pictures. Rows after the last factor may have anything. */
static void unfold_woven(work *k) {
    const qn__cpu_layer *l = k->l;
    const qn__cpu_tiled *t = &l->tiles;
    const qn__cpu_weft weft = qn__cpu_weft_of(l);
    const uint32_t planes = qn__planes(k->w->bits), end = k->x + k->pixels;
    for (uint32_t plane = 0; plane < planes; ++plane)
        for (uint32_t f = 0; f < l->channels; ++f) {
            char *to = k->space->left + plane * k->left_plane + f * t->row;
            for (uint32_t x = k->x, pixels; x < end; x += pixels, to += (size_t)pixels * t->span) {
                const uint32_t left = weft.across - x % weft.across;
                const size_t place = qn__cpu_weft_at(&weft, x) + k->w->fetch.woven[f];
                const size_t pixel = place / weft.channels, c = place % weft.channels;
                pixels = left < end - x ? left : end - x;
                copy_pixels(k,
                            k->space->picture + plane * t->picture +
                                (c * weft.height + pixel / weft.width) * t->picture_row +
                                pixel % weft.width * t->span,
                            weft.right, pixels, to);
            }
        }
    for (uint32_t b = 0; b < k->kys; ++b)
        k->left[b] = k->space->left + b * QN__PANEL * t->row;
}

/* Where the errors of some output pixels are, those after the part's last one zeros. */
static void list_errors(const work *k, uint32_t panel, uint32_t first, uint32_t pixels) {
    const qn__cpu_layer *l = k->l;
    for (uint32_t i = 0; i < pixels; ++i) {
        const size_t pixel = first + i;
        k->space->pixel[i] = k->w->nothing;
        k->space->mask[i] = (const uint16_t *)(const void *)k->w->nothing;
        if (i >= k->pixels)
            continue;
        if (l->pool)
            k->space->pixel[i] =
                qn__cpu_picked_at(k->pass, l, panel, pixel, k->task->item, &k->space->mask[i]);
        else
            k->space->pixel[i] =
                l->error + panel * l->out_stride + (pixel * k->items + k->task->item) * QN__PANEL;
    }
}

/* The errors of the part of row y. */
static void pack_errors(const work *k, uint32_t y) {
    const qn__cpu_tiled *t = &k->l->tiles;
    const uint32_t pixels = up_to(k->pixels, pixels_of_step(t));
    const size_t plane = (size_t)k->steps * QN__TILE_BYTES;
    for (uint32_t p = 0; p < k->task->panels; ++p) {
        list_errors(k, k->task->out + p, y * k->l->outputs.axis[1].size + k->x, pixels);
        k->w->intgemm->conv->right_depths(
            &(qn__conv_depths){.bits = k->w->bits,
                               .items = k->task->items,
                               .span = t->span,
                               .pixels = pixels,
                               .pixel = k->space->pixel,
                               .mask = k->l->pool ? k->space->mask : NULL,
                               .inverse = k->task->error,
                               .to = k->space->right + p * qn__planes(k->w->bits) * plane,
                               .plane = plane});
    }
}

/* The inputs of the taps of row `ky` for row y of the outputs, of all panels. Returns 0 where they
 * are outside. */
static int find_inputs(work *k, uint32_t y, uint32_t ky) {
    const qn__cpu_tiled *t = &k->l->tiles;
    const qn__cpu_axis *axis = k->l->outputs.axis;
    const int64_t from = qn__cpu_reads(&axis[0], y, k->ky + ky);
    if (from < 0)
        return 0;
    const uint32_t slot = (uint32_t)from % k->kys;
    char *to = k->space->left + slot * t->slot;
    for (uint32_t i = 0; i < k->task->inputs; ++i, to += k->kys * t->slot) {
        if (k->slot[slot] != from)
            pack_inputs(k, k->task->in + i, (uint32_t)from, to);
        for (uint32_t kx = 0; kx < axis[1].kernel; ++kx)
            k->left[i * k->task->taps + ky * axis[1].kernel + kx] = to + (size_t)kx * t->span;
    }
    k->slot[slot] = from;
    return 1;
}

/* Adds a row of output pixels. Returns whether it has taps inside. */
static int add_row(work *k, uint32_t y) {
    const qn__cpu_tiled *t = &k->l->tiles;
    const uint32_t planes = qn__planes(k->w->bits), width = k->l->outputs.axis[1].kernel;
    uint32_t first = 0, end = k->kys;
    if (k->l->woven) {
        unfold_woven(k);
    } else {
        while (first < k->kys && !find_inputs(k, y, first))
            ++first;
        for (end = first; end < k->kys && find_inputs(k, y, end);)
            ++end;
    }
    if (first == end)
        return 0;
    pack_errors(k, y);
    for (uint32_t i = 0; i < k->task->inputs; ++i) {
        const uint32_t tap = i * k->task->taps + first * width;
        k->w->intgemm->conv->add_depths(&(qn__conv_sum){
            .planes = planes,
            .steps = k->steps,
            .rows = (end - first) * width,
            .panels = k->task->panels,
            .offset = k->space->offset,
            .left = k->left + tap,
            .left_plane = k->left_plane,
            .left_row = t->row,
            .right = k->space->right,
            .right_plane = (size_t)k->steps * QN__TILE_BYTES,
            .right_panel = (size_t)k->steps * planes * QN__TILE_BYTES,
            .sums = k->space->sums + (size_t)tap * k->task->panels * planes * BLOCK});
    }
    return 1;
}

/* Where the steps of a left operand begin. */
static void set_offsets(const work *k) {
    const qn__cpu_tiled *t = &k->l->tiles;
    const uint32_t blocks = t->span / QN__STEP_DEPTHS;
    const size_t apart = (size_t)k->l->outputs.axis[1].stride * t->span;
    for (uint32_t s = 0; s < k->steps; ++s)
        k->space->offset[s] = blocks ? s / blocks * apart + s % blocks * QN__STEP_DEPTHS
                                     : (size_t)s * QN__STEP_DEPTHS;
}

void qn__cpu_tiles_gradient(const qn__cpu_pass *pass, qn__cpu_core *core, const qn__cpu_layer *l,
                            const qn__cpu_tiles_task *task, int64_t *exact) {
    const qn__cpu_axis *axis = l->outputs.axis;
    const uint32_t planes = qn__planes(pass->worker->bits),
                   tiles = task->inputs * task->taps * task->panels;
    work k = {.pass = pass,
              .w = pass->worker,
              .l = l,
              .task = task,
              .space = &core->tiles,
              .items = pass->batch->items,
              .ky = task->tap / axis[1].kernel,
              .kys = task->taps / axis[1].kernel,
              .left_plane = l->tiles.row * QN__PANEL * (l->woven ? l->in_panels : 1)};
    uint32_t held = 0; /* steps in the sums of 32 bits */
    memset(core->tiles.sums, 0, (size_t)tiles * planes * BLOCK * sizeof *core->tiles.sums);
    if (l->woven && task->panels > 0)
        weave_grain(&k);
    for (k.x = 0; k.x < axis[1].size && task->panels > 0; k.x += k.pixels) {
        const uint32_t left = axis[1].size - k.x;
        k.pixels = left < l->tiles.pixels ? left : l->tiles.pixels;
        k.steps = steps_of(&l->tiles, k.pixels);
        set_offsets(&k);
        for (uint32_t i = 0; i < k.kys; ++i)
            k.slot[i] = -1;
        for (uint32_t y = 0; y < axis[0].size; ++y) {
            if (held + k.steps > QN__LONGEST_SUM) {
                k.w->intgemm->conv->flush(planes, tiles, core->tiles.sums, exact);
                held = 0;
            }
            held += add_row(&k, y) ? k.steps : 0;
        }
    }
    k.w->intgemm->conv->flush(planes, tiles, core->tiles.sums, exact);
}
