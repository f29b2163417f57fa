/* The worker of the GPU backends, internal to its files. gpu.h describes what it does. */
#ifndef QN_DEVICE_GPU_GPU_WORKER_H
#define QN_DEVICE_GPU_GPU_WORKER_H

#include "device/gpu/gpu.h"
#include "device/gpu/gpu_call.h"
#include "device/gpu/gpu_turns.h"
#include "device/places.h"

enum {
    QN__GPU_FEEDS = 4,       /* sets of items known at the same time */
    QN__GPU_FLIGHTS = 2,     /* steps enqueued but not complete when train_step returns */
    QN__GPU_RECORDINGS = 16, /* the number of recordings that a driver takes */
    QN__GPU_STAGE = 4 << 20  /* bytes of the buffer on the host in which arrays are rearranged */
};

typedef struct qn__gpu_kind qn__gpu_kind; /* gpu_kinds.h */

/* The arrays of a layer that share memory with those of others (gpu_windows.c): `at` is a buffer.
 */
typedef struct qn__gpu_places {
    qn__place output, dropped, slope, errors;
} qn__gpu_places;

/* One layer: its offset in the device's arrays of parameters, and its arrays of a batch. */
typedef struct qn__gpu_layer {
    const qn__layer *layer;
    const qn__gpu_kind *kind;
    uint64_t weights, biases; /* in floats; the biases follow the weights like one more row */
    qn__gpu_memory output;    /* [rows][ld(channels)], before dropout */
    qn__gpu_memory dropped;   /* after it; no bytes without dropout */
    qn__gpu_memory moments;   /* batchnorm: of the grains of the last pass of training */
    qn__gpu_memory slope;     /* of activations that keep it; no bytes for others */
    qn__gpu_memory errors;    /* of its outputs, if it trains */
    qn__gpu_places place;     /* of output, dropped, slope and errors, which are parts of buffers */
    /* For integer products (docs/exactness.md 15): weights as words along the inputs and, except in
     * the first layer, along the outputs; the offset in absmax_outputs. */
    qn__gpu_memory by_output, by_input;
    uint32_t output_place;
    uint32_t recomputes;   /* before its errors go back: outputs of so many layers before it are
                              computed again */
    int32_t source, other; /* layers whose outputs it reads, -1: the inputs; `other` of an add */
    uint32_t readers[2];   /* the first and the last layer that read its output */
} qn__gpu_layer;

/* A set of items that was trained on, which does not change while the worker is open. */
typedef struct qn__gpu_feed {
    qn__feed key;  /* items 0: the entry is free */
    uint64_t id;   /* unique, so that a recording refers to the feed it was made for */
    uint64_t used; /* when, on the worker's own clock */
    uint64_t held; /* rows of values on the device; 0: they are sent with each batch */
    qn__gpu_memory values, rows, labels, weights;
} qn__gpu_feed;

/* Where the kernel FETCH reads the items of a pass. */
typedef struct qn__gpu_source {
    const qn__gpu_memory *values, *rows, *labels, *weights;
    uint32_t flags; /* QN_FETCH_... */
    uint32_t type;  /* what values are: QN_VALUES_ of kernels/step.h */
    int sent;       /* 1: sent for this pass only; labels and weights are written to `targets` and
                       `weight` after FETCH */
    int by_place;   /* 1: items are numbered by their positions in the batch */
    uint64_t id;    /* of the feed; 0 if it was sent */
} qn__gpu_source;

/* A step whose results are not yet known. */
typedef struct qn__gpu_flight {
    uint64_t step;
    uint32_t epoch;
} qn__gpu_flight;

/* Steps of the same number of items over the same feed have the same launches. */
typedef struct qn__gpu_recording {
    uint32_t items; /* 0: the entry is free */
    uint64_t feed;  /* its id */
    uint64_t used;
    uint32_t positions; /* as `shortened` has them */
    int recorded;
} qn__gpu_recording;

typedef struct qn__gpu_kernel qn__gpu_kernel; /* gpu_kernel.c */

/* The parts of a worker. Arrays without bytes are not needed by its program. */

/* Parameters and what belongs to each of them. */
typedef struct qn__gpu_model {
    uint64_t padded; /* floats of all parameters in the device's layout */
    qn__gpu_memory parameters, slot[QN__SLOTS];
    qn__gpu_memory sums;      /* of gradients: int64 */
    int sums_count;           /* 0: `sums` is undefined and counts as zeros */
    qn__gpu_memory canonical; /* sums in canonical order; allocated when a step is first shared */
} qn__gpu_model;

/* Arrays of the items of a pass. */
typedef struct qn__gpu_batch {
    qn__gpu_memory unit, mean, inverse; /* for FETCH: bytes as floats; numbers of each feature */
    qn__gpu_memory inputs;              /* [items][ld(features)] */
    qn__gpu_memory numbers, targets, weight, loss, classes, scores, finite; /* of each item */
    /* Of several answers: the targets of each item; losses and states of ANSWERS and its sums. */
    qn__gpu_memory answers, pixel_loss, pixel_state, line_loss, line_state;
} qn__gpu_batch;

/* Buffers that arrays of layers have in turn; `bytes` is known before the memory is allocated. */
typedef struct qn__gpu_buffer {
    qn__gpu_memory memory;
    size_t bytes;
} qn__gpu_buffer;
/* An array in the order of sizes: gpu_windows.c. */
typedef struct qn__gpu_ranked {
    size_t bytes;
    uint32_t array;
} qn__gpu_ranked;
enum { QN__GPU_ARRAYS = 4 }; /* of each layer that may share a buffer */
typedef struct qn__gpu_shared {
    qn__gpu_buffer *buffer; /* space for QN__GPU_ARRAYS of each layer */
    qn__gpu_ranked *ranked; /* the same */
    qn__gpu_turns turns;
    uint32_t count; /* of buffers */
} qn__gpu_shared;

/* Space for the arrays of a network. Fails with QN_MEMORY; freed in any case. */
qn_status qn__gpu_shared_create(uint32_t layers, qn__gpu_shared *out, qn_error *err);
void qn__gpu_shared_free(qn__gpu_shared *shared);

/* For layers with pixels (gpu_pixels.c). A product reads rows, but a window is not a row of an
 * array. So a chunk of rows is unfolded first:
 *
 *     inputs -- gathered by `taps` --> `unfolded` -- product --> `chains` --> outputs
 *
 * `taps` says which inputs each output reads. */
typedef struct qn__gpu_unfolding {
    qn__gpu_memory taps;     /* what rows read: QN__GPU_TAPS for each layer */
    qn__gpu_memory unfolded; /* of `unfolded_floats` */
    uint64_t unfolded_floats;
    qn__gpu_memory chains;     /* results of a chunk; or numbers of a kind (gpu_kinds.h) */
    qn__gpu_memory transposed; /* weights by output */
    qn__gpu_memory rows;       /* the step of a chunk's products */
} qn__gpu_unfolding;

/* The last layer slice by slice (gpu_slices.c). */
typedef struct qn__gpu_slicing {
    uint64_t words;       /* of integers: along the rows of the grains of a slice */
    uint64_t marks_bytes; /* of `marks` */
    uint32_t rows;        /* of a slice; 0: there are none */
    uint32_t outputs;     /* whose errors are computed together once more; 0: slices are grains */
    uint32_t grain;       /* rows of one, at most */
    qn__gpu_memory marks; /* of each row: the maximum and the sum of its softmax */
} qn__gpu_slicing;

/* For integer products: absmax of the blocks (of each layer's outputs; of items; of rows of a
 * chunk; of each grain's inputs, layer after layer, then of its errors), and operands as words, of
 * one product at a time. */
typedef struct qn__gpu_integers {
    qn__gpu_memory absmax_outputs, absmax_items, absmax_rows, absmax_grains;
    qn__gpu_memory quantized_items, quantized_inputs, quantized_errors;
} qn__gpu_integers;

/* The items that the device has. */
typedef struct qn__gpu_feeds {
    qn__gpu_feed feed[QN__GPU_FEEDS];
    qn__gpu_memory sent_values, sent_rows; /* of one batch, if its feed is not on the device */
    uint64_t clock; /* counts uses of feeds and recordings, and the feeds themselves */
} qn__gpu_feeds;

/* The items of a batch as lists (gpu_packed_lists.c). Memory grows with the batches. */
typedef struct qn__gpu_lists {
    int takes;      /* 1: the first layer reads lists; 0: all inputs are written out */
    uint32_t count; /* inputs that the batch has */
    qn__gpu_memory rows, columns; /* of items, and of inputs */
    uint32_t *words, *column_of;  /* on the host: what is sent; zeros for all inputs */
    uint64_t capacity;            /* of `words` */
} qn__gpu_lists;

/* Steps that are enqueued, and recorded to be enqueued at once. */
typedef struct qn__gpu_launches {
    qn__gpu_flight flight[QN__GPU_FLIGHTS + 1]; /* the oldest first */
    uint32_t flights, slot_of_next;             /* slots are used in a circle */
    qn__gpu_recording recording[QN__GPU_RECORDINGS];
} qn__gpu_launches;

/* What kernels report: they only add to `status`. */
typedef struct qn__gpu_reports {
    qn__gpu_memory status;
    qn_status_words seen; /* the part that was reported already */
    int stale;            /* 1: `status` holds a failure, and is cleared before the next pass */
    qn__tally tally;
} qn__gpu_reports;

struct qn__worker {
    const qn__gpu_driver *driver;
    qn__gpu *gpu;
    const qn__gpu_facts *facts;
    const qn__program *program;
    qn__gpu_kernel *kernel; /* of a worker without a program; NULL: none was prepared */
    uint32_t slots;         /* arrays of the optimiser's state */
    uint32_t bits;          /* of integer products; 0: they are chains of floats */
    uint32_t capacity;      /* items of the batch arrays */
    uint64_t bytes;         /* that the worker has allocated on the device */
    qn__gpu_layer *layer;
    qn__gpu_memory step; /* the numbers of a step, for all its kernels */
    qn__gpu_model model;
    qn__gpu_batch batch;
    qn__gpu_shared shared;
    qn__gpu_unfolding pixels;
    qn__gpu_integers integers;
    qn__gpu_slicing slices;
    qn__gpu_feeds feeds;
    qn__gpu_lists lists;
    qn__gpu_launches launches;
    qn__gpu_reports reports;
    struct {
        qn__layer *layer;   /* the program's, with the positions of the pass; NULL: always all */
        uint32_t positions; /* of items of tokens */
    } shortened;            /* gpu_shorten.c */
    struct {
        qn__traffic traffic;
        double busy;
    } measured; /* in the self-test, which does not count */
    struct {
        char *memory;
        size_t bytes;
        void *augment_space;     /* of qn__augment_space bytes */
        void *shown_space;       /* of qn__shown_space bytes */
        char *partner;           /* the values of an item that is mixed into another */
        uint32_t *sequence_rows; /* of each sequence that grows */
    } stage;                     /* on the host, where arrays are rearranged */
};

/* A sequence of driver calls: after a failure the others do nothing. */
typedef struct qn__gpu_pass {
    qn__worker *worker;
    const qn__gpu_source *source;
    uint32_t items;
    uint32_t steps; /* of sequences that grow: the most rows of one; else 0 */
    int training;
    qn_status status;
    qn_error *err;
} qn__gpu_pass;

enum { QN__GPU_TAPS = 3 }; /* forward, backward, rows as they are */

/* Pixels of a layer's outputs. */
static inline uint32_t qn__gpu_pixels(const qn__layer *l) { return l->to.height * l->to.width; }

/* Whether errors of the outputs of `source` are computed: it is a layer, and it trains. */
static inline int qn__gpu_takes_errors(const qn__worker *w, int32_t source) {
    return source >= 0 && (uint32_t)source >= w->program->frozen && !w->program->sequences;
}

/* The rows of a layer's table of positions. */
static inline uint32_t qn__gpu_positions(const qn__worker *w, const qn__layer *l) {
    return w->program->sequences ? w->program->positions : qn__gpu_pixels(l);
}

/* Whether the pass computes the gradient of a layer. */
static inline int qn__gpu_learns(const qn__gpu_pass *pass, uint32_t layer) {
    return pass->training && layer >= pass->worker->program->frozen;
}

/* Whether a layer that reads the output of `source` is the first of the step that gives it errors:
 * errors are computed from the last layer to the first. */
static inline int qn__gpu_gives_first(const qn__worker *w, uint32_t layer, int32_t source) {
    return w->layer[source].readers[1] == layer;
}
static inline int qn__gpu_gives_last(const qn__worker *w, uint32_t layer, int32_t source) {
    return w->layer[source].readers[0] == layer;
}

/* Whether another layer gives errors to the layer that this one reads. */
static inline int qn__gpu_shares_source(const qn__worker *w, uint32_t layer) {
    const int32_t source = w->layer[layer].source;
    return source >= 0 && w->layer[source].readers[0] != w->layer[source].readers[1];
}

/* Rows of ld(channels) after the weights of a layer: its biases, or what a normalisation or an
 * embedding has. */
static inline uint32_t qn__gpu_vectors(const qn__layer *l) {
    return l->depth ? 1 : l->tied ? 0 : l->vectors * (l->vector / l->to.channels);
}

/* Pieces of work of kernels that take sixteen columns of a row each. */
static inline uint64_t qn__gpu_sixteens(uint64_t rows, uint64_t columns) {
    return rows * (qn__gpu_ld(columns) / QN_LD);
}

/* gpu_memory.c */

/* Assigns the offsets of the layers' parameters; sets `padded`. */
void qn__gpu_place(qn__worker *worker);
/* gpu_windows.c: chooses the layers that are computed again, and the buffer of each array that
 * shares memory; sets `shared`. After the allocation: the arrays are parts of the buffers. */
void qn__gpu_place_arrays(qn__worker *worker);
void qn__gpu_connect_arrays(qn__worker *worker);
/* Bytes that the worker allocates; *largest receives those of the largest buffer. */
uint64_t qn__gpu_needs(const qn__worker *worker, uint64_t *largest);
/* Allocates all memory of a step. QN_DEVICE with sizes and a remedy when the device is too small,
 * before anything is allocated. */
qn_status qn__gpu_allocate(qn__worker *worker, qn_error *err);
/* The buffer of sums in canonical order, which exists from the first shared step on. */
qn_status qn__gpu_need_canonical(qn__worker *worker, qn_error *err);
/* Allocates one more buffer and counts it. `what` names it in the message. */
qn_status qn__gpu_more(qn__worker *worker, const char *what, uint64_t bytes, qn__gpu_memory *out,
                       qn_error *err);
/* 1 when `bytes` more, in buffers of at most `largest`, still fit. */
int qn__gpu_fits(const qn__worker *worker, uint64_t bytes, uint64_t largest);
void qn__gpu_drop(qn__worker *worker, qn__gpu_memory *memory);
void qn__gpu_release_all(qn__worker *worker);

/* The number of the item at a place of a batch. */
static inline uint64_t qn__gpu_item_at(const qn__batch *batch, uint32_t place) {
    const uint64_t position = qn__batch_position(batch, place);
    return batch->order ? qn__permutation_at(batch->order, position) : position;
}

/* gpu_packed_lists.c: sends the lists of a batch, for a training those of its inputs, too. */
qn_status qn__gpu_send_lists(qn__worker *worker, const qn__batch *batch, int training,
                             qn_error *err);
/* gpu_lists.c: a dense first layer, if `lists.takes`. */
void qn__gpu_launch_lists_forward(qn__gpu_pass *pass, uint32_t layer);
void qn__gpu_launch_lists_gradient(qn__gpu_pass *pass, uint32_t layer, int add);

/* gpu_data.c */

/* Makes the items of a training batch available: its feed is uploaded when it is new and fits,
 * otherwise the batch's items are. */
qn_status qn__gpu_source_of(qn__worker *worker, const qn__batch *batch, qn__gpu_source *source,
                            qn_error *err);
/* The same for apply, whose feeds may change after the call and are not kept. */
qn_status qn__gpu_source_once(qn__worker *worker, const qn__batch *batch, qn__gpu_source *source,
                              qn_error *err);
/* Writes the batch's labels and weights to the arrays of FETCH; call it after FETCH, for sources
 * that were sent. */
/* The numbers of the batch's items, whose positions do not follow one another. */
qn_status qn__gpu_send_numbers(qn__worker *worker, const qn__batch *batch, qn_error *err);
/* 24.57: the labels of the partners of the batch's items, and the shares of their own labels. */
qn_status qn__gpu_send_partners(qn__worker *worker, const qn__batch *batch, qn_error *err);
qn_status qn__gpu_send_targets(qn__worker *worker, const qn__batch *batch, qn_error *err);
/* 24.22: the targets of the batch's items, each of which has several, as a training sees them, and
 * the items' shares. */
qn_status qn__gpu_send_shown(qn__worker *worker, const qn__batch *batch, qn_error *err);
/* Sends the qn_step of a pass to the device, and clears the status words if needed. `update` may be
 * NULL. */
qn_status qn__gpu_send_step(qn__worker *worker, const qn__batch *batch,
                            const qn__gpu_source *source, const qn__update *update, qn_error *err);

/* gpu_launch.c */

/* The output of a layer, in training after dropout; of layer -1 the inputs of the network. */
const qn__gpu_memory *qn__gpu_output_of(const qn__gpu_pass *pass, int32_t layer);
/* The input of layer `layer`. */
const qn__gpu_memory *qn__gpu_input_of(const qn__gpu_pass *pass, uint32_t layer);
/* The errors of a layer. */
const qn__gpu_memory *qn__gpu_errors_of(const qn__worker *worker, uint32_t layer);
/* The estimated time of a product's variant with `tiles` tiles. */
uint64_t qn__gpu_cost(const qn__worker *worker, qn__kernel kernel, uint64_t tiles);
/* The number of groups that share `grains` grains of a gradient, for `tiles` tiles. If it is more
 * than one and the sums are to be overwritten (`add` 0), enqueues a clear of the sums first ..
 * end-1. */
uint32_t qn__gpu_k_blocks(qn__gpu_pass *pass, uint64_t grains, uint64_t tiles, uint64_t first,
                          uint64_t end, int add);
/* Pushes the number of tokens and of an item's values for kernels that read lengths, 0 where they
 * do not count for the layer. */
void qn__gpu_push_lengths(const qn__gpu_pass *pass, uint32_t layer, qn__gpu_call *call);
/* Pushes the arguments that describe the outputs of a layer, forward or backward. */
void qn__gpu_push_outputs(const qn__worker *worker, uint32_t layer, int drops, qn__gpu_call *call);
/* The same of a layer that has neither activation nor dropout. */
void qn__gpu_push_plain(const qn__worker *worker, qn__gpu_call *call);
/* Whether FORWARD applies the dropout of a layer; GATE does where it is enqueued after it. */
int qn__gpu_drops(const qn__gpu_pass *pass, uint32_t layer);
/* Enqueues GATE if the layer's activation needs it. */
void qn__gpu_launch_gate(qn__gpu_pass *pass, uint32_t layer);
/* The array from which ERRORS gets the derivative of a layer's activation: its outputs, or its
 * slopes. */
const qn__gpu_memory *qn__gpu_derived_of(const qn__worker *worker, uint32_t layer);
/* Pushes the arguments for the parameters, the optimiser's state and the optimiser's settings. */
void qn__gpu_push_state(const qn__worker *worker, qn__gpu_call *call);
void qn__gpu_push_rule(const qn__program *program, float decay, float factor, qn__gpu_call *call);
/* Enqueues a kernel; the second function is for kernels without tiles, over `work` pieces of
 * work. */
void qn__gpu_launch(qn__gpu_pass *pass, qn__kernel kernel, const uint32_t groups[3],
                    const qn__gpu_call *arguments);
void qn__gpu_launch_over(qn__gpu_pass *pass, qn__kernel kernel, uint64_t work,
                         const qn__gpu_call *arguments);

/* gpu_products.c: products of floats. Errors are computed from those of a layer for the layer
 * below; with `plain` without its dropout and activation, to that memory. */
void qn__gpu_launch_float_forward(qn__gpu_pass *pass, uint32_t layer);
void qn__gpu_launch_float_errors(qn__gpu_pass *pass, uint32_t layer, const qn__gpu_memory *plain);
void qn__gpu_launch_float_gradient(qn__gpu_pass *pass, uint32_t layer, int add);
/* Gradients, biases and update of a layer in one kernel, for devices that are CPUs. */
void qn__gpu_launch_learn(qn__gpu_pass *pass, uint32_t layer);

/* Matrices of a product. */
typedef struct qn__gpu_factors {
    const qn__gpu_memory *step; /* with the number of rows, and of the rows of a grain */
    const qn__gpu_memory *a, *e;
    const qn__gpu_memory *weights;
    uint64_t first;  /* weight, of `weights` or of the sums */
    uint32_t stride; /* from one row of them to the next */
    uint32_t rows, in, out;
    const qn__gpu_memory *to;
} qn__gpu_factors;

/* FORWARD without an activation: to[rows][ld(out)] = the chains of a[rows][ld(in)] and the weights,
 * from the biases after these. */
void qn__gpu_launch_chains(qn__gpu_pass *pass, const qn__gpu_factors *f);
/* ERRORS without an activation: to[rows][ld(in)] = the chains of e[rows][ld(out)] and the layer's
 * weights from `first` on. */
void qn__gpu_launch_error_chains(qn__gpu_pass *pass, const qn__gpu_factors *f);
/* GRADIENT of a part of layer `layer`: of a and e, over `grains` grains. */
void qn__gpu_launch_gradient(qn__gpu_pass *pass, uint32_t layer, const qn__gpu_factors *f,
                             uint64_t grains, int add);

/* gpu_pixels.c: layers with pixels (docs/exactness.md 16). */

/* Fills the records for the kernels, QN__GPU_TAPS of a layer. */
/* Writes the taps of all layers, as w->layer has them. */
qn_status qn__gpu_write_taps(qn__worker *worker, qn_error *err);
/* Once, after all memory was allocated: whether passes may have fewer positions than the program.
 * qn__gpu_shorten: chooses those of the pass to come over this batch, and has to be called before
 * each pass; `applied` is NULL in training. */
qn_status qn__gpu_can_shorten(qn__worker *worker, qn_error *err);
qn_status qn__gpu_shorten(qn__worker *worker, const qn__batch *batch, const qn__applied *applied,
                          qn_error *err);
void qn__gpu_taps_of(const qn__layer *layer, int planar, qn_taps *taps);
/* Sets unfolded_floats; returns the bytes of `chains` and `transposed`. */
void qn__gpu_pixels_needs(qn__worker *worker, uint64_t *chains, uint64_t *transposed);
void qn__gpu_launch_pixels_forward(qn__gpu_pass *pass, uint32_t layer);
void qn__gpu_launch_pixels_errors(qn__gpu_pass *pass, uint32_t layer);
/* Gradients of weights and biases; nothing for a layer without parameters. */
void qn__gpu_launch_pixels_gradient(qn__gpu_pass *pass, uint32_t layer, int add);

/* Applies dropout and activation of the layer that `layer` reads to its errors, in place, unless
 * another reader has still to give some. */
void qn__gpu_finish_errors(qn__gpu_pass *pass, uint32_t layer);

/* gpu_grouped.c: convolutions with groups (17.6). */
void qn__gpu_launch_grouped_forward(qn__gpu_pass *pass, uint32_t layer);
/* Nothing if no layer is below. */
void qn__gpu_launch_grouped_errors(qn__gpu_pass *pass, uint32_t layer);
void qn__gpu_launch_grouped_gradient(qn__gpu_pass *pass, uint32_t layer, int add);

/* gpu_norm.c: what normalisations share. The first arguments of their kernels but those of
 * gradients, and a launch over sixteen columns of each of some rows. */
void qn__gpu_push_norm_inputs(const qn__gpu_pass *pass, uint32_t layer, qn__gpu_call *call);
void qn__gpu_launch_norm(qn__gpu_pass *pass, qn__kernel kernel, uint64_t rows, uint32_t layer,
                         const qn__gpu_call *arguments);
/* The forward pass of a layer with a kernel that computes each value from one input and one
 * parameter. */
void qn__gpu_forward_values(qn__gpu_pass *pass, uint32_t layer, qn__kernel kernel);
/* The same, with other numbers, from float `at` on, in the place of the parameters. */
void qn__gpu_forward_numbers(qn__gpu_pass *pass, uint32_t layer, qn__kernel kernel,
                             const qn__gpu_memory *numbers, uint64_t at);
/* The pixels of all items of the pass. */
uint64_t qn__gpu_all_pixels(const qn__gpu_pass *pass, uint32_t layer);
/* Outputs, and errors if a layer is below. divisions: groups of an item, or grains, each with
 * moments of its own; 0: there are running averages. */
void qn__gpu_norm_outputs(qn__gpu_pass *pass, qn__kernel kernel, uint32_t layer,
                          uint32_t divisions);
void qn__gpu_norm_errors(qn__gpu_pass *pass, qn__kernel kernel, uint32_t layer, uint32_t divisions);

/* gpu_pass.c: each function enqueues its kernels for all items of the pass. */
void qn__gpu_launch_fetch(qn__gpu_pass *pass);
void qn__gpu_launch_layers(qn__gpu_pass *pass, uint32_t end); /* those before layer `end` */
/* All layers and the loss. Where the last one goes slice by slice, in training also its errors and
 * its gradient, to sums as below, and its outputs to the host unless `outputs` is NULL. */
void qn__gpu_launch_forward(qn__gpu_pass *pass, uint32_t flags, int add, float *outputs);
/* Errors of all layers and the sums of their gradients; `add` 0: the sums are overwritten. With
 * `update` the parameters are updated, and the sums are undefined. */
void qn__gpu_launch_backward(qn__gpu_pass *pass, int add, int update);
void qn__gpu_launch_update(qn__gpu_pass *pass);
void qn__gpu_launch_tally(qn__gpu_pass *pass, uint32_t flags);
void qn__gpu_launch_sums(qn__gpu_pass *pass, qn__kernel kernel);

/* Rows of an array, or outputs of a layer. */
typedef struct qn__gpu_range {
    uint32_t begin, count;
} qn__gpu_range;

/* gpu_answers.c: losses and states of some rows of the last layer, in training their errors in the
 * place of their outputs. The array has these rows alone. */
void qn__gpu_launch_answers(qn__gpu_pass *pass, const qn__gpu_range *rows, uint32_t flags);
/* The errors of some outputs of the rows, from their logits, in their place. */
void qn__gpu_launch_answers_again(qn__gpu_pass *pass, const qn__gpu_range *rows,
                                  const qn__gpu_range *outputs);
/* Losses and states of items, once all rows have theirs. */
void qn__gpu_launch_answer_sums(qn__gpu_pass *pass);

/* gpu_slices.c. Chooses the slices of the last layer: rows 0 if there are none. */
void qn__gpu_slices_shape(qn__worker *worker);
/* Bytes of the array of outputs, where there are slices. */
uint64_t qn__gpu_slice_bytes(const qn__worker *worker);
/* The last layer, as qn__gpu_launch_forward says. */
void qn__gpu_launch_slices(qn__gpu_pass *pass, uint32_t flags, int add, float *outputs);

/* gpu_intgemm.c: the same for integer products; layer by layer. */
/* The words of the layers from `first` on, after their weights have changed: those of layers that
 * do not train stay as they are between two loads. */
void qn__gpu_launch_weights(qn__gpu_pass *pass, uint32_t first);
/* Before the layers of a pass. */
void qn__gpu_launch_intgemm_begin(qn__gpu_pass *pass);
void qn__gpu_launch_intgemm_forward(qn__gpu_pass *pass, uint32_t layer);
void qn__gpu_launch_intgemm_errors(qn__gpu_pass *pass, uint32_t layer);
void qn__gpu_launch_intgemm_gradient(qn__gpu_pass *pass, uint32_t layer, int add);

/* Rows of a product. */
typedef struct qn__gpu_rows {
    const qn__gpu_memory *step;   /* with the number of rows, and of the rows of a grain */
    const qn__gpu_memory *absmax; /* of each row */
    uint32_t count, grain;
} qn__gpu_rows;

/* Products of the rows in quantized_items: to[rows][ld(count)], so many of the layer's outputs
 * without activation. */
void qn__gpu_launch_intgemm_chains(qn__gpu_pass *pass, uint32_t layer, const qn__gpu_rows *rows,
                                   const qn__gpu_range *outputs, const qn__gpu_memory *to);
/* The same for errors: to[rows][ld(in)], of `out` weighed errors in a row. */
void qn__gpu_launch_intgemm_sums(qn__gpu_pass *pass, uint32_t layer, const qn__gpu_rows *rows,
                                 uint32_t in, uint32_t out, const qn__gpu_memory *to);
/* from[rows][ld(columns)] as words along the rows of each grain. grain_place: of the first grain in
 * absmax_grains. */
void qn__gpu_quantize_grains(qn__gpu_pass *pass, const qn__gpu_rows *rows,
                             const qn__gpu_memory *from, const qn__gpu_memory *to, uint32_t columns,
                             uint32_t grain_place);
/* GRADIENT of some inputs and outputs of the weights, from quantized_inputs and
 * quantized_errors. */
void qn__gpu_launch_intgemm_partials(qn__gpu_pass *pass, uint32_t layer, const qn__gpu_rows *rows,
                                     const qn__gpu_range *inputs, const qn__gpu_range *outputs,
                                     uint32_t first_grain, int add);
/* Where a layer's inputs and its errors begin in absmax_grains. */
uint32_t qn__gpu_inputs_place(const qn__gpu_pass *pass, uint32_t layer);
uint32_t qn__gpu_errors_place(const qn__gpu_pass *pass, uint32_t layer);
/* The number of values in a row of words: along n numbers, and along a batch of grains. */
uint64_t qn__gpu_words(uint64_t n);
uint64_t qn__gpu_grain_words(const qn__program *program);
/* The same along a single grain. */
uint64_t qn__gpu_words_of_grain(uint64_t grain);

/* gpu_pixels_intgemm.c: the same for convolutions and dense layers after pixels (17.12). Errors
 * are also those of a dense layer whose source has other readers. */
void qn__gpu_launch_pixels_intgemm_forward(qn__gpu_pass *pass, uint32_t layer);
void qn__gpu_launch_pixels_intgemm_errors(qn__gpu_pass *pass, uint32_t layer);
void qn__gpu_launch_pixels_intgemm_gradient(qn__gpu_pass *pass, uint32_t layer, int add);
/* Values of words that chunks of rows need, in quantized_items and quantized_inputs; in
 * quantized_errors; and rows. */
void qn__gpu_pixels_words(const qn__worker *worker, uint64_t *words, uint64_t *errors,
                          uint64_t *rows);

/* gpu_kernel.c: host jobs that have a kernel. */
qn_status qn__gpu_kernel_run(qn__worker *worker, const qn__host_job *job, uint32_t first,
                             uint32_t count, const qn__outlet *sums, qn_error *err);
void qn__gpu_kernel_release(qn__worker *worker);

/* gpu_step.c */

/* The part of the posted status words that is new since the last call. */
qn_status_words qn__gpu_since(qn__worker *worker, const qn_status_words *posted);
/* Posts the status words, waits for them and returns what the pass reported. */
qn_status qn__gpu_status(qn__worker *worker, qn_status_words *words, qn_error *err);
/* Adds the words to the tally; QN_NUMERIC when a loss was out of range. */
qn_status qn__gpu_add_tally(const qn__worker *worker, const qn_status_words *words,
                            qn__tally *tally, qn_error *err);

/* gpu_outputs.c: outputs of the last layer, of some rows of a pass of so many items, to their
 * places among those of all. The device's array has these rows alone. */
qn_status qn__gpu_read_outputs(qn__worker *worker, uint32_t items, const qn__gpu_range *of,
                               float *to, qn_error *err);

/* The two jobs of qn__gpu_run, on all items of a batch: training adds to the worker's own sums. */
qn_status qn__gpu_train(qn__worker *worker, const qn__batch *items, qn_error *err);
qn_status qn__gpu_apply(qn__worker *worker, const qn__batch *items, const qn__applied *applied,
                        qn__tally *tally, qn_error *err);

#endif
