/* The CPU worker: its memory, and the phases of a step, which its cores run together.
 *
 *     qn__worker        one device: the network, its layers, its cores, two batches of inputs
 *       qn__cpu_layer   a layer: arrays of parameters, outputs and errors, and how it is computed
 *       qn__cpu_core    a core: memory that it alone writes
 *     qn__cpu_pass      one call: which batch, and whether it trains, applies or collects
 *
 * All batch arrays are in panels of 16 features: [panel][row][16], a row being a pixel of an item.
 * So a kernel reads and writes whole vectors, and rows of a panel are consecutive:
 *
 *     features  0-15   row 0, row 1, ...      40 features: three panels, the last of them with
 *              16-31   row 0, row 1, ...      8 features and 8 columns of padding
 *              32-39   row 0, row 1, ...
 */
#ifndef QN_DEVICE_CPU_WORKER_CPU_WORKER_H
#define QN_DEVICE_CPU_WORKER_CPU_WORKER_H

#include "base/system/threads.h"
#include "device/cpu/float/cpu_kernels.h"
#include "device/cpu/worker/cpu_extension.h"
#include "device/cpu/worker/cpu_intgemm.h"
#include "device/cpu/worker/cpu_lists.h"
#include "device/cpu/worker/cpu_slices.h"
#include "device/cpu/worker/cpu_sparse.h"
#include "device/cpu/worker/cpu_tiles.h"
#include "device/cpu/worker/cpu_unfold.h"
#include "device/cpu/worker/cpu_walk.h"
#include "device/cpu/worker/cpu_zeros.h"
#include "device/device.h"
#include "device/places.h"
#include <stdatomic.h>

enum {
    QN__OUT_GROUP = 4, /* most panels of outputs in one task of the gradient phase */
    /* Taps of one task of a convolution's gradient, and grains that it sums together; its memory:
     * their partials, sums in floats, doubles and integers. */
    QN__WALK_TAPS = 9,
    QN__WALK_GRAINS = 4,
    QN__WALK_CELLS = QN__WALK_TAPS * QN__OUT_GROUP * QN__PANEL * QN__PANEL,
    QN__WALK_GRADIENT =
        QN__WALK_CELLS * ((QN__WALK_GRAINS + 1) * sizeof(float) + sizeof(double) + sizeof(int64_t)),
    /* The same in integer arithmetic, where a task may have all taps of a window of 5 x 5: a
     * grain's integers, sums in doubles and in integers. */
    QN__INT_CELLS = QN__TILES_BLOCKS * QN__OUT_GROUP * QN__PANEL * QN__PANEL,
    QN__INT_GRADIENT = QN__INT_CELLS * (sizeof(double) + 2 * sizeof(int64_t)),
    QN__FUSE_OUTPUTS =
        64 /* the task of the loss also computes the errors below last layers up to this width */
};

/* The largest number of rows of a run: its blocks stay in the L2 cache while all panels of outputs
 * use them. */
enum { QN__RUN_ROWS = 128 };

typedef struct qn__cpu_kind qn__cpu_kind; /* cpu_kinds.h */

/* A normalisation's numbers. Those of batchnorm are for the grains of a batch, each
 * [out panel][grain][16]. */
typedef struct qn__cpu_norm {
    float *mean, *inverse; /* of batchnorm: the grain's mean, and r of 17.8 */
    /* Of batchnorm outside training, each [out panel][16]: z = fma(x, factor, rest) + 0. Of others:
     * two numbers of each item for the errors. */
    float *factor, *rest;
    float *partial[4]; /* what a grain contributes to the sums of each vector */
    /* batchnorm: the sums of a grain's errors in each pixel, b and g of 17.8: [out
     * panel][grain][pixel][2][16]. `sums_at`: where they are after the errors. In a pass with
     * `summed` the phases that compute the errors also sum them. */
    float *sums;
    size_t sums_at;
    int summed;
} qn__cpu_norm;

/* An embedding: the rows of a batch, sorted by their token (cpu_embedding.c). Those of token v are
 * row[begin[v]] .. row[begin[v + 1] - 1]. `grain`: while they are sorted, the last grain of each
 * token. `length`: of each item (25.37). */
typedef struct qn__cpu_tokens {
    uint32_t *begin, *grain, *row, *length;
} qn__cpu_tokens;

/* recurrent: arrays of all rows, and its weights for the errors (cpu_recurrent.c). In a program
 * with sequences the states and cells of each sequence alone (cpu_states.c). */
typedef struct qn__cpu_recurrent {
    float *gates, *states, *cells, *back;
} qn__cpu_states;

/* One layer's arrays, all in panels (cpu_kernels.h). Rows of batch arrays are (pixel, item), items
 * fastest; features have one pixel. Rows of a panel of weights are (tap, input): each tap begins a
 * new block of 16. */
typedef struct qn__cpu_layer {
    const qn__layer *layer;
    const qn__cpu_kind *kind;
    struct qn__cpu_layer *below;    /* the layer whose outputs it reads; NULL: the inputs */
    struct qn__cpu_layer *other;    /* add: the same for the shortcut */
    uint32_t in_panels, out_panels; /* of a pixel */
    uint32_t in_pixels, out_pixels;
    /* Factors of a chain for each tap, and taps: one for features and for pictures that are
     * unfolded; 0 for pooling, which has no weights. */
    uint32_t channels, taps;
    /* The same for weights, and blocks of 16 rows for each tap. With groups all factors of an
     * output count as one tap's: a row of weights is (tap, channel of the group). */
    uint32_t weight_channels, weight_panels;
    /* Panels of outputs in one task of the gradient. Tasks for each such group, with an outlet or
     * if the layer walks; taps of each of them, blocks in integer arithmetic and of `points`. */
    uint32_t group, tasks, task_taps;
    int walks;              /* the layer computes run by run (cpu_walk.h), not as one matrix */
    int unfolds;            /* its inputs are pictures that are unfolded (cpu_unfold.c) */
    int pictures;           /* 1: by its phases, piece by piece; 0: when they are fetched */
    int points;             /* a convolution by windows of one pixel at stride 1, in float32 */
    int woven;              /* the same, of pictures that are woven: in integer arithmetic */
    int clears;             /* columns after the last output must be 0: a layer above reads them */
    int noted;              /* integer arithmetic: a convolution reads the outputs */
    int few;                /* with few items it is computed by qn__cpu_few_forward */
    int followed;           /* the next layer can be computed with this one: qn__cpu_follow */
    int errors_in_output;   /* its errors replace its outputs, which nothing reads any more */
    qn__cpu_walk outputs;   /* forward: over its outputs */
    qn__cpu_walk inputs;    /* backward: over its inputs, where they are a picture */
    int transposed_weights; /* 1: the backward pass uses `transposed` */
    float *transposed;      /* weights: [input panel][tap][output panel][16][16], or NULL */
    /* Of the current pass: rows, floats between two panels. */
    uint32_t in_rows, rows;
    size_t in_stride, out_stride;
    /* The same: the chains of inputs by weights, and of errors by transposed weights, of the first
     * row; not for layers that walk. `blocks` is their memory: of all weights' blocks, then of
     * out_panels. */
    qn__cpu_chain forward, backward;
    size_t *blocks;
    /* [tap][p]: where the weights of a tap begin in panel p of outputs. One tap but for
     * convolutions in integer arithmetic. */
    size_t *transposed_blocks;
    float *weights; /* out_panels x (qn__cpu_blocks * 16) x 16 */
    /* The parameters after the weights: `vectors` arrays of `vector` floats. Each array has
     * `vector_pixels` x 16 of them for a panel of outputs: see qn__cpu_piece_at. */
    float *bias;
    uint32_t vectors, vector_pixels;
    size_t vector;
    qn__cpu_norm norm;     /* of a normalisation only */
    qn__cpu_tokens tokens; /* of an embedding only */
    /* attention: of each query what its forward pass keeps, [item][head][position]; and which
     * groups of heads are to be computed again, [item][group]. */
    struct qn__attention_query *queries;
    atomic_uchar *odd;
    qn__cpu_cache cache;      /* attention of a program with sequences */
    qn__cpu_states recurrent; /* cpu_recurrent.c */
    float *turned; /* position sinusoid, position rotary: what depends on the position alone */
    float *weight_slot[QN__SLOTS], *bias_slot[QN__SLOTS];
    int64_t *weight_sums, *bias_sums; /* allocated for the first grains */
    const float *input;  /* in_panels x rows x 16: in training the outputs of the layer below after
                            dropout; or the inputs */
    float *output;       /* out_panels x rows x 16, before dropout */
    float *dropped;      /* the same after dropout; NULL without */
    float *slope;        /* the derivative of the activation in training; NULL: from the outputs */
    const float *second; /* add: as `input`, for the shortcut */
    /* delta of 8.2 - 8.5. The last layer of a path without an activation has that of its add: then
     * error_of is the number of the add, else its own. So a backward pass only reads it. */
    float *error;
    uint32_t error_of;
    /* A convolution of integers whose max pool training computes with it, and of that pool the
     * convolution; NULL: none. Then the pool's errors, where these bits are 1, are those of the
     * convolution, which has no array of them: [out panel][row] (cpu_picked.h). */
    struct qn__cpu_layer *pool, *pools;
    uint16_t *picked;
    /* Blocks. The first layer of a shortcut passes its errors to `branch`, others pass them to
     * below->error. The end of a block has `branch` for those of the block's input, unless they are
     * its own. Of an output that several layers read, the first reader passes its errors in
     * this way; the others stand in `sides`, the last one first, linked by `next_side`. `gives` of
     * each of these is the array of what it passes. */
    float *branch;
    const struct qn__cpu_layer *sides, *next_side;
    const float *gives;
    const struct qn__cpu_layer *sums[2]; /* batchnorms that sum these errors; NULL after them */
    /* Before this layer's backward pass the outputs of so many layers before it are computed again.
     */
    uint32_t recomputes;
    /* Partials of the biases, [out panel][grain][16], if a batchnorm has summed the errors that it
     * passed (`summed`). */
    float *bias_partials;
    int summed;
    /* batchnorm, and convolutions of float32 in training, at the end of a path: the layer after it
     * that adds its outputs to others at once. Its own outputs are not stored then: the add has the
     * place. NULL: there is none. */
    struct qn__cpu_layer *add;
    qn__place error_place, branch_place, output_place, dropped_place, slope_place;
    qn__cpu_sparse sparse; /* lists of its errors, in memory that others share, too */
    qn__place sparse_place;
    /* Completed tasks of the gradient for each group of panels, then those of the biases. Counted
     * only when an outlet reports progress. */
    atomic_uint *done;
    qn__cpu_intgemm intgemm; /* in integer arithmetic only */
    qn__cpu_tiled tiles;     /* the same, of a convolution by tiles */
} qn__cpu_layer;

/* The memory of one core, on cache lines of its own. */
/* Losses and right answers of some grains, and what was wrong with the losses. */
typedef struct qn__cpu_tally {
    qn__tally sum;
    int nan, large, full;
} qn__cpu_tally;

typedef struct qn__cpu_core {
    _Alignas(64) float *scratch; /* one transposed panel of weights; all panels of the last layer
                                    where the phase of the loss also computes the errors below it */
    size_t *blocks;              /* of the chain of a run, twice `run_blocks` */
    char *augmented;             /* values of QN__PANEL items and a partner; or NULL */
    uint64_t *augment_space;     /* of qn__augment_space bytes */
    uint64_t *shown_space;       /* of qn__shown_space bytes */
    float *picture;              /* part of a picture with its padding: cpu_few.c */
    float *gradient;             /* sums of a task of a convolution's gradient */
    float *sparse;               /* inputs or masks: cpu_sparse.c */
    float *attention;            /* a group of heads of an item, or the states of some items */
    float *rows;                 /* outputs and errors of the last layer, of 16 items */
    float *slice;                /* errors of a run of a slice */
    /* Bits of the largest |value| of the step: of the inputs, then of each layer's outputs; and of
     * each layer's errors. */
    uint32_t *absmax_input, *absmax_error;
    uint32_t next_input; /* bits of the largest input fetched for the next step */
    int failed_layer;    /* layer + 1 of a partial out of range; 0: none */
    uint64_t
        bad_position; /* apply: first position with an output that is not finite, else UINT64_MAX */
    double busy, waited;
    qn__cpu_tally tally; /* of this core's items, where the pass is narrow */
    /* Integer arithmetic only: space for operands, and for a plan of the gradient while they are
     * packed. */
    void *operand;
    qn__cpu_plan plan;
    qn__cpu_rows_space buffer; /* of convolutions */
    qn__cpu_tiles_space tiles; /* the same, by tiles */
} qn__cpu_core;

/* A partial of a layer's gradient was out of range on this core. Of several layers the last one is
 * reported, whichever cores computed them. */
static inline void qn__cpu_failed(qn__cpu_core *core, uint32_t layer) {
    if (core->failed_layer <= (int)layer)
        core->failed_layer = (int)layer + 1;
}

/* Raises the absmax of a layer's errors. */
static inline void qn__cpu_note_error(qn__cpu_core *core, uint32_t layer, uint32_t bits) {
    if (bits > core->absmax_error[layer])
        core->absmax_error[layer] = bits;
}

/* The number of tasks of a range that are taken or complete. Counters are two cache lines apart:
 * processors prefetch lines in pairs. */
typedef struct qn__cpu_counter {
    _Alignas(64) atomic_uint tasks;
    char apart[128 - sizeof(atomic_uint)];
} qn__cpu_counter;

/* The tasks of a phase: a grid. Each thread begins with its own columns, the same ones in every
 * step, so that the weights it updates stay in its caches. Then it takes tasks of other threads. */
typedef struct qn__cpu_grid {
    uint32_t columns, rows;
    int by_column; /* 1: a column's tasks follow one another; 0: a row's */
} qn__cpu_grid;

/* The parts of a worker. */

/* The items of two batches: while a step computes with one of them, its last phase fetches the
 * items of the next step. */
typedef struct qn__cpu_fetching {
    float *inputs[2];    /* in panels */
    uint64_t *item[2];   /* the numbers of the items */
    uint8_t *answers[2]; /* where the program moves them: targets of each item, and its share */
    float *share[2];
    qn__cpu_zeros zeros[2];     /* in float32 */
    qn__cpu_rows rows[2];       /* the same inputs as operands, in integer arithmetic */
    size_t *input_blocks[2];    /* where the panels begin */
    qn__place place;            /* of both, if they are one array; no bytes: memory of their own */
    int current;                /* which of the two the step uses */
    qn__batch ahead;            /* the batch in inputs[1 - current]; items 0: none */
    float *mean, *inverse;      /* padded with zeros */
    qn__cpu_segments *segments; /* of each panel, where layer 0 walks: cpu_unfold.c */
    uint32_t *woven;            /* of each factor, where layer 0 is woven: qn__cpu_weave_begin */
    qn__cpu_digits *digits;     /* integers for each byte, in integer arithmetic */
} qn__cpu_fetching;

/* Which values that are derived from the parameters are valid. */
typedef struct qn__cpu_derived {
    int stale;  /* weights of convolutions in integer arithmetic are not packed: 1: of those that
                   train, 2: of all */
    int folded; /* 1: `fold` (cpu_kinds.h) was called for all layers */
    int finite; /* 1, if folded: all weights of layers that are `few` are finite */
} qn__cpu_derived;

typedef struct qn__cpu_losses {
    float *loss;          /* of each item; with several answers of each row of the last layer */
    int32_t *chosen;      /* class of each item; of such a row the number of right answers */
    float *item_loss;     /* with several answers: of each item, weighted */
    uint64_t *item_right; /* and the number of its right answers */
    int32_t *label;       /* label of each item, -1 for real targets */
    qn__tally tally;
    uint32_t invalid;     /* of a pass with an invalid loss, in float32: first_invalid */
    int64_t *narrow_sums; /* of all threads: allocated when first used */
} qn__cpu_losses;

/* Sums that an outlet has received. Thread 0 reports: a layer (counted from 1; 0: none) and its
 * group come next; words from `told` on were reported. */
typedef struct qn__cpu_reporting {
    atomic_uint *done; /* completed tasks of all layers */
    uint32_t next_layer, next_group;
    uint64_t told;
} qn__cpu_reporting;

struct qn__worker {
    const qn__program *program;
    const qn__cpu_kernels *kernels;
    const qn__intgemm *intgemm;
    qn__pool *pool;
    int threads;
    int bits; /* of integer arithmetic; 0: float32 */
    uint32_t slots;
    size_t capacity; /* the largest number of rows of a panel of batch arrays */
    qn__cpu_layer *layer;
    int walks;             /* 1: at least one layer walks */
    int shared;            /* several layers read the inputs, which are not unfolded then */
    int shortens;          /* passes compute positions up to the longest item (cpu_shorten.h) */
    size_t run_blocks;     /* the largest number of blocks of a run's chain */
    const float *nothing;  /* QN__RUN_ROWS rows of zeros, after all other arrays */
    size_t *weight_blocks; /* [p] = p * 256: where the blocks of weights of a panel begin */
    qn__cpu_core *core;
    qn__cpu_counter *counter; /* tasks taken in each phase: phase * threads + thread */
    qn__cpu_fetching fetch;
    qn__cpu_derived derived;
    qn__cpu_losses losses;
    int64_t *step_sums; /* of a step with tied weights: allocated when first used */
    qn__cpu_reporting progress;
    qn__cpu_stretches stretches; /* of the current extension */
    qn__cpu_slicing slices;
    struct qn__worker *owner;  /* whose parameters it reads (cpu_alone.c); NULL: its own */
    struct qn__worker **alone; /* of each thread, when first used; such workers have this owner */
    int takes_lists;           /* 1: cpu_lists.c computes product and gradient */
    qn__cpu_lists *lists;      /* of each thread, when first used */
    struct {
        void *block; /* the one allocation that holds all arrays */
        size_t size;
        size_t shared_bytes; /* of it: what arrays of errors and outputs share */
    } memory;
};

/* One pass of all cores over a batch. */
struct qn__cpu_pass {
    qn__worker *worker;
    const qn__batch *batch;
    const qn__batch *next;          /* items to fetch during the pass, or NULL */
    const qn__update *update;       /* NULL: add to the sums, or write to the outlet */
    const qn__outlet *outlet;       /* training writes its sums there; with `update` those of tied
                                       weights alone */
    const int64_t *totals;          /* of the step; update without a gradient only */
    int tied;                       /* the same: of tied weights alone */
    int64_t *into;                  /* collect only */
    qn__applied *applied;           /* apply only */
    const qn__extension *extension; /* further positions of sequences only */
    int training;
    int follows; /* layers that are `followed` are computed with the next one */
    int apart;   /* outputs of convolutions are looked at before they are added to others */
    int narrow;  /* all in one phase: cpu_narrow.c */
};

static inline int qn__cpu_is_followed(const qn__cpu_pass *pass, const qn__cpu_layer *layer) {
    return pass->follows && layer->followed;
}

/* The layer whose outputs are computed with those of `layer`: itself, or the last that follows it.
 */
static inline const qn__cpu_layer *qn__cpu_target(const qn__cpu_pass *pass,
                                                  const qn__cpu_layer *layer) {
    while (qn__cpu_is_followed(pass, layer))
        ++layer;
    return layer;
}

/* The values that a layer reads in this pass: there is dropout in training only. */
static inline const float *qn__cpu_input(const qn__cpu_pass *pass, const qn__cpu_layer *layer) {
    return layer->below && !pass->training ? layer->below->output : layer->input;
}

static inline const float *qn__cpu_second(const qn__cpu_pass *pass, const qn__cpu_layer *layer) {
    return layer->other && !pass->training ? layer->other->output : layer->second;
}

/* The other input of an add layer, of which `l` is one. */
static inline const float *qn__cpu_beside(const qn__cpu_pass *pass, const qn__cpu_layer *add,
                                          const qn__cpu_layer *l) {
    return add->below == l ? qn__cpu_second(pass, add) : qn__cpu_input(pass, add);
}

/* The array for the errors that a layer passes to the layer whose outputs it reads. */
static inline float *qn__cpu_passes(const qn__cpu_layer *layer) {
    return layer->branch ? layer->branch : layer->below->error;
}

/* In integer arithmetic: a convolution of integers. */
static inline int qn__cpu_walks_integers(const qn__cpu_layer *layer) {
    return layer->walks && qn__layer_is_integer(layer->layer);
}

/* The same: a dense layer. */
static inline int qn__cpu_is_dense_integer(const qn__worker *worker, const qn__cpu_layer *layer) {
    return worker->bits && !layer->walks && qn__layer_is_integer(layer->layer);
}

/* Whether the rows of the network's input are packed when they are fetched: the first layer is
 * dense. */
static inline int qn__cpu_packs_fetched(const qn__worker *worker) {
    return qn__cpu_is_dense_integer(worker, &worker->layer[0]);
}

/* Whether the layer packs rows that it multiplies, which are not packed when they are fetched. */
static inline int qn__cpu_packs_inputs(const qn__worker *worker, const qn__cpu_layer *layer) {
    return !layer->walks && (layer->below || worker->layer[0].walks);
}

/* Floats between two panels of `rows` rows. Panels are as close as possible, but not a
 * multiple of 2 KiB apart: equal rows of all panels would then share a few cache sets. */
static inline size_t qn__cpu_stride(uint32_t rows) {
    return ((size_t)rows + (rows % 32 == 0)) * QN__PANEL;
}

/* Blocks of 16 rows in a panel of weights. */
static inline uint32_t qn__cpu_blocks(const qn__cpu_layer *layer) {
    return layer->taps * layer->weight_panels;
}

/* Outputs of a layer's weights; 0 for pooling. */
static inline uint32_t qn__cpu_outputs(const qn__cpu_layer *layer) {
    return layer->taps ? layer->layer->to.channels : 0;
}

/* Depths of a product of the layer's inputs by its weights: blocks are whole where there are
 * several taps. qn__cpu_back_depth: the same for its errors by transposed weights. */
static inline uint32_t qn__cpu_depth(const qn__cpu_layer *layer) {
    return layer->taps > 1 ? qn__cpu_blocks(layer) * QN__PANEL : layer->channels;
}
static inline uint32_t qn__cpu_back_depth(const qn__cpu_layer *layer) {
    const uint32_t channels = layer->layer->to.channels;
    return layer->walks && layer->taps > 1 ? layer->taps * layer->out_panels * QN__PANEL : channels;
}

/* The first factor of a block among those of an output, and the number of its factors. */
static inline uint32_t qn__cpu_first_of(const qn__cpu_layer *layer, uint32_t block) {
    return block / layer->weight_panels * layer->weight_channels +
           block % layer->weight_panels * QN__PANEL;
}
static inline uint32_t qn__cpu_rows_of(const qn__cpu_layer *layer, uint32_t block) {
    const uint32_t left = layer->weight_channels - block % layer->weight_panels * QN__PANEL;
    return left < QN__PANEL ? left : QN__PANEL;
}

/* The layer with the length of an item of the batch, where that counts (25.37), and the positions
 * of the pass. */
static inline qn__layer qn__cpu_layer_of_item(const qn__worker *w, const qn__cpu_layer *layer,
                                              uint32_t item) {
    qn__layer own = *layer->layer;
    if (own.by_length) {
        own.length = w->layer[0].tokens.length[item];
        own.from.width = layer->in_pixels;
    }
    return own;
}

/* Whether a layer passes errors to the layer below: there is one, and it trains. */
static inline int qn__cpu_passes_errors(const qn__worker *w, const qn__cpu_layer *layer) {
    return layer->below && (uint32_t)(layer->below - w->layer) >= w->program->frozen;
}

/* Whether the task of the loss also computes the errors of the layer below, if that trains. */
static inline int qn__cpu_is_fused(const qn__worker *w) {
    const qn__cpu_layer *last = &w->layer[w->program->layers - 1];
    return last->layer->out <= QN__FUSE_OUTPUTS && last->in_pixels == 1 && !w->program->answers;
}

/* Whether a separate phase computes the errors that a layer passes to the layer below. 0 for the
 * lowest layer that trains, where the task of the loss computes them, and for a pool whose own are
 * those of the layer below (cpu_picked.h). */
static inline int qn__cpu_goes_back(const qn__worker *w, uint32_t layer) {
    return qn__cpu_passes_errors(w, &w->layer[layer]) && !w->layer[layer].pools &&
           !(layer + 1 == w->program->layers && qn__cpu_is_fused(w));
}

/* Whether the backward pass of a layer reads copies of the parameters, or none, so that its
 * gradient may update them before. Weights of integers are packed copies. */
static inline int qn__cpu_keeps_parameters(const qn__worker *w, const qn__cpu_layer *layer) {
    return layer->transposed_weights || layer->vectors == 0 ||
           (w->bits && qn__layer_is_integer(layer->layer));
}

/* Whether an array of the optimiser's state has numbers of the layer. Averages of parameters
 * (24.63) are there for those that do not train, too. */
static inline int qn__cpu_has_slot(const qn__worker *w, uint32_t layer, uint32_t slot) {
    return qn__program_trains(w->program, layer) || (int)slot == qn__program_average(w->program);
}

/* Whether the errors that a batchnorm passes are already the final errors of the layer below. */
static inline int qn__cpu_norm_passes_all(const qn__worker *w, const qn__cpu_layer *l) {
    const qn__cpu_layer *below = l->below;
    return !w->bits && below && !l->layer->skip && below->layer->activation == QN__ACT_NONE &&
           !below->layer->drop_threshold && !below->sides;
}

/* Whether all gradients come after all errors. Dense layers of integers pack operands first, which
 * takes a barrier: one for all of them is enough. But outputs that are computed again are there for
 * a short time only. */
static inline int qn__cpu_gradients_wait(const qn__worker *w) {
    return w->bits && !w->walks && !w->program->recompute;
}

/* Whether both inputs[] are one array: pictures are large. */
static inline int qn__cpu_one_input(const qn__worker *w) { return w->layer[0].walks; }

/* Groups of panels of outputs: the columns of the gradient's grid. */
static inline uint32_t qn__cpu_groups(const qn__cpu_layer *layer) {
    return (layer->out_panels + layer->group - 1) / layer->group;
}

/* Strips of blocks of integer arithmetic. */
static inline uint32_t qn__cpu_strips(const qn__cpu_layer *layer) {
    return (qn__cpu_blocks(layer) + QN__STRIP - 1) / QN__STRIP;
}

/* The absmax of a strip's 16 columns. */
static inline uint32_t *qn__cpu_strip_absmax(const qn__cpu_layer *layer, uint32_t out,
                                             uint32_t strip) {
    return layer->intgemm.strip_absmax + ((size_t)out * qn__cpu_strips(layer) + strip) * QN__PANEL;
}

/* The largest number of phases of a pass (cpu_run.c). For each layer: its window transposed,
 * forward, lists of errors, backward, biases and gradient; with integers also two to pack what it
 * reads, two more backward, two for the operands of the gradient. Those of find_invalid are once
 * more the forward phases, and so are those of layers that are computed again. And the items of
 * this pass and the next, and those fetched again. Two slices use others (cpu_run.c). */
static inline size_t qn__cpu_phases(const qn__program *program) {
    return (program->arith == QN__ARITH_F32 ? 8 : 12) * ((size_t)program->layers + 1) +
           2 * QN__SLICE_PHASES;
}
void qn__cpu_begin_phases(qn__worker *worker);
/* These phases can be run once more. */
void qn__cpu_again(qn__worker *worker, uint32_t phase, uint32_t phases);

/* Taps of one task of a convolution's gradient in float32. Each task reads all inputs and errors.
 * So it has as many taps as it may, whole rows of them. But a thread has no more than its part of
 * the layer's gradient and of the errors below, which follow without a barrier. */
uint32_t qn__cpu_walk_taps(const qn__cpu_layer *layer, int threads);

/* The next task of a phase for a thread; 0 when none is left. */
int qn__cpu_take(qn__worker *worker, int thread, uint32_t phase, qn__cpu_grid grid,
                 uint32_t *column, uint32_t *row);

/* Phases, each a loop over tasks; called by every core, with a barrier between two of them. */
void qn__cpu_fetch(const qn__cpu_pass *pass, const qn__batch *batch, int into, int thread,
                   uint32_t phase, uint32_t *absmax);
void qn__cpu_forward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase);
void qn__cpu_last(const qn__cpu_pass *pass, int thread, uint32_t phase);
/* Targets of the batch's items at.first to before at.first + at.items, as a training sees them, and
 * shares: to place `into` of the fetch. */
void qn__cpu_show_answers(qn__worker *worker, const qn__batch *batch, const qn__cpu_core *core,
                          qn__cpu_tile at, int into);

/* After the forward pass of a slice of the last layer, where there are several answers
 * (cpu_answers.c). */
void qn__cpu_answers(const qn__cpu_pass *pass, int thread, const qn__cpu_slice *slice,
                     uint32_t phase);
/* After all threads' qn__cpu_answers: losses and right answers of this thread's share of the items,
 * for qn__cpu_tally_items. */
void qn__cpu_answer_items(const qn__cpu_pass *pass, int thread);
/* The same of layers that walk, and the phase before a walk backward: it needs no barrier from the
 * forward pass of its layer. */
void qn__cpu_walk_forward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase);
void qn__cpu_walk_backward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase);
/* A convolution of few items (cpu_few.c): whether a pass has them, whether a layer can be computed
 * this way, floats of a core's picture. */
void qn__cpu_few_forward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase);
int qn__cpu_is_few(const qn__cpu_pass *pass, const qn__cpu_layer *layer);
int qn__cpu_shape_few(const qn__cpu_layer *layer);
size_t qn__cpu_few_space(const qn__worker *worker);
/* Floats of a core for attention; 0 without. */
size_t qn__cpu_attention_space(const qn__worker *worker);
/* A convolution with groups (cpu_group.c). */
void qn__cpu_group_forward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase);
void qn__cpu_group_backward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase);
void qn__cpu_group_gradient(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase);
void qn__cpu_walk_gradient(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase);
void qn__cpu_walk_transpose(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase);
void qn__cpu_walk_intgemm_gradient(const qn__cpu_pass *pass, int thread, uint32_t layer,
                                   uint32_t phase);
void qn__cpu_backward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase);
void qn__cpu_gradient(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase);
/* Sums the biases of a panel of outputs and applies or stores them. Returns 1 when a partial was
 * out of range. */
int qn__cpu_bias_task(const qn__cpu_pass *pass, uint32_t layer, uint32_t out);
/* Sums the biases of a whole layer: with an outlet, or where the layer has no other parameters. */
void qn__cpu_biases(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase);

void qn__cpu_begin_progress(qn__worker *worker);
/* A task of the group, or of the biases (group qn__cpu_groups), has written its sums to the outlet:
 * thread 0 reports the complete part. */
void qn__cpu_progress(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t group);

/* Parts of the last phase. For the items in the rows first .. first+rows-1, at most 16: computes
 * outputs, losses, classes and (in training) delta from the outputs before the activation. */
void qn__cpu_loss(const qn__cpu_pass *pass, qn__cpu_core *core, uint32_t first, uint32_t rows);
/* The same in training, in place: output o of 16 items at z + o * stride. */
void qn__cpu_loss_lanes(const qn__cpu_pass *pass, qn__cpu_core *core, uint32_t first, uint32_t rows,
                        float *z, size_t stride);
/* After a product: activation, dropout and absmax of rows of a panel of a layer's outputs, from row
 * `first` on, which begins at `out`. */
void qn__cpu_after_product(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t panel,
                           uint32_t first, uint32_t rows, float *out);
/* The same, and then computes in place all layers that follow this one (qn__cpu_is_followed). */
void qn__cpu_follow(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t panel,
                    uint32_t first, uint32_t rows, float *out);
/* The same after a product that did what qn__cpu_lead gave it, where layers up to `done` are
 * complete. */
void qn__cpu_follow_from(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t done,
                         uint32_t panel, uint32_t first, uint32_t rows, float *out);
/* What the product of a layer can do after its chains, for some panels from row `first` on. Returns
 * the last layer that is complete then: the layer itself where it can do nothing. */
uint32_t qn__cpu_lead(const qn__cpu_pass *pass, uint32_t layer, uint32_t panel, uint32_t panels,
                      uint32_t first, qn__cpu_after *after);
/* Finds the layers that are `followed`. */
void qn__cpu_find_followers(qn__worker *worker);
/* Outside training: the factors of normalisations, after parameters have changed. */
void qn__cpu_fold(qn__worker *worker);
/* In training: those of layers that do not train. */
void qn__cpu_fold_frozen(qn__worker *worker);
/* Whether qn__cpu_after_product does no more than `relu`, `relu6` or nothing, and the absmax. */
int qn__cpu_is_plain(const qn__cpu_pass *pass, uint32_t layer, uint32_t panel);
/* Raises the absmax of the outputs that others read. */
void qn__cpu_note_absmax(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t bits);
/* After errors that `layer` passed (qn__cpu_passes): adds the errors of an output that several
 * layers read, then applies dropout and the derivative, and raises the absmax. */
void qn__cpu_after_errors(const qn__cpu_pass *pass, qn__cpu_core *core, uint32_t layer,
                          uint32_t panel, uint32_t first, uint32_t rows);
/* Asks the caches for what qn__cpu_after_errors reads beside the errors, before they are made. */
void qn__cpu_fetch_after_errors(const qn__cpu_pass *pass, uint32_t layer, uint32_t panel,
                                uint32_t first, uint32_t rows);
/* The same as qn__cpu_after_errors for the errors of outputs of `layer` itself. */
void qn__cpu_finish_errors(const qn__cpu_pass *pass, qn__cpu_core *core, uint32_t layer,
                           uint32_t panel, uint32_t first, uint32_t rows);
/* Errors of the layer below for the rows first .. first+rows-1, one panel of its outputs.
 * `transposed`: that panel's weights, a row of 16 for each output of `layer`. */
void qn__cpu_errors(const qn__cpu_pass *pass, qn__cpu_core *core, uint32_t layer, uint32_t panel,
                    const float *transposed, uint32_t first, uint32_t rows);
/* to[o][0..15] = weights of output o for the 16 inputs of panel `panel`. */
void qn__cpu_transpose(const qn__cpu_layer *layer, uint32_t panel, float *to);

/* to = values of layer's outputs after dropout (6.5), or from = errors before it (8.4); in place
 * when from == to. Rows as in qn__cpu_errors. */
void qn__cpu_dropout(const qn__cpu_pass *pass, uint32_t layer, uint32_t panel, uint32_t first,
                     uint32_t rows, const float *from, float *to);

/* Training: replaces the values of the items of a tile, at most QN__PANEL, by augmented and mixed
 * ones of this core. */
void qn__cpu_augment(const qn__worker *worker, const qn__batch *batch, const qn__cpu_core *core,
                     qn__cpu_tile at, const uint64_t *item, const void **row);

/* Whether enough inputs of the current batch are zero that skipping them is faster. */
int qn__cpu_mostly_zero(const qn__cpu_pass *pass);

/* Places the arrays of a pass that share memory, whose bytes are known: sets `at` of each and
 * worker->memory.shared_bytes. */
void qn__cpu_place_arrays(qn__worker *worker);
/* The same, after it chose the layers whose outputs are computed again. */
void qn__cpu_place_segments(qn__worker *worker);
/* Whether a layer's outputs are computed when those of a segment are computed again: all but those
 * of the last layers that others have computed at once. */
int qn__cpu_is_recomputed(const qn__worker *worker, uint32_t layer, uint32_t end);

/* Bytes of the one block of memory of a worker whose threads, kernels and space are chosen;
 * SIZE_MAX: more than can be counted. */
size_t qn__cpu_count_memory(qn__worker *worker);

/* Allocates all memory of a worker whose threads and kernels are chosen. */
qn_status qn__cpu_allocate(qn__worker *worker, qn_error *err);
/* Frees it, also after a failure. */
void qn__cpu_release(qn__worker *worker);

/* The values of an item, scaled, in rows of panels. */
void qn__cpu_scale_item(const qn__worker *worker, const qn__feed *feed, const void *row, float *to,
                        size_t stride);

/* Adds losses and classes of the items first .. end-1 of a pass, which begin with a grain. */
void qn__cpu_tally_items(const qn__cpu_pass *pass, uint32_t first, uint32_t end,
                         qn__cpu_tally *tally);

/* A network of one layer with few outputs (cpu_narrow.c): whether the gradient of a batch is
 * computed in this way; the number of integers of each thread's sums; the one phase; and what is
 * done after it. */
int qn__cpu_is_narrow(const qn__worker *worker, const qn__batch *batch);
size_t qn__cpu_narrow_space(const qn__worker *worker);
void qn__cpu_narrow(const qn__cpu_pass *pass, int thread);
void qn__cpu_narrow_end(const qn__cpu_pass *pass);

/* Grains of a host job on all threads (cpu_host.c); as the device table's `run`. */
qn_status qn__cpu_host(qn__worker *worker, const qn__host_job *job, uint32_t first, uint32_t count,
                       const qn__outlet *sums, qn_error *err);

/* Runs a pass: all phases on all cores. Adds to the tally; QN_NUMERIC as the device table says. */
qn_status qn__cpu_run(qn__cpu_pass *pass, qn__tally *tally, qn_error *err);
/* Adds the losses of a pass that was run; does nothing without a tally or labels. */
qn_status qn__cpu_add_tally(const qn__cpu_pass *pass, qn__tally *tally, qn_error *err);

/* Sixteen parameters after the weights, or fewer at the end: where they are in l->bias and in the
 * canonical array. */
typedef struct qn__cpu_piece {
    size_t at;
    uint64_t canonical;
    uint32_t columns;
    int running; /* 1: running averages */
} qn__cpu_piece;

/* Those of a panel of outputs: `index` is below it. Biases that are not parameters stay +0. */
static inline uint32_t qn__cpu_pieces(const qn__cpu_layer *layer) {
    return layer->layer->no_biases ? 0 : layer->vectors * layer->vector_pixels;
}
qn__cpu_piece qn__cpu_piece_at(const qn__cpu_layer *layer, uint32_t panel, uint32_t index);

/* Moves the averages of parameters x after their update, if the program has any: those of `slot`
 * from `at` on. */
void qn__cpu_average(const qn__worker *worker, const qn__update *update, size_t count,
                     const float *x, float *const *slot, size_t at);

/* The update of `count` parameters from l->bias + at on, none of them a running average, by their
 * sums; and of one piece, by 16 integers. */
void qn__cpu_update_pieces(const qn__worker *worker, const qn__update *update,
                           const qn__cpu_layer *layer, size_t at, size_t count,
                           const int64_t *sums);
void qn__cpu_update_piece(const qn__worker *worker, const qn__update *update,
                          const qn__cpu_layer *layer, const qn__cpu_piece *piece,
                          const int64_t *sums);

/* Converts canonical arrays to panels and back. */
void qn__cpu_pack(const qn__cpu_layer *layer, const float *weights, const float *bias, float *to,
                  float *to_bias);
void qn__cpu_unpack(const qn__cpu_layer *layer, const float *from, const float *from_bias,
                    float *weights, float *bias);

#endif
