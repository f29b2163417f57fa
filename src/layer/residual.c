/* residual { MAIN | SHORTCUT }: the sum of two paths of layers from the same input. The kind is the
 * layer at the end of the block, which adds; the layers of both paths stand before it. */
#include "layer/layer.h"
#include "layer/product.h"
#include <string.h>

static qn_status make(const qn__layer_text *text, qn__shape from, uint64_t first, qn__layer *layer,
                      qn_error *err) {
    const uint32_t values = qn__shape_volume(from);
    (void)err;
    *layer = (qn__layer){.kind = QN__LAYER_ADD,
                         .from = from,
                         .to = from,
                         .window = {{1, 1}, {1, 1}, {0, 0}, {1, 1}},
                         .in = values,
                         .out = values,
                         .activation = text->activation,
                         .drop_keep = 1.0f,
                         .weights = first,
                         .biases = first};
    return QN_OK;
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

const qn__layer_ops qn__residual = {.word = "residual",
                                    .also = "add skip shortcut block basicblock resblock",
                                    .syntax =
                                        "residual { LAYERS [| LAYERS] } [ACTIVATION] [dropout P]",
                                    .block = 1,
                                    .contract = 6,
                                    .make = make,
                                    .flops = flops,
                                    .forward = forward,
                                    .join = join,
                                    .backward = backward};
