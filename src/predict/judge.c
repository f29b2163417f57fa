#include "predict/judge.h"

#include "base/memory.h"
#include "data/prepare/encode.h"
#include "model/formats/model_kind.h"
#include <inttypes.h>
#include <math.h>
#include <quern/predict.h>
#include <stdio.h>
#include <string.h>

/* Outputs that are kept at once. */
enum { MOST_OUTPUTS = 1 << 24 };

/* Predictions of the items from `first` on. */
typedef struct judging {
    uint64_t first;
    int32_t *class;
    float *score, *output;
    uint64_t *marks; /* a bit for each item of the data */
} judging;

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

/* What the network says of the item's label. */
static float own_output(const qn__judged *j, int32_t label, const float *output) {
    if (j->outputs > 1)
        return output[label];
    return label == 1 ? output[0] : 1.0f - output[0];
}

static void judge_class(qn__judged *j, uint64_t item, const judging *r, uint32_t most) {
    const int32_t label = j->data->labels[item], class = r->class[item - r->first];
    if (class < 0)
        return; /* it lacks a value */
    ++j->items;
    j->correct += class == label;
    const int known = label >= 0 && (uint32_t)label < j->classes;
    if (j->confusion && known && (uint32_t) class < j->classes)
        ++j->confusion[(size_t)label * j->classes + (size_t) class];
    if (class == label)
        return;
    const float *output = r->output + (size_t)(item - r->first) * j->outputs;
    const float own = known ? own_output(j, label, output) : 0.0f;
    keep(j, most,
         &(qn__mistake){.item = item,
                        .label = label,
                        .class = class,
                        .prediction = r->score[item - r->first],
                        .own = own,
                        .size = known ? -(double)own : -(double)INFINITY});
}

static void judge_number(qn__judged *j, uint64_t item, float prediction, uint32_t most) {
    const float target = j->data->targets[item];
    const double error = fabs((double)prediction - (double)target);
    if (isnan(prediction))
        return;
    ++j->items;
    j->squares += error * error;
    if (error > 0)
        keep(j, most,
             &(qn__mistake){
                 .item = item, .target = target, .prediction = prediction, .size = error});
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

/* Items of which all outputs are kept at once. */
static uint64_t block_of(const qn__judged *j) {
    const uint64_t most = j->real ? j->data->items : MOST_OUTPUTS / j->outputs;
    return most == 0 ? 1 : most < j->data->items ? most : j->data->items;
}

/* Predicts `count` items from r->first on. */
static qn_status predict(const qn__judged *j, const qn_compute *compute, judging *r, uint64_t count,
                         qn_error *err) {
    if (count == j->data->items)
        return qn_predict(j->model, j->data, compute, r->class, r->score, r->output, err);
    memset(r->marks, 0, (size_t)(j->data->items / 64 + 1) * sizeof *r->marks);
    for (uint64_t i = r->first; i < r->first + count; ++i)
        r->marks[i / 64] |= (uint64_t)1 << i % 64;
    qn_data *some = qn__data_view(j->data, r->marks, 1, count, err);
    const qn_status status =
        some ? qn_predict(j->model, some, compute, r->class, r->score, r->output, err) : QN_MEMORY;
    qn_data_close(some);
    return status;
}

static qn_status judge_all(qn__judged *j, const qn_compute *compute, uint32_t most, qn_error *err) {
    const uint64_t items = j->data->items, block = block_of(j);
    judging r = {.class = qn__alloc(block, sizeof *r.class, err)};
    r.score = r.class ? qn__alloc(block, sizeof *r.score, err) : NULL;
    r.marks = r.score ? qn__alloc(items / 64 + 1, sizeof *r.marks, err) : NULL;
    r.output = r.marks && !j->real ? qn__alloc(block, j->outputs * sizeof *r.output, err) : NULL;
    qn_status status = r.marks && (r.output || j->real) ? QN_OK : QN_MEMORY;
    for (; status == QN_OK && r.first < items; r.first += block) {
        const uint64_t count = items - r.first < block ? items - r.first : block;
        status = predict(j, compute, &r, count, err);
        for (uint64_t i = r.first; status == QN_OK && i < r.first + count; ++i)
            if (j->real)
                judge_number(j, i, r.score[i - r.first], most);
            else
                judge_class(j, i, &r, most);
    }
    qn__free(r.class);
    qn__free(r.score);
    qn__free(r.marks);
    qn__free(r.output);
    return status;
}

qn_status qn__judge(const qn_model *model, const qn_data *data, const qn_compute *compute,
                    uint32_t most, qn__judged *out, qn_error *err) {
    const qn__fitting to = qn__model_fitting(model, "the data");
    *out = (qn__judged){.model = model,
                        .data = data,
                        .classes = qn_model_classes(model),
                        .outputs = qn_model_outputs(model)};
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
    return judge_all(out, compute, most, err);
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
