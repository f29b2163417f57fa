/* The table of layer kinds of the GPU worker: a row of functions for each, which enqueue kernels
 * for all items of a pass. The row is in the file of the kind. The text of its kernels is in
 * kernels/training, their arguments in kernels/kernels.h.
 *
 *     forward 0, forward 1, ...  ->  loss  ->  errors 1, gradient 1, errors 0, gradient 0
 *
 * Kernels of a pass run in the order in which they are enqueued, so a kind may keep numbers in
 * `chains` between two kernels of one function, and from `errors` until the `gradient` that
 * follows. */
#ifndef QN_DEVICE_GPU_GPU_KINDS_H
#define QN_DEVICE_GPU_GPU_KINDS_H

#include "device/gpu/gpu_worker.h"

struct qn__gpu_kind {
    void (*forward)(qn__gpu_pass *pass, uint32_t layer);
    /* The errors of the layers that it reads, if it reads any: errors are computed from the last
     * layer to the first. The last layer to give errors to an output calls qn__gpu_finish_errors or
     * does the same. */
    void (*errors)(qn__gpu_pass *pass, uint32_t layer);
    /* The sums of its parameters; `add` 0: they are overwritten. NULL: there are none. */
    void (*gradient)(qn__gpu_pass *pass, uint32_t layer, int add);
    /* Gradient and update in one kernel, for devices that are CPUs. Returns 0 if this layer cannot
     * do so. NULL: no layer of the kind can. */
    int (*learn)(qn__gpu_pass *pass, uint32_t layer);
    /* The update of running averages, from their sums. NULL: there are none. */
    void (*run_on)(qn__gpu_pass *pass, uint32_t layer);

    /* Bytes: of its array of numbers from the forward pass to the gradient (`moments`), and of
     * `chains` during a step. NULL: none. */
    uint64_t (*moments)(const qn__worker *worker, const qn__layer *layer);
    uint64_t (*chains)(const qn__worker *worker, const qn__layer *layer);
    /* Writes what `moments` contains, where that depends on the layer alone. NULL: a pass does. */
    void (*table)(const qn__worker *worker, const qn__layer *layer, float *moments);

    int reads_input;  /* 1: its errors or its gradient depend on its inputs */
    int reads_output; /* 1: they depend on its outputs, apart from the derivative */
    int keeps;        /* 1: of sequences that grow it keeps what later positions need */
    int convolves;    /* 1: errors are also computed as products, of windows of errors */
};

#define QN__GPU_ROW(KIND, NAME) extern const qn__gpu_kind qn__gpu_##NAME;
QN__LAYER_LIST(QN__GPU_ROW)

const qn__gpu_kind *qn__gpu_kind_of(qn__layer_kind kind);

/* qn__gpu_is_conv: a layer with weights that is not dense. qn__gpu_has_pixels: any layer except a
 * dense layer of features. */
static inline int qn__gpu_is_conv(const qn__gpu_layer *l) { return l->kind->convolves; }
static inline int qn__gpu_has_pixels(const qn__gpu_layer *l) {
    return l->kind->convolves || l->layer->from.height > 1 || l->layer->from.width > 1;
}

/* Whether the layer reads the lists of the items. */
static inline int qn__gpu_reads_lists(const qn__gpu_pass *pass, uint32_t layer) {
    return layer == 0 && pass->worker->lists.takes;
}

/* Where the lengths of items come from (25.37): their tokens. Anything where they do not count. */
static inline const qn__gpu_memory *qn__gpu_lengths_of(const qn__gpu_pass *pass, uint32_t layer) {
    const qn__worker *w = pass->worker;
    return w->layer[layer].layer->by_length ? qn__gpu_input_of(pass, 0) : &w->step;
}

#endif
