/* The weight gradient of a convolution.
 *
 * The chain of a weight runs over the output pixels of a grain and, within each, over its items. A
 * task has one panel of inputs, some taps and a group of panels of outputs. It goes through the
 * pixels in pieces that stay in a cache, and through all its taps for each piece: the taps read
 * nearly the same inputs and the same errors. Between two pieces the sums are stored, so each chain
 * keeps its order. A pixel has the items of all grains, one grain after the other. So some grains
 * take turns in each piece: one alone would use a part of each page, and of the sets of a cache. */
#include "device/cpu/worker/cpu_gradient_sums.h"
#include <string.h>

/* A piece has one panel of inputs and all panels of outputs of a task. By rows, each call reads one
 * panel of each, and the kernels choose the length, `piece`. Points read a panel of inputs once for
 * all outputs of a task, which need not be in the L1 cache: fewer pieces store fewer sums. */
enum { BLOCK = QN__PANEL * QN__PANEL, PIECE_ROWS = 96, POINT_ROWS = 256, POINT_TASKS = 8 };

typedef struct task {
    const qn__cpu_layer *l;
    const qn__cpu_summing *how;
    /* A panel of inputs, taps from `tap` on. Of pictures and points: blocks, as if they were taps.
     */
    uint32_t in, tap, taps;
    uint32_t out, panels; /* panels of outputs */
    uint32_t items;       /* of the batch */
    uint32_t pixels;      /* of a piece, at most */
    int by_rows;          /* neighbouring taps in one call of the kernel */
    int sparse;           /* by lists of errors: cpu_sparse.c */
} task;

/* Grains that are summed together: the items item .. end - 1 of a batch, with QN__WALK_CELLS
 * partials for each grain. */
typedef struct stretch {
    uint32_t item, end, grain;
    float *partial;
} stretch;

/* A grain of them. */
typedef struct portion {
    uint32_t item, items;
    float *partial;
} portion;

static portion portion_of(const stretch *s, uint32_t item) {
    const uint32_t left = s->end - item;
    return (portion){item, left < s->grain ? left : s->grain,
                     s->partial + (size_t)((item - s->item) / s->grain) * QN__WALK_CELLS};
}

/* Where the sums of a tap by a panel of outputs are, in blocks. The kernel's panels follow one
 * another: those of outputs, or taps of a row, the last one first. Of pictures all factors of a
 * panel of outputs follow one another. */
static size_t place(const task *t, uint32_t panel, uint32_t tap) {
    if (t->l->pictures)
        return (size_t)panel * t->taps + (tap - t->tap);
    return t->by_rows ? (size_t)panel * t->taps + (t->tap + t->taps - 1 - tap)
                      : (size_t)(tap - t->tap) * t->panels + panel;
}

/* Whether a task has any blocks of weights, not the taps of one panel of inputs. */
static int has_blocks(const qn__cpu_layer *l) { return l->pictures || l->points; }

/* The block of weights of tap `tap` + k. */
static uint32_t block_of(const task *t, uint32_t k) {
    return has_blocks(t->l) ? t->tap + k : (t->tap + k) * t->l->in_panels + t->in;
}

/* Pixels of a piece of that many rows. */
static uint32_t piece_of(uint32_t rows, uint32_t items) { return items < rows ? rows / items : 1; }

/* Whether neighbouring outputs read neighbouring inputs. */
static int goes_by_rows(const qn__cpu_axis *axis) {
    return axis->stride == 1 && axis->spread == 1 && axis->kernel > 1;
}

/* Narrows the positions *from .. *to - 1 to those that read an input at tap k. */
static void narrow_to(const qn__cpu_axis *axis, uint32_t k, uint32_t *from, uint32_t *to) {
    while (*from < *to && qn__cpu_reads(axis, *from, k) < 0)
        ++*from;
    while (*from < *to && qn__cpu_reads(axis, *to - 1, k) < 0)
        --*to;
}

/* Adds the output pixels rows y .. y_end - 1, columns x .. x_end - 1 to the partials of a tap. */
static void add_piece(const qn__worker *w, const task *t, uint32_t tap, uint32_t y, uint32_t y_end,
                      uint32_t x, uint32_t x_end, const portion *of) {
    float *partial = of->partial + place(t, 0, tap) * BLOCK;
    const qn__cpu_layer *l = t->l;
    const qn__cpu_axis *axis = l->outputs.axis;
    const uint32_t ky = tap / axis[1].kernel, kx = tap % axis[1].kernel;
    const size_t row = QN__PANEL, pixel = t->items * row;
    narrow_to(&axis[0], ky, &y, &y_end);
    narrow_to(&axis[1], kx, &x, &x_end);
    if (y >= y_end || x >= x_end)
        return;
    qn__cpu_span span = {of->items,
                         (x_end - x - 1) / axis[1].spread + 1, /* every spread-th reads one */
                         (y_end - y - 1) / axis[0].spread + 1,
                         axis[1].stride * pixel,
                         axis[0].stride * axis[1].limit * pixel,
                         axis[1].spread * pixel,
                         axis[0].spread * axis[1].size * pixel,
                         axis[1].stride * t->pixels * pixel,
                         tap == t->tap ? t->pixels * pixel : 0};
    if (of->items == t->items && axis[1].stride == 1 &&
        axis[1].spread == 1) { /* neighbours are consecutive rows */
        span.items *= span.columns;
        span.columns = 1;
    }
    const size_t from = (size_t)qn__cpu_reads(&axis[0], y, ky) * axis[1].limit +
                        (size_t)qn__cpu_reads(&axis[1], x, kx);
    const float *a = l->input + t->in * l->in_stride + from * pixel + of->item * row;
    const float *d =
        l->error + t->out * l->out_stride + ((size_t)y * axis[1].size + x) * pixel + of->item * row;
    w->kernels->outer(&span, a, NULL, d, l->out_stride, partial, QN__PARTIAL_RAW, partial,
                      t->panels);
}

/* Output rows y .. y_end - 1, and columns x .. x_end - 1 of the inputs. */
typedef struct area {
    uint32_t y, y_end, x, x_end;
} area;

/* What the calls for an area prefetch, each a part: inputs of the next area, and errors of the next
 * panel, after the last one those of the next area. */
static void look_ahead(const task *t, uint32_t panel, uint32_t ky, const area *at,
                       qn__cpu_taps *s) {
    const qn__cpu_axis *axis = t->l->outputs.axis;
    const uint32_t width = axis[1].kernel, top = t->tap / width;
    const uint32_t bottom = (t->tap + t->taps - 1) / width, rows = at->y_end - at->y;
    const int whole = at->x_end - at->x == axis[1].limit;
    const size_t piece = (size_t)(at->x_end - at->x) * s->column;
    const ptrdiff_t panels = (ptrdiff_t)((size_t)panel * t->l->out_stride);
    s->d_turns = bottom - top + 1;
    s->d_turn = ky - top;
    s->a_turns = t->panels * s->d_turns;
    s->a_turn = panel * s->d_turns + s->d_turn;
    s->a_ahead = (ptrdiff_t)(whole ? (rows + (bottom - ky) * axis[0].dilation) * s->a_row : piece);
    s->d_ahead = panel + 1 < t->panels ? (ptrdiff_t)t->l->out_stride
                                       : (ptrdiff_t)(whole ? rows * s->d_row : piece) - panels;
}

/* Adds an area for the taps of the row of windows `ky` and a panel of outputs. The kernel takes
 * taps for panels of errors: input x by tap k belongs to the output at x + pad - k * dilation. So
 * it loads each input once for all of them. */
static void add_taps(const qn__worker *w, const task *t, uint32_t panel, uint32_t ky,
                     const area *at, const portion *of) {
    const qn__cpu_layer *l = t->l;
    const qn__cpu_axis *axis = l->outputs.axis;
    const uint32_t width = axis[1].kernel, own = t->tap + t->taps;
    const uint32_t first = ky * width > t->tap ? ky * width : t->tap;
    const uint32_t end = (ky + 1) * width < own ? (ky + 1) * width : own;
    const size_t row = QN__PANEL, pixel = t->items * row;
    uint32_t y = at->y, y_end = at->y_end;
    narrow_to(&axis[0], ky, &y, &y_end);
    if (y >= y_end)
        return;
    const size_t read = (size_t)qn__cpu_reads(&axis[0], y, ky) * axis[1].limit;
    const size_t made = (size_t)y * axis[1].size;
    qn__cpu_taps s = {.items = of->items,
                      .x = at->x,
                      .x_end = at->x_end,
                      .rows = (y_end - y - 1) / axis[0].spread + 1, /* as in add_piece */
                      .panels = end - first,
                      .dilation = axis[1].dilation,
                      .outputs = axis[1].size,
                      .lead =
                          (int64_t)axis[1].pad - (int64_t)(end - 1 - ky * width) * axis[1].dilation,
                      .column = pixel,
                      .a_row = axis[0].stride * axis[1].limit * pixel,
                      .d_row = axis[0].spread * axis[1].size * pixel};
    look_ahead(t, panel, ky, at, &s);
    w->kernels->taps(&s, l->input + t->in * l->in_stride + read * pixel + of->item * row,
                     l->error + (t->out + panel) * l->out_stride + made * pixel + of->item * row,
                     of->partial + place(t, panel, end - 1) * BLOCK);
}

/* The same for all rows of windows. */
static void add_area(const qn__worker *w, const task *t, uint32_t panel, const area *at,
                     const portion *of) {
    const uint32_t width = t->l->outputs.axis[1].kernel, last = t->tap + t->taps - 1;
    for (uint32_t ky = t->tap / width; ky <= last / width; ++ky)
        add_taps(w, t, panel, ky, at, of);
}

/* The partials of some grains, where the task goes by rows: through the inputs of some output
 * rows, or of pieces of one. So each tap meets its outputs in their order. */
static void add_by_rows(const qn__worker *w, const task *t, const stretch *s) {
    const qn__cpu_axis *axis = t->l->outputs.axis;
    const uint32_t height = axis[0].size, width = axis[1].limit;
    const uint32_t rows = t->pixels > width ? t->pixels / width : 1;
    const uint32_t pieces = (width - 1) / t->pixels + 1;
    area at = {.y = 0};
    for (; at.y < height; at.y += rows) {
        at.y_end = at.y + rows < height ? at.y + rows : height;
        at.x = 0;
        for (uint32_t q = 0; q < pieces; ++q, at.x = at.x_end) {
            at.x_end = (uint32_t)((uint64_t)width * (q + 1) / pieces);
            for (uint32_t p = 0; p < t->panels; ++p)
                for (uint32_t i = s->item; i < s->end; i += s->grain) {
                    const portion of = portion_of(s, i);
                    add_area(w, t, p, &at, &of);
                }
        }
    }
}

/* Adds neighbouring output pixels of a row, all items of a grain, to the partials of all blocks:
 * strip by strip. */
static void add_strips(const qn__worker *w, const task *t, uint32_t y, uint32_t x, uint32_t pixels,
                       const portion *of) {
    const qn__cpu_layer *l = t->l;
    const size_t apart = (size_t)t->items * QN__PANEL, first = (size_t)t->tap * QN__PANEL;
    const size_t made = (size_t)y * l->layer->to.width + x, space = qn__cpu_unfold_space(l);
    const size_t column = qn__cpu_picture_at(l, 0, 1), last = first + (size_t)t->taps * QN__PANEL;
    const size_t end = last < l->channels ? last : l->channels;
    const float *a = l->input + of->item * space + qn__cpu_picture_at(l, y, x);
    const float *d =
        l->error + t->out * l->out_stride + made * apart + (size_t)of->item * QN__PANEL;
    qn__cpu_strip s = {.items = of->items,
                       .columns = pixels,
                       .panels = t->panels,
                       .a_item = space,
                       .a_column = column,
                       .a_ahead = pixels * column,
                       .d_column = apart,
                       .d_panel = l->out_stride,
                       .d_ahead = pixels * apart,
                       .sums_panel = (size_t)t->taps * BLOCK};
    for (size_t f = first, at; f < end; f += s.factors, s.d_ahead = 0) {
        s.factors = qn__cpu_picture_strip(l, f, end, &at);
        w->kernels->strip(&s, a + at, d, of->partial + (f - first) * QN__PANEL);
    }
}

/* The partials of some grains of a first layer with pictures. */
static void add_pictures(const qn__worker *w, const task *t, const stretch *s) {
    const qn__shape to = t->l->layer->to;
    const uint32_t pieces = (to.width - 1) / t->pixels + 1;
    for (uint32_t y = 0; y < to.height; ++y)
        for (uint32_t p = 0, x = 0, end; p < pieces; ++p, x = end) {
            end = (uint32_t)((uint64_t)to.width * (p + 1) / pieces);
            for (uint32_t i = s->item; i < s->end; i += s->grain) {
                const portion of = portion_of(s, i);
                add_strips(w, t, y, x, end - x, &of);
            }
        }
}

/* From a portion to the one that is summed next, in floats: the next grain of these pixels, or the
 * first one of the next pixels. It has room in the L2 cache beside the portion and all partials. */
static size_t next_portion(const task *t, const stretch *s, uint32_t item) {
    if (item + s->grain < s->end)
        return (size_t)s->grain * QN__PANEL;
    return ((size_t)t->pixels * t->items - (item - s->item)) * QN__PANEL;
}

/* The partials of some grains of points, where each output reads the input of its place: panel by
 * panel of inputs. */
static void add_points(const qn__worker *w, const task *t, const stretch *s) {
    const qn__cpu_layer *l = t->l;
    const size_t pixel = (size_t)t->items * QN__PANEL;
    const uint32_t all = l->outputs.axis[1].size; /* of one row: see qn__cpu_walk_axes */
    for (uint32_t x = 0, n; x < all; x += n) {
        n = all - x < t->pixels ? all - x : t->pixels;
        for (uint32_t i = s->item; i < s->end; i += s->grain) {
            const portion of = portion_of(s, i);
            const size_t at = x * pixel + (size_t)of.item * QN__PANEL;
            const size_t ahead = next_portion(t, s, i);
            const float *d = l->error + t->out * l->out_stride + at;
            const int joined = of.items == t->items; /* pixels are consecutive rows */
            qn__cpu_span span = {.items = joined ? of.items * n : of.items,
                                 .columns = joined ? 1 : n,
                                 .rows = 1,
                                 .a_column = pixel,
                                 .d_column = pixel,
                                 .a_ahead = ahead};
            for (uint32_t k = 0; k < t->taps; ++k) { /* the next errors panel by panel */
                span.d_ahead = k < t->panels ? ahead + k * l->out_stride : 0;
                float *partial = of.partial + place(t, 0, t->tap + k) * BLOCK;
                w->kernels->outer(&span, l->input + (t->tap + k) * l->in_stride + at, NULL, d,
                                  l->out_stride, partial, QN__PARTIAL_RAW, partial, t->panels);
            }
        }
    }
}

/* The same of other layers, tap by tap. */
static void add_by_taps(const qn__worker *w, const task *t, const stretch *s) {
    const qn__cpu_axis *axis = t->l->outputs.axis;
    const uint32_t height = axis[0].size, width = axis[1].size;
    const uint32_t columns = t->pixels < width ? t->pixels : width;
    const uint32_t rows = t->pixels / width > 1 ? t->pixels / width : 1;
    for (uint32_t y = 0; y < height; y += rows)
        for (uint32_t x = 0; x < width; x += columns)
            for (uint32_t i = s->item; i < s->end; i += s->grain) {
                const portion of = portion_of(s, i);
                for (uint32_t k = 0; k < t->taps; ++k)
                    add_piece(w, t, t->tap + k, y, y + rows < height ? y + rows : height, x,
                              x + columns < width ? x + columns : width, &of);
            }
}

static void add_sparse(const qn__cpu_pass *pass, int thread, const task *t, const stretch *s) {
    const qn__cpu_sparse_task own = {t->in, t->tap, t->taps, t->out, t->panels};
    for (uint32_t i = s->item; i < s->end; i += s->grain)
        qn__cpu_sparse_gradient(pass, thread, t->l, &own, i / s->grain, portion_of(s, i).partial);
}

/* The partials of some grains: see `place`. */
static void add_grains(const qn__cpu_pass *pass, int thread, const task *t, const stretch *s) {
    const qn__worker *w = pass->worker;
    const size_t bytes = (size_t)t->taps * t->panels * BLOCK * sizeof *s->partial;
    for (uint32_t i = s->item; i < s->end && !t->sparse; i += s->grain)
        memset(portion_of(s, i).partial, 0, bytes);
    if (t->sparse)
        add_sparse(pass, thread, t, s);
    else if (t->l->pictures)
        add_pictures(w, t, s);
    else if (t->l->points)
        add_points(w, t, s);
    else if (t->by_rows)
        add_by_rows(w, t, s);
    else
        add_by_taps(w, t, s);
}

/* Adds the partials of a grain to the sums, as sum_narrow and sum_wide of cpu_gradient.c. */
static int keep(const qn__worker *w, const task *t, const float *partial, int *held,
                qn__cpu_sums *s) {
    static const qn__cpu_span nothing;
    const size_t count = (size_t)t->taps * t->panels * BLOCK;
    int bad = 0;
    if (!t->how->narrow) {
        for (uint32_t k = 0; k < t->taps; ++k)
            for (uint32_t p = 0; p < t->panels; ++p) {
                const size_t at = place(t, p, t->tap + k) * BLOCK;
                const uint32_t rows = qn__cpu_rows_of(t->l, block_of(t, k));
                bad |= qn__cpu_add_partials(w, 1, (size_t)rows * QN__PANEL, partial + at,
                                            s->wide + at);
            }
        return bad;
    }
    if (*held == (int)t->how->flush_every) {
        w->kernels->flush(count, s->narrow, s->wide);
        *held = 0;
    }
    const qn__partial how = s->kind == QN__SUMS_FLOAT ? QN__PARTIAL_ONLY
                            : *held                   ? QN__PARTIAL_ADD
                                                      : QN__PARTIAL_FIRST;
    ++*held;
    w->kernels->outer(&nothing, partial, NULL, partial, 0, partial, how,
                      s->kind == QN__SUMS_FLOAT ? (void *)s->partial : (void *)s->narrow,
                      t->taps * t->panels);
    return 0;
}

/* Sums over all grains. Returns 1 when a partial was out of range. */
static int sum_all(const qn__cpu_pass *pass, int thread, const task *t, float *partial,
                   qn__cpu_sums *s) {
    const qn__worker *w = pass->worker;
    const size_t count = (size_t)t->taps * t->panels * BLOCK;
    const uint32_t grain = w->program->grain, grains = (t->items + grain - 1) / grain;
    int bad = 0, held = 0;
    s->kind = QN__SUMS_DOUBLE;
    if (t->how->narrow && grains == 1)
        s->kind = QN__SUMS_FLOAT;
    else if (!t->how->narrow || grains > t->how->flush_every) {
        s->kind = QN__SUMS_INT64;
        memset(s->wide, 0, count * sizeof *s->wide);
    }
    for (uint32_t item = 0, n; item < t->items; item += n) {
        const uint32_t left = t->items - item;
        n = left / QN__WALK_GRAINS < grain ? left : QN__WALK_GRAINS * grain;
        const stretch own = {item, item + n, grain, partial};
        add_grains(pass, thread, t, &own);
        for (uint32_t i = item; i < own.end; i += grain)
            bad |= keep(w, t, portion_of(&own, i).partial, &held, s);
    }
    if (t->how->narrow && s->kind == QN__SUMS_INT64)
        w->kernels->flush(count, s->narrow, s->wide);
    return bad;
}

static int gradient_task(const qn__cpu_pass *pass, int thread, const task *t) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = t->l;
    float *partial = w->core[thread].gradient;
    qn__cpu_sums s = {.partial = partial + (size_t)QN__WALK_GRAINS * QN__WALK_CELLS,
                      .update = pass->update};
    s.narrow = (double *)(void *)(s.partial + QN__WALK_CELLS);
    s.wide = (int64_t *)(void *)(s.narrow + QN__WALK_CELLS);
    if (sum_all(pass, thread, t, partial, &s))
        return 1;
    for (uint32_t k = 0; k < t->taps; ++k)
        for (uint32_t p = 0; p < t->panels; ++p) {
            const uint32_t block = block_of(t, k);
            const size_t from = place(t, p, t->tap + k) * BLOCK;
            qn__cpu_keep_weights(pass, l, block, qn__cpu_rows_of(l, block), t->out + p, &s, from);
        }
    return 0;
}

/* Panels of inputs in one task of points: it reads their errors once for all of them. Parts of
 * nearly equal size, and enough of them for all cores. */
static uint32_t points_of_task(const qn__cpu_layer *l, uint32_t threads) {
    const uint32_t most = QN__WALK_CELLS / BLOCK / l->group;
    uint32_t parts = (l->in_panels - 1) / most + 1;
    while (parts < l->in_panels && (uint64_t)parts * qn__cpu_groups(l) < POINT_TASKS * threads)
        ++parts;
    return (l->in_panels - 1) / parts + 1;
}

uint32_t qn__cpu_walk_taps(const qn__cpu_layer *l, int threads) {
    if (l->points)
        return points_of_task(l, (uint32_t)threads);
    const uint32_t width = l->unfolds ? 1 : l->layer->window.kernel[1];
    const uint32_t panels = l->out_panels < l->group ? l->out_panels : l->group;
    const uint64_t all = (uint64_t)qn__cpu_blocks(l) * l->out_panels * (l->below ? 2 : 1);
    const uint32_t own = l->pictures ? qn__cpu_blocks(l) : l->taps;
    uint32_t taps = own < QN__WALK_TAPS ? own : QN__WALK_TAPS;
    if (taps > width)
        taps -= taps % width;
    while (taps > 1 && (uint64_t)taps * panels * (uint32_t)threads > all)
        taps = taps > width ? taps - width : (taps + 1) / 2;
    if (l->pictures) /* tasks of nearly equal size */
        taps = (own - 1) / ((own - 1) / taps + 1) + 1;
    return taps;
}

void qn__cpu_walk_gradient(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const qn__cpu_summing how = qn__cpu_choose_sums(pass, layer);
    const uint32_t taps = l->task_taps, grain = w->program->grain;
    const uint32_t rows = l->points ? POINT_ROWS : PIECE_ROWS;
    const uint32_t items = pass->batch->items < grain ? pass->batch->items : grain;
    const int sparse = qn__cpu_is_sparse(l) && how.finite;
    const int by_rows = !sparse && goes_by_rows(&l->outputs.axis[1]);
    for (qn__cpu_walk_task own; qn__cpu_take_walk(pass, thread, layer, phase, &own);) {
        const uint32_t tap = (has_blocks(l) ? own.row : own.row / l->in_panels) * taps;
        const uint32_t left = (has_blocks(l) ? l->in_panels : l->taps) - tap;
        const task t = {.l = l,
                        .how = &how,
                        .in = has_blocks(l) ? 0 : own.row % l->in_panels,
                        .tap = tap,
                        .taps = left < taps ? left : taps,
                        .out = own.out,
                        .panels = own.panels,
                        .items = pass->batch->items,
                        .pixels = piece_of(by_rows ? w->kernels->piece : rows, items),
                        .by_rows = by_rows,
                        .sparse = sparse};
        qn__cpu_end_walk(pass, thread, layer, &own, gradient_task(pass, thread, &t));
    }
}
