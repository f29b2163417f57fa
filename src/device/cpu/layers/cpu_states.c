/* recurrent over sequences that grow (docs/exactness.md 25.70): the state of each sequence after
 * its last position is kept, so a further position costs one product by the weights of states.
 *
 *     states, cells   [sequence][panel][16]   after the last position
 *
 * A task has some sequences, and goes through their rows of an extension: each step has the next
 * row of every sequence that has one. */
#include "device/cpu/worker/cpu_heads.h"
#include "device/cpu/worker/cpu_kinds.h"
#include "layer/recurrent.h"
#include <string.h>

enum { GATES = 4, ROWS = QN__STATE_ROWS, BLOCK = QN__PANEL * QN__PANEL };

/* Some sequences, and a core's memory. */
typedef struct grown {
    const qn__cpu_pass *pass;
    const qn__cpu_layer *l;
    int thread, lstm;
    uint32_t layer, first, sequences, rows;
    float *state, *cell; /* [panel][row][16]: of the step */
    float *gate;         /* [gate][panel][row][16] */
    float *input;        /* [gate][row][16]: of one panel */
    size_t *a, *b;       /* distances of blocks */
    uint32_t *row;       /* of the step, among those of the extension */
    uint32_t *next;      /* of each sequence, the row from which its next one is looked for */
} grown;

/* Floats between two panels of a core's arrays. */
static const size_t apart = (size_t)ROWS * QN__PANEL;

size_t qn__cpu_states_space(const qn__cpu_layer *l) {
    const size_t arrays = ((GATES + 2) * (size_t)l->out_panels + GATES) * apart;
    return arrays + 2 * l->out_panels * (sizeof(size_t) / sizeof(float)) + 2 * (size_t)ROWS;
}

void qn__cpu_states_carve(qn__cpu_arena *a, const qn__worker *w, qn__cpu_layer *l) {
    const size_t sequences = w->program->sequences, bytes = QN__PANEL * sizeof(float);
    const int lstm = l->layer->cell == QN__CELL_LSTM;
    l->recurrent.states = qn__cpu_carve(a, sequences * l->out_panels, bytes);
    l->recurrent.cells = qn__cpu_carve(a, lstm ? sequences * l->out_panels : 0, bytes);
}

static grown grown_of(const qn__cpu_pass *pass, int thread, uint32_t layer) {
    const qn__cpu_layer *l = &pass->worker->layer[layer];
    const size_t panels = l->out_panels;
    grown t = {.pass = pass,
               .l = l,
               .thread = thread,
               .lstm = l->layer->cell == QN__CELL_LSTM,
               .layer = layer,
               .state = pass->worker->core[thread].attention};
    t.cell = t.state + panels * apart;
    t.gate = t.cell + panels * apart;
    t.input = t.gate + GATES * panels * apart;
    t.a = (size_t *)(void *)(t.input + GATES * apart);
    t.b = t.a + panels;
    t.row = (uint32_t *)(void *)(t.b + panels);
    t.next = t.row + ROWS;
    for (size_t p = 0; p < panels; ++p) {
        t.a[p] = p * apart;
        t.b[p] = p * BLOCK;
    }
    return t;
}

static int take(grown *t, uint32_t phase) {
    qn__worker *w = t->pass->worker;
    const uint32_t all = w->program->sequences, threads = (uint32_t)w->threads;
    const uint32_t part = (all + threads - 1) / threads, most = part < ROWS ? part : ROWS;
    const qn__cpu_grid grid = {(all + most - 1) / most, 1, 1};
    uint32_t group, row;
    if (!qn__cpu_take(w, t->thread, phase, grid, &group, &row))
        return 0;
    t->first = group * most;
    t->sequences = all - t->first < most ? all - t->first : most;
    memset(t->next, 0, t->sequences * sizeof *t->next);
    return 1;
}

/* Finds the next row of each sequence. Returns 0 if none has one. */
static int find_rows(grown *t) {
    const qn__extension *e = t->pass->extension;
    t->rows = 0;
    for (uint32_t s = 0; s < t->sequences; ++s) {
        uint32_t i = t->next[s];
        while (i < e->rows && e->sequence[i] != t->first + s)
            ++i;
        t->next[s] = i < e->rows ? i + 1 : i;
        if (i < e->rows)
            t->row[t->rows++] = i;
    }
    return t->rows > 0;
}

static int begins(const grown *t, uint32_t r) {
    return t->pass->extension->position[t->row[r]] == 0;
}

/* The array of a gate's part of the products: of gru the last one is q. */
static uint32_t product_of(const grown *t, uint32_t gate) {
    return !t->lstm && gate == 2 ? 3 : gate;
}

static float *gate_at(const grown *t, uint32_t gate, uint32_t panel) {
    return t->gate + ((size_t)gate * t->l->out_panels + panel) * apart;
}

/* From what is kept of the sequences to the step's rows, or back. */
static void move_states(const grown *t, float *kept, float *own, int back) {
    const uint32_t panels = t->l->out_panels;
    for (uint32_t r = 0; r < t->rows; ++r) {
        const size_t sequence = t->pass->extension->sequence[t->row[r]];
        for (uint32_t p = 0; p < panels; ++p) {
            float *a = kept + (sequence * panels + p) * QN__PANEL;
            float *b = own + p * apart + (size_t)r * QN__PANEL;
            if (back)
                memcpy(a, b, QN__PANEL * sizeof *a);
            else if (begins(t, r))
                memset(b, 0, QN__PANEL * sizeof *b);
            else
                memcpy(b, a, QN__PANEL * sizeof *b);
        }
    }
}

/* Products of no state: +0, or the biases. */
static void begin_products(const grown *t, uint32_t r) {
    for (uint32_t p = 0; p < t->l->out_panels; ++p)
        for (uint32_t g = 0; g < GATES; ++g) {
            float *to = gate_at(t, g, p) + (size_t)r * QN__PANEL;
            if (!t->lstm && g == 3)
                memcpy(to, t->l->bias + p * QN__PANEL, QN__PANEL * sizeof *to);
            else
                memset(to, 0, QN__PANEL * sizeof *to);
        }
}

static void multiply(const grown *t) {
    const qn__cpu_layer *l = t->l;
    const uint32_t width = l->layer->to.channels;
    const size_t panel = (size_t)qn__cpu_blocks(l) * BLOCK;
    const qn__cpu_chain chain = {.k = width, .a = t->a, .b = t->b};
    for (uint32_t g = 0; g < qn__recurrent_gates(l->layer); ++g)
        t->pass->worker->kernels->matmul(t->rows, &chain, t->state,
                                         l->weights + (size_t)g * width * QN__PANEL, panel,
                                         gate_at(t, product_of(t, g), 0), apart,
                                         product_of(t, g) != g ? l->bias : NULL, l->out_panels);
    for (uint32_t r = 0; r < t->rows; ++r)
        if (begins(t, r))
            begin_products(t, r);
}

/* What the layer reads of a panel of each gate. */
static void take_inputs(const grown *t, uint32_t panel) {
    const qn__cpu_layer *l = t->l;
    const uint32_t width = l->layer->to.channels;
    const float *from = qn__cpu_input(t->pass, l);
    for (uint32_t g = 0; g < qn__recurrent_gates(l->layer); ++g)
        for (uint32_t r = 0; r < t->rows; ++r)
            qn__cpu_take_channels(
                from + (size_t)t->row[r] * QN__PANEL, l->in_stride, g * width + panel * QN__PANEL,
                qn__cpu_panel_channels(width, panel), t->input + g * apart + (size_t)r * QN__PANEL);
}

static void step_panel(const grown *t, uint32_t panel) {
    const qn__cpu_kernels *k = t->pass->worker->kernels;
    float *state = t->state + panel * apart, *cell = t->cell + panel * apart;
    const float *x[GATES];
    float *gate[GATES];
    take_inputs(t, panel);
    for (uint32_t g = 0; g < GATES; ++g) {
        x[g] = t->input + g * apart;
        gate[g] = gate_at(t, g, panel);
    }
    if (t->lstm)
        k->lstm(t->rows, x, gate, cell, cell, state);
    else
        k->gru(t->rows, x, gate, state, state);
}

static void put_outputs(const grown *t) {
    for (uint32_t r = 0; r < t->rows; ++r)
        for (uint32_t p = 0; p < t->l->out_panels; ++p) {
            float *to = t->l->output + p * t->l->out_stride + (size_t)t->row[r] * QN__PANEL;
            memcpy(to, t->state + p * apart + (size_t)r * QN__PANEL, QN__PANEL * sizeof *to);
            qn__cpu_after_product(t->pass, t->thread, t->layer, p, t->row[r], 1, to);
        }
}

void qn__cpu_states_forward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    for (grown t = grown_of(pass, thread, layer); take(&t, phase);)
        while (find_rows(&t)) {
            move_states(&t, t.l->recurrent.states, t.state, 0);
            if (t.lstm)
                move_states(&t, t.l->recurrent.cells, t.cell, 0);
            multiply(&t);
            for (uint32_t p = 0; p < t.l->out_panels; ++p)
                step_panel(&t, p);
            move_states(&t, t.l->recurrent.states, t.state, 1);
            if (t.lstm)
                move_states(&t, t.l->recurrent.cells, t.cell, 1);
            put_outputs(&t);
        }
}
