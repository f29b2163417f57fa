/* attention with integers: docs/exactness.md 25.25 and 25.26, by the products of intgemm.h.
 *
 * The channels of a head are an operand with a row for each position, and one with a column for
 * each position; both have a scale for each. Where a sum goes over positions, they are an operand
 * with a depth for each position; the scales are then multiplied into what stands on the left, and
 * each of its rows gets a scale.
 *
 * A stage is some queries and the keys that they see, or the other way. Its operands are packed
 * once, and tiles of scores have its columns; those of positions that are not seen have weights of
 * +0, which are zeros. */
#include "device/cpu/worker/cpu_heads.h"
#include "layer/attention.h"
#include <string.h>

enum {
    CELLS = QN__PANEL * QN__PANEL,
    TILE = 1 << 16, /* floats of a tile of scores of keys, at most, if it has 16 keys or more */
    STAGE = 64,     /* queries, at least */
    STAGES = 4,
    LISTED = 8192 /* operands with more depths may take less memory */
};

/* Sizes: a head's channels, panels of them and of positions, all positions, and keys of a stage;
 * bytes of a panel of 16 positions, and of one of 16 channels. */
typedef struct sizes {
    uint32_t width, wide, panels, all, keys;
    size_t across, along;
} sizes;

static uint32_t rounded(uint32_t n) { return (n + QN__PANEL - 1) / QN__PANEL * QN__PANEL; }

static sizes sizes_of(const qn__worker *w, const qn__layer *l) {
    const uint32_t width = qn__attention_width(l), all = rounded(l->from.height * l->from.width);
    const uint32_t keys = TILE / all / QN__PANEL * QN__PANEL;
    const size_t long_size = w->intgemm->size(w->bits, all);
    const size_t short_size = w->intgemm->size(w->bits, all < LISTED ? all : LISTED);
    return (sizes){.width = width,
                   .wide = (width + QN__PANEL - 1) / QN__PANEL,
                   .panels = all / QN__PANEL,
                   .all = all,
                   .keys = keys >= all        ? all
                           : keys > QN__PANEL ? keys
                                              : QN__PANEL,
                   .across = w->intgemm->size(w->bits, width),
                   .along = long_size > short_size ? long_size : short_size};
}

/* Channels of a head at all positions. `rows` or `columns`: with a row, or a column, for each
 * position. `depths`: with a depth for each position of a stage. */
typedef struct side {
    float *values; /* [panel of positions][channel][16] */
    float *factor, *inverse;
    char *rows, *columns, *depths;
} side;

enum { QUERY, KEY, VALUE, ERROR, SIDES };

typedef struct task {
    qn__cpu_attend *of;
    const qn__intgemm *intgemm;
    int bits;
    sizes s;
    side side[SIDES];
    float *weights, *slopes; /* tiles */
    float *sums[2];          /* errors of keys and values: [panel of them][panel][16][16] */
    float *block, *output;   /* 16 rows: [panel of channels][16][16] */
    float *zeros, *mean;     /* of all positions */
    char *left;              /* rows of a tile */
    uint32_t *list;
    size_t *cells, *values, *tile; /* distances of blocks, of panels of values, of a tile */
    float scale, scales[QN__PANEL], ones[QN__PANEL];
} task;

/* ---------------------------------------------------------------------------------------- memory
 */

/* Takes `bytes` from an arena that may be only counted. */
static void *carve(char **at, size_t *bytes, size_t size) {
    void *own = *at;
    size = (size + 63) / 64 * 64;
    *bytes += size;
    if (own)
        *at += size;
    return own;
}

static void carve_side(side *to, const sizes *s, char **at, size_t *bytes) {
    to->values = carve(at, bytes, (size_t)s->panels * s->wide * CELLS * sizeof(float));
    to->factor = carve(at, bytes, s->all * sizeof(float));
    to->inverse = carve(at, bytes, s->all * sizeof(float));
    to->rows = to->columns = carve(at, bytes, s->panels * s->across);
    to->depths = carve(at, bytes, s->wide * s->along);
}

/* The bytes of a task's arrays; with memory they are carved from it. */
static size_t carve_task(task *t, char *at) {
    const sizes *s = &t->s;
    /* As much as any smaller number of positions takes: an item may be computed with fewer. */
    const size_t square = (size_t)s->all * s->all, least = (size_t)QN__PANEL * s->all;
    const size_t most = least > TILE ? least : TILE;
    const size_t tile = (square < most ? square : most) * sizeof(float);
    const size_t sums = (size_t)s->panels * s->wide * CELLS * sizeof(float);
    size_t bytes = 0;
    for (int i = 0; i < SIDES; ++i)
        carve_side(&t->side[i], s, &at, &bytes);
    t->weights = carve(&at, &bytes, tile);
    t->slopes = carve(&at, &bytes, tile);
    t->sums[0] = carve(&at, &bytes, sums);
    t->sums[1] = carve(&at, &bytes, sums);
    t->block = carve(&at, &bytes, s->wide * CELLS * sizeof(float));
    t->output = carve(&at, &bytes, s->wide * CELLS * sizeof(float));
    t->zeros = carve(&at, &bytes, s->all * sizeof(float));
    t->mean = carve(&at, &bytes, s->all * sizeof(float));
    t->left = carve(&at, &bytes, s->along);
    t->list = carve(&at, &bytes, s->all * sizeof *t->list);
    t->cells = carve(&at, &bytes, s->wide * sizeof *t->cells);
    t->values = carve(&at, &bytes, s->panels * sizeof *t->values);
    t->tile = carve(&at, &bytes, s->panels * sizeof *t->tile);
    return bytes;
}

size_t qn__cpu_integer_space(const qn__worker *w, const qn__layer *l) {
    task t = {.s = sizes_of(w, l)};
    return carve_task(&t, NULL) / sizeof(float);
}

static task begin_task(qn__cpu_attend *of) {
    const qn__worker *w = of->pass->worker;
    task t = {.of = of,
              .intgemm = w->intgemm,
              .bits = w->bits,
              .s = sizes_of(w, of->own),
              .scale = qn__attention_scale(of->own)};
    carve_task(&t, (char *)of->space);
    memset(t.zeros, 0, t.s.all * sizeof *t.zeros);
    for (uint32_t i = 0; i < t.s.all; ++i)
        t.list[i] = i;
    for (uint32_t i = 0; i < t.s.wide; ++i)
        t.cells[i] = (size_t)i * CELLS;
    for (uint32_t i = 0; i < t.s.panels; ++i)
        t.values[i] = (size_t)i * t.s.wide * CELLS;
    for (int i = 0; i < QN__PANEL; ++i) {
        t.scales[i] = t.scale;
        t.ones[i] = 1.0f;
    }
    return t;
}

/* -------------------------------------------------------------------------------------- operands
 */

/* A row of a batch array: a position of the task's item. */
static size_t row_of(const task *t, uint32_t position) {
    return ((size_t)position * t->of->pass->batch->items + t->of->item) * QN__PANEL;
}

/* Sixteen positions, from one that is a multiple of 16, of a head's channels; rows from `end` on
 * are 0. */
static void take_rows(const task *t, const float *from, size_t panel, uint32_t channel,
                      uint32_t first, uint32_t end, float *to) {
    const size_t apart = row_of(t, 1) - row_of(t, 0);
    const uint32_t rows = end - first < QN__PANEL ? end - first : QN__PANEL;
    for (uint32_t p = 0; p < t->s.wide; ++p, channel += QN__PANEL, to += CELLS) {
        const uint32_t count = qn__cpu_panel_channels(t->s.width, p);
        const float *x = from + row_of(t, first);
        for (uint32_t i = 0; i < rows; ++i, x += apart)
            qn__cpu_take_channels(x, panel, channel, count, to + (size_t)i * QN__PANEL);
        memset(to + (size_t)rows * QN__PANEL, 0, (QN__PANEL - rows) * QN__PANEL * sizeof *to);
    }
}

static void put_rows(const task *t, const float *x, size_t panel, uint32_t channel, uint32_t first,
                     uint32_t rows, float *to) {
    const size_t apart = row_of(t, 1) - row_of(t, 0);
    for (uint32_t p = 0; p < t->s.wide; ++p, channel += QN__PANEL, x += CELLS) {
        const uint32_t count = qn__cpu_panel_channels(t->s.width, p);
        float *y = to + row_of(t, first);
        for (uint32_t i = 0; i < rows; ++i, y += apart)
            qn__cpu_put_channels(x + (size_t)i * QN__PANEL, panel, channel, count, y);
    }
}

/* x = x * factor + 0 for some of 16 rows of all channels. */
static void scale_rows(const task *t, uint32_t rows, const float *factor, float *x) {
    const uint32_t bits =
        t->of->pass->worker->kernels->attend_scale(rows, t->s.wide, CELLS, factor, x);
    t->of->largest = bits > t->of->largest ? bits : t->of->largest;
}

static void transpose(const float *x, float *to) {
    for (uint32_t c = 0; c < QN__PANEL; ++c)
        for (uint32_t i = 0; i < QN__PANEL; ++i)
            to[c * QN__PANEL + i] = x[i * QN__PANEL + c];
}

/* The sixteen positions of t->block in an operand. */
static void take_block(task *t, int which, uint32_t first) {
    side *to = &t->side[which];
    const uint32_t panel = first / QN__PANEL;
    float *values = to->values + (size_t)panel * t->s.wide * CELLS;
    uint32_t absmax[QN__PANEL];
    t->intgemm->absmax(QN__PANEL, t->s.width, t->block, t->cells, NULL, absmax);
    qn__cpu_block_scales(t->bits, QN__PANEL, absmax, to->factor + first, to->inverse + first);
    for (uint32_t i = 0; i < QN__PANEL; ++i)
        t->of->odd |= absmax[i] >= QN__INFINITE;
    for (uint32_t p = 0; p < t->s.wide; ++p)
        transpose(t->block + (size_t)p * CELLS, values + (size_t)p * CELLS);
    if (which == KEY || which == VALUE)
        t->intgemm->right(t->bits, t->s.width, values, to->inverse + first,
                          to->columns + panel * t->s.across);
    else
        t->intgemm->left(t->bits, QN__PANEL, t->s.width, t->block, t->cells, NULL,
                         to->inverse + first, to->rows + panel * t->s.across);
}

static uint32_t down(uint32_t position) { return position / QN__PANEL * QN__PANEL; }

static void take_inputs(task *t, int which, uint32_t channel, qn__cover some) {
    const qn__cpu_layer *l = t->of->l;
    for (uint32_t u = down(some.begin); u < some.end; u += QN__PANEL) {
        take_rows(t, qn__cpu_input(t->of->pass, l), l->in_stride, channel, u, some.end, t->block);
        take_block(t, which, u);
    }
}

static const qn__attention_query *queries_of(const task *t, uint32_t head) {
    const qn__layer *l = t->of->l->layer;
    return t->of->l->queries +
           ((size_t)t->of->item * l->heads + head) * (l->from.height * l->from.width);
}

/* g and D of 25.23. */
static void take_errors(task *t, uint32_t head, qn__cover some) {
    const qn__cpu_layer *l = t->of->l;
    const qn__attention_query *query = queries_of(t, head);
    const uint32_t channel = head * t->s.width, largest = t->of->largest;
    for (uint32_t u = down(some.begin); u < some.end; u += QN__PANEL) {
        float share[QN__PANEL] = {0};
        for (uint32_t i = 0; i < QN__PANEL && u + i < some.end; ++i) {
            share[i] = query[u + i].share;
            t->of->odd |= !qn__cpu_is_usual(query[u + i].greatest, query[u + i].share);
        }
        take_rows(t, l->error, l->out_stride, channel, u, some.end, t->block);
        take_rows(t, l->output, l->out_stride, channel, u, some.end, t->output);
        scale_rows(t, QN__PANEL, share, t->block);
        t->of->pass->worker->kernels->attend_means(QN__PANEL, t->s.width, CELLS, t->block,
                                                   t->output, t->mean + u);
        take_block(t, ERROR, u);
    }
    t->of->largest = largest; /* these are not results */
}

/* Positions of a stage as depths. */
static void pack_depths(const task *t, int which, qn__cover some) {
    const side *x = &t->side[which];
    const uint32_t k = some.end - some.begin;
    const size_t size = t->intgemm->size(t->bits, k);
    const float *values = x->values + (size_t)some.begin / QN__PANEL * t->s.wide * CELLS;
    for (uint32_t p = 0; p < t->s.wide; ++p)
        t->intgemm->right_transposed(t->bits, QN__PANEL, k, values + (size_t)p * CELLS, t->values,
                                     x->inverse + some.begin, x->depths + p * size);
}

/* ----------------------------------------------------------------------------------------- tiles
 */

/* Rows of queries, from a multiple of 16 on, by the keys of `columns`; `stride` is that of its
 * panels. */
typedef struct tile {
    uint32_t first, rows;
    qn__cover columns;
    size_t stride;
} tile;

static uint32_t panels_of(qn__cover some) {
    return (some.end - some.begin + QN__PANEL - 1) / QN__PANEL;
}

/* The part of a tile's columns, whole panels, that one of its rows sees. */
static qn__cover seen_by(const task *t, const tile *x) {
    const uint32_t begin = down(qn__attention_sees(t->of->own, x->first).begin);
    const uint32_t end = qn__attention_sees(t->of->own, x->first + x->rows - 1).end;
    const uint32_t from = begin > x->columns.begin ? begin : x->columns.begin;
    const uint32_t to = end < x->columns.end ? end : x->columns.end;
    return (qn__cover){from, to > from ? to : from};
}

static float *column_of(const tile *x, float *at, uint32_t position) {
    return at + (position - x->columns.begin) / QN__PANEL * x->stride;
}

/* Zeros in the columns of a tile that none of its rows sees. */
static void clear_unseen(const tile *x, qn__cover seen, float *at) {
    const uint32_t begin = x->columns.begin, end = begin + panels_of(x->columns) * QN__PANEL;
    for (uint32_t u = begin; u < end; u += QN__PANEL)
        if (u < seen.begin || u >= seen.end)
            memset(column_of(x, at, u), 0, x->rows * QN__PANEL * sizeof *at);
}

/* The tile's rows of one side by columns of the other. */
static void multiply(const task *t, const tile *x, qn__cover seen, int rows, int columns,
                     float *to) {
    const side *a = &t->side[rows], *b = &t->side[columns];
    t->intgemm->product(t->bits, x->rows, t->s.width, a->rows + x->first / QN__PANEL * t->s.across,
                        panels_of(seen), b->columns + seen.begin / QN__PANEL * t->s.across,
                        a->factor + x->first, b->factor + seen.begin, t->zeros,
                        column_of(x, to, seen.begin), x->stride);
}

static void hide(const task *t, const tile *x, qn__cover seen, float *s) {
    const uint32_t end = seen.begin + panels_of(seen) * QN__PANEL;
    for (uint32_t i = 0; i < x->rows; ++i) {
        const qn__cover sees = qn__attention_sees(t->of->own, x->first + i);
        float *row = s + (size_t)i * QN__PANEL;
        for (uint32_t u = seen.begin; u < sees.begin && u < end; ++u)
            *(column_of(x, row, u) + u % QN__PANEL) = QN__UNSEEN;
        for (uint32_t u = sees.end > seen.begin ? sees.end : seen.begin; u < end; ++u)
            *(column_of(x, row, u) + u % QN__PANEL) = QN__UNSEEN;
    }
}

/* Rows of a tile by the depths of a stage, with its scales: 16 rows of all channels. */
static void gather(const task *t, const tile *x, const float *at, int which) {
    const side *by = &t->side[which];
    const uint32_t k = x->columns.end - x->columns.begin;
    const float *times = by->factor + x->columns.begin;
    float factor[QN__PANEL] = {0}, inverse[QN__PANEL];
    uint32_t absmax[QN__PANEL];
    for (uint32_t i = 0; i < panels_of(x->columns); ++i)
        t->tile[i] = i * x->stride;
    t->intgemm->absmax(x->rows, k, at, t->tile, times, absmax);
    qn__cpu_block_scales(t->bits, x->rows, absmax, factor, inverse);
    t->intgemm->left(t->bits, x->rows, k, at, t->tile, times, inverse, t->left);
    t->intgemm->product(t->bits, x->rows, k, t->left, t->s.wide, by->depths, factor, NULL, NULL,
                        t->output, CELLS);
}

/* --------------------------------------------------------------------------------------- forward
 */

static void output_rows(task *t, const tile *x, uint32_t head) {
    const qn__cpu_kernels *k = t->of->pass->worker->kernels;
    const qn__cpu_layer *l = t->of->l;
    const qn__cover seen = seen_by(t, x);
    qn__attention_query *query = (qn__attention_query *)queries_of(t, head) + x->first;
    float *s = column_of(x, t->weights, seen.begin);
    float greatest[QN__PANEL], share[QN__PANEL] = {0};
    int64_t units[QN__PANEL];
    clear_unseen(x, seen, t->weights);
    multiply(t, x, seen, QUERY, KEY, t->weights);
    hide(t, x, seen, t->weights);
    const uint32_t bits =
        k->attend_scores(x->rows, panels_of(seen), x->stride, t->scale, s, greatest);
    k->attend_weights(x->rows, panels_of(seen), x->stride, 1.0f, greatest, s, units);
    t->of->odd |= bits > QN__USUAL_BITS;
    for (uint32_t i = 0; i < x->rows; ++i) {
        share[i] = qn__attention_share(units[i]);
        query[i] = (qn__attention_query){greatest[i], share[i]};
        t->of->odd |= !qn__cpu_is_usual(greatest[i], share[i]);
    }
    gather(t, x, t->weights, VALUE);
    scale_rows(t, x->rows, share, t->output);
    put_rows(t, t->output, l->out_stride, head * t->s.width, x->first, x->rows, l->output);
}

static qn__cover heads_of(const task *t) {
    const qn__layer *l = t->of->own;
    const uint32_t each = l->heads / l->kv_heads;
    return (qn__cover){t->of->group * each, (t->of->group + 1) * each};
}

static uint32_t channel_of(const task *t, int which) {
    const qn__layer *l = t->of->own;
    return qn__attention_keys(l, t->of->group) + (which == VALUE ? l->kv_heads * t->s.width : 0);
}

/* Queries of a stage. */
static uint32_t stage_of(const qn__layer *l) {
    const uint32_t all = l->from.height * l->from.width;
    const uint32_t most = l->span ? l->span : (all + STAGES - 1) / STAGES;
    return !l->causal ? rounded(all) : rounded(most > STAGE ? most : STAGE);
}

/* The keys that queries see, from a multiple of 16 on. */
static qn__cover sees_of(const task *t, qn__cover queries) {
    return (qn__cover){down(qn__attention_sees(t->of->own, queries.begin).begin),
                       qn__attention_sees(t->of->own, queries.end - 1).end};
}

static qn__cover cut(qn__cover of, uint32_t first, uint32_t most) {
    return (qn__cover){first, of.end - first < most ? of.end : first + most};
}

void qn__cpu_integer_outputs(qn__cpu_attend *of) {
    task t = begin_task(of);
    const uint32_t stage = stage_of(of->own);
    const qn__cover keys = sees_of(&t, of->queries), heads = heads_of(&t);
    take_inputs(&t, KEY, channel_of(&t, KEY), keys);
    take_inputs(&t, VALUE, channel_of(&t, VALUE), keys);
    for (uint32_t first = of->queries.begin; first < of->queries.end; first += stage) {
        const qn__cover own = cut(of->queries, first, stage), columns = sees_of(&t, own);
        pack_depths(&t, VALUE, columns);
        for (uint32_t h = heads.begin; h < heads.end; ++h) {
            take_inputs(&t, QUERY, h * t.s.width, own);
            for (uint32_t i = own.begin; i < own.end; i += QN__PANEL) {
                const qn__cover rows = cut(own, i, QN__PANEL);
                const tile x = {i, rows.end - i, columns, CELLS};
                output_rows(&t, &x, h);
            }
        }
    }
}

/* -------------------------------------------------------------------------------------- backward
 */

/* p and x of 25.23, in the tiles `weights` and `slopes`. */
static void take_slopes(task *t, const tile *x, uint32_t head, float *weights, float *slopes) {
    const qn__cpu_kernels *k = t->of->pass->worker->kernels;
    const qn__attention_query *query = queries_of(t, head) + x->first;
    const qn__cover seen = seen_by(t, x);
    float greatest[QN__PANEL];
    for (uint32_t i = 0; i < x->rows; ++i)
        greatest[i] = query[i].greatest;
    clear_unseen(x, seen, weights);
    clear_unseen(x, seen, slopes);
    if (seen.begin == seen.end)
        return;
    multiply(t, x, seen, QUERY, KEY, weights);
    hide(t, x, seen, weights);
    k->attend_weights(x->rows, panels_of(seen), x->stride, t->scale, greatest,
                      column_of(x, weights, seen.begin), NULL);
    multiply(t, x, seen, ERROR, VALUE, slopes);
    t->of->odd |= k->attend_errors(x->rows, panels_of(seen), x->stride, t->mean + x->first,
                                   column_of(x, weights, seen.begin),
                                   column_of(x, slopes, seen.begin)) >= QN__INFINITE;
}

static void put_query_errors(task *t, const tile *x, uint32_t head, const float *slopes) {
    const qn__cpu_layer *l = t->of->l;
    gather(t, x, slopes, KEY);
    scale_rows(t, x->rows, t->scales, t->output);
    put_rows(t, t->output, l->below->out_stride, head * t->s.width, x->first, x->rows,
             qn__cpu_passes(l));
}

/* The sums of sixteen keys over `rows` queries from `first` on: x is [query][16 keys]. */
static void add_sums(const task *t, float *x, uint32_t first, uint32_t rows, int which, int begins,
                     float *sums) {
    const side *by = &t->side[which];
    uint32_t absmax[QN__PANEL] = {0};
    float factor[QN__PANEL], inverse[QN__PANEL];
    for (uint32_t i = 0; i < rows; ++i)
        for (uint32_t c = 0; c < QN__PANEL; ++c) {
            float *own = &x[i * QN__PANEL + c];
            *own = *own * by->factor[first + i];
            const uint32_t bits = qn__float_bits(*own) & 0x7fffffffu;
            absmax[c] = bits > absmax[c] ? bits : absmax[c];
        }
    qn__cpu_block_scales(t->bits, QN__PANEL, absmax, factor, inverse);
    t->intgemm->left_across(t->bits, rows, t->list, x, inverse, t->left);
    t->intgemm->product(t->bits, QN__PANEL, rows, t->left, t->s.wide, by->depths, factor, NULL,
                        NULL, begins ? sums : t->output, CELLS);
    for (size_t i = 0; !begins && i < (size_t)t->s.wide * CELLS; ++i)
        sums[i] = sums[i] + t->output[i];
}

/* The queries that see some keys, from a multiple of 16 on, of all. */
static qn__cover seen_of(const task *t, qn__cover keys) {
    return (qn__cover){down(qn__attention_seen(t->of->own, keys.begin).begin),
                       qn__attention_seen(t->of->own, keys.end - 1).end};
}

/* Keys of a stage, of a head; `queries`: also the errors of the queries, which see no others. */
static void add_stage(task *t, qn__cover keys, uint32_t head, int queries) {
    const qn__cover over = seen_of(t, keys);
    const uint32_t rows = over.end - over.begin;
    const size_t stride = (size_t)rounded(rows) * QN__PANEL;
    pack_depths(t, QUERY, over);
    pack_depths(t, ERROR, over);
    for (uint32_t i = over.begin; i < over.end; i += QN__PANEL) {
        const qn__cover own = cut(over, i, QN__PANEL);
        const tile x = {i, own.end - i, keys, stride};
        const size_t at = (size_t)(i - over.begin) * QN__PANEL;
        take_slopes(t, &x, head, t->weights + at, t->slopes + at);
        if (queries)
            put_query_errors(t, &x, head, t->slopes + at);
    }
    for (uint32_t p = 0; p < panels_of(keys); ++p) {
        const size_t sum = ((size_t)keys.begin / QN__PANEL + p) * t->s.wide * CELLS;
        const int begins = head == heads_of(t).begin;
        add_sums(t, t->slopes + p * stride, over.begin, rows, QUERY, begins, t->sums[0] + sum);
        add_sums(t, t->weights + p * stride, over.begin, rows, ERROR, begins, t->sums[1] + sum);
    }
}

/* The errors of a head's queries alone. */
static void put_queries(task *t, uint32_t head) {
    const uint32_t stage = stage_of(t->of->own);
    const qn__cover all = t->of->queries;
    for (uint32_t first = all.begin; first < all.end; first += stage) {
        const qn__cover own = cut(all, first, stage), columns = sees_of(t, own);
        pack_depths(t, KEY, columns);
        for (uint32_t i = own.begin; i < own.end; i += QN__PANEL) {
            const tile x = {i, cut(own, i, QN__PANEL).end - i, columns, CELLS};
            take_slopes(t, &x, head, t->weights, t->slopes);
            put_query_errors(t, &x, head, t->slopes);
        }
    }
}

/* The errors of the task's keys or values. */
static void put_sums(task *t, int which) {
    const qn__cpu_layer *l = t->of->l;
    for (uint32_t u = t->of->keys.begin; u < t->of->keys.end; u += QN__PANEL) {
        const uint32_t rows = cut(t->of->keys, u, QN__PANEL).end - u;
        float *x = t->sums[which == VALUE] + (size_t)u / QN__PANEL * t->s.wide * CELLS;
        scale_rows(t, rows, which == VALUE ? t->ones : t->scales, x);
        put_rows(t, x, l->below->out_stride, channel_of(t, which), u, rows, qn__cpu_passes(l));
    }
}

void qn__cpu_integer_errors(qn__cpu_attend *of, int sums) {
    task t = begin_task(of);
    const int queries = of->queries.begin < of->queries.end;
    const int both = queries && sums && t.s.keys >= t.s.all;
    const qn__cover over = queries ? of->queries : seen_of(&t, of->keys), heads = heads_of(&t);
    const qn__cover keys = sums ? of->keys : sees_of(&t, of->queries);
    take_inputs(&t, KEY, channel_of(&t, KEY), keys);
    take_inputs(&t, VALUE, channel_of(&t, VALUE), keys);
    if (both)
        pack_depths(&t, KEY, keys);
    for (uint32_t h = heads.begin; h < heads.end; ++h) {
        take_inputs(&t, QUERY, h * t.s.width, over);
        take_errors(&t, h, over);
        for (uint32_t u = keys.begin; sums && u < keys.end; u += t.s.keys)
            add_stage(&t, cut(keys, u, t.s.keys), h, both);
        if (queries && !both)
            put_queries(&t, h);
    }
    for (int which = KEY; sums && which <= VALUE; ++which)
        put_sums(&t, which);
}
