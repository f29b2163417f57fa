#include "layer/reference_loss.h"

#include "num/elementary.h"
#include <math.h>

/* 6.4 */
void qn__reference_softmax(uint32_t n, const float *z, float *y, float *max, float *sum) {
    float m = z[0], s;
    for (uint32_t j = 1; j < n; ++j)
        if (z[j] > m)
            m = z[j];
    for (uint32_t j = 0; j < n; ++j)
        y[j] = qn__exp(z[j] - m); /* q */
    s = y[0];
    for (uint32_t j = 1; j < n; ++j)
        s = s + y[j];
    for (uint32_t j = 0; j < n; ++j)
        y[j] = y[j] / s;
    *max = m;
    *sum = s;
}

/* 7.3: the chain of the loss goes on with the error d of an output. */
float qn__reference_loss_chain(const qn__program *p, float d, float acc) {
    const float a = fabsf(d), m = a < p->delta ? a : p->delta;
    switch (p->loss) {
    case QN__LOSS_MAE:
        return acc + a;
    case QN__LOSS_HUBER:
        return acc + m * (a - 0.5f * m);
    case QN__LOSS_MSE:
        return fmaf(d, d, acc);
    case QN__LOSS_CROSS_ENTROPY: /* 7.2 */
    case QN__LOSS_BINARY:        /* 7.6 */
        break;
    }
    return acc;
}

/* 8.3: the derivative of the loss by an output. */
float qn__reference_loss_slope(const qn__program *p, float d) {
    switch (p->loss) {
    case QN__LOSS_MAE:
        return d > 0.0f ? 1.0f : d < 0.0f ? -1.0f : 0.0f;
    case QN__LOSS_HUBER:
        return fabsf(d) < p->delta ? d : d > 0.0f ? p->delta : -p->delta;
    case QN__LOSS_MSE:
        return 2.0f * d;
    case QN__LOSS_CROSS_ENTROPY: /* 8.2 */
    case QN__LOSS_BINARY:
        break;
    }
    return d;
}

/* 7.6 */
float qn__reference_loss_binary(float z, uint32_t label) {
    const float v = label ? -z : z;
    const float above = v > 0.0f ? v : 0.0f;
    return above + qn__log(1.0f + qn__exp(-fabsf(v)));
}
