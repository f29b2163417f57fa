/* The table of the kinds of models, and functions that use it. */
#ifndef QN_PREDICT_MODEL_KINDS_H
#define QN_PREDICT_MODEL_KINDS_H

#include "model/formats/model_kind.h"

/* qn_model_load from the bytes of a file; `name` is used in messages in place of the path. `base`,
 * which may be NULL, is the model that adapters alone are for. */
qn_status qn__model_from_bytes(const void *bytes, size_t size, const char *name,
                               const qn_model *base, qn_model **out, qn_error *err);

/* The kind of row `index`; NULL after the last. */
const qn__model_kind *qn__model_kind_at(uint32_t index);

/* The results of the `complete` items of a table of `items`, which stand at the beginning, move to
 * where their items are. The others have the class -1 and NaN. */
void qn__results_spread(const qn_data *complete, uint64_t items, uint32_t outputs, uint32_t answers,
                        const qn__model_results *results);

/* The function of the model's kind. */
qn__model_apply qn__model_apply_to, qn__network_apply;

#endif
