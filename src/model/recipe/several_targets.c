#include "model/recipe/several_targets.h"

#include "layer/axes.h"
#include "model/recipe/tables.h"
#include <string.h>

qn__task qn__task_of(const qn_data *data) {
    if (data->several)
        return data->several->height ? QN__TASK_SEGMENT : QN__TASK_MULTILABEL;
    return data->targets ? QN__TASK_REGRESS : QN__TASK_CLASSIFY;
}

uint32_t qn__width_for(const qn_data *data) {
    const uint32_t classes = qn_data_classes(data);
    if (!data->several)
        return classes;
    return !data->several->height ? data->several->each : classes < 2 ? 2 : classes;
}

static qn_status refuse_last(const qn__recipe *r, const char *labels, const char *remedy,
                             qn_error *err) {
    qn__text text = {0};
    qn__network_layer_text(&r->network.layer[r->network.layers - 1], &text);
    qn__fail(err, QN_USAGE, "%s, and the last layer with the loss \"%s\" is \"%s\"", labels,
             qn__table_name(&qn__losses, (int)r->loss), text.data ? text.data : "");
    qn__text_release(&text);
    qn__at(err, "`train.model`, `train.loss`");
    return qn__remedy(err, QN_USAGE, "%s", remedy);
}

/* Whether the classes of pixels are tags of tokens. */
static int are_tags(const qn__recipe *r) { return r->task == QN__TASK_SEGMENT && r->tokens; }

/* What has an answer, in the words of messages. */
static const char *answers_in_words(const qn__recipe *r) {
    return are_tags(r)                      ? "each token has a tag"
           : r->task == QN__TASK_SEGMENT    ? "each pixel has a class"
           : r->task == QN__TASK_MULTILABEL ? "an item has several labels"
           : r->task == QN__TASK_NEXT       ? "each position has a token that follows"
                                            : "an item has one label";
}

static qn_status check_segment(const qn__recipe *r, const qn__layer_text *last, qn_error *err) {
    const int classes = r->loss == QN__LOSS_CROSS_ENTROPY && last->activation == QN__ACT_SOFTMAX &&
                        last->out >= 2 && last->out <= QN__NO_TARGET;
    const int two =
        r->loss == QN__LOSS_BINARY && last->activation == QN__ACT_SIGMOID && last->out == 1;
    if (last->kind == QN__LAYER_CONV && (classes || two))
        return QN_OK;
    return refuse_last(r, answers_in_words(r),
                       "end the model with \"conv 3 1x1 softmax\" for 3 classes (2 to 255), or for "
                       "two with \"conv 1 1x1 sigmoid\" and `train.loss` binary",
                       err);
}

/* Each position of the first layer has its target. */
static qn_status check_positions(const qn__recipe *r, qn_error *err) {
    qn__layer layer[QN__MAX_LAYERS];
    uint64_t parameters;
    const qn_status status =
        qn__network_program(&r->network, qn__recipe_input(r), layer, &parameters, err);
    const qn__shape *from = &layer[0].to, *to = &layer[r->network.layers - 1].to;
    if (status != QN_OK || (to->height == from->height && to->width == from->width))
        return status;
    qn__fail(err, QN_USAGE, "%u positions have a token that follows, and the last layer gives %u",
             from->height * from->width, to->height * to->width);
    return qn__recipe_refuse(err, "`train.model`",
                             "leave out pools, strides and other layers that change the number of "
                             "positions",
                             QN_USAGE);
}

static qn_status check_next(const qn__recipe *r, const qn__layer_text *last, qn_error *err) {
    const uint32_t tokens = qn__recipe_vocabulary(r);
    if (tokens && last->kind == QN__LAYER_CONV && r->loss == QN__LOSS_CROSS_ENTROPY &&
        last->activation == QN__ACT_SOFTMAX && last->out == tokens)
        return check_positions(r, err);
    return refuse_last(r, "after each token comes the next one",
                       "begin the model with \"embedding V N\", where V is the size of the "
                       "vocabulary, and end it with \"conv V 1x1 softmax\"",
                       err);
}

static qn_status check_labels(const qn__recipe *r, const qn__layer_text *last, qn_error *err) {
    if (last->kind == QN__LAYER_DENSE && r->loss == QN__LOSS_BINARY &&
        last->activation == QN__ACT_SIGMOID)
        return QN_OK;
    return refuse_last(r, "an item has several labels, each 0 or 1",
                       "end the model with \"dense 3 sigmoid\" for 3 labels, and leave "
                       "`train.loss` out; where exactly one of them is 1, give its number as the "
                       "label (numpy.argmax(labels, axis=1))",
                       err);
}

qn_status qn__recipe_check_last(const qn__recipe *r, qn_error *err) {
    const qn__layer_text *last = &r->network.layer[r->network.layers - 1];
    if (r->task == QN__TASK_SEGMENT)
        return check_segment(r, last, err);
    if (r->task == QN__TASK_MULTILABEL)
        return check_labels(r, last, err);
    if (r->task == QN__TASK_NEXT)
        return check_next(r, last, err);
    if (last->kind == QN__LAYER_DENSE)
        return QN_OK;
    return refuse_last(r, answers_in_words(r),
                       "end the model with a dense layer, such as \"dense 10 softmax\"; a "
                       "convolution is the last layer where each pixel or token has a class",
                       err);
}

/* Options that are for one label of an item. */
static const char *unfit(const qn__recipe *r) {
    if (r->mixup > 0.0f)
        return "`train.mixup`";
    if (r->cutmix > 0.0f && r->task != QN__TASK_SEGMENT)
        return "`train.cutmix`";
    if (r->class_weight)
        return "`train.class_weight`";
    return NULL;
}

int qn__recipe_moves_targets(const qn__recipe *r) {
    const qn__augment augment = qn__recipe_augment(r);
    return r->task == QN__TASK_SEGMENT && (qn__augment_moves(&augment) || r->cutmix > 0.0f);
}

/* Pixels of a mask move as those of the picture, and so are as many. */
static qn_status check_moved(const qn__recipe *r, qn_error *err) {
    qn__layer layer[QN__MAX_LAYERS];
    uint64_t parameters;
    if (!qn__recipe_moves_targets(r))
        return QN_OK;
    const qn_status status =
        qn__network_program(&r->network, qn__recipe_input(r), layer, &parameters, err);
    const qn__shape *to = &layer[r->network.layers - 1].to;
    if (status != QN_OK || (to->height == r->shape.height && to->width == r->shape.width))
        return status;
    qn__fail(err, QN_USAGE,
             "the masks have %ux%u pixels, and the pictures %ux%u, so they cannot move with them",
             to->height, to->width, r->shape.height, r->shape.width);
    return qn__recipe_refuse(err, r->cutmix > 0.0f ? "`train.cutmix`" : "`train.augment`",
                             "give the model an \"upsample\" or \"convtranspose\" at its end and "
                             "masks of the pictures' size, or leave it out; jitter, blur and "
                             "cutout change no masks",
                             QN_USAGE);
}

qn_status qn__recipe_check_several(const qn__recipe *r, qn_error *err) {
    const char *option = qn__recipe_is_several(r) ? unfit(r) : NULL;
    if (!option && qn__recipe_is_several(r) && r->optimizer == QN__OPT_LBFGS) {
        qn__fail(err, QN_USAGE, "the optimizer lbfgs trains networks with one label for an item");
        return qn__recipe_refuse(err, "`train.optimizer`", "use another, such as adam", QN_USAGE);
    }
    if (!option)
        return check_moved(r, err);
    qn__fail(err, QN_USAGE, "it is for items with one label, and here %s", answers_in_words(r));
    const int mixes = r->task == QN__TASK_SEGMENT && r->mixup > 0.0f;
    return qn__recipe_refuse(err, option,
                             mixes ? "leave it out, or take `train.cutmix`, which copies a part of "
                                     "a picture with its mask"
                                   : "leave it out",
                             QN_USAGE);
}

static uint32_t answers_of(const qn__recipe *r, const qn__layer *last) {
    return r->loss == QN__LOSS_BINARY ? last->out : last->to.height * last->to.width;
}

void qn__recipe_several(const qn__recipe *recipe, qn__layer *layer, qn__program *program) {
    qn__layer *last = &layer[recipe->network.layers - 1];
    if (!qn__recipe_is_several(recipe))
        return;
    program->answers = answers_of(recipe, last);
    program->next = recipe->task == QN__TASK_NEXT;
    last->activation = QN__ACT_NONE; /* the loss applies it */
}

static const char *labels_in_words(qn__task task, int tokens) {
    static const char *const kinds[] = {[QN__TASK_CLASSIFY] = "classes",
                                        [QN__TASK_REGRESS] = "real numbers",
                                        [QN__TASK_SEGMENT] = "masks, a class for each pixel",
                                        [QN__TASK_MULTILABEL] = "several labels for each item",
                                        [QN__TASK_NEXT] = "the tokens themselves"};
    return task == QN__TASK_SEGMENT && tokens ? "tags, a class for each token" : kinds[task];
}

static qn_status refuse_kind(const qn__recipe *r, const qn_data *data, const char *what,
                             qn_error *err) {
    const int tokens = qn__element_is_token(data->type);
    qn__fail(err, QN_MISMATCH, "the labels of %s are %s; those of the training are %s", what,
             labels_in_words(qn__task_of(data), tokens), labels_in_words(r->task, tokens));
    return qn__remedy(err, QN_MISMATCH, "give both sets labels of the same kind");
}

static qn_status refuse_pixels(const qn__recipe *r, const qn__shape *to, const qn__several *several,
                               const char *what, qn_error *err) {
    if (are_tags(r)) {
        qn__fail(err, QN_MISMATCH,
                 "an item of %s has tags for %u tokens, and the last layer gives %u", what,
                 several->each, to->height * to->width);
        return qn__remedy(err, QN_MISMATCH,
                          "the last layer must give one answer for each token: leave pools and "
                          "strides out");
    }
    qn__fail(err, QN_MISMATCH, "a mask of %s has %ux%u pixels, and the last layer gives %ux%u",
             what, several->height, several->width, to->height, to->width);
    return qn__remedy(err, QN_MISMATCH,
                      "the last layer must give one answer for each pixel of a mask: leave pools "
                      "and strides out, or go back with \"upsample\" or \"convtranspose\"");
}

static qn_status refuse_classes(const qn__recipe *r, uint32_t classes, uint32_t outputs,
                                const char *what, qn_error *err) {
    qn__fail(err, QN_MISMATCH, "%s of %s have classes up to %u, and the network tells %u apart",
             are_tags(r) ? "tags" : "masks", what, classes - 1, outputs);
    return qn__remedy(err, QN_MISMATCH,
                      "make the last layer %u channels wide (\"conv %u 1x1 softmax\"), or give "
                      "%s that do not count the value %s",
                      classes, classes, are_tags(r) ? "tokens" : "pixels",
                      are_tags(r) ? "-100" : "255");
}

qn_status qn__recipe_check_targets(const qn__recipe *r, const qn_data *data, const char *what,
                                   qn_error *err) {
    qn__layer layer[QN__MAX_LAYERS];
    uint64_t parameters;
    const qn__several *several = data->several;
    if ((!several && !qn__recipe_is_several(r)) ||
        (r->task == QN__TASK_NEXT && !qn__data_labelled(data)))
        return QN_OK;
    if (qn__task_of(data) != r->task || !several)
        return refuse_kind(r, data, what, err);
    const qn_status status =
        qn__network_program(&r->network, qn__recipe_input(r), layer, &parameters, err);
    if (status != QN_OK)
        return status;
    const qn__layer *last = &layer[r->network.layers - 1];
    if (r->task == QN__TASK_SEGMENT &&
        (several->height != last->to.height || several->width != last->to.width))
        return refuse_pixels(r, &last->to, several, what, err);
    const uint32_t classes = qn_data_classes(data), outputs = qn__recipe_classes(r);
    if (r->task == QN__TASK_SEGMENT && classes > outputs)
        return refuse_classes(r, classes, outputs, what, err);
    if (answers_of(r, last) == several->each)
        return QN_OK;
    qn__fail(err, QN_MISMATCH, "an item of %s has %u labels, and the last layer has %u outputs",
             what, several->each, last->out);
    return qn__remedy(err, QN_MISMATCH, "end the model with \"dense %u sigmoid\"", several->each);
}

qn_status qn__recipe_check_set(const qn__recipe *r, const qn_data *data, const char *what,
                               qn_error *err) {
    const qn_status status = qn__recipe_check_targets(r, data, what, err);
    if (status != QN_OK || !data->several || qn__several_count_all(data) > 0)
        return status;
    const int pixels = data->several->height > 0;
    qn__fail(err, QN_INPUT,
             are_tags(r) ? "no tag of %s counts"
             : pixels    ? "no pixel in the masks of %s counts"
                         : "no label of %s is known",
             what);
    return qn__remedy(err, QN_INPUT,
                      are_tags(r) ? "-100, 255, and what `data.ignore` names, do not count: give "
                                    "other tokens their tag"
                      : pixels
                          ? "pixels of the value 255, and of `data.ignore`, do not count: give "
                            "others the number of their class"
                          : "give labels that are 0 or 1");
}
