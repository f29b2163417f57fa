/* The errors of a convolution below a max pool, as lists of those that are not zero.
 *
 * A window of a max pool passes its error to one of its pixels. So three of four errors or more are
 * zeros, and relu makes zeros of others. fma(0, w, acc) is acc, but for the sign of a zero: +0 at
 * the end of a chain of errors hides it, and integers have none. Weights and inputs that are not
 * finite are not an exception: such weights end the job in any case (cpu_zeros.h), and with such
 * inputs the gradient is computed of all errors.
 *
 * Before a layer's errors and gradient a phase lists its errors twice. For the errors of the layer
 * below: those of an item in a row of pixels, in the order (column, output). For the gradient:
 * those of an output in some columns of a row, in the order (column, item). So both chains keep
 * their order. */
#ifndef QN_DEVICE_CPU_WORKER_CPU_SPARSE_H
#define QN_DEVICE_CPU_WORKER_CPU_SPARSE_H

#include "device/cpu/float/cpu_kernels.h"
#include "device/cpu/worker/cpu_walk.h"
#include <stdatomic.h>

typedef struct qn__worker qn__worker;
typedef struct qn__cpu_layer qn__cpu_layer;
typedef struct qn__cpu_pass qn__cpu_pass;

typedef struct qn__cpu_sparse {
    size_t capacity;          /* entries of each kind; 0: the layer has no lists */
    uint32_t columns, pieces; /* a row of pixels in pieces of so many columns, for the gradient */
    size_t bytes;             /* of all that follows, in one array */
    qn__cpu_entry *by_item;   /* at: o * 16 - x * outputs * 16, outputs padded to panels */
    qn__cpu_entry *by_output; /* at: (column of the piece * items of the grain + item) * 16 */
    uint32_t *item_begin;     /* [row][item of the batch][column, and one]: in by_item */
    uint32_t *output_begin;   /* [grain][row]{[piece][output], and one}: in by_output */
    atomic_size_t used;       /* entries of each kind in this pass, or more than the capacity */
} qn__cpu_sparse;

/* Decides whether a layer has lists, which only `pool` reads. `capacity`: the most items. */
void qn__cpu_sparse_shape(qn__worker *worker, qn__cpu_layer *layer, const qn__layer *pool,
                          size_t capacity);
/* Sets the arrays in memory of `bytes`. */
void qn__cpu_sparse_place(qn__worker *worker, qn__cpu_layer *layer, size_t capacity, char *at);
/* Floats of one core's memory for inputs and masks. */
size_t qn__cpu_sparse_space(const qn__worker *worker);

/* The phase that makes the lists. */
void qn__cpu_sparse_list(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase);
/* Whether a layer's lists are complete: after the phase and a barrier. */
int qn__cpu_is_sparse(const qn__cpu_layer *layer);

/* The errors of a run of the layer below, `panels` of its panels from `panel` on. c: their first
 * panel. */
void qn__cpu_sparse_errors(const qn__cpu_pass *pass, const qn__cpu_layer *layer,
                           const qn__cpu_walk_run *run, uint32_t panel, uint32_t panels, float *c,
                           size_t c_stride);

/* A part of the gradient: a panel of inputs, `taps` from `tap` on, whole rows of them, and panels
 * of outputs. */
typedef struct qn__cpu_sparse_task {
    uint32_t in, tap, taps, out, panels;
} qn__cpu_sparse_task;
/* The partials of a grain: block (tap * panels + panel) of `partial`. */
void qn__cpu_sparse_gradient(const qn__cpu_pass *pass, int thread, const qn__cpu_layer *layer,
                             const qn__cpu_sparse_task *task, uint32_t grain, float *partial);

#endif
