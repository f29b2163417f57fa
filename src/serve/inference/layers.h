/* Outputs of layers inside a model, as requests ask for them.
 *
 * Each layer with its pool has a batcher: the layers up to it are a network by themselves, and
 * requests for another layer are another batch. A batcher is made by the first request for it. A
 * model keeps a few; a new one takes the place of one that is not in use. */
#ifndef QN_SERVE_INFERENCE_LAYERS_H
#define QN_SERVE_INFERENCE_LAYERS_H

#include "predict/layer_values.h"
#include "serve/batch/batcher.h"

/* How a layer is asked for: its number, or "body", and what is made of its positions or pixels. */
enum { QN__LAYER_NAME = 24 };
typedef struct qn__layer_name {
    char layer[QN__LAYER_NAME];
    qn_summary summary;
} qn__layer_name;

/* Reads "7", "-1", "body", or one of them with ":mean" and so on after it. Fails with QN_USAGE. */
qn_status qn__layer_name_read(const char *text, qn__layer_name *out, qn_error *err);

/* The pool of a network after its last layer before the head; one that has none: the mean of that
 * layer. */
qn__layer_name qn__layer_of_embeddings(const qn_model *model);

typedef struct qn__layers qn__layers;

/* A layer that a request uses, between qn__layers_take and qn__layers_give. */
typedef struct qn__layer_use {
    qn__batcher *batcher;
    qn__layer_cut cut;
    uint32_t layer, shape[3], lengths, values; /* values: of an item */
    qn_summary summary;
    uint32_t references; /* requests; under the lock */
    uint64_t used;       /* when it was asked for last */
} qn__layer_use;

/* `compute` and `options` are those of predictions, and stay valid. */
qn_status qn__layers_make(const qn_model *model, const qn_compute *compute,
                          const qn__batcher_options *options, qn__layers **out, qn_error *err);
/* Requests have ended. Accepts NULL. */
void qn__layers_free(qn__layers *layers);

/* The layer of that name. Fails as qn_model_find_layer and qn_model_layer_shape, with QN_BUSY (too
 * many layers are in use), QN_MEMORY or QN_DEVICE. Any thread. */
qn_status qn__layers_take(qn__layers *layers, const qn__layer_name *name, qn__layer_use **out,
                          qn_error *err);
void qn__layers_give(qn__layers *layers, qn__layer_use *use);

/* Refuses a request whose answer would have too many numbers: QN_INPUT. */
qn_status qn__layer_check_items(const qn__layer_use *use, uint64_t items, qn_error *err);

/* Adds what the batchers have counted, also those that were freed. */
void qn__layers_count(qn__layers *layers, qn__batcher_counts *sum);

#endif
