/* The table of layer kinds, and the rows of the kinds that multiply weights. Their phases are in
 * files by way of computing, which they share:
 *
 *                 forward            backward           gradient
 *     dense       cpu_forward.c      cpu_backward.c     cpu_gradient.c
 *     conv        cpu_walk_phases.c, cpu_few.c          cpu_walk_gradient.c
 *     groups      cpu_group.c                           cpu_group.c
 *     integers    cpu_intgemm.c, cpu_walk_intgemm.c     cpu_walk_intgemm_gradient.c,
 *                 cpu_tiles.c                           cpu_tiles_gradient.c
 */
#include "device/cpu/worker/cpu_kinds.h"
#include "device/cpu/worker/cpu_picked.h"

/* Behind a picture, errors go back pixel by pixel. */
static void dense_backward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    (pass->worker->bits                         ? qn__cpu_intgemm_backward
     : pass->worker->layer[layer].inputs.panels ? qn__cpu_walk_backward
                                                : qn__cpu_backward)(pass, thread, layer, phase);
}

const qn__cpu_kind qn__cpu_dense = {.forward = qn__cpu_forward,
                                    .backward = dense_backward,
                                    .gradient = qn__cpu_gradient,
                                    .sums = qn__cpu_bias_task,
                                    .one_matrix = 1,
                                    .reads_input = 1,
                                    .whole_rows = 1};

static void conv_forward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    const qn__cpu_layer *l = &pass->worker->layer[layer];
    (qn__cpu_is_few(pass, l)                  ? qn__cpu_few_forward
     : l->layer->conv_groups                  ? qn__cpu_group_forward
     : qn__cpu_is_pooled(pass, l) && l->woven ? qn__cpu_picked_forward
     : l->tiles.way[0].steps                  ? qn__cpu_tiles_forward
                                              : qn__cpu_walk_forward)(pass, thread, layer, phase);
}

static void conv_backward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    const qn__cpu_layer *l = &pass->worker->layer[layer];
    (l->layer->conv_groups   ? qn__cpu_group_backward
     : l->tiles.way[1].steps ? qn__cpu_tiles_backward
                             : qn__cpu_walk_backward)(pass, thread, layer, phase);
}

static void conv_gradient(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    (pass->worker->layer[layer].layer->conv_groups ? qn__cpu_group_gradient
     : pass->worker->bits                          ? qn__cpu_walk_intgemm_gradient
                          : qn__cpu_walk_gradient)(pass, thread, layer, phase);
}

#define CONV_ROW                                                                                   \
    {                                                                                              \
        .forward = conv_forward, .backward = conv_backward, .gradient = conv_gradient,             \
        .sums = qn__cpu_bias_task, .leads = 1, .adds = 1, .reads_input = 1, .whole_rows = 1        \
    }

/* A transposed convolution goes over an input that is spread, which its axes know (cpu_walk.h). */
const qn__cpu_kind qn__cpu_conv = CONV_ROW, qn__cpu_convtranspose = CONV_ROW;

#define ROW(KIND, NAME) [QN__LAYER_##KIND] = &qn__cpu_##NAME,

const qn__cpu_kind *qn__cpu_kind_of(qn__layer_kind kind) {
    static const qn__cpu_kind *const rows[] = {QN__LAYER_LIST(ROW)};
    return rows[kind];
}
