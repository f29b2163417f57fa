/* Lists of the errors that are not zero (cpu_sparse.h says why), and what computes with them.
 *
 * A row of pixels of one grain becomes two lists of the same entries. With two columns and outputs
 * 0 and 1, of which item 0 has errors a and b, and item 1 has c:
 *
 *                 column 0   column 1
 *     item 0      0: a       1: b          by_item     a b | c    in the order (column, output)
 *     item 1                 0: c          by_output   a c | b    in the order (column, item)
 *
 * The errors of the layer below are sums over (column, output) of an item, so they read by_item.
 * The gradient is a sum over (column, item) of an output, so it reads by_output. `item_begin` and
 * `output_begin` tell where each part begins. A phase writes the lists. Cores take space for a row
 * by an atomic addition to `used`, so the order of rows in memory varies, but not that of a sum. */
#include "device/cpu/worker/cpu_sparse.h"

#include "device/cpu/worker/cpu_worker.h"
#include <string.h>

/* Floats that stay in an L1 cache: inputs of a piece, or weights. */
enum { BLOCK = QN__PANEL * QN__PANEL, L1_FLOATS = 8192, LEAST_ZEROS = 3 };

/* -------------------------------------------------------------------------------------- shapes */

/* Windows that the kernels have. */
static int is_usual(const qn__cpu_layer *l) {
    const qn__cpu_axis *axis = l->outputs.axis;
    int usual = axis[1].kernel == 3 || axis[1].kernel == 5;
    for (int d = 0; d < 2; ++d)
        usual &= axis[d].stride == 1 && axis[d].spread == 1 && axis[d].dilation == 1 &&
                 axis[d].pad < axis[d].kernel;
    return usual;
}

static uint32_t grain_items(const qn__worker *w) {
    return w->capacity < w->program->grain ? (uint32_t)w->capacity : w->program->grain;
}

static size_t outputs_of(const qn__cpu_layer *l) { return (size_t)l->out_panels * QN__PANEL; }

/* Numbers of output_begin for a row of a grain. */
static size_t begins_of(const qn__cpu_layer *l) { return l->sparse.pieces * outputs_of(l) + 1; }

/* Rows of windows in one task of the gradient. */
static uint32_t height_of(const qn__cpu_layer *l) {
    return l->outputs.axis[1].kernel == 3 ? l->task_taps / 3 : 1;
}

static size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

/* Bytes of the four arrays, each from a multiple of 64. */
static void sizes(const qn__worker *w, const qn__cpu_layer *l, size_t capacity, size_t size[3]) {
    const qn__cpu_axis *axis = l->outputs.axis;
    const size_t grains = capacity / grain_items(w) + 1;
    size[0] = aligned(l->sparse.capacity * sizeof(qn__cpu_entry));
    size[1] = aligned(axis[0].size * capacity * (axis[1].size + 1) * sizeof(uint32_t));
    size[2] = aligned(grains * axis[0].size * begins_of(l) * sizeof(uint32_t));
}

/* Whether a task of the gradient has whole rows of taps, of a number that the kernels have. */
static int has_usual_tasks(const qn__cpu_layer *l) {
    const uint32_t width = l->outputs.axis[1].kernel;
    return l->task_taps % width == 0 && (width == 3 ? l->task_taps <= 9 : l->task_taps == width);
}

void qn__cpu_sparse_shape(qn__worker *w, qn__cpu_layer *l, const qn__layer *pool, size_t capacity) {
    qn__cpu_sparse *s = &l->sparse;
    const qn__cpu_axis *axis = l->outputs.axis;
    const size_t most = SIZE_MAX / BLOCK < INT32_MAX ? SIZE_MAX / BLOCK : INT32_MAX;
    s->capacity = 0;
    if (!l->transposed_weights || !is_usual(l) || !has_usual_tasks(l))
        return;
    const size_t windows = (size_t)pool->to.height * pool->to.width;
    const size_t column = (size_t)height_of(l) * grain_items(w) * QN__PANEL;
    const size_t fit = L1_FLOATS / column, beside = axis[1].kernel - 1;
    if (windows * LEAST_ZEROS > l->out_pixels || l->out_pixels > most / QN__PANEL / outputs_of(l) ||
        capacity > most / (l->out_pixels * outputs_of(l)))
        return;
    s->capacity = windows * outputs_of(l) * capacity;
    s->columns = fit > beside ? (uint32_t)(fit - beside) : 1;
    s->columns = s->columns < axis[1].size ? s->columns : axis[1].size;
    s->pieces = (axis[1].size + s->columns - 1) / s->columns;
    size_t size[3];
    sizes(w, l, capacity, size);
    s->bytes = 2 * size[0] + size[1] + size[2];
}

void qn__cpu_sparse_place(qn__worker *w, qn__cpu_layer *l, size_t capacity, char *at) {
    qn__cpu_sparse *s = &l->sparse;
    size_t size[3];
    sizes(w, l, capacity, size);
    s->by_item = (qn__cpu_entry *)(void *)at;
    s->by_output = (qn__cpu_entry *)(void *)(at + size[0]);
    s->item_begin = (uint32_t *)(void *)(at + 2 * size[0]);
    s->output_begin = (uint32_t *)(void *)(at + 2 * size[0] + size[1]);
}

/* Floats of a task's inputs in one piece, with borders. */
static size_t inputs_space(const qn__worker *w, const qn__cpu_layer *l) {
    const size_t columns = l->sparse.columns + l->outputs.axis[1].kernel - 1;
    return columns * height_of(l) * grain_items(w) * QN__PANEL;
}

size_t qn__cpu_sparse_space(const qn__worker *w) {
    size_t most = 0;
    for (uint32_t i = 0; i < w->program->layers; ++i) {
        const qn__cpu_layer *l = &w->layer[i];
        if (!l->sparse.capacity)
            continue;
        const size_t inputs = inputs_space(w, l);
        const size_t masks =
            (size_t)l->outputs.axis[1].size * l->out_panels * grain_items(w) / 2 + 1;
        most = inputs > most ? inputs : most;
        most = masks > most ? masks : most;
    }
    return most;
}

int qn__cpu_is_sparse(const qn__cpu_layer *l) {
    return l->sparse.capacity &&
           atomic_load_explicit(&l->sparse.used, memory_order_relaxed) <= l->sparse.capacity;
}

/* --------------------------------------------------------------------------------------- lists */

/* A row of pixels of a grain. */
typedef struct pixel_row {
    const qn__cpu_layer *l;
    uint32_t y, items, all; /* items of the grain, of the batch */
    const float *error;     /* of its first item and pixel */
    uint16_t *mask;         /* [column][panel][item] */
} pixel_row;

static const float *error_at(const pixel_row *r, uint32_t x, uint32_t panel, uint32_t item) {
    return r->error + panel * r->l->out_stride + ((size_t)x * r->all + item) * QN__PANEL;
}

static uint16_t *masks_at(const pixel_row *r, uint32_t x, uint32_t panel) {
    return r->mask + ((size_t)x * r->l->out_panels + panel) * r->items;
}

/* Counts entries of each piece and output: into to[piece][output]. Returns their sum. */
static uint32_t count_row(const qn__worker *w, const pixel_row *r, uint32_t *to) {
    const qn__cpu_layer *l = r->l;
    const uint32_t width = l->outputs.axis[1].size;
    uint32_t sum = 0;
    memset(to, 0, (begins_of(l) - 1) * sizeof *to);
    for (uint32_t x = 0; x < width; ++x)
        for (uint32_t p = 0; p < l->out_panels; ++p) {
            uint32_t *count = to + x / l->sparse.columns * outputs_of(l) + (size_t)p * QN__PANEL;
            uint16_t *mask = masks_at(r, x, p);
            w->kernels->masks(r->items, error_at(r, x, p, 0), mask);
            for (uint32_t i = 0; i < r->items; ++i)
                for (uint32_t m = mask[i]; m; m &= m - 1, ++sum)
                    ++count[__builtin_ctz(m)];
        }
    return sum;
}

/* `begin`: of each piece and output, where its entries begin; then where they end. */
static void list_by_output(const pixel_row *r, uint32_t *begin) {
    const qn__cpu_layer *l = r->l;
    const qn__cpu_sparse *s = &l->sparse;
    for (uint32_t x = 0; x < l->outputs.axis[1].size; ++x)
        for (uint32_t p = 0; p < l->out_panels; ++p) {
            uint32_t *next = begin + x / s->columns * outputs_of(l) + (size_t)p * QN__PANEL;
            const uint32_t at = x % s->columns * r->items;
            const uint16_t *mask = masks_at(r, x, p);
            const float *error = error_at(r, x, p, 0);
            for (uint32_t i = 0; i < r->items; ++i, error += QN__PANEL)
                for (uint32_t m = mask[i]; m; m &= m - 1) {
                    const int o = __builtin_ctz(m);
                    s->by_output[next[o]++] =
                        (qn__cpu_entry){(int32_t)((at + i) * QN__PANEL), error[o]};
                }
        }
}

/* The entries of each item, from `at` on. `begin`: of the grain's first item in this row. */
static void list_by_item(const pixel_row *r, uint32_t at, uint32_t *begin) {
    const qn__cpu_layer *l = r->l;
    const uint32_t width = l->outputs.axis[1].size;
    const int32_t outputs = (int32_t)outputs_of(l);
    for (uint32_t i = 0; i < r->items; ++i, *begin++ = at)
        for (uint32_t x = 0; x < width; ++x) {
            *begin++ = at;
            for (uint32_t p = 0; p < l->out_panels; ++p) {
                const float *error = error_at(r, x, p, i);
                const int32_t first = ((int32_t)(p * QN__PANEL) - (int32_t)x * outputs) * QN__PANEL;
                for (uint32_t m = masks_at(r, x, p)[i]; m; m &= m - 1) {
                    const int o = __builtin_ctz(m);
                    l->sparse.by_item[at++] = (qn__cpu_entry){first + o * QN__PANEL, error[o]};
                }
            }
        }
}

static void list_row(const qn__worker *w, qn__cpu_layer *l, const pixel_row *r, uint32_t item,
                     uint32_t *begin) {
    qn__cpu_sparse *s = &l->sparse;
    const uint32_t sum = count_row(w, r, begin + 1);
    const size_t at = atomic_fetch_add(&s->used, sum);
    if (at > s->capacity || sum > s->capacity - at)
        return; /* never with a max pool; then `used` tells it */
    begin[0] = (uint32_t)at;
    for (size_t k = 1, next = at; k < begins_of(l); ++k) {
        const uint32_t count = begin[k];
        begin[k] = (uint32_t)next;
        next += count;
    }
    list_by_output(r, begin + 1);
    list_by_item(r, (uint32_t)at,
                 s->item_begin +
                     ((size_t)r->y * r->all + item) * (l->outputs.axis[1].size + (size_t)1));
}

static uint32_t *begins_at(const qn__cpu_layer *l, uint32_t grain, uint32_t y) {
    return l->sparse.output_begin + ((size_t)grain * l->outputs.axis[0].size + y) * begins_of(l);
}

void qn__cpu_sparse_list(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    qn__worker *w = pass->worker;
    qn__cpu_layer *l = &w->layer[layer];
    const qn__cpu_axis *axis = l->outputs.axis;
    const uint32_t items = pass->batch->items, grain = w->program->grain;
    const qn__cpu_grid grid = {(items - 1) / grain + 1, axis[0].size, 1};
    for (uint32_t g, y; qn__cpu_take(w, thread, phase, grid, &g, &y);) {
        const uint32_t item = g * grain, left = items - item;
        const pixel_row r = {l,
                             y,
                             left < grain ? left : grain,
                             items,
                             l->error + ((size_t)y * axis[1].size * items + item) * QN__PANEL,
                             (uint16_t *)(void *)w->core[thread].sparse};
        list_row(w, l, &r, item, begins_at(l, g, y));
    }
}

/* -------------------------------------------------------------------------------------- errors */

/* Columns of outputs whose weights, for some panels of inputs, stay in the L1 cache. */
static uint32_t columns_at_once(const qn__worker *w, const qn__cpu_layer *l) {
    const size_t fit = L1_FLOATS / (outputs_of(l) * QN__PANEL * w->kernels->sparse_panels);
    return fit > 1 ? (uint32_t)fit : 1;
}

/* What the outputs of a pixel's items pass to the layer below. */
typedef struct passing {
    uint32_t x, item, items; /* the pixel that gets it; of the batch's items */
    const float *weights;    /* of the first panel of inputs */
    size_t w_stride;
    uint32_t panels;
    float *c;
    size_t c_stride;
} passing;

/* Those of row `y`, read at row `ky` of the window. `first`: nothing was added before. */
static int add_row(const qn__worker *w, const qn__cpu_layer *l, const passing *to, uint32_t y,
                   uint32_t ky, int first) {
    const qn__cpu_axis *axis = &l->outputs.axis[1];
    const uint32_t at = to->x + axis->pad, step = columns_at_once(w, l);
    const uint32_t low = at + 1 > axis->kernel ? at + 1 - axis->kernel : 0;
    const uint32_t high = at < axis->size ? at + 1 : axis->size;
    const size_t begins = axis->size + (size_t)1, tap = (size_t)ky * axis->kernel + at;
    const uint32_t *begin =
        l->sparse.item_begin + ((size_t)y * l->outputs.items + to->item) * begins;
    const qn__cpu_entry *list[QN__RUN_ROWS];
    uint32_t count[QN__RUN_ROWS];
    for (uint32_t from = low, end; from < high; from = end, first = 0) {
        end = high - from < step ? high : from + step;
        for (uint32_t i = 0; i < to->items; ++i) {
            list[i] = l->sparse.by_item + begin[i * begins + from];
            count[i] = begin[i * begins + end] - begin[i * begins + from];
        }
        w->kernels->sparse_errors(to->items, to->panels, list, count,
                                  to->weights + tap * outputs_of(l) * QN__PANEL, to->w_stride,
                                  to->c, to->c_stride, first);
    }
    return first;
}

static void pass_errors(const qn__worker *w, const qn__cpu_layer *l, const passing *to,
                        uint32_t row) {
    const qn__cpu_axis *vertical = &l->inputs.axis[0];
    int first = 1;
    for (uint32_t ky = vertical->kernel; ky-- > 0;) {
        const int64_t y = qn__cpu_reads(vertical, row, ky);
        if (y >= 0)
            first = add_row(w, l, to, (uint32_t)y, ky, first);
    }
    for (uint32_t p = 0; first && p < to->panels; ++p) /* no window reads this pixel */
        memset(to->c + p * to->c_stride, 0, to->items * QN__PANEL * sizeof *to->c);
}

void qn__cpu_sparse_errors(const qn__cpu_pass *pass, const qn__cpu_layer *l,
                           const qn__cpu_walk_run *run, uint32_t panel, uint32_t panels, float *c,
                           size_t c_stride) {
    const size_t weights = (size_t)l->taps * l->out_panels * BLOCK;
    const uint32_t items = run->rows / run->pixels;
    c += run->row * QN__PANEL;
    for (uint32_t p = 0; p < run->pixels; ++p, c += (size_t)l->inputs.items * QN__PANEL)
        for (uint32_t i = 0; i < items; i += QN__RUN_ROWS) {
            const passing to = {run->x + p,
                                run->item + i,
                                items - i < QN__RUN_ROWS ? items - i : QN__RUN_ROWS,
                                l->transposed + panel * weights,
                                weights,
                                panels,
                                c + (size_t)i * QN__PANEL,
                                c_stride};
            pass_errors(pass->worker, l, &to, run->y);
        }
}

/* ------------------------------------------------------------------------------------ gradient */

/* The inputs that columns x .. x + columns - 1 of row y read at `height` rows of taps from ky on,
 * one grain, with zeros outside the picture: [row][column][item][16]. */
static void copy_inputs(const qn__cpu_layer *l, uint32_t in, uint32_t y, uint32_t ky,
                        uint32_t height, uint32_t x, uint32_t columns, uint32_t item,
                        uint32_t items, float *to) {
    const qn__cpu_axis *axis = l->outputs.axis;
    const size_t pixel = (size_t)items * QN__PANEL;
    for (uint32_t h = 0; h < height; ++h) {
        const int64_t iy = qn__cpu_reads(&axis[0], y, ky + h);
        for (uint32_t k = 0; k < columns + axis[1].kernel - 1; ++k, to += pixel) {
            const int64_t ix = (int64_t)x + k - axis[1].pad;
            if (iy < 0 || ix < 0 || ix >= axis[1].limit) {
                memset(to, 0, pixel * sizeof *to);
                continue;
            }
            const size_t from = ((size_t)iy * axis[1].limit + (size_t)ix) * l->outputs.items + item;
            memcpy(to, l->input + in * l->in_stride + from * QN__PANEL, pixel * sizeof *to);
        }
    }
}

/* Adds a piece of row y to partials of which each is transposed: [output][input]. */
static void add_piece(const qn__worker *w, const qn__cpu_layer *l, const qn__cpu_sparse_task *t,
                      const uint32_t *begin, uint32_t ky, uint32_t height, size_t row,
                      size_t column, const float *inputs, float *partial) {
    const uint32_t first = ky * l->outputs.axis[1].kernel - t->tap;
    for (uint32_t o = 0; o < t->panels * QN__PANEL; ++o) {
        const uint32_t at = t->out * QN__PANEL + o, count = begin[at + 1] - begin[at];
        if (count)
            w->kernels->sparse_sums(
                count, l->sparse.by_output + begin[at], height, l->outputs.axis[1].kernel, inputs,
                row, column, partial + (size_t)first * t->panels * BLOCK + (size_t)o * QN__PANEL,
                (size_t)t->panels * BLOCK);
    }
}

static void transpose_blocks(size_t blocks, float *at) {
    for (; blocks > 0; --blocks, at += BLOCK)
        for (uint32_t r = 0; r < QN__PANEL; ++r)
            for (uint32_t c = 0; c < r; ++c) {
                const float x = at[r * QN__PANEL + c];
                at[r * QN__PANEL + c] = at[c * QN__PANEL + r];
                at[c * QN__PANEL + r] = x;
            }
}

void qn__cpu_sparse_gradient(const qn__cpu_pass *pass, int thread, const qn__cpu_layer *l,
                             const qn__cpu_sparse_task *t, uint32_t grain, float *partial) {
    const qn__worker *w = pass->worker;
    const qn__cpu_axis *axis = l->outputs.axis;
    const uint32_t item = grain * w->program->grain, left = pass->batch->items - item;
    const uint32_t items = left < w->program->grain ? left : w->program->grain;
    float *inputs = w->core[thread].sparse;
    memset(partial, 0, (size_t)t->taps * t->panels * BLOCK * sizeof *partial);
    for (uint32_t y = 0; y < axis[0].size; ++y) {
        uint32_t ky = t->tap / axis[1].kernel, end = ky + t->taps / axis[1].kernel;
        while (ky < end && qn__cpu_reads(&axis[0], y, ky) < 0)
            ++ky;
        while (ky < end && qn__cpu_reads(&axis[0], y, end - 1) < 0)
            --end;
        for (uint32_t p = 0; ky < end && p < l->sparse.pieces; ++p) {
            const uint32_t x = p * l->sparse.columns, rest = axis[1].size - x;
            const uint32_t columns = rest < l->sparse.columns ? rest : l->sparse.columns;
            const size_t column = (size_t)items * QN__PANEL;
            copy_inputs(l, t->in, y, ky, end - ky, x, columns, item, items, inputs);
            add_piece(w, l, t, begins_at(l, grain, y) + p * outputs_of(l), ky, end - ky,
                      (columns + axis[1].kernel - 1) * column, column, inputs, partial);
        }
    }
    transpose_blocks((size_t)t->taps * t->panels, partial);
}
