/* Networks without data: what `quern model` shows. */
#include <quern/network.h>

#include "base/argument.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/system/float_state.h"
#include "data/table/shape.h"
#include "layer/axes.h"
#include "model/formats/recipe_options.h"
#include "model/recipe/defaults.h"
#include "model/recipe/model_source.h"
#include "model/recipe/tables.h"
#include <stdio.h>

struct qn_network {
    qn__network network;
    qn__layer layer[QN__MAX_LAYERS];
    int known; /* 1: the input is known, and `layer` is filled */
    uint64_t parameters;
    const qn__ready *ready;
    qn__text text;
};

/* The input that shape and features together say; {0}: unknown. */
static qn_status find_input(const qn_train_options *job, uint32_t features, qn__shape *input,
                            qn_error *err) {
    uint32_t shape[3] = {features, 1, 1};
    const qn_status status =
        job->shape ? qn__shape_read(job->shape, "`train.shape`", shape, err) : QN_OK;
    *input = (qn__shape){shape[0], shape[1], shape[2], QN__PICTURE};
    if (status != QN_OK)
        return status;
    uint64_t values = (uint64_t)shape[1] * shape[2];
    const int huge = __builtin_mul_overflow(values, (uint64_t)shape[0], &values);
    if (!huge && values <= QN__MAX_VALUES && (features == 0 || values == features))
        return QN_OK;
    if (huge || values > QN__MAX_VALUES)
        qn__fail(err, QN_USAGE, "an item of %ux%ux%u has more than %u values", shape[0], shape[1],
                 shape[2], QN__MAX_VALUES);
    else
        qn__fail(err, QN_USAGE, "%ux%ux%u pixels are not %u features", shape[0], shape[1], shape[2],
                 features);
    qn__at(err, "`train.shape`");
    return qn__remedy(err, QN_USAGE, "give channels, height and width of an item, as 3x32x32");
}

static qn_status check_pixels(const qn_network *n, const qn_train_options *job, qn_error *err) {
    const qn__layer_kind first = n->network.layer[0].kind;
    if (job->shape || qn__network_reads_features(&n->network))
        return QN_OK;
    qn__fail(err, QN_USAGE, "the first layer is \"%s\", and an item has no pixels",
             qn__layer_ops_of(first)->word);
    qn__at(err, "`train.model`");
    return qn__remedy(err, QN_USAGE, "give the shape of an item: `train.shape` 3x32x32");
}

static qn_status find_labels(const qn_train_options *job, uint32_t classes, qn__labels_like *out,
                             qn_error *err) {
    const qn__task task = classes ? QN__TASK_CLASSIFY : QN__TASK_REGRESS;
    int loss = (int)qn__default_loss(task);
    const qn_status status = job->loss ? qn__table_find(&qn__losses, job->loss, &loss, err) : QN_OK;
    *out = (qn__labels_like){task, (qn__loss)loss, classes, 0};
    return status;
}

static qn_status parse(qn_network *n, const qn__model_source *source, const qn_train_options *job,
                       uint32_t features, qn_error *err) {
    qn__shape input;
    n->ready = source->ready;
    qn_status status = qn__model_source_parse(source, &n->network, err);
    if (status == QN_OK)
        status = find_input(job, features, &input, err);
    if (status != QN_OK)
        return status;
    qn__network_text(&n->network, &n->text);
    if (n->text.failed)
        return qn__fail_memory(err, 1, QN__MAX_LAYERS);
    n->known = input.channels > 0;
    if (n->known)
        status = check_pixels(n, job, err);
    if (n->known && status == QN_OK)
        status = qn__network_program(&n->network, input, n->layer, &n->parameters, err);
    if (status != QN_OK)
        qn__model_source_place(source, err);
    return status;
}

static qn_status fill(qn_network *n, const qn_train_options *job, uint32_t features,
                      uint32_t classes, qn_error *err) {
    char usual[QN__DEFAULT_MODEL_CAPACITY];
    qn__model_source source;
    qn__labels_like labels;
    qn_status status = find_labels(job, classes, &labels, err);
    if (status != QN_OK)
        return status;
    const qn__default_case images = {labels.task, 0, 0, 0, 0};
    qn__default_model(&images, labels.loss, classes, usual);
    status = qn__model_source_open(job->model ? job->model : usual, &labels, &source, err);
    if (status == QN_OK)
        status = parse(n, &source, job, features, err);
    qn__model_source_release(&source);
    return status;
}

qn_status qn_network_open(const qn_train_options *job, uint32_t features, uint32_t classes,
                          qn_network **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(job, err);
    qn_train_options own;
    qn_status status = qn__train_options_take(__func__, "job", job, &own, err);
    qn_network *n = status == QN_OK ? qn__alloc(1, sizeof *n, err) : NULL;
    if (status == QN_OK)
        status = n ? fill(n, &own, features, classes, err) : QN_MEMORY;
    if (status == QN_OK)
        *out = n;
    else
        qn_network_free(n);
    return status;
}

void qn_network_free(qn_network *network) {
    QN__OWN_FLOATS;
    if (network)
        qn__text_release(&network->text);
    qn__free(network);
}

const char *qn_network_text(const qn_network *network) {
    QN__OWN_FLOATS;
    return network ? network->text.data : "";
}

const char *qn_network_ready(const qn_network *network) {
    QN__OWN_FLOATS;
    return network && network->ready ? network->ready->name : NULL;
}

uint32_t qn_network_layers(const qn_network *network) {
    QN__OWN_FLOATS;
    return network ? network->network.layers : 0;
}

uint64_t qn_network_parameters(const qn_network *network) {
    QN__OWN_FLOATS;
    return network ? network->parameters : 0;
}

static void tell_shape(qn__shape shape, uint32_t out[3]) {
    out[0] = shape.channels;
    out[1] = shape.height;
    out[2] = shape.width;
}

static void tell_layer(const qn_network *n, uint32_t index, qn_layer_info *own) {
    const qn__layer *l = &n->layer[index];
    const qn__flops flops = qn__layer_flops(l);
    tell_shape(l->from, own->input);
    tell_shape(l->to, own->output);
    own->source = qn__layer_source(n->layer, index);
    if (qn__layer_ops_of(l->kind)->join)
        own->second = qn__layer_other(n->layer, index);
    own->parameters = qn__layer_end(l) - l->weights;
    own->flops = flops.forward;
    own->training = flops.forward + flops.gradient + (own->source >= 0 ? flops.backward : 0);
    own->activation = (uint64_t)l->out * sizeof(float);
}

qn_status qn_network_layer(const qn_network *network, uint32_t layer, qn_layer_info *info,
                           qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(network, err);
    QN__NEED(info, err);
    const qn_status status = qn__sized_check(QN__SIZED("info", qn_layer_info), info, err);
    if (status != QN_OK)
        return status;
    if (layer >= network->network.layers) {
        qn__fail(err, QN_USAGE, "there is no layer %u", layer);
        return qn__remedy(err, QN_USAGE, "layers are numbered from 0 to %u",
                          network->network.layers - 1);
    }
    qn_layer_info own = {.size = sizeof own, .source = (int32_t)layer - 1, .second = -2};
    qn__text text = {0};
    qn__network_layer_text(&network->network.layer[layer], &text);
    snprintf(own.text, sizeof own.text, "%s", text.data ? text.data : "");
    qn__text_release(&text);
    if (network->known)
        tell_layer(network, layer, &own);
    qn__sized_give(QN__SIZED("info", qn_layer_info), &own, info, info->size);
    return QN_OK;
}

uint32_t qn_ready_count(void) {
    QN__OWN_FLOATS;
    uint32_t count = 0;
    while (qn__ready_row(count))
        ++count;
    return count;
}

qn_status qn_ready_get(uint32_t index, qn_ready_model *model, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(model, err);
    const qn_status status = qn__sized_check(QN__SIZED("model", qn_ready_model), model, err);
    const qn__ready *row = qn__ready_row(index);
    if (status != QN_OK)
        return status;
    if (!row) {
        qn__fail(err, QN_USAGE, "there is no ready model %u", index);
        return qn__remedy(err, QN_USAGE, "they are numbered from 0 to %u", qn_ready_count() - 1);
    }
    qn_ready_model own = {.size = sizeof own};
    char shape[QN__SHAPE_TEXT];
    snprintf(own.name, sizeof own.name, "%s", row->name);
    snprintf(own.about, sizeof own.about, "%s", row->about);
    qn__shape_text(row->input, shape);
    snprintf(own.shape, sizeof own.shape, "%.*s", (int)sizeof own.shape - 1, shape);
    qn__sized_give(QN__SIZED("model", qn_ready_model), &own, model, model->size);
    return QN_OK;
}
