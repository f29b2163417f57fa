/* What a job computes, as numbers: the network, its loss, its optimiser, its sizes. The job makes
 * it once from the recipe. It is the same on every worker and contains nothing about workers. */
#ifndef QN_NUM_PROGRAM_H
#define QN_NUM_PROGRAM_H

#include "num/turn.h"
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef enum qn__activation {
    QN__ACT_NONE,
    QN__ACT_RELU,
    QN__ACT_TANH,
    QN__ACT_SIGMOID,
    QN__ACT_SOFTMAX, /* last layer only */
    QN__ACT_LEAKY_RELU,
    QN__ACT_GELU, /* this and the next: not in the last layer */
    QN__ACT_SILU,
    QN__ACT_RELU6,
    QN__ACT_HARDSWISH, /* not in the last layer */
    QN__ACT_HARDSIGMOID,
    QN__ACT_GELU_TANH /* not in the last layer */
} qn__activation;

/* Whether the derivative needs the sum before the activation
 * (docs/exactness.md 17.2, 24.10, 25.80); that of others needs their output alone. */
static inline int qn__keeps_slope(qn__activation activation) {
    return activation == QN__ACT_GELU || activation == QN__ACT_SILU ||
           activation == QN__ACT_HARDSWISH || activation == QN__ACT_GELU_TANH;
}

typedef enum qn__loss {
    QN__LOSS_CROSS_ENTROPY,
    QN__LOSS_MSE,
    QN__LOSS_MAE,
    QN__LOSS_HUBER,
    QN__LOSS_BINARY /* one output with sigmoid, labels 0 and 1 */
} qn__loss;

typedef enum qn__optimizer {
    QN__OPT_SGD,
    QN__OPT_MOMENTUM,
    QN__OPT_ADAM,
    QN__OPT_ADAMW,
    QN__OPT_NESTEROV, /* momentum with the look ahead of 17.5; a recipe names it momentum */
    QN__OPT_LBFGS     /* of recipes alone: workers compute sums, and never an update */
} qn__optimizer;

/* docs/exactness.md 5.1 */
typedef enum qn__scale {
    QN__SCALE_NONE,
    QN__SCALE_UNIT,
    QN__SCALE_STANDARD,
    QN__SCALE_FRACTION,
    /* Of recipes alone: a program has QN__SCALE_STANDARD, and for each input what is subtracted and
     * what is multiplied. */
    QN__SCALE_CHANNEL, /* the numbers of its channel */
    QN__SCALE_MINMAX,
    QN__SCALE_ROBUST
} qn__scale;

/* The arithmetic of matrix products: chains of float32, or exact integers of 7, 14 or 21 bits
 * (docs/exactness.md 15). */
typedef enum qn__arith { QN__ARITH_F32, QN__ARITH_I7, QN__ARITH_I14, QN__ARITH_I21 } qn__arith;

enum { QN__MAX_LAYERS = 1023 }; /* the layer has 10 bits of a random word: 3.2 */

/* The kinds of layers: constant, name. This list makes the tables that have a row for each kind:
 * qn__NAME is the kind's row in layer/layer.h, qn__cpu_NAME that of the CPU worker, qn__gpu_NAME
 * that of the GPU worker. */
#define QN__LAYER_LIST(KIND)                                                                       \
    KIND(DENSE, dense)                                                                             \
    KIND(CONV, conv)                                                                               \
    KIND(MAXPOOL, maxpool)                                                                         \
    KIND(AVGPOOL, avgpool)                                                                         \
    KIND(GLOBALPOOL, globalpool)                                                                   \
    KIND(BATCHNORM, batchnorm)                                                                     \
    KIND(GROUPNORM, groupnorm)                                                                     \
    KIND(LAYERNORM, layernorm)                                                                     \
    KIND(ADD, residual)      /* the end of a residual block: the sum of two outputs */             \
    KIND(MULTIPLY, multiply) /* of a product block */                                              \
    KIND(CONCAT, concat)     /* of a concat block */                                               \
    KIND(UPSAMPLE, upsample)                                                                       \
    KIND(CONVTRANSPOSE, convtranspose)                                                             \
    KIND(LAYERSCALE, layerscale)                                                                   \
    KIND(EMBEDDING, embedding)                                                                     \
    KIND(POSITION, position)                                                                       \
    KIND(ATTENTION, attention)                                                                     \
    KIND(RMSNORM, rmsnorm)                                                                         \
    KIND(SINUSOID, sinusoid) /* position sinusoid */                                               \
    KIND(ROTARY, rotary)     /* position rotary */                                                 \
    KIND(POOL, pooled)                                                                             \
    KIND(RECURRENT, recurrent) /* what follows the products of lstm and gru */

#define QN__LAYER_NUMBER(KIND, NAME) QN__LAYER_##KIND,
#define QN__LAYER_ONE(KIND, NAME) +1
typedef enum qn__layer_kind { QN__LAYER_LIST(QN__LAYER_NUMBER) } qn__layer_kind;

enum { QN__LAYER_KINDS = QN__LAYER_LIST(QN__LAYER_ONE) };

/* What the lengths of a shape mean; layer/axes.h has their rows. A sequence is a picture of height
 * 1, whose pixels are its positions. */
typedef enum qn__axes { QN__PICTURE, QN__SEQUENCE, QN__FEATURES } qn__axes;

/* One item's values before or after a layer: `channels` of them for each pixel. Features without
 * pixels are a picture, {n, 1, 1}. */
typedef struct qn__shape {
    uint32_t channels, height, width;
    qn__axes axes; /* QN__PICTURE or QN__SEQUENCE */
} qn__shape;

/* The input pixels that an output pixel reads; [0] is vertical, [1] horizontal. Tap k of output
 * pixel i reads input pixel i * stride - pad + k * dilation, for k < kernel. */
typedef struct qn__window {
    uint32_t kernel[2], stride[2], pad[2], dilation[2];
} qn__window;

#define QN__BLENDS 2

/* Which positions a pool reads, and what it makes of them (25.38). */
typedef enum qn__pooling { QN__POOL_MEAN, QN__POOL_MAX, QN__POOL_FIRST, QN__POOL_LAST } qn__pooling;

/* What a state of a recurrent layer is made of (25.35, 25.36). */
typedef enum qn__state_cell { QN__CELL_LSTM, QN__CELL_GRU } qn__state_cell;

typedef struct qn__layer {
    qn__layer_kind kind;
    /* Layers between this one and its source, the layer whose output it reads: 0, the source is the
     * layer before. See qn__layer_source. */
    uint32_t skip;
    uint32_t other; /* the end of a block: the same for the second output; see qn__layer_other */
    qn__shape from, to;
    qn__window window;
    uint32_t in, out; /* values of an item: the volumes of `from` and `to` */
    uint32_t depth;   /* weights of one output: the taps of the window times qn__layer_reads; 0: the
                         layer has no parameters */
    uint32_t conv_groups; /* conv: the number of groups of channels, each convolved separately
                             (17.6); 0: one group */
    int partial;   /* avgpool: 1: a mean is that of the pixels of its window that lie inside (24.21)
                    */
    int no_biases; /* dense, conv: 1: each bias is +0 and not a parameter (24.12) */
    /* 1: the first layer, an embedding, and the last one, a convolution, have one table of weights
     * (25.15). It is the embedding's among all parameters; the last layer has none. */
    int tied;
    /* convtranspose: the input's pixels are so many pixels apart, with nothing between them, and
     * the window goes over them with stride 1 (24.42); 0: one, they are neighbours. */
    uint32_t spread[2];
    qn__activation activation;
    uint32_t drop_threshold; /* 0: no dropout; docs/exactness.md 6.5 */
    float drop_keep;
    int drop_path; /* 1: all outputs of an item have the same word (24.33) */
    /* Where the layer's parameters begin in the flat array of all: weights
     * [to.channels][kernel height][kernel width][qn__layer_reads], then biases [to.channels]. */
    uint64_t weights, biases;
    /* A normalisation has no weights of products. At `biases` it has so many arrays of `vector`
     * parameters: weight, bias, and for batchnorm the running mean and variance. An embedding has
     * one array, whose rows are the channels of each token. */
    uint32_t vectors, vector;
    uint32_t norm_groups; /* groupnorm, layernorm: the number of groups of channels, each normalised
                             separately */
    int norm_alone;       /* layernorm: 1: each pixel is normalised by itself (24.13) */
    uint32_t running;     /* the number of running averages (17.8), which are its last parameters */
    float norm_epsilon;   /* of a normalisation: what its variances are increased by */
    float running_rate;   /* batchnorm: the share of the new value in a running average */
    /* pools, upsample: 1: the output has a given size, and the window of an output pixel is the
     * part of the input that the pixel covers (24.40). `window` is then that of the largest,
     * stride 1. QN__BLENDS, of upsample: the pixels that a bilinear output reads (24.43). */
    int fitted;
    float rate_factor; /* of the learning rate (24.62); 0: 1 */
    int still;         /* 1: the layer does not train, but passes errors on (25.85) */
    float factor;      /* layerscale: where its parameters start */
    qn__shape second;  /* of the second output that the end of a block reads */
    /* attention (25.20): heads of queries, and of keys and values; the positions before and with
     * its own that a position sees, 0: all; 1: none after its own. */
    uint32_t heads, kv_heads, span;
    int causal;
    qn__turns turns;     /* position sinusoid, position rotary: what the angles come from */
    qn__pooling pooling; /* pool */
    qn__state_cell cell; /* recurrent (25.34) */
    int reverse;         /* the same: 1: from the last position to the first */
    /* attention, pool, recurrent: 1: its positions are those of the tokens of an item, whose length
     * counts (25.37). `length` is that of one item, in a copy of the layer for it. */
    int by_length;
    uint32_t length;
} qn__layer;

/* Where the weights of a layer that multiplies them are among the parameters of its network. */
static inline uint64_t qn__layer_matrix(const qn__layer *layer) {
    return layer->tied ? 0 : layer->weights;
}

/* The positions of an item that the layer reads. */
static inline uint32_t qn__layer_positions(const qn__layer *layer) {
    return layer->by_length ? layer->length : layer->from.height * layer->from.width;
}

/* The number of biases of a layer that multiplies weights. */
static inline uint32_t qn__layer_biases(const qn__layer *layer) {
    return layer->depth && !layer->no_biases ? layer->to.channels : 0;
}

/* The factor of the learning rate. */
static inline float qn__layer_rate(const qn__layer *layer) {
    return layer->rate_factor != 0.0f ? layer->rate_factor : 1.0f;
}

/* Where the parameters of the layer end. */
static inline uint64_t qn__layer_end(const qn__layer *layer) {
    return layer->biases + qn__layer_biases(layer) + (uint64_t)layer->vectors * layer->vector;
}

/* Whether the parameters of one layer can be used in the other: all but activation and dropout are
 * the same. */
static inline int qn__layer_alike(const qn__layer *a, const qn__layer *b) {
    return a->kind == b->kind && a->skip == b->skip && a->other == b->other &&
           a->norm_groups == b->norm_groups && a->conv_groups == b->conv_groups &&
           a->partial == b->partial && a->no_biases == b->no_biases && a->tied == b->tied &&
           a->fitted == b->fitted && a->heads == b->heads && a->kv_heads == b->kv_heads &&
           a->span == b->span && a->causal == b->causal && a->pooling == b->pooling &&
           a->cell == b->cell && a->reverse == b->reverse &&
           memcmp(a->spread, b->spread, sizeof a->spread) == 0 && a->norm_alone == b->norm_alone &&
           a->vector == b->vector && memcmp(&a->from, &b->from, sizeof a->from) == 0 &&
           memcmp(&a->to, &b->to, sizeof a->to) == 0 &&
           memcmp(&a->window, &b->window, sizeof a->window) == 0;
}

/* Pixels from one of the input to the next, in one direction: 1 but for convtranspose. */
static inline uint32_t qn__layer_spread(const qn__layer *layer, int d) {
    return layer->spread[d] ? layer->spread[d] : 1;
}

/* Channels of a pixel that an output reads. */
static inline uint32_t qn__layer_reads(const qn__layer *layer) {
    return layer->conv_groups ? layer->from.channels / layer->conv_groups : layer->from.channels;
}

/* The pixels begin .. end - 1 of one direction. */
typedef struct qn__cover {
    uint32_t begin, end;
} qn__cover;

/* 24.40: of `limit` pixels those that pixel `at` of `size` covers, if both fill the same length. It
 * is also the other way round: those of the `size` pixels that cover pixel `at` of the others. */
static inline qn__cover qn__cover_of(uint32_t at, uint32_t size, uint32_t limit) {
    const uint64_t begin = (uint64_t)at * limit, end = begin + limit;
    return (qn__cover){(uint32_t)(begin / size), (uint32_t)((end + size - 1) / size)};
}

/* Whether the layer multiplies the positions of a sequence, and not the sequence as a whole. */
static inline int qn__layer_on_positions(const qn__layer *layer) {
    return layer->depth > 0 && layer->kind != QN__LAYER_DENSE && layer->from.axes == QN__SEQUENCE;
}

/* Whether integer arithmetic replaces the layer's products; other layers compute with float
 * (17.12, 25.24). */
static inline int qn__layer_is_integer(const qn__layer *layer) {
    return layer->depth > 0 && !layer->conv_groups;
}

/* Whether such a layer has a block of inputs, and of errors, for each position: every position
 * reads itself alone (25.24). In others a block is what a window reads (25.27), or an item. */
static inline int qn__layer_has_position_blocks(const qn__layer *layer) {
    return qn__layer_on_positions(layer) && qn__layer_is_integer(layer) &&
           layer->window.kernel[0] == 1 && layer->window.kernel[1] == 1 &&
           layer->to.height == layer->from.height && layer->to.width == layer->from.width;
}

/* Where its running averages begin: they have sums, but no optimiser, decay or gradient. The end
 * of the layer where there are none. */
static inline uint64_t qn__layer_running(const qn__layer *layer) {
    return qn__layer_end(layer) - layer->running;
}

static inline uint32_t qn__shape_volume(qn__shape shape) {
    return shape.channels * shape.height * shape.width;
}

/* A dense layer without dropout, whose parameters begin at `first`. It is a convolution whose
 * window is the whole input: 1x1 pixels for features. */
static inline qn__layer qn__layer_dense(qn__shape from, uint32_t out, qn__activation activation,
                                        uint64_t first) {
    const uint32_t in = qn__shape_volume(from);
    return (qn__layer){.kind = QN__LAYER_DENSE,
                       .from = from,
                       .to = {out, 1, 1, QN__PICTURE},
                       .window = {{from.height, from.width}, {1, 1}, {0, 0}, {1, 1}},
                       .in = in,
                       .out = out,
                       .depth = in,
                       .activation = activation,
                       .drop_keep = 1.0f,
                       .weights = first,
                       .biases = first + (uint64_t)in * out};
}

/* The same for `in` features. */
static inline qn__layer qn__layer_flat(uint32_t in, uint32_t out, qn__activation activation,
                                       uint64_t first) {
    return qn__layer_dense((qn__shape){in, 1, 1, QN__PICTURE}, out, activation, first);
}

/* The parameters that weight decay acts on (25.16). */
typedef enum qn__decay {
    QN__DECAY_WEIGHTS,  /* weights of products */
    QN__DECAY_MATRICES, /* those, and tables: of embeddings and positions */
    QN__DECAY_ALL       /* all that the optimiser changes */
} qn__decay;

/* How attention computes where the arithmetic is not float32 (25.25). */
typedef enum qn__attention_arith {
    QN__ATTENTION_FLOAT32,
    QN__ATTENTION_INTEGERS
} qn__attention_arith;

/* Numbers of a recipe that the arithmetic of a step reads as they are. A recipe and a program have
 * the same members, so that a job copies them at once. */
#define QN__NUMBERS                                                                                \
    float delta;     /* of huber, greater than 0; otherwise without meaning */                     \
    float smoothing; /* of cross-entropy, 0 to below 1: label smoothing; docs/exactness.md 17.3 */ \
    float clip;      /* the largest norm of the gradient, 0: any; docs/exactness.md 17.4 */        \
    float momentum, beta1, beta2, epsilon, weight_decay;                                           \
    float ema; /* what an average of a parameter keeps of itself, 0: there are none (24.63) */     \
    qn__decay decay_on;                                                                            \
    qn__attention_arith attention_arith;

typedef struct qn__numbers {
    QN__NUMBERS
} qn__numbers;

typedef struct qn__program {
    uint32_t layers;
    const qn__layer *layer;
    uint64_t parameters; /* of all layers */
    qn__arith arith;
    qn__loss loss;
    int real; /* 1: labels are the bits of float targets and there is one output; 0: classes */
    /* Targets of an item where it has several (24.70): the loss then is cross-entropy or binary,
     * and applies softmax or sigmoid to the last layer, which has no activation here. 0: one. */
    uint32_t answers;
    /* 1: they are tokens of the item itself: the target of position t is its value t + 1 (25.14).
     * One that is not a token does not count. */
    int next;
    /* 1: they are classes of pixels, and training sees them moved and cut as the item's picture
     * (num/shown.h). The weights of what is trained on are then not yet divided (24.72). */
    int moves_answers;
    qn__optimizer optimizer;
    union {
        qn__numbers numbers;
        struct {
            QN__NUMBERS
        };
    };
    qn__scale scale;
    const float *mean, *inverse;       /* of each feature, for QN__SCALE_STANDARD */
    const struct qn__augment *augment; /* of the items of training (num/augment.h); NULL: none */
    const struct qn__mix *mix;         /* of two items of training (num/mix.h); NULL: none */
    /* 1: items are lists of many inputs (QN__ELEMENT_LIST), most of them 0 */
    int lists;
    uint32_t batch, grain; /* batch: the largest number of items in one step */
    uint32_t part; /* the largest number of items that a worker trains with at once, whole grains;
                      0: the batch */
    /* Not 0: a device that can computes the last layer of several answers in slices whose logits
     * take no more than these bytes. 0: where it saves memory. */
    size_t slice_bytes;
    int recompute; /* 1: outputs are computed again in the backward pass instead of being kept */
    uint64_t seed;
    uint32_t gradient_scale; /* gradients are summed in multiples of 2^-gradient_scale */
    float partial_limit;     /* a grain's partial gradient must stay below it, in units; 8.7 */
    /* Of its first layer in the network: random words (6.5) and messages have it. */
    uint32_t number;
    /* The first layers, which do not train and need no errors (24.61). A layer after them reads
     * none before the last of them. Others that do not train are `still`. */
    uint32_t frozen;
    /* Parameters of all layers that do not train. They come first in the array of all, whatever the
     * layers' order. Sums are those of the parameters after them. */
    uint64_t frozen_parameters;
    /* Not 0: the network reads sequences position by position (25.70). Each layer then has one
     * pixel, and an item of a batch is a position of one of so many sequences. Attention keeps the
     * keys and values of `positions` positions of each of them. */
    uint32_t sequences, positions;
} qn__program;

enum { QN__MOST_PARTS = 4096 }; /* of a step */
/* Items of a program of lists that a device without lists writes out at once. */
enum { QN__LIST_ITEMS = 64 };

/* The items that a worker trains with at once. */
static inline uint32_t qn__program_part(const qn__program *program) {
    return program->part ? program->part : program->batch;
}

/* The items of the first of `parts` parts of a batch: of no more grains than another part. */
static inline uint32_t qn__program_part_of(const qn__program *program, uint32_t parts) {
    const uint64_t grains = ((uint64_t)program->batch + program->grain - 1) / program->grain;
    const uint64_t items = (grains + parts - 1) / parts * program->grain;
    return items < program->batch ? (uint32_t)items : program->batch;
}

/* The weights that the first layer and the last one train together (25.15); 0: there are none. */
static inline uint64_t qn__program_tied(const qn__program *program) {
    const qn__layer *last = &program->layer[program->layers - 1];
    return last->tied && !program->frozen ? (uint64_t)last->depth * last->to.channels : 0;
}

/* Whether sums are made for the parameters of a layer. Tied weights train if the first layer does.
 */
static inline int qn__program_trains(const qn__program *program, uint32_t layer) {
    const qn__layer *l = &program->layer[layer];
    return layer >= program->frozen && !l->still && !(program->frozen && l->tied);
}

/* The number of sums of a step: of all parameters that train. */
static inline uint64_t qn__program_sums(const qn__program *program) {
    return program->parameters - program->frozen_parameters;
}

/* Where the sum of a parameter that trains is among them. */
static inline uint64_t qn__program_sum(const qn__program *program, uint64_t parameter) {
    return parameter - program->frozen_parameters;
}

/* The number of the layer whose output layer `index` of the array reads; -1: the network's input.
 */
static inline int32_t qn__layer_source(const qn__layer *layer, uint32_t index) {
    return (int32_t)index - 1 - (int32_t)layer[index].skip;
}

/* The second one of the end of a block, the block's shortcut: its last layer, or the block's input.
 * The first one is the last layer of the main path. */
static inline int32_t qn__layer_other(const qn__layer *layer, uint32_t index) {
    return (int32_t)index - 1 - (int32_t)layer[index].other;
}

/* The first layer that is not dense, or NULL: for devices that have dense layers only. */
static inline const qn__layer *qn__program_window(const qn__program *program) {
    for (uint32_t l = 0; l < program->layers; ++l)
        if (program->layer[l].kind != QN__LAYER_DENSE)
            return &program->layer[l];
    return NULL;
}

/* Classes that the last outputs can tell apart; 1 for real targets, which have none. */
static inline uint32_t qn__program_classes(const qn__program *program) {
    const qn__layer *last = &program->layer[program->layers - 1];
    return program->loss == QN__LOSS_BINARY ? 2 : program->answers ? last->to.channels : last->out;
}

/* A target of several that does not count. */
enum { QN__IGNORED = 255 };
#define QN__NO_ANSWER UINT32_MAX /* the same, of any kind of targets */

/* Targets of each pixel of the last layer. */
static inline uint32_t qn__answers_of_pixel(const qn__program *program) {
    return program->loss == QN__LOSS_BINARY ? program->layer[program->layers - 1].to.channels : 1;
}

/* The target of an output of cross-entropy: of the label's, or of another. */
static inline float qn__smoothed_target(const qn__program *program, int is_label) {
    const uint32_t outputs = qn__program_classes(program);
    const float off = program->smoothing / (float)outputs;
    return is_label ? (1.0f - program->smoothing) + off : off;
}

/* The number that belongs to the loss. */
static inline float qn__program_loss_number(const qn__program *program) {
    return program->loss == QN__LOSS_CROSS_ENTROPY ? program->smoothing : program->delta;
}

/* Whether weight decay, where there is one, acts on the weights of a layer that multiplies them. */
static inline int qn__weights_decay(const qn__program *program, const qn__layer *layer) {
    return !layer->tied || program->decay_on >= QN__DECAY_MATRICES;
}

/* The same for what stands at `biases`: biases, vectors, tables. */
static inline int qn__others_decay(const qn__program *program, const qn__layer *layer) {
    const int table = layer->kind == QN__LAYER_EMBEDDING || layer->kind == QN__LAYER_POSITION;
    return program->decay_on == QN__DECAY_ALL || (table && program->decay_on == QN__DECAY_MATRICES);
}

/* Loss in units of 2^-32 and right answers (0 for real targets), over some grains. They are
 * integers, like all sums across grains. */
typedef struct qn__tally {
    int64_t loss;
    uint64_t correct;
    uint64_t items;
} qn__tally;

/* The numbers of one optimiser update (sections 9 and 10), the same for every parameter. */
typedef struct qn__update {
    float rate;           /* lr */
    float gradient;       /* c: the factor of a sum */
    float adam_a, adam_r; /* A and R of 9.5 */
    uint64_t step;        /* of the run, from 1; only for messages */
    float running;        /* the factor of a running average's sum (17.8) */
    float average;        /* the share of a parameter in its average (24.63) */
} qn__update;

/* The update of a layer's parameters: a layer may have a rate of its own (24.62). */
static inline qn__update qn__update_of(const qn__update *update, const qn__layer *layer) {
    qn__update own = *update;
    own.rate *= qn__layer_rate(layer);
    own.adam_a *= qn__layer_rate(layer);
    return own;
}

/* State arrays that an optimiser keeps for each parameter: 0, 1 or 2. */
uint32_t qn__optimizer_slots(qn__optimizer optimizer);

/* The most state arrays of a program: those of an optimiser, then the averages (24.63). */
enum { QN__SLOTS = 3 };

/* State arrays of a program. */
static inline uint32_t qn__program_slots(const qn__program *program) {
    return qn__optimizer_slots(program->optimizer) + (program->ema != 0.0f);
}

/* The one of the averages, which is the last; -1: there are none. */
static inline int qn__program_average(const qn__program *program) {
    return program->ema != 0.0f ? (int)qn__optimizer_slots(program->optimizer) : -1;
}

#endif
