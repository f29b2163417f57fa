/* batchnorm: the sums b and g of a grain's errors in a pixel (docs/exactness.md 17.8). Whoever
 * computes errors of whole grains makes them at once, while the errors are in the L1 cache. */
#include "device/cpu/worker/cpu_kinds.h"
#include "device/cpu/worker/cpu_norms.h"
#include "layer/layer.h"

/* Sums of the errors stand after these. Those of features would be as large, and in integer
 * arithmetic errors do not share memory. Blocks in blocks may share the errors of more than two.
 * Inputs that are computed again may come only after the errors. */
void qn__cpu_norm_size(const qn__worker *w, qn__cpu_layer *l) {
    qn__cpu_layer *own = &w->layer[l->error_of];
    const qn__program *p = w->program;
    const size_t grains = (qn__program_part(p) + p->grain - 1) / p->grain;
    const size_t pixels = (size_t)l->out_panels * l->out_pixels;
    size_t bytes;
    if (w->bits || l->out_pixels == 1 || own->sums[1] || p->recompute)
        return;
    l->norm.sums_at = own->error_place.bytes;
    if (__builtin_mul_overflow(grains * 2 * QN__PANEL * sizeof(float), pixels, &bytes) ||
        __builtin_add_overflow(own->error_place.bytes, bytes, &own->error_place.bytes))
        own->error_place.bytes = SIZE_MAX;
    own->sums[own->sums[0] != NULL] = l;
}

/* Whether each run has whole grains. */
static int has_whole_grains(const qn__cpu_walk *walk, uint32_t items, uint32_t grain) {
    for (uint32_t i = 1; i < walk->parts; ++i)
        if ((uint64_t)items * i / walk->parts % grain != 0)
            return 0;
    return 1;
}

/* Whether who computes the errors of `own` has whole grains of a pixel at a time. */
static int come_in_grains(const qn__worker *w, const qn__cpu_layer *own, uint32_t items) {
    for (uint32_t i = 0; i < w->program->layers; ++i) {
        const qn__cpu_layer *l = &w->layer[i];
        if (qn__layer_joins(l->layer) && (l->below == own || (l->other == own && l->layer->skip)))
            return 0;
        if (l->below != own || l->branch)
            continue;
        const int walks = l->kind->whole_rows && l->inputs.panels;
        if (!(l->norm.sums_at || walks) ||
            (walks && !has_whole_grains(&l->inputs, items, w->program->grain)))
            return 0;
    }
    return 1;
}

void qn__cpu_norm_begin(qn__worker *w, uint32_t items) {
    for (uint32_t i = 0; i < w->program->layers; ++i) {
        qn__cpu_layer *l = &w->layer[i];
        l->norm.summed = l->norm.sums_at && come_in_grains(w, &w->layer[l->error_of], items);
        if (l->norm.sums_at && l->below && l->below->bias_partials)
            l->below->summed = l->norm.summed && qn__cpu_norm_passes_all(w, l);
    }
}

float *qn__cpu_norm_sums_of(const qn__cpu_pass *pass, const qn__cpu_layer *l, uint32_t panel,
                            uint32_t grain) {
    const uint32_t size = pass->worker->program->grain, items = pass->batch->items;
    const size_t grains = (items - 1) / size + 1;
    return l->norm.sums + (panel * grains + grain) * l->out_pixels * 2 * QN__PANEL;
}

uint32_t qn__cpu_norm_slopes(const qn__cpu_pass *pass, const qn__cpu_layer *own, uint32_t panel,
                             uint32_t first, uint32_t rows, uint32_t *count,
                             qn__cpu_slopes norm[2]) {
    const uint32_t items = pass->batch->items, size = pass->worker->program->grain;
    const uint32_t pixel = first / items, item = first % items, grain = item / size;
    const size_t grains = (items - 1) / size + 1, at = (size_t)first * QN__PANEL;
    uint32_t norms = 0;
    for (int i = 0; i < 2 && own->sums[i]; ++i) {
        const qn__cpu_layer *l = own->sums[i];
        if (!l->norm.summed)
            continue;
        norm[norms++] = (qn__cpu_slopes){l->input + panel * l->in_stride + at,
                                         l->norm.mean + (panel * grains + grain) * QN__PANEL,
                                         qn__cpu_norm_sums_of(pass, l, panel, grain) +
                                             (size_t)pixel * 2 * QN__PANEL};
    }
    *count = norms == 0 ? rows : items - item < size ? items - item : size;
    return norms;
}
