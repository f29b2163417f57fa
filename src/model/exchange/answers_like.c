#include "model/exchange/answers_like.h"

#include "base/memory.h"
#include "data/cells/label_columns.h"
#include "data/table/picture.h"
#include "data/table/shape.h"
#include "model/recipe/defaults.h"
#include "device/notes.h"
#include "model/recipe/model_source.h"
#include "model/recipe/tables.h"
#include <stdio.h>
#include <string.h>

/* The pixels of an item; a height of 0: it has none. */
static qn_status find_input(const qn_train_options *job, const qn_data *like, qn__shape *out,
                            qn_error *err) {
    uint32_t own[3] = {like->channels, like->rows, like->columns};
    const qn_status status =
        job->shape ? qn__shape_read(job->shape, "`train.shape`", own, err) : QN_OK;
    *out = (qn__shape){.channels = own[0], .height = own[1], .width = own[2]};
    return status;
}

/* The targets of an item: rows x columns classes of pixels, or labels where both are 0. */
static qn_status add_targets(const qn_data *like, uint32_t each, uint32_t rows, uint32_t columns,
                             qn__answered *out, qn_error *err) {
    qn_data *data = out->data = qn__alloc(1, sizeof *data, err);
    if (!data)
        return QN_MEMORY;
    *data = *like;
    data->classes = rows ? like->classes : 0; /* labels are not classes */
    data->labels = NULL;
    data->targets = NULL;
    data->several = qn__several_create(like->items, each, rows, columns, err);
    qn__schema *schema = data->schema = qn__schema_copy(like->schema, err);
    if (schema)
        schema->target = QN__TARGET_SEVERAL;
    if (schema && !rows && schema->classes > 0 && !schema->label &&
        !(schema->label = qn__label_list(schema->class_name, schema->classes, err)))
        return QN_MEMORY;
    return data->several && !schema == !like->schema ? QN_OK : QN_MEMORY;
}

static qn_status add_pixels(const qn_train_options *job, const qn__network *network,
                            const qn_data *like, qn__answered *out, qn_error *err) {
    qn__layer layer[QN__MAX_LAYERS];
    uint64_t parameters;
    qn__shape input;
    qn_status status = find_input(job, like, &input, err);
    if (status != QN_OK || input.height == 0)
        return status; /* a convolution without pixels is refused later */
    status = qn__network_program(network, input, layer, &parameters, err);
    const qn__shape *to = &layer[network->layers - 1].to;
    return status == QN_OK
               ? add_targets(like, to->height * to->width, to->height, to->width, out, err)
               : status;
}

/* The network of the job. A ready model with the loss "binary" and several classes gives a label
 * for each. */
static qn_status read_network(const qn_train_options *job, const qn_data *like,
                              qn__network *network, qn_error *err) {
    const qn__task task = like->targets ? QN__TASK_REGRESS : QN__TASK_CLASSIFY;
    qn__labels_like labels = {task, qn__default_loss(task), qn_data_classes(like), 0};
    int loss = (int)labels.loss;
    qn__model_source source = {0};
    qn_status status = job->loss ? qn__table_find(&qn__losses, job->loss, &loss, err) : QN_OK;
    labels.loss = (qn__loss)loss;
    if (status == QN_OK)
        status = qn__model_source_open(job->model, &labels, &source, err);
    if (status == QN_OK && source.ready && !qn__ready_segments(source.ready) &&
        labels.loss == QN__LOSS_BINARY && labels.classes > 1) {
        qn__model_source_release(&source);
        labels.task = QN__TASK_MULTILABEL;
        status = qn__model_source_open(job->model, &labels, &source, err);
    }
    if (status == QN_OK)
        status = qn__model_source_parse(&source, network, err);
    qn__model_source_release(&source);
    return status;
}

/* The loss that suits a last layer; the labels of a training would say it. NULL: the default one of
 * its kind of labels. */
static const char *loss_of(const qn__layer_text *last, const qn_data *like) {
    if (like->targets || last->activation == QN__ACT_SOFTMAX)
        return NULL;
    if (last->activation == QN__ACT_SIGMOID)
        return "binary";
    return last->kind == QN__LAYER_CONV ? NULL : "mse";
}

static qn_status add_labels(const qn__layer_text *last, const qn_train_options *job,
                            const qn_data *like, qn__answered *out, qn_error *err) {
    char note[200];
    snprintf(note, sizeof note,
             "the last layer is read as %u labels, each 0 or 1 for itself; where exactly one of "
             "them is right, give `train.loss` mse",
             last->out);
    if (!job->loss)
        qn__device_tell(note);
    return add_targets(like, last->out, 0, 0, out, err);
}

/* A softmax of one output is always 1. */
static qn_status check_one(const qn__layer_text *last, qn_error *err) {
    if (last->kind != QN__LAYER_DENSE || last->activation != QN__ACT_SOFTMAX || last->out > 1)
        return QN_OK;
    qn__fail(err, QN_USAGE,
             "the network has one output, which cannot tell classes apart by softmax");
    qn__at(err, "`train.loss`");
    return qn__remedy(err, QN_USAGE,
                      "give `train.loss` binary where it tells two classes apart, and 0 classes "
                      "where it predicts a real number");
}

qn_status qn__answers_like(const qn_train_options *job, const qn_data *like, qn__answered *out,
                           qn_error *err) {
    qn__network *network = qn__alloc(1, sizeof *network, err);
    qn_status status = network ? QN_OK : QN_MEMORY;
    *out = (qn__answered){0};
    if (status == QN_OK && job->model)
        status = read_network(job, like, network, err);
    if (status == QN_OK && job->model) {
        const qn__layer_text *last = &network->layer[network->layers - 1];
        status = check_one(last, err);
        out->loss = job->loss ? job->loss : loss_of(last, like);
        const int binary = out->loss && strcmp(out->loss, "binary") == 0;
        if (status == QN_OK && last->kind == QN__LAYER_CONV)
            status = add_pixels(job, network, like, out, err);
        else if (status == QN_OK && last->kind == QN__LAYER_DENSE && last->out > 1 && binary &&
                 !like->targets)
            status = add_labels(last, job, like, out, err);
    }
    qn__free(network);
    return status;
}

void qn__answered_release(qn__answered *answered) {
    if (!answered->data)
        return;
    qn__several_free(answered->data->several);
    qn__schema_free(answered->data->schema);
    qn__free(answered->data);
    answered->data = NULL;
}
