#include "model/exchange/recurrent_pairs.h"

#include "layer/layer.h"
#include "layer/recurrent.h"
#include <stdio.h>

static int is_plain(const qn__layer *l) {
    return l->kind == QN__LAYER_CONV && !l->conv_groups && !l->tied && qn__conv.steps(l) &&
           l->activation == QN__ACT_NONE;
}

int qn__recurrent_pair(const qn__layer *layers, uint32_t count, uint32_t l) {
    int readers = 0;
    for (uint32_t i = l + 1; i < count; ++i)
        readers += (qn__layer_source(layers, i) == (int32_t)l) +
                   (qn__layer_joins(&layers[i]) && qn__layer_other(layers, i) == (int32_t)l);
    return l + 1 < count && layers[l + 1].kind == QN__LAYER_RECURRENT && readers == 1 &&
           qn__layer_source(layers, l + 1) == (int32_t)l && is_plain(&layers[l]);
}

static int is_matrix(const qn__tensor_view *view, uint64_t rows, uint64_t columns) {
    return view && view->dimensions == 2 && view->rows == rows && view->columns == columns;
}

int qn__recurrent_fits(const qn__layer *pair, const qn__module *module) {
    const uint32_t all = pair->to.channels;
    const qn__tensor_view *outside = module->part[QN__PART_BIAS];
    const qn__tensor_view *inside = module->part[QN__PART_SHIFT];
    if (!module->states || !outside != !inside || (outside && pair->no_biases))
        return 0;
    if (outside && (outside->dimensions != 1 || outside->rows != all || inside->dimensions != 1 ||
                    inside->rows != all))
        return 0;
    return is_matrix(module->part[QN__PART_WEIGHT], all, pair->from.channels) &&
           is_matrix(module->part[QN__PART_STATES], all, pair[1].to.channels);
}

void qn__recurrent_take(const qn__layer *pair, const qn__module *module, float *parameters) {
    const uint32_t all = pair->to.channels, width = pair[1].to.channels;
    const uint32_t in = pair->from.channels, gru = pair[1].cell == QN__CELL_GRU;
    const qn__tensor_view *outside = module->part[QN__PART_BIAS];
    const qn__tensor_view *inside = module->part[QN__PART_SHIFT];
    float *bias = parameters + pair[0].biases, *last = parameters + pair[1].biases;
    for (uint32_t row = 0; row < all; ++row) {
        const uint32_t gate = row / width, n = row % width;
        const int apart = gru && gate == 2;
        float *to = parameters + pair[1].weights + (size_t)n * all + (size_t)gate * width;
        for (uint32_t k = 0; k < in; ++k)
            parameters[pair[0].weights + (uint64_t)row * in + k] =
                qn__tensor_float(module->part[QN__PART_WEIGHT], (uint64_t)row * in + k);
        for (uint32_t k = 0; k < width; ++k)
            to[k] = qn__tensor_float(module->part[QN__PART_STATES], (uint64_t)row * width + k);
        if (apart)
            last[n] = inside ? qn__tensor_float(inside, row) : 0.0f;
        if (outside)
            bias[row] = apart ? qn__tensor_float(outside, row)
                              : qn__tensor_float(outside, row) + qn__tensor_float(inside, row);
    }
}

void qn__recurrent_tell_need(const qn__layer *pair, char text[160]) {
    const uint32_t all = pair->to.channels;
    snprintf(text, 160, "weight_ih of %ux%u and weight_hh of %ux%u, %s of %u numbers", all,
             pair->from.channels, all, pair[1].to.channels,
             pair->no_biases ? "without biases" : "with both biases", all);
}
