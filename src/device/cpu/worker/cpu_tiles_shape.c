/* Convolutions of integers by tiles (cpu_tiles.c): which layers compute so, their memory, and their
 * weights. */
#include "device/cpu/worker/cpu_worker.h"

#include "num/window_blocks.h"

enum {
    BLOCK = QN__PANEL * QN__PANEL,
    GROUPS = QN__STEP_DEPTHS / QN__PANEL, /* panels of a step */
    LEAST_PANELS = 3,                     /* of a pixel that has steps for itself */
    MOST_BYTES = 3 << 18                  /* of rows of operands, if a pixel is small enough */
};

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* Whether a step backward, too, has the same taps for each position. */
static int is_even(const qn__cpu_axis *axis) {
    return qn__cpu_axis_is_plain(axis) && (!axis->back || axis->stride == 1);
}

static void set_pixels(qn__cpu_way *way, const qn__cpu_axis *axis, uint32_t pixels) {
    way->pixels = pixels;
    way->positions = (pixels - 1) * axis->stride + axis->kernel;
    way->row = (size_t)way->positions * way->pixel;
    way->row += way->row % 256 == 0 ? QN__STEP_DEPTHS : 0; /* as for qn__cpu_tiled.row */
}

/* Panels of a pixel to the steps of a product. */
static void shape_way(qn__cpu_way *way, const qn__cpu_walk *walk, uint32_t planes) {
    const qn__cpu_axis *axis = walk->axis;
    const uint32_t chunks = qn__tiles_parts(walk->panels, GROUPS);
    const uint32_t joined = walk->panels < LEAST_PANELS ? GROUPS / walk->panels : 1;
    const uint32_t row_steps = qn__tiles_parts(axis[1].kernel, joined) * chunks;
    const uint32_t steps = axis[0].kernel * row_steps;
    if (!is_even(&axis[0]) || !is_even(&axis[1]) || (joined > 1 && axis[1].kernel == 1) ||
        steps > QN__LONGEST_SUM || axis[0].kernel > QN__TILES_WINDOW)
        return;
    way->steps = steps;
    way->row_steps = row_steps;
    way->chunks = chunks;
    way->joined = joined;
    way->pixel = chunks * QN__STEP_DEPTHS;
    const size_t all =
        MOST_BYTES / ((size_t)way->pixel * QN__TILES_ITEMS * planes * axis[0].kernel);
    const uint32_t read = axis[1].kernel;
    way->pixels = all > read ? (uint32_t)(all - read) / axis[1].stride + 1 : 1;
    set_pixels(way, &axis[1], least(way->pixels, axis[1].size));
}

void qn__cpu_tiles_whole(qn__cpu_layer *l, uint32_t across) {
    qn__cpu_way *way = &l->tiles.way[0];
    if (way->steps)
        set_pixels(way, &l->outputs.axis[1], way->pixels / across * across);
}

/* With fewer items a tile would have few rows. Of a sequence a pixel has other integers in each
 * window that reads it (25.24). */
void qn__cpu_tiles_ways(const qn__worker *w, qn__cpu_layer *l) {
    if (qn__layer_has_window_blocks(l->layer) || !w->bits || !w->intgemm->conv ||
        !qn__planes(w->bits) || !qn__cpu_walks_integers(l) ||
        qn__program_part(w->program) < QN__PANEL)
        return;
    shape_way(&l->tiles.way[0], &l->outputs, qn__planes(w->bits));
    if (l->below)
        shape_way(&l->tiles.way[1], &l->inputs, qn__planes(w->bits));
}

size_t qn__cpu_tiles_weights(const qn__worker *w, const qn__cpu_layer *l, int back) {
    return (size_t)l->tiles.way[back].steps * qn__planes(w->bits) * QN__TILE_BYTES;
}

static size_t greater(size_t a, size_t b) { return a > b ? a : b; }

void qn__cpu_tiles_carve_rows(qn__cpu_arena *a, const qn__worker *w, qn__cpu_tiles_space *space) {
    size_t bytes = 0, steps = 0, tiles = 0;
    for (uint32_t i = 0; i < 2 * w->program->layers; ++i) {
        const qn__cpu_layer *l = &w->layer[i / 2];
        const qn__cpu_way *way = &l->tiles.way[i % 2];
        const uint32_t rows = (i % 2 ? &l->inputs : &l->outputs)->axis[0].kernel;
        if (!way->steps)
            continue;
        bytes = greater(bytes, qn__cpu_way_plane(way) * qn__planes(w->bits) * rows);
        steps = greater(steps, way->steps);
        tiles = greater(tiles, (size_t)way->pixels * (QN__TILES_ITEMS / QN__PANEL));
    }
    if (!bytes)
        return;
    space->rows = qn__cpu_carve(a, bytes, 1);
    space->step = qn__cpu_carve(a, steps, sizeof *space->step);
    space->tile = qn__cpu_carve(a, tiles, sizeof *space->tile);
    space->factor = qn__cpu_carve(a, QN__TILES_ITEMS, sizeof(float));
    space->inverse = qn__cpu_carve(a, QN__TILES_ITEMS, sizeof(float));
}

/* ------------------------------------------------------------------------------------- weights */

/* Tap and panel of the operand of group g of a step; 0 where there is none. */
static int group_at(const qn__cpu_way *way, const qn__cpu_walk *walk, uint32_t step, uint32_t g,
                    uint32_t *tap, uint32_t *panel) {
    const uint32_t width = walk->axis[1].kernel, own = step % way->row_steps;
    const uint32_t x = own / way->chunks * way->joined + (way->joined > 1 ? g / walk->panels : 0);
    *tap = step / way->row_steps * width + x;
    *panel = way->joined > 1 ? g % walk->panels : own % way->chunks * GROUPS + g;
    return x < width && *panel < walk->panels;
}

void qn__cpu_tiles_pack(const qn__worker *w, const qn__cpu_layer *l, uint32_t panel) {
    const qn__cpu_way *way = &l->tiles.way[0];
    const qn__cpu_intgemm *packed = &l->intgemm;
    const float *weights = l->weights + (size_t)panel * qn__cpu_blocks(l) * BLOCK;
    char *to = (char *)packed->right + panel * packed->right_size;
    for (uint32_t s = 0; s < way->steps; ++s, to += QN__TILE_BYTES) {
        const float *group[GROUPS];
        for (uint32_t g = 0, tap, p; g < GROUPS; ++g)
            group[g] = group_at(way, &l->outputs, s, g, &tap, &p)
                           ? weights + ((size_t)tap * l->in_panels + p) * BLOCK
                           : w->nothing;
        w->intgemm->conv->weights(w->bits, group, packed->inverse + (size_t)panel * QN__PANEL, to,
                                  (size_t)way->steps * QN__TILE_BYTES);
    }
}

void qn__cpu_tiles_pack_back(const qn__worker *w, const qn__cpu_layer *l, uint32_t panel) {
    const qn__cpu_way *way = &l->tiles.way[1];
    const qn__cpu_intgemm *packed = &l->intgemm;
    char *to = (char *)packed->transposed + panel * packed->transposed_size;
    for (uint32_t s = 0; s < way->steps; ++s, to += QN__TILE_BYTES) {
        const float *group[GROUPS], *inverse[GROUPS];
        for (uint32_t g = 0, tap, p; g < GROUPS; ++g) {
            group[g] = inverse[g] = w->nothing;
            if (!group_at(way, &l->inputs, s, g, &tap, &p))
                continue;
            const size_t block = (size_t)(l->taps - 1 - tap) * l->out_panels + p;
            group[g] = l->weights + l->transposed_blocks[block] + (size_t)panel * BLOCK;
            inverse[g] = packed->inverse + (size_t)p * QN__PANEL;
        }
        w->intgemm->conv->weights_back(w->bits, group, inverse, to,
                                       (size_t)way->steps * QN__TILE_BYTES);
    }
}
