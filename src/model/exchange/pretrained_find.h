/* Which network of transformers a network is, and where its layers are in a checkpoint. */
#ifndef QN_MODEL_EXCHANGE_PRETRAINED_FIND_H
#define QN_MODEL_EXCHANGE_PRETRAINED_FIND_H

#include "base/error.h"
#include "layer/layer.h"
#include "model/exchange/pretrained.h"
#include "model/recipe/recipe.h"

typedef struct qn__pretrained_found {
    const qn__network *network;
    const qn__layer *layer; /* of its program */
    const qn__pretrained *row;
    qn__pretrained_sizes sizes;
    qn__network known;                          /* that of the row */
    qn__pretrained_layer named[QN__MAX_LAYERS]; /* one for each layer with parameters */
} qn__pretrained_found;

/* Finds the row. `network` and its layers must outlive `out`. Fails with QN_UNSUPPORTED. */
qn_status qn__pretrained_find(const qn__network *network, const qn__layer *layer,
                              qn__pretrained_found *out, qn_error *err);

/* Outputs of a product, first .. first + rows - 1, that are one module of a checkpoint. */
typedef struct qn__pretrained_part {
    const char *module; /* `size` characters */
    size_t size;
    uint64_t first, rows;
} qn__pretrained_part;

/* The next part of a layer; the first one where part->module is NULL. Returns 0 after the last. */
int qn__pretrained_next_part(const qn__pretrained_found *found, const qn__layer *l,
                             const qn__pretrained_layer *named, qn__pretrained_part *part);

/* "BEFOREtransformer.h.0.attn.c_attn.PART"; of the module alone where `part` is "". */
enum { QN__PRETRAINED_TENSOR = QN__PRETRAINED_NAME + 48 };
void qn__pretrained_name(const qn__pretrained *row, const char *before, const char *module,
                         size_t size, const char *part, char name[QN__PRETRAINED_TENSOR]);

/* The weights of a part of a product to `to`: [rows][depth], turned [depth][rows]. */
void qn__pretrained_weights(const float *parameters, const qn__layer *l, int turned, uint64_t first,
                            uint64_t rows, float *to);

#endif
