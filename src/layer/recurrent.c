/* recurrent lstm|gru [reverse]: positions follow one another, and each has a state that depends on
 * the state before (Hochreiter and Schmidhuber 1997, Cho et al. 2014). The input has the products
 * of what comes from outside, which "lstm N" and "gru N" make by a convolution before this layer: a
 * part of the channels for each gate. The weights are those of the states before: weight
 * [n][gate * N + k] is that of channel n of a gate and channel k of the state. */
#include "layer/recurrent.h"
#include "layer/layer.h"
#include "layer/product.h"
#include "num/elementary.h"
#include <math.h>
#include <string.h>

static const char *const words[] = {[QN__CELL_LSTM] = "lstm", [QN__CELL_GRU] = "gru"};
static const uint32_t gates_of[] = {[QN__CELL_LSTM] = 4, [QN__CELL_GRU] = 3};
enum { WORDS = sizeof words / sizeof *words };

static qn_status parse(qn__tokens *tokens, qn__layer_text *layer) {
    static const char *const help =
        "write \"recurrent lstm\" or \"recurrent gru\", and \"reverse\" after it to begin at the "
        "last position; \"lstm 256\" also writes the convolution before it";
    if (qn__tokens_ended(tokens))
        return qn__tokens_fail(tokens, tokens->at, "the kind of the cell is missing", help);
    for (int i = 0; i < WORDS; ++i)
        if (qn__tokens_is(tokens, words[i])) {
            layer->cell = (qn__state_cell)i;
            qn__tokens_next(tokens);
            if (!qn__tokens_ended(tokens) && qn__tokens_is(tokens, "reverse")) {
                layer->reverse = 1;
                qn__tokens_next(tokens);
            }
            return QN_OK;
        }
    return qn__tokens_invalid(tokens, "invalid kind of cell", help);
}

static void write(const qn__layer_text *layer, qn__text *text) {
    qn__text_add(text, " %s%s", words[layer->cell], layer->reverse ? " reverse" : "");
}

static qn_status make(const qn__layer_text *text, qn__shape from, uint64_t first, qn__layer *layer,
                      qn_error *err) {
    const uint32_t gates = gates_of[text->cell];
    qn__shape to = from;
    if (from.channels % gates != 0) {
        qn__fail(err, QN_USAGE, "%u channel%s cannot be divided among the %u gates of \"%s\"",
                 from.channels, from.channels == 1 ? "" : "s", gates, words[text->cell]);
        return qn__remedy(err, QN_USAGE, "write \"%s %u\": it has the convolution that gives them",
                          words[text->cell], (from.channels + gates - 1) / gates);
    }
    to.channels = from.channels / gates;
    const uint64_t weights = (uint64_t)from.channels * to.channels;
    *layer = (qn__layer){.kind = text->kind,
                         .from = from,
                         .to = to,
                         .window = {{1, 1}, {1, 1}, {0, 0}, {1, 1}},
                         .in = qn__shape_volume(from),
                         .out = qn__shape_volume(to),
                         .depth = from.channels,
                         .no_biases = text->cell == QN__CELL_LSTM,
                         .activation = text->activation,
                         .drop_keep = 1.0f,
                         .weights = first,
                         .biases = first + weights,
                         .cell = text->cell,
                         .reverse = text->reverse};
    return QN_OK;
}

/* 25.34: the sum over the channels k of the state before, from `acc` on. */
static float chain(const qn__layer *l, const float *parameters, uint32_t gate, uint32_t n,
                   const float *state, float acc) {
    const uint32_t width = l->to.channels;
    const float *w = parameters + l->weights + (size_t)n * l->depth + (size_t)gate * width;
    for (uint32_t k = 0; state && k < width; ++k)
        acc = fmaf(state[k], w[k], acc);
    return acc;
}

/* A channel of a state, before and after: its gates, and what is kept beside the state: the cell
 * of lstm, q of gru. */
typedef struct step {
    float gate[4], kept, state;
} step;

/* 25.35. x: the channels of the position. `state`: that of the position before, NULL without one.
 */
static step lstm_step(const qn__layer *l, const float *parameters, uint32_t n, const float *x,
                      const float *state, float cell) {
    const uint32_t width = l->to.channels;
    step s;
    for (uint32_t g = 0; g < 4; ++g) {
        const float z = x[g * width + n] + chain(l, parameters, g, n, state, 0.0f);
        s.gate[g] = g == 2 ? qn__tanh(z) : qn__sigmoid(z);
    }
    s.kept = fmaf(s.gate[1], cell, s.gate[0] * s.gate[2]);
    s.state = s.gate[3] * qn__tanh(s.kept);
    s.state = s.state + 0.0f;
    return s;
}

/* 25.36 */
static step gru_step(const qn__layer *l, const float *parameters, uint32_t n, const float *x,
                     const float *state) {
    const uint32_t width = l->to.channels;
    step s;
    for (uint32_t g = 0; g < 2; ++g)
        s.gate[g] = qn__sigmoid(x[g * width + n] + chain(l, parameters, g, n, state, 0.0f));
    s.kept = chain(l, parameters, 2, n, state, parameters[l->biases + n]);
    s.gate[2] = qn__tanh(fmaf(s.gate[0], s.kept, x[2 * width + n]));
    s.state = fmaf(s.gate[1], (state ? state[n] : 0.0f) - s.gate[2], s.gate[2]);
    s.state = s.state + 0.0f;
    return s;
}

/* States h[positions][channels], +0 from the length on, and `kept` beside them, and the gates
 * [positions][from.channels]: NULL where they are not wanted. Without `kept` a cell stands where
 * the state after it comes. */
static void run(const qn__layer *l, const float *parameters, const float *a, float *h, float *kept,
                float *gates) {
    const uint32_t width = l->to.channels, in = l->from.channels;
    const float *state = NULL, *cell = NULL;
    memset(h, 0, l->out * sizeof *h);
    for (uint32_t i = 0; i < qn__layer_positions(l); ++i) {
        const size_t t = qn__recurrent_at(l, i);
        float *own = h + t * width, *beside = kept ? kept + t * width : NULL;
        if (!kept && i + 1 < qn__layer_positions(l))
            beside = h + qn__recurrent_at(l, i + 1) * (size_t)width;
        for (uint32_t n = 0; n < width; ++n) {
            const step s = l->cell == QN__CELL_LSTM ? lstm_step(l, parameters, n, a + t * in, state,
                                                                cell ? cell[n] : 0.0f)
                                                    : gru_step(l, parameters, n, a + t * in, state);
            own[n] = s.state;
            if (beside)
                beside[n] = s.kept;
            for (uint32_t g = 0; gates && g < qn__recurrent_gates(l); ++g)
                gates[t * in + g * width + n] = s.gate[g];
        }
        state = own;
        cell = beside;
    }
}

static void forward(const qn__layer *l, int bits, const float *parameters, const float *a,
                    float *z) {
    (void)bits;
    run(l, parameters, a, z, NULL, NULL);
}

static float slope(float gate) { return gate * (1.0f - gate); }

/* What one step backward needs of a channel beside its gates. */
typedef struct back {
    float error, before, kept, carry;
} back;

/* 25.35: gate[4] become their errors. `before`, `kept`: the cells before and after. */
static void lstm_back(float *gate, uint32_t width, back *b) {
    const float i = gate[0], f = gate[width], g = gate[2 * (size_t)width],
                o = gate[3 * (size_t)width];
    const float cell = qn__tanh(b->kept), out = b->error * o;
    const float error = fmaf(out, fmaf(-cell, cell, 1.0f), b->carry);
    gate[0] = error * g * slope(i) + 0.0f;
    gate[width] = error * b->before * slope(f) + 0.0f;
    gate[2 * (size_t)width] = error * i * fmaf(-g, g, 1.0f) + 0.0f;
    gate[3 * (size_t)width] = b->error * cell * slope(o) + 0.0f;
    b->carry = error * f;
}

/* 25.36: gate[3] become their errors, `kept` becomes that of q. `before`: the state before. */
static void gru_back(float *gate, uint32_t width, back *b) {
    const float r = gate[0], z = gate[width], n = gate[2 * (size_t)width];
    const float error = b->error + b->carry;
    const float inner = error * (1.0f - z) * fmaf(-n, n, 1.0f);
    gate[0] = inner * b->kept * slope(r) + 0.0f;
    gate[width] = error * (b->before - n) * slope(z) + 0.0f;
    gate[2 * (size_t)width] = inner + 0.0f;
    b->kept = inner * r + 0.0f;
    b->carry = error * z;
}

/* The sum of what the errors of a position give to channel k of the state before it: the gates in
 * their order, of each the channels n. `last`: those of q, in the place of the third gate's. */
static float returned(const qn__layer *l, const float *parameters, const float *errors,
                      const float *last, uint32_t k) {
    const uint32_t width = l->to.channels, gates = qn__recurrent_gates(l);
    float acc = 0.0f;
    for (uint32_t g = 0; errors && g < gates; ++g)
        for (uint32_t n = 0; n < width; ++n) {
            const size_t w = l->weights + (size_t)n * l->depth + (size_t)g * width + k;
            const float d = last && g + 1 == gates ? last[n] : errors[g * width + n];
            acc = fmaf(d, parameters[w], acc);
        }
    return acc;
}

/* Errors e[in] of the input, and of gru those of q in space[out] .. The carries go from a position
 * to the one before it in the memory of states that are not needed any more. */
static void through_time(const qn__layer *l, const float *parameters, const float *a,
                         const float *delta, float *space, float *e) {
    const uint32_t width = l->to.channels, in = l->from.channels, all = qn__layer_positions(l);
    const int lstm = l->cell == QN__CELL_LSTM;
    float *h = space, *kept = space + l->out;
    memset(e, 0, l->in * sizeof *e);
    run(l, parameters, a, h, kept, e);
    for (uint32_t i = all; i-- > 0;) {
        const size_t t = qn__recurrent_at(l, i);
        const size_t after = i + 1 < all ? qn__recurrent_at(l, i + 1) : 0;
        const float *errors = i + 1 < all ? e + after * in : NULL;
        const float *q = lstm || !errors ? NULL : kept + after * width;
        const float *before =
            i == 0 ? NULL : (lstm ? kept : h) + qn__recurrent_at(l, i - 1) * width;
        float *carries = (lstm ? kept : h) + after * width;
        for (uint32_t n = 0; n < width; ++n) {
            back b = {.error = delta[t * width + n] + returned(l, parameters, errors, q, n),
                      .before = i > 0 ? before[n] : 0.0f,
                      .kept = kept[t * width + n],
                      .carry = errors ? carries[n] : 0.0f};
            (lstm ? lstm_back : gru_back)(e + t * in + n, width, &b);
            if (lstm)
                kept[t * width + n] = b.carry;
            else
                kept[t * width + n] = b.kept;
            if (!lstm)
                h[t * width + n] = b.carry;
        }
    }
    for (size_t t = all; t < (size_t)l->from.height * l->from.width && !lstm; ++t)
        memset(kept + t * width, 0, width * sizeof *kept);
}

static void backward(const qn__layer *l, int bits, const float *parameters, const float *a,
                     const float *delta, int64_t *sums, float *e) {
    (void)bits;
    through_time(l, parameters, a, delta, (float *)(void *)sums, e);
}

/* In the place of what the layer reads come the errors of its products, and in that of its errors
 * its states. */
static void unroll(const qn__layer *l, const float *parameters, float *a, float *delta,
                   int64_t *sums, float *e) {
    const uint32_t width = l->to.channels, in = l->from.channels;
    float *space = (float *)(void *)sums;
    through_time(l, parameters, a, delta, space, e);
    run(l, parameters, a, delta, NULL, NULL);
    memcpy(a, e, l->in * sizeof *a);
    for (size_t t = 0; t < l->out / width && l->cell == QN__CELL_GRU; ++t)
        memcpy(a + t * in + 2 * (size_t)width, space + l->out + t * width, width * sizeof *a);
}

/* The weights of a position, and the bias of gru. `state`: that before. */
static void add_position(const qn__layer *l, const float *errors, const float *state,
                         float *partial) {
    const uint32_t width = l->to.channels, gates = qn__recurrent_gates(l);
    for (uint32_t n = 0; n < width; ++n) {
        for (uint32_t g = 0; state && g < gates; ++g)
            for (uint32_t k = 0; k < width; ++k) {
                float *w = &partial[(size_t)n * l->depth + (size_t)g * width + k];
                *w = fmaf(errors[g * width + n], state[k], *w);
            }
        if (!l->no_biases) {
            float *bias = &partial[(size_t)width * l->depth + n];
            *bias = *bias + errors[(gates - 1) * (size_t)width + n];
        }
    }
}

/* Positions in their order, the items of each in theirs; from what `unroll` made. */
static void gradient(const qn__layer *l, uint64_t items, const float *a, const float *delta,
                     float *partial) {
    const uint32_t all = l->from.height * l->from.width, width = l->to.channels;
    for (uint32_t t = 0; t < all; ++t)
        for (uint64_t i = 0; i < items; ++i) {
            const int none = l->reverse ? t + 1 == all : t == 0;
            const size_t before = none ? 0 : l->reverse ? t + 1 : t - 1;
            add_position(l, a + i * l->in + (size_t)t * l->from.channels,
                         none ? NULL : delta + i * l->out + before * width, partial);
        }
}

static int steps(const qn__layer *l) { return !l->reverse; }

/* Weights of a gate stand for one state alone. */
static uint64_t width_of(const qn__layer *l) { return l->to.channels; }

const qn__layer_ops qn__recurrent = {
    .word = "recurrent",
    .also = "rnn simplernn bilstm bigru",
    .syntax = "recurrent lstm|gru [reverse] [ACTIVATION] [dropout|droppath P]",
    .floats = 1,
    .contract = 9,
    .reads_length = 1,
    .parse = parse,
    .write = write,
    .steps = steps,
    .make = make,
    .fan_out = width_of,
    .fan_in = width_of,
    .flops = qn__product_flops,
    .forward = forward,
    .backward = backward,
    .unroll = unroll,
    .gradient = gradient};
