#include "device/numeric.h"

qn_status qn__fail_loss(int nan, uint32_t bad, uint32_t layers, qn_error *err) {
    const char *what = nan ? "NaN" : "too large to be summed";
    if (bad == QN__NO_LAYER)
        return qn__fail(err, QN_NUMERIC, "the loss became %s", what);
    if (bad == 0)
        return qn__fail(err, QN_NUMERIC, "the loss became %s: inputs are not finite", what);
    return qn__fail(err, QN_NUMERIC, "the loss became %s: outputs of layer %u are %s", what,
                    bad - 1, bad < layers || nan ? "not finite" : "too large");
}

qn_status qn__fail_gradient(uint32_t layer, int averages, qn_error *err) {
    return qn__fail(err, QN_NUMERIC, "a gradient%s of layer %u left the range of its sum",
                    averages ? ", or a grain's mean or variance," : "", layer);
}
