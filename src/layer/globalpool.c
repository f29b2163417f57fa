/* globalpool: the mean of each channel over all pixels. */
#include "layer/pooling.h"

static qn_status make(const qn__layer_text *text, qn__shape from, uint64_t first, qn__layer *layer,
                      qn_error *err) {
    qn__layer_text whole = *text;
    whole.window = (qn__window){{from.height, from.width}, {1, 1}, {0, 0}, {1, 1}};
    const qn_status status = qn__window_make(&whole, from, from.channels, first, layer, err);
    layer->to.axes = QN__PICTURE; /* of one pixel: features */
    return status;
}

const qn__layer_ops qn__globalpool = {
    .word = "globalpool",
    .also = "gap globalavgpool globalaveragepool globalaveragepooling2d adaptiveavgpool2d "
            "adaptiveavgpool",
    .syntax = "globalpool",
    .bare = 1,
    .contract = 5,
    .make = make,
    .flops = qn__pool_flops,
    .forward = qn__mean_forward,
    .backward = qn__mean_backward};
