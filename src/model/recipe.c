#include "model/recipe.h"

#include "base/memory.h"
#include "image/augment_text.h"
#include "image/resize.h"
#include "model/tables.h"
#include "num/intgemm_reference.h"
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static int copy_text(const char *from, char **to, qn_error *err) {
    *to = from ? qn__copy_text(from, err) : NULL;
    return !from || *to;
}

const qn__recipe_key qn__recipe_keys[] = {
    {"smoothing", QN__KEY_FLOAT, offsetof(qn__recipe, smoothing)},
    {"clip", QN__KEY_FLOAT, offsetof(qn__recipe, clip)},
    {"nesterov", QN__KEY_FLAG, offsetof(qn__recipe, nesterov)},
    {"augment", QN__KEY_TEXT, offsetof(qn__recipe, augment)},
    {"resize", QN__KEY_TEXT, offsetof(qn__recipe, resize)},
    {"l1", QN__KEY_FLOAT, offsetof(qn__recipe, l1)},
    {"tolerance", QN__KEY_FLOAT, offsetof(qn__recipe, tolerance)},
    {NULL, QN__KEY_FLAG, 0},
};

/* The member of a key. */
static const void *member_of(const qn__recipe *r, const qn__recipe_key *key) {
    return (const char *)r + key->offset;
}

static char **text_of(qn__recipe *r, const qn__recipe_key *key) {
    return (char **)((char *)r + key->offset);
}

int qn__recipe_has(const qn__recipe *r, const qn__recipe_key *key) {
    switch (key->form) {
    case QN__KEY_FLAG:
        return *(const uint32_t *)member_of(r, key) != 0;
    case QN__KEY_FLOAT:
        return *(const float *)member_of(r, key) != 0.0f;
    case QN__KEY_TEXT:
        return *(char *const *)member_of(r, key) != NULL;
    }
    return 0;
}

static int copy_key_texts(const qn__recipe *from, qn__recipe *to, qn_error *err) {
    int whole = 1;
    for (const qn__recipe_key *key = qn__recipe_keys; key->name; ++key)
        if (key->form == QN__KEY_TEXT) {
            *text_of(to, key) = NULL;
            whole = whole && copy_text(*(char *const *)member_of(from, key), text_of(to, key), err);
        }
    return whole;
}

qn_status qn__recipe_copy(const qn__recipe *from, qn__recipe *to, qn_error *err) {
    *to = *from;
    to->weight = to->class_weight = NULL;
    const int whole = copy_key_texts(from, to, err);
    to->table = qn__schema_copy(from->table, err);
    if (whole && (to->table || !from->table) && copy_text(from->weight, &to->weight, err) &&
        copy_text(from->class_weight, &to->class_weight, err))
        return QN_OK;
    qn__recipe_release(to);
    return QN_MEMORY;
}

void qn__recipe_release(qn__recipe *recipe) {
    qn__schema_free(recipe->table);
    qn__free(recipe->weight);
    qn__free(recipe->class_weight);
    for (const qn__recipe_key *key = qn__recipe_keys; key->name; ++key)
        if (key->form == QN__KEY_TEXT)
            qn__free(*text_of(recipe, key));
    *recipe = (qn__recipe){0};
}

/* What a program that knows contract 1 only would have to ignore. */
static int uses_contract_2(const qn__recipe *r) {
    return r->task != QN__TASK_CLASSIFY || r->delta != 0.0f || r->missing != QN__MISSING_ERROR ||
           !qn__schema_is_trivial(r->table) || r->keep != QN__KEEP_LAST || r->patience > 0 ||
           r->init_from[0] != '\0' || r->loss > QN__LOSS_MSE; /* those were the first losses */
}

static int uses_contract_3(const qn__recipe *r) {
    return r->weight || r->class_weight || r->init_scale != QN__INIT_SCALE_FIT;
}

static int uses_contract_4(const qn__recipe *r) { return r->valid_data[0] != '\0'; }

static int uses_contract_5(const qn__recipe *r) { return qn__network_contract(&r->network) >= 5; }

static int uses_contract_6(const qn__recipe *r) {
    int uses = qn__network_contract(&r->network) >= 6 || r->scale == QN__SCALE_CHANNEL ||
               (r->arith != QN__ARITH_F32 && qn__network_has_pixels(&r->network));
    for (const qn__recipe_key *key = qn__recipe_keys; key->name; ++key)
        uses = uses || qn__recipe_has(r, key);
    return uses;
}

/* -0 equals 0, so this is where the two become one. */
static void plain_zero(float *number) {
    if (*number == 0.0f)
        *number = 0.0f;
}

static int optimizer_takes(const qn__recipe *r, const char *member) {
    return qn__table_takes(&qn__optimizers, (int)r->optimizer, member);
}

static int schedule_takes(const qn__recipe *r, const char *member) {
    return qn__table_takes(&qn__schedules, (int)r->schedule, member);
}

static int loss_takes(const qn__recipe *r, const char *member) {
    return qn__table_takes(&qn__losses, (int)r->loss, member);
}

/* Sets to 0 what the names do not take (docs/exactness.md 11.3). */
static void drop_unused(qn__recipe *r) {
    const struct {
        float *number;
        int taken;
    } numbers[] = {{&r->momentum, optimizer_takes(r, "momentum")},
                   {&r->beta1, optimizer_takes(r, "beta1")},
                   {&r->beta2, optimizer_takes(r, "beta2")},
                   {&r->epsilon, optimizer_takes(r, "epsilon")},
                   {&r->lr_gamma, schedule_takes(r, "lr_gamma")},
                   {&r->delta, loss_takes(r, "delta")},
                   {&r->l1, optimizer_takes(r, "l1")},
                   {&r->tolerance, optimizer_takes(r, "tolerance")}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i)
        if (!numbers[i].taken)
            *numbers[i].number = 0.0f;
    if (!schedule_takes(r, "lr_step"))
        r->lr_step = 0;
    if (r->optimizer == QN__OPT_LBFGS) {
        r->batch = 0;
        r->learning_rate = 0;
    }
}

void qn__recipe_tidy(qn__recipe *r) {
    /* sgd and momentum are one rule with and without a coefficient (docs/exactness.md 9.7). */
    if (r->optimizer == QN__OPT_SGD && r->momentum != 0.0f)
        r->optimizer = QN__OPT_MOMENTUM;
    if (r->optimizer == QN__OPT_MOMENTUM && r->momentum == 0.0f)
        r->optimizer = QN__OPT_SGD;
    drop_unused(r);
    float *const numbers[] = {&r->valid,    &r->momentum,     &r->beta1,         &r->beta2,
                              &r->epsilon,  &r->weight_decay, &r->learning_rate, &r->lr_gamma,
                              &r->delta,    &r->smoothing,    &r->clip,          &r->l1,
                              &r->tolerance};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; ++i)
        plain_zero(numbers[i]);
    if (!qn__recipe_needs_shape(r))
        r->shape = (qn__shape){0};
    r->contract = uses_contract_6(r)   ? 6
                  : uses_contract_5(r) ? 5
                  : uses_contract_4(r) ? 4
                  : uses_contract_3(r) ? 3
                  : uses_contract_2(r) ? 2
                                       : 1;
}

/* --------------------------------------------------------------------------------------- checks */

/* Completes a message: `status` is what qn__fail returned for its first part. */
static qn_status refuse(qn_error *err, const char *option, const char *remedy, qn_status status) {
    qn__at(err, "%s", option);
    return qn__remedy(err, status, "%s", remedy);
}

/* A float with its valid range; NaN is in no range. */
typedef struct range {
    const char *option, *what;
    float value, low, high;
    int low_open, high_open; /* whether the end itself is excluded */
    const char *remedy;
} range;

static qn_status check_range(const range *r, qn_error *err) {
    const int above = r->low_open ? r->value > r->low : r->value >= r->low;
    const int below = r->high_open ? r->value < r->high : r->value <= r->high;
    if (above && below)
        return QN_OK;
    char number[32];
    if (isfinite(r->value))
        qn__float_text(r->value, number);
    else
        snprintf(number, sizeof number, "%s", isnan(r->value) ? "NaN" : "infinite");
    return refuse(err, r->option, r->remedy, qn__fail(err, QN_USAGE, "%s is %s", r->what, number));
}

static qn_status check_ranges(const range *ranges, size_t count, qn_error *err) {
    qn_status status = QN_OK;
    for (size_t i = 0; i < count && status == QN_OK; ++i)
        status = check_range(&ranges[i], err);
    return status;
}

#define FINITE_MAX 0x1.fffffep+127f

static qn_status check_optimizer(const qn__recipe *r, qn_error *err) {
    static const char *const share = "give a number from 0 to below 1, such as 0.9";
    const range ranges[] = {
        {"`train.learning_rate`", "the learning rate", r->learning_rate, 0.0f, FINITE_MAX,
         r->optimizer != QN__OPT_LBFGS, 0, "give a number greater than 0, such as 0.1"},
        {"`train.momentum`", "the momentum", r->momentum, 0.0f, 1.0f, 0, 1, share},
        {"`train.beta1`", "beta1", r->beta1, 0.0f, 1.0f, 0, 1, share},
        {"`train.beta2`", "beta2", r->beta2, 0.0f, 1.0f, 0, 1, share},
        /* Where it is not used it is 0. */
        {"`train.epsilon`", "epsilon", r->epsilon, 0.0f, FINITE_MAX, optimizer_takes(r, "epsilon"),
         0, "give a number greater than 0, such as 1e-8"},
        {"`train.weight_decay`", "the weight decay", r->weight_decay, 0.0f, FINITE_MAX, 0, 0,
         "give 0 or a small number, such as 1e-4"},
        {"`train.l1`", "the L1 penalty", r->l1, 0.0f, FINITE_MAX, 0, 0,
         "give 0 or a small number, such as 1e-4"},
        {"`train.tolerance`", "the tolerance", r->tolerance, 0.0f, FINITE_MAX,
         optimizer_takes(r, "tolerance"), 0, "give a number greater than 0, such as 1e-4"},
        {"`train.clip`", "the largest norm of the gradient", r->clip, 0.0f, FINITE_MAX, 0, 0,
         "give a number greater than 0, such as 1, or leave it out"},
    };
    return check_ranges(ranges, sizeof ranges / sizeof ranges[0], err);
}

static qn_status check_schedule(const qn__recipe *r, qn_error *err) {
    if (!schedule_takes(r, "lr_step"))
        return QN_OK;
    if (r->lr_step == 0)
        return refuse(
            err, "`train.lr_step`", "give the number of epochs between two reductions, such as 10",
            qn__fail(err, QN_USAGE, "the schedule \"%s\" has 0 epochs between two reductions",
                     qn__table_name(&qn__schedules, (int)r->schedule)));
    const range gamma = {"`train.lr_gamma`",
                         "the factor of a reduction",
                         r->lr_gamma,
                         0.0f,
                         1.0f,
                         1,
                         0,
                         "give a number greater than 0, at most 1, such as 0.5"};
    return check_range(&gamma, err);
}

/* The number of steps must be exact wherever it is counted or used in a name. */
#define MOST_STEPS 999999999999u

static qn_status check_counts(const qn__recipe *r, qn_error *err) {
    if (r->batch == 0 && r->optimizer != QN__OPT_LBFGS)
        return refuse(err, "`train.batch`", "give the number of items in a step, such as 64",
                      qn__fail(err, QN_USAGE, "the batch is 0"));
    if (r->batch > (1u << 24))
        return refuse(err, "`train.batch`", "the largest batch is 16777216 items",
                      qn__fail(err, QN_USAGE, "a batch of %u items is too large", r->batch));
    if (r->grain == 0)
        return refuse(err, "`train.grain`", "give the number of items in a grain, such as 32",
                      qn__fail(err, QN_USAGE, "the grain is 0"));
    if (r->epochs == 0)
        return refuse(err, "`train.epochs`", "give the number of passes over the data, such as 10",
                      qn__fail(err, QN_USAGE, "the number of epochs is 0"));
    if (r->gradient_scale > 60)
        return refuse(err, "`train.gradient_scale`",
                      "give a whole number from 0 to 60; 44 is the usual one",
                      qn__fail(err, QN_USAGE, "gradients cannot be summed in units of 2^-%u",
                               r->gradient_scale));
    const uint64_t steps = r->batch == 0 ? 1 : r->items / r->batch + (r->items % r->batch != 0);
    if (steps > MOST_STEPS / r->epochs)
        return refuse(err, "`train.epochs`",
                      "a run has at most 999999999999 steps: use fewer epochs, "
                      "or a larger batch",
                      qn__fail(err, QN_USAGE, "%u epochs of %llu steps are too many", r->epochs,
                               (unsigned long long)steps));
    return QN_OK;
}

static qn_status refuse_network(const char *remedy, qn_status status, qn_error *err) {
    return refuse(err, "`train.model`, `train.loss`", remedy, status);
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
    if (r->task == QN__TASK_CLASSIFY)
        return QN_OK;
    if (r->loss == QN__LOSS_CROSS_ENTROPY || r->loss == QN__LOSS_BINARY)
        return refuse(err, "`train.loss`", "use `train.loss` mse, mae or huber",
                      qn__fail(err, QN_USAGE,
                               "the loss \"%s\" is for classes, and the labels are real numbers",
                               qn__table_name(&qn__losses, (int)r->loss)));
    if (last->out != 1 || last->activation == QN__ACT_SOFTMAX)
        return refuse(err, "`train.model`", "end the model with \"dense 1\"",
                      qn__fail(err, QN_USAGE,
                               "the labels are real numbers, and the last layer is \"dense %u %s\"",
                               last->out, qn__table_name(&qn__activations, (int)last->activation)));
    return QN_OK;
}

static qn_status check_delta(const qn__recipe *r, qn_error *err) {
    const range delta = {"`train.delta`",
                         "delta of the loss \"huber\"",
                         r->delta,
                         0.0f,
                         FINITE_MAX,
                         1,
                         0,
                         "give a number greater than 0, such as 1"};
    return loss_takes(r, "delta") ? check_range(&delta, err) : QN_OK;
}

static qn_status check_smoothing(const qn__recipe *r, qn_error *err) {
    const range smoothing = {"`train.smoothing`",
                             "the label smoothing",
                             r->smoothing,
                             0.0f,
                             1.0f,
                             0,
                             1,
                             "give a number from 0 to below 1, such as 0.1"};
    const qn_status status = check_range(&smoothing, err);
    if (status != QN_OK || r->smoothing == 0.0f || loss_takes(r, "smoothing"))
        return status;
    return refuse(err, "`train.smoothing`", "use `train.loss` cross-entropy, or leave it out",
                  qn__fail(err, QN_USAGE, "the loss \"%s\" has no label smoothing",
                           qn__table_name(&qn__losses, (int)r->loss)));
}

/* Items without pixels, where something needs them. */
static qn_status refuse_features(const qn__recipe *r, qn_error *err) {
    if (r->network.layer[0].kind != QN__LAYER_DENSE)
        return refuse(
            err, "`train.model`",
            "give images, or their shape (`train.shape`), or begin the model with a dense "
            "layer",
            qn__fail(err, QN_USAGE, "the first layer is \"%s\", and the data has no pixels",
                     qn__layer_ops_of(r->network.layer[0].kind)->word));
    if (r->scale == QN__SCALE_CHANNEL)
        return refuse(
            err, "`train.scale`",
            "give images, or their shape (`train.shape`), or use `train.scale` standard",
            qn__fail(err, QN_USAGE,
                     "the scaling \"channel\" is for images, and the data has no pixels"));
    return refuse(err, "`train.augment`",
                  "give images, or their shape (`train.shape`), or leave it out",
                  qn__fail(err, QN_USAGE, "the data has no pixels that could be augmented"));
}

static qn_status check_shape(const qn__recipe *r, qn_error *err) {
    const uint64_t pixels = (uint64_t)r->shape.height * r->shape.width;
    if (!qn__recipe_needs_shape(r))
        return QN_OK;
    if (pixels == 0)
        return refuse_features(r, err);
    if (r->shape.channels == 0 || pixels > UINT32_MAX ||
        pixels * r->shape.channels != qn__recipe_inputs(r))
        return refuse(
            err, "`train.shape`", "give channels, height and width of an item, as 3x32x32",
            qn__fail(err, QN_USAGE, "%ux%ux%u pixels are not %u inputs", r->shape.channels,
                     r->shape.height, r->shape.width, qn__recipe_inputs(r)));
    return QN_OK;
}

static qn_status check_network(const qn__recipe *r, qn_error *err) {
    const qn__activation last = r->network.layer[r->network.layers - 1].activation;
    qn_status status = check_task(r, err);
    if (status == QN_OK && r->loss == QN__LOSS_BINARY)
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
    if (status != QN_OK)
        return status;
    qn__layer layer[QN__MAX_LAYERS];
    uint64_t parameters;
    return qn__network_program(&r->network, qn__recipe_input(r), layer, &parameters, err);
}

static qn_status check_data(const qn__recipe *r, qn_error *err) {
    if (r->items == 0 || r->features == 0 || r->items > (uint64_t)1 << 48)
        return refuse(err, "`data.path`", "give a data set with at least one item and one feature",
                      qn__fail(err, QN_USAGE,
                               "there is nothing to train on: %llu items with %u features",
                               (unsigned long long)r->items, r->features));
    const range valid = {"`train.valid_fraction`",
                         "the fraction of validation items",
                         r->valid,
                         0.0f,
                         1.0f,
                         0,
                         1,
                         "give a number between 0 and 1, such as 0.1, or a file"};
    return check_range(&valid, err);
}

static const char *const smaller =
    "use `train.arith` f32, which has no such limit, or make it smaller";

/* 15.1, 17.12: sums of products have to fit 63 bits. */
static qn_status check_sums(const qn__layer *layer, uint32_t l, uint64_t grain, qn_error *err) {
    const uint32_t in = layer->in, out = layer->out, most = in > out ? in : out;
    const uint64_t pixels = (uint64_t)layer->to.height * layer->to.width;
    if (!qn__layer_is_integer(layer))
        return QN_OK;
    if (most > QN__INTGEMM_LONGEST)
        return refuse(err, "`train.model`, `train.arith`", smaller,
                      qn__fail(err, QN_USAGE,
                               "layer %u has %u %s; integer arithmetic takes at most %u", l, most,
                               in > out ? "inputs" : "outputs", QN__INTGEMM_LONGEST));
    if (pixels * grain > QN__INTGEMM_LONGEST)
        return refuse(err, "`train.grain`", smaller,
                      qn__fail(err, QN_USAGE,
                               "a grain of %llu items has %llu pixels behind layer %u; integer "
                               "arithmetic takes at most %u",
                               (unsigned long long)grain, (unsigned long long)(pixels * grain), l,
                               QN__INTGEMM_LONGEST));
    return QN_OK;
}

static qn_status check_arith(const qn__recipe *r, qn_error *err) {
    qn__layer layer[QN__MAX_LAYERS];
    uint64_t grain = r->batch == 0 || r->grain < r->batch ? r->grain : r->batch, parameters;
    if (r->arith == QN__ARITH_F32)
        return QN_OK;
    grain = grain < r->items ? grain : r->items;
    if (grain > QN__INTGEMM_LONGEST)
        return refuse(err, "`train.grain`", smaller,
                      qn__fail(err, QN_USAGE,
                               "a grain of %llu items is too large for integer arithmetic, which "
                               "takes at most %u",
                               (unsigned long long)grain, QN__INTGEMM_LONGEST));
    qn_status status =
        qn__network_program(&r->network, qn__recipe_input(r), layer, &parameters, err);
    for (uint32_t l = 0; status == QN_OK && l < r->network.layers; ++l)
        status = check_sums(&layer[l], l, grain, err);
    return status;
}

static qn_status refuse_more_than_two(uint32_t classes, qn_error *err) {
    return refuse(err, "`train.loss`", "use `train.loss` cross-entropy",
                  qn__fail(err, QN_USAGE,
                           "the loss \"binary\" is for two classes, and the data has %u", classes));
}

/* Other mistakes of a table are found where it is made. */
static qn_status check_table(const qn__recipe *r, qn_error *err) {
    const uint64_t inputs = qn__inputs(r->table, r->table ? r->table->features : 1);
    if (!r->table)
        return QN_OK;
    if (inputs > QN__MAX_WIDTH)
        return refuse(err, "`data.path`",
                      "leave out columns of texts that differ in every item, such as names",
                      qn__fail(err, QN_USAGE, "the columns and their categories give %llu inputs",
                               (unsigned long long)inputs));
    if (r->table->features != r->features)
        return refuse(err, "`data.path`", "give the names of all columns, or of none",
                      qn__fail(err, QN_USAGE, "the table names %u columns, but there are %u",
                               r->table->features, r->features));
    if ((r->table->target == QN__TARGET_REAL) != (r->task == QN__TASK_REGRESS))
        return refuse(err, "`data.path`", "make the recipe again",
                      qn__fail(err, QN_USAGE, "the table's labels are not those of the task"));
    const uint32_t outputs = qn__recipe_classes(r);
    if (r->table->classes <= outputs)
        return QN_OK;
    if (r->loss == QN__LOSS_BINARY)
        return refuse_more_than_two(r->table->classes, err);
    return refuse(err, "`train.model`", "make the last layer as wide as there are classes",
                  qn__fail(err, QN_USAGE,
                           "the data has %u classes, but the last layer has %u outputs",
                           r->table->classes, outputs));
}

int qn__recipe_judges(const qn__recipe *recipe) {
    return recipe->keep == QN__KEEP_BEST || recipe->patience > 0;
}

qn_status qn__recipe_check_best(const qn__recipe *r, qn_error *err) {
    const int has_items = r->valid > 0, has_file = r->valid_data[0] != '\0';
    if (qn__recipe_judges(r) ? has_items != has_file : !has_file)
        return QN_OK;
    return refuse(err, "`train.keep`, `train.patience`",
                  "set a part of the training data aside, `train.valid_fraction` 0.1, or give a "
                  "file of validation items",
                  qn__fail(err, QN_USAGE,
                           has_file ? "the validation file decides on nothing"
                                    : "without validation items no epoch is the best"));
}

qn__class_names qn__recipe_class_names(const qn__recipe *recipe) {
    const int named = recipe->table && recipe->table->target == QN__TARGET_CLASS;
    return (qn__class_names){.table = recipe->table,
                             .classes =
                                 named ? recipe->table->classes : qn__recipe_classes(recipe)};
}

static qn_status check_class_weight(const qn__recipe *r, qn_error *err) {
    const qn__class_names names = qn__recipe_class_names(r);
    char *tidy;
    if (!r->class_weight)
        return QN_OK;
    if (r->task == QN__TASK_REGRESS)
        return refuse(err, "`train.class_weight`", "leave it out, or give the items weights",
                      qn__fail(err, QN_USAGE, "real labels have no classes to give weights to"));
    qn_status status = qn__class_weight_tidy(r->class_weight, &names, &tidy, err);
    if (status == QN_OK && (!tidy || strcmp(tidy, r->class_weight) != 0))
        status = qn__fail(err, QN_USAGE, "the class weights are not written the way they are");
    qn__free(tidy);
    return status;
}

static qn_status check_init_scale(const qn__recipe *r, qn_error *err) {
    if (r->init_scale == QN__INIT_SCALE_FIT || *r->init_from)
        return QN_OK;
    return refuse(err, "`train.init_scale`", "name the model with `train.init_from`",
                  qn__fail(err, QN_USAGE, "there is no model whose scaling could be kept"));
}

/* The sizes are those of the items. */
static qn_status check_resize(const qn__recipe *r, qn_error *err) {
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
    return refuse(err, "`data.resize`", "give `data.resize` as quern train takes it",
                  qn__fail(err, QN_USAGE, "images resized by \"%s\" do not have %u values",
                           r->resize, r->features));
}

/* The text must have the form that recipes have; check_shape was called. */
static qn_status check_augment(const qn__recipe *r, qn_error *err) {
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
        status =
            refuse(err, "`train.augment`", "make the recipe again with quern train",
                   qn__fail(err, QN_USAGE, "\"%s\" is not how a recipe writes it", r->augment));
    qn__text_release(&form);
    return status;
}

qn_status qn__recipe_check(const qn__recipe *recipe, qn_error *err) {
    qn_status status = check_data(recipe, err);
    if (status == QN_OK)
        status = check_table(recipe, err);
    if (status == QN_OK)
        status = check_counts(recipe, err);
    if (status == QN_OK)
        status = check_optimizer(recipe, err);
    if (status == QN_OK)
        status = qn__recipe_check_nesterov(recipe, err);
    if (status == QN_OK)
        status = check_delta(recipe, err);
    if (status == QN_OK)
        status = check_smoothing(recipe, err);
    if (status == QN_OK)
        status = check_schedule(recipe, err);
    if (status == QN_OK)
        status = qn__recipe_check_full_batch(recipe, err);
    if (status == QN_OK)
        status = check_network(recipe, err);
    if (status == QN_OK)
        status = check_augment(recipe, err);
    if (status == QN_OK)
        status = check_arith(recipe, err);
    if (status == QN_OK)
        status = check_class_weight(recipe, err);
    if (status == QN_OK)
        status = check_init_scale(recipe, err);
    if (status == QN_OK)
        status = check_resize(recipe, err);
    return status;
}

uint32_t qn__recipe_classes(const qn__recipe *recipe) {
    return recipe->loss == QN__LOSS_BINARY ? 2
                                           : recipe->network.layer[recipe->network.layers - 1].out;
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

int qn__recipe_needs_shape(const qn__recipe *r) {
    return r->network.layer[0].kind != QN__LAYER_DENSE || r->augment ||
           r->scale == QN__SCALE_CHANNEL;
}

qn__augment qn__recipe_augment(const qn__recipe *recipe) {
    qn__augment augment;
    if (qn__augment_parse(recipe->augment, &augment, NULL) != QN_OK)
        augment.words = 0;
    augment.shape = recipe->shape;
    return augment;
}

/* A dense layer takes features, whatever shape they have. */
qn__shape qn__recipe_input(const qn__recipe *recipe) {
    const int pixels = recipe->network.layer[0].kind != QN__LAYER_DENSE && recipe->shape.channels;
    return pixels ? recipe->shape : (qn__shape){qn__recipe_inputs(recipe), 1, 1};
}

uint32_t qn__recipe_inputs(const qn__recipe *recipe) {
    return (uint32_t)qn__inputs(recipe->table, recipe->features);
}

int qn__recipe_fills(const qn__recipe *recipe) {
    return recipe->missing == QN__MISSING_MEAN || recipe->missing == QN__MISSING_MEDIAN;
}

qn__encoding qn__recipe_encoding(const qn__recipe *recipe, const float *fill) {
    return (qn__encoding){.table = recipe->table,
                          .features = recipe->features,
                          .missing = recipe->missing,
                          .fill = fill,
                          .by_value = 1};
}

int qn__recipe_needs_bytes(const qn__recipe *recipe) {
    return recipe->scale == QN__SCALE_UNIT || recipe->scale == QN__SCALE_FRACTION;
}

/* ----------------------------------------------------------------------------------------- JSON */

static void add_name(qn__text *text, const char *key, const qn__table *table, int value) {
    qn__text_add(text, ",\"%s\":\"%s\"", key, qn__table_name(table, value));
}

static void add_float(qn__text *text, const char *key, float value) {
    char number[32];
    qn__float_text(value, number);
    qn__text_add(text, ",\"%s\":%s", key, number);
}

static void add_count(qn__text *text, const char *key, uint64_t value) {
    qn__text_add(text, ",\"%s\":%llu", key, (unsigned long long)value);
}

static void add_contract_2(const qn__recipe *r, qn__text *text) {
    add_name(text, "task", &qn__tasks, (int)r->task);
    add_float(text, "delta", r->delta);
    add_name(text, "missing", &qn__missing_rules, (int)r->missing);
    qn__text_add(text, ",\"table\":");
    qn__schema_add_json(qn__schema_is_trivial(r->table) ? NULL : r->table, text);
    add_name(text, "keep", &qn__keeps, (int)r->keep);
    add_count(text, "patience", r->patience);
    qn__text_add(text, ",\"init_from\":\"%s\"", r->init_from);
}

static void add_contract_3(const qn__recipe *r, qn__text *text) {
    qn__text_add(text, ",\"weight\":");
    if (r->weight)
        qn__text_add_json(text, r->weight);
    else
        qn__text_add(text, "null");
    qn__text_add(text, ",\"class_weight\":");
    qn__text_add_json(text, r->class_weight ? r->class_weight : "");
    add_name(text, "init_scale", &qn__init_scales, (int)r->init_scale);
}

static void add_contract_4(const qn__recipe *r, qn__text *text) {
    qn__text_add(text, ",\"valid_data\":\"%s\"", r->valid_data);
}

static void add_contract_5(const qn__recipe *r, qn__text *text) {
    const qn__shape *s = &r->shape;
    if (s->channels)
        qn__text_add(text, ",\"shape\":\"%ux%ux%u\"", s->channels, s->height, s->width);
    else
        qn__text_add(text, ",\"shape\":\"\"");
}

static void add_contract_6(const qn__recipe *r, qn__text *text) {
    for (const qn__recipe_key *key = qn__recipe_keys; key->name; ++key) {
        if (!qn__recipe_has(r, key))
            continue;
        if (key->form == QN__KEY_FLAG)
            add_count(text, key->name, 1);
        if (key->form == QN__KEY_FLOAT)
            add_float(text, key->name, *(const float *)member_of(r, key));
        if (key->form == QN__KEY_TEXT) {
            qn__text_add(text, ",\"%s\":", key->name);
            qn__text_add_json(text, *(char *const *)member_of(r, key));
        }
    }
}

/* The keys in the order of 11.1, which is the order of the struct's members. */
static void add_members(const qn__recipe *r, qn__text *text) {
    qn__text_add(text, "{\"contract\":%u", r->contract);
    add_name(text, "arith", &qn__arithmetics, (int)r->arith);
    qn__text_add(text, ",\"data\":\"%s\"", r->data);
    add_count(text, "items", r->items);
    add_count(text, "features", r->features);
    add_float(text, "valid", r->valid);
    add_name(text, "scale", &qn__scalings, (int)r->scale);
    qn__text_add(text, ",\"model\":\"");
    qn__network_text(&r->network, text);
    qn__text_add(text, "\"");
    add_name(text, "init", &qn__initialisations, (int)r->init);
    add_name(text, "loss", &qn__losses, (int)r->loss);
    add_name(text, "optimizer", &qn__optimizers, (int)r->optimizer);
    add_float(text, "momentum", r->momentum);
    add_float(text, "beta1", r->beta1);
    add_float(text, "beta2", r->beta2);
    add_float(text, "epsilon", r->epsilon);
    add_float(text, "weight_decay", r->weight_decay);
    add_float(text, "lr", r->learning_rate);
    add_name(text, "schedule", &qn__schedules, (int)r->schedule);
    add_count(text, "lr_step", r->lr_step);
    add_float(text, "lr_gamma", r->lr_gamma);
    add_count(text, "warmup", r->warmup);
    add_count(text, "batch", r->batch);
    add_count(text, "grain", r->grain);
    add_count(text, "epochs", r->epochs);
    add_count(text, "seed", r->seed);
    add_count(text, "unit", r->gradient_scale);
    if (r->contract >= 2)
        add_contract_2(r, text);
    if (r->contract >= 3)
        add_contract_3(r, text);
    if (r->contract >= 4)
        add_contract_4(r, text);
    if (r->contract >= 5)
        add_contract_5(r, text);
    if (r->contract >= 6)
        add_contract_6(r, text);
    qn__text_add(text, "}");
}

qn_status qn__recipe_json(const qn__recipe *recipe, char **out, qn_error *err) {
    qn__text text = {0};
    *out = NULL;
    add_members(recipe, &text);
    qn_status status = QN_OK;
    if (text.failed)
        status = qn__fail_memory(err, text.size + 1, 1);
    else if (text.size > QN__RECIPE_LONGEST)
        status = refuse(err, "`data.path`", "give the columns and the classes shorter names",
                        qn__fail(err, QN_USAGE,
                                 "the names in the data take %zu bytes; at most %zu "
                                 "can be kept in a model",
                                 text.size, QN__RECIPE_LONGEST));
    else
        status = (*out = qn__copy_text(text.data, err)) != NULL ? QN_OK : QN_MEMORY;
    qn__text_release(&text);
    return status;
}
