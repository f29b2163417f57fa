#include "predict/item_batches.h"

#include "data/prepare/encode.h"
#include "predict/model_kinds.h"
#include <string.h>

qn_status qn__request_items_make(const qn_model *model, const qn_data *data, qn__request_items *out,
                                 qn_error *err) {
    const qn__batch_kind *kind;
    const qn__fitting to = qn__model_fitting(model, "the data");
    memset(out, 0, sizeof *out);
    out->items = data->items;
    qn_status status = qn__batch_kind_of(model, &kind, err);
    if (status == QN_OK)
        status = qn__encode(&to, data, QN__UNKNOWN_MINUS_ONE, &out->matched, err);
    return status == QN_OK
               ? kind->prepare(model, out->matched ? out->matched : data, &out->prepared, err)
               : status;
}

void qn__request_items_release(qn__request_items *items) {
    qn__prepared_release(&items->prepared);
    qn_data_close(items->matched);
    memset(items, 0, sizeof *items);
}

void qn__request_items_spread(const qn_model *model, const qn__request_items *items,
                              const qn__model_results *results) {
    if (items->prepared.complete)
        qn__results_spread(items->prepared.complete, items->items, qn_model_outputs(model),
                           model->answers, results);
}
