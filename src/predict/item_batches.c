#include "predict/item_batches.h"

#include "data/prepare/encode.h"
#include "predict/layer_values.h"
#include "predict/model_kinds.h"
#include <string.h>

/* Images are such tables. Their thousands of columns take longer to be looked at than a small image
 * to be decoded. */
static int takes_plain(const qn_model *model) {
    const qn__schema *table = model->table;
    if (!qn__batch_kind_of(model)->check || model->tokens)
        return 0;
    for (uint32_t k = 0; table && k < table->features; ++k) {
        const qn__feature *f = &table->feature[k];
        if (f->name || f->categories || f->text || f->dates || f->exact != QN__EXACT_NONE)
            return 0;
    }
    return 1;
}

/* Nothing of it has a name, is missing, or is a label. */
static int is_plain(const qn_data *data) {
    return data->type == QN_U8 && !data->schema && !data->labels && !data->targets &&
           !data->several;
}

qn_status qn__batch_form_of(const qn_model *model, const qn__layer_cut *cut, qn__batch_form *out,
                            qn_error *err) {
    *out = (qn__batch_form){.model = model,
                            .cut = cut,
                            .kind = qn__batch_kind_of(model),
                            .outputs = cut ? qn__layer_cut_values(cut) : model->outputs,
                            .answers = cut ? 0 : model->answers,
                            .plain = takes_plain(model)};
    if (cut || !model->next)
        return QN_OK;
    qn__fail(err, QN_UNSUPPORTED,
             "the model tells which token comes next, and has no answer to an item");
    return qn__remedy(err, QN_UNSUPPORTED, "generate texts with it");
}

qn_status qn__batch_open(const qn__batch_form *form, const qn_compute *compute, uint64_t most,
                         void **team, qn_error *err) {
    qn__layer_team *own = NULL;
    if (!form->cut)
        return form->kind->open(form->model, compute, most, team, err);
    const qn_status status = qn__layer_team_open(form->cut, compute, most, &own, err);
    if (status != QN_OK) {
        qn__layer_team_close(own);
        own = NULL;
    }
    *team = own;
    return status;
}

qn_status qn__batch_run(const qn__batch_form *form, void *team, const qn_data *inputs,
                        const qn__model_results *results, qn_error *err) {
    return form->cut ? qn__layer_team_apply(team, inputs, results->outputs, err)
                     : form->kind->run(form->model, team, inputs, results, err);
}

void qn__batch_close(const qn__batch_form *form, void *team) {
    if (form->cut)
        qn__layer_team_close(team);
    else
        form->kind->close(team);
}

qn_status qn__request_items_make(const qn__batch_form *form, const qn_data *data,
                                 qn__request_items *out, qn_error *err) {
    memset(out, 0, sizeof *out);
    out->items = data->items;
    if (form->plain && is_plain(data)) {
        out->prepared.inputs = data;
        return form->kind->check(form->model, data, err);
    }
    const qn__fitting to = qn__model_fitting(form->model, "the data");
    const qn_status status = qn__encode(&to, data, QN__UNKNOWN_MINUS_ONE, &out->matched, err);
    return status == QN_OK ? form->kind->prepare(form->model, out->matched ? out->matched : data,
                                                 &out->prepared, err)
                           : status;
}

void qn__request_items_release(qn__request_items *items) {
    qn__prepared_release(&items->prepared);
    qn_data_close(items->matched);
    memset(items, 0, sizeof *items);
}

void qn__request_items_spread(const qn__batch_form *form, const qn__request_items *items,
                              const qn__model_results *results) {
    if (items->prepared.complete)
        qn__results_spread(items->prepared.complete, items->items, form->outputs, form->answers,
                           results);
}
