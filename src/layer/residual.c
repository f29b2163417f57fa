/* residual { MAIN | SHORTCUT }: the sum of two paths of layers from the same input. The kind is the
 * layer at the end of the block, which adds; the layers of both paths stand before it. */
#include "layer/join.h"
#include "layer/product.h"
#include <string.h>

static qn_status make(const qn__layer_text *text, qn__shape from, uint64_t first, qn__layer *layer,
                      qn_error *err) {
    (void)err;
    *layer = qn__join_make(text, from, first);
    return QN_OK;
}

static int paths_meet(qn__layer *l) {
    return l->from.channels == l->second.channels && qn__join_same_pixels(l->from, l->second);
}

/* One addition for each value; its errors cost nothing. */
static qn__flops flops(const qn__layer *l) { return (qn__flops){.forward = l->out}; }

static void forward(const qn__layer *l, int bits, const float *parameters, const float *a,
                    float *z) {
    (void)bits;
    (void)parameters;
    memcpy(z, a, l->out * sizeof *z);
}

/* 17.7 */
static void join(const qn__layer *l, const float *b, float *z) {
    for (uint32_t k = 0; k < l->out; ++k)
        z[k] = z[k] + b[k];
    qn__plain_zeros(l->out, z);
}

static void backward(const qn__layer *l, int bits, const float *parameters, const float *a,
                     const float *delta, int64_t *sums, float *e) {
    (void)bits;
    (void)parameters;
    (void)a;
    (void)sums;
    memcpy(e, delta, l->in * sizeof *e);
    qn__plain_zeros(l->in, e);
}

const qn__layer_ops qn__residual = {
    .word = "residual",
    .also = "add skip shortcut block basicblock resblock",
    .syntax = "residual { LAYERS [| LAYERS] } [ACTIVATION] [dropout|droppath P]",
    .block = 1,
    .contract = 6,
    .verb = "a residual block adds",
    .fit = "give the block a shortcut with the channels and strides of its main path: \"residual { "
           "conv 32 3x3 stride 2 | conv 32 1x1 stride 2 } relu\"",
    .steps = qn__layer_always_steps,
    .make = make,
    .meet = paths_meet,
    .flops = flops,
    .forward = forward,
    .join = join,
    .backward = backward};
