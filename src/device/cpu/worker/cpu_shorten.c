/* Items of texts are filled up to the positions of their table. Rows of batch arrays are (position,
 * item), items fastest:
 *
 *     item         0 1 2   0 1 2   0 1 2   0 1 2
 *     position     0 0 0   1 1 1   2 2 2   3 3 3
 *     token        a b c   d - e   - - f   - - -     the longest item has three
 *
 * So the positions after the longest item are the last rows of each panel: without them the arrays
 * are shorter, and nothing else changes. What these rows would add to a gradient is 0. */
#include "device/cpu/worker/cpu_shorten.h"

#include "layer/embedding.h"
#include "layer/padding.h"

int qn__cpu_can_shorten(const qn__worker *w) {
    const qn__program *p = w->program;
    return p->layer[0].kind == QN__LAYER_EMBEDDING && !w->bits && !p->sequences && !p->answers &&
           qn__padding_mixed(p->layer, p->layers) == p->layers;
}

/* The length of an item, if it is above `least`; else that. */
static uint32_t longer(const qn__feed *feed, uint32_t tokens, const void *row, uint32_t least,
                       uint32_t length) {
    const uint16_t *narrow = row;
    const uint32_t *wide = row;
    const int is_narrow = feed->type == QN__ELEMENT_TOKEN16;
    while (length > least && (is_narrow ? narrow[length - 1] : wide[length - 1]) >= tokens)
        --length;
    return length;
}

uint32_t qn__cpu_longest(const qn__worker *w, const qn__batch *batch) {
    const uint32_t all = w->program->layer[0].to.width;
    uint32_t longest = 1;
    uint64_t item[QN__PANEL];
    if (!w->shortens || !qn__element_is_token(batch->feed->type))
        return all;
    for (uint32_t first = 0; first < batch->items && longest < all; first += QN__PANEL) {
        const uint32_t left = batch->items - first, count = left < QN__PANEL ? left : QN__PANEL;
        qn__cpu_find_items(batch, first, count, item);
        for (uint32_t i = 0; i < count; ++i)
            longest = longer(batch->feed, qn__layer_tokens(&w->program->layer[0]),
                             qn__batch_values(batch, first + i, item[i]), longest, all);
    }
    return longest;
}

void qn__cpu_shorten(const qn__worker *w, qn__cpu_layer *l, uint32_t positions) {
    const qn__layer *layer = w->program->layer;
    if (qn__has_token_positions(layer, l->layer->to)) {
        l->out_pixels = positions;
        l->outputs.axis[1].size = l->inputs.axis[1].limit = positions;
    }
    if (qn__has_token_positions(layer, l->layer->from)) {
        l->in_pixels = positions;
        l->outputs.axis[1].limit = l->inputs.axis[1].size = positions;
    }
}
