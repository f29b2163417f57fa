/* Predictions: layers that change each number by itself follow the layer that they read, in place,
 * while its outputs are in the L1 cache:
 *
 *     conv -> batchnorm -> add -> ...     one task: 16 channels of some pixels go through all three
 *
 * So the arrays of the layers between are neither written nor read, and all cores wait for each
 * other once less for each layer. Training keeps these arrays: the backward pass reads them. */
#include "device/cpu/worker/cpu_kinds.h"
#include <string.h>

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
        l->followed = (l->kind->leads || (i > 0 && w->layer[i - 1].followed)) &&
                      next->kind->follow && readers(w, l) == 1 &&
                      (next->below == l || next->other == l);
    }
}

uint32_t qn__cpu_lead(const qn__cpu_pass *pass, uint32_t layer, uint32_t panel, uint32_t panels,
                      uint32_t first, qn__cpu_after *after) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const uint32_t end = panel + panels - 1;
    const size_t at = panel * l->out_stride + (size_t)first * QN__PANEL;
    int plain = 0;
    *after = (qn__cpu_after){0};
    if (!qn__cpu_is_followed(pass, l) || !l[1].kind->after ||
        l->layer->activation != QN__ACT_NONE || !qn__cpu_is_plain(pass, layer, end))
        return layer;
    const uint32_t last = l[1].kind->after(pass, layer + 1, panel, at, &plain, after);
    if (plain && qn__cpu_is_plain(pass, last, end))
        return last;
    *after = (qn__cpu_after){0};
    return layer;
}

void qn__cpu_follow_from(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t done,
                         uint32_t panel, uint32_t first, uint32_t rows, float *out) {
    const qn__worker *w = pass->worker;
    const size_t at = panel * w->layer[layer].out_stride + (size_t)first * QN__PANEL;
    if (done == layer)
        qn__cpu_after_product(pass, thread, layer, panel, first, rows, out);
    while (qn__cpu_is_followed(pass, &w->layer[done])) {
        int plain;
        done = w->layer[done + 1].kind->follow(pass, done + 1, panel, at, rows, &plain, out);
        if (!plain)
            qn__cpu_after_product(pass, thread, done, panel, first, rows, out);
    }
}

void qn__cpu_follow(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t panel,
                    uint32_t first, uint32_t rows, float *out) {
    qn__cpu_follow_from(pass, thread, layer, layer, panel, first, rows, out);
}

static int all_finite(size_t count, const float *x) {
    uint32_t bits, most = 0;
    for (size_t i = 0; i < count; ++i) {
        memcpy(&bits, x + i, sizeof bits);
        bits &= 0x7f800000u;
        most = bits > most ? bits : most;
    }
    return most < 0x7f800000u;
}

void qn__cpu_fold_frozen(qn__worker *w) {
    for (uint32_t i = 0; i < w->program->frozen; ++i)
        if (w->layer[i].kind->fold)
            w->layer[i].kind->fold(&w->layer[i]);
    w->derived.folded = 0;
}

void qn__cpu_fold(qn__worker *w) {
    w->derived.finite = 1;
    for (uint32_t i = 0; i < w->program->layers; ++i) {
        const qn__cpu_layer *l = &w->layer[i];
        const size_t weights = (size_t)qn__cpu_blocks(l) * l->out_panels * QN__PANEL * QN__PANEL;
        w->derived.finite = w->derived.finite && (!l->few || all_finite(weights, l->weights));
        if (l->kind->fold)
            l->kind->fold(l);
    }
    w->derived.folded = 1;
}
