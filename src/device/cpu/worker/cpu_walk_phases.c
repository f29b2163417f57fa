/* Layers over pictures, run by run: forward, errors of the layer below, pooling.
 *
 * A task is a run of rows (cpu_walk.h) by a group of panels of results. It multiplies, and then
 * does all else with the same rows while they are in a cache: the activation, the layers that
 * follow, the derivatives. Runs of a picture of 3 x 2 pixels with a window of 1, for two groups:
 *
 *               panels 0-1    panels 2-3
 *     row 0     task 0        task 1
 *     row 1     task 2        task 3
 *
 * With a window of 3 x 3 and one panel of results a value would be loaded for each product. There
 * the kernel `slide` computes a whole row of pixels: it keeps a value for the three windows that
 * read it. */
#include "device/cpu/worker/cpu_kinds.h"

/* Tasks for each core, if there are runs enough. Each task of integers packs its run. Of float32
 * there are more, if each has so many rows of one panel: runs at the borders of a picture are
 * shorter than others, and a core that finds none left waits for the longest. */
enum { BLOCK = QN__PANEL * QN__PANEL, TASKS = 4, INTEGER_TASKS = 2, MANY_TASKS = 32, ROWS = 256 };

/* ----------------------------------------------------------------------------------- products */

static uint32_t tasks_wanted(const qn__worker *w, const qn__cpu_walk *walk, uint32_t panels) {
    const uint32_t threads = (uint32_t)w->threads,
                   few = (w->bits ? INTEGER_TASKS : TASKS) * threads;
    const uint64_t pixels = (uint64_t)walk->axis[0].size * walk->axis[1].size;
    const uint64_t fit = pixels * walk->items * panels / ROWS, most = MANY_TASKS * threads;
    return w->bits || fit < few ? few : (uint32_t)(fit < most ? fit : most);
}

/* The panels of a walk's results in groups, so that there are tasks for all cores. */
static qn__cpu_grid grid_of(const qn__worker *w, const qn__cpu_walk *walk, uint32_t panels,
                            uint32_t *width) {
    const uint32_t runs = qn__cpu_runs(walk), least = w->kernels->panels;
    const uint32_t enough = tasks_wanted(w, walk, panels);
    uint32_t groups = 1;
    while (runs * groups < enough && groups < (panels + least - 1) / least)
        ++groups;
    const uint32_t each = (panels + groups - 1) / groups;
    *width = (each + least - 1) / least * least;
    return (qn__cpu_grid){runs, (panels + *width - 1) / *width, 1};
}

/* The same of a run with one panel of results whose windows slide. Returns 0 for others: those
 * without some column of taps, at a border. */
static int slide(const qn__worker *w, const qn__cpu_walk *walk, const qn__cpu_walk_run *run,
                 const float *a, size_t a_stride, const float *b, float *c, const float *start) {
    const qn__cpu_axis *vertical = &walk->axis[0], *horizontal = &walk->axis[1];
    const int64_t left = qn__cpu_reads(horizontal, run->x, horizontal->back ? 2 : 0);
    const int64_t right = qn__cpu_reads(horizontal, run->x, horizontal->back ? 0 : 2);
    const size_t pixel = (size_t)walk->items * QN__PANEL, width = horizontal->limit;
    uint32_t first = 0, end = vertical->kernel;
    if (!walk->slides || run->pixels < 2 || left < 0 || right < 0)
        return 0;
    while (first < end && qn__cpu_reads(vertical, run->y, first) < 0)
        ++first;
    while (first < end && qn__cpu_reads(vertical, run->y, end - 1) < 0)
        --end;
    if (first == end)
        return 0;
    const int64_t top = qn__cpu_reads(vertical, run->y, vertical->back ? end - 1 : first);
    const qn__cpu_slide s = {.rows = walk->items,
                             .columns = run->pixels,
                             .windows = end - first,
                             .panels = walk->panels,
                             .a_row = QN__PANEL,
                             .a_column = pixel,
                             .a_panel = a_stride,
                             .a_window = width * pixel,
                             .c_row = QN__PANEL,
                             .c_column = pixel,
                             .back = horizontal->back};
    w->kernels->slide(&s, a + ((size_t)top * width + (size_t)left) * pixel,
                      b + (size_t)first * horizontal->kernel * walk->panels * BLOCK,
                      c + run->row * QN__PANEL, start ? start : w->nothing);
    return 1;
}

/* The chains of a run, of at most `most` steps. */
static qn__cpu_chain chain_of(const qn__worker *w, int thread, const qn__cpu_walk *walk,
                              const qn__cpu_walk_run *run, uint32_t most, size_t a_stride) {
    size_t *blocks = w->core[thread].blocks;
    const uint32_t k =
        qn__cpu_run_blocks(walk, run, a_stride, blocks, blocks + w->run_blocks) * QN__PANEL;
    return (qn__cpu_chain){
        .k = k < most ? k : most, .a = blocks, .b = blocks + w->run_blocks, .positive = 1};
}

/* The same of a first layer with pictures, whose windows are read where they are. A run has all
 * items of pixels that follow one another, row after row, or some items of one. */
static void picture_product(const qn__cpu_pass *pass, const qn__cpu_layer *l,
                            const qn__cpu_walk_run *run, const float *b, size_t weights, float *c,
                            const float *start, uint32_t panels) {
    const uint32_t across = l->layer->to.width, end = run->x + run->pixels;
    const size_t apart = (size_t)pass->batch->items * QN__PANEL;
    qn__cpu_windows s = qn__cpu_windows_of(l);
    s.items = run->rows / run->pixels;
    s.panels = panels;
    s.b_panel = weights;
    s.c_column = apart;
    s.c_panel = l->out_stride;
    for (uint32_t pixel = run->x; pixel < end; pixel += s.columns) {
        const uint32_t x = pixel % across, left = across - x;
        s.columns = left < end - pixel ? left : end - pixel;
        pass->worker->kernels->windows(
            &s, l->input + run->item * s.a_item + qn__cpu_picture_at(l, pixel / across, x), b,
            c + pixel * apart + (size_t)run->item * QN__PANEL, start);
    }
}

/* Whether products of a layer with taps are those of float32 by panels: then a core does all that
 * follows with a few panels while they are in the L1 cache. */
static int goes_by_panels(const qn__worker *w, const qn__cpu_layer *l) {
    return l->taps && !w->bits && !l->pictures;
}

/* What a product at the end of a path is added to, for rows of some panels: fetched before the
 * product, and added in place. */
static void fetch_others(const qn__cpu_pass *pass, const qn__cpu_layer *l, uint32_t panel,
                         uint32_t panels, const qn__cpu_walk_run *run) {
    const float *other = qn__cpu_beside(pass, l->add, l) + run->row * QN__PANEL;
    for (uint32_t p = panel; p < panel + panels; ++p)
        for (uint32_t i = 0; i < run->rows; ++i)
            __builtin_prefetch(other + p * l->out_stride + (size_t)i * QN__PANEL, 0, 2);
}

static void add_panel(const qn__cpu_pass *pass, int thread, uint32_t add, uint32_t panel,
                      const qn__cpu_walk_run *run, float *out) {
    const qn__cpu_layer *l = &pass->worker->layer[add];
    int plain;
    l->kind->follow(pass, add, panel, panel * l->out_stride + run->row * QN__PANEL, run->rows,
                    &plain, out);
    qn__cpu_after_product(pass, thread, add, panel, (uint32_t)run->row, run->rows, out);
}

/* Panels panel .. panel + panels - 1 of a run: products, and what follows. */
static void forward_panels(const qn__cpu_pass *pass, int thread, uint32_t layer,
                           const qn__cpu_walk_run *run, qn__cpu_chain chain, uint32_t panel,
                           uint32_t panels) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const size_t weights = (size_t)qn__cpu_blocks(l) * BLOCK;
    const float *input = qn__cpu_input(pass, l), *own = l->weights + panel * weights;
    const float *bias = l->bias + (size_t)panel * QN__PANEL;
    float *out = qn__cpu_target(pass, l)->output + panel * l->out_stride;
    uint32_t done = layer;
    if (qn__cpu_adds(pass, l))
        fetch_others(pass, l, panel, panels, run);
    if (l->taps && w->bits) {
        qn__cpu_walk_product(pass, thread, layer, run, panel, panels);
    } else if (l->pictures) {
        picture_product(pass, l, run, own, weights, out, bias, panels);
    } else if (l->taps && !slide(w, &l->outputs, run, input, l->in_stride, own, out, bias)) {
        done = qn__cpu_lead(pass, layer, panel, panels, (uint32_t)run->row, &chain.after);
        w->kernels->matmul(run->rows, &chain, input, own, weights, out + run->row * QN__PANEL,
                           l->out_stride, bias, panels);
    }
    for (uint32_t p = 0; p < panels; ++p) {
        float *to = out + p * l->out_stride + run->row * QN__PANEL;
        if (l->kind->run)
            l->kind->run(pass, thread, l, run, panel + p, to);
        if (qn__cpu_adds(pass, l))
            add_panel(pass, thread, layer + 1, panel + p, run, to);
        else
            qn__cpu_follow_from(pass, thread, layer, done, panel + p, (uint32_t)run->row, run->rows,
                                to);
    }
}

void qn__cpu_walk_forward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const uint32_t most = l->taps == 1 ? l->channels : UINT32_MAX;
    uint32_t width;
    const qn__cpu_grid grid = grid_of(w, &l->outputs, l->out_panels, &width);
    for (uint32_t index, group; qn__cpu_take(w, thread, phase, grid, &index, &group);) {
        const qn__cpu_walk_run run = qn__cpu_run_at(&l->outputs, index);
        const uint32_t panel = group * width, left = l->out_panels - panel;
        const uint32_t panels = left < width ? left : width;
        uint32_t each = panels;
        qn__cpu_chain chain = {0};
        if (goes_by_panels(w, l)) {
            each = w->kernels->panels;
            chain = chain_of(w, thread, &l->outputs, &run, most, l->in_stride);
        }
        for (uint32_t p = 0; p < panels; p += each)
            forward_panels(pass, thread, layer, &run, chain, panel + p,
                           panels - p < each ? panels - p : each);
        if (w->bits)
            qn__cpu_note_outputs(pass, layer, run.row, run.rows, panel, panels);
    }
}

/* ------------------------------------------------------------------------------------- errors */

/* The weights of a panel of inputs, transposed: see qn__cpu_layer. */
void qn__cpu_walk_transpose(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const qn__cpu_grid grid = {l->in_panels, l->taps, 1};
    for (uint32_t panel, tap; qn__cpu_take(w, thread, phase, grid, &panel, &tap);) {
        float *to = l->transposed + ((size_t)panel * l->taps + tap) * l->out_panels * BLOCK;
        for (uint32_t out = 0; out < l->out_panels; ++out, to += BLOCK) {
            const float *from =
                l->weights +
                ((size_t)out * qn__cpu_blocks(l) + (size_t)tap * l->in_panels + panel) * BLOCK;
            const float *ahead = from + (size_t)2 * qn__cpu_blocks(l) * BLOCK;
            for (uint32_t o = 0; o < QN__PANEL; ++o) {
                __builtin_prefetch(ahead + o * QN__PANEL, 0, 3);
                for (uint32_t k = 0; k < QN__PANEL; ++k)
                    to[o * QN__PANEL + k] = from[k * QN__PANEL + o];
            }
        }
    }
}

/* Panels panel .. panel + panels - 1 of a run: products, and what follows. */
static void backward_panels(const qn__cpu_pass *pass, int thread, uint32_t layer,
                            const qn__cpu_walk_run *run, const qn__cpu_chain *chain, uint32_t panel,
                            uint32_t panels) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer], *below = l->below;
    const size_t weights = (size_t)l->taps * l->out_panels * BLOCK;
    const float *own = l->transposed + panel * weights;
    float *error = qn__cpu_passes(l) + panel * below->out_stride;
    if (l->taps && w->bits)
        qn__cpu_walk_errors(pass, thread, layer, run, panel, panels);
    else if (qn__cpu_is_sparse(l))
        qn__cpu_sparse_errors(pass, l, run, panel, panels, error, below->out_stride);
    else if (l->taps && !slide(w, &l->inputs, run, l->error, l->out_stride, own, error, NULL)) {
        for (uint32_t p = 0; p < panels; ++p)
            qn__cpu_fetch_after_errors(pass, layer, panel + p, (uint32_t)run->row, run->rows);
        w->kernels->matmul(run->rows, chain, l->error, own, weights, error + run->row * QN__PANEL,
                           below->out_stride, NULL, panels);
    }
    for (uint32_t p = 0; p < panels; ++p) {
        if (l->kind->run_back)
            l->kind->run_back(pass, thread, l, run, panel + p,
                              error + p * below->out_stride + run->row * QN__PANEL);
        qn__cpu_after_errors(pass, &w->core[thread], layer, panel + p, (uint32_t)run->row,
                             run->rows);
    }
}

void qn__cpu_walk_backward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const int by_panels = l->taps && !w->bits && !qn__cpu_is_sparse(l);
    uint32_t width;
    const qn__cpu_grid grid = grid_of(w, &l->inputs, l->in_panels, &width);
    for (uint32_t index, group; qn__cpu_take(w, thread, phase, grid, &index, &group);) {
        const qn__cpu_walk_run run = qn__cpu_run_at(&l->inputs, index);
        const uint32_t panel = group * width, left = l->in_panels - panel;
        const uint32_t panels = left < width ? left : width;
        const uint32_t each = by_panels ? w->kernels->panels : panels;
        qn__cpu_chain chain = {0};
        if (by_panels)
            chain = chain_of(w, thread, &l->inputs, &run, UINT32_MAX, l->out_stride);
        for (uint32_t p = 0; p < panels; p += each)
            backward_panels(pass, thread, layer, &run, &chain, panel + p,
                            panels - p < each ? panels - p : each);
        if (w->bits)
            qn__cpu_note_passed(pass, layer, run.row, run.rows, panel, panels);
    }
}
