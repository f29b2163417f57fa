/* embedding: rows of weights by the numbers of tokens (docs/exactness.md 25.10). The gradient has a
 * chain for each token of a grain. Occurrences of a token are linked first, so that one lane of
 * each channel goes through them in their order. Tokens that do not occur cost nothing but the
 * zeros of their sums, which one command writes.
 *
 * Tied weights (25.15) are those of the last layer. Its sums are there before those of the tokens
 * are added to them. */
#include "device/gpu/gpu_call.h"
#include "device/gpu/gpu_kinds.h"
#include "layer/embedding.h"

/* Groups that share the occurrences, at most: the limit of a grid in its third direction is 65,535.
 */
enum { MOST_BLOCKS = 32768 };

/* The layer that has the weights. */
static const qn__gpu_layer *owner_of(const qn__worker *w, uint32_t i) {
    return &w->layer[w->layer[i].layer->tied ? w->program->layers - 1 : i];
}

/* Numbers from one of its channels to the next; 0: they are neighbours, in the rows of tokens. */
static uint32_t tied_of(const qn__layer *own) {
    return own->tied ? (uint32_t)qn__gpu_ld(qn__layer_tokens(own)) : 0;
}

static void forward(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    const qn__layer *own = l->layer;
    const int drops = qn__gpu_drops(pass, i);
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, &w->step, qn__gpu_input_of(pass, i), &w->model.parameters, &l->output,
                    drops ? &l->dropped : &w->step, &w->batch.numbers);
    QN__PUSH_WIDE(&c, owner_of(w, i)->weights);
    QN__PUSH_NUMBERS(&c, qn__layer_tokens(own), own->in, own->to.width, own->to.channels,
                     tied_of(own));
    qn__gpu_push_outputs(w, i, drops, &c);
    qn__gpu_launch_norm(pass, QN__K_EMBEDDING_FORWARD, (uint64_t)pass->items * own->to.width, i,
                        &c);
    qn__gpu_launch_gate(pass, i);
}

void qn__gpu_push_lengths(const qn__gpu_pass *pass, uint32_t layer, qn__gpu_call *call) {
    const qn__worker *w = pass->worker;
    const qn__layer *first = w->layer[0].layer;
    const int counts = w->layer[layer].layer->by_length;
    QN__PUSH_NUMBERS(call, counts ? qn__layer_tokens(first) : 0, counts ? first->in : 0);
}

static void no_errors(qn__gpu_pass *pass, uint32_t i) {
    (void)pass;
    (void)i; /* the items have none */
}

/* Sums begin as 0 where they are not added to. */
static void clear_sums(qn__gpu_pass *pass, const qn__gpu_layer *l) {
    const qn__worker *w = pass->worker;
    const uint64_t sums = (uint64_t)qn__gpu_vectors(l->layer) * qn__gpu_ld(l->layer->to.channels);
    if (pass->status == QN_OK)
        pass->status =
            w->driver->clear(w->gpu, &w->model.sums, (size_t)l->weights * sizeof(int64_t),
                             (size_t)sums * sizeof(int64_t), pass->err);
}

static void gradient(qn__gpu_pass *pass, uint32_t i, int add) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    const qn__layer *own = l->layer;
    const uint64_t count = (uint64_t)pass->items * own->to.width;
    uint32_t groups[3];
    qn__gpu_call c = {0}, d = {0};
    if (!add && !own->tied)
        clear_sums(pass, l);
    QN__PUSH_MEMORY(&c, &w->step, qn__gpu_input_of(pass, i), &w->pixels.chains);
    QN__PUSH_NUMBERS(&c, qn__layer_tokens(own), own->in, own->to.width);
    qn__gpu_launch_over(pass, QN__K_EMBEDDING_LINKS, count, &c);
    qn__gpu_grid(QN__K_EMBEDDING_GRADIENT, qn__gpu_ld(own->to.channels), groups);
    if (w->facts->atomics && !w->facts->vectors)
        groups[2] = (uint32_t)(count < MOST_BLOCKS ? count : MOST_BLOCKS);
    QN__PUSH_MEMORY(&d, &w->step, qn__gpu_input_of(pass, i), &w->pixels.chains,
                    qn__gpu_errors_of(w, i), &w->model.sums, &w->reports.status);
    QN__PUSH_WIDE(&d, owner_of(w, i)->weights);
    QN__PUSH_NUMBERS(&d, qn__layer_tokens(own), own->in, own->to.width, own->to.channels,
                     tied_of(own), i);
    QN__PUSH_FLOATS(&d, w->program->partial_limit);
    QN__PUSH_NUMBERS(&d, groups[2]);
    qn__gpu_launch(pass, QN__K_EMBEDDING_GRADIENT, groups, &d);
}

/* The links. */
static uint64_t chains(const qn__worker *w, const qn__layer *l) {
    return 2 * (uint64_t)w->capacity * l->to.width * sizeof(uint32_t);
}

const qn__gpu_kind qn__gpu_embedding = {.forward = forward,
                                        .errors = no_errors,
                                        .gradient = gradient,
                                        .chains = chains,
                                        .reads_input = 1};
