/* The last layer in slices: its logits, its loss, the errors that it passes and its gradient, for
 * some positions at a time. So the logits of many words are never kept whole. */
#ifndef QN_DEVICE_CPU_WORKER_CPU_SLICES_H
#define QN_DEVICE_CPU_WORKER_CPU_SLICES_H

#include "device/cpu/worker/cpu_arena.h"
#include <stddef.h>

typedef struct qn__worker qn__worker;
typedef struct qn__cpu_pass qn__cpu_pass;

enum { QN__SLICE_PHASES = 5 }; /* of a slice */

/* Of a worker. `trained`, `applied`: rows of a slice in training and outside; 0: such passes have
 * the last layer whole. Between two slices of a grain there are partials of weights and biases;
 * between two grains of a step that also updates there are sums. `lends`: the partials of weights
 * stand where the sums of the step will be. */
typedef struct qn__cpu_slicing {
    uint32_t trained, applied;
    int keeps_partials, keeps_sums, lends;
    float *input; /* of items that are not all of the batch */
    float *partial, *bias_partial;
    int64_t *weight_sums, *bias_sums;
} qn__cpu_slicing;

/* Some pixels of some items: in training of a grain. Its rows are (pixel, item), items fastest, and
 * `stride` floats lie between two of its panels. A pass without slices is one slice. */
typedef struct qn__cpu_slice {
    uint32_t item, items, pixel, pixels, rows;
    size_t stride;
    int begins, ends; /* whether it has the first pixels of its items, and the last ones */
    int first, last;  /* whether its items are the first ones of the pass, and the last ones */
} qn__cpu_slice;

/* The row of the pass that a row of the slice is. */
static inline uint32_t qn__cpu_slice_row(const qn__cpu_slice *slice, uint32_t items, uint32_t row) {
    return (slice->pixel + row / slice->items) * items + slice->item + row % slice->items;
}

/* Chooses the slices of a worker whose layers are shaped, and the bytes of the last outputs. */
void qn__cpu_slices_shape(qn__worker *worker);
/* Memory beside the outputs; of it, floats of a core. */
void qn__cpu_slices_carve(qn__cpu_arena *arena, qn__worker *worker);
size_t qn__cpu_slice_space(const qn__worker *worker);

/* Whether a pass has slices. Then how many, and the one at an index; else the whole pass. */
int qn__cpu_is_sliced(const qn__cpu_pass *pass);
uint32_t qn__cpu_slices(const qn__cpu_pass *pass);
qn__cpu_slice qn__cpu_slice_at(const qn__cpu_pass *pass, uint32_t index);
qn__cpu_slice qn__cpu_whole(const qn__cpu_pass *pass);

/* The phases of a slice; a barrier stands between two of the first three, and after all. The
 * inputs: only where the slice does not have all items. */
void qn__cpu_slice_inputs(const qn__cpu_pass *pass, int thread, const qn__cpu_slice *slice,
                          uint32_t phase);
void qn__cpu_slice_forward(const qn__cpu_pass *pass, int thread, const qn__cpu_slice *slice,
                           uint32_t phase);
void qn__cpu_slice_errors(const qn__cpu_pass *pass, int thread, const qn__cpu_slice *slice,
                          uint32_t phase);
void qn__cpu_slice_gradient(const qn__cpu_pass *pass, int thread, const qn__cpu_slice *slice,
                            uint32_t phase);

#endif
