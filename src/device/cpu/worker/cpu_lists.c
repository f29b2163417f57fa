#include "device/cpu/worker/cpu_lists.h"

#include "base/memory.h"
#include "device/cpu/worker/cpu_worker.h"
#include "num/sums.h"
#include <math.h>
#include <string.h>

/* The last grain that had an input, from 1, and the input's number among those of that grain. */
typedef struct seen {
    uint32_t grain, at;
} seen;

/* What one thread adds to. The partials of a grain are close together, so that they stay in the
 * cache; what belongs to all inputs does not. */
struct qn__cpu_lists {
    int64_t *sum;           /* [input][output], then of the biases */
    float *partial;         /* [number in the grain][output] */
    seen *seen;             /* of each input */
    uint32_t *in_grain;     /* inputs that the grain has, by their numbers */
    uint32_t *in_sums;      /* inputs that the sums have */
    uint8_t *summed;        /* of each input: 1: it is in in_sums */
    uint32_t grains, count; /* count: of in_sums */
};

int qn__cpu_takes_lists(const qn__program *p) {
    return p->lists && p->layers == 1 && p->arith == QN__ARITH_F32 && !p->augment && !p->mix &&
           p->layer[0].kind == QN__LAYER_DENSE;
}

static void release(qn__cpu_lists *own) {
    qn__free(own->sum);
    qn__free(own->partial);
    qn__free(own->seen);
    qn__free(own->in_grain);
    qn__free(own->in_sums);
    qn__free(own->summed);
}

void qn__cpu_lists_free(qn__worker *w) {
    for (int t = 0; w->lists && t < w->threads; ++t)
        release(&w->lists[t]);
    qn__free(w->lists);
    w->lists = NULL;
}

static int make(const qn__layer *layer, qn__cpu_lists *own, qn_error *err) {
    const size_t in = layer->in, out = layer->out;
    return (own->sum = qn__alloc((in + 1) * out, sizeof *own->sum, err)) &&
           (own->partial = qn__alloc(in * out, sizeof *own->partial, err)) &&
           (own->seen = qn__alloc(in, sizeof *own->seen, err)) &&
           (own->in_grain = qn__alloc(in, sizeof *own->in_grain, err)) &&
           (own->in_sums = qn__alloc(in, sizeof *own->in_sums, err)) &&
           (own->summed = qn__alloc(in, sizeof *own->summed, err));
}

qn_status qn__cpu_lists_need(qn__worker *w, qn_error *err) {
    if (w->lists)
        return QN_OK;
    w->lists = qn__alloc((uint64_t)w->threads, sizeof *w->lists, err);
    for (int t = 0; w->lists && t < w->threads; ++t)
        if (!make(w->layer[0].layer, &w->lists[t], err)) {
            qn__cpu_lists_free(w);
            return QN_MEMORY;
        }
    return w->lists ? QN_OK : QN_MEMORY;
}

/* 5.1 */
static float scaled(const qn__worker *w, const qn__listed *pair) {
    return w->program->scale == QN__SCALE_STANDARD
               ? (pair->value - w->fetch.mean[pair->at]) * w->fetch.inverse[pair->at]
               : pair->value;
}

static const qn__list *list_of(const qn__cpu_pass *pass, uint32_t place) {
    const qn__worker *w = pass->worker;
    return qn__batch_values(pass->batch, place, w->fetch.item[w->fetch.current][place]);
}

/* ----------------------------------------------------------------------------------- the product
 */

/* One output with all inputs. */
static float whole_chain(const qn__worker *w, const qn__list *list, const float *weight,
                         float acc) {
    const qn__listed *pair = list->pair, *end = pair + list->count;
    for (uint32_t k = 0; k < w->layer[0].layer->in; ++k, weight += QN__PANEL) {
        const int listed = pair < end && pair->at == k;
        acc = fmaf(listed ? scaled(w, pair) : 0.0f, *weight, acc);
        pair += listed;
    }
    return acc;
}

static void product(const qn__worker *w, const qn__list *list, const float *weights,
                    const float *bias, uint32_t columns, float *to) {
    memcpy(to, bias, QN__PANEL * sizeof *to);
    for (const qn__listed *pair = list->pair, *end = pair + list->count; pair < end; ++pair) {
        const float x = scaled(w, pair), *row = weights + (size_t)pair->at * QN__PANEL;
        for (uint32_t o = 0; o < columns; ++o)
            to[o] = fmaf(x, row[o], to[o]);
    }
    for (uint32_t o = 0; o < columns; ++o)
        if (to[o] == 0.0f && signbit(to[o]))
            to[o] = whole_chain(w, list, weights + o, bias[o]);
}

void qn__cpu_lists_product(const qn__cpu_pass *pass, uint32_t first, uint32_t rows, uint32_t panel,
                           uint32_t panels) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[0];
    const size_t weights = (size_t)qn__cpu_blocks(l) * QN__PANEL * QN__PANEL;
    for (uint32_t i = first; i < first + rows; ++i) {
        const qn__list *list = list_of(pass, i);
        for (uint32_t p = panel; p < panel + panels; ++p) {
            const uint32_t left = l->layer->out - p * QN__PANEL;
            product(w, list, l->weights + p * weights, l->bias + (size_t)p * QN__PANEL,
                    left < QN__PANEL ? left : QN__PANEL,
                    l->output + p * l->out_stride + (size_t)i * QN__PANEL);
        }
    }
}

/* ---------------------------------------------------------------------------------- the gradient
 */

static float error_of(const qn__cpu_layer *l, uint32_t item, uint32_t o) {
    return l->error[o / QN__PANEL * l->out_stride + (size_t)item * QN__PANEL + o % QN__PANEL];
}

/* Adds a partial to a sum; returns 1 if it is out of range. */
static int add(const qn__worker *w, float partial, int64_t *sum) {
    if (!(fabsf(partial) < w->program->partial_limit))
        return 1;
    *sum += qn__to_units(partial);
    return 0;
}

/* The partials of the weights; the number of inputs that the grain has. */
static uint32_t sum_items(const qn__cpu_pass *pass, qn__cpu_lists *own, uint32_t first,
                          uint32_t end) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[0];
    const uint32_t out = l->layer->out;
    uint32_t count = 0;
    if (++own->grains == 0) { /* after 2^32 of them they are counted anew */
        memset(own->seen, 0, l->layer->in * sizeof *own->seen);
        own->grains = 1;
    }
    const uint32_t grain = own->grains;
    for (uint32_t i = first; i < end; ++i) {
        const qn__list *list = list_of(pass, i);
        for (uint64_t k = 0; k < list->count; ++k) {
            const qn__listed *pair = &list->pair[k];
            const float x = scaled(w, pair);
            seen *at = &own->seen[pair->at];
            if (at->grain != grain) {
                *at = (seen){grain, count};
                own->in_grain[count] = pair->at;
                memset(own->partial + (size_t)count++ * out, 0, out * sizeof *own->partial);
            }
            float *partial = own->partial + (size_t)at->at * out;
            for (uint32_t o = 0; o < out; ++o)
                partial[o] = fmaf(error_of(l, i, o), x, partial[o]);
        }
    }
    return count;
}

static int sum_biases(const qn__cpu_pass *pass, qn__cpu_lists *own, uint32_t first, uint32_t end) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[0];
    int bad = 0;
    for (uint32_t o = 0; o < l->layer->out && !l->layer->no_biases; ++o) {
        float partial = 0.0f;
        for (uint32_t i = first; i < end; ++i)
            partial = partial + error_of(l, i, o);
        bad |= add(w, partial, own->sum + (size_t)l->layer->in * l->layer->out + o);
    }
    return bad;
}

/* Returns 1 if a partial was out of range. */
static int sum_grain(const qn__cpu_pass *pass, qn__cpu_lists *own, uint32_t first, uint32_t end) {
    const qn__worker *w = pass->worker;
    const uint32_t out = w->layer[0].layer->out, count = sum_items(pass, own, first, end);
    int bad = sum_biases(pass, own, first, end);
    for (uint32_t j = 0; j < count; ++j) {
        const uint32_t k = own->in_grain[j];
        if (!own->summed[k]) {
            own->summed[k] = 1;
            own->in_sums[own->count++] = k;
        }
        for (uint32_t o = 0; o < out; ++o)
            bad |= add(w, own->partial[(size_t)j * out + o], own->sum + (size_t)k * out + o);
    }
    return bad;
}

void qn__cpu_lists_gradient(const qn__cpu_pass *pass, int thread, uint32_t phase) {
    qn__worker *w = pass->worker;
    const uint32_t items = pass->batch->items, grain = w->program->grain;
    const qn__cpu_grid grid = {(items - 1) / grain + 1, 1, 1};
    for (uint32_t g, row; qn__cpu_take(w, thread, phase, grid, &g, &row);) {
        const uint32_t first = g * grain, left = items - first;
        if (sum_grain(pass, &w->lists[thread], first, first + (left < grain ? left : grain)))
            qn__cpu_failed(&w->core[thread], 0);
    }
}

/* ------------------------------------------------------------------------------------------ sums
 */

static void collect(const qn__layer *layer, qn__cpu_lists *own, int64_t *to) {
    const size_t in = layer->in, out = layer->out;
    for (uint32_t j = 0; j < own->count; ++j) {
        const size_t k = own->in_sums[j];
        for (size_t o = 0; o < out; ++o) {
            if (to)
                to[o * in + k] += own->sum[k * out + o];
            own->sum[k * out + o] = 0;
        }
        own->summed[k] = 0;
    }
    for (size_t o = 0; o < out; ++o) {
        if (to && !layer->no_biases)
            to[in * out + o] += own->sum[in * out + o];
        own->sum[in * out + o] = 0;
    }
    own->count = 0;
}

void qn__cpu_lists_collect(qn__worker *w, int64_t *to) {
    for (int t = 0; w->lists && t < w->threads; ++t)
        collect(w->layer[0].layer, &w->lists[t], to);
}

void qn__cpu_lists_forget(qn__worker *w) { qn__cpu_lists_collect(w, NULL); }
