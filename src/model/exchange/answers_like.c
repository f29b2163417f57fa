#include "model/exchange/answers_like.h"

#include "base/memory.h"
#include "data/table/picture.h"
#include "data/table/shape.h"
#include "model/recipe/defaults.h"
#include "model/recipe/model_source.h"
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
    data->labels = NULL;
    data->targets = NULL;
    data->several = qn__several_create(like->items, each, rows, columns, err);
    data->schema = qn__schema_copy(like->schema, err);
    if (data->schema)
        data->schema->target = QN__TARGET_SEVERAL;
    return data->several && !data->schema == !like->schema ? QN_OK : QN_MEMORY;
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

qn_status qn__answers_like(const qn_train_options *job, const qn_data *like, qn__answered *out,
                           qn_error *err) {
    const qn__labels_like labels = {QN__TASK_CLASSIFY, qn__default_loss(QN__TASK_CLASSIFY),
                                    qn_data_classes(like)};
    qn__network *network = qn__alloc(1, sizeof *network, err);
    qn_status status = network ? QN_OK : QN_MEMORY;
    *out = (qn__answered){0};
    if (status == QN_OK && job->model)
        status = qn__model_source_read(job->model, &labels, network, err);
    if (status == QN_OK && job->model) {
        const qn__layer_text *last = &network->layer[network->layers - 1];
        const int binary = job->loss && strcmp(job->loss, "binary") == 0;
        if (last->kind == QN__LAYER_CONV && last->activation == QN__ACT_SIGMOID)
            out->loss = "binary";
        if (last->kind == QN__LAYER_CONV)
            status = add_pixels(job, network, like, out, err);
        else if (last->kind == QN__LAYER_DENSE && last->activation == QN__ACT_SIGMOID &&
                 last->out > 1 && binary)
            status = add_targets(like, last->out, 0, 0, out, err);
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
