/* The kinds of layers. One kind is one file and one line of the list in num/program.h. What a kind
 * means is here: its words in a model text, its shapes, its parameters and its reference. A device
 * has its own arithmetic for a kind, or refuses the program. */
#ifndef QN_LAYER_LAYER_H
#define QN_LAYER_LAYER_H

#include "base/text/text.h"
#include "layer/tokens.h"
#include "num/program.h"

/* The most channels, or outputs of a dense layer, that a model text may name, and the most inputs
 * of a table. */
#define QN__MAX_WIDTH ((uint32_t)1 << 24)

/* The most values of an item before or after a layer: its channels at all pixels. */
#define QN__MAX_VALUES ((uint32_t)1 << 28)

/* As many groups as the input has channels. */
#define QN__DEPTHWISE UINT32_MAX

/* A layer as a model text says it, before its input is known. */
typedef struct qn__layer_text {
    qn__layer_kind kind;
    uint32_t skip, other; /* as in qn__layer */
    uint32_t out;         /* dense, conv: channels of the output, 1 .. QN__MAX_WIDTH */
    qn__window window;    /* conv, maxpool, avgpool; upsample: the factors, as the kernel */
    uint32_t outpad[2];   /* convtranspose: rows and columns more of the output */
    uint32_t norm_groups; /* groupnorm: as in qn__layer */
    int norm_alone;       /* layernorm: as in qn__layer */
    uint32_t conv_groups; /* conv: as in qn__layer, or QN__DEPTHWISE */
    float epsilon;        /* normalisations, 0: the usual one */
    float rate;           /* batchnorm: of running averages, 0: the usual one */
    float factor;         /* layerscale: as in qn__layer */
    uint32_t vocabulary;  /* embedding: the tokens, 1 .. 2^24 */
    int next;             /* embedding: 1: it does not read the last value of an item */
    uint32_t heads, span; /* attention: as in qn__layer */
    uint32_t kv_heads;    /* the same; 0: `heads` */
    int causal;
    qn__turns turns;     /* position rotary: as in qn__layer; 0: the usual base, factor 1 */
    qn__pooling pooling; /* pool */
    qn__state_cell cell; /* recurrent, and the next one: as in qn__layer */
    int reverse;
    int ceil;      /* pools: 1: the last windows may reach beyond the padding (24.20) */
    int uncounted; /* avgpool: 1: padding does not count in the mean */
    int no_biases; /* dense, conv: as in qn__layer */
    int tied;      /* conv: 1: its weights are the embedding's, and it has no biases */
    int fitted;    /* pools: 1: `window.kernel` is the size of the output (24.40); upsample:
                      QN__BLENDS: bilinear (24.43) */
    qn__activation activation;
    float dropout; /* probability, 0: none */
    int drop_path; /* 1: the word is "droppath" (24.33) */
} qn__layer_text;

/* Floating-point operations of one item. */
typedef struct qn__flops {
    uint64_t forward, backward, gradient;
} qn__flops;

typedef struct qn__layer_ops {
    const char *word;   /* the first of the layer's text */
    const char *also;   /* names of the kind in other tools, as in qn__choice; NULL: none */
    const char *syntax; /* all of them, for messages */
    int bare;           /* 1: neither activation nor dropout follow */
    int floats;         /* 1: a network with it has no integer arithmetic */
    int contract;       /* the version of the contract from which on the kind exists */
    /* The version that the words of this layer need, where it may be a later one; NULL: never. */
    int (*contract_of)(const qn__layer_text *layer);
    uint32_t takes;     /* a bit for each of qn__axes that an input may have; 0: all */
    int reads_features; /* 1: as the first layer it takes an item without its shape: it is dense, or
                           can be a first layer only */
    int block;          /* 1: the layers of a block follow the first word; the kind is its end */
    int reads_length;   /* 1: it reads the positions below the length of an item alone (25.37) */

    /* Reads the words between the first and the activation. Fails with QN_USAGE. NULL where there
     * are none, and so is `write`; of a block see model/network/network.h. */
    qn_status (*parse)(qn__tokens *tokens, qn__layer_text *layer);
    /* Appends these words, each after a blank, in their one canonical form. */
    void (*write)(const qn__layer_text *layer, qn__text *text);

    /* Whether the outputs of a position depend on no other one, or of attention and states on none
     * after it,
     * so that positions can be computed one after the other (25.70). NULL: never. */
    int (*steps)(const qn__layer *layer);

    /* The layer after an output of this shape, whose parameters begin at `first`; without dropout.
     * Fails with QN_USAGE. */
    qn_status (*make)(const qn__layer_text *text, qn__shape from, uint64_t first, qn__layer *layer,
                      qn_error *err);

    /* Outputs that one input reaches, for initial weights (6.2). NULL without parameters, and so
     * are `gradient` and `intgemm_gradient`. */
    uint64_t (*fan_out)(const qn__layer *layer);
    /* Inputs that one output reads, for the same. NULL: `depth` of them. */
    uint64_t (*fan_in)(const qn__layer *layer);

    /* What one item costs: multiplications and additions of products, and one operation for each
     * value that a pool or a normalisation reads. `backward`: the errors of the layer's source. */
    qn__flops (*flops)(const qn__layer *layer);

    /* The reference, docs/exactness.md 6.3, 8.4, 8.6, 15, 16 and 17.12. Values of an item stand in
     * the order [height][width][channels]. `bits`: of integer products, 0 for float32.
     *
     * z[out] of one item from a[in]. */
    void (*forward)(const qn__layer *layer, int bits, const float *parameters, const float *a,
                    float *z);
    /* z[out], which `forward` made, with the second output b[out]. NULL for kinds without one. */
    void (*join)(const qn__layer *layer, const float *b, float *z);
    /* Only of a kind with a second output: whether it takes outputs of the shapes `from` and
     * `second`; then sets `to` and `out`. `verb` and `fit` are for the message of others. */
    int (*meet)(qn__layer *layer);
    const char *verb, *fit;
    /* e[in] of one item from delta[out]; sums[in] is working memory. For a kind with a second
     * output it is the error of that output too. */
    void (*backward)(const qn__layer *layer, int bits, const float *parameters, const float *a,
                     const float *delta, int64_t *sums, float *e);
    /* Instead, of a kind with a second output whose error differs: e[in], and f of the second one,
     * from both outputs a and b. */
    void (*backward_both)(const qn__layer *layer, const float *a, const float *b,
                          const float *delta, float *e, float *f);
    /* float32: adds to partial[to.channels][depth] the chains of a grain's weights, from inputs
     * a[items][in] and errors delta[items][out]. A normalisation adds to partial[vectors][vector]
     * what its grain contributes to each sum. */
    void (*gradient)(const qn__layer *layer, uint64_t items, const float *a, const float *delta,
                     float *partial);
    /* Only of a kind whose errors of products are not those of its outputs: its `gradient` reads
     * what this makes of an item's inputs and errors, in their place. sums[in] and e[in] are
     * working memory. Biases, too, are then in `gradient`, after the weights. */
    void (*unroll)(const qn__layer *layer, const float *parameters, float *a, float *delta,
                   int64_t *sums, float *e);
    /* Integers: writes the same partials in units to `to`. Returns 0 when one is not below `limit`;
     * `to` is undefined then. */
    int (*intgemm_gradient)(int bits, const qn__layer *layer, uint64_t items, const float *a,
                            const float *delta, float limit, int64_t *to);

    /* Only of a kind whose outputs depend on all items of a grain: forward and backward in
     * training, for `items` consecutive items. `forward` is then used in prediction only. */
    void (*forward_grain)(const qn__layer *layer, const float *parameters, uint64_t items,
                          const float *a, float *z);
    void (*backward_grain)(const qn__layer *layer, const float *parameters, uint64_t items,
                           const float *a, const float *delta, float *e);

    /* Only of a kind with `vectors`: its initial parameters, and the name of each array in a model
     * file. */
    void (*begin)(const qn__layer *layer, float *parameters);
    /* Instead of `begin`, where they are drawn as those of 6.2: the bound of the numbers. */
    float (*bound)(const qn__layer *layer);
    const char *const *names;
} qn__layer_ops;

#define QN__LAYER_ROW(KIND, NAME) extern const qn__layer_ops qn__##NAME;
QN__LAYER_LIST(QN__LAYER_ROW)

const qn__layer_ops *qn__layer_ops_of(qn__layer_kind kind);

/* Whether the layer reads a second output: see qn__layer_other. */
int qn__layer_joins(const qn__layer *layer);

/* As ops->make, after a check of what the input's axes are. */
qn_status qn__layer_make(const qn__layer_ops *ops, const qn__layer_text *text, qn__shape from,
                         uint64_t first, qn__layer *layer, qn_error *err);

/* For qn__layer_ops.steps: always. */
int qn__layer_always_steps(const qn__layer *layer);

/* For qn__layer_ops.backward: the errors are those of the outputs. */
void qn__layer_same_errors(const qn__layer *layer, int bits, const float *parameters,
                           const float *a, const float *delta, int64_t *unused, float *e);

/* The cost of one item in this layer. */
qn__flops qn__layer_flops(const qn__layer *layer);

/* The version of the contract that the layer's kind and words need; without its activation. */
int qn__layer_contract(const qn__layer_text *layer);

/* The kind of the current word, in *kind; 0 where there is none. */
int qn__layer_find(const qn__tokens *tokens, qn__layer_kind *kind);

#endif
