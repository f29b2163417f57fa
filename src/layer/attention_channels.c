/* What attention with floats and with integers does alike with the channels of a head. */
#include "layer/attention.h"

void qn__attention_clear_rest(const qn__layer *l, uint32_t first, float *z, qn__attended out) {
    const uint32_t width = qn__attention_width(l);
    for (uint32_t t = qn__layer_positions(l); t < l->from.height * l->from.width; ++t)
        for (uint32_t c = first; c < first + width; ++c)
            z[qn__attended_at(out, t, c)] = 0.0f;
}

void qn__attention_scale_errors(const qn__layer *l, uint32_t first, float factor, float *e,
                                qn__attended to) {
    const uint32_t width = qn__attention_width(l);
    for (uint32_t t = 0; t < l->from.height * l->from.width; ++t)
        for (uint32_t c = first; c < first + width; ++c) {
            float *own = &e[qn__attended_at(to, t, c)];
            *own = factor != 0.0f ? *own * factor : 0.0f;
            *own = *own + 0.0f;
        }
}
