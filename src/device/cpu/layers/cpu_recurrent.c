/* recurrent: docs/exactness.md 25.34 to 25.36. A task has some items, and goes through all their
 * positions: states of one position of all these items are a product of the states before by the
 * weights. The arrays are as those of outputs:
 *
 *     gates    [gate][panel][row][16]   of four gates; gru has q in the place of the fourth.
 *                                       Backward the errors of each position replace them
 *     states   [panel][row][16]         before activation and dropout
 *     cells    [panel][row][16]         of lstm
 *
 * A row is a position of an item, items fastest. So the states before a position are the rows
 * before, and the gradient of the weights is a sum over rows of both arrays. */
#include "device/cpu/worker/cpu_gradient_sums.h"
#include "device/cpu/worker/cpu_heads.h"
#include "device/cpu/worker/cpu_kinds.h"
#include "layer/recurrent.h"
#include <string.h>

enum { GATES = 4, BLOCK = QN__PANEL * QN__PANEL };

/* Blocks of a chain of errors. */
static uint32_t back_blocks(const qn__cpu_layer *l) {
    return qn__recurrent_gates(l->layer) * l->out_panels;
}

/* Memory of a core: inputs of all gates, errors that come back and what is carried, distances. */
size_t qn__cpu_recurrent_space(const qn__worker *w) {
    size_t most = 0;
    for (uint32_t i = 0; i < w->program->layers; ++i) {
        const qn__cpu_layer *l = &w->layer[i];
        const size_t rows = (GATES + 2 * (size_t)l->out_panels) * QN__STATE_ROWS * QN__PANEL;
        const size_t all = l->layer->kind != QN__LAYER_RECURRENT ? 0
                           : w->program->sequences
                               ? qn__cpu_states_space(l)
                               : rows + 2 * back_blocks(l) * (sizeof(size_t) / sizeof(float));
        most = all > most ? all : most;
    }
    return most;
}

/* Some items, and a core's memory for them. */
typedef struct task {
    const qn__cpu_pass *pass;
    const qn__cpu_layer *l;
    int thread;
    uint32_t layer, first, rows;
    int lstm;
    float *input;            /* [gate][row][16]: of one panel, where it is not aligned */
    float *returned, *carry; /* [panel][row][16] */
    size_t *a, *b;           /* distances of blocks */
} task;

static uint32_t rows_of_task(const qn__cpu_pass *pass) {
    const uint32_t threads = (uint32_t)pass->worker->threads;
    const uint32_t rows = (pass->batch->items + threads - 1) / threads;
    return rows < QN__STATE_ROWS ? rows : QN__STATE_ROWS;
}

static int take(task *t, uint32_t phase) {
    const uint32_t most = rows_of_task(t->pass), items = t->pass->batch->items;
    const qn__cpu_grid grid = {(items + most - 1) / most, 1, 1};
    uint32_t group, row;
    if (!qn__cpu_take(t->pass->worker, t->thread, phase, grid, &group, &row))
        return 0;
    t->first = group * most;
    t->rows = items - t->first < most ? items - t->first : most;
    return 1;
}

static task task_of(const qn__cpu_pass *pass, int thread, uint32_t layer) {
    const qn__cpu_layer *l = &pass->worker->layer[layer];
    float *space = pass->worker->core[thread].attention;
    task t = {.pass = pass,
              .l = l,
              .thread = thread,
              .layer = layer,
              .lstm = l->layer->cell == QN__CELL_LSTM,
              .input = space};
    const size_t array = (size_t)l->out_panels * QN__STATE_ROWS * QN__PANEL;
    t.returned = t.input + (size_t)GATES * QN__STATE_ROWS * QN__PANEL;
    t.carry = t.returned + array;
    t.a = (size_t *)(void *)(t.carry + array);
    t.b = t.a + back_blocks(l);
    for (uint32_t i = 0; i < back_blocks(l); ++i)
        t.b[i] = (size_t)i * BLOCK;
    return t;
}

static uint32_t positions_of(const task *t) { return t->l->out_pixels; }

/* Position number `step` of all that the array has. */
static uint32_t position_at(const task *t, uint32_t step) {
    return t->l->layer->reverse ? positions_of(t) - 1 - step : step;
}

/* The first value of a panel for the task's items at a position. */
static size_t row_at(const task *t, uint32_t position, uint32_t panel, size_t stride) {
    return panel * stride + ((size_t)position * t->pass->batch->items + t->first) * QN__PANEL;
}

static float *gate_at(const task *t, uint32_t gate, uint32_t position, uint32_t panel) {
    const qn__cpu_layer *l = t->l;
    return l->recurrent.gates + row_at(t, position, gate * l->out_panels + panel, l->out_stride);
}

/* The array of a gate's part of the products: of gru the last one is q. */
static uint32_t product_of(const task *t, uint32_t gate) {
    return !t->lstm && gate == 2 ? 3 : gate;
}

static void find_gates(const task *t, uint32_t position, uint32_t panel, float *gate[GATES]) {
    for (uint32_t g = 0; g < GATES; ++g)
        gate[g] = gate_at(t, g, position, panel);
}

static uint32_t length_of(const task *t, uint32_t row) {
    const qn__layer own = qn__cpu_layer_of_item(t->pass->worker, t->l, t->first + row);
    return qn__layer_positions(&own);
}

/* ---------------------------------------------------------------------------------------- forward
 */

/* What the layer reads of a panel of each gate. */
static void find_inputs(const task *t, uint32_t position, uint32_t panel, const float *x[GATES]) {
    const qn__cpu_layer *l = t->l;
    const uint32_t width = l->layer->to.channels, gates = qn__recurrent_gates(l->layer);
    const float *from = qn__cpu_input(t->pass, l) + row_at(t, position, 0, l->in_stride);
    for (uint32_t g = 0; g < gates; ++g) {
        const uint32_t channel = g * width + panel * QN__PANEL;
        const uint32_t count = qn__cpu_panel_channels(width, panel);
        float *to = t->input + (size_t)g * QN__STATE_ROWS * QN__PANEL;
        x[g] = to;
        if (width % QN__PANEL == 0) {
            x[g] = from + channel / QN__PANEL * l->in_stride;
            continue;
        }
        for (uint32_t r = 0; r < t->rows; ++r)
            qn__cpu_take_channels(from + (size_t)r * QN__PANEL, l->in_stride, channel, count,
                                  to + (size_t)r * QN__PANEL);
    }
}

/* Products of no state: +0, or the biases. */
static void begin_products(const task *t, uint32_t position, uint32_t row, uint32_t rows) {
    const qn__cpu_layer *l = t->l;
    for (uint32_t p = 0; p < l->out_panels; ++p)
        for (uint32_t g = 0; g < GATES; ++g) {
            float *to = gate_at(t, g, position, p) + (size_t)row * QN__PANEL;
            memset(to, 0, (size_t)rows * QN__PANEL * sizeof *to);
            for (uint32_t r = 0; !t->lstm && g == 3 && r < rows; ++r)
                memcpy(to + (size_t)r * QN__PANEL, l->bias + p * QN__PANEL, QN__PANEL * sizeof *to);
        }
}

/* The products of the states at `before`, or of none, for each gate. */
static void multiply(const task *t, uint32_t step) {
    const qn__cpu_layer *l = t->l;
    const uint32_t width = l->layer->to.channels, position = position_at(t, step);
    const size_t panel = (size_t)qn__cpu_blocks(l) * BLOCK;
    if (step == 0) {
        begin_products(t, position, 0, t->rows);
        return;
    }
    for (uint32_t p = 0; p < l->out_panels; ++p)
        t->a[p] = p * l->out_stride;
    const qn__cpu_chain chain = {.k = width, .a = t->a, .b = t->b};
    const float *states =
        l->recurrent.states + row_at(t, position_at(t, step - 1), 0, l->out_stride);
    for (uint32_t g = 0; g < qn__recurrent_gates(l->layer); ++g)
        t->pass->worker->kernels->matmul(t->rows, &chain, states,
                                         l->weights + (size_t)g * width * QN__PANEL, panel,
                                         gate_at(t, product_of(t, g), position, 0), l->out_stride,
                                         product_of(t, g) != g ? l->bias : NULL, l->out_panels);
    for (uint32_t r = 0; l->layer->by_length && l->layer->reverse && r < t->rows; ++r)
        if (position + 1 >= length_of(t, r))
            begin_products(t, position, r, 1);
}

/* Items that end before this position have +0. */
static void clear_rest(const task *t, uint32_t position) {
    const qn__cpu_layer *l = t->l;
    for (uint32_t r = 0; l->layer->by_length && r < t->rows; ++r)
        for (uint32_t p = 0; position >= length_of(t, r) && p < l->out_panels; ++p) {
            const size_t at = row_at(t, position, p, l->out_stride) + (size_t)r * QN__PANEL;
            memset(l->recurrent.states + at, 0, QN__PANEL * sizeof(float));
            if (t->lstm)
                memset(l->recurrent.cells + at, 0, QN__PANEL * sizeof(float));
        }
}

/* An array of rows at the position before, or zeros. */
static const float *before_of(const task *t, const float *array, uint32_t step, uint32_t panel) {
    return step == 0 ? t->pass->worker->nothing
                     : array + row_at(t, position_at(t, step - 1), panel, t->l->out_stride);
}

static void forward_step(const task *t, uint32_t step) {
    const qn__cpu_kernels *k = t->pass->worker->kernels;
    const qn__cpu_layer *l = t->l;
    const uint32_t position = position_at(t, step);
    multiply(t, step);
    for (uint32_t p = 0; p < l->out_panels; ++p) {
        const size_t at = row_at(t, position, p, l->out_stride);
        const float *x[GATES];
        float *gate[GATES];
        find_inputs(t, position, p, x);
        find_gates(t, position, p, gate);
        if (t->lstm)
            k->lstm(t->rows, x, gate, before_of(t, l->recurrent.cells, step, p),
                    l->recurrent.cells + at, l->recurrent.states + at);
        else
            k->gru(t->rows, x, gate, before_of(t, l->recurrent.states, step, p),
                   l->recurrent.states + at);
    }
    clear_rest(t, position);
    for (uint32_t p = 0; p < l->out_panels; ++p) {
        const size_t at = row_at(t, position, p, l->out_stride);
        memcpy(l->output + at, l->recurrent.states + at,
               (size_t)t->rows * QN__PANEL * sizeof(float));
        qn__cpu_after_product(t->pass, t->thread, t->layer, p,
                              position * t->pass->batch->items + t->first, t->rows, l->output + at);
    }
}

static void forward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    if (pass->extension) {
        qn__cpu_states_forward(pass, thread, layer, phase);
        return;
    }
    for (task t = task_of(pass, thread, layer); take(&t, phase);)
        for (uint32_t step = 0; step < positions_of(&t); ++step)
            forward_step(&t, step);
}

/* --------------------------------------------------------------------------------------- backward
 */

/* A row of 16 channels of states for each channel of a gate: [panel of states][gate][panel][16]. */
static void transpose_panel(const qn__cpu_layer *l, uint32_t panel) {
    const uint32_t width = l->layer->to.channels, gates = qn__recurrent_gates(l->layer);
    const uint32_t states = qn__cpu_panel_channels(width, panel);
    float *to = l->recurrent.back + (size_t)panel * back_blocks(l) * BLOCK;
    memset(to, 0, (size_t)back_blocks(l) * BLOCK * sizeof *to);
    for (uint32_t g = 0; g < gates; ++g)
        for (uint32_t p = 0; p < l->out_panels; ++p, to += BLOCK) {
            const float *from = l->weights + ((size_t)p * qn__cpu_blocks(l) * QN__PANEL +
                                              g * width + (size_t)panel * QN__PANEL) *
                                                 QN__PANEL;
            for (uint32_t n = 0; n < qn__cpu_panel_channels(width, p); ++n)
                for (uint32_t k = 0; k < states; ++k)
                    to[n * QN__PANEL + k] = from[k * QN__PANEL + n];
        }
}

/* What the errors of the position after give to the states of this one. */
static void return_errors(const task *t, uint32_t step) {
    const qn__cpu_layer *l = t->l;
    const uint32_t gates = qn__recurrent_gates(l->layer), panels = l->out_panels;
    const size_t rows = (size_t)QN__STATE_ROWS * QN__PANEL;
    if (step + 1 == positions_of(t)) {
        memset(t->returned, 0, panels * rows * sizeof *t->returned);
        memset(t->carry, 0, panels * rows * sizeof *t->carry);
        return;
    }
    for (uint32_t g = 0; g < gates; ++g)
        for (uint32_t p = 0; p < panels; ++p)
            t->a[g * panels + p] = (product_of(t, g) * panels + p) * l->out_stride;
    const qn__cpu_chain chain = {.k = back_blocks(l) * QN__PANEL, .a = t->a, .b = t->b};
    t->pass->worker->kernels->matmul(t->rows, &chain, gate_at(t, 0, position_at(t, step + 1), 0),
                                     l->recurrent.back, (size_t)back_blocks(l) * BLOCK, t->returned,
                                     rows, NULL, panels);
}

/* Errors are +0 beyond the channels, which are factors of chains, and beyond the end of an item. */
static void clear_errors(const task *t, uint32_t position, uint32_t panel) {
    const qn__cpu_layer *l = t->l;
    const uint32_t used = qn__cpu_panel_channels(l->layer->to.channels, panel);
    for (uint32_t r = 0; r < t->rows && (used < QN__PANEL || l->layer->by_length); ++r) {
        const uint32_t keep = position < length_of(t, r) ? used : 0;
        float *carry = t->carry + ((size_t)panel * QN__STATE_ROWS + r) * QN__PANEL;
        for (uint32_t g = 0; g < GATES; ++g)
            memset(gate_at(t, g, position, panel) + (size_t)r * QN__PANEL + keep, 0,
                   (QN__PANEL - keep) * sizeof(float));
        memset(carry + keep, 0, (QN__PANEL - keep) * sizeof *carry);
    }
}

static void pass_panel(const task *t, uint32_t position, uint32_t panel) {
    const qn__cpu_layer *l = t->l;
    const uint32_t width = l->layer->to.channels, gates = qn__recurrent_gates(l->layer);
    const size_t stride = l->below->out_stride;
    float *to = qn__cpu_passes(l) + row_at(t, position, 0, stride);
    for (uint32_t g = 0; g < gates; ++g) {
        const uint32_t channel = g * width + panel * QN__PANEL;
        const float *from = gate_at(t, g, position, panel);
        for (uint32_t r = 0; r < t->rows; ++r)
            qn__cpu_put_channels(from + (size_t)r * QN__PANEL, stride, channel,
                                 qn__cpu_panel_channels(width, panel), to + (size_t)r * QN__PANEL);
    }
}

/* Columns after the last channel: the convolution below multiplies them by weights, which stay +0
 * if they do. */
static void clear_columns(const task *t, uint32_t position) {
    const qn__cpu_layer *l = t->l;
    const uint32_t used = l->layer->from.channels % QN__PANEL, panel = l->in_panels - 1;
    float *to = qn__cpu_passes(l) + row_at(t, position, panel, l->below->out_stride);
    for (uint32_t r = 0; used && r < t->rows; ++r)
        memset(to + (size_t)r * QN__PANEL + used, 0, (QN__PANEL - used) * sizeof *to);
}

static void backward_step(const task *t, uint32_t step, int passes) {
    const qn__worker *w = t->pass->worker;
    const qn__cpu_layer *l = t->l;
    const uint32_t position = position_at(t, step);
    return_errors(t, step);
    for (uint32_t p = 0; p < l->out_panels; ++p) {
        const size_t at = row_at(t, position, p, l->out_stride);
        const size_t own = (size_t)p * QN__STATE_ROWS * QN__PANEL;
        float *gate[GATES];
        find_gates(t, position, p, gate);
        if (t->lstm)
            w->kernels->lstm_errors(t->rows, t->returned + own, l->error + at, gate,
                                    before_of(t, l->recurrent.cells, step, p),
                                    l->recurrent.cells + at, t->carry + own);
        else
            w->kernels->gru_errors(t->rows, t->returned + own, l->error + at, gate,
                                   before_of(t, l->recurrent.states, step, p), t->carry + own);
        clear_errors(t, position, p);
        if (passes)
            pass_panel(t, position, p);
    }
    if (passes)
        clear_columns(t, position);
    for (uint32_t p = 0; passes && p < l->in_panels; ++p)
        qn__cpu_after_errors(t->pass, &w->core[t->thread], t->layer, p,
                             position * t->pass->batch->items + t->first, t->rows);
}

static void backward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const int passes = qn__cpu_passes_errors(w, l);
    for (uint32_t p = (uint32_t)thread; p < l->out_panels; p += (uint32_t)w->threads)
        transpose_panel(l, p);
    w->core[thread].waited += qn__pool_barrier(w->pool, thread);
    for (task t = task_of(pass, thread, layer); take(&t, phase);)
        for (uint32_t step = positions_of(&t); step-- > 0;)
            backward_step(&t, step, passes);
}

/* --------------------------------------------------------------------------------------- gradient
 */

/* Weights of a gate by channels of states: rows `from` to before `end` of a block. */
typedef struct piece {
    uint32_t gate, state, from, end; /* state: the first channel */
} piece;

static piece piece_of(const qn__cpu_layer *l, uint32_t block, uint32_t from) {
    const uint32_t width = l->layer->to.channels, at = block * QN__PANEL + from;
    const uint32_t state = at % width, panel = (state / QN__PANEL + 1) * QN__PANEL;
    const uint32_t left = (panel < width ? panel : width) - state;
    const uint32_t rows = qn__cpu_rows_of(l, block) - from;
    return (piece){at / width, state, from, from + (left < rows ? left : rows)};
}

/* Adds the partials of all grains. Returns 1 where one is out of range. */
static int sum_piece(const qn__cpu_pass *pass, const task *t, const qn__cpu_walk_task *own,
                     const piece *p, qn__cpu_sums *s) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = t->l;
    const uint32_t all = pass->batch->items, grain = w->program->grain;
    const size_t apart = (size_t)all * QN__PANEL;
    const uint32_t lane = p->state % QN__PANEL, back = l->layer->reverse != 0;
    const float *a = l->recurrent.states + p->state / QN__PANEL * l->out_stride + back * apart;
    const float *d = gate_at(t, product_of(t, p->gate), 0, own->out) + (back ? 0 : apart);
    int bad = 0;
    for (uint32_t item = 0; item < all; item += grain) {
        const uint32_t items = all - item < grain ? all - item : grain;
        const qn__cpu_span span = {.items = items,
                                   .columns = positions_of(t) - 1,
                                   .rows = 1,
                                   .a_column = apart,
                                   .d_column = apart};
        w->kernels->outer(&span, a + (size_t)item * QN__PANEL, NULL, d + (size_t)item * QN__PANEL,
                          l->out_stride, NULL, QN__PARTIAL_RAW, s->partial, own->panels);
        for (uint32_t o = 0; o < own->panels; ++o)
            bad |= qn__cpu_add_partials(w, 1, (size_t)(p->end - p->from) * QN__PANEL,
                                        s->partial + (size_t)o * BLOCK + lane * QN__PANEL,
                                        s->wide + (size_t)o * BLOCK + p->from * QN__PANEL);
        if (all - item <= grain)
            break; /* a grain may be as large as numbers are */
    }
    return bad;
}

static int gradient_task(const qn__cpu_pass *pass, const task *t, const qn__cpu_walk_task *own) {
    const qn__cpu_layer *l = t->l;
    const uint32_t block = own->row, rows = qn__cpu_rows_of(l, block);
    qn__cpu_sums_space buffer;
    qn__cpu_sums s = {.narrow = buffer.narrow,
                      .wide = buffer.wide,
                      .partial = buffer.partial,
                      .kind = QN__SUMS_INT64,
                      .update = pass->update};
    int bad = 0;
    memset(s.wide, 0, (size_t)own->panels * BLOCK * sizeof *s.wide);
    for (uint32_t from = 0; from < rows && positions_of(t) > 1;) {
        const piece p = piece_of(l, block, from);
        bad |= sum_piece(pass, t, own, &p, &s);
        from = p.end;
    }
    for (uint32_t p = 0; p < own->panels && !bad; ++p)
        qn__cpu_keep_weights(pass, l, block, rows, own->out + p, &s, (size_t)p * BLOCK);
    return bad;
}

static void gradient(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    const task t = task_of(pass, thread, layer);
    for (qn__cpu_walk_task own; qn__cpu_take_walk(pass, thread, layer, phase, &own);)
        qn__cpu_end_walk(pass, thread, layer, &own, gradient_task(pass, &t, &own));
}

static void carve(qn__cpu_arena *a, const qn__worker *w, qn__cpu_layer *l) {
    const size_t panels = l->out_panels, rows = l->out_pixels * QN__PANEL * sizeof(float);
    if (w->program->sequences) {
        qn__cpu_states_carve(a, w, l);
        return;
    }
    l->recurrent.gates = qn__cpu_carve(a, w->capacity * GATES * panels, rows);
    l->recurrent.states = qn__cpu_carve(a, w->capacity * panels, rows);
    l->recurrent.cells =
        qn__cpu_carve(a, l->layer->cell == QN__CELL_LSTM ? w->capacity * panels : 0, rows);
    l->recurrent.back = qn__cpu_carve(a, panels * back_blocks(l), BLOCK * sizeof(float));
}

const qn__cpu_kind qn__cpu_recurrent = {.forward = forward,
                                        .backward = backward,
                                        .gradient = gradient,
                                        .sums = qn__cpu_bias_task,
                                        .carve = carve,
                                        .unrolls = 1};
