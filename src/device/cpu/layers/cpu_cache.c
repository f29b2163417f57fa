/* attention over sequences that grow (docs/exactness.md 25.70): the keys and values of all
 * positions so far are kept, so a further position costs one row of scores.
 *
 *     keys    [sequence][group][panel of 16 positions][channel][16]   rows of a product by queries
 *     values  [sequence][group][panel of 16 channels][position][16]   rows of one by weights
 *
 * First the cores store the keys and values of all rows, then they compute the rows' outputs. A
 * task has a group of heads and a stretch of rows, which are neighbouring positions of a sequence.
 * The products and what is between them are those of cpu_attention.c. With integers the values are
 * in the order of the keys, and operands are beside them (cpu_cache_integer.c). */
#include "device/cpu/layers/cpu_cache.h"
#include "device/cpu/worker/cpu_kinds.h"
#include "num/elementary.h"
#include <math.h>

typedef qn__cpu_head_sizes sizes;
typedef qn__cpu_cached cached;

size_t qn__cpu_cache_space(const qn__worker *w) {
    size_t most = 0;
    for (uint32_t i = 0; i < w->program->layers; ++i) {
        if (w->program->layer[i].kind != QN__LAYER_ATTENTION)
            continue;
        const sizes s = qn__cpu_cached_sizes(w, &w->program->layer[i]);
        const size_t steps = 2 * (size_t)(s.panels + s.wide) * (sizeof(size_t) / sizeof(float));
        const size_t all =
            2 * s.block + s.tile + steps + qn__cpu_cache_integer_space(w, &w->program->layer[i]);
        most = all > most ? all : most;
    }
    return most;
}

void qn__cpu_cache_carve(qn__cpu_arena *a, const qn__worker *w, qn__cpu_layer *l) {
    const sizes s = qn__cpu_cached_sizes(w, l->layer);
    const size_t groups = (size_t)w->program->sequences * l->layer->kv_heads;
    l->cache.keys = qn__cpu_carve(a, groups, s.keys * sizeof(float));
    l->cache.values = qn__cpu_carve(a, groups, s.wide * s.panel * sizeof(float));
    l->cache.infinite = qn__cpu_carve(a, groups, 1);
    qn__cpu_cache_integer_carve(a, w, l);
}

static void find_slot(cached *t, const qn__cpu_stretch *rows) {
    t->rows = rows;
    t->slot = (size_t)rows->sequence * t->l->layer->kv_heads + t->group;
    t->keys = t->l->cache.keys + t->slot * t->s.keys;
    t->values = t->l->cache.values + t->slot * t->s.wide * t->s.panel;
}

static cached begin_group(const qn__cpu_pass *pass, const qn__cpu_layer *l, uint32_t group) {
    return (cached){
        .pass = pass, .l = l, .group = group, .s = qn__cpu_cached_sizes(pass->worker, l->layer)};
}

/* Returns what follows. */
static float *carve_arrays(cached *t, float *at) {
    const sizes *s = &t->s;
    t->query = at;
    t->output = at + s->block;
    t->weights = at + 2 * s->block;
    t->steps = (size_t *)(void *)(t->weights + s->tile);
    t->blocks = t->steps + s->panels + s->wide;
    for (size_t i = 0; i < s->panels + s->wide; ++i) {
        t->steps[i] = i * s->rows * QN__PANEL;
        t->blocks[i] = i * QN__PANEL * QN__PANEL;
    }
    return (float *)(void *)(t->blocks + s->panels + s->wide);
}

static int is_finite(const float x[QN__PANEL]) {
    int finite = 1;
    for (int i = 0; i < QN__PANEL; ++i)
        finite &= isfinite(x[i]) != 0;
    return finite;
}

/* ----------------------------------------------------------------------------------- keys, values
 */

static void keep_position(const cached *t, const float *row, uint32_t position) {
    const qn__layer *l = t->l->layer;
    const uint32_t key = qn__attention_keys(l, t->group), value = key + l->kv_heads * t->s.width;
    float block[QN__PANEL];
    int finite = position == 0 || !t->l->cache.infinite[t->slot];
    for (uint32_t p = 0; p < t->s.wide; ++p) {
        const size_t panel = (size_t)(position / QN__PANEL) * t->s.wide + p;
        float *keys = t->keys + panel * QN__PANEL * QN__PANEL + position % QN__PANEL;
        float *values = t->values + p * t->s.panel + (size_t)position * QN__PANEL;
        qn__cpu_take_channels(row, t->l->in_stride, key + p * QN__PANEL,
                              qn__cpu_panel_channels(t->s.width, p), block);
        for (uint32_t c = 0; c < QN__PANEL; ++c)
            keys[c * QN__PANEL] = block[c];
        finite &= is_finite(block);
        qn__cpu_take_channels(row, t->l->in_stride, value + p * QN__PANEL,
                              qn__cpu_panel_channels(t->s.width, p), values);
        finite &= is_finite(values);
    }
    t->l->cache.infinite[t->slot] = !finite;
}

static void keep(const qn__cpu_pass *pass, int thread, const qn__cpu_layer *l) {
    const qn__worker *w = pass->worker;
    const float *input = qn__cpu_input(pass, l);
    for (uint32_t g = (uint32_t)thread; g < l->layer->kv_heads; g += (uint32_t)w->threads) {
        cached t = begin_group(pass, l, g);
        for (uint32_t i = 0; i < w->stretches.count; ++i) {
            find_slot(&t, &w->stretches.at[i]);
            if (qn__program_bits(w->program, l->layer))
                qn__cpu_cache_integer_keep(&t);
            else
                for (uint32_t r = 0; r < t.rows->rows; ++r)
                    keep_position(&t, input + ((size_t)t.rows->row + r) * QN__PANEL,
                                  t.rows->position + r);
        }
    }
}

/* ---------------------------------------------------------------------------------------- outputs
 */

static float key_of(const cached *t, uint32_t u, uint32_t c) {
    return t
        ->keys[((size_t)(u / QN__PANEL) * t->s.wide * QN__PANEL + c) * QN__PANEL + u % QN__PANEL];
}

/* Where numbers are not usual: 25.22 as it is written, for one row of a head. */
static void repeat_row(const cached *t, uint32_t r) {
    const qn__cover own = qn__cpu_cached_sees(t->l->layer, t->rows->position + r);
    const float scale = qn__attention_scale(t->l->layer);
    float greatest = -INFINITY;
    int finite = 1;
    int64_t units = 0;
    for (int pass = 0; pass < 2; ++pass)
        for (uint32_t u = own.begin; u < own.end; ++u) {
            float *kept =
                t->weights + ((size_t)(u / QN__PANEL) * t->s.rows + r) * QN__PANEL + u % QN__PANEL;
            if (pass == 1) {
                *kept = qn__attention_cut(qn__exp(*kept - greatest));
                units += llrint((double)*kept * 0x1p40);
                continue;
            }
            float sum = 0.0f;
            for (uint32_t c = 0; c < t->s.width; ++c)
                sum = fmaf(
                    t->query[((size_t)(c / QN__PANEL) * t->s.rows + r) * QN__PANEL + c % QN__PANEL],
                    key_of(t, u, c), sum);
            *kept = sum * scale;
            finite &= isfinite(*kept) != 0;
            greatest = *kept > greatest ? *kept : greatest;
        }
    const float share = finite ? qn__attention_share(units) : NAN;
    for (uint32_t c = 0; c < t->s.width; ++c) {
        const float *values = t->values + c / QN__PANEL * t->s.panel + c % QN__PANEL;
        float sum = 0.0f;
        for (uint32_t u = own.begin; u < own.end && finite; ++u)
            sum = fmaf(
                t->weights[((size_t)(u / QN__PANEL) * t->s.rows + r) * QN__PANEL + u % QN__PANEL],
                values[(size_t)u * QN__PANEL], sum);
        t->output[((size_t)(c / QN__PANEL) * t->s.rows + r) * QN__PANEL + c % QN__PANEL] =
            sum * share + 0.0f;
    }
}

static void attend_head(const cached *t, uint32_t head) {
    const qn__cpu_kernels *k = t->pass->worker->kernels;
    const uint32_t rows = t->rows->rows, end = t->rows->position + rows;
    const uint32_t first = qn__cpu_cached_sees(t->l->layer, t->rows->position).begin / QN__PANEL;
    const uint32_t panels = (end + QN__PANEL - 1) / QN__PANEL - first;
    const size_t stride = (size_t)t->s.rows * QN__PANEL;
    const size_t panel = (size_t)t->s.wide * QN__PANEL * QN__PANEL;
    const qn__cpu_chain across = {.k = t->s.width, .a = t->steps, .b = t->blocks};
    const qn__cpu_chain along = {.k = end - first * QN__PANEL, .a = t->steps, .b = t->blocks};
    float greatest[QN__PANEL], share[QN__PANEL];
    int64_t units[QN__PANEL];
    qn__cpu_cached_queries(t, head);
    k->matmul(rows, &across, t->query, t->keys + first * panel, panel, t->weights, stride, NULL,
              panels);
    for (uint32_t r = 0; r < rows; ++r)
        qn__cpu_cached_hide(t, r, first, panels);
    const uint32_t bits = k->attend_scores(rows, panels, stride, qn__attention_scale(t->l->layer),
                                           t->weights, greatest);
    int usual = bits <= QN__USUAL_BITS && !t->l->cache.infinite[t->slot];
    k->attend_weights(rows, panels, stride, 1.0f, greatest, t->weights, units);
    k->matmul(rows, &along, t->weights, t->values + (size_t)first * QN__PANEL * QN__PANEL,
              t->s.panel, t->output, stride, NULL, t->s.wide);
    for (uint32_t r = 0; r < rows; ++r) {
        share[r] = qn__attention_share(units[r]);
        usual &= qn__cpu_is_usual(greatest[r], share[r]);
    }
    k->attend_scale(rows, t->s.wide, stride, share, t->output);
    for (uint32_t r = 0; r < rows && !usual; ++r)
        repeat_row(t, r);
    qn__cpu_cached_outputs(t, head);
}

static void clear_lanes(const cached *t) {
    const uint32_t channels = t->l->layer->to.channels, used = channels % QN__PANEL;
    float *row = t->l->output + channels / QN__PANEL * t->l->out_stride;
    for (uint32_t r = 0; used && r < t->rows->rows; ++r)
        memset(row + ((size_t)t->rows->row + r) * QN__PANEL + used, 0,
               (QN__PANEL - used) * sizeof *row);
}

void qn__cpu_cache_forward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const uint32_t share = l->layer->heads / l->layer->kv_heads;
    const qn__cpu_grid grid = {l->layer->kv_heads, w->stretches.count, 1};
    keep(pass, thread, l);
    w->core[thread].waited += qn__pool_barrier(w->pool, thread);
    for (uint32_t group, stretch; qn__cpu_take(w, thread, phase, grid, &group, &stretch);) {
        cached t = begin_group(pass, l, group);
        find_slot(&t, &w->stretches.at[stretch]);
        float *space = carve_arrays(&t, w->core[thread].attention);
        if (qn__program_bits(w->program, l->layer))
            qn__cpu_cache_integer_attend(&t, space);
        else
            for (uint32_t h = group * share; h < (group + 1) * share; ++h)
                attend_head(&t, h);
        if (group + 1 == l->layer->kv_heads)
            clear_lanes(&t);
    }
}
