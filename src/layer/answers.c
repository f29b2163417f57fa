#include "layer/answers.h"

#include "layer/reference_loss.h"
#include "num/elementary.h"
#include <math.h>

static const qn__layer *last_of(const qn__program *p) { return &p->layer[p->layers - 1]; }

void qn__answers_outputs(const qn__program *p, const float *z, float *y) {
    const uint32_t n = last_of(p)->to.channels;
    float max, sum;
    for (uint32_t at = 0; at < last_of(p)->out; at += n) {
        if (p->loss == QN__LOSS_CROSS_ENTROPY)
            qn__reference_softmax(n, z + at, y + at, &max, &sum);
        for (uint32_t j = at; p->loss == QN__LOSS_BINARY && j < at + n; ++j)
            y[j] = qn__sigmoid(z[j]);
    }
}

/* 7.2 of a pixel */
static float cross_entropy(uint32_t n, const float *z, uint32_t target) {
    float m = z[0], s;
    for (uint32_t j = 1; j < n; ++j)
        m = z[j] > m ? z[j] : m;
    s = qn__exp(z[0] - m);
    for (uint32_t j = 1; j < n; ++j)
        s = s + qn__exp(z[j] - m);
    return qn__log(s) - (z[target] - m);
}

/* 24.71: an ignored target gives +0. The targets of the pixel begin at `at`. */
static float pixel_loss(const qn__program *p, const float *z, const qn__targets *targets,
                        size_t at) {
    const uint32_t n = last_of(p)->to.channels;
    float loss = 0.0f;
    if (p->loss == QN__LOSS_CROSS_ENTROPY) {
        const uint32_t own = qn__target_at(targets, at);
        return own == QN__NO_ANSWER ? 0.0f : cross_entropy(n, z, own);
    }
    for (uint32_t j = 0; j < n; ++j) {
        const uint32_t own = qn__target_at(targets, at + j);
        loss = loss + (own == QN__NO_ANSWER ? 0.0f : qn__reference_loss_binary(z[j], own));
    }
    return loss;
}

uint32_t qn__answers_class(const qn__program *p, const float *y, uint32_t at) {
    uint32_t best = 0;
    if (p->loss == QN__LOSS_BINARY)
        return y[at] > 0.5f;
    for (uint32_t j = 1; j < last_of(p)->to.channels; ++j)
        best = y[j] > y[best] ? j : best;
    return best;
}

float qn__answers_loss(const qn__program *p, const float *z, const float *y,
                       const qn__targets *targets, uint64_t *right) {
    const qn__layer *l = last_of(p);
    const uint32_t n = l->to.channels, each = qn__answers_of_pixel(p);
    size_t at = 0;
    float loss = 0.0f;
    for (uint32_t row = 0; row < l->to.height; ++row) {
        float line = 0.0f;
        for (uint32_t x = 0; x < l->to.width; ++x, z += n, y += n, at += each) {
            line = line + pixel_loss(p, z, targets, at);
            for (uint32_t a = 0; a < each; ++a)
                *right += qn__target_at(targets, at + a) == qn__answers_class(p, y, a);
        }
        loss = loss + line;
    }
    return loss;
}

void qn__answers_errors(const qn__program *p, const float *y, const qn__targets *targets,
                        float factor, float *delta) {
    const uint32_t n = last_of(p)->to.channels;
    const int binary = p->loss == QN__LOSS_BINARY;
    for (uint32_t j = 0; j < last_of(p)->out; ++j) {
        const uint32_t own = qn__target_at(targets, binary ? j : j / n);
        const float wanted = binary ? (float)own : qn__smoothed_target(p, j % n == own);
        delta[j] = own == QN__NO_ANSWER ? 0.0f : (y[j] - wanted) * factor;
    }
}

float qn__answers_share(float share, uint64_t count) {
    return count > 0 ? share / (float)count : 0.0f;
}
