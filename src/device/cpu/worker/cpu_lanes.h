/* Rows of the last layer transposed to lanes of vectors, and back (cpu_loss.c). */
#ifndef QN_DEVICE_CPU_WORKER_CPU_LANES_H
#define QN_DEVICE_CPU_WORKER_CPU_LANES_H

#include "device/cpu/float/unroll.h"
#include "device/cpu/worker/cpu_worker.h"
#include <string.h>

/* Up to 16 items at a time: value j of item i is at [j * lanes + i]. Loops over items are then
 * loops over vectors, and each item keeps its order of operations. There are 16 lanes, or
 * QN__FEW_LANES for few items; lanes without an item are computed and ignored. */
enum { QN__LANES = QN__PANEL, QN__FEW_LANES = 4 };

/* Number of values of all lanes, rounded up to full panels. */
INLINE size_t qn__lanes_padded(const uint32_t lanes, uint32_t out) {
    return ((size_t)out * lanes + QN__PANEL - 1) / QN__PANEL * QN__PANEL;
}

/* 6.4, in place; the maximum and the sum of each item. */
INLINE void qn__lanes_softmax(const uint32_t lanes, const qn__cpu_kernels *k, uint32_t out,
                              float *y, float max[QN__LANES], float sum[QN__LANES]) {
    memcpy(max, y, lanes * sizeof *max);
    for (uint32_t j = 1; j < out; ++j)
        for (uint32_t i = 0; i < lanes; ++i)
            max[i] = y[j * lanes + i] > max[i] ? y[j * lanes + i] : max[i];
    for (uint32_t j = 0; j < out; ++j)
        for (uint32_t i = 0; i < lanes; ++i)
            y[j * lanes + i] = y[j * lanes + i] - max[i];
    k->exp((size_t)out * lanes, y, y);
    memcpy(sum, y, lanes * sizeof *sum);
    for (uint32_t j = 1; j < out; ++j)
        for (uint32_t i = 0; i < lanes; ++i)
            sum[i] = sum[i] + y[j * lanes + i];
    for (uint32_t j = 0; j < out; ++j)
        for (uint32_t i = 0; i < lanes; ++i)
            y[j * lanes + i] = y[j * lanes + i] / sum[i];
}

/* Copies rows in panels to lanes. */
INLINE void qn__lanes_gather(const uint32_t lanes, const float *panels, size_t stride,
                             uint32_t rows, uint32_t out, float *to) {
    for (uint32_t j = 0; j < out; ++j) {
        const float *from = panels + j / QN__PANEL * stride + j % QN__PANEL;
        for (uint32_t i = 0; i < lanes; ++i)
            to[j * lanes + i] = i < rows ? from[(size_t)i * QN__PANEL] : 0.0f;
    }
}

/* Copies lanes to rows in panels, with zeros after the last column. */
INLINE void qn__lanes_spread(const uint32_t lanes, const float *from, uint32_t rows, uint32_t out,
                             float *panels, size_t stride) {
    for (uint32_t first = 0; first < out; first += QN__PANEL, panels += stride) {
        const uint32_t columns = out - first < QN__PANEL ? out - first : QN__PANEL;
        for (uint32_t i = 0; i < rows; ++i) {
            float *to = panels + (size_t)i * QN__PANEL;
            for (uint32_t c = 0; c < columns; ++c)
                to[c] = from[(first + c) * lanes + i];
            memset(to + columns, 0, (QN__PANEL - columns) * sizeof *to);
        }
    }
}

#endif
