/* Prediction: a model applied to data. */
#ifndef QUERN_PREDICT_H
#define QUERN_PREDICT_H

#include <quern/data.h>
#include <quern/device.h>
#include <quern/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Applies `model` to every item of `data`. Any of the results may be NULL, and so may `compute`:
 * the defaults; the caller owns the arrays: classes[items], scores[items] (the output of the
 * class), outputs[items x qn_model_outputs]. Fails with QN_MISMATCH when the number of features
 * differs, QN_NUMERIC when an output is not finite (the item is named), QN_UNSUPPORTED, QN_MEMORY,
 * QN_DEVICE when no device is left. One that was left out or lost is reported by qn_device_note. */
QN_API qn_status qn_predict(const qn_model *model, const qn_data *data, const qn_compute *compute,
                            int32_t *classes, float *scores, float *outputs, qn_error *err);

/* The results of one prediction, kept to be written. */
typedef struct qn_predictions qn_predictions;

/* Predicts; with `all_outputs` 1 the outputs are kept too. `compute` may be NULL. `model`, `data`
 * and the cluster must outlive *out, which the caller frees. Fails as qn_predict does. */
QN_API qn_status qn_predictions_make(const qn_model *model, const qn_data *data,
                                     const qn_compute *compute, int all_outputs,
                                     qn_predictions **out, qn_error *err);

/* Writes them as CSV: "item,prediction,score", with "label" after "item" where the data has labels,
 * and the columns "p0,p1,..." where outputs were kept. Written beside its place, synced, renamed.
 * Among ranks all have the results, and the writer rank writes: right before the renaming it
 * asks all others whether they still count on it, and fails with QN_CLUSTER, the old file
 * untouched, where it was held up for too long. */
QN_API qn_status qn_predictions_write(const qn_predictions *predictions, const char *path,
                                      qn_error *err);

/* The items whose label was predicted; 0 without labels. */
QN_API uint64_t qn_predictions_correct(const qn_predictions *predictions);

QN_API void qn_predictions_free(qn_predictions *predictions); /* accepts NULL */

/* Predicts and writes in one call; among ranks the writer rank writes, and nobody does if it
 * dies meanwhile. *correct counts the items whose label was predicted (0 without labels); it may be
 * NULL. */
QN_API qn_status qn_predict_csv(const qn_model *model, const qn_data *data,
                                const qn_compute *compute, const char *path, int all_outputs,
                                uint64_t *correct, qn_error *err);

#ifdef __cplusplus
}
#endif
#endif
