/* The last layer of several answers, some positions after the others (docs/exactness.md 25.49).
 *
 * With 50,257 words the logits of 8 x 1,024 positions take 1.6 GiB. A pass whose logits are more
 * than SLICE_BYTES goes through the last layer slice by slice: logits, losses, errors in their
 * place, and from these the errors of the layer below.
 *
 *     slices of grains     logits | loss | errors below | gradient of these grains
 *     parts of grains      logits | loss | errors below           for each slice, and then
 *                          logits | errors | gradient of words    for each grain and 16,384 words
 *
 * The chain of a gradient goes over all positions of a grain. Where a grain has more logits than a
 * slice, they are therefore computed once more, of all its positions and of some words. An error
 * needs its own logit and two numbers of the position, which the first time has kept. Integers need
 * the absmax of a grain's errors before the gradient, which the first time has found. */
#include "device/gpu/gpu_call.h"
#include "device/gpu/gpu_pixels.h"
#include "num/window_blocks.h"

#define SLICE_BYTES ((uint64_t)128 << 20)
enum { LEAST_ROWS = 128 };

/* ------------------------------------------------------------------------------------ the shape */

static uint32_t last_of(const qn__worker *w) { return w->program->layers - 1; }

/* Whether each row of outputs is a product of the same row of inputs. */
static int has_points(const qn__layer *l) {
    const qn__window *window = &l->window;
    int points = l->kind == QN__LAYER_CONV && !l->conv_groups && !l->fitted;
    for (int d = 0; d < 2; ++d)
        points &= window->kernel[d] == 1 && window->stride[d] == 1 && window->pad[d] == 0;
    return points && l->from.height == l->to.height && l->from.width == l->to.width;
}

/* With integers an error below needs the absmax of a position alone (25.24). Few outputs are
 * sliced in tests only: the other outputs of a pass are more. */
static int can_slice(const qn__worker *w) {
    const qn__program *p = w->program;
    const qn__gpu_layer *last = &w->layer[last_of(w)];
    return p->answers && !p->sequences && last->source >= 0 && has_points(last->layer) &&
           (!w->bits || qn__layer_has_window_blocks(last->layer)) &&
           (p->slice_bytes || last->layer->to.channels >= last->layer->depth);
}

void qn__gpu_slices_shape(qn__worker *w) {
    const qn__program *p = w->program;
    const qn__layer *l = w->layer[last_of(w)].layer;
    const uint64_t ld = qn__gpu_ld(l->to.channels), pixels = qn__gpu_pixels(l);
    const uint64_t items = p->grain < w->capacity ? p->grain : w->capacity, grain = items * pixels;
    const uint64_t bytes = p->slice_bytes ? p->slice_bytes : SLICE_BYTES;
    const uint64_t least = p->slice_bytes ? 1 : LEAST_ROWS, fit = bytes / (ld * sizeof(float));
    const uint64_t rows = fit < least ? least : fit;
    qn__gpu_slicing *s = &w->slices;
    *s = (qn__gpu_slicing){0};
    if (!can_slice(w) || w->capacity * pixels <= rows)
        return;
    const uint64_t grains = rows / grain, words = rows * ld / grain / QN_LD * QN_LD;
    s->rows = (uint32_t)(grains ? grains * grain : rows);
    s->outputs = grains ? 0 : (uint32_t)(words < QN_LD ? QN_LD : words < ld ? words : ld);
    s->grain = (uint32_t)grain;
    s->words = (grains ? grains : 1) * qn__gpu_words_of_grain(grain);
    s->marks_bytes = s->outputs ? w->capacity * pixels * 2 * sizeof(float) : 0;
}

uint64_t qn__gpu_slice_bytes(const qn__worker *w) {
    const uint64_t ld = qn__gpu_ld(w->layer[last_of(w)].layer->to.channels);
    const uint64_t logits = w->slices.rows * ld;
    const uint64_t again = (uint64_t)w->slices.grain * w->slices.outputs;
    return (logits > again ? logits : again) * sizeof(float);
}

/* --------------------------------------------------------------------------------- the products */

/* Logits of the rows of a chunk, and of some outputs. `inputs` 1: their inputs are not yet there as
 * words. */
static void launch_logits(qn__gpu_pass *pass, const qn__gpu_chunk *k, const qn__gpu_range *outputs,
                          int inputs) {
    const qn__worker *w = pass->worker;
    const uint32_t last = last_of(w);
    const qn__gpu_layer *own = &w->layer[last];
    const qn__gpu_rows rows = {&w->pixels.rows, &w->integers.absmax_rows, k->count, k->span};
    const qn__gpu_factors f = {.step = &w->pixels.rows,
                               .a = &w->pixels.unfolded,
                               .weights = &w->model.parameters,
                               .first = own->weights + outputs->begin,
                               .stride = (uint32_t)qn__gpu_ld(own->layer->to.channels),
                               .rows = k->count,
                               .in = own->layer->depth,
                               .out = outputs->count,
                               .to = &own->output};
    if (inputs || !w->bits)
        qn__gpu_unfold(pass, k, qn__gpu_input_of(pass, last), &w->pixels.unfolded);
    if (!w->bits) {
        qn__gpu_launch_chains(pass, &f);
        return;
    }
    if (inputs)
        qn__gpu_quantize_rows(pass, last, k, &w->pixels.unfolded, 0);
    qn__gpu_launch_intgemm_chains(pass, last, &rows, outputs, &own->output);
}

/* Errors of the layer below, from the errors of a slice. */
static void launch_errors(qn__gpu_pass *pass, const qn__gpu_chunk *k) {
    const qn__worker *w = pass->worker;
    const uint32_t last = last_of(w);
    const qn__gpu_layer *own = &w->layer[last];
    const uint32_t in = own->layer->from.channels, out = own->layer->to.channels;
    const qn__gpu_rows rows = {&w->pixels.rows, &w->integers.absmax_rows, k->count, k->span};
    const qn__gpu_factors f = {.step = &w->pixels.rows,
                               .e = &own->output,
                               .first = own->weights,
                               .rows = k->count,
                               .in = in,
                               .out = out,
                               .to = &w->pixels.chains};
    qn__gpu_chunk below = *k;
    below.index = last * QN__GPU_TAPS + 1;
    below.columns = out;
    if (w->bits) {
        qn__gpu_quantize_rows(pass, last, &below, &own->output, QN_QUANTIZE_WEIGHED);
        qn__gpu_launch_intgemm_sums(pass, last, &rows, in, out, &w->pixels.chains);
    } else {
        qn__gpu_launch_error_chains(pass, &f);
    }
    qn__gpu_finish_sums(pass, last, &w->pixels.chains, &below, 0);
}

/* The gradient of whole grains, and of some outputs, whose errors take the place of logits. */
static void launch_gradient(qn__gpu_pass *pass, const qn__gpu_chunk *k,
                            const qn__gpu_range *outputs, int add) {
    const qn__worker *w = pass->worker;
    const uint32_t last = last_of(w);
    const qn__gpu_layer *own = &w->layer[last];
    qn__gpu_chunk all = *k;
    all.columns = own->layer->depth + !own->layer->no_biases;
    if (w->bits) {
        qn__gpu_launch_grains_intgemm(pass, last, own->layer->depth, all, &own->output, outputs,
                                      add);
        return;
    }
    const qn__gpu_factors f = {.step = &w->pixels.rows,
                               .a = &w->pixels.unfolded,
                               .e = &own->output,
                               .first = own->weights + outputs->begin,
                               .stride = (uint32_t)qn__gpu_ld(own->layer->to.channels),
                               .in = all.columns,
                               .out = outputs->count};
    if (all.columns != k->columns)
        qn__gpu_unfold(pass, &all, qn__gpu_input_of(pass, last), &w->pixels.unfolded);
    qn__gpu_launch_gradient(pass, last, &f, qn__gpu_pieces(k->count, k->span), add);
}

/* The absmax of the grains of a slice. */
static void launch_absmax(qn__gpu_pass *pass, const qn__gpu_chunk *k, uint32_t span) {
    const qn__worker *w = pass->worker;
    const uint32_t last = last_of(w);
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, &w->layer[last].output, &w->integers.absmax_grains);
    QN__PUSH_NUMBERS(&c, k->first, k->count, w->layer[last].layer->to.channels, span,
                     qn__gpu_errors_place(pass, last));
    qn__gpu_launch_over(pass, QN__K_GRAINS_ABSMAX, k->count, &c);
}

/* ----------------------------------------------------------------------------------- the slices */

/* The rows of a pass. */
typedef struct passage {
    qn__gpu_range outputs; /* all */
    uint32_t rows, span;   /* of the pass, and of a grain */
    uint32_t most;         /* of a slice */
    int by_grain;          /* slices are whole grains, and have their gradient */
    int trains;            /* the layer has a gradient */
} passage;

static passage passage_of(const qn__gpu_pass *pass) {
    const qn__worker *w = pass->worker;
    const qn__program *p = w->program;
    const qn__layer *l = w->layer[last_of(w)].layer;
    const uint32_t grain = p->grain < pass->items ? p->grain : pass->items;
    passage a = {.outputs = {0, l->to.channels},
                 .rows = pass->items * qn__gpu_pixels(l),
                 .span = grain * qn__gpu_pixels(l),
                 .most = w->slices.rows,
                 .trains = pass->training && qn__program_trains(p, last_of(w))};
    const uint64_t fit = w->slices.rows / a.span;
    const uint64_t worded = w->slices.words / qn__gpu_words_of_grain(a.span);
    const uint64_t grains = w->bits && worded < fit ? worded : fit;
    a.by_grain = a.trains && grains > 0 && !(w->bits && w->slices.outputs);
    if (a.by_grain)
        a.most = (uint32_t)grains * a.span;
    return a;
}

/* What an error comes from has to be the same when it is computed once more. */
static void launch_again(qn__gpu_pass *pass, const passage *a, int add) {
    const qn__worker *w = pass->worker;
    const uint32_t last = last_of(w), out = a->outputs.count;
    qn__gpu_chunk k = {.index = last * QN__GPU_TAPS, .columns = w->layer[last].layer->depth};
    for (; k.first < a->rows; k.first += k.count) {
        qn__gpu_range words = {0};
        k.span = a->span;
        k.count = a->rows - k.first < a->span ? a->rows - k.first : a->span;
        for (; words.begin < out; words.begin += words.count) {
            const uint32_t left = out - words.begin;
            words.count = left < w->slices.outputs ? left : w->slices.outputs;
            launch_logits(pass, &k, &words, words.begin == 0);
            qn__gpu_launch_answers_again(pass, &(qn__gpu_range){k.first, k.count}, &words);
            launch_gradient(pass, &k, &words, add || k.first > 0);
        }
    }
}

void qn__gpu_launch_slices(qn__gpu_pass *pass, uint32_t flags, int add, float *outputs) {
    const qn__worker *w = pass->worker;
    const uint32_t last = last_of(w);
    const passage a = passage_of(pass);
    const int passes = pass->training && qn__gpu_takes_errors(w, w->layer[last].source);
    const int again = a.trains && !a.by_grain;
    qn__gpu_chunk k = {.index = last * QN__GPU_TAPS, .columns = w->layer[last].layer->depth};
    if (w->bits)
        qn__gpu_absmax_of_inputs(pass, last);
    for (; k.first < a.rows; k.first += k.count) {
        k.count = a.rows - k.first < a.most ? a.rows - k.first : a.most;
        k.span = a.span;
        launch_logits(pass, &k, &a.outputs, 1);
        qn__gpu_launch_answers(pass, &(qn__gpu_range){k.first, k.count},
                               flags | (again ? QN_LOSS_MARKS : 0));
        if (a.trains && w->bits)
            launch_absmax(pass, &k, a.span);
        if (a.by_grain)
            launch_gradient(pass, &k, &a.outputs, add || k.first > 0);
        if (passes)
            launch_errors(pass, &k);
        if (outputs && pass->status == QN_OK)
            pass->status = qn__gpu_read_outputs(
                pass->worker, pass->items, &(qn__gpu_range){k.first, k.count}, outputs, pass->err);
    }
    if (again)
        launch_again(pass, &a, add);
    qn__gpu_launch_answer_sums(pass);
}
