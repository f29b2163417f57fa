/* Convolutions of few items, outside training.
 *
 * Where a pixel is few rows, runs are short: borders and strides divide a row of pixels, and a
 * product of one row waits for each of its fmas. Here a task first copies the part of a picture
 * that it reads, with zeros around it and its columns sorted by their remainder modulo the stride.
 * Then a tap of a whole row of output pixels is one run, and all rows of pixels have one chain.
 *
 * Taps in the zeros are left out of the exact chain. A product with zero changes only the sign of
 * an accumulator that is zero, if the weight is finite, and +0 at the end removes that sign. So
 * columns of zeros are multiplied. Rows of windows in the zeros are left out. */
#include "device/cpu/worker/cpu_worker.h"
#include <string.h>

/* FEW: most items. With 8 of them a walk fills the tiles of its kernels: resnet20 took 721 us an
 * item on one thread of a Zen 4, and 914 this way. ROOM: floats of a core's copy, 256 KiB, which
 * stay in its L2 cache. ROWS: most rows of output pixels of a task. */
enum { FEW = 7, ROOM = 1 << 16, ROWS = 256 };

size_t qn__cpu_few_space(const qn__worker *w) {
    for (uint32_t l = 0; l < w->program->layers; ++l)
        if (w->layer[l].few)
            return ROOM;
    return 0;
}

/* Each output reads the channel of its own number. */
static int is_depthwise(const qn__layer *l) {
    return l->conv_groups && qn__layer_reads(l) == 1 && l->to.channels == l->from.channels;
}

int qn__cpu_shape_few(const qn__cpu_layer *l) {
    const qn__cpu_axis *axis = l->outputs.axis;
    const int window = axis[0].kernel * axis[1].kernel > 1;
    return l->walks && l->taps && (!l->layer->conv_groups || is_depthwise(l->layer)) &&
           axis[0].spread == 1 && axis[1].spread == 1 &&
           (window || axis[0].stride > 1 || axis[1].stride > 1);
}

/* Panels of a copy. */
static uint32_t copied(const qn__cpu_layer *l) { return l->layer->conv_groups ? 1 : l->in_panels; }

/* Positions from the first to the last one that `count` neighbours read. */
static size_t span(const qn__cpu_axis *axis, uint32_t count) {
    return (size_t)(count - 1) * axis->stride + (size_t)(axis->kernel - 1) * axis->dilation + 1;
}

/* The columns of a copy with the same remainder. */
static size_t columns(const qn__cpu_axis *axis) {
    return (span(axis, axis->size) + axis->stride - 1) / axis->stride;
}

/* Floats of a row of pixels in a copy. */
static size_t row_of(const qn__cpu_axis *axis, uint32_t items) {
    return axis->stride * columns(axis) * items * QN__PANEL;
}

/* The rows of output pixels for which a copy has space. */
static uint32_t most_rows(const qn__cpu_layer *l, uint32_t items) {
    const qn__cpu_axis *vertical = &l->outputs.axis[0];
    const size_t row = row_of(&l->outputs.axis[1], items) * copied(l);
    const size_t fit = ROOM / row, least = span(vertical, 1);
    if (fit < least)
        return 0;
    const size_t capacity = (fit - least) / vertical->stride + 1;
    const uint32_t most = capacity < ROWS ? (uint32_t)capacity : ROWS;
    return most < vertical->size ? most : vertical->size;
}

int qn__cpu_is_few(const qn__cpu_pass *pass, const qn__cpu_layer *l) {
    return pass->follows && l->few && pass->worker->derived.finite && pass->batch->items <= FEW &&
           most_rows(l, pass->batch->items) > 0;
}

/* Whether a tap reads position q of the padded picture. */
static int is_read(const qn__cpu_axis *axis, size_t q) {
    for (uint32_t k = 0; k < axis->kernel; ++k)
        if ((size_t)k * axis->dilation % axis->stride == q % axis->stride)
            return 1;
    return 0;
}

/* A pixel of one panel, vector by vector: a memcpy of known length is compiled without a call. */
static void copy_pixel(uint32_t items, const float *from, float *to) {
    for (size_t i = 0; i < (size_t)items * QN__PANEL; i += QN__PANEL)
        memcpy(to + i, from + i, QN__PANEL * sizeof *to);
}

/* A row of pixels, one panel, with its zeros. `from` NULL: it is outside the picture. */
static void copy_row(const qn__cpu_axis *axis, uint32_t items, const float *from, float *to) {
    const size_t pixel = (size_t)items * QN__PANEL, length = columns(axis);
    const size_t end = span(axis, axis->size), bytes = pixel * sizeof(float);
    if (!from) {
        memset(to, 0, axis->stride * length * bytes);
        return;
    }
    if (axis->stride == 1) {
        const size_t side = axis->pad * pixel, inside = axis->limit * pixel;
        memset(to, 0, side * sizeof *to);
        memcpy(to + side, from, inside * sizeof *to);
        memset(to + side + inside, 0, side * sizeof *to);
        return;
    }
    for (size_t rest = 0; rest < axis->stride; ++rest, to += length * pixel) {
        const int read = is_read(axis, rest);
        float *at = to;
        for (size_t q = rest; q < end && read; q += axis->stride, at += pixel)
            if (q < axis->pad || q - axis->pad >= axis->limit)
                memset(at, 0, bytes);
            else
                copy_pixel(items, from + (q - axis->pad) * pixel, at);
    }
}

/* The rows of pixels that `rows` rows of output pixels from y on read, `row` floats each, of panels
 * from `first` on. */
static void copy(const qn__cpu_pass *pass, const qn__cpu_layer *l, uint32_t first, uint32_t y,
                 uint32_t rows, size_t row, float *to) {
    const qn__cpu_axis *vertical = &l->outputs.axis[0], *horizontal = &l->outputs.axis[1];
    const uint32_t items = pass->batch->items;
    const size_t height = span(vertical, rows);
    const size_t pixels = (size_t)horizontal->limit * items * QN__PANEL;
    for (uint32_t p = first; p < first + copied(l); ++p) {
        const float *from = qn__cpu_input(pass, l) + p * l->in_stride;
        for (size_t q = 0; q < height; ++q, to += row) {
            const size_t at = (size_t)y * vertical->stride + q - vertical->pad;
            if (is_read(vertical, q))
                copy_row(horizontal, items, at < vertical->limit ? from + at * pixels : NULL, to);
        }
    }
}

/* The blocks of all taps in a copy. Returns how many there are. */
static uint32_t set_blocks(const qn__cpu_layer *l, uint32_t items, size_t row, size_t panel,
                           size_t *a, size_t *b) {
    const qn__cpu_axis *vertical = &l->outputs.axis[0], *horizontal = &l->outputs.axis[1];
    uint32_t count = 0;
    for (size_t ky = 0; ky < vertical->kernel; ++ky)
        for (size_t kx = 0; kx < horizontal->kernel; ++kx) {
            const size_t x = kx * horizontal->dilation;
            const size_t column =
                x % horizontal->stride * columns(horizontal) + x / horizontal->stride;
            for (size_t p = 0; p < copied(l); ++p, ++count) {
                a[count] = p * panel + ky * vertical->dilation * row + column * items * QN__PANEL;
                b[count] = (size_t)count * QN__PANEL * QN__PANEL;
            }
        }
    return count;
}

/* The rows of windows inside the picture, as the steps `first` to `end` - 1 of each row of output
 * pixels, of `steps` for a row of windows. Returns 0 if all rows have all steps, or if one has
 * none.
 */
static int leaves_out(const qn__cpu_axis *axis, uint32_t y, uint32_t rows, uint32_t steps,
                      uint32_t *first, uint32_t *end) {
    int some = 0;
    for (uint32_t r = 0; r < rows; ++r) {
        uint32_t from = 0, to = axis->kernel;
        while (from < to && qn__cpu_reads(axis, y + r, from) < 0)
            ++from;
        while (from < to && qn__cpu_reads(axis, y + r, to - 1) < 0)
            --to;
        if (from == to)
            return 0;
        some |= to - from < axis->kernel;
        first[r] = from * steps;
        end[r] = to * steps;
    }
    return some;
}

/* Whether the kernel that slides computes so many rows of output pixels. With several panels of
 * outputs a product of matrices is as fast, and computes no row twice. */
static int slides(const qn__worker *w, const qn__cpu_layer *l, uint32_t rows) {
    const qn__cpu_axis *axis = &l->outputs.axis[1];
    const uint32_t height = w->kernels->slide_rows;
    return w->kernels->slide && height > 0 && rows >= height &&
           (l->out_panels == 1 || rows % height == 0) && axis->kernel == 3 && axis->stride == 1 &&
           axis->dilation == 1 && axis->size > 1;
}

/* The same product by the kernel that slides, for each item by itself. */
static void slide(const qn__cpu_pass *pass, const qn__cpu_core *core, const qn__cpu_layer *l,
                  uint32_t rows, size_t row, size_t apart, uint32_t panel, uint32_t panels,
                  float *out) {
    const qn__cpu_axis *axis = l->outputs.axis;
    const size_t pixel = (size_t)pass->batch->items * QN__PANEL;
    const size_t weights = (size_t)qn__cpu_blocks(l) * QN__PANEL * QN__PANEL;
    const qn__cpu_slide s = {.rows = rows,
                             .columns = axis[1].size,
                             .windows = axis[0].kernel,
                             .panels = l->in_panels,
                             .a_row = axis[0].stride * row,
                             .a_column = pixel,
                             .a_panel = apart,
                             .a_window = axis[0].dilation * row,
                             .c_row = axis[1].size * pixel,
                             .c_column = pixel};
    for (uint32_t p = 0; p < panels; ++p)
        for (size_t i = 0; i < pixel; i += QN__PANEL)
            pass->worker->kernels->slide(&s, core->picture + i, l->weights + (panel + p) * weights,
                                         out + p * l->out_stride + i,
                                         l->bias + (panel + p) * QN__PANEL);
}

/* The same of a depthwise layer. */
static void lanes(const qn__cpu_pass *pass, const qn__cpu_core *core, const qn__cpu_layer *l,
                  uint32_t y, uint32_t rows, uint32_t panel, float *out) {
    const qn__worker *w = pass->worker;
    const uint32_t items = pass->batch->items, pixels = l->outputs.axis[1].size * items;
    const size_t row = row_of(&l->outputs.axis[1], items);
    const size_t apart = span(&l->outputs.axis[0], rows) * row;
    const float *weights = l->weights + (size_t)panel * qn__cpu_blocks(l) * QN__PANEL * QN__PANEL;
    size_t *a = core->blocks, *b = core->blocks + w->run_blocks;
    const uint32_t taps = set_blocks(l, items, row, apart, a, b);
    copy(pass, l, panel, y, rows, row, core->picture);
    for (uint32_t t = 0; t < taps; ++t)
        b[t] = (size_t)t * QN__PANEL;
    for (uint32_t r = 0; r < rows; ++r)
        w->kernels->lanes(pixels, taps, a, core->picture + r * l->outputs.axis[0].stride * row, b,
                          weights, l->bias + panel * QN__PANEL, 0,
                          out + (size_t)r * pixels * QN__PANEL);
}

/* The product of a task: `rows` rows of output pixels from y on, some panels of outputs.
 * `has_copy`: the core's last task made the copy for these rows. Returns the last layer that is
 * complete. */
static uint32_t product(const qn__cpu_pass *pass, int thread, const qn__cpu_layer *l, uint32_t y,
                        uint32_t rows, int has_copy, uint32_t panel, uint32_t panels, float *out) {
    const qn__worker *w = pass->worker;
    const qn__cpu_core *core = &w->core[thread];
    const uint32_t items = pass->batch->items, pixels = l->outputs.axis[1].size * items;
    const size_t row = row_of(&l->outputs.axis[1], items);
    const size_t weights = (size_t)qn__cpu_blocks(l) * QN__PANEL * QN__PANEL;
    for (uint32_t p = 0; l->layer->conv_groups && p < panels; ++p)
        lanes(pass, core, l, y, rows, panel + p, out + p * l->out_stride);
    const uint32_t layer = (uint32_t)(l - w->layer);
    if (l->layer->conv_groups)
        return layer;
    const size_t apart = span(&l->outputs.axis[0], rows) * row;
    if (!has_copy)
        copy(pass, l, 0, y, rows, row, core->picture);
    if (slides(w, l, rows)) {
        slide(pass, core, l, rows, row, apart, panel, panels, out);
        return layer;
    }
    qn__cpu_chain chain = {.a = core->blocks,
                           .b = core->blocks + w->run_blocks,
                           .positive = 1,
                           .segment = pixels,
                           .gap = l->outputs.axis[0].stride * row - (size_t)pixels * QN__PANEL};
    uint32_t first[ROWS], end[ROWS];
    chain.k =
        set_blocks(l, items, row, apart, core->blocks, core->blocks + w->run_blocks) * QN__PANEL;
    if (l->taps == 1)
        chain.k = l->channels;
    else if (leaves_out(&l->outputs.axis[0], y, rows, chain.k / l->outputs.axis[0].kernel, first,
                        end)) {
        chain.first = first;
        chain.end = end;
    }
    const uint32_t last = qn__cpu_lead(pass, layer, panel, panels, y * pixels, &chain.after);
    w->kernels->matmul(rows * pixels, &chain, core->picture, l->weights + panel * weights, weights,
                       out, l->out_stride, l->bias + panel * QN__PANEL, panels);
    return last;
}

/* How many pieces of `each` hold n, at least 1. */
static uint32_t pieces(uint32_t n, uint32_t each) {
    return each > 0 && n > each ? 1 + (n - 1) / each : 1;
}

/* Bands of rows of output pixels and groups of panels of outputs: a task has one of each, and the
 * panels of a group are `width`. Each band reads all weights. So there are more groups where the
 * weights are larger, such as in the last layers of a network. */
static qn__cpu_grid grid_of(const qn__worker *w, const qn__cpu_layer *l, uint32_t items,
                            uint32_t *width) {
    const uint32_t height = l->outputs.axis[0].size, threads = (uint32_t)w->threads;
    const uint32_t most = most_rows(l, items), least = w->kernels->panels;
    const uint32_t pairs = pieces(l->out_panels, least);
    const size_t weights = (size_t)qn__cpu_blocks(l) * l->out_panels * QN__PANEL;
    const int heavy = weights > 2 * (size_t)l->in_pixels * items * l->in_panels;
    const uint32_t wanted = threads > 1 && heavy ? 2 * threads : threads;
    const uint32_t groups = pairs < wanted || wanted == 0 ? pairs : wanted;
    const uint32_t fit = pieces(height, most);
    const uint32_t enough = threads > 1 ? pieces(2 * threads, groups) : 1;
    const uint32_t bands = fit > enough ? fit : enough;
    *width = pieces(pairs, groups) * least;
    return (qn__cpu_grid){bands < height || height == 0 ? bands : height,
                          pieces(l->out_panels, *width), 1};
}

void qn__cpu_few_forward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const uint32_t height = l->outputs.axis[0].size;
    const uint32_t pixels = l->outputs.axis[1].size * pass->batch->items;
    uint32_t width;
    const qn__cpu_grid grid = grid_of(w, l, pass->batch->items, &width);
    const uint32_t bands = grid.columns;
    float *output = qn__cpu_target(pass, l)->output;
    uint32_t last = UINT32_MAX; /* the band of this core's last task */
    for (uint32_t band, group; qn__cpu_take(w, thread, phase, grid, &band, &group);) {
        const uint32_t y = height * band / bands, rows = height * (band + 1) / bands - y;
        const uint32_t panel = group * width, left = l->out_panels - panel;
        const uint32_t panels = left < width ? left : width, first = y * pixels;
        float *out = output + panel * l->out_stride + (size_t)first * QN__PANEL;
        const uint32_t done = product(pass, thread, l, y, rows, band == last, panel, panels, out);
        last = band;
        for (uint32_t p = 0; p < panels; ++p)
            qn__cpu_follow_from(pass, thread, layer, done, panel + p, first, rows * pixels,
                                out + p * l->out_stride);
    }
}
