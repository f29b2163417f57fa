/* The layers of a pass that computes only up to the longest item of a batch (device/shorten.h). */
#ifndef QN_DEVICE_CPU_WORKER_CPU_SHORTEN_H
#define QN_DEVICE_CPU_WORKER_CPU_SHORTEN_H

#include "device/cpu/worker/cpu_worker.h"

/* The layer has so many positions in this pass, where it has those of the tokens. */
void qn__cpu_shorten(const qn__worker *worker, qn__cpu_layer *layer, uint32_t positions);

#endif
