/* A step in integer arithmetic (docs/exactness.md 15): operands of integer products, which the CPU
 * worker keeps beside the arrays of floats, and the phases that pack them.
 *
 * Activations, dropout, losses, biases and the optimiser use floats, in the same panels and by the
 * same code as in float32. Operands are packed before a product (intgemm.h). Inputs of a batch and
 * errors for the layer below are packed by items, 16 to a block. Weights are packed when the
 * optimiser has changed them. Inputs and errors are packed again for the gradient, where a block is
 * a grain. */
#ifndef QN_DEVICE_CPU_WORKER_CPU_INTGEMM_H
#define QN_DEVICE_CPU_WORKER_CPU_INTGEMM_H

#include "device/cpu/integer/intgemm.h"
#include "device/device.h"
#include <stdatomic.h>

struct qn__cpu_pass;
struct qn__cpu_core;
struct qn__cpu_layer;
struct qn__cpu_counter;
struct qn__cpu_walk_run;

/* Weights: `blocks` panels of inputs from `in` on by `panels` panels of outputs from `out` on. */
typedef struct qn__cpu_patch {
    uint32_t in, blocks, out, panels;
} qn__cpu_patch;

enum { QN__STRIP = 4 }; /* panels of inputs whose weights are packed together: 64 rows */

enum { QN__BYTE_PANEL = QN__PANEL * QN__PANEL }; /* bytes of 16 items in a panel */

/* Rows of a batch, each a block of 15.2, as left operands in blocks of 16. Convolutions have only
 * `absmax`: their operands are made run by run. */
typedef struct qn__cpu_rows {
    void *left;
    float *factor;    /* 2^t of each row of `left` */
    uint32_t *absmax; /* of each item: bits of the largest magnitude of its inputs or errors */
    uint8_t *bytes;   /* of the first layer's inputs, if they are bytes: see below */
} qn__cpu_rows;

enum { QN__CHUNK = 512 }; /* depths of a convolution's gradient that are packed at a time */

/* Memory of one core for convolutions. */
typedef struct qn__cpu_rows_space {
    float *factor;     /* of each row of a run */
    uint32_t *list[2]; /* rows of the inputs and of the errors, for QN__CHUNK depths */
    float *inverse[2]; /* of each of them */
    void *right;       /* after `operand`: errors */
} qn__cpu_rows_space;

/* A grain in the gradient of a layer. */
typedef struct qn__cpu_grain {
    int32_t exponent;                 /* ta + td */
    int waits;                        /* 1: its partial is not zero, and it is not in a group yet */
    float input, error;               /* 2^-t of its blocks */
    uint8_t input_space, error_space; /* how often their integers may be doubled */
    uint8_t narrow_space;             /* the same for errors without QN__WIDE */
} qn__cpu_grain;

/* Grains whose items are multiplied in one product. */
typedef struct qn__cpu_grains {
    uint32_t first, count; /* in the plan's list of items */
    int32_t exponent;      /* of the sum: a grain's ta + td minus its number of doublings */
    int inputs_doubled, errors_doubled; /* 1: integers of some items are doubled */
    int wide;                           /* errors are doubled more often than without QN__WIDE */
    size_t at;                          /* offset of its operand in a panel's operands */
} qn__cpu_grains;

/* How the gradient of a layer is summed in a step. Sums count in units of 2^shift. */
typedef struct qn__cpu_plan {
    int bad; /* a block is not finite */
    qn__sums kind;
    int shift;
    uint32_t groups;
    int packed; /* operands are packed in the layer's memory; otherwise each task packs its own */
    qn__cpu_grain *grain;
    qn__cpu_grains *group;
    uint32_t *list; /* items, group by group; the following arrays are parallel to it */
    float *input_inverse, *error_inverse;
    uint8_t *input_doubled, *error_doubled;
} qn__cpu_plan;

/* The memory of one layer for integer arithmetic. */
typedef struct qn__cpu_intgemm {
    size_t right_size, transposed_size; /* bytes of one panel */
    void *right;                        /* weights: out_panels panels, k is the number of inputs */
    /* Weights for errors: a panel for each block (convolutions: for each panel of inputs), k is the
     * number of outputs, for each tap of a convolution. NULL if no layer is below. */
    void *transposed;
    float *factor, *inverse; /* 2^tw and 2^-tw of each output; convolutions: for each tap again */
    uint32_t *strip_absmax;  /* out_panels x qn__cpu_strips x 16: of each column of a strip */
    struct qn__cpu_counter *changed; /* strips of each group of panels with new weights */
    qn__cpu_rows input;              /* 15.4 */
    qn__cpu_rows error;              /* 15.5: `left` is c, `absmax` of delta */
    uint32_t *scaled_absmax;         /* convolutions: of c of each item */
    uint32_t *output_absmax;         /* of each item's outputs, if a convolution reads them */
    /* Operands of 15.6, of inputs and of errors. The panels are `operands` bytes apart. */
    size_t operands;
    void *input_items, *error_items;
    qn__cpu_plan plan; /* valid from the phase that packs them on */
} qn__cpu_intgemm;

/* Bytes of the operands of a gradient in one panel. */
size_t qn__cpu_operands(const qn__intgemm *intgemm, int bits, uint32_t batch, uint32_t grain);

/* Weights between panel `out` of outputs and QN__STRIP panels of inputs, from panel QN__STRIP *
 * strip on, are new; their absmax is at qn__cpu_strip_absmax. Packs them, while they are in the L1
 * cache, with the previous exponents of their columns, which rarely change. */
void qn__cpu_strip_changed(const qn__worker *worker, uint32_t layer, uint32_t out, uint32_t strip);
/* Counts new strips of a group of panels of outputs. The call that completes a group computes its
 * exponents and packs again the columns whose exponent changed. */
void qn__cpu_count_strips(qn__worker *worker, uint32_t layer, uint32_t group, uint32_t strips);
/* Resets the counts of changed strips. */
void qn__cpu_begin_changes(qn__worker *worker);
/* Packs all weights. */
void qn__cpu_pack_weights(qn__worker *worker);

/* Raises the absmax of items by the values of their rows (pixel, item), from row `first` on. The
 * values are `columns` columns from `from` on, whose panels are `stride` floats apart; column c is
 * multiplied by times[c] (NULL: 1). Several cores may do this at the same time. */
void qn__cpu_note_rows(const qn__worker *worker, uint32_t items, size_t first, uint32_t rows,
                       uint32_t columns, const float *from, size_t stride, const float *times,
                       uint32_t *absmax);
/* The same for some panels of the outputs of a layer that is `noted`, and of the errors of a
 * convolution. Called when their values are final. Does nothing for other layers. */
void qn__cpu_note_outputs(const struct qn__cpu_pass *pass, uint32_t layer, size_t first,
                          uint32_t rows, uint32_t panel, uint32_t panels);
void qn__cpu_note_errors(const struct qn__cpu_pass *pass, uint32_t layer, size_t first,
                         uint32_t rows, uint32_t panel, uint32_t panels);
/* The same for errors that `layer` passed, unless they go to a branch. */
void qn__cpu_note_passed(const struct qn__cpu_pass *pass, uint32_t layer, size_t first,
                         uint32_t rows, uint32_t panel, uint32_t panels);
/* Clears the absmax of `items` items before a pass. */
void qn__cpu_begin_notes(qn__worker *worker, uint32_t items);

/* v + 0: -0 becomes +0 (16.4). */
void qn__cpu_plain_zeros(const qn__worker *worker, size_t count, float *v);

/* Rows of a run whose operand of depth k stays in the L2 cache. */
uint32_t qn__cpu_run_rows(const qn__worker *worker, uint32_t k);
/* Convolutions: packs the weights if they have changed, then for the errors below (a phase after a
 * barrier). */
void qn__cpu_walk_pack(const struct qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase);
void qn__cpu_walk_pack_transposed(const struct qn__cpu_pass *pass, int thread, uint32_t layer,
                                  uint32_t phase);
/* The products of a run forward; a sum of 0 may be -0. Results of panel `panel` of the run's rows
 * begin at c. */
void qn__cpu_walk_run_product(const struct qn__cpu_pass *pass, int thread, uint32_t layer,
                              const struct qn__cpu_walk_run *run, uint32_t panel, uint32_t panels,
                              float *c, size_t c_stride);
/* Products of a run: forward, and errors of the layer below before 8.5. */
void qn__cpu_walk_product(const struct qn__cpu_pass *pass, int thread, uint32_t layer,
                          const struct qn__cpu_walk_run *run, uint32_t panel, uint32_t panels);
void qn__cpu_walk_errors(const struct qn__cpu_pass *pass, int thread, uint32_t layer,
                         const struct qn__cpu_walk_run *run, uint32_t panel, uint32_t panels);

/* Packs at most 16 rows of length k, each a block of its own, to one block of a left operand, and
 * gives their absmax and 2^t. The rest as in qn__intgemm.left. */
void qn__cpu_pack_rows(const qn__worker *worker, uint32_t rows, uint32_t k, const float *from,
                       const size_t *blocks, const float *times, void *left, float *factor,
                       uint32_t *absmax);

/* Items first .. first + rows - 1 (at most 16) of the batch fetched last, in `inputs`. */
void qn__cpu_intgemm_fetched(const qn__worker *worker, uint32_t first, uint32_t rows,
                             const float *inputs, const size_t *blocks, qn__cpu_rows *to);

/* Whether the items of a feed are packed as operands directly, without floats. Their bytes are then
 * stored in blocks of 16 items: for each panel of features a row of 16 bytes for each item. */
int qn__cpu_from_bytes(const qn__worker *worker, const qn__feed *feed);
/* Whether the bytes themselves are operands: bytes times a power of two are 8-bit integers in every
 * block. Then all blocks have the factor qn__cpu_raw_factor, exactly. */
int qn__cpu_is_raw(const qn__worker *worker, const qn__feed *feed);
float qn__cpu_raw_factor(qn__scale scale);
/* The width to pass to a table with a layer's inputs on the left: bits, and QN__OF_BYTES. */
int qn__cpu_width(const struct qn__cpu_pass *pass, uint32_t layer);
/* Bytes of one block. */
size_t qn__cpu_bytes_block(const qn__worker *worker);
/* Items first .. first + rows - 1 (at most 16) of the batch fetched last, their rows at `from`. */
void qn__cpu_bytes_fetched(const qn__worker *worker, uint32_t first, uint32_t rows,
                           const uint8_t *const *from, qn__cpu_rows *to);

/* Phases (cpu_worker.h), with a barrier after each. Packs the inputs of a layer that is not the
 * first: */
void qn__cpu_pack_inputs(const struct qn__cpu_pass *pass, int thread, uint32_t layer,
                         uint32_t phase);
/* Packs the weights of a layer for the backward pass: */
void qn__cpu_pack_transposed(const struct qn__cpu_pass *pass, int thread, uint32_t layer,
                             uint32_t phase);
/* Packs the errors of a layer, for the layer below and for its gradient: */
void qn__cpu_pack_errors(const struct qn__cpu_pass *pass, int thread, uint32_t layer,
                         uint32_t phase);
/* Computes the errors of the layer below: */
void qn__cpu_intgemm_backward(const struct qn__cpu_pass *pass, int thread, uint32_t layer,
                              uint32_t phase);
/* Makes the plan of a convolution's gradient over some items, which begin with a grain: each grain
 * by itself. `kind` is QN__SUMS_DOUBLE if doubles hold all sums exactly, otherwise QN__SUMS_INT64.
 */
void qn__cpu_plan_walk(const struct qn__cpu_pass *pass, uint32_t layer, uint32_t first,
                       uint32_t items, qn__cpu_plan *plan);
/* Makes the plan of the gradient and its operands, in two phases of the counter: */
void qn__cpu_pack_operands(const struct qn__cpu_pass *pass, int thread, uint32_t layer,
                           uint32_t phase);

/* Rows of one task of a product of `rows` by `groups` groups of panels: a multiple of 16. `size`:
 * the bytes of a block of 16 of them. */
uint32_t qn__cpu_intgemm_items(const struct qn__cpu_pass *pass, uint32_t rows, size_t size,
                               uint32_t groups);

/* Products of the phases that are shared with float32: of a layer's forward pass, `rows` items from
 * `first` (a multiple of 16) by `panels` panels; of the last layer, with at most 16 rows from any
 * item; and from the last layer's errors to those below, for the same items. */
void qn__cpu_intgemm_product(const struct qn__cpu_pass *pass, uint32_t layer, uint32_t first,
                             uint32_t rows, uint32_t panel, uint32_t panels);
void qn__cpu_intgemm_last(const struct qn__cpu_pass *pass, struct qn__cpu_core *core,
                          uint32_t first, uint32_t rows, const float *input);
void qn__cpu_intgemm_fused(const struct qn__cpu_pass *pass, struct qn__cpu_core *core,
                           uint32_t first, uint32_t rows);

/* After a pass: the first layer with inputs that are not finite. When there is none, the number of
 * layers: the outputs of the last one may not be finite. */
uint32_t qn__cpu_not_finite(const struct qn__cpu_pass *pass);

/* The products of one group of the layer's plan: blocks of 16 x 16 as in qn__intgemm.outer. If
 * operands are not packed, at.blocks is 1. */
void qn__cpu_intgemm_outer(const struct qn__cpu_pass *pass, struct qn__cpu_core *core,
                           uint32_t layer, uint32_t group, qn__cpu_patch at, qn__intgemm_out how,
                           void *to);

#endif
