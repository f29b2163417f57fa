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

#include "layer/padding.h"

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
