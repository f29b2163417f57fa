/* attention: docs/exactness.md 25.20 to 25.23.
 *
 *     scores  = queries x keys        12 rows of queries at a time, by all keys that they see
 *     weights = exp(scores - greatest)
 *     outputs = weights x values / sum
 *
 * So no matrix of all queries by all keys is ever there. A task has an item and a group of heads,
 * whose keys and values it packs once; where these are few, it has some queries or keys of them.
 * The products are those of dense layers. A tile has scores of keys that a query does not see: they
 * become weights of +0, which change no sum of finite numbers. Where numbers are not finite, the
 * item's group is computed once more, by the reference. */
#include "device/cpu/worker/cpu_heads.h"
#include "device/cpu/worker/cpu_kinds.h"
#include "layer/attention.h"
#include <math.h>
#include <string.h>

enum {
    MOST_ROWS = 48, /* of a tile, and so many for at most LONG keys */
    LONG_ROWS = 24,
    LONG = 1024,
    TASKS = 4,           /* of each thread, at least */
    LEAST_QUERIES = 32,  /* of a task */
    MOST_AHEAD = 1 << 15 /* floats of keys of which those of two tasks fit the L2 cache */
};

typedef qn__cpu_head_sizes sizes;

static uint32_t positions_of(const qn__layer *l) { return l->from.height * l->from.width; }

static sizes sizes_of(const qn__layer *l) {
    const uint32_t all = positions_of(l), most = all > LONG ? LONG_ROWS : MOST_ROWS;
    return qn__cpu_head_sizes_of(qn__attention_width(l), all < most ? all : most, all);
}

/* Memory of a core: see `space`. */
size_t qn__cpu_attention_space(const qn__worker *w) {
    size_t most = 0;
    for (uint32_t i = 0; i < w->program->layers; ++i) {
        const qn__layer *l = &w->program->layer[i];
        if (l->kind != QN__LAYER_ATTENTION)
            continue;
        const sizes s = sizes_of(l);
        const size_t steps = 2 * (size_t)(s.panels + s.wide) * (sizeof(size_t) / sizeof(float));
        if (qn__program_bits(w->program, l)) {
            const size_t own = qn__cpu_integer_space(w, l);
            most = own > most ? own : most;
            continue;
        }
        const size_t all =
            4 * s.keys + s.wide * s.panel + 3 * s.block + 2 * s.tile + steps + 16 * QN__PANEL;
        most = all > most ? all : most;
    }
    return most;
}

/* A task, and a core's memory for it. */
typedef struct task {
    const qn__cpu_pass *pass;
    const qn__cpu_layer *l;
    qn__layer own; /* its layer, with the length of the item */
    uint32_t item, group;
    qn__cover queries, keys;        /* of the errors: some of them, or none */
    float scale, scales[MOST_ROWS]; /* equal ones */
    sizes s;
    float *across[2];              /* keys and values: [panel of them][channel][16] */
    float *along;                  /* values, or backward keys: [panel of channels][position][16] */
    float *sums[2];                /* errors of keys and values: [panel of them][panel][16][16] */
    float *query, *error, *output; /* [panel of channels][row][16] */
    float *weights, *slopes;       /* tiles */
    size_t *steps, *blocks;        /* distances of panels of a tile, of blocks of 16 x 16 */
    float *space;
    size_t next;      /* from a row to that of the task that follows, in floats: fetched with it */
    uint32_t largest; /* bits of the largest result */
    int odd;          /* a number was not finite */
    int bits;         /* of integers; 0: float */
} task;

static void carve_task(task *t, float *at) {
    const sizes *s = &t->s;
    float **const array[] = {&t->across[0], &t->across[1], &t->sums[0], &t->sums[1], &t->along,
                             &t->query,     &t->error,     &t->output,  &t->weights, &t->slopes};
    const size_t size[] = {s->keys,  s->keys,  s->keys,  s->keys, s->wide * s->panel,
                           s->block, s->block, s->block, s->tile, s->tile};
    for (size_t i = 0; i < sizeof array / sizeof *array; ++i) {
        *array[i] = at;
        at += size[i];
    }
    t->steps = (size_t *)(void *)at;
    t->blocks = t->steps + s->panels + s->wide;
    for (size_t i = 0; i < s->panels + s->wide; ++i) {
        t->steps[i] = i * s->rows * QN__PANEL;
        t->blocks[i] = i * QN__PANEL * QN__PANEL;
    }
}

/* A row of a batch array: a position of the task's item. */
static size_t row_of(const task *t, uint32_t position) {
    return ((size_t)position * t->pass->batch->items + t->item) * QN__PANEL;
}

static void note_largest(task *t, uint32_t bits) {
    t->largest = bits > t->largest ? bits : t->largest;
}

/* Rows first .. first + rows - 1 of a head's channels, as a block. */
static void take_block(const task *t, const float *from, size_t panel, uint32_t channel,
                       uint32_t first, uint32_t rows, float *to) {
    const size_t apart = row_of(t, 1) - row_of(t, 0);
    for (uint32_t p = 0; p < t->s.wide; ++p, channel += QN__PANEL) {
        const uint32_t count = qn__cpu_panel_channels(t->s.width, p);
        const float *x = from + row_of(t, first);
        float *own = to + p * t->s.rows * QN__PANEL;
        for (uint32_t i = 0; i < rows; ++i, x += apart, own += QN__PANEL) {
            __builtin_prefetch(x + channel / QN__PANEL * panel + t->next, 0, 2);
            qn__cpu_take_channels(x, panel, channel, count, own);
        }
    }
}

/* Fetches the lines of rows first .. before they are needed, up to `rows` of them and to row end -
 * 1: rows of an item are far apart. A core waits for lines if it asks for many at once, so each
 * piece of a block fetches its share. */
static void fetch_rows(const task *t, const float *from, size_t panel, uint32_t channel,
                       uint32_t first, uint32_t rows, uint32_t end) {
    const uint32_t stop = first < end && rows < end - first ? first + rows : end;
    for (uint32_t p = 0; p < t->s.wide; ++p, channel += QN__PANEL)
        for (uint32_t i = first; i < stop; ++i)
            __builtin_prefetch(from + channel / QN__PANEL * panel + row_of(t, i), 0, 2);
}

/* The other way; times a factor for each row, + 0. */
static void put_block(task *t, float *x, const float *factor, size_t panel, uint32_t channel,
                      uint32_t first, uint32_t rows, float *to) {
    const size_t apart = row_of(t, 1) - row_of(t, 0);
    note_largest(t, t->pass->worker->kernels->attend_scale(
                        rows, t->s.wide, (size_t)t->s.rows * QN__PANEL, factor, x));
    for (uint32_t p = 0; p < t->s.wide; ++p, channel += QN__PANEL) {
        const uint32_t count = qn__cpu_panel_channels(t->s.width, p);
        const float *own = x + p * t->s.rows * QN__PANEL;
        float *y = to + row_of(t, first);
        for (uint32_t i = 0; i < rows; ++i, y += apart, own += QN__PANEL)
            qn__cpu_put_channels(own, panel, channel, count, y);
    }
}

/* Positions `all` of a head's channels from `channel` on, in both orders; NULL: not in this one. */
static void take_keys(const task *t, qn__cover all, uint32_t channel, float *across, float *along) {
    const float *from = qn__cpu_input(t->pass, t->l);
    const uint32_t end = qn__layer_positions(&t->own);
    const size_t apart = row_of(t, 1) - row_of(t, 0);
    for (uint32_t u = all.begin / QN__PANEL * QN__PANEL; u < all.end; u += QN__PANEL)
        for (uint32_t p = 0; p < t->s.wide; ++p) {
            float block[QN__PANEL][QN__PANEL];
            const uint32_t own = channel + p * QN__PANEL,
                           count = qn__cpu_panel_channels(t->s.width, p);
            const float *x = from + row_of(t, u);
            for (uint32_t i = 0; i < QN__PANEL; ++i, x += apart) {
                __builtin_prefetch(x + own / QN__PANEL * t->l->in_stride + QN__PANEL * apart);
                __builtin_prefetch(x + own / QN__PANEL * t->l->in_stride + t->next, 0, 2);
                if (u + i < end)
                    qn__cpu_take_channels(x, t->l->in_stride, own, count, block[i]);
                else
                    memset(block[i], 0, sizeof block[i]);
            }
            if (along)
                memcpy(along + p * t->s.panel + (size_t)u * QN__PANEL, block, sizeof block);
            float *to =
                across ? across + ((size_t)u * t->s.wide + p * QN__PANEL) * QN__PANEL : NULL;
            for (uint32_t c = 0; across && c < QN__PANEL; ++c)
                for (uint32_t i = 0; i < QN__PANEL; ++i)
                    to[c * QN__PANEL + i] = block[i][c];
        }
}

/* Some queries of a block: their rows, the first position, and the panels of keys that they see. */
typedef struct piece {
    uint32_t row, rows, first, panel, panels, end; /* end: the first key that none sees */
} piece;

static piece piece_of(const task *t, uint32_t block, uint32_t row, uint32_t rows) {
    const qn__layer *l = &t->own;
    const uint32_t first = block + row, begin = qn__attention_sees(l, first).begin;
    const uint32_t end = qn__attention_sees(l, first + rows - 1).end;
    const uint32_t from = begin > t->keys.begin ? begin : t->keys.begin;
    const uint32_t to = end < t->keys.end ? end : t->keys.end, panel = from / QN__PANEL;
    const uint32_t panels = to > from ? (to + QN__PANEL - 1) / QN__PANEL - panel : 0;
    return (piece){row, rows, first, panel, panels, to};
}

/* Where the scores of a piece are in a tile, whose columns begin with panel `origin`. */
static float *scores_at(const task *t, float *tile, uint32_t origin, const piece *p) {
    return tile + ((size_t)(p->panel - origin) * t->s.rows + p->row) * QN__PANEL;
}

/* A tile of queries, or of errors, by keys or values. */
static void multiply(const task *t, const piece *p, const float *rows, const float *across,
                     float *to) {
    const size_t panel = (size_t)t->s.wide * QN__PANEL * QN__PANEL;
    const qn__cpu_chain chain = {.k = t->s.width, .a = t->steps, .b = t->blocks};
    t->pass->worker->kernels->matmul(p->rows, &chain, rows + p->row * QN__PANEL,
                                     across + p->panel * panel, panel, to,
                                     (size_t)t->s.rows * QN__PANEL, NULL, p->panels);
}

/* Its rows by the keys or values themselves, to a block. */
static void gather(const task *t, const piece *p, const float *tile, float *to) {
    const qn__cpu_chain chain = {.k = p->end - p->panel * QN__PANEL, .a = t->steps, .b = t->blocks};
    t->pass->worker->kernels->matmul(
        p->rows, &chain, tile, t->along + (size_t)p->panel * QN__PANEL * QN__PANEL, t->s.panel,
        to + p->row * QN__PANEL, (size_t)t->s.rows * QN__PANEL, NULL, t->s.wide);
}

static void hide(const task *t, const piece *p, float *s) {
    const uint32_t begin = p->panel * QN__PANEL, end = begin + p->panels * QN__PANEL;
    for (uint32_t i = 0; i < p->rows; ++i) {
        const qn__cover sees = qn__attention_sees(&t->own, p->first + i);
        float *row = s + (size_t)i * QN__PANEL;
        for (uint32_t u = begin; u < sees.begin && u < end; ++u)
            row[(u - begin) / QN__PANEL * t->s.rows * QN__PANEL + u % QN__PANEL] = QN__UNSEEN;
        for (uint32_t u = sees.end > begin ? sees.end : begin; u < end; ++u)
            row[(u - begin) / QN__PANEL * t->s.rows * QN__PANEL + u % QN__PANEL] = QN__UNSEEN;
    }
}

static qn__attention_query *queries_of(const task *t, uint32_t head) {
    const qn__layer *l = t->l->layer;
    return t->l->queries + ((size_t)t->item * l->heads + head) * positions_of(l);
}

static uint32_t heads_of_group(const qn__layer *l) { return l->heads / l->kv_heads; }

/* --------------------------------------------------------------------------------------- forward
 */

static void forward_piece(task *t, uint32_t head, const piece *p, float *share) {
    const qn__cpu_kernels *kernels = t->pass->worker->kernels;
    const size_t stride = (size_t)t->s.rows * QN__PANEL;
    qn__attention_query *query = queries_of(t, head) + p->first;
    float greatest[MOST_ROWS];
    int64_t units[MOST_ROWS];
    float *s = scores_at(t, t->weights, p->panel, p);
    multiply(t, p, t->query, t->across[0], s);
    hide(t, p, s);
    const uint32_t bits = kernels->attend_scores(p->rows, p->panels, stride, t->scale, s, greatest);
    kernels->attend_weights(p->rows, p->panels, stride, 1.0f, greatest, s, units);
    gather(t, p, s, t->output);
    t->odd |= bits > QN__USUAL_BITS;
    for (uint32_t i = 0; i < p->rows; ++i) {
        share[i] = qn__attention_share(units[i]);
        query[i] = (qn__attention_query){greatest[i], share[i]};
        t->odd |= !qn__cpu_is_usual(greatest[i], share[i]);
    }
}

/* Lanes after the last channel of a batch array are 0. */
static void clear_lanes(const task *t, uint32_t channels, size_t panel, uint32_t first,
                        uint32_t rows, float *to) {
    const uint32_t used = channels % QN__PANEL;
    for (uint32_t i = 0; used && i < rows; ++i)
        memset(to + channels / QN__PANEL * panel + row_of(t, first + i) + used, 0,
               (QN__PANEL - used) * sizeof *to);
}

/* Rows of the task's item have +0 in these channels; the last ones of a layer with the lanes that
 * follow. */
static void clear_rows(const task *t, qn__cover rows, uint32_t channel, uint32_t channels,
                       uint32_t all, size_t panel, float *to) {
    const uint32_t end = channel + channels < all ? channel + channels
                                                  : (all + QN__PANEL - 1) / QN__PANEL * QN__PANEL;
    for (uint32_t u = rows.begin; u < rows.end; ++u)
        for (uint32_t c = channel; c < end; ++c)
            to[c / QN__PANEL * panel + row_of(t, u) + c % QN__PANEL] = 0.0f;
}

/* Of some positions those below the length; *rest becomes the others. */
static qn__cover below_length(const task *t, qn__cover some, qn__cover *rest) {
    const uint32_t length = qn__layer_positions(&t->own);
    const uint32_t cut = length < some.begin ? some.begin : length < some.end ? length : some.end;
    *rest = (qn__cover){cut, some.end};
    return (qn__cover){some.begin, cut};
}

static void forward_head(task *t, uint32_t head) {
    const qn__cpu_layer *l = t->l;
    const uint32_t piece_rows = t->pass->worker->kernels->rows, channel = head * t->s.width;
    for (uint32_t first = t->queries.begin, rows; first < t->queries.end; first += rows) {
        float share[MOST_ROWS];
        const uint32_t left = t->queries.end - first;
        rows = left < t->s.rows ? left : t->s.rows;
        take_block(t, qn__cpu_input(t->pass, l), l->in_stride, channel, first, rows, t->query);
        for (uint32_t row = 0, some; row < rows; row += some) {
            some = rows - row < piece_rows ? rows - row : piece_rows;
            const piece p = piece_of(t, first, row, some);
            fetch_rows(t, l->output, l->out_stride, channel, first + row, some, t->queries.end);
            fetch_rows(t, qn__cpu_input(t->pass, l), l->in_stride, channel, first + rows + row,
                       some, t->queries.end);
            forward_piece(t, head, &p, share + row);
        }
        put_block(t, t->output, share, l->out_stride, channel, first, rows, l->output);
        if (head + 1 == l->layer->heads)
            clear_lanes(t, l->layer->to.channels, l->out_stride, first, rows, l->output);
    }
}

/* The same task for integers. */
static qn__cpu_attend integer_task(const task *t) {
    return (qn__cpu_attend){.pass = t->pass,
                            .l = t->l,
                            .own = &t->own,
                            .item = t->item,
                            .group = t->group,
                            .queries = t->queries,
                            .keys = t->keys,
                            .space = t->space};
}

static void integer_forward(task *t) {
    const qn__layer *l = t->l->layer;
    qn__cpu_attend own = integer_task(t);
    qn__cpu_integer_outputs(&own);
    t->largest = own.largest;
    t->odd = own.odd;
    if (t->group + 1 == l->kv_heads)
        clear_lanes(t, l->to.channels, t->l->out_stride, t->queries.begin,
                    t->queries.end - t->queries.begin, t->l->output);
}

static void forward_task(task *t) {
    const qn__layer *l = &t->own;
    const uint32_t key = qn__attention_keys(l, t->group), share = heads_of_group(l);
    qn__cover rest;
    t->queries = below_length(t, t->queries, &rest);
    clear_rows(t, rest, t->group * share * t->s.width, share * t->s.width, l->to.channels,
               t->l->out_stride, t->l->output);
    if (t->queries.begin == t->queries.end)
        return;
    if (t->bits) {
        integer_forward(t);
        return;
    }
    t->keys = (qn__cover){qn__attention_sees(l, t->queries.begin).begin,
                          qn__attention_sees(l, t->queries.end - 1).end};
    take_keys(t, t->keys, key, t->across[0], NULL);
    take_keys(t, t->keys, key + l->kv_heads * t->s.width, NULL, t->along);
    for (uint32_t p = 0; p < t->s.wide; ++p)
        t->odd |= t->pass->worker->kernels->absmax(
                      (size_t)(t->keys.end - t->keys.begin) * QN__PANEL,
                      t->along + p * t->s.panel + (size_t)t->keys.begin * QN__PANEL) >= 0x7f800000u;
    for (uint32_t h = t->group * share; h < (t->group + 1) * share; ++h)
        forward_head(t, h);
}

/* -------------------------------------------------------------------------------------- backward
 */

/* Rows of a block of queries: what its forward pass kept, g and D of 25.23. */
typedef struct kept {
    float greatest[MOST_ROWS], share[MOST_ROWS], mean[MOST_ROWS];
} kept;

static void take_errors(task *t, uint32_t head, uint32_t first, uint32_t rows, kept *k) {
    const qn__cpu_layer *l = t->l;
    const qn__attention_query *query = queries_of(t, head) + first;
    const uint32_t channel = head * t->s.width;
    const qn__cpu_kernels *kernels = t->pass->worker->kernels;
    const size_t stride = (size_t)t->s.rows * QN__PANEL;
    for (uint32_t i = 0; i < rows; ++i) {
        k->greatest[i] = query[i].greatest;
        k->share[i] = query[i].share;
        t->odd |= !qn__cpu_is_usual(query[i].greatest, query[i].share);
    }
    take_block(t, l->input, l->in_stride, channel, first, rows, t->query);
    take_block(t, l->error, l->out_stride, channel, first, rows, t->error);
    take_block(t, l->output, l->out_stride, channel, first, rows, t->output);
    kernels->attend_scale(rows, t->s.wide, stride, k->share, t->error);
    kernels->attend_means(rows, t->s.width, stride, t->error, t->output, k->mean);
}

/* What is written of a piece, and read of the one so many rows after it. */
static void fetch_errors(const task *t, uint32_t head, const piece *p, uint32_t after,
                         uint32_t end) {
    const qn__cpu_layer *l = t->l;
    const uint32_t channel = head * t->s.width, next = p->first + after;
    if (t->queries.begin < t->queries.end)
        fetch_rows(t, qn__cpu_passes(l), l->below->out_stride, channel, p->first, p->rows, end);
    fetch_rows(t, l->input, l->in_stride, channel, next, p->rows, end);
    fetch_rows(t, l->error, l->out_stride, channel, next, p->rows, end);
    fetch_rows(t, l->output, l->out_stride, channel, next, p->rows, end);
}

static void backward_piece(task *t, const piece *p, uint32_t origin, const kept *k) {
    const qn__cpu_kernels *kernels = t->pass->worker->kernels;
    const size_t stride = (size_t)t->s.rows * QN__PANEL;
    float *s = scores_at(t, t->weights, origin, p), *x = scores_at(t, t->slopes, origin, p);
    if (p->panels == 0)
        return;
    multiply(t, p, t->query, t->across[0], s);
    hide(t, p, s);
    kernels->attend_weights(p->rows, p->panels, stride, t->scale, k->greatest + p->row, s, NULL);
    multiply(t, p, t->error, t->across[1], x);
    t->odd |=
        kernels->attend_errors(p->rows, p->panels, stride, k->mean + p->row, s, x) >= 0x7f800000u;
    if (t->queries.begin < t->queries.end)
        gather(t, p, x, t->output);
}

/* A block's part of the errors of keys and values: panel by panel of them, of the rows that see it.
 */
static void add_sums(const task *t, uint32_t first, uint32_t rows, uint32_t origin, uint32_t end) {
    const qn__layer *l = &t->own;
    const size_t stride = (size_t)t->s.rows * QN__PANEL;
    for (uint32_t panel = origin; panel < end; ++panel) {
        const uint32_t last = panel * QN__PANEL + QN__PANEL - 1, all = qn__layer_positions(l);
        const uint32_t from = qn__attention_seen(l, panel * QN__PANEL).begin;
        const uint32_t to = qn__attention_seen(l, last < all ? last : all - 1).end;
        const uint32_t begin = from > first ? from - first : 0;
        const uint32_t stop = to < first + rows ? to - first : rows;
        if (to <= first || begin >= stop)
            continue;
        const qn__cpu_span span = {.items = stop - begin, .columns = 1, .rows = 1};
        const size_t at = ((size_t)(panel - origin) * t->s.rows + begin) * QN__PANEL;
        const size_t sum = (size_t)panel * t->s.wide * QN__PANEL * QN__PANEL;
        const float *const tile[2] = {t->slopes, t->weights};
        const float *const block[2] = {t->query, t->error};
        for (int i = 0; i < 2; ++i)
            t->pass->worker->kernels->outer(
                &span, tile[i] + at, NULL, block[i] + (size_t)begin * QN__PANEL, stride,
                t->sums[i] + sum, QN__PARTIAL_RAW, t->sums[i] + sum, t->s.wide);
    }
}

/* The errors that queries of a head pass, from `all` of them. */
static void backward_head(task *t, uint32_t head, qn__cover all, int sums) {
    const qn__cpu_layer *l = t->l;
    const uint32_t piece_rows = t->pass->worker->kernels->rows;
    for (uint32_t first = all.begin, rows; first < all.end; first += rows) {
        kept k;
        rows = all.end - first < t->s.rows ? all.end - first : t->s.rows;
        const piece whole = piece_of(t, first, 0, rows);
        if (whole.panels == 0)
            continue;
        take_errors(t, head, first, rows, &k);
        for (uint32_t row = 0, some; row < rows; row += some) {
            some = rows - row < piece_rows ? rows - row : piece_rows;
            const piece p = piece_of(t, first, row, some);
            fetch_errors(t, head, &p, rows, all.end);
            backward_piece(t, &p, whole.panel, &k);
        }
        if (t->queries.begin < t->queries.end)
            put_block(t, t->output, t->scales, l->below->out_stride, head * t->s.width, first, rows,
                      qn__cpu_passes(l));
        if (sums)
            add_sums(t, first, rows, whole.panel, whole.panel + whole.panels);
    }
}

/* The errors of the task's keys (0) or values (1). */
static void put_sums(task *t, int which) {
    const qn__cpu_layer *l = t->l;
    const uint32_t channel =
        qn__attention_keys(l->layer, t->group) + (which ? l->layer->kv_heads * t->s.width : 0);
    float *to = qn__cpu_passes(l), factor[QN__PANEL];
    for (uint32_t i = 0; i < QN__PANEL; ++i)
        factor[i] = which ? 1.0f : t->scale;
    for (uint32_t u = t->keys.begin; u < t->keys.end; u += QN__PANEL) {
        const size_t block = (size_t)QN__PANEL * QN__PANEL;
        float *x = t->sums[which] + u / QN__PANEL * t->s.wide * block;
        const uint32_t rows = t->keys.end - u < QN__PANEL ? t->keys.end - u : QN__PANEL;
        note_largest(
            t, t->pass->worker->kernels->attend_scale(QN__PANEL, t->s.wide, block, factor, x));
        fetch_rows(t, to, l->below->out_stride, channel, u + QN__PANEL, QN__PANEL, t->keys.end);
        for (uint32_t p = 0; p < t->s.wide; ++p)
            for (uint32_t i = 0; i < rows; ++i)
                qn__cpu_put_channels(x + p * block + (size_t)i * QN__PANEL, l->below->out_stride,
                                     channel + p * QN__PANEL, qn__cpu_panel_channels(t->s.width, p),
                                     to + row_of(t, u + i));
    }
}

/* Takes the positions from the length on out of the task: they pass errors of +0. 0: none is left.
 */
static int cut_to_length(task *t, int sums) {
    const qn__layer *l = &t->own;
    const uint32_t key = qn__attention_keys(l, t->group), share = heads_of_group(l);
    const uint32_t width = t->s.width, all = l->from.channels;
    const size_t panel = t->l->below->out_stride;
    const int queries = t->queries.begin < t->queries.end;
    float *to = qn__cpu_passes(t->l);
    qn__cover rest;
    t->queries = below_length(t, t->queries, &rest);
    clear_rows(t, rest, t->group * share * width, share * width, all, panel, to);
    t->keys = below_length(t, t->keys, &rest);
    if (sums) {
        clear_rows(t, rest, key, width, all, panel, to);
        clear_rows(t, rest, key + l->kv_heads * width, width, all, panel, to);
    }
    return t->keys.begin < t->keys.end && (!queries || t->queries.begin < t->queries.end);
}

static void integer_backward(task *t, int sums) {
    qn__cpu_attend own = integer_task(t);
    qn__cpu_integer_errors(&own, sums);
    t->largest = own.largest;
    t->odd = own.odd;
}

static void float_backward(task *t, int sums) {
    const qn__layer *l = &t->own;
    const uint32_t key = qn__attention_keys(l, t->group), share = heads_of_group(l);
    const uint32_t value = key + l->kv_heads * t->s.width;
    const qn__cover queries = t->queries.begin < t->queries.end
                                  ? t->queries
                                  : (qn__cover){qn__attention_seen(l, t->keys.begin).begin,
                                                qn__attention_seen(l, t->keys.end - 1).end};
    const qn__cover keys = {t->keys.begin / QN__PANEL * QN__PANEL, t->keys.end};
    take_keys(t, keys, key, t->across[0], t->along);
    take_keys(t, keys, value, t->across[1], NULL);
    for (int i = 0; i < 2 && sums; ++i)
        memset(t->sums[i] + (size_t)keys.begin * t->s.wide * QN__PANEL, 0,
               (size_t)((keys.end - keys.begin + QN__PANEL - 1) / QN__PANEL) * t->s.wide *
                   QN__PANEL * QN__PANEL * sizeof(float));
    for (uint32_t h = t->group * share; h < (t->group + 1) * share; ++h)
        backward_head(t, h, queries, sums);
    for (int i = 0; i < 2 && sums; ++i)
        put_sums(t, i);
}

static void backward_task(task *t, int sums) {
    const qn__layer *l = t->l->layer;
    if (!cut_to_length(t, sums))
        return;
    if (t->bits)
        integer_backward(t, sums);
    else
        float_backward(t, sums);
    if (sums && t->group + 1 == l->kv_heads)
        clear_lanes(t, l->from.channels, t->l->below->out_stride, t->keys.begin,
                    t->keys.end - t->keys.begin, qn__cpu_passes(t->l));
}

/* ----------------------------------------------------------------------------------------- tasks
 */

/* How many parts the queries, or the keys, of a group are divided into. */
static uint32_t parts_of(const qn__cpu_pass *pass, const qn__cpu_layer *l) {
    const uint32_t tasks = pass->batch->items * l->layer->kv_heads;
    const uint32_t enough = (TASKS * (uint32_t)pass->worker->threads + tasks - 1) / tasks;
    const uint32_t most = l->in_pixels / LEAST_QUERIES;
    return enough < most ? enough : most > 0 ? most : 1;
}

/* Part `i`; keys are divided between panels. */
static qn__cover part_of(const qn__cpu_layer *l, uint32_t i, uint32_t parts) {
    const uint32_t all = l->in_pixels, panels = (all + QN__PANEL - 1) / QN__PANEL;
    const uint32_t end = (uint32_t)((uint64_t)panels * (i + 1) / parts) * QN__PANEL;
    return (qn__cover){(uint32_t)((uint64_t)panels * i / parts) * QN__PANEL, end < all ? end : all};
}

/* Task `index`: the items of a group follow one another, because their rows lie side by side. */
static task task_of(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t index) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    task t = {.pass = pass,
              .l = l,
              .own = qn__cpu_layer_of_item(w, l, index % pass->batch->items),
              .item = index % pass->batch->items,
              .group = index / pass->batch->items,
              .scale = qn__attention_scale(l->layer),
              .s = sizes_of(l->layer)};
    for (int i = 0; i < MOST_ROWS; ++i)
        t.scales[i] = t.scale;
    if (t.item + 1 < pass->batch->items && t.s.keys <= MOST_AHEAD)
        t.next = QN__PANEL;
    t.bits = qn__program_bits(w->program, l->layer);
    t.space = w->core[thread].attention;
    if (!t.bits)
        carve_task(&t, t.space);
    return t;
}

/* Notes that a group has to be computed again. */
static void note_odd(const task *t) {
    if (t->odd)
        atomic_store_explicit(&t->l->odd[t->item * t->l->layer->kv_heads + t->group], 1,
                              memory_order_relaxed);
}

/* An item's place in the batch arrays. */
static qn__attended order_of(const qn__cpu_pass *pass, size_t panel) {
    return (qn__attended){panel, (size_t)pass->batch->items * QN__PANEL};
}

static void repeat_group(const qn__cpu_pass *pass, const qn__cpu_layer *l, uint32_t item,
                         uint32_t group, int back, float *space) {
    const int bits = qn__program_bits(pass->worker->program, l->layer);
    const qn__layer of_item = qn__cpu_layer_of_item(pass->worker, l, item), *own = &of_item;
    const size_t at = (size_t)item * QN__PANEL;
    const qn__attended in = order_of(pass, l->in_stride), out = order_of(pass, l->out_stride);
    const uint32_t share = heads_of_group(own);
    if (back) {
        const qn__attention_errors errors = {.a = l->input + at,
                                             .z = l->output + at,
                                             .delta = l->error + at,
                                             .e = qn__cpu_passes(l) + at,
                                             .in = in,
                                             .out = out,
                                             .to = order_of(pass, l->below->out_stride),
                                             .space = space};
        qn__attention_group_errors(own, bits, group, &errors);
        return;
    }
    for (uint32_t h = group * share; h < (group + 1) * share; ++h)
        qn__attention_head(own, bits, h, qn__cpu_input(pass, l) + at, in, l->output + at, out,
                           l->queries + ((size_t)item * own->heads + h) * positions_of(l->layer));
}

/* After all tasks: computes the groups again that had numbers which are not finite. */
static void repeat_odd(const qn__cpu_pass *pass, int thread, const qn__cpu_layer *l, int back) {
    qn__worker *w = pass->worker;
    const uint32_t groups = l->layer->kv_heads, all = pass->batch->items * groups;
    w->core[thread].waited += qn__pool_barrier(w->pool, thread);
    for (uint32_t i = (uint32_t)thread; i < all; i += (uint32_t)w->threads)
        if (atomic_exchange_explicit(&l->odd[i], 0, memory_order_relaxed))
            repeat_group(pass, l, i / groups, i % groups, back, w->core[thread].attention);
}

static void forward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    if (pass->extension) {
        qn__cpu_cache_forward(pass, thread, layer, phase);
        return;
    }
    const uint32_t parts = parts_of(pass, l);
    const qn__cpu_grid grid = {pass->batch->items * l->layer->kv_heads, parts, 1};
    for (uint32_t index, part; qn__cpu_take(w, thread, phase, grid, &index, &part);) {
        task t = task_of(pass, thread, layer, index);
        t.queries = part_of(l, parts - 1 - part, parts); /* long ones first */
        forward_task(&t);
        note_odd(&t);
        qn__cpu_note_absmax(pass, thread, layer, t.odd ? 0x7f800000u : t.largest);
    }
    repeat_odd(pass, thread, l, 0);
    if (!l->noted)
        return;
    w->core[thread].waited += qn__pool_barrier(w->pool, thread);
    for (uint32_t p = (uint32_t)thread; p < l->out_panels; p += (uint32_t)w->threads)
        qn__cpu_note_outputs(pass, layer, 0, l->rows, p, 1);
}

/* Errors of queries need the products of scores, slopes and keys, those of keys and values need
 * four. Together these are five, but then a group is not divided. */
static int divides(const qn__cpu_pass *pass, const qn__cpu_layer *l) {
    const uint64_t tasks = (uint64_t)pass->batch->items * l->layer->kv_heads;
    const uint64_t threads = (uint64_t)pass->worker->threads;
    return parts_of(pass, l) > 1 && 7 * tasks < 5 * threads * ((tasks + threads - 1) / threads);
}

static void backward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const uint32_t below = (uint32_t)(l->below - w->layer);
    const uint32_t parts = divides(pass, l) ? parts_of(pass, l) : 0;
    const qn__cover all = {0, l->in_pixels};
    const qn__cpu_grid grid = {pass->batch->items * l->layer->kv_heads, parts ? 2 * parts : 1, 1};
    for (uint32_t index, part; qn__cpu_take(w, thread, phase, grid, &index, &part);) {
        task t = task_of(pass, thread, layer, index);
        const int sums = part >= parts;
        t.queries = t.keys = all;
        if (parts && sums) {
            t.queries = (qn__cover){0, 0};
            t.keys = part_of(l, part - parts, parts);
        } else if (parts) {
            t.queries = part_of(l, part, parts);
        }
        backward_task(&t, sums);
        note_odd(&t);
        if (qn__cpu_norm_passes_all(w, l))
            qn__cpu_note_error(&w->core[thread], below, t.odd ? 0x7f800000u : t.largest);
    }
    repeat_odd(pass, thread, l, 1);
    if (qn__cpu_norm_passes_all(w, l))
        return;
    w->core[thread].waited += qn__pool_barrier(w->pool, thread);
    for (uint32_t p = (uint32_t)thread; p < l->in_panels; p += (uint32_t)w->threads) {
        qn__cpu_after_errors(pass, &w->core[thread], layer, p, 0, l->in_rows);
        if (w->bits)
            qn__cpu_note_passed(pass, layer, 0, l->in_rows, p, 1);
    }
}

static void carve(qn__cpu_arena *a, const qn__worker *w, qn__cpu_layer *l) {
    const size_t groups = w->capacity * l->layer->kv_heads;
    if (w->program->sequences) {
        qn__cpu_cache_carve(a, w, l);
        return;
    }
    l->queries = qn__cpu_carve(a, w->capacity * l->layer->heads,
                               positions_of(l->layer) * sizeof *l->queries);
    l->odd = qn__cpu_carve(a, groups, sizeof *l->odd);
}

const qn__cpu_kind qn__cpu_attention = {
    .forward = forward, .backward = backward, .carve = carve, .reads_input = 1, .reads_output = 1};
