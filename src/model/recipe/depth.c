#include "model/recipe/depth.h"

#include "model/recipe/option_rows.h"
#include <float.h>

/* The lesser of `low` and the outputs that a layer reads. */
static int32_t reads_from(const qn__layer *layer, uint32_t l, int32_t low) {
    const int32_t source = qn__layer_source(layer, l);
    low = source < low ? source : low;
    if (!qn__layer_joins(&layer[l]))
        return low;
    const int32_t other = qn__layer_other(layer, l);
    return other < low ? other : low;
}

uint32_t qn__recipe_depth(const qn__recipe *r, qn__layer *layer) {
    int32_t low = INT32_MAX;
    float factor = 1.0f;
    uint32_t parts = 0, first = 0;
    int weights = 0;
    if (r->lr_depth == 0.0f)
        return 1;
    for (uint32_t l = r->network.layers; l-- > 0;) {
        layer[l].rate_factor = factor;
        weights |= layer[l].depth > 0;
        low = reads_from(layer, l, low);
        if (!weights || low < (int32_t)l - 1)
            continue;
        /* A part begins here. */
        factor *= r->lr_depth;
        weights = 0;
        first = l;
        ++parts;
    }
    for (uint32_t l = 0; l < first; ++l) /* no weights: they belong to the first part */
        layer[l].rate_factor = layer[first].rate_factor;
    if (layer[r->network.layers - 1].tied) /* the embedding's (25.15) */
        layer[r->network.layers - 1].rate_factor = layer[0].rate_factor;
    return parts;
}

qn_status qn__recipe_check_depth(const qn__recipe *r, qn_error *err) {
    qn__layer layer[QN__MAX_LAYERS];
    uint64_t parameters;
    if (r->lr_depth == 0.0f)
        return QN_OK;
    const qn_status status =
        qn__network_program(&r->network, qn__recipe_input(r), layer, &parameters, err);
    if (status != QN_OK)
        return status;
    const uint32_t parts = qn__recipe_depth(r, layer);
    if (layer[0].rate_factor >= FLT_MIN)
        return QN_OK;
    return qn__recipe_refuse(
        err, "`train.lr_depth`",
        "take a number nearer to 1, or leave the first layers out with `train.freeze`",
        qn__fail(err, QN_USAGE,
                 "the network has %u parts, and %g would leave the first ones no learning rate",
                 parts, (double)r->lr_depth));
}
