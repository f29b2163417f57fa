/* batchnorm: docs/exactness.md 17.8.
 *
 * A task has a panel of a grain. It measures the panel, and then goes over it again from the last
 * pixel to the first one: what it read last is still in the caches. So a pass reads its values
 * about once from memory, and writes its results once. */
#include "device/cpu/worker/cpu_gradient_sums.h"
#include "device/cpu/worker/cpu_kinds.h"
#include "device/cpu/worker/cpu_norms.h"
#include "num/norm.h"
#include <math.h>
#include <string.h>

enum { WEIGHT, BIAS, MEAN, VARIANCE, APPLY_ROWS = 256, INFINITE = 0x7f800000 };

/* A panel of a grain: its first item, items, floats between two of its pixels. */
typedef struct part {
    uint32_t panel, grain, item, items, pixels;
    size_t apart;
    float count; /* m of 17.8 */
} part;

static uint32_t grains_of(const qn__cpu_pass *pass) {
    const uint32_t grain = pass->worker->program->grain;
    return (pass->batch->items + grain - 1) / grain;
}

static part part_of(const qn__cpu_pass *pass, const qn__cpu_layer *l, uint32_t panel,
                    uint32_t grain) {
    const uint32_t size = pass->worker->program->grain, all = pass->batch->items;
    const uint32_t first = grain * size, items = all - first < size ? all - first : size;
    return (part){panel,
                  grain,
                  first,
                  items,
                  l->out_pixels,
                  (size_t)all * QN__PANEL,
                  (float)((uint64_t)items * l->out_pixels)};
}

/* Where the part begins in an array of the batch. */
static size_t begin_of(const part *p, size_t stride) {
    return p->panel * stride + (size_t)p->item * QN__PANEL;
}

/* The numbers of the part among those of all grains. */
static size_t numbers_of(const qn__cpu_pass *pass, const part *p) {
    return ((size_t)p->panel * grains_of(pass) + p->grain) * QN__PANEL;
}

static const float *vector_of(const qn__cpu_layer *l, uint32_t vector, uint32_t panel) {
    return l->bias + vector * l->vector + (size_t)panel * QN__PANEL;
}

static void factors_of(const qn__cpu_layer *l, uint32_t panel, const float *inverse,
                       float factor[QN__PANEL]) {
    for (int c = 0; c < QN__PANEL; ++c)
        factor[c] = vector_of(l, WEIGHT, panel)[c] * inverse[c];
}

/* Mean and r of a part, and what it contributes to the running averages. */
static void measure(const qn__cpu_pass *pass, const qn__cpu_layer *l, const part *p) {
    const qn__cpu_kernels *k = pass->worker->kernels;
    const float *x = qn__cpu_input(pass, l) + begin_of(p, l->in_stride);
    const size_t at = numbers_of(pass, p);
    float *mean = l->norm.mean + at, *inverse = l->norm.inverse + at;
    const float items = (float)p->items;
    const float others = (float)((uint64_t)p->items * p->pixels - 1);
    _Alignas(64) float shift[QN__PANEL], sum[QN__PANEL], squares[QN__PANEL];
    k->bias_partials(p->items, p->items, 1, p->apart, x, shift);
    for (int c = 0; c < QN__PANEL; ++c)
        shift[c] = shift[c] / items;
    k->moments(p->items, p->pixels, p->apart, x, shift, sum, squares);
    for (int c = 0; c < QN__PANEL; ++c) {
        const float u = sum[c] / p->count;
        const float w = qn__norm_squares(fmaf(-u, sum[c], squares[c]));
        mean[c] = shift[c] + u;
        inverse[c] = qn__norm_inverse(w / p->count, l->layer->norm_epsilon);
        l->norm.partial[MEAN][at + (size_t)c] = items * mean[c] * QN__RUNNING_UNIT;
        l->norm.partial[VARIANCE][at + (size_t)c] =
            items * (others > 0.0f ? w / others : 0.0f) * QN__RUNNING_UNIT;
    }
}

void qn__cpu_norm_finish(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t panel,
                         uint32_t first, uint32_t rows, float *out) {
    qn__cpu_after_product(pass, thread, layer, panel, first, rows, out);
    if (pass->worker->bits)
        qn__cpu_note_outputs(pass, layer, first, rows, panel, 1);
}

/* Rows of a panel, from row `first` on: their outputs and, at the end of a path, the sums with
 * those of the other path. */
static void finish_rows(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t panel,
                        size_t first, uint32_t rows, ptrdiff_t next, const float *mean,
                        const float *factor, const float *bias) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer], *add = l->add, *to = add ? add : l;
    const uint32_t target = (uint32_t)(to - w->layer);
    const size_t at = panel * l->out_stride + first * QN__PANEL;
    const float *input = qn__cpu_input(pass, l) + panel * l->in_stride + first * QN__PANEL;
    const float *other = add ? qn__cpu_beside(pass, add, l) + at : NULL;
    const int plain = qn__cpu_is_plain(pass, target, panel);
    const uint32_t bits =
        w->kernels->normalise(rows, next, input, mean, factor, bias, other,
                              plain ? to->layer->activation : QN__ACT_NONE, to->output + at);
    if (plain)
        qn__cpu_note_absmax(pass, thread, target, bits);
    else
        qn__cpu_norm_finish(pass, thread, target, panel, (uint32_t)first, rows, to->output + at);
}

static void forward_part(const qn__cpu_pass *pass, int thread, uint32_t layer, const part *p) {
    const qn__cpu_layer *l = &pass->worker->layer[layer];
    const size_t at = numbers_of(pass, p);
    float factor[QN__PANEL];
    measure(pass, l, p);
    factors_of(l, p->panel, l->norm.inverse + at, factor);
    for (uint32_t pixel = p->pixels; pixel-- > 0;)
        finish_rows(pass, thread, layer, p->panel, (size_t)pixel * pass->batch->items + p->item,
                    p->items, -(ptrdiff_t)p->apart, l->norm.mean + at, factor,
                    vector_of(l, BIAS, p->panel));
}

static void fold(const qn__cpu_layer *l) {
    const size_t channels = (size_t)l->out_panels * QN__PANEL;
    const float *mean = l->bias + MEAN * l->vector, *bias = l->bias + BIAS * l->vector;
    const float *variance = l->bias + VARIANCE * l->vector;
    for (size_t c = 0; c < channels; ++c) {
        l->norm.factor[c] = l->bias[c] * qn__norm_inverse(variance[c], l->layer->norm_epsilon);
        l->norm.rest[c] = fmaf(-mean[c], l->norm.factor[c], bias[c]);
    }
}

/* And the add after it where nothing is between them. */
static uint32_t after(const qn__cpu_pass *pass, uint32_t layer, uint32_t panel, size_t at,
                      int *plain, qn__cpu_after *to) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const int joins = l->add == l + 1 && qn__cpu_is_followed(pass, l);
    const uint32_t last = layer + (uint32_t)joins;
    const size_t vector = (size_t)panel * QN__PANEL;
    *plain = qn__cpu_is_plain(pass, last, panel);
    *to = (qn__cpu_after){.factor = l->norm.factor + vector,
                          .rest = l->norm.rest + vector,
                          .other = joins ? qn__cpu_beside(pass, l + 1, l) + at : NULL,
                          .activation = *plain ? w->layer[last].layer->activation : QN__ACT_NONE};
    return last;
}

static uint32_t follow(const qn__cpu_pass *pass, uint32_t layer, uint32_t panel, size_t at,
                       uint32_t rows, int *plain, float *out) {
    const qn__worker *w = pass->worker;
    qn__cpu_after to;
    const uint32_t last = after(pass, layer, panel, at, plain, &to);
    w->kernels->normalise(rows, 0, out, w->nothing, to.factor, to.rest, to.other, to.activation,
                          out);
    return last;
}

/* A prediction: one multiplication and addition by the running averages. */
static void apply_rows(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t panel,
                       uint32_t first, uint32_t rows) {
    const qn__worker *w = pass->worker;
    const qn__cpu_norm *norm = &w->layer[layer].norm;
    const size_t at = (size_t)panel * QN__PANEL;
    finish_rows(pass, thread, layer, panel, first, rows, 0, w->nothing, norm->factor + at,
                norm->rest + at);
}

/* Whether the pass takes the moments of its grains; else the running averages. */
static int measures_grains(const qn__cpu_pass *pass, const qn__cpu_layer *l) {
    return pass->training && (uint32_t)(l - pass->worker->layer) >= pass->worker->program->frozen;
}

static void forward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const int measures = measures_grains(pass, l);
    const uint32_t parts = measures ? grains_of(pass) : (l->rows + APPLY_ROWS - 1) / APPLY_ROWS;
    const qn__cpu_grid grid = {l->out_panels, parts, 1};
    for (uint32_t panel, row; qn__cpu_take(w, thread, phase, grid, &panel, &row);) {
        const uint32_t first = row * APPLY_ROWS, left = l->rows - first;
        if (measures) {
            const part p = part_of(pass, l, panel, row);
            forward_part(pass, thread, layer, &p);
        } else
            apply_rows(pass, thread, layer, panel, first, left < APPLY_ROWS ? left : APPLY_ROWS);
    }
}

/* Rows of a panel, computed once more. */
static int finite_rows(const qn__cpu_pass *pass, const qn__cpu_layer *l, uint32_t panel,
                       size_t first, uint32_t rows, const float *mean, const float *factor,
                       const float *bias) {
    float y[APPLY_ROWS * QN__PANEL];
    const float *x = qn__cpu_input(pass, l) + panel * l->in_stride + first * QN__PANEL;
    uint32_t bits = 0;
    for (uint32_t i = 0; i < rows && bits < INFINITE; i += APPLY_ROWS)
        bits = pass->worker->kernels->normalise(rows - i < APPLY_ROWS ? rows - i : APPLY_ROWS, 0,
                                                x + (size_t)i * QN__PANEL, mean, factor, bias, NULL,
                                                QN__ACT_NONE, y);
    return bits < INFINITE;
}

static int finite_part(const qn__cpu_pass *pass, const qn__cpu_layer *l, const part *p) {
    const size_t at = numbers_of(pass, p);
    float factor[QN__PANEL];
    int finite = 1;
    factors_of(l, p->panel, l->norm.inverse + at, factor);
    for (uint32_t pixel = 0; pixel < p->pixels; ++pixel)
        finite &= finite_rows(pass, l, p->panel, (size_t)pixel * pass->batch->items + p->item,
                              p->items, l->norm.mean + at, factor, vector_of(l, BIAS, p->panel));
    return finite;
}

int qn__cpu_norm_is_finite(const qn__cpu_pass *pass, const qn__cpu_layer *l) {
    const int measures = measures_grains(pass, l);
    int finite = 1;
    for (uint32_t panel = 0; panel < l->out_panels; ++panel) {
        for (uint32_t grain = 0; measures && grain < grains_of(pass); ++grain) {
            const part p = part_of(pass, l, panel, grain);
            finite &= finite_part(pass, l, &p);
        }
        const size_t at = (size_t)panel * QN__PANEL;
        if (!measures)
            finite &= finite_rows(pass, l, panel, 0, l->rows, pass->worker->nothing,
                                  l->norm.factor + at, l->norm.rest + at);
    }
    return finite;
}

/* Sums over the pixels. */
static void add_sums(const qn__cpu_pass *pass, const qn__cpu_layer *l, const part *p, float *bias,
                     float *weight) {
    const float *from = qn__cpu_norm_sums_of(pass, l, p->panel, p->grain);
    float b[QN__PANEL] = {0}, g[QN__PANEL] = {0};
    for (uint32_t pixel = 0; pixel < p->pixels; ++pixel, from += 2 * QN__PANEL)
        for (size_t c = 0; c < QN__PANEL; ++c) {
            b[c] = b[c] + from[c];
            g[c] = g[c] + from[QN__PANEL + c];
        }
    memcpy(bias, b, sizeof b);
    memcpy(weight, g, sizeof g);
}

/* The sums of a part's errors, B and G * r of 17.8: what it contributes to bias and weight. */
static void sum_errors(const qn__cpu_pass *pass, const qn__cpu_layer *l, const part *p) {
    const size_t at = numbers_of(pass, p);
    float *weight = l->norm.partial[WEIGHT] + at, *bias = l->norm.partial[BIAS] + at;
    if (l->norm.summed)
        add_sums(pass, l, p, bias, weight);
    else
        pass->worker->kernels->slopes(
            p->items, p->pixels, p->apart, l->error + begin_of(p, l->out_stride),
            l->input + begin_of(p, l->in_stride), l->norm.mean + at, bias, weight);
    for (size_t c = 0; c < QN__PANEL; ++c)
        weight[c] = weight[c] * l->norm.inverse[at + c];
}

/* The factors of a part's errors. */
typedef struct error_factors {
    float factor[QN__PANEL], h[QN__PANEL], k[QN__PANEL];
} error_factors;

static error_factors error_factors_of(const qn__cpu_pass *pass, const qn__cpu_layer *l,
                                      const part *p) {
    const size_t at = numbers_of(pass, p);
    error_factors f;
    for (size_t c = 0; c < QN__PANEL; ++c) {
        const float inverse = l->norm.inverse[at + c];
        f.factor[c] = vector_of(l, WEIGHT, p->panel)[c] * inverse;
        f.h[c] = l->norm.partial[BIAS][at + c] / p->count;
        f.k[c] = l->norm.partial[WEIGHT][at + c] * inverse / p->count;
    }
    return f;
}

/* The errors of a pixel of a part. `sums`: of those of biases below, or NULL. */
static void backward_pixel(const qn__cpu_pass *pass, int thread, uint32_t layer, const part *p,
                           uint32_t pixel, const error_factors *f, float *sums) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer], *below = l->below;
    const size_t from = pixel * p->apart;
    const uint32_t first = pixel * pass->batch->items + p->item;
    const uint32_t bits = w->kernels->normalise_errors(
        p->items, l->norm.summed ? (ptrdiff_t)p->apart : -(ptrdiff_t)p->apart,
        l->error + begin_of(p, l->out_stride) + from, l->input + begin_of(p, l->in_stride) + from,
        l->norm.mean + numbers_of(pass, p), f->factor, f->h, f->k, sums,
        qn__cpu_passes(l) + begin_of(p, below->out_stride) + from);
    if (qn__cpu_norm_passes_all(w, l) && !below->sums[0])
        qn__cpu_note_error(&w->core[thread], (uint32_t)(below - w->layer), bits);
    else
        qn__cpu_after_errors(pass, &w->core[thread], layer, p->panel, first, p->items);
    if (w->bits)
        qn__cpu_note_passed(pass, layer, first, p->items, p->panel, 1);
}

/* Where the errors were summed before, the pass over them is the first. It is in order then, so
 * that the sums for the biases below can be made, too. */
static void backward_part(const qn__cpu_pass *pass, int thread, uint32_t layer, const part *p) {
    const qn__cpu_layer *l = &pass->worker->layer[layer], *below = l->below;
    sum_errors(pass, l, p);
    const error_factors f = error_factors_of(pass, l, p);
    float *sums = below->summed ? below->bias_partials + numbers_of(pass, p) : NULL;
    if (sums)
        memset(sums, 0, QN__PANEL * sizeof *sums);
    for (uint32_t pixel = 0; pixel < p->pixels; ++pixel)
        backward_pixel(pass, thread, layer, p, l->norm.summed ? pixel : p->pixels - 1 - pixel, &f,
                       sums);
}

static void backward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const qn__cpu_grid grid = {l->out_panels, grains_of(pass), 1};
    for (uint32_t panel, grain; qn__cpu_take(w, thread, phase, grid, &panel, &grain);) {
        const part p = part_of(pass, l, panel, grain);
        backward_part(pass, thread, layer, &p);
    }
}

void qn__cpu_norm_put(const qn__cpu_pass *pass, const qn__cpu_layer *l, uint32_t panel,
                      uint32_t vector, const int64_t *sums) {
    const qn__cpu_piece piece = qn__cpu_piece_at(l, panel, vector);
    if (pass->update)
        qn__cpu_update_piece(pass->worker, pass->update, l, &piece, sums);
    else if (pass->outlet)
        memcpy(pass->outlet->words + qn__program_sum(pass->worker->program, piece.canonical), sums,
               piece.columns * sizeof *sums);
    for (uint32_t c = 0; !pass->update && !pass->outlet && c < piece.columns; ++c)
        l->bias_sums[piece.at + c] += sums[c];
}

/* The sums over grains of one vector's panel. */
static int finish_vector(const qn__cpu_pass *pass, const qn__cpu_layer *l, uint32_t panel,
                         uint32_t vector) {
    const uint32_t grains = grains_of(pass);
    int64_t sums[QN__PANEL] = {0};
    if (qn__cpu_add_partials(pass->worker, grains, QN__PANEL,
                             l->norm.partial[vector] + (size_t)panel * grains * QN__PANEL, sums))
        return 1;
    qn__cpu_norm_put(pass, l, panel, vector, sums);
    return 0;
}

static int sums_of_panel(const qn__cpu_pass *pass, uint32_t layer, uint32_t panel) {
    const qn__cpu_layer *l = &pass->worker->layer[layer];
    int bad = 0;
    for (uint32_t grain = 0; !qn__cpu_passes_errors(pass->worker, l) && grain < grains_of(pass);
         ++grain) {
        const part p = part_of(pass, l, panel, grain);
        sum_errors(pass, l, &p); /* no errors went below */
    }
    for (uint32_t v = 0; v < l->vectors; ++v)
        bad |= finish_vector(pass, l, panel, v);
    return bad;
}

static void carve(qn__cpu_arena *a, const qn__worker *w, qn__cpu_layer *l) {
    const qn__program *p = w->program;
    const size_t grains = (qn__program_part(p) + p->grain - 1) / p->grain;
    const size_t row = (size_t)l->out_panels * QN__PANEL * sizeof(float);
    l->norm.mean = qn__cpu_carve(a, grains, row);
    l->norm.inverse = qn__cpu_carve(a, grains, row);
    l->norm.factor = qn__cpu_carve(a, 1, row);
    l->norm.rest = qn__cpu_carve(a, 1, row);
    for (uint32_t v = 0; v < l->vectors; ++v)
        l->norm.partial[v] = qn__cpu_carve(a, grains, row);
    if (l->norm.sums_at && qn__cpu_norm_passes_all(w, l) && qn__layer_biases(l->below->layer))
        l->below->bias_partials = qn__cpu_carve(a, grains, row);
}

const qn__cpu_kind qn__cpu_batchnorm = {.forward = forward,
                                        .backward = backward,
                                        .sums = sums_of_panel,
                                        .carve = carve,
                                        .size = qn__cpu_norm_size,
                                        .fold = fold,
                                        .follow = follow,
                                        .after = after,
                                        .reads_input = 1,
                                        .adds = 1};
