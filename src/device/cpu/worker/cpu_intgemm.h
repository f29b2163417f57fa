/* A step in integer arithmetic (docs/exactness.md 15): operands of integer products, which the
 * CPU worker keeps beside the arrays of floats, and the phases that make them.
 *
 * Activations, dropout, losses, biases and the optimiser see floats, in the same panels and by the
 * same code as in float32. Before a product its operands are packed (intgemm.h): the inputs of
 * a batch and the errors that go further down by items, 16 to a block; weights when the optimiser
 * has made them; and inputs and errors once more for the gradient, where a block is a grain. */
#ifndef QN_DEVICE_CPU_WORKER_CPU_INTGEMM_H
#define QN_DEVICE_CPU_WORKER_CPU_INTGEMM_H

#include "device/cpu/integer/intgemm.h"
#include "device/device.h"
#include <stdatomic.h>

struct qn__cpu_pass;
struct qn__cpu_core;
struct qn__cpu_layer;
struct qn__cpu_counter;

/* Weights between `blocks` panels of inputs from `in` on and `panels` panels of outputs from `out`
 * on. */
typedef struct qn__cpu_patch {
    uint32_t in, blocks, out, panels;
} qn__cpu_patch;

enum { QN__STRIP = 4 }; /* panels of inputs whose weights are packed together: 64 depths */

enum { QN__BYTE_PANEL = QN__PANEL * QN__PANEL }; /* bytes of 16 items in a panel */

/* Rows of a batch, each a block, as left operands in blocks of 16. */
typedef struct qn__cpu_rows {
    void *left;
    float *factor;    /* 2^t of each row of `left` */
    uint32_t *absmax; /* of each item: bits of the greatest magnitude of its inputs or errors */
    uint8_t *bytes;   /* of the first layer's inputs, where they are bytes: below */
} qn__cpu_rows;

/* A grain in the gradient of a layer. */
typedef struct qn__cpu_grain {
    int32_t exponent;               /* ta + td */
    int waits;                      /* has something to add, and is in no group yet */
    float input, error;             /* inverses of its blocks */
    uint8_t input_room, error_room; /* how often their integers may be doubled */
    uint8_t narrow_room;            /* and errors without QN__WIDE */
} qn__cpu_grain;

/* Grains whose items are multiplied as one. */
typedef struct qn__cpu_grains {
    uint32_t first, count; /* in the plan's list of items */
    int32_t exponent; /* of the sum; a grain's ta + td less how often its integers are doubled */
    int inputs_doubled, errors_doubled; /* some are */
    int wide;                           /* errors more often than narrow ones may be */
    size_t at;                          /* of its operand in a panel's operands */
} qn__cpu_grains;

/* How the gradient of a layer is summed in a step. Sums come in units of 2^shift. */
typedef struct qn__cpu_plan {
    int bad; /* a block is not finite */
    qn__sums kind;
    int shift;
    uint32_t groups;
    int packed; /* operands have their place in the layer's; else each task packs for itself */
    qn__cpu_grain *grain;
    qn__cpu_grains *group;
    uint32_t *list; /* of items, group by group; what follows goes with it */
    float *input_inverse, *error_inverse;
    uint8_t *input_doubled, *error_doubled;
} qn__cpu_plan;

/* What one layer has beside its floats. */
typedef struct qn__cpu_intgemm {
    size_t right_size, transposed_size; /* bytes of one panel */
    void *right;             /* weights: out_panels panels, as deep as there are inputs */
    void *transposed;        /* in_panels panels, as deep as there are outputs; not in layer 0 */
    float *factor, *inverse; /* 2^tw and 2^-tw of each output */
    uint32_t *strip_absmax;  /* out_panels x qn__cpu_strips x 16: of each column of a strip */
    struct qn__cpu_counter *changed; /* strips of each group of panels that have new weights */
    qn__cpu_rows input;              /* 15.4 */
    qn__cpu_rows error;              /* 15.5: `left` is c, `absmax` of delta */
    /* Operands of 15.6, a panel `operands` bytes behind the other: of inputs, of errors. */
    size_t operands;
    void *input_items, *error_items;
    qn__cpu_plan plan; /* from the phase in which they are packed on */
} qn__cpu_intgemm;

/* Bytes of the operands of a gradient in one panel. */
size_t qn__cpu_operands(const qn__intgemm *intgemm, int bits, uint32_t batch, uint32_t grain);

/* Weights between panel `out` of outputs and QN__STRIP panels of inputs, those from QN__STRIP *
 * strip on, are new, and their greatest magnitudes are at qn__cpu_strip_absmax: packs them, while
 * they are in the first cache, with the exponents that their columns had before, which mostly are
 * those that they will have. */
void qn__cpu_strip_changed(const qn__worker *worker, uint32_t layer, uint32_t out, uint32_t strip);
/* So many more strips of a group of panels of outputs are new and were looked at: who brings the
 * last of a group sees to its exponents and to what they were wrong for. */
void qn__cpu_count_strips(qn__worker *worker, uint32_t layer, uint32_t group, uint32_t strips);
/* No strip is counted as changed. */
void qn__cpu_begin_changes(qn__worker *worker);
/* All weights are new. */
void qn__cpu_pack_weights(qn__worker *worker);

/* Items first .. first + rows - 1 (at most 16) of the batch fetched last, in `inputs`. */
void qn__cpu_intgemm_fetched(const qn__worker *worker, uint32_t first, uint32_t rows,
                             const float *inputs, size_t stride, qn__cpu_rows *to);

/* Whether the items of a feed become operands without floats. Their bytes are then kept in blocks
 * of 16 items: for each panel of features a row of 16 bytes for each item. */
int qn__cpu_from_bytes(const qn__worker *worker, const qn__feed *feed);
/* Whether they are operands as they are: bytes times a power of two, which are 8-bit integers in
 * whatever block they stand. Then all blocks have the factor qn__cpu_raw_factor, exactly. */
int qn__cpu_is_raw(const qn__worker *worker, const qn__feed *feed);
float qn__cpu_raw_factor(qn__scale scale);
/* What tables are asked for with a layer's inputs on the left: bits, and QN__OF_BYTES. */
int qn__cpu_width(const struct qn__cpu_pass *pass, uint32_t layer);
/* Bytes of one block. */
size_t qn__cpu_bytes_block(const qn__worker *worker);
/* Items first .. first + rows - 1 (at most 16) of the batch fetched last, their rows at `from`. */
void qn__cpu_bytes_fetched(const qn__worker *worker, uint32_t first, uint32_t rows,
                           const uint8_t *const *from, qn__cpu_rows *to);

/* Phases (cpu_worker.h), with a barrier behind each. Inputs of a layer but the first: */
void qn__cpu_pack_inputs(const struct qn__cpu_pass *pass, int thread, uint32_t layer,
                         uint32_t phase);
/* Weights of a layer for the way back: */
void qn__cpu_pack_transposed(const struct qn__cpu_pass *pass, int thread, uint32_t layer,
                             uint32_t phase);
/* Errors of a layer, on their way further down and for its gradient: */
void qn__cpu_pack_errors(const struct qn__cpu_pass *pass, int thread, uint32_t layer,
                         uint32_t phase);
/* Errors of the layer below: */
void qn__cpu_intgemm_backward(const struct qn__cpu_pass *pass, int thread, uint32_t layer,
                              uint32_t phase);
/* The plan of the gradient and its operands, in two phases of the counter: */
void qn__cpu_pack_operands(const struct qn__cpu_pass *pass, int thread, uint32_t layer,
                           uint32_t phase);

/* Items of one task of a product by so many groups of panels: a multiple of 16. `size`: the bytes
 * of a block of 16 of them. */
uint32_t qn__cpu_intgemm_items(const struct qn__cpu_pass *pass, size_t size, uint32_t groups);

/* Products of the phases that are shared with float32: of a layer's forward pass, `rows` items from
 * `first` (a multiple of 16) by `panels` panels; of the last layer, with at most 16 rows from any
 * item; and from the last layer's errors to those below, for the same items. */
void qn__cpu_intgemm_product(const struct qn__cpu_pass *pass, uint32_t layer, uint32_t first,
                             uint32_t rows, uint32_t panel, uint32_t panels);
void qn__cpu_intgemm_last(const struct qn__cpu_pass *pass, struct qn__cpu_core *core,
                          uint32_t first, uint32_t rows, const float *input);
void qn__cpu_intgemm_fused(const struct qn__cpu_pass *pass, struct qn__cpu_core *core,
                           uint32_t first, uint32_t rows);

/* Behind a pass: the first layer with inputs that are not finite; the number of layers when there
 * is none, so that it can be the last one's outputs. */
uint32_t qn__cpu_not_finite(const struct qn__cpu_pass *pass);

/* The products of one group of the layer's plan: blocks of 16 x 16 as in qn__intgemm.outer.
 * Where operands are not packed at.blocks is 1. */
void qn__cpu_intgemm_outer(const struct qn__cpu_pass *pass, struct qn__cpu_core *core,
                           uint32_t layer, uint32_t group, qn__cpu_patch at, qn__intgemm_out how,
                           void *to);

#endif
