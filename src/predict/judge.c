#include "predict/judge.h"

#include "base/memory.h"
#include "data/prepare/encode.h"
#include "model/formats/model_kind.h"
#include <inttypes.h>
#include <math.h>
#include <quern/predict.h>
#include <stdio.h>
#include <string.h>

/* Keeps the list sorted; of equals the item that came first stays before. */
static void keep(qn__judged *j, uint32_t most, const qn__mistake *mistake) {
    uint32_t at = j->mistakes;
    if (most == 0 || (at == most && !(mistake->size > j->worst[at - 1].size)))
        return;
    at = at < most ? at : most - 1;
    for (; at > 0 && mistake->size > j->worst[at - 1].size; --at)
        j->worst[at] = j->worst[at - 1];
    j->worst[at] = *mistake;
    j->mistakes += j->mistakes < most;
}

static void judge_class(qn__judged *j, uint64_t item, int32_t class, float score, uint32_t most) {
    const int32_t label = j->data->labels[item];
    if (class < 0)
        return; /* it lacks a value */
    ++j->items;
    j->correct += class == label;
    if (j->confusion && label >= 0 && (uint32_t)label < j->classes && (uint32_t) class < j->classes)
        ++j->confusion[(size_t)label * j->classes + (size_t) class];
    if (class != label)
        keep(j, most, &(qn__mistake){item, label, class, 0, score, (double)score});
}

static void judge_number(qn__judged *j, uint64_t item, float prediction, uint32_t most) {
    const float target = j->data->targets[item];
    const double error = fabs((double)prediction - (double)target);
    if (isnan(prediction))
        return;
    ++j->items;
    j->squares += error * error;
    if (error > 0)
        keep(j, most, &(qn__mistake){item, 0, 0, target, prediction, error});
}

static qn_status check(const qn__judged *j, qn_error *err) {
    if (j->real ? j->data->targets != NULL : j->data->labels != NULL)
        return QN_OK;
    qn__fail(err, QN_INPUT, "the data has no %s, so there is nothing to compare with",
             j->real ? "real labels" : "labels of classes");
    return qn__remedy(err, QN_INPUT, "give data with labels (`data.label_column`)");
}

static qn_status allocate(qn__judged *j, uint32_t most, qn_error *err) {
    j->worst = qn__alloc(most ? most : 1, sizeof *j->worst, err);
    if (!j->worst)
        return QN_MEMORY;
    if (j->classes == 0 || j->classes > QN__JUDGED_CLASSES)
        return QN_OK;
    const size_t cells = (size_t)j->classes * j->classes;
    j->confusion = qn__alloc(cells, sizeof *j->confusion, err);
    if (!j->confusion)
        return QN_MEMORY;
    memset(j->confusion, 0, cells * sizeof *j->confusion);
    return QN_OK;
}

qn_status qn__judge(const qn_model *model, const qn_data *data, const qn_compute *compute,
                    uint32_t most, qn__judged *out, qn_error *err) {
    const qn__fitting to = qn__model_fitting(model, "the data");
    *out = (qn__judged){.model = model, .data = data, .classes = qn_model_classes(model)};
    out->real = out->classes == 0;
    qn_status status =
        data->index ? QN_OK : qn__encode(&to, data, QN__UNKNOWN_MINUS_ONE, &out->made, err);
    out->data = out->made ? out->made : data;
    if (status == QN_OK)
        status = check(out, err);
    if (status == QN_OK)
        status = allocate(out, most, err);
    if (status != QN_OK)
        return status;
    int32_t *class = qn__alloc(data->items, sizeof *class, err);
    float *score = class ? qn__alloc(data->items, sizeof *score, err) : NULL;
    status = score ? qn_predict(model, out->data, compute, class, score, NULL, err) : QN_MEMORY;
    for (uint64_t i = 0; status == QN_OK && i < data->items; ++i)
        if (out->real)
            judge_number(out, i, score[i], most);
        else
            judge_class(out, i, class[i], score[i], most);
    qn__free(class);
    qn__free(score);
    return status;
}

void qn__judged_release(qn__judged *judged) {
    qn_data_close(judged->made);
    qn__free(judged->confusion);
    qn__free(judged->worst);
    *judged = (qn__judged){0};
}

const char *qn__judged_class(const qn_model *model, int32_t class, char buffer[16]) {
    const char *name = class >= 0 ? qn_model_class_name(model, (uint32_t) class) : "unknown";
    if (!name)
        snprintf(buffer, 16, "%" PRId32, class);
    return name ? name : buffer;
}
