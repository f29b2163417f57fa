/* attention with integers over sequences that grow (docs/exactness.md 25.25): the cache has keys
 * and values as floats, with the exponents of their blocks, and the keys as operands.
 *
 *     keys, values   [sequence][group][panel of 16 positions][channel][16]
 *     scales         [sequence][group][of keys: 2^t, 2^-t; of values: 2^t, 2^-t][position]
 *     columns        [sequence][group][panel of 16 positions]   right operands of the keys
 *
 * A sum over positions needs an operand of all that a stretch sees: it is made for the stretch. */
#include "device/cpu/layers/cpu_cache.h"
#include "num/intgemm_reference.h"

enum { CELLS = QN__PANEL * QN__PANEL, LINE = 64, LISTED = 8192 };
enum { KEY_FACTOR, KEY_INVERSE, VALUE_FACTOR, VALUE_INVERSE, SCALES };

/* All positions, in whole panels. */
static uint32_t all_of(const qn__cpu_head_sizes *s) { return s->panels * QN__PANEL; }

static size_t across(const qn__worker *w, const qn__cpu_head_sizes *s) {
    return w->intgemm->size(w->bits, s->width);
}

/* Bytes of an operand with a depth for each position: more depths may take less memory. */
static size_t along(const qn__worker *w, const qn__cpu_head_sizes *s) {
    const uint32_t all = all_of(s);
    const size_t most = w->intgemm->size(w->bits, all);
    const size_t listed = w->intgemm->size(w->bits, all < LISTED ? all : LISTED);
    return most > listed ? most : listed;
}

/* A core's arrays. */
typedef struct space {
    float *zeros; /* of all positions */
    float *plain; /* [position][queries, keys, values of a head] */
    char *left, *depths;
} space;

static size_t lines(size_t bytes) { return (bytes + LINE - 1) / LINE * LINE; }

/* Carves them, unless `to` is NULL. Returns the bytes. */
static size_t carve_space(const qn__worker *w, const qn__cpu_head_sizes *s, char *at, space *to) {
    const size_t left = across(w, s) > along(w, s) ? across(w, s) : along(w, s);
    const size_t sizes[] = {lines(all_of(s) * sizeof(float)),
                            lines((size_t)all_of(s) * 3 * s->width * sizeof(float)), lines(left),
                            lines(s->wide * along(w, s))};
    if (to) {
        at += (LINE - (uintptr_t)at % LINE) % LINE;
        to->zeros = (float *)(void *)at;
        to->plain = (float *)(void *)(at += sizes[0]);
        to->left = at += sizes[1];
        to->depths = at + sizes[2];
    }
    return LINE + sizes[0] + sizes[1] + sizes[2] + sizes[3];
}

size_t qn__cpu_cache_integer_space(const qn__worker *w, const qn__layer *l) {
    const qn__cpu_head_sizes s = qn__cpu_cached_sizes(w, l);
    if (!qn__program_bits(w->program, l))
        return 0;
    return (carve_space(w, &s, NULL, NULL) + sizeof(float) - 1) / sizeof(float);
}

void qn__cpu_cache_integer_carve(qn__cpu_arena *a, const qn__worker *w, qn__cpu_layer *l) {
    const qn__cpu_head_sizes s = qn__cpu_cached_sizes(w, l->layer);
    const size_t groups = (size_t)w->program->sequences * l->layer->kv_heads;
    if (!qn__program_bits(w->program, l->layer))
        return;
    l->cache.scales = qn__cpu_carve(a, groups * SCALES, all_of(&s) * sizeof(float));
    l->cache.columns = qn__cpu_carve(a, groups * s.panels, across(w, &s));
}

static float *scales_of(const qn__cpu_cached *t, int which) {
    return t->l->cache.scales + (t->slot * SCALES + (size_t)which) * all_of(&t->s);
}

static char *columns_of(const qn__cpu_cached *t, uint32_t panel) {
    return t->l->cache.columns + (t->slot * t->s.panels + panel) * across(t->pass->worker, &t->s);
}

/* ------------------------------------------------------------------------------------------- keep
 */

/* Channels of a position in `to`, and the scale of this block. Returns whether it is finite. */
static int keep_block(const qn__cpu_cached *t, const float *row, uint32_t channel,
                      uint32_t position, float *to, int factor) {
    const qn__worker *w = t->pass->worker;
    float block[QN__PANEL];
    uint32_t absmax = 0;
    to += (size_t)(position / QN__PANEL) * t->s.wide * CELLS + position % QN__PANEL;
    for (uint32_t p = 0; p < t->s.wide; ++p) {
        qn__cpu_take_channels(row, t->l->in_stride, channel + p * QN__PANEL,
                              qn__cpu_panel_channels(t->s.width, p), block);
        const uint32_t own = qn__absmax(QN__PANEL, block, 1);
        absmax = own > absmax ? own : absmax;
        for (uint32_t c = 0; c < QN__PANEL; ++c)
            to[((size_t)p * QN__PANEL + c) * QN__PANEL] = block[c];
    }
    qn__cpu_block_scales(w->bits, 1, &absmax, scales_of(t, factor) + position,
                         scales_of(t, factor + 1) + position);
    return absmax < QN__INFINITE;
}

/* Positions that do not exist yet are zeros: those of an earlier sequence need not be numbers. */
static void begin_panel(const qn__cpu_cached *t, uint32_t panel) {
    const size_t at = (size_t)panel * t->s.wide * CELLS;
    memset(t->keys + at, 0, (size_t)t->s.wide * CELLS * sizeof(float));
    memset(t->values + at, 0, (size_t)t->s.wide * CELLS * sizeof(float));
    for (int i = 0; i < SCALES; ++i)
        memset(scales_of(t, i) + (size_t)panel * QN__PANEL, 0, QN__PANEL * sizeof(float));
}

void qn__cpu_cache_integer_keep(const qn__cpu_cached *t) {
    const qn__layer *l = t->l->layer;
    const qn__worker *w = t->pass->worker;
    const uint32_t key = qn__attention_keys(l, t->group), value = key + l->kv_heads * t->s.width;
    const uint32_t first = t->rows->position, end = first + t->rows->rows;
    const float *row = qn__cpu_input(t->pass, t->l) + (size_t)t->rows->row * QN__PANEL;
    int finite = first == 0 || !t->l->cache.infinite[t->slot];
    for (uint32_t u = first; u < end; ++u, row += QN__PANEL) {
        if (u % QN__PANEL == 0)
            begin_panel(t, u / QN__PANEL);
        finite &= keep_block(t, row, key, u, t->keys, KEY_FACTOR);
        finite &= keep_block(t, row, value, u, t->values, VALUE_FACTOR);
    }
    t->l->cache.infinite[t->slot] = !finite;
    for (uint32_t p = first / QN__PANEL; p * QN__PANEL < end; ++p)
        w->intgemm->right(w->bits, t->s.width, t->keys + (size_t)p * t->s.wide * CELLS,
                          scales_of(t, KEY_INVERSE) + (size_t)p * QN__PANEL, columns_of(t, p));
}

/* ---------------------------------------------------------------------------------------- outputs
 */

/* Where numbers are not usual: 25.25 as it is written, for one row of a head. */
static void repeat_row(const qn__cpu_cached *t, const space *s, uint32_t r) {
    const uint32_t width = t->s.width, own = t->rows->position + r;
    qn__layer layer = *t->l->layer;
    layer.from.width = own + 1;
    layer.by_length = 0;
    layer.heads = layer.kv_heads = 1;
    layer.to.channels = width;
    const qn__attended in = {QN__PANEL, 3 * (size_t)width}, out = {t->s.rows * QN__PANEL, 0};
    for (uint32_t u = 0; u <= own; ++u)
        for (uint32_t c = 0; c < width; ++c) {
            float *to = s->plain + u * in.row + c;
            const size_t at =
                ((size_t)(u / QN__PANEL) * t->s.wide * QN__PANEL + c) * QN__PANEL + u % QN__PANEL;
            to[0] = t->query[c / QN__PANEL * out.panel + r * QN__PANEL + c % QN__PANEL];
            to[width] = t->keys[at];
            to[2 * (size_t)width] = t->values[at];
        }
    qn__attention_integer_row(&layer, t->pass->worker->bits, own, s->plain, in,
                              t->output + (size_t)r * QN__PANEL, out);
}

/* What a stretch sees: whole panels from `first` on, and their positions. */
typedef struct view {
    uint32_t first, panels, positions;
} view;

static void attend_head(const qn__cpu_cached *t, const space *s, view v, uint32_t head) {
    const qn__worker *w = t->pass->worker;
    const qn__cpu_kernels *k = w->kernels;
    const qn__intgemm *g = w->intgemm;
    const uint32_t rows = t->rows->rows, from = v.first * QN__PANEL;
    const size_t stride = (size_t)t->s.rows * QN__PANEL;
    const float *times = scales_of(t, VALUE_FACTOR) + from;
    float factor[QN__PANEL], inverse[QN__PANEL], greatest[QN__PANEL], share[QN__PANEL];
    uint32_t absmax[QN__PANEL];
    int64_t units[QN__PANEL];
    int usual = !t->l->cache.infinite[t->slot];
    qn__cpu_cached_queries(t, head);
    g->absmax(rows, t->s.width, t->query, t->steps, NULL, absmax);
    qn__cpu_block_scales(w->bits, rows, absmax, factor, inverse);
    for (uint32_t r = 0; r < rows; ++r)
        usual &= absmax[r] < QN__INFINITE;
    g->left(w->bits, rows, t->s.width, t->query, t->steps, NULL, inverse, s->left);
    g->product(w->bits, rows, t->s.width, s->left, v.panels, columns_of(t, v.first), factor,
               scales_of(t, KEY_FACTOR) + from, s->zeros, t->weights, stride);
    for (uint32_t r = 0; r < rows; ++r)
        qn__cpu_cached_hide(t, r, v.first, v.panels);
    usual &= k->attend_scores(rows, v.panels, stride, qn__attention_scale(t->l->layer), t->weights,
                              greatest) <= QN__USUAL_BITS;
    k->attend_weights(rows, v.panels, stride, 1.0f, greatest, t->weights, units);
    g->absmax(rows, v.positions, t->weights, t->steps, times, absmax);
    qn__cpu_block_scales(w->bits, rows, absmax, factor, inverse);
    g->left(w->bits, rows, v.positions, t->weights, t->steps, times, inverse, s->left);
    g->product(w->bits, rows, v.positions, s->left, t->s.wide, s->depths, factor, NULL, NULL,
               t->output, stride);
    for (uint32_t r = 0; r < rows; ++r) {
        share[r] = qn__attention_share(units[r]);
        usual &= qn__cpu_is_usual(greatest[r], share[r]);
    }
    k->attend_scale(rows, t->s.wide, stride, share, t->output);
    for (uint32_t r = 0; r < rows && !usual; ++r)
        repeat_row(t, s, r);
    qn__cpu_cached_outputs(t, head);
}

/* The values that the stretch sees, with a depth for each position. `blocks` are the distances of
 * their panels. */
static void pack_values(const qn__cpu_cached *t, const space *s, view v) {
    const qn__worker *w = t->pass->worker;
    const size_t size = w->intgemm->size(w->bits, v.positions);
    const float *values = t->values + (size_t)v.first * t->s.wide * CELLS;
    for (uint32_t i = 0; i < v.panels; ++i)
        t->blocks[i] = (size_t)i * t->s.wide * CELLS;
    for (uint32_t p = 0; p < t->s.wide; ++p)
        w->intgemm->right_transposed(
            w->bits, QN__PANEL, v.positions, values + (size_t)p * CELLS, t->blocks,
            scales_of(t, VALUE_INVERSE) + (size_t)v.first * QN__PANEL, s->depths + p * size);
}

void qn__cpu_cache_integer_attend(const qn__cpu_cached *t, float *at) {
    const qn__layer *l = t->l->layer;
    const uint32_t share = l->heads / l->kv_heads, end = t->rows->position + t->rows->rows;
    const uint32_t first = qn__cpu_cached_sees(l, t->rows->position).begin / QN__PANEL;
    const view v = {first, (end + QN__PANEL - 1) / QN__PANEL - first, end - first * QN__PANEL};
    space s;
    carve_space(t->pass->worker, &t->s, (char *)at, &s);
    memset(s.zeros, 0, all_of(&t->s) * sizeof *s.zeros);
    pack_values(t, &s, v);
    for (uint32_t h = t->group * share; h < (t->group + 1) * share; ++h)
        attend_head(t, &s, v, h);
}
