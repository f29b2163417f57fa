/* The table of layer kinds of the CPU worker: a row of functions and properties for each. The row
 * is in the file that computes the kind, so a new kind is a new file here, and no other one
 * changes.
 *
 * A step goes through the layers of a network three times:
 *
 *     fetch -> forward 0 -> forward 1 -> ... -> last layer and loss
 *                                                     |
 *              backward 1, gradient 1  <-  ...  <- backward, gradient
 *
 * `forward`, `backward` and `gradient` are phases: every core calls them, and takes tasks with
 * qn__cpu_take until none is left. cpu_run.c says when all cores wait for each other. A phase ends
 * with functions that all kinds share: qn__cpu_follow or qn__cpu_after_product after outputs,
 * qn__cpu_after_errors after errors. */
#ifndef QN_DEVICE_CPU_WORKER_CPU_KINDS_H
#define QN_DEVICE_CPU_WORKER_CPU_KINDS_H

#include "device/cpu/worker/cpu_arena.h"
#include "device/cpu/worker/cpu_worker.h"

typedef void qn__cpu_phase(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase);

struct qn__cpu_kind {
    /* Outputs from inputs. Of a last layer with one answer, which is dense, qn__cpu_last is
     * called instead. */
    qn__cpu_phase *forward;
    /* The errors that the layer passes to those that it reads, from its own. Not called for a first
     * layer. */
    qn__cpu_phase *backward;
    /* The gradient of weights of products; NULL: there are none. */
    qn__cpu_phase *gradient;
    /* The sums over grains of a panel's other parameters, which are added, stored or applied.
     * Returns 1 if a partial was out of range. NULL: the kind has no parameters. */
    int (*sums)(const qn__cpu_pass *pass, uint32_t layer, uint32_t panel);

    /* Kinds without products whose phases are qn__cpu_walk_forward and _backward: one panel of the
     * outputs of a run, and of the errors that it passes. */
    void (*run)(const qn__cpu_pass *pass, int thread, const qn__cpu_layer *layer,
                const qn__cpu_walk_run *run, uint32_t panel, float *to);
    void (*run_back)(const qn__cpu_pass *pass, int thread, const qn__cpu_layer *layer,
                     const qn__cpu_walk_run *run, uint32_t panel, float *error);

    /* Ends of blocks whose backward phase is qn__cpu_join_backward: the errors of one of the two
     * outputs that they read, for rows of one panel. */
    void (*part_back)(const qn__cpu_pass *pass, const qn__cpu_layer *layer, int second,
                      uint32_t panel, uint32_t first, uint32_t rows, float *error);

    /* Memory: arrays of its own, and bytes beside its errors. NULL: none. */
    void (*carve)(qn__cpu_arena *arena, const qn__worker *worker, qn__cpu_layer *layer);
    void (*size)(const qn__worker *worker, qn__cpu_layer *layer);

    /* Predictions. `fold` computes what depends on the parameters alone, after they have changed.
     * `follow` replaces the outputs of the layer before by those of `layer`, for rows of one panel
     * from `at` on (cpu_follow.c). It returns the last layer that is computed in this way, and sets
     * *plain if its activation is done too. NULL: the kind does not follow. `after`, where not
     * NULL, tells a product to do the same with its results, and returns the same. */
    void (*fold)(const qn__cpu_layer *layer);
    uint32_t (*follow)(const qn__cpu_pass *pass, uint32_t layer, uint32_t panel, size_t at,
                       uint32_t rows, int *plain, float *out);
    uint32_t (*after)(const qn__cpu_pass *pass, uint32_t layer, uint32_t panel, size_t at,
                      int *plain, qn__cpu_after *after);

    unsigned one_matrix : 1;   /* all rows are one product: features */
    unsigned leads : 1;        /* its forward pass ends with qn__cpu_follow */
    unsigned reads_input : 1;  /* its backward pass or its gradient reads its input */
    unsigned reads_output : 1; /* its backward pass or its gradient reads its output */
    unsigned picks : 1;        /* passes an error to one input of a window: others are zero */
    unsigned passes_on : 1;    /* its own errors are those of both outputs that it reads */
    unsigned adds : 1;         /* also computes an add layer after it: qn__cpu_adds */
    unsigned whole_rows : 1;   /* passes errors of all items of a pixel at a time, in runs */
    /* Its errors of products are not those of its outputs: its backward phase, which comes before
     * its gradient, makes them, where it passes errors and where it does not. Its products are its
     * own. */
    unsigned unrolls : 1;
};

#define QN__CPU_ROW(KIND, NAME) extern const qn__cpu_kind qn__cpu_##NAME;
QN__LAYER_LIST(QN__CPU_ROW)

/* Whether a layer adds its outputs to others in this pass. A convolution does in training alone: in
 * predictions its add follows it. */
static inline int qn__cpu_adds(const qn__cpu_pass *pass, const qn__cpu_layer *layer) {
    return layer->add && (!layer->taps || (pass->training && !pass->apart));
}

/* Whether the outputs of an add layer are computed by the layer before it. */
static inline int qn__cpu_is_added(const qn__cpu_pass *pass, uint32_t layer) {
    const qn__cpu_layer *l = pass->worker->layer;
    return layer > 0 && l[layer - 1].add == &l[layer] && qn__cpu_adds(pass, &l[layer - 1]);
}

/* attention of a program with sequences: floats of a core, its forward phase (cpu_cache.c). */
size_t qn__cpu_cache_space(const qn__worker *worker);
void qn__cpu_cache_forward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase);

/* The errors of the biases of a layer that unrolls: those of q, after three gates. */
static inline const float *qn__cpu_unrolled(const qn__cpu_layer *layer) {
    return layer->recurrent.gates + 3 * (size_t)layer->out_panels * layer->out_stride;
}

/* recurrent: floats of a core. */
size_t qn__cpu_recurrent_space(const qn__worker *worker);

/* recurrent of a program with sequences: floats of a core, memory, its forward phase
 * (cpu_states.c). */
size_t qn__cpu_states_space(const qn__cpu_layer *layer);
void qn__cpu_states_carve(qn__cpu_arena *arena, const qn__worker *worker, qn__cpu_layer *layer);
void qn__cpu_states_forward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase);

/* The position of a row of a layer over positions. */
static inline uint32_t qn__cpu_position_of(const qn__cpu_pass *pass, size_t row) {
    return pass->extension ? pass->extension->position[row] : (uint32_t)(row / pass->batch->items);
}

/* The positions that a layer's table of positions has. A pass may have fewer (cpu_shorten.h). */
static inline uint32_t qn__cpu_positions(const qn__worker *worker, const qn__cpu_layer *layer) {
    const qn__shape all = layer->layer->to;
    return worker->program->sequences ? worker->program->positions : all.height * all.width;
}

/* This thread's share of an extension's logits, after the last layer (cpu_logits.c). */
void qn__cpu_give_logits(const qn__cpu_pass *pass, int thread);

/* Memory of an attention of a program with sequences (cpu_cache.c). */
void qn__cpu_cache_carve(qn__cpu_arena *arena, const qn__worker *worker, qn__cpu_layer *layer);

const qn__cpu_kind *qn__cpu_kind_of(qn__layer_kind kind);

#endif
