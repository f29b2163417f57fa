/* The worker of the GPU backends, as its own files see it. What it does is told in gpu.h. */
#ifndef QN_DEVICE_GPU_GPU_WORKER_H
#define QN_DEVICE_GPU_GPU_WORKER_H

#include "device/gpu/gpu.h"
#include "device/gpu/gpu_call.h"

enum {
    QN__GPU_FEEDS = 4,       /* sets of items known at the same time */
    QN__GPU_FLIGHTS = 2,     /* steps under way when train_step returns */
    QN__GPU_RECORDINGS = 16, /* numbers that a driver takes */
    QN__GPU_STAGE = 4 << 20  /* bytes that are rearranged on the host before they travel */
};

/* One layer: its place in the device's arrays of parameters, and its arrays of a batch. */
typedef struct qn__gpu_layer {
    const qn__layer *layer;
    uint64_t weights, biases; /* in floats; the biases lie behind the weights like one more row */
    qn__gpu_memory output;    /* [rows][ld(out)], before dropout */
    qn__gpu_memory dropped;   /* after it; no bytes without dropout */
    /* Of integer products (docs/exactness.md 15): weights as words along the inputs and, but in
     * the first layer, along the outputs; the place in absmax_outputs. */
    qn__gpu_memory by_output, by_input;
    uint32_t output_place;
} qn__gpu_layer;

/* A set of items that was trained on, which nobody changes while the worker is open. */
typedef struct qn__gpu_feed {
    qn__feed key;  /* items 0: the place is free */
    uint64_t id;   /* counts up, so that a recording knows the feed it was made for */
    uint64_t used; /* when, on the worker's own clock */
    uint64_t held; /* rows of values on the device; 0: they are sent batch by batch */
    qn__gpu_memory values, rows, labels;
} qn__gpu_feed;

/* Where the kernel FETCH finds the items of a pass. */
typedef struct qn__gpu_source {
    const qn__gpu_memory *values, *rows, *labels;
    uint32_t flags; /* QN_FETCH_... */
    uint32_t bytes; /* 1: values are bytes */
    int sent;       /* 1: for this pass alone, and the labels go to `targets` behind FETCH */
    int by_place;   /* 1: items are numbered by their places in the batch */
    uint64_t id;    /* of the feed; 0 where it was sent */
} qn__gpu_source;

/* A step whose results are not yet known. */
typedef struct qn__gpu_flight {
    uint64_t step;
    uint32_t epoch;
} qn__gpu_flight;

/* Steps of the same number of items over the same feed are the same launches. */
typedef struct qn__gpu_recording {
    uint32_t items; /* 0: the place is free */
    uint64_t feed;  /* its id */
    uint64_t used;
    int recorded;
} qn__gpu_recording;

struct qn__worker {
    const qn__gpu_driver *driver;
    qn__gpu *gpu;
    const qn__gpu_facts *facts;
    const qn__program *program;
    qn__traffic before; /* what the self-test moved, and how long it took */
    double busy_before;
    uint32_t slots;
    uint32_t room;   /* rows of the batch's arrays */
    uint64_t padded; /* floats of all parameters as they lie on the device */
    uint64_t bytes;  /* that the worker has allocated there */
    qn__gpu_layer *layer;
    qn__gpu_memory step, status, parameters, slot[2], sums;
    qn__gpu_memory canonical; /* sums on their way; made when the worker first shares a step */
    qn__gpu_memory unit, mean, inverse, inputs, errors[2];
    qn__gpu_memory numbers, targets, loss, classes, scores, finite; /* of each item */
    /* Of integer products: bits of the greatest magnitudes of the blocks (of each layer's
     * outputs; of items; of each grain's inputs, layer after layer, then of its errors), and
     * operands as words, of one product at a time. */
    uint32_t bits; /* 0: products are chains of floats */
    qn__gpu_memory absmax_outputs, absmax_items, absmax_grains;
    qn__gpu_memory quantized_items, quantized_inputs, quantized_errors;
    qn__gpu_memory sent_values, sent_rows; /* of one batch, where a feed does not lie there */
    qn__gpu_feed feed[QN__GPU_FEEDS];
    uint64_t clock; /* counts uses of feeds and recordings, and the feeds themselves */
    int sums_count; /* 0: what lies in `sums` does not count, all are zero */
    qn__tally tally;
    qn__gpu_flight flight[QN__GPU_FLIGHTS + 1]; /* the oldest first */
    uint32_t flights, slot_of_next;             /* slots are used round and round */
    qn_status_words seen; /* kernels only add to `status`; this much of it was told already */
    int stale;            /* 1: it holds a failure, and is cleared before the next pass */
    qn__gpu_recording recording[QN__GPU_RECORDINGS];
    char *stage; /* stage_bytes on the host */
    size_t stage_bytes;
};

/* A row of calls to the driver: after one that failed, the others do nothing. */
typedef struct qn__gpu_pass {
    qn__worker *worker;
    const qn__gpu_source *source;
    uint32_t items;
    int training;
    qn_status status;
    qn_error *err;
} qn__gpu_pass;

static inline uint64_t qn__gpu_ld(uint64_t n) { return (n + QN_LD - 1) / QN_LD * QN_LD; }

/* gpu_memory.c */

/* Places of the layers' parameters; sets `padded`. */
void qn__gpu_place(qn__worker *worker);
/* Bytes that the worker allocates at once, and in *largest those of the largest piece. */
uint64_t qn__gpu_needs(const qn__worker *worker, uint64_t *largest);
/* All memory that a step needs; QN_DEVICE with sizes and a remedy when the device is too small,
 * before anything is allocated. */
qn_status qn__gpu_allocate(qn__worker *worker, qn_error *err);
/* One piece more, counted. `what` names it in the message. */
qn_status qn__gpu_more(qn__worker *worker, const char *what, uint64_t bytes, qn__gpu_memory *out,
                       qn_error *err);
/* 1 when so many bytes more, in pieces of at most `largest`, still find room. */
int qn__gpu_fits(const qn__worker *worker, uint64_t bytes, uint64_t largest);
void qn__gpu_drop(qn__worker *worker, qn__gpu_memory *memory);
void qn__gpu_release_all(qn__worker *worker);

/* gpu_data.c */

/* Makes the items of a training batch reachable: its feed is uploaded when it is new and finds
 * room, else the batch's items are. */
qn_status qn__gpu_source_of(qn__worker *worker, const qn__batch *batch, qn__gpu_source *source,
                            qn_error *err);
/* The same for apply, whose feeds may change after the call and are not kept. */
qn_status qn__gpu_source_once(qn__worker *worker, const qn__batch *batch, qn__gpu_source *source,
                              qn_error *err);
/* Writes the batch's labels where FETCH would put them; behind FETCH, for sources that were sent.
 */
qn_status qn__gpu_send_targets(qn__worker *worker, const qn__batch *batch, qn_error *err);
/* Writes the step's record, and makes the status words fit to be added to. `update` may be NULL. */
qn_status qn__gpu_send_step(qn__worker *worker, const qn__batch *batch,
                            const qn__gpu_source *source, const qn__update *update, qn_error *err);

/* gpu_launch.c */

/* What layer `layer` reads, in training after dropout. */
const qn__gpu_memory *qn__gpu_input_of(const qn__gpu_pass *pass, uint32_t layer);
/* Errors of a layer: two arrays in turn, since those of a layer are used up when the layer below
 * has its own. */
const qn__gpu_memory *qn__gpu_errors_of(const qn__worker *worker, uint32_t layer);
/* About how long a variant of a product takes that has so many tiles. */
uint64_t qn__gpu_cost(const qn__worker *worker, qn__kernel kernel, uint64_t tiles);
/* Among how many groups each of so many tiles of a layer's gradient parts its grains. Where these
 * add to sums that are to be overwritten (`add` 0), enqueues that the sums become zero first. */
uint32_t qn__gpu_k_blocks(qn__gpu_pass *pass, uint32_t layer, uint64_t tiles, int add);
/* The arguments with which a product's kernel goes on to, or back through, the outputs of a layer.
 */
void qn__gpu_push_outputs(const qn__worker *worker, uint32_t layer, int drops, qn__gpu_call *call);
/* The arguments for the parameters and the optimiser's state, and for how parameters follow from
 * sums. */
void qn__gpu_push_state(const qn__worker *worker, qn__gpu_call *call);
void qn__gpu_push_rule(const qn__program *program, float decay, qn__gpu_call *call);
/* Enqueues a kernel; the second one that is no product, over `work` pieces of work. */
void qn__gpu_launch(qn__gpu_pass *pass, qn__kernel kernel, const uint32_t groups[3],
                    const qn__gpu_call *arguments);
void qn__gpu_launch_over(qn__gpu_pass *pass, qn__kernel kernel, uint64_t work,
                         const qn__gpu_call *arguments);

/* gpu_products.c: products of floats. Errors go from those of a layer to those of the layer below.
 */
void qn__gpu_launch_float_forward(qn__gpu_pass *pass);
void qn__gpu_launch_float_errors(qn__gpu_pass *pass, uint32_t layer);
void qn__gpu_launch_float_gradient(qn__gpu_pass *pass, uint32_t layer, int add);
/* Gradients, biases and update of a layer in one kernel, for devices that are CPUs. */
void qn__gpu_launch_learn(qn__gpu_pass *pass, uint32_t layer);

/* gpu_pass.c: each enqueues its kernels for all items of the pass. */
void qn__gpu_launch_fetch(qn__gpu_pass *pass);
void qn__gpu_launch_forward(qn__gpu_pass *pass);
void qn__gpu_launch_loss(qn__gpu_pass *pass, uint32_t flags);
/* Errors of all layers and the sums of their gradients; `add` 0: the sums are overwritten. With
 * `update` the parameters follow from them, and the sums are undefined. */
void qn__gpu_launch_backward(qn__gpu_pass *pass, int add, int update);
void qn__gpu_launch_update(qn__gpu_pass *pass);
void qn__gpu_launch_tally(qn__gpu_pass *pass, uint32_t flags);
void qn__gpu_launch_sums(qn__gpu_pass *pass, qn__kernel kernel);

/* gpu_intgemm.c: the same for integer products; layer by layer. */
void qn__gpu_launch_weights(qn__gpu_pass *pass); /* all layers' words; after every change of them */
void qn__gpu_launch_intgemm_forward(qn__gpu_pass *pass);
void qn__gpu_launch_intgemm_errors(qn__gpu_pass *pass, uint32_t layer);
void qn__gpu_launch_intgemm_gradient(qn__gpu_pass *pass, uint32_t layer, int add);
/* Numbers of a row of words along n numbers, and along a batch of grains. */
uint64_t qn__gpu_words(uint64_t n);
uint64_t qn__gpu_grain_words(const qn__program *program);

/* gpu_step.c */

/* What the passes since the last call reported, from the words as they were posted. */
qn_status_words qn__gpu_since(qn__worker *worker, const qn_status_words *posted);
/* Posts the status words, waits for them and tells what the pass reported. */
qn_status qn__gpu_status(qn__worker *worker, qn_status_words *words, qn_error *err);
/* Adds what the words say to the tally; QN_NUMERIC when a loss left its range. */
qn_status qn__gpu_add_tally(const qn__worker *worker, const qn_status_words *words,
                            qn__tally *tally, qn_error *err);

#endif
