/* Work only up to the longest item of a batch (docs/exactness.md 25.37). */
#ifndef QN_DEVICE_CPU_WORKER_CPU_SHORTEN_H
#define QN_DEVICE_CPU_WORKER_CPU_SHORTEN_H

#include "device/cpu/worker/cpu_worker.h"

/* Whether positions after the last token of all items change no answer and no gradient, so that
 * passes may leave them out. */
int qn__cpu_can_shorten(const qn__worker *worker);

/* The positions that a pass computes: of the longest item of the batch, at least one. All of them
 * if the worker does not shorten. */
uint32_t qn__cpu_longest(const qn__worker *worker, const qn__batch *batch);

/* The layer has so many positions in this pass, where it has those of the tokens. */
void qn__cpu_shorten(const qn__worker *worker, qn__cpu_layer *layer, uint32_t positions);

#endif
