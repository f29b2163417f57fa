/* The outputs of a layer inside a network, such as the embeddings of texts: the layers up to it
 * are applied as a network by themselves. */
#ifndef QN_PREDICT_LAYER_VALUES_H
#define QN_PREDICT_LAYER_VALUES_H

#include "model/formats/model.h"
#include <quern/predict.h>

/* Layers of a network as a program. Release it also after a failure. */
typedef struct qn__layer_cut {
    qn__program program;
    qn__layer *layer;
    float *parameter;
} qn__layer_cut;

/* The layers up to `layer`, and after them a pool of positions or pixels unless `summary` is
 * QN_SUMMARY_NONE. Fails with QN_USAGE (a layer that the model lacks), QN_UNSUPPORTED (not a
 * network) or QN_MEMORY. */
qn_status qn__layer_cut_make(const qn_model *model, uint32_t layer, qn_summary summary,
                             qn__layer_cut *out, qn_error *err);
void qn__layer_cut_release(qn__layer_cut *cut);

/* Values of an item, and their shape as of qn_model_layer_shape. */
uint32_t qn__layer_cut_values(const qn__layer_cut *cut);
void qn__layer_cut_shape(const qn__layer_cut *cut, uint32_t shape[3], uint32_t *lengths);

/* Devices that have its parameters, for batches of up to `items`; `cut` must outlive *team, which
 * goes to qn__layer_team_close, also after a failure. */
typedef struct qn__layer_team qn__layer_team;
qn_status qn__layer_team_open(const qn__layer_cut *cut, const qn_compute *compute, uint64_t items,
                              qn__layer_team **team, qn_error *err);
void qn__layer_team_close(qn__layer_team *team); /* accepts NULL */

/* Applies it to all items: *values as of qn_predict_layer. After QN_NUMERIC the team can be used
 * again. */
qn_status qn__layer_team_apply(qn__layer_team *team, const qn_data *inputs, float *values,
                               qn_error *err);

#endif
