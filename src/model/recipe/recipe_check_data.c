/* Whether a recipe's model suits its data: labels, columns, pixels. */
#include "base/memory.h"
#include "image/augment_text.h"
#include "image/resize.h"
#include "layer/axes.h"
#include "model/recipe/recipe_check.h"
#include "model/recipe/scale_numbers.h"
#include "model/recipe/several_targets.h"
#include "model/recipe/tables.h"
#include <string.h>

static qn_status refuse_network(const char *remedy, qn_status status, qn_error *err) {
    return qn__recipe_refuse(err, "`train.model`, `train.loss`", remedy, status);
}

/* The last layer of two classes with one output. */
static qn_status check_binary(const qn__recipe *r, qn_error *err) {
    const qn__layer_text *last = &r->network.layer[r->network.layers - 1];
    if (last->out == 1 && last->activation == QN__ACT_SIGMOID)
        return QN_OK;
    return refuse_network("end the model with \"dense 1 sigmoid\", or use `train.loss` "
                          "cross-entropy",
                          qn__fail(err, QN_USAGE,
                                   "the loss \"binary\" needs one sigmoid output, the last layer "
                                   "is \"dense %u %s\"",
                                   last->out,
                                   qn__table_name(&qn__activations, (int)last->activation)),
                          err);
}

/* What the task says of loss and last layer. */
static qn_status check_task(const qn__recipe *r, qn_error *err) {
    const qn__layer_text *last = &r->network.layer[r->network.layers - 1];
    if (r->task != QN__TASK_REGRESS)
        return QN_OK;
    if (r->loss == QN__LOSS_CROSS_ENTROPY || r->loss == QN__LOSS_BINARY)
        return qn__recipe_refuse(
            err, "`train.loss`", "use `train.loss` mse, mae or huber",
            qn__fail(err, QN_USAGE,
                     "the loss \"%s\" is for classes, and the labels are real numbers",
                     qn__table_name(&qn__losses, (int)r->loss)));
    if (last->out != 1 || last->activation == QN__ACT_SOFTMAX)
        return qn__recipe_refuse(
            err, "`train.model`", "end the model with \"dense 1\"",
            qn__fail(err, QN_USAGE,
                     "the labels are real numbers, and the last layer is \"dense %u %s\"",
                     last->out, qn__table_name(&qn__activations, (int)last->activation)));
    return QN_OK;
}

/* Items without pixels, where something needs them. */
static qn_status refuse_features(const qn__recipe *r, qn_error *err) {
    if (!qn__network_reads_features(&r->network))
        return qn__recipe_refuse(
            err, "`train.model`",
            "give images, or their shape (`train.shape`), or begin the model with a dense "
            "layer",
            qn__fail(err, QN_USAGE, "the first layer is \"%s\", and the data has no pixels",
                     qn__layer_ops_of(r->network.layer[0].kind)->word));
    if (r->scale == QN__SCALE_CHANNEL)
        return qn__recipe_refuse(
            err, "`train.scale`",
            "give images, or their shape (`train.shape`), or use `train.scale` standard",
            qn__fail(err, QN_USAGE,
                     "the scaling \"channel\" is for images, and the data has no pixels"));
    if (!r->augment && r->cutmix > 0.0f)
        return qn__recipe_refuse(
            err, "`train.cutmix`",
            "give images, or their shape (`train.shape`), or use `train.mixup`",
            qn__fail(err, QN_USAGE, "the data has no pixels of which a box could be copied"));
    return qn__recipe_refuse(
        err, "`train.augment`", "give images, or their shape (`train.shape`), or leave it out",
        qn__fail(err, QN_USAGE, "the data has no pixels that could be augmented"));
}

static qn_status check_shape(const qn__recipe *r, qn_error *err) {
    const uint64_t pixels = (uint64_t)r->shape.height * r->shape.width;
    char shape[QN__SHAPE_TEXT];
    if (!qn__recipe_needs_shape(r))
        return QN_OK;
    if (pixels == 0)
        return refuse_features(r, err);
    if (r->shape.channels == 0 || pixels > UINT32_MAX ||
        pixels * r->shape.channels != qn__recipe_inputs(r))
        return qn__recipe_refuse(err, "`train.shape`",
                                 "give channels, height and width of an item, as 3x32x32",
                                 qn__fail(err, QN_USAGE, "%s pixels are not %u inputs",
                                          qn__shape_text(r->shape, shape), qn__recipe_inputs(r)));
    return QN_OK;
}

/* What would change the numbers of tokens. */
static qn_status check_tokens(const qn__recipe *r, qn_error *err) {
    const char *option = r->scale != QN__SCALE_NONE ? "`train.scale`"
                         : r->augment               ? "`train.augment`"
                         : r->mixup > 0.0f          ? "`train.mixup`"
                         : r->cutmix > 0.0f         ? "`train.cutmix`"
                                                    : NULL;
    if (!qn__recipe_vocabulary(r))
        return QN_OK;
    if (option)
        return qn__recipe_refuse(
            err, option, "leave it out",
            qn__fail(err, QN_USAGE,
                     "the numbers of tokens, which \"embedding\" reads, are not "
                     "changed"));
    if (qn__recipe_inputs(r) == r->features)
        return QN_OK;
    return qn__recipe_refuse(err, "`data.path`",
                             "leave the column out (`data.drop`), or give tokens in its place",
                             qn__fail(err, QN_USAGE,
                                      "a column of texts is not the number of a token, which "
                                      "\"embedding\" reads"));
}

qn_status qn__recipe_check_network(const qn__recipe *r, qn_error *err) {
    const qn__activation last = r->network.layer[r->network.layers - 1].activation;
    qn_status status = check_task(r, err);
    if (status == QN_OK)
        status = qn__recipe_check_last(r, err);
    if (status == QN_OK && r->loss == QN__LOSS_BINARY && !qn__recipe_is_several(r))
        status = check_binary(r, err);
    if (status != QN_OK)
        return status;
    if (r->loss == QN__LOSS_CROSS_ENTROPY && last != QN__ACT_SOFTMAX)
        return refuse_network(
            "end the model with softmax (\"dense 10 softmax\"), or use `train.loss` mse",
            qn__fail(err, QN_USAGE,
                     "the loss \"cross-entropy\" needs softmax in the last layer, which has \"%s\"",
                     qn__table_name(&qn__activations, (int)last)),
            err);
    status = check_shape(r, err);
    if (status == QN_OK)
        status = check_tokens(r, err);
    if (status != QN_OK)
        return status;
    qn__layer layer[QN__MAX_LAYERS];
    uint64_t parameters;
    return qn__network_program(&r->network, qn__recipe_input(r), layer, &parameters, err);
}

qn_status qn__recipe_check_tokens(const qn__recipe *r, const qn_data *data, const char *what,
                                  qn_error *err) {
    if (!qn__element_is_token(data->type) || r->scale == QN__SCALE_NONE)
        return QN_OK;
    qn__fail(err, QN_MISMATCH, "%s holds numbers of tokens, and the model scales its inputs", what);
    return qn__remedy(
        err, QN_MISMATCH,
        "leave `data.tokens` out, so that they are read as numbers, or train with it");
}

qn_status qn__recipe_check_windows(const qn_data *data, const char *what, qn_error *err) {
    if (!data->window)
        return QN_OK;
    qn__fail(err, QN_INPUT, "%s has texts with more than %u tokens, whose windows overlap", what,
             data->features);
    return qn__remedy(err, QN_INPUT,
                      "leave `data.item` out: then items are cut from all texts as one row of "
                      "tokens");
}

qn_status qn__recipe_check_items(const qn__recipe *r, qn_error *err) {
    if (r->items == 0 || r->features == 0 || r->items > (uint64_t)1 << 48)
        return qn__recipe_refuse(
            err, "`data.path`", "give a data set with at least one item and one feature",
            qn__fail(err, QN_USAGE, "there is nothing to train on: %llu items with %u features",
                     (unsigned long long)r->items, r->features));
    return QN_OK;
}

static qn_status refuse_more_than_two(uint32_t classes, qn_error *err) {
    return qn__recipe_refuse(err, "`train.loss`", "use `train.loss` cross-entropy",
                             qn__fail(err, QN_USAGE,
                                      "the loss \"binary\" is for two classes, and the data has %u",
                                      classes));
}

/* A name for each output, or none. */
static qn_status check_label_names(const qn__recipe *r, qn_error *err) {
    const uint32_t outputs = r->network.layer[r->network.layers - 1].out, names = r->table->classes;
    if (names == 0 || names == outputs)
        return QN_OK;
    qn__fail(err, QN_USAGE, "the data has %u labels, and the last layer has %u outputs", names,
             outputs);
    qn__at(err, "`train.model`");
    return qn__remedy(err, QN_USAGE, "end the model with \"dense %u sigmoid\"", names);
}

/* Other mistakes of a table are found where it is made. */
qn_status qn__recipe_check_table(const qn__recipe *r, qn_error *err) {
    const uint64_t inputs = qn__inputs(r->table, r->table ? r->table->features : 1);
    if (!r->table)
        return QN_OK;
    if (inputs > QN__MAX_WIDTH)
        return qn__recipe_refuse(
            err, "`data.path`",
            "leave out columns of texts that differ in every item, such as names",
            qn__fail(err, QN_USAGE, "the columns and their categories give %llu inputs",
                     (unsigned long long)inputs));
    if (r->table->features != r->features)
        return qn__recipe_refuse(err, "`data.path`", "give the names of all columns, or of none",
                                 qn__fail(err, QN_USAGE,
                                          "the table names %u columns, but there are %u",
                                          r->table->features, r->features));
    const int several = qn__recipe_is_several(r) && r->task != QN__TASK_NEXT;
    if ((r->table->target == QN__TARGET_REAL) != (r->task == QN__TASK_REGRESS) ||
        (r->table->target == QN__TARGET_SEVERAL) != several)
        return qn__recipe_refuse(
            err, "`data.path`", "make the recipe again",
            qn__fail(err, QN_USAGE, "the table's labels are not those of the task"));
    if (r->task == QN__TASK_MULTILABEL)
        return check_label_names(r, err);
    const uint32_t outputs = qn__recipe_classes(r);
    if (r->table->classes <= outputs)
        return QN_OK;
    if (r->loss == QN__LOSS_BINARY)
        return refuse_more_than_two(r->table->classes, err);
    return qn__recipe_refuse(
        err, "`train.model`", "make the last layer as wide as there are classes",
        qn__fail(err, QN_USAGE, "the data has %u classes, but the last layer has %u outputs",
                 r->table->classes, outputs));
}

qn_status qn__recipe_check_class_weight(const qn__recipe *r, qn_error *err) {
    const qn__class_names names = qn__recipe_class_names(r);
    char *tidy;
    if (!r->class_weight || qn__recipe_is_several(r)) /* qn__recipe_check_several refuses it */
        return QN_OK;
    if (r->task == QN__TASK_REGRESS)
        return qn__recipe_refuse(
            err, "`train.class_weight`", "leave it out, or give the items weights",
            qn__fail(err, QN_USAGE, "real labels have no classes to give weights to"));
    qn_status status = qn__class_weight_tidy(r->class_weight, &names, &tidy, err);
    if (status == QN_OK && (!tidy || strcmp(tidy, r->class_weight) != 0))
        status = qn__fail(err, QN_USAGE, "the class weights are not written the way they are");
    qn__free(tidy);
    return status;
}

/* The sizes are those of the items. */
qn_status qn__recipe_check_resize(const qn__recipe *r, qn_error *err) {
    qn__resize resize;
    char text[QN__RESIZE_TEXT];
    if (!r->resize)
        return QN_OK;
    const qn_status status = qn__resize_parse(r->resize, &resize, err);
    if (status != QN_OK)
        return status;
    const uint64_t area = (uint64_t)resize.height * resize.width;
    qn__resize_text(&resize, text);
    if (strcmp(text, r->resize) == 0 && (r->features == area || r->features == 3 * area))
        return QN_OK;
    return qn__recipe_refuse(err, "`data.resize`", "give `data.resize` as quern train takes it",
                             qn__fail(err, QN_USAGE,
                                      "images resized by \"%s\" do not have %u values", r->resize,
                                      r->features));
}

/* The text must have the form that recipes have; the shape was checked. */
qn_status qn__recipe_check_scale_numbers(const qn__recipe *r, qn_error *err) {
    qn__scale_numbers numbers;
    char text[QN__SCALE_NUMBERS_TEXT];
    const qn_status status =
        r->scale_numbers ? qn__scale_numbers_parse(r->scale_numbers, &numbers, err) : QN_OK;
    if (status != QN_OK || !r->scale_numbers)
        return status;
    qn__scale_numbers_text(&numbers, text);
    if (strcmp(text, r->scale_numbers) != 0 || r->scale != QN__SCALE_CHANNEL ||
        r->init_scale != QN__INIT_SCALE_FIT)
        return qn__recipe_refuse(
            err, "`train.scale`", "give `train.scale` as quern train takes it",
            qn__fail(err, QN_USAGE, "the recipe's numbers of channels have another form"));
    if (numbers.channels == r->shape.channels)
        return QN_OK;
    return qn__recipe_refuse(err, "`train.scale`", "give a mean and a deviation for each channel",
                             qn__fail(err, QN_USAGE,
                                      "there are numbers for %u channels, and the images have %u",
                                      numbers.channels, r->shape.channels));
}

/* The text must have the form that recipes have; the shape was checked. */
qn_status qn__recipe_check_augment(const qn__recipe *r, qn_error *err) {
    qn__augment augment;
    qn__text form = {0};
    qn_status status = qn__augment_parse(r->augment, &augment, err);
    augment.shape = r->shape;
    if (status == QN_OK)
        status = qn__augment_check(&augment, err);
    if (status != QN_OK || !r->augment)
        return status;
    qn__augment_add_text(&augment, &form);
    if (form.failed)
        status = qn__fail_memory(err, form.size + 1, 1);
    else if (augment.words == 0 || strcmp(form.data, r->augment) != 0)
        status = qn__recipe_refuse(
            err, "`train.augment`", "make the recipe again with quern train",
            qn__fail(err, QN_USAGE, "\"%s\" is not how a recipe writes it", r->augment));
    qn__text_release(&form);
    return status;
}

qn_status qn__recipe_check_classes(const qn__recipe *recipe, uint32_t classes, qn_error *err) {
    const uint32_t outputs = qn__recipe_classes(recipe);
    if (classes <= outputs)
        return QN_OK;
    if (recipe->loss == QN__LOSS_BINARY)
        return refuse_more_than_two(classes, err);
    qn__fail(err, QN_USAGE, "the data has labels up to %u, but the last layer has %u outputs",
             classes - 1, outputs);
    qn__at(err, "`train.model`");
    return qn__remedy(err, QN_USAGE,
                      "make the last layer %u wide, one output for each label from 0 to %u",
                      classes, classes - 1);
}
