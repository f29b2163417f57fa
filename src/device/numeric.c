#include "device/numeric.h"

qn_status qn__fail_loss(int nan, uint32_t bad, const qn__program *program, qn_error *err) {
    const uint32_t read = bad + program->number;
    const char *what = nan ? "NaN" : "too large to be summed";
    if (bad == QN__NO_LAYER)
        return qn__fail(err, QN_NUMERIC, "the loss became %s", what);
    if (read == 0)
        return qn__fail(err, QN_NUMERIC, "the loss became %s: inputs are not finite", what);
    return qn__fail(err, QN_NUMERIC, "the loss became %s: outputs of layer %u are %s", what,
                    read - 1, bad < program->layers || nan ? "not finite" : "too large");
}

qn_status qn__fail_gradient(uint32_t layer, int averages, qn_error *err) {
    return qn__fail(err, QN_NUMERIC, "a gradient%s of layer %u left the range of its sum",
                    averages ? ", or a grain's mean or variance," : "", layer);
}
