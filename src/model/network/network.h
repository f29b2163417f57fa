/* The model text: "dense 500 tanh dropout 0.2; dense 10 softmax". docs/exactness.md 6.1 and
 * 11.2. */
#ifndef QN_MODEL_NETWORK_NETWORK_H
#define QN_MODEL_NETWORK_NETWORK_H

#include "base/error.h"
#include "base/text/text.h"
#include "layer/layer.h"

/* Blocks that stand in one another. */
enum { QN__MAX_DEPTH = 8 };

typedef struct qn__network {
    uint32_t layers; /* 1 .. QN__MAX_LAYERS */
    qn__layer_text layer[QN__MAX_LAYERS];
    int next; /* 1: the last value of an item is a target only (docs/exactness.md 25.14) */
} qn__network;

/* Parses a model text. Words are case-insensitive, white space is free, the activation is optional
 * (none), and the text may end with a semicolon. Fails with QN_USAGE; `where` shows the text with a
 * caret under the error. `*out` is written only on success. */
qn_status qn__network_parse(const char *text, qn__network *out, qn_error *err);

/* The same for a text that was written on several lines, or in a file: `lines` and `name` are for
 * messages, as qn__tokens_point says. Both may be NULL. */
qn_status qn__network_parse_lines(const char *text, const char *lines, const char *name,
                                  qn__network *out, qn_error *err);

/* Appends the canonical text of the network, as in recipes. */
void qn__network_text(const qn__network *network, qn__text *text);
/* The same for one layer. */
void qn__network_layer_text(const qn__layer_text *layer, qn__text *text);

/* Whether some layer is not dense. Such a network is of contract 5 or later; if the first
 * layer does not read features, the input must have pixels. */
int qn__network_has_pixels(const qn__network *network);

/* Whether the first layer takes an item's values without their shape: it is dense, or an embedding.
 */
int qn__network_reads_features(const qn__network *network);

/* The lowest version of the contract that has all words of the text. */
int qn__network_contract(const qn__network *network);

/* Fills layer[0 .. network->layers-1] for a network with this input, and the total number of
 * parameters. A first layer that is dense, or an embedding, takes the input's values as features.
 * The order of parameters in the flat array is that of num/program.h: layer by layer, weights
 * before biases. Fails with QN_USAGE if a window does not fit or the parameters exceed the address
 * space. */
qn_status qn__network_program(const qn__network *network, qn__shape input, qn__layer *layer,
                              uint64_t *parameters, qn_error *err);

#endif
