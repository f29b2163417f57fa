#include "serve/batch/joined.h"

#include "base/memory.h"
#include <string.h>

static qn_status need_values(qn__joined *joined, uint64_t bytes, qn_error *err) {
    if (bytes <= joined->bytes)
        return QN_OK;
    qn__free(joined->values);
    joined->bytes = 0;
    joined->values = qn__alloc(bytes + QN__DATA_MARGIN, 1, err);
    if (!joined->values)
        return QN_MEMORY;
    joined->bytes = bytes;
    return QN_OK;
}

qn_status qn__join_inputs(qn__joined *joined, const qn_data *const *each, uint64_t count,
                          qn_error *err) {
    joined->inputs = each[0];
    if (count == 1)
        return QN_OK;
    const size_t stride = qn__data_stride(each[0]);
    uint64_t items = 0;
    for (uint64_t r = 0; r < count; ++r)
        items += each[r]->items;
    const qn_status status = need_values(joined, items * stride, err);
    if (status != QN_OK)
        return status;
    uint8_t *to = joined->values;
    for (uint64_t r = 0; r < count; ++r)
        for (uint64_t i = 0; i < each[r]->items; ++i, to += stride)
            memcpy(to, qn__data_item(each[r], i), stride);
    joined->table = (qn_data){.type = each[0]->type,
                              .items = items,
                              .features = each[0]->features,
                              .channels = each[0]->channels,
                              .rows = each[0]->rows,
                              .columns = each[0]->columns,
                              .format = "array",
                              .values = joined->values};
    joined->inputs = &joined->table;
    return QN_OK;
}

static void release_results(qn__joined *joined) {
    qn__free(joined->classes);
    qn__free(joined->scores);
    qn__free(joined->outputs);
    qn__free(joined->answers);
    joined->classes = NULL;
    joined->scores = joined->outputs = NULL;
    joined->answers = NULL;
    joined->items = 0;
}

static int need_results(qn__joined *joined, const qn__batch_form *form, int with_outputs,
                        qn_error *err) {
    const uint64_t items = joined->inputs->items;
    if (items <= joined->items)
        return 1;
    release_results(joined);
    int good = 1;
    if (form->answers)
        good = (joined->answers = qn__alloc(items, form->answers, err)) != NULL;
    else if (!form->cut)
        good = (joined->classes = qn__alloc(items, sizeof *joined->classes, err)) &&
               (joined->scores = qn__alloc(items, sizeof *joined->scores, err));
    if (good && with_outputs)
        good = (joined->outputs = qn__alloc(items, form->outputs * sizeof *joined->outputs, err)) !=
               NULL;
    joined->items = good ? items : 0;
    return good;
}

qn_status qn__join_results(qn__joined *joined, const qn__batch_form *form, int with_outputs,
                           qn__model_results *results, qn_error *err) {
    if (!need_results(joined, form, with_outputs, err))
        return QN_MEMORY;
    *results = (qn__model_results){.classes = joined->classes,
                                   .scores = joined->scores,
                                   .outputs = joined->outputs,
                                   .answers = joined->answers};
    return QN_OK;
}

qn__model_results qn__results_from(const qn__model_results *results, const qn__batch_form *form,
                                   uint64_t first) {
    qn__model_results from = {0};
    if (results->classes)
        from.classes = results->classes + first;
    if (results->scores)
        from.scores = results->scores + first;
    if (results->outputs)
        from.outputs = results->outputs + first * form->outputs;
    if (results->answers)
        from.answers = results->answers + first * form->answers;
    return from;
}

void qn__joined_release(qn__joined *joined) {
    release_results(joined);
    qn__free(joined->values);
    memset(joined, 0, sizeof *joined);
}
