/* pool (docs/exactness.md 25.38): a lane has a channel of an item, and goes through its positions.
 */
#include "device/gpu/gpu_call.h"
#include "device/gpu/gpu_kinds.h"
#include "device/gpu/gpu_pixels.h"
#include "kernels/step.h"

_Static_assert(QN_POOLED_MAX == QN__POOL_MAX && QN_POOLED_FIRST == QN__POOL_FIRST &&
                   QN_POOLED_LAST == QN__POOL_LAST && QN__POOL_MEAN == 0,
               "the kernels read the member `pooling` of a layer");

static void launch(qn__gpu_pass *pass, uint32_t i, int backward) {
    const qn__worker *w = pass->worker;
    const qn__layer *l = w->layer[i].layer;
    const int32_t source = w->layer[i].source;
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, &w->step, &w->pixels.taps, qn__gpu_lengths_of(pass, i),
                    qn__gpu_input_of(pass, i));
    if (backward)
        QN__PUSH_MEMORY(&c, qn__gpu_errors_of(w, i), qn__gpu_errors_of(w, (uint32_t)source));
    else
        QN__PUSH_MEMORY(&c, &w->layer[i].output);
    QN__PUSH_NUMBERS(&c, i * QN__GPU_TAPS, (uint32_t)l->pooling);
    qn__gpu_push_lengths(pass, i, &c);
    if (backward)
        QN__PUSH_NUMBERS(&c, qn__gpu_gives_first(w, i, source) ? 0 : QN_POOL_ADD);
    qn__gpu_launch_over(pass, backward ? QN__K_POOLED_ERRORS : QN__K_POOLED_FORWARD,
                        qn__gpu_sixteens(pass->items, l->from.channels), &c);
}

static void forward(qn__gpu_pass *pass, uint32_t i) { launch(pass, i, 0); }

static void errors(qn__gpu_pass *pass, uint32_t i) {
    if (!qn__gpu_takes_errors(pass->worker, pass->worker->layer[i].source))
        return;
    launch(pass, i, 1);
    qn__gpu_finish_errors(pass, i);
}

const qn__gpu_kind qn__gpu_pooled = {.forward = forward, .errors = errors, .reads_input = 1};
