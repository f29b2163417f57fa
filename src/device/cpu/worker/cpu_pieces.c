/* The parameters after a layer's weights, 16 at a time: biases, and those of a normalisation. */
#include "device/cpu/worker/cpu_worker.h"
#include "num/optimise.h"

void qn__cpu_average(const qn__worker *w, const qn__update *update, size_t count, const float *x,
                     float *const *slot, size_t at) {
    const int average = qn__program_average(w->program);
    if (average >= 0)
        w->kernels->average(count, update->average, x, slot[average] + at);
}

qn__cpu_piece qn__cpu_piece_at(const qn__cpu_layer *l, uint32_t panel, uint32_t index) {
    const uint32_t channels = l->layer->to.channels, left = channels - panel * QN__PANEL;
    const uint32_t vector = index / l->vector_pixels, pixel = index % l->vector_pixels;
    const uint64_t canonical = ((uint64_t)vector * l->vector_pixels + pixel) * channels;
    return (qn__cpu_piece){.at = vector * l->vector +
                                 ((size_t)panel * l->vector_pixels + pixel) * QN__PANEL,
                           .canonical = l->layer->biases + canonical + (uint64_t)panel * QN__PANEL,
                           .columns = left < QN__PANEL ? left : QN__PANEL,
                           .running = l->layer->biases + canonical >= qn__layer_running(l->layer)};
}

void qn__cpu_update_pieces(const qn__worker *w, const qn__update *update, const qn__cpu_layer *l,
                           size_t at, size_t count, const int64_t *sums) {
    const qn__update own = qn__update_of(update, l->layer);
    w->kernels->update(w->program, &own, qn__others_decay(w->program, l->layer), count,
                       QN__SUMS_INT64, sums, l->bias + at,
                       w->slots > 0 ? l->bias_slot[0] + at : NULL,
                       w->slots > 1 ? l->bias_slot[1] + at : NULL, NULL);
    qn__cpu_average(w, &own, count, l->bias + at, l->bias_slot, at);
}

void qn__cpu_update_piece(const qn__worker *w, const qn__update *update, const qn__cpu_layer *l,
                          const qn__cpu_piece *p, const int64_t *sums) {
    if (!p->running) {
        qn__cpu_update_pieces(w, update, l, p->at, QN__PANEL, sums);
        return;
    }
    const qn__update own = qn__update_of(update, l->layer);
    for (uint32_t o = 0; o < p->columns; ++o)
        qn__update_running(update, l->layer->running_rate, sums[o], l->bias + p->at + o);
    qn__cpu_average(w, &own, QN__PANEL, l->bias + p->at, l->bias_slot, p->at);
}
