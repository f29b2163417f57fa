/* The table of layer kinds, and the rows of the kinds that multiply weights. Which file enqueues a
 * product depends on the arithmetic and on what the layer reads:
 *
 *                        floats             integers
 *     features           gpu_products.c     gpu_intgemm.c
 *     pixels             gpu_pixels.c       gpu_pixels_intgemm.c
 *     groups             gpu_grouped.c      the same: floats
 *     lists of inputs    gpu_lists.c        all inputs are written out
 *
 * A dense layer after pixels reads a picture as one long row. So does one whose source has other
 * readers: it adds to errors that are there already. */
#include "device/gpu/gpu_kinds.h"
#include "device/gpu/gpu_call.h"

static void dense_forward(qn__gpu_pass *pass, uint32_t i) {
    const int integers = pass->worker->bits != 0;
    if (qn__gpu_reads_lists(pass, i))
        qn__gpu_launch_lists_forward(pass, i);
    else if (qn__gpu_has_pixels(&pass->worker->layer[i]))
        (integers ? qn__gpu_launch_pixels_intgemm_forward : qn__gpu_launch_pixels_forward)(pass, i);
    else
        (integers ? qn__gpu_launch_intgemm_forward : qn__gpu_launch_float_forward)(pass, i);
}

static void dense_errors(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const int pixels = qn__gpu_has_pixels(&w->layer[i]) || qn__gpu_shares_source(w, i);
    if (w->bits)
        (pixels ? qn__gpu_launch_pixels_intgemm_errors : qn__gpu_launch_intgemm_errors)(pass, i);
    else if (pixels)
        qn__gpu_launch_pixels_errors(pass, i);
    else if (qn__gpu_takes_errors(w, w->layer[i].source))
        qn__gpu_launch_float_errors(pass, i, NULL);
}

static void launch_bias(qn__gpu_pass *pass, uint32_t i, int add) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, &w->step, qn__gpu_errors_of(w, i), &w->model.sums, &w->reports.status);
    QN__PUSH_WIDE(&c, l->biases);
    QN__PUSH_NUMBERS(&c, l->layer->out, i);
    QN__PUSH_FLOATS(&c, w->program->partial_limit);
    QN__PUSH_NUMBERS(&c, add ? QN_GRADIENT_ADD : 0);
    qn__gpu_launch_over(pass, QN__K_BIAS, l->layer->out, &c);
}

static void dense_gradient(qn__gpu_pass *pass, uint32_t i, int add) {
    const int integers = pass->worker->bits != 0;
    if (qn__gpu_has_pixels(&pass->worker->layer[i])) {
        (integers ? qn__gpu_launch_pixels_intgemm_gradient
                  : qn__gpu_launch_pixels_gradient)(pass, i, add);
        return;
    }
    (qn__gpu_reads_lists(pass, i) ? qn__gpu_launch_lists_gradient
     : integers                   ? qn__gpu_launch_intgemm_gradient
                                  : qn__gpu_launch_float_gradient)(pass, i, add);
    if (!pass->worker->layer[i].layer->no_biases)
        launch_bias(pass, i, add);
}

static int dense_learn(qn__gpu_pass *pass, uint32_t i) {
    const qn__gpu_layer *l = &pass->worker->layer[i];
    const qn__program *p = pass->worker->program;
    const int alike = p->weight_decay != 0.0f && qn__others_decay(p, l->layer);
    if (qn__gpu_has_pixels(l) || qn__gpu_reads_lists(pass, i) || l->layer->no_biases || alike)
        return 0;
    qn__gpu_launch_learn(pass, i);
    return 1;
}

const qn__gpu_kind qn__gpu_dense = {.forward = dense_forward,
                                    .errors = dense_errors,
                                    .gradient = dense_gradient,
                                    .learn = dense_learn,
                                    .reads_input = 1};

static void conv_forward(qn__gpu_pass *pass, uint32_t i) {
    (pass->worker->layer[i].layer->conv_groups ? qn__gpu_launch_grouped_forward
     : pass->worker->bits                      ? qn__gpu_launch_pixels_intgemm_forward
                                               : qn__gpu_launch_pixels_forward)(pass, i);
}

static void conv_errors(qn__gpu_pass *pass, uint32_t i) {
    (pass->worker->layer[i].layer->conv_groups ? qn__gpu_launch_grouped_errors
     : pass->worker->bits                      ? qn__gpu_launch_pixels_intgemm_errors
                                               : qn__gpu_launch_pixels_errors)(pass, i);
}

static void conv_gradient(qn__gpu_pass *pass, uint32_t i, int add) {
    (pass->worker->layer[i].layer->conv_groups ? qn__gpu_launch_grouped_gradient
     : pass->worker->bits                      ? qn__gpu_launch_pixels_intgemm_gradient
                                               : qn__gpu_launch_pixels_gradient)(pass, i, add);
}

#define CONV_ROW                                                                                   \
    {                                                                                              \
        .forward = conv_forward, .errors = conv_errors, .gradient = conv_gradient,                 \
        .reads_input = 1, .convolves = 1                                                           \
    }

/* A transposed convolution goes over an input that is spread: the taps say what a row reads
 * (gpu_chunks.c). */
const qn__gpu_kind qn__gpu_conv = CONV_ROW, qn__gpu_convtranspose = CONV_ROW;

#define ROW(KIND, NAME) [QN__LAYER_##KIND] = &qn__gpu_##NAME,

const qn__gpu_kind *qn__gpu_kind_of(qn__layer_kind kind) {
    static const qn__gpu_kind *const rows[] = {QN__LAYER_LIST(ROW)};
    return rows[kind];
}
