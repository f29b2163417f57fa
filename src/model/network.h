/* The model text: "dense 500 tanh dropout 0.2; dense 10 softmax". docs/exactness.md 6.1 and 11.2.
 */
#ifndef QN_MODEL_NETWORK_H
#define QN_MODEL_NETWORK_H

#include "base/error.h"
#include "base/text.h"
#include "num/program.h"

/* The widest layer. */
#define QN__MAX_WIDTH ((uint32_t)1 << 24)

typedef struct qn__network_layer {
    uint32_t out; /* 1 .. QN__MAX_WIDTH */
    qn__activation activation;
    float dropout; /* probability, 0: none */
} qn__network_layer;

typedef struct qn__network {
    uint32_t layers; /* 1 .. QN__MAX_LAYERS */
    qn__network_layer layer[QN__MAX_LAYERS];
} qn__network;

/* Reads a model text. Words may be in either case, white space is free, an activation may be left
 * out (none), the last semicolon may have nothing behind it. Fails with QN_USAGE; `where` shows the
 * text with a caret under the place. `*out` is written only on success. */
qn_status qn__network_parse(const char *text, qn__network *out, qn_error *err);

/* Appends the canonical text of the network, the one that stands in recipes. */
void qn__network_text(const qn__network *network, qn__text *text);
/* The same of one layer. */
void qn__network_layer_text(const qn__network_layer *layer, qn__text *text);

/* Fills layer[0 .. network->layers-1] for a network with `inputs` features, and the number of all
 * parameters; their order in the flat array is that of num/program.h, each layer's weights
 * [out][in] before its biases, layer after layer. Fails with QN_USAGE when they are more than
 * memory has bytes for. */
qn_status qn__network_program(const qn__network *network, uint32_t inputs, qn__layer *layer,
                              uint64_t *parameters, qn_error *err);

#endif
