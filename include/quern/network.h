/* What a network is, without data and without training: its layers, their shapes, parameters and
 * cost; and the ready models, which have a name. */
#ifndef QUERN_NETWORK_H
#define QUERN_NETWORK_H

#include <quern/train.h>

#ifdef __cplusplus
extern "C" {
#endif

/* It never changes after it was made, and any number of threads may read it. */
typedef struct qn_network qn_network;

/* One layer. Shapes are channels, height and width of an item's values; features without pixels
 * have height and width 1. FLOPs are of one item: multiplications and additions of products, and
 * one operation for each value that a pool or a normalisation reads. Activation functions, biases,
 * the loss and the update of the parameters are not counted. */
typedef struct qn_layer_info {
    size_t size;         /* sizeof(qn_layer_info) */
    char text[160];      /* such as "conv 32 3x3 relu"; a longer one is cut */
    uint32_t input[3];   /* zeros: unknown */
    uint32_t output[3];  /* zeros: unknown */
    int32_t source;      /* the layer whose output it reads; -1: the network's input */
    int32_t second;      /* another one, whose output is added; -2: there is none */
    uint64_t parameters; /* weights and biases */
    uint64_t flops;      /* of the forward pass */
    uint64_t training;   /* of a training step: the forward pass, the gradient, and the errors for
                            its source, unless that is the network's input */
    uint64_t activation; /* bytes of an item's output */
} qn_layer_info;

/* Describes the network of `job`, of which it reads `model` (a text, "@FILE", the name of a ready
 * model, or NULL: the default), `shape` and `loss`. `features` is the number of values of an item;
 * 0: unknown. Then `shape` decides it, and without a shape all sizes and costs are 0. `classes` is
 * the number of classes of the labels, 0: real labels. The default model and ready models take
 * their number of outputs from it.
 *
 * On success *out is the caller's, for qn_network_free; after a failure it is NULL. Fails with
 * QN_USAGE (a text, a shape, layers that do not fit), QN_IO (a file) or QN_MEMORY. */
QN_API qn_status qn_network_open(const qn_train_options *job, uint32_t features, uint32_t classes,
                                 qn_network **out, qn_error *err);

/* Frees the network. Accepts NULL. */
QN_API void qn_network_free(qn_network *network);

/* The canonical text of the whole network, as in recipes; "" for NULL. Owned by the network. */
QN_API const char *qn_network_text(const qn_network *network);

/* The name of the ready model that it is; NULL: none, and for NULL. Static. */
QN_API const char *qn_network_ready(const qn_network *network);

/* Number of layers, and of parameters of all layers; 0 for NULL. */
QN_API uint32_t qn_network_layers(const qn_network *network);
QN_API uint64_t qn_network_parameters(const qn_network *network);

/* Describes layer `layer`, counted from 0. Set info->size before. Fails with QN_USAGE. */
QN_API qn_status qn_network_layer(const qn_network *network, uint32_t layer, qn_layer_info *info,
                                  qn_error *err);

/* Draws the network to an SVG file: a box for each layer, with its text, output, parameters and
 * cost. Colours follow the reader's light or dark scheme. Writes to a temporary file and renames
 * it. Fails with QN_USAGE (the input is unknown), QN_IO or QN_MEMORY; an old file is then as
 * before. */
QN_API qn_status qn_network_write_svg(const qn_network *network, const char *path, qn_error *err);

/* A ready model: a network with a name, for qn_train_options.model. */
typedef struct qn_ready_model {
    size_t size;     /* sizeof(qn_ready_model) */
    char name[32];   /* such as "lenet" */
    char about[128]; /* half a line */
    char shape[32];  /* of the items it was designed for, such as "3x32x32" */
} qn_ready_model;

/* Number of ready models. */
QN_API uint32_t qn_ready_count(void);

/* Ready model `index`, counted from 0. Set model->size before. Fails with QN_USAGE. */
QN_API qn_status qn_ready_get(uint32_t index, qn_ready_model *model, qn_error *err);

#ifdef __cplusplus
}
#endif
#endif
