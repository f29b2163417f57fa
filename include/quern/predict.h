/* Prediction: a model applied to data. */
#ifndef QUERN_PREDICT_H
#define QUERN_PREDICT_H

#include <quern/data.h>
#include <quern/device.h>
#include <quern/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Applies `model` to every item of `data`. Any of the results may be NULL; the caller owns the
 * arrays: classes[items], scores[items] (the output of the class), outputs[items x
 * qn_model_outputs]. Fails with QN_MISMATCH when the number of features differs, QN_NUMERIC when an
 * output is not finite (the item is named), QN_UNSUPPORTED, QN_MEMORY, QN_DEVICE when no device is
 * left. One that was left out or lost is told by qn_device_note. */
qn_status qn_predict(const qn_model *model, const qn_data *data, const qn_compute *compute,
                     int32_t *classes, float *scores, float *outputs, qn_error *err);

/* Predicts and writes CSV: "item,prediction,score", with "label" after "item" where the data has
 * labels, and the columns "p0,p1,..." when all_outputs is 1. Written beside its place, synced,
 * renamed. *correct counts the items whose label was predicted (0 without labels); it may be NULL.
 */
qn_status qn_predict_csv(const qn_model *model, const qn_data *data, const qn_compute *compute,
                         const char *path, int all_outputs, uint64_t *correct, qn_error *err);

#ifdef __cplusplus
}
#endif
#endif
