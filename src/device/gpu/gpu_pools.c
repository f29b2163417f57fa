/* Pools (docs/exactness.md 16.5 to 16.7). A lane has sixteen channels of one pixel: of an output,
 * whose window it reads, or of an input, whose windows it finds. So no two lanes write one number.
 */
#include "device/gpu/gpu_call.h"
#include "device/gpu/gpu_kinds.h"
#include "device/gpu/gpu_pixels.h"
#include "num/blend.h"

_Static_assert((int)QN_BLENDS == QN__BLENDS, "the kernels read the member `fitted` of a layer");

static void launch_pool(qn__gpu_pass *pass, uint32_t i, int backward) {
    const qn__worker *w = pass->worker;
    const int32_t source = w->layer[i].source;
    const qn__layer *l = w->layer[i].layer;
    const uint32_t pixels = backward ? qn__gpu_from_pixels(l) : qn__gpu_pixels(l);
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, &w->step, &w->pixels.taps, qn__gpu_input_of(pass, i));
    if (backward)
        QN__PUSH_MEMORY(&c, qn__gpu_errors_of(w, i));
    QN__PUSH_MEMORY(&c, backward ? qn__gpu_errors_of(w, (uint32_t)source) : &w->layer[i].output);
    QN__PUSH_NUMBERS(&c, i * QN__GPU_TAPS,
                     (l->kind == QN__LAYER_MAXPOOL ? QN_POOL_MAX : 0) |
                         (l->partial ? QN_POOL_PARTIAL : 0) |
                         (backward && !qn__gpu_gives_first(w, i, source) ? QN_POOL_ADD : 0));
    QN__PUSH_FLOATS(&c, l->fitted == QN__BLENDS ? qn__blend_unit(l)
                                                : 1.0f / (float)qn__gpu_window_of(l));
    qn__gpu_launch_over(pass, backward ? QN__K_POOL_ERRORS : QN__K_POOL_FORWARD,
                        qn__gpu_sixteens((uint64_t)pass->items * pixels, l->from.channels), &c);
}

static void forward(qn__gpu_pass *pass, uint32_t i) { launch_pool(pass, i, 0); }

static void errors(qn__gpu_pass *pass, uint32_t i) {
    if (!qn__gpu_takes_errors(pass->worker, pass->worker->layer[i].source))
        return;
    launch_pool(pass, i, 1);
    qn__gpu_finish_errors(pass, i);
}

#define POOL(PICKS)                                                                                \
    { .forward = forward, .errors = errors, .reads_input = PICKS }

/* A max pool finds the greatest once more. */
const qn__gpu_kind qn__gpu_maxpool = POOL(1), qn__gpu_avgpool = POOL(0),
                   qn__gpu_globalpool = POOL(0), qn__gpu_upsample = POOL(0);
