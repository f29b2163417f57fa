/* Whether the numbers of a recipe are in their ranges, and its options go together. */
#include "model/recipe/recipe_check.h"

#include "data/table/dates.h"
#include "data/table/rules.h"
#include "model/recipe/stages.h"
#include "model/recipe/tables.h"
#include "num/intgemm_reference.h"
#include <math.h>
#include <stdio.h>

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
    return qn__recipe_refuse(err, r->option, r->remedy,
                             qn__fail(err, QN_USAGE, "%s is %s", r->what, number));
}

static qn_status check_ranges(const range *ranges, size_t count, qn_error *err) {
    qn_status status = QN_OK;
    for (size_t i = 0; i < count && status == QN_OK; ++i)
        status = check_range(&ranges[i], err);
    return status;
}

#define FINITE_MAX 0x1.fffffep+127f

static qn_status check_valid(const qn__recipe *r, qn_error *err) {
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

static qn_status check_optimizer(const qn__recipe *r, qn_error *err) {
    static const char *const share = "give a number from 0 to below 1, such as 0.9";
    const range ranges[] = {
        {"`train.learning_rate`", "the learning rate", r->learning_rate, 0.0f, FINITE_MAX,
         r->optimizer != QN__OPT_LBFGS, 0, "give a number greater than 0, such as 0.1"},
        {"`train.momentum`", "the momentum", r->momentum, 0.0f, 1.0f, 0, 1, share},
        {"`train.beta1`", "beta1", r->beta1, 0.0f, 1.0f, 0, 1, share},
        {"`train.beta2`", "beta2", r->beta2, 0.0f, 1.0f, 0, 1, share},
        /* Where it is not used it is 0. */
        {"`train.epsilon`", "epsilon", r->epsilon, 0.0f, FINITE_MAX,
         qn__recipe_optimizer_takes(r, "epsilon"), 0, "give a number greater than 0, such as 1e-8"},
        {"`train.weight_decay`", "the weight decay", r->weight_decay, 0.0f, FINITE_MAX, 0, 0,
         "give 0 or a small number, such as 1e-4"},
        {"`train.l1`", "the L1 penalty", r->l1, 0.0f, FINITE_MAX, 0, 0,
         "give 0 or a small number, such as 1e-4"},
        {"`train.tolerance`", "the tolerance", r->tolerance, 0.0f, FINITE_MAX,
         qn__recipe_optimizer_takes(r, "tolerance"), 0,
         "give a number greater than 0, such as 1e-4"},
        {"`train.clip`", "the largest norm of the gradient", r->clip, 0.0f, FINITE_MAX, 0, 0,
         "give a number greater than 0, such as 1, or leave it out"},
    };
    return check_ranges(ranges, sizeof ranges / sizeof ranges[0], err);
}

static qn_status check_schedule(const qn__recipe *r, qn_error *err) {
    if (!qn__recipe_schedule_takes(r, "lr_step"))
        return QN_OK;
    if (r->lr_step == 0)
        return qn__recipe_refuse(
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
        return qn__recipe_refuse(err, "`train.batch`",
                                 "give the number of items in a step, such as 64",
                                 qn__fail(err, QN_USAGE, "the batch is 0"));
    if (r->batch > (1u << 24))
        return qn__recipe_refuse(
            err, "`train.batch`", "the largest batch is 16777216 items",
            qn__fail(err, QN_USAGE, "a batch of %u items is too large", r->batch));
    if (r->grain == 0)
        return qn__recipe_refuse(err, "`train.grain`",
                                 "give the number of items in a grain, such as 32",
                                 qn__fail(err, QN_USAGE, "the grain is 0"));
    if (r->epochs == 0)
        return qn__recipe_refuse(err, "`train.epochs`",
                                 "give the number of passes over the data, such as 10",
                                 qn__fail(err, QN_USAGE, "the number of epochs is 0"));
    if (r->gradient_scale > 60)
        return qn__recipe_refuse(
            err, "`train.gradient_scale`", "give a whole number from 0 to 60; 44 is the usual one",
            qn__fail(err, QN_USAGE, "gradients cannot be summed in units of 2^-%u",
                     r->gradient_scale));
    const uint64_t steps = r->batch == 0 ? 1 : r->items / r->batch + (r->items % r->batch != 0);
    if (steps > MOST_STEPS / r->epochs)
        return qn__recipe_refuse(err, "`train.epochs`",
                                 "a run has at most 999999999999 steps: use fewer epochs, "
                                 "or a larger batch",
                                 qn__fail(err, QN_USAGE, "%u epochs of %llu steps are too many",
                                          r->epochs, (unsigned long long)steps));
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
    return qn__recipe_loss_takes(r, "delta") ? check_range(&delta, err) : QN_OK;
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
    if (status != QN_OK || r->smoothing == 0.0f || qn__recipe_loss_takes(r, "smoothing"))
        return status;
    return qn__recipe_refuse(err, "`train.smoothing`",
                             "use `train.loss` cross-entropy, or leave it out",
                             qn__fail(err, QN_USAGE, "the loss \"%s\" has no label smoothing",
                                      qn__table_name(&qn__losses, (int)r->loss)));
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
        return qn__recipe_refuse(
            err, "`train.model`, `train.arith`", smaller,
            qn__fail(err, QN_USAGE, "layer %u has %u %s; integer arithmetic takes at most %u", l,
                     most, in > out ? "inputs" : "outputs", QN__INTGEMM_LONGEST));
    if (pixels * grain > QN__INTGEMM_LONGEST)
        return qn__recipe_refuse(
            err, "`train.grain`", smaller,
            qn__fail(err, QN_USAGE,
                     "a grain of %llu items has %llu pixels after layer %u; integer "
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
        return qn__recipe_refuse(
            err, "`train.grain`", smaller,
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

static qn_status check_init_scale(const qn__recipe *r, qn_error *err) {
    if (r->init_scale == QN__INIT_SCALE_FIT || *r->init_from)
        return QN_OK;
    return qn__recipe_refuse(
        err, "`train.init_scale`", "name the model with `train.init_from`",
        qn__fail(err, QN_USAGE, "there is no model whose scaling could be kept"));
}

/* The rule of wide columns is named where there are some, and nowhere else. */
static qn_status check_rules(const qn__recipe *r, qn_error *err) {
    uint32_t rules = 0;
    const qn_status status = r->rules ? qn__rules_parse(r->rules, &rules, err) : QN_OK;
    if (status != QN_OK || !(rules & QN__RULE_EXACT) == !qn__wide_features(r->table))
        return status;
    qn__fail(err, QN_USAGE, "the rules of reading \"%s\" do not fit the columns of the table",
             r->rules ? r->rules : "");
    return qn__remedy(err, QN_USAGE, "the recipe was changed: make it again with quern train");
}

qn_status qn__recipe_check(const qn__recipe *recipe, qn_error *err) {
    qn_status status = qn__recipe_check_items(recipe, err);
    if (status == QN_OK)
        status = check_valid(recipe, err);
    if (status == QN_OK)
        status = qn__recipe_check_table(recipe, err);
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
        status = qn__recipe_check_stages(recipe, err);
    if (status == QN_OK)
        status = qn__recipe_check_full_batch(recipe, err);
    if (status == QN_OK)
        status = qn__recipe_check_network(recipe, err);
    if (status == QN_OK)
        status = qn__recipe_check_augment(recipe, err);
    if (status == QN_OK)
        status = check_arith(recipe, err);
    if (status == QN_OK)
        status = qn__recipe_check_class_weight(recipe, err);
    if (status == QN_OK)
        status = check_init_scale(recipe, err);
    if (status == QN_OK)
        status = qn__recipe_check_resize(recipe, err);
    if (status == QN_OK)
        status = check_rules(recipe, err);
    if (status == QN_OK && recipe->date_format)
        status = qn__date_format_check(recipe->date_format, err);
    return status;
}

qn_status qn__recipe_check_best(const qn__recipe *r, qn_error *err) {
    const int has_items = r->valid > 0, has_file = r->valid_data[0] != '\0';
    if (qn__recipe_judges(r) ? has_items != has_file : !has_file)
        return QN_OK;
    return qn__recipe_refuse(
        err, "`train.keep`, `train.patience`",
        "set a part of the training data aside, `train.valid_fraction` 0.1, or give a "
        "file of validation items",
        qn__fail(err, QN_USAGE,
                 has_file ? "the validation file decides on nothing"
                          : "without validation items no epoch is the best"));
}
