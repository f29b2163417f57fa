/* To be read together with docs/exactness.md; the numbers in comments are its paragraphs. Nothing
 * here is tiled, reordered or shared with the kernels, except the functions of section 13. */
#include "layer/reference.h"

#include "base/memory.h"
#include "layer/answers.h"
#include "layer/embedding.h"
#include "layer/layer.h"
#include "layer/product.h"
#include "layer/reference_loss.h"
#include "num/augment.h"
#include "num/mix.h"
#include "num/elementary.h"
#include "num/intgemm_reference.h"
#include "num/philox.h"
#include "num/shown.h"
#include "num/sums.h"
#include <math.h>
#include <string.h>

/* The values of one layer for the current item. */
typedef struct made {
    float *z;         /* out: before the activation */
    float *y;         /* out: after it, before dropout */
    float *next;      /* out: the next layer's input, after dropout */
    float *delta;     /* out: the error before the activation, in units (8) */
    int has_error;    /* delta is the error of a reader already, after the activation (17.7) */
    uint8_t *dropped; /* out: 1 if dropout removed the output */
} made;

/* The values of one layer for all items of the grain: its gradient reads them (8.6, 15.6). */
typedef struct kept {
    float *inputs, *deltas; /* in, out of each item */
    float *results;         /* the larger one of in and out; only of a layer over whole grains */
} kept;

struct qn__reference {
    const qn__program *program;
    char *values; /* of an augmented item, and working memory for it */
    void *augment_space;
    char *partner;      /* values of an item that is mixed with it */
    uint32_t *other;    /* the partner's label of each state */
    qn__mixing *mixing; /* of each state */
    uint8_t *answers;   /* of each state, where the program moves them; and working memory */
    void *shown_space;
    /* The state of the current item. Where a layer goes over whole grains (17.8) each item of a
     * grain has one, and the layers are computed at the end of the grain. */
    float *x; /* in[0]: the scaled input */
    made *made;
    int over_grains;
    uint64_t states;
    float *all_x;
    struct made *all_made;    /* of each state all layers */
    qn__reference_item *item; /* of each state; its values are in x */
    float *weight;            /* of each item */
    const float *parameters;
    uint32_t epoch;
    kept kept[QN__MAX_LAYERS];
    /* Working memory for the outputs of the widest layer: an error that one reader gives, and sums
     * of integer products. */
    float *e, *f; /* f: of the second output of a join */
    int64_t *sums;
    float max, sum; /* m and s of 6.4 */
    float *partial; /* of each parameter, then of tied weights: the grain's partial gradient */
    int64_t *units; /* the same as integers, at the end of the grain */
    float loss;     /* of the grain */
    uint64_t correct, items;
};

static int over_grain(const qn__layer *l) {
    return qn__layer_ops_of(l->kind)->forward_grain != NULL;
}

static int has_grain_layer(const qn__program *p) {
    int has = 0;
    for (uint32_t l = 0; l < p->layers; ++l)
        has |= over_grain(&p->layer[l]);
    return has;
}

/* Makes the item of a state the current one. */
static void select_state(qn__reference *r, uint64_t state) {
    r->x = r->all_x + state * r->program->layer[0].in;
    r->made = r->all_made + state * r->program->layers;
}

static uint32_t widest(const qn__program *p) {
    uint32_t most = p->layer[0].in;
    for (uint32_t l = 0; l < p->layers; ++l)
        most = p->layer[l].out > most ? p->layer[l].out : most;
    return most;
}

uint64_t qn__reference_bytes(const qn__program *p, uint64_t items) {
    const uint64_t states = has_grain_layer(p) ? items : 1;
    uint64_t floats = states * p->layer[0].in + 4 * (uint64_t)widest(p);
    for (uint32_t l = 0; l < p->layers; ++l) {
        const qn__layer *own = &p->layer[l];
        const uint64_t results = over_grain(own) ? (own->in > own->out ? own->in : own->out) : 0;
        floats += states * 17 * own->out / 4 + items * (own->in + own->out + results);
    }
    return floats * sizeof(float);
}

static int make_layer(const qn__layer *l, made *m, qn_error *err) {
    const uint32_t n = l->out;
    m->z = qn__alloc(n, sizeof *m->z, err);
    m->y = qn__alloc(n, sizeof *m->y, err);
    m->next = qn__alloc(n, sizeof *m->next, err);
    m->delta = qn__alloc(n, sizeof *m->delta, err);
    m->dropped = qn__alloc(n, sizeof *m->dropped, err);
    return m->z && m->y && m->next && m->delta && m->dropped;
}

static int make_kept(const qn__program *p, const qn__layer *l, kept *k, qn_error *err) {
    const uint64_t most = l->in > l->out ? l->in : l->out;
    k->inputs = qn__alloc((uint64_t)p->grain * l->in, sizeof *k->inputs, err);
    k->deltas = qn__alloc((uint64_t)p->grain * l->out, sizeof *k->deltas, err);
    if (!over_grain(l))
        return k->inputs && k->deltas;
    k->results = qn__alloc(p->grain * most, sizeof *k->results, err);
    return k->inputs && k->deltas && k->results;
}

static qn_status make(const qn__program *p, int gradients, qn__reference **out, qn_error *err) {
    *out = NULL;
    qn__reference *r = qn__alloc(1, sizeof *r, err);
    if (!r)
        return QN_MEMORY;
    r->program = p;
    r->over_grains = has_grain_layer(p);
    r->states = r->over_grains ? p->grain : 1;
    r->all_x = qn__alloc(r->states * p->layer[0].in, sizeof *r->x, err);
    r->all_made = qn__alloc(r->states * p->layers, sizeof *r->made, err);
    r->item = qn__alloc(r->states, sizeof *r->item, err);
    r->weight = qn__alloc(r->states, sizeof *r->weight, err);
    r->values = qn__alloc(p->augment || p->mix ? p->layer[0].in : 1, sizeof(float), err);
    r->partner = qn__alloc(p->mix ? p->layer[0].in : 1, sizeof(float), err);
    r->other = qn__alloc(r->states, sizeof *r->other, err);
    r->mixing = qn__alloc(r->states, sizeof *r->mixing, err);
    r->augment_space = qn__alloc(p->augment ? qn__augment_space(p->augment) + 1 : 1, 1, err);
    r->answers = qn__alloc(p->moves_answers ? r->states * p->answers : 1, 1, err);
    r->shown_space = qn__alloc(qn__shown_space(p) + 1, 1, err);
    r->e = qn__alloc(widest(p), sizeof *r->e, err);
    r->f = qn__alloc(widest(p), sizeof *r->f, err);
    r->sums = qn__alloc(widest(p), sizeof *r->sums, err);
    int whole = r->values && r->partner && r->other && r->mixing && r->augment_space && r->all_x &&
                r->all_made && r->item && r->weight && r->answers && r->shown_space && r->e &&
                r->f && r->sums;
    if (whole && gradients) {
        r->partial = qn__alloc(p->parameters + qn__program_tied(p), sizeof *r->partial, err);
        r->units = qn__alloc(p->parameters + qn__program_tied(p), sizeof *r->units, err);
        whole = r->partial && r->units;
    }
    for (uint64_t i = 0; whole && i < r->states * p->layers; ++i)
        whole = make_layer(&p->layer[i % p->layers], &r->all_made[i], err);
    for (uint32_t l = 0; whole && l < p->layers; ++l)
        whole = make_kept(p, &p->layer[l], &r->kept[l], err);
    if (!whole) {
        qn__reference_destroy(r);
        return QN_MEMORY;
    }
    select_state(r, 0);
    *out = r;
    return QN_OK;
}

qn_status qn__reference_create(const qn__program *p, qn__reference **out, qn_error *err) {
    return make(p, 1, out, err);
}

qn_status qn__reference_watch(const qn__program *p, qn__reference **out, qn_error *err) {
    return make(p, 0, out, err);
}

void qn__reference_destroy(qn__reference *r) {
    if (!r)
        return;
    for (uint64_t i = 0; r->all_made && i < r->states * r->program->layers; ++i) {
        made *m = &r->all_made[i];
        qn__free(m->z);
        qn__free(m->y);
        qn__free(m->next);
        qn__free(m->delta);
        qn__free(m->dropped);
    }
    qn__free(r->values);
    qn__free(r->augment_space);
    qn__free(r->partner);
    qn__free(r->other);
    qn__free(r->mixing);
    qn__free(r->answers);
    qn__free(r->shown_space);
    qn__free(r->e);
    qn__free(r->f);
    qn__free(r->sums);
    for (uint32_t l = 0; l < QN__MAX_LAYERS; ++l) {
        qn__free(r->kept[l].inputs);
        qn__free(r->kept[l].deltas);
        qn__free(r->kept[l].results);
    }
    qn__free(r->all_made);
    qn__free(r->all_x);
    qn__free(r->item);
    qn__free(r->weight);
    qn__free(r->partial);
    qn__free(r->units);
    qn__free(r);
}

/* 5.1: one input from its value, which is number k of the item. */
static float scaled(const qn__program *p, const qn__reference_item *item, uint32_t k) {
    const float v = (float)qn__element_of(item->type)->number(item->values, k);
    switch (p->scale) {
    case QN__SCALE_NONE:
    case QN__SCALE_CHANNEL: /* programs have none of these */
    case QN__SCALE_MINMAX:
    case QN__SCALE_ROBUST:
        break;
    case QN__SCALE_UNIT:
        return v / 255.0f;
    case QN__SCALE_STANDARD:
        return (v - p->mean[k]) * p->inverse[k];
    case QN__SCALE_FRACTION:
        return v / 256.0f;
    }
    return v;
}

/* 5.1, 16.2: data has the values of a channel one after the other, the network those of a pixel. */
void qn__reference_input(const qn__program *p, const qn__reference_item *item, float *x) {
    const qn__shape from = p->layer[0].from;
    const uint32_t pixels = from.height * from.width;
    for (uint32_t at = 0; at < pixels; ++at)
        for (uint32_t c = 0; c < from.channels; ++c)
            x[at * from.channels + c] = scaled(p, item, c * pixels + at);
}

/* 24.10. A NaN stays, and so it does in the other functions. */
static float hardsigmoid(float z) {
    const float t = z + 3.0f, above = t < 0.0f ? 0.0f : t;
    return (above > 6.0f ? 6.0f : above) * 0x1.555556p-3f;
}

static float hardswish_slope(float z) {
    if (z <= -3.0f)
        return 0.0f;
    if (z >= 3.0f)
        return 1.0f;
    const float third = z * 0x1.555556p-2f;
    return third + 0.5f;
}

/* 6.4, the others */
static float activated(qn__activation activation, float z) {
    switch (activation) {
    case QN__ACT_RELU:
        return z <= 0.0f ? 0.0f : z;
    case QN__ACT_TANH:
        return qn__tanh(z);
    case QN__ACT_SIGMOID:
        return qn__sigmoid(z);
    case QN__ACT_LEAKY_RELU:
        return z > 0.0f ? z : z * 0.01f;
    case QN__ACT_GELU:
        return qn__gelu(z);
    case QN__ACT_SILU:
        return qn__silu(z);
    case QN__ACT_GELU_TANH:
        return qn__gelu_tanh(z);
    case QN__ACT_RELU6:
        return z <= 0.0f ? 0.0f : z > 6.0f ? 6.0f : z;
    case QN__ACT_HARDSWISH:
        return z * hardsigmoid(z);
    case QN__ACT_HARDSIGMOID:
        return hardsigmoid(z);
    case QN__ACT_NONE:
    case QN__ACT_SOFTMAX:
        break;
    }
    return z;
}

/* 6.4 */
static void activate(qn__reference *r, const qn__layer *l, const float *z, float *y) {
    if (l->activation == QN__ACT_SOFTMAX) {
        qn__reference_softmax(l->out, z, y, &r->max, &r->sum);
        return;
    }
    for (uint32_t o = 0; o < l->out; ++o)
        y[o] = activated(l->activation, z[o]);
}

/* 6.5, 24.33. With `item` NULL there is no dropout. */
static void drop(const qn__program *p, uint32_t layer, const qn__reference_item *item,
                 uint32_t epoch, made *m) {
    const qn__layer *l = &p->layer[layer];
    for (uint32_t o = 0; o < l->out; ++o) {
        m->dropped[o] = 0;
        m->next[o] = m->y[o];
        if (!item || l->drop_threshold == 0)
            continue;
        uint32_t word[4];
        const uint32_t element = l->drop_path ? 0 : o;
        qn__words(p->seed, QN__PURPOSE_DROPOUT, p->number + layer, epoch, item->number, element / 4,
                  word);
        m->dropped[o] = word[element % 4] < l->drop_threshold;
        m->next[o] = m->dropped[o] ? 0.0f : m->y[o] * l->drop_keep;
    }
}

/* The output that a layer reads for the current item; -1: the network's input. */
static const float *output_of(const qn__reference *r, int32_t source) {
    return source < 0 ? r->x : r->made[source].next;
}

static const float *input_of(const qn__reference *r, uint32_t layer) {
    return output_of(r, qn__layer_source(r->program->layer, layer));
}

/* 6.4, 6.5: what follows z. In a prediction `item` is NULL. */
static void finish_layer(qn__reference *r, uint32_t layer, const qn__reference_item *item,
                         uint32_t epoch) {
    made *m = &r->made[layer];
    if (r->program->answers && layer + 1 == r->program->layers)
        qn__answers_outputs(r->program, m->z, m->y);
    else
        activate(r, &r->program->layer[layer], m->z, m->y);
    drop(r->program, layer, item, epoch, m);
}

/* 6.3 */
static void forward_layer(qn__reference *r, const float *parameters, uint32_t layer) {
    const qn__layer own = qn__layer_of_item(r->program->layer, layer, r->x), *l = &own;
    const qn__layer_ops *ops = qn__layer_ops_of(l->kind);
    float *z = r->made[layer].z;
    ops->forward(l, qn__program_bits(r->program, l), parameters, input_of(r, layer), z);
    if (ops->join)
        ops->join(l, output_of(r, qn__layer_other(r->program->layer, layer)), z);
}

const float *qn__reference_apply(qn__reference *r, const float *parameters,
                                 const qn__reference_item *item) {
    select_state(r, 0);
    qn__reference_input(r->program, item, r->x);
    for (uint32_t l = 0; l < r->program->layers; ++l) {
        forward_layer(r, parameters, l);
        finish_layer(r, l, NULL, 0);
    }
    return r->made[r->program->layers - 1].y;
}

void qn__reference_last_inputs(const qn__reference *r, float *to) {
    const qn__shape from = r->program->layer[r->program->layers - 1].from;
    const float *x = input_of(r, r->program->layers - 1);
    const uint32_t pixels = from.height * from.width;
    for (uint32_t at = 0; at < pixels; ++at)
        for (uint32_t c = 0; c < from.channels; ++c)
            to[c * pixels + at] = x[at * from.channels + c];
}

/* 6.6 */
int32_t qn__reference_class(const qn__reference *r) {
    const uint32_t last = r->program->layers - 1;
    const float *y = r->made[last].y;
    uint32_t absmax = 0;
    if (r->program->answers)
        return 0;
    if (r->program->loss == QN__LOSS_BINARY)
        return y[0] > 0.5f;
    for (uint32_t j = 1; j < r->program->layer[last].out; ++j)
        if (y[j] > y[absmax])
            absmax = j;
    return (int32_t)absmax;
}

float qn__reference_score(const qn__reference *r) {
    const float *y = r->made[r->program->layers - 1].y;
    const int32_t class = qn__reference_class(r);
    if (r->program->loss == QN__LOSS_BINARY)
        return class ? y[0] : 1.0f - y[0];
    return y[class];
}

/* 7.1 */
static float target(const qn__program *p, uint32_t j, uint32_t label) {
    float value;
    if (p->loss == QN__LOSS_BINARY)
        return (float)label;
    if (!p->real)
        return j == label ? 1.0f : 0.0f;
    memcpy(&value, &label, sizeof value);
    return value;
}

/* 7.2, 7.3, 7.6 */
static float own_loss(const qn__reference *r, uint32_t label) {
    const uint32_t last = r->program->layers - 1;
    const made *m = &r->made[last];
    float loss = 0.0f;
    if (r->program->loss == QN__LOSS_CROSS_ENTROPY)
        return qn__log(r->sum) - (m->z[label] - r->max);
    if (r->program->loss == QN__LOSS_BINARY)
        return qn__reference_loss_binary(m->z[0], label);
    for (uint32_t j = 0; j < r->program->layer[last].out; ++j)
        loss = qn__reference_loss_chain(r->program, m->y[j] - target(r->program, j, label), loss);
    return loss;
}

static float weight_of(const qn__reference_item *item) {
    return item->weight ? *item->weight : 1.0f;
}

/* The targets of the current item, where it has several. */
static qn__targets targets_of(const qn__reference *r, const qn__reference_item *item) {
    return (qn__targets){.bytes = r->program->next ? NULL : item->answers,
                         .values = r->x,
                         .tokens = qn__program_classes(r->program)};
}

/* 7.7 */
float qn__reference_loss(const qn__reference *r, const qn__reference_item *item) {
    const made *m = &r->made[r->program->layers - 1];
    const qn__targets targets = targets_of(r, item);
    uint64_t right = 0;
    const float loss = r->program->answers
                           ? qn__answers_loss(r->program, m->z, m->y, &targets, &right)
                           : own_loss(r, item->label);
    return loss * weight_of(item);
}

uint64_t qn__reference_right(const qn__reference *r, const qn__reference_item *item) {
    const made *m = &r->made[r->program->layers - 1];
    const qn__targets targets = targets_of(r, item);
    uint64_t right = 0;
    if (!r->program->answers)
        return !r->program->real && (uint32_t)qn__reference_class(r) == item->label;
    qn__answers_loss(r->program, m->z, m->y, &targets, &right);
    return right;
}

/* 8.5, 17.2, 24.10: the error e, before the activation of z whose output is y. */
static float derive(qn__activation activation, float z, float y, float e) {
    switch (activation) {
    case QN__ACT_RELU:
        return y > 0.0f ? e : 0.0f;
    case QN__ACT_TANH:
        return e * fmaf(-y, y, 1.0f);
    case QN__ACT_SIGMOID:
        return e * (y * (1.0f - y));
    case QN__ACT_LEAKY_RELU:
        return y > 0.0f ? e : e * 0.01f;
    case QN__ACT_GELU:
        return e * qn__gelu_slope(z);
    case QN__ACT_SILU:
        return e * qn__silu_slope(z);
    case QN__ACT_GELU_TANH:
        return e * qn__gelu_tanh_slope(z);
    case QN__ACT_RELU6:
        return y > 0.0f && y < 6.0f ? e : 0.0f;
    case QN__ACT_HARDSWISH:
        return e * hardswish_slope(z);
    case QN__ACT_HARDSIGMOID:
        return y > 0.0f && y < 1.0f ? e * 0x1.555556p-3f : 0.0f;
    case QN__ACT_NONE:
    case QN__ACT_SOFTMAX: /* 8.3 handles it */
        break;
    }
    return e;
}

/* 8.2, 8.3: delta of the last layer. */
static void last_error(qn__reference *r, const qn__reference_item *item, uint64_t state) {
    const qn__program *p = r->program;
    const qn__layer *l = &p->layer[p->layers - 1];
    const made *m = &r->made[p->layers - 1];
    const float scale = ldexpf(weight_of(item), (int)p->gradient_scale);
    const float *y = m->y;
    const int smooth = p->loss == QN__LOSS_CROSS_ENTROPY;
    const int through = !smooth && p->loss != QN__LOSS_BINARY;
    float *delta = m->delta, c = 0.0f;
    const qn__targets targets = targets_of(r, item);
    if (p->answers)
        qn__answers_errors(p, y, &targets, scale, delta);
    for (uint32_t j = 0; j < l->out && !p->answers; ++j) {
        float own = smooth ? qn__smoothed_target(p, j == item->label) /* 17.3 */
                           : target(p, j, item->label);
        if (p->mix) /* 24.57 */
            own = qn__mix_two(&r->mixing[state], own, qn__smoothed_target(p, j == r->other[state]));
        const float d = y[j] - own;
        delta[j] = (through ? qn__reference_loss_slope(p, d) : d) * scale;
    }
    if (!through)
        return;
    for (uint32_t j = 0; j < l->out; ++j)
        c = fmaf(delta[j], y[j], c);
    for (uint32_t j = 0; j < l->out; ++j)
        delta[j] = l->activation == QN__ACT_SOFTMAX
                       ? y[j] * (delta[j] - c)
                       : derive(l->activation, m->z[j], y[j], delta[j]);
}

/* The error e of layer `source`, from one that reads it. Of two the main path's is last (17.7). */
static void give_error(qn__reference *r, int32_t source, const float *e) {
    made *m = &r->made[source];
    for (uint32_t k = 0; k < r->program->layer[source].out; ++k)
        m->delta[k] = m->has_error ? e[k] + m->delta[k] : e[k];
    m->has_error = 1;
}

/* 8.4: the errors of what `layer` reads. Only the shortcut of a block may be the network's input.
 */
static void pass_errors(qn__reference *r, const float *parameters, uint32_t layer) {
    const qn__layer own = qn__layer_of_item(r->program->layer, layer, r->x), *l = &own;
    const qn__layer_ops *ops = qn__layer_ops_of(l->kind);
    const int32_t source = qn__layer_source(r->program->layer, layer);
    const int32_t other = ops->join ? qn__layer_other(r->program->layer, layer) : -1;
    const int32_t first = (int32_t)r->program->frozen;
    if (source < first)
        return;
    if (ops->backward_both)
        ops->backward_both(l, input_of(r, layer),
                           output_of(r, qn__layer_other(r->program->layer, layer)),
                           r->made[layer].delta, r->e, r->f);
    else
        ops->backward(l, qn__program_bits(r->program, l), parameters, input_of(r, layer),
                      r->made[layer].delta, r->sums, r->e);
    give_error(r, source, r->e);
    if (other >= first)
        give_error(r, other, ops->backward_both ? r->f : r->e);
}

/* 8.4, 8.5: delta of a layer from its error. */
static void finish_error(qn__reference *r, uint32_t layer) {
    const qn__layer *l = &r->program->layer[layer];
    made *m = &r->made[layer];
    for (uint32_t k = 0; k < l->out; ++k) {
        float *e = &m->delta[k];
        if (l->drop_threshold != 0)
            *e = m->dropped[k] ? 0.0f : *e * l->drop_keep;
        *e = derive(l->activation, m->z[k], m->y[k], *e);
    }
    m->has_error = 0;
}

/* 8.6. With integers (15.6) the weights of products are not summed here. */
static void make_partials(qn__reference *r) {
    const qn__program *p = r->program;
    memset(r->partial, 0, (p->parameters + qn__program_tied(p)) * sizeof *r->partial);
    for (uint32_t l = p->frozen; l < p->layers; ++l) {
        const qn__layer *layer = &p->layer[l];
        const qn__layer_ops *ops = qn__layer_ops_of(layer->kind);
        const kept *k = &r->kept[l];
        if (!qn__program_trains(p, l))
            continue;
        if (layer->depth > 0 && !ops->unroll)
            qn__product_biases(layer, r->items, k->deltas, r->partial + layer->biases);
        if (ops->gradient && qn__layer_bits(p->arith, layer) == 0)
            ops->gradient(layer, r->items, k->inputs, k->deltas,
                          r->partial +
                              (layer->tied && layer->depth ? p->parameters : layer->weights));
    }
}

/* ------------------------------------------------------------------------------- the grain's items
 *
 * `count` items, numbers first .. of the grain, go through the layers together; item first + i has
 * state i. That is one item, or a whole grain. */

typedef struct part {
    uint64_t first, count;
} part;

/* One layer forward; its inputs are kept for the gradient (8.6, 15.6). One that does not train
 * computes as in a prediction (24.61). */
static void part_forward(qn__reference *r, const float *parameters, uint32_t layer, part at) {
    const qn__layer *l = &r->program->layer[layer];
    const int whole = over_grain(l) && layer >= r->program->frozen;
    kept *k = &r->kept[layer];
    for (uint64_t i = 0; i < at.count; ++i) {
        select_state(r, i);
        memcpy(k->inputs + (at.first + i) * l->in, input_of(r, layer), l->in * sizeof(float));
        if (!whole)
            forward_layer(r, parameters, layer);
    }
    if (whole)
        qn__layer_ops_of(l->kind)->forward_grain(l, parameters, at.count, k->inputs, k->results);
    for (uint64_t i = 0; i < at.count; ++i) {
        select_state(r, i);
        if (whole)
            memcpy(r->made[layer].z, k->results + i * l->out, l->out * sizeof(float));
        finish_layer(r, layer, &r->item[i], r->epoch);
        if (layer + 1 < r->program->layers)
            continue;
        const int mixed = r->program->mix && !r->program->answers;
        const float lost = qn__reference_loss(r, &r->item[i]);
        r->loss = r->loss + (mixed ? qn__mix_two(&r->mixing[i], lost, own_loss(r, r->other[i]))
                                   : lost); /* 7.4, 24.57 */
        r->correct += qn__reference_right(r, &r->item[i]);
        last_error(r, &r->item[i], i);
    }
}

static void unroll(qn__reference *r, const float *parameters, uint32_t layer, uint64_t item) {
    const qn__layer own = qn__layer_of_item(r->program->layer, layer, r->x);
    const kept *k = &r->kept[layer];
    if (qn__layer_ops_of(own.kind)->unroll)
        qn__layer_ops_of(own.kind)->unroll(&own, parameters, k->inputs + item * own.in,
                                           k->deltas + item * own.out, r->sums, r->e);
}

/* One layer backward; its errors are kept. */
static void part_backward(qn__reference *r, const float *parameters, uint32_t layer, part at) {
    const qn__layer *l = &r->program->layer[layer];
    const int32_t source = qn__layer_source(r->program->layer, layer);
    const int32_t first = (int32_t)r->program->frozen;
    kept *k = &r->kept[layer];
    for (uint64_t i = 0; i < at.count; ++i) {
        select_state(r, i);
        if (layer + 1 < r->program->layers)
            finish_error(r, layer);
        memcpy(k->deltas + (at.first + i) * l->out, r->made[layer].delta, l->out * sizeof(float));
        if (source >= first && !over_grain(l))
            pass_errors(r, parameters, layer);
        unroll(r, parameters, layer, at.first + i);
    }
    if (source < first || !over_grain(l))
        return;
    qn__layer_ops_of(l->kind)->backward_grain(l, parameters, at.count, k->inputs, k->deltas,
                                              k->results);
    for (uint64_t i = 0; i < at.count; ++i) {
        select_state(r, i);
        give_error(r, source, k->results + i * l->in);
    }
}

static void run_part(qn__reference *r, const float *parameters, part at) {
    for (uint32_t l = 0; l < r->program->layers; ++l)
        part_forward(r, parameters, l, at);
    for (uint32_t l = r->program->layers; l-- > r->program->frozen;)
        part_backward(r, parameters, l, at);
}

void qn__reference_grain_begin(qn__reference *r) {
    r->loss = 0.0f;
    r->correct = r->items = 0;
}

/* 17.10: the values of an item to `to`. */
static void augmented(const qn__reference *r, const qn__reference_item *item, uint32_t epoch,
                      char *to) {
    const qn__program *p = r->program;
    const size_t size = qn__element_of(item->type)->size;
    if (p->augment)
        qn__augment_item(p->augment, p->seed, epoch, item->number, size, item->values, to,
                         r->augment_space);
    else
        memcpy(to, item->values, p->layer[0].in * size);
}

/* 24.57: an item is mixed with its partner. */
static void mix(qn__reference *r, const qn__reference_item *item, const qn__reference_item *partner,
                uint32_t epoch, uint64_t state) {
    const qn__program *p = r->program;
    r->other[state] = partner->label;
    r->mixing[state] = qn__mix_of(p->mix, p->seed, epoch, item->number);
    augmented(r, partner, epoch, r->partner);
    qn__mix_values(p->mix, &r->mixing[state], qn__element_of(item->type)->size, r->values,
                   r->partner);
}

/* 24.22, 24.23: the item of a state has targets, and a share, of its own. */
static void show_answers(qn__reference *r, const qn__reference_item *partner, uint32_t epoch,
                         uint64_t state) {
    const qn__program *p = r->program;
    qn__reference_item *item = &r->item[state];
    uint8_t *to = r->answers + state * p->answers;
    const qn__masked own = {item->number, item->answers};
    const qn__masked other = partner ? (qn__masked){partner->number, partner->answers} : own;
    const uint64_t count = qn__shown(p, epoch, own, other, to, r->shown_space);
    item->answers = to;
    r->weight[state] = qn__answers_share(r->weight[state], count);
}

void qn__reference_grain_pair(qn__reference *r, const float *parameters,
                              const qn__reference_item *item, const qn__reference_item *partner,
                              uint32_t epoch) {
    const uint64_t state = r->over_grains ? r->items : 0;
    qn__reference_item shown = *item;
    select_state(r, state);
    if (r->program->augment || partner) {
        shown.values = r->values;
        augmented(r, item, epoch, r->values);
    }
    if (partner)
        mix(r, item, partner, epoch, state);
    qn__reference_input(r->program, &shown, r->x);
    r->weight[state] = weight_of(item);
    r->item[state] = *item;
    r->item[state].weight = &r->weight[state];
    if (r->program->moves_answers)
        show_answers(r, partner, epoch, state);
    r->parameters = parameters;
    r->epoch = epoch;
    if (!r->over_grains)
        run_part(r, parameters, (part){r->items, 1});
    r->items += 1;
}

void qn__reference_grain_item(qn__reference *r, const float *parameters,
                              const qn__reference_item *item, uint32_t epoch) {
    qn__reference_grain_pair(r, parameters, item, NULL, epoch);
}

/* 15.6: the weights of all layers, to `sums`, tied ones last. 0: a partial is out of range. */
static int intgemm_partials(const qn__reference *r, int64_t *sums) {
    const qn__program *p = r->program;
    for (uint32_t l = p->frozen; l < p->layers; ++l) {
        const qn__layer *layer = &p->layer[l];
        const int bits = qn__layer_bits(p->arith, layer);
        if (bits && qn__program_trains(p, l) &&
            !qn__layer_ops_of(layer->kind)
                 ->intgemm_gradient(bits, layer, r->items, r->kept[l].inputs, r->kept[l].deltas,
                                    p->partial_limit,
                                    sums + (layer->tied ? p->parameters : layer->weights)))
            return 0;
    }
    return 1;
}

/* 7.4, 8.7. The comparisons are false for a NaN. */
qn__grain_end qn__reference_grain_end(qn__reference *r, int64_t *sums, qn__tally *tally) {
    const uint64_t count = r->program->parameters, tied = qn__program_tied(r->program);
    if (r->over_grains)
        run_part(r, r->parameters, (part){0, r->items});
    make_partials(r);
    if (!(fabsf(r->loss) < QN__LOSS_LIMIT))
        return QN__GRAIN_LOSS;
    for (uint64_t i = 0; i < count + tied; ++i) {
        if (!(fabsf(r->partial[i]) < r->program->partial_limit))
            return QN__GRAIN_GRADIENT;
        r->units[i] = qn__to_units(r->partial[i]);
    }
    if (qn__arith_bits(r->program->arith) && !intgemm_partials(r, r->units))
        return QN__GRAIN_GRADIENT;
    const qn__tally grain = {
        .loss = qn__to_units(r->loss * QN__LOSS_UNIT), .correct = r->correct, .items = r->items};
    if (qn__tally_add(tally, &grain) != 0)
        return QN__GRAIN_LOSS;
    for (uint64_t i = r->program->frozen_parameters; i < count; ++i)
        sums[qn__program_sum(r->program, i)] += r->units[i];
    for (uint64_t i = 0; i < tied; ++i) /* both partials (25.15) */
        sums[i] += r->units[count + i];
    return QN__GRAIN_FINE;
}

/* The blocks of 15.4 to 15.6 and 25.24 of one layer, if it has integer products. z may be
 * overwritten: its results have been used. */
static void lost_in_layer(qn__reference *r, const float *parameters, uint32_t layer,
                          qn__lost_kinds *to) {
    const qn__layer *l = &r->program->layer[layer];
    const int bits = qn__layer_bits(r->program->arith, l);
    const int reads_layer = qn__layer_source(r->program->layer, layer) >= 0;
    const made *m = &r->made[layer];
    const kept *k = &r->kept[layer];
    const float *w = parameters + qn__layer_matrix(l);
    if (bits == 0)
        return;
    const int each = qn__layer_has_position_blocks(l);
    qn__lost_blocks(bits, r->items * l->in, each ? l->from.channels : l->in, k->inputs,
                    reads_layer ? &to->activations : &to->inputs);
    for (uint32_t o = 0; o < l->to.channels; ++o, w += l->depth) {
        const float factor = qn__block_factor(qn__block_exponent(bits, qn__absmax(l->depth, w, 1)));
        qn__lost_block(bits, l->depth, w, &to->weights);
        m->z[o] = factor;
    }
    qn__lost_block(bits, r->items * l->in, k->inputs,
                   reads_layer ? &to->grain_activations : &to->grain_inputs);
    qn__lost_block(bits, r->items * l->out, k->deltas, &to->grain_errors);
    /* There are no errors of the network's input. The kept errors are no longer needed and are
     * overwritten. */
    for (uint64_t i = 0; reads_layer && i < r->items; ++i) {
        float *c = k->deltas + i * l->out;
        for (uint32_t o = 0, channel = 0; o < l->out; ++o) {
            c[o] = c[o] * m->z[channel];
            channel = channel + 1 < l->to.channels ? channel + 1 : 0;
        }
        qn__lost_blocks(bits, l->out, each ? l->to.channels : l->out, c, &to->errors);
    }
}

void qn__reference_lost(qn__reference *r, const float *parameters, qn__lost_kinds *losses) {
    if (r->over_grains)
        run_part(r, parameters, (part){0, r->items});
    for (uint32_t l = 0; l < r->program->layers; ++l)
        lost_in_layer(r, parameters, l, losses);
}

const float *qn__reference_partials(const qn__reference *r) { return r->partial; }
