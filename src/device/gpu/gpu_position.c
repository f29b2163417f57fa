/* position learned: a parameter of each channel at each pixel (docs/exactness.md 25.12). position
 * sinusoid: the same with numbers that stay (25.13). */
#include "device/gpu/gpu_call.h"
#include "device/gpu/gpu_kinds.h"
#include "layer/turned.h"
#include <string.h>

static void forward(qn__gpu_pass *pass, uint32_t i) {
    qn__gpu_forward_values(pass, i, QN__K_POSITION_FORWARD);
}

static void errors(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    qn__gpu_call c = {0};
    if (!qn__gpu_takes_errors(w, l->source))
        return;
    QN__PUSH_MEMORY(&c, &w->step, &w->pixels.taps, qn__gpu_errors_of(w, i),
                    qn__gpu_errors_of(w, (uint32_t)l->source));
    QN__PUSH_NUMBERS(&c, i * QN__GPU_TAPS, qn__gpu_gives_first(w, i, l->source) ? 0 : QN_NORM_ADD);
    qn__gpu_launch_norm(pass, QN__K_POSITION_ERRORS, qn__gpu_all_pixels(pass, i), i, &c);
    qn__gpu_finish_errors(pass, i);
}

/* The sums of positions that no item of the pass has. */
static void clear_others(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const uint64_t ld = qn__gpu_ld(w->layer[i].layer->to.channels) * sizeof(int64_t);
    const uint64_t own = qn__gpu_pixels(w->layer[i].layer);
    const uint64_t others = qn__gpu_pixels(&w->program->layer[i]) - own;
    if (others > 0 && pass->status == QN_OK)
        pass->status = w->driver->clear(w->gpu, &w->model.sums,
                                        w->layer[i].weights * sizeof(int64_t) + own * ld,
                                        others * ld, pass->err);
}

static void gradient(qn__gpu_pass *pass, uint32_t i, int add) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    qn__gpu_call c = {0};
    if (!add)
        clear_others(pass, i);
    QN__PUSH_MEMORY(&c, &w->step, qn__gpu_errors_of(w, i), &w->model.sums, &w->reports.status);
    QN__PUSH_WIDE(&c, l->weights);
    QN__PUSH_NUMBERS(&c, qn__gpu_pixels(l->layer), l->layer->to.channels, i);
    QN__PUSH_FLOATS(&c, w->program->partial_limit);
    QN__PUSH_NUMBERS(&c, add ? QN_GRADIENT_ADD : 0);
    qn__gpu_launch_norm(pass, QN__K_POSITION_GRADIENT, qn__gpu_pixels(l->layer), i, &c);
}

const qn__gpu_kind qn__gpu_position = {.forward = forward, .errors = errors, .gradient = gradient};

static void forward_sinusoid(qn__gpu_pass *pass, uint32_t i) {
    qn__gpu_forward_numbers(pass, i, QN__K_POSITION_FORWARD, &pass->worker->layer[i].moments, 0);
}

static uint64_t sinusoid_bytes(const qn__worker *w, const qn__layer *l) {
    return (uint64_t)qn__gpu_positions(w, l) * qn__gpu_ld(l->to.channels) * sizeof(float);
}

/* [positions][ld(channels)], as the parameters of position learned. */
static void sinusoid_table(const qn__worker *w, const qn__layer *l, float *to) {
    const uint32_t pairs = qn__turned_pairs(l), ld = (uint32_t)qn__gpu_ld(l->to.channels);
    const uint32_t positions = qn__gpu_positions(w, l);
    memset(to, 0, (size_t)positions * ld * sizeof *to);
    for (uint32_t i = 0; i < pairs; ++i) {
        const float frequency = qn__turn_frequency(&l->turns, pairs, i);
        for (uint32_t p = 0; p < positions; ++p) {
            float *own = to + (size_t)p * ld + 2 * (size_t)i;
            const float angle = (float)p * frequency;
            qn__turn(angle, own + 1, own);
        }
    }
}

const qn__gpu_kind qn__gpu_sinusoid = {.forward = forward_sinusoid,
                                       .errors = errors,
                                       .moments = sinusoid_bytes,
                                       .table = sinusoid_table};
