/* position sinusoid: sines and cosines of the position are added (Vaswani et al. 2017).
 * Neighbouring channels are a pair with one frequency. */
#include "layer/turned.h"
#include <string.h>

#define USUAL_BASE 10000.0f

uint32_t qn__turned_pairs(const qn__layer *l) {
    const uint32_t heads = l->heads ? l->heads + 2 * l->kv_heads : 1;
    return l->from.channels / heads / 2;
}

qn_status qn__turned_check(qn__shape from, qn_error *err) {
    const uint64_t positions = (uint64_t)from.height * from.width;
    if (positions <= QN__TURNED_POSITIONS)
        return QN_OK;
    return qn__remedy(err,
                      qn__fail(err, QN_USAGE, "%llu positions are too many for their angles",
                               (unsigned long long)positions),
                      "at most %d are computed: shorten the sequence, or make the picture smaller",
                      QN__TURNED_POSITIONS);
}

void qn__turned_table(const qn__layer *l, uint32_t first, uint32_t count, float *table) {
    const uint32_t pairs = qn__turned_pairs(l);
    for (uint32_t i = 0; i < pairs; ++i) {
        const float frequency = qn__turn_frequency(&l->turns, pairs, i);
        for (uint32_t p = 0; p < count; ++p) {
            float *row = table + (size_t)p * 2 * pairs + i;
            const float angle = (float)(first + p) * frequency;
            qn__turn(angle, row, row + pairs);
        }
    }
}

static void write(const qn__layer_text *layer, qn__text *text) {
    (void)layer;
    qn__text_add(text, " sinusoid");
}

static qn_status make(const qn__layer_text *text, qn__shape from, uint64_t first, qn__layer *layer,
                      qn_error *err) {
    if (from.channels % 2)
        return qn__remedy(
            err,
            qn__fail(err, QN_USAGE, "%u channels are not pairs of sine and cosine", from.channels),
            "position sinusoid takes an even number of channels");
    *layer = (qn__layer){.kind = text->kind,
                         .from = from,
                         .to = from,
                         .window = {{1, 1}, {1, 1}, {0, 0}, {1, 1}},
                         .in = qn__shape_volume(from),
                         .out = qn__shape_volume(from),
                         .activation = text->activation,
                         .drop_keep = 1.0f,
                         .weights = first,
                         .biases = first,
                         .turns = {USUAL_BASE, 1.0f, 0.0f, 0.0f, 0}};
    return qn__turned_check(from, err);
}

static qn__flops flops(const qn__layer *layer) {
    return (qn__flops){.forward = layer->in, .backward = layer->in};
}

static void forward(const qn__layer *l, int bits, const float *parameters, const float *a,
                    float *z) {
    const uint32_t channels = l->from.channels, pairs = channels / 2;
    (void)bits, (void)parameters;
    for (uint32_t i = 0; i < pairs; ++i) {
        const float frequency = qn__turn_frequency(&l->turns, pairs, i);
        float position = 0.0f;
        for (size_t at = 2 * (size_t)i; at < l->in; at += channels, position += 1.0f) {
            float cosine, sine;
            const float angle = position * frequency;
            qn__turn(angle, &cosine, &sine);
            z[at] = a[at] + sine;
            z[at + 1] = a[at + 1] + cosine;
        }
    }
}

const qn__layer_ops qn__sinusoid = {.word = "position",
                                    .syntax = "position sinusoid [ACTIVATION] [dropout|droppath P]",
                                    .contract = 9,
                                    .write = write,
                                    .make = make,
                                    .flops = flops,
                                    .forward = forward,
                                    .backward = qn__layer_same_errors,
                                    .steps = qn__layer_always_steps};
