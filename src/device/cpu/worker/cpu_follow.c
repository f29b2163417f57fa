/* Predictions: layers that change each number by itself follow the layer that they read, while its
 * outputs are in the L1 cache. They are computed in place, and a barrier less is waited for. */
#include "device/cpu/worker/cpu_worker.h"

static int changes_each(const qn__layer *layer) {
    return layer->kind == QN__LAYER_BATCHNORM || layer->kind == QN__LAYER_ADD;
}

/* How many layers read the outputs of `of`. */
static int readers(const qn__worker *w, const qn__cpu_layer *of) {
    int count = 0;
    for (uint32_t i = 0; i < w->program->layers; ++i) {
        const qn__cpu_layer *l = &w->layer[i];
        count += l->below == of;
        count += l->other == of;
    }
    return count;
}

void qn__cpu_find_followers(qn__worker *w) {
    for (uint32_t i = 0; i + 1 < w->program->layers; ++i) {
        qn__cpu_layer *l = &w->layer[i];
        const qn__cpu_layer *next = l + 1;
        const int begins = l->walks && !l->layer->vectors;
        l->followed = (begins || (i > 0 && w->layer[i - 1].followed)) &&
                      changes_each(next->layer) && readers(w, l) == 1 &&
                      (next->below == l || next->other == l);
    }
}

/* What the add reads beside layer l. */
static const float *other_of(const qn__cpu_pass *pass, const qn__cpu_layer *l,
                             const qn__cpu_layer *add) {
    return add->below == l ? qn__cpu_second(pass, add) : qn__cpu_input(pass, add);
}

/* 17.7, in place. Only the sum of two -0 is -0. */
static void add_other(const qn__cpu_pass *pass, const qn__cpu_layer *l, size_t at, size_t count,
                      float *out) {
    const qn__cpu_kernels *k = pass->worker->kernels;
    k->add(count, other_of(pass, l, l + 1) + at, out);
    k->scale(count, 1.0f, out);
}

/* A batchnorm, and the add after it where nothing is between them. Returns the last layer. */
static uint32_t normalise(const qn__cpu_pass *pass, uint32_t norm, uint32_t panel, size_t at,
                          uint32_t rows, int *plain, float *out) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[norm];
    const int joins = l->norm.add == l + 1 && qn__cpu_is_followed(pass, l);
    const uint32_t last = norm + (uint32_t)joins;
    const size_t vector = (size_t)panel * QN__PANEL;
    *plain = qn__cpu_is_plain(pass, last, panel);
    w->kernels->normalise(rows, out, w->nothing, l->norm.factor + vector, l->norm.rest + vector,
                          joins ? other_of(pass, l, l + 1) + at : NULL,
                          *plain && w->layer[last].layer->activation == QN__ACT_RELU, out);
    return last;
}

void qn__cpu_follow(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t panel,
                    uint32_t first, uint32_t rows, float *out) {
    const qn__worker *w = pass->worker;
    const size_t at = panel * w->layer[layer].out_stride + (size_t)first * QN__PANEL;
    qn__cpu_after_product(pass, thread, layer, panel, first, rows, out);
    while (qn__cpu_is_followed(pass, &w->layer[layer])) {
        int plain = 0;
        if (w->layer[layer + 1].layer->kind == QN__LAYER_ADD) {
            add_other(pass, &w->layer[layer], at, (size_t)rows * QN__PANEL, out);
            ++layer;
        } else
            layer = normalise(pass, layer + 1, panel, at, rows, &plain, out);
        if (!plain)
            qn__cpu_after_product(pass, thread, layer, panel, first, rows, out);
    }
}
