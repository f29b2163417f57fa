/* Whether the options of a recipe go together. */
#include "model/recipe/recipe_check.h"

#include "data/table/dates.h"
#include "data/table/rules.h"
#include "model/recipe/depth.h"
#include "model/recipe/adapters.h"
#include "model/recipe/freeze.h"
#include "model/recipe/option_rows.h"
#include "model/recipe/tables.h"
#include "model/recipe/several_targets.h"
#include "model/recipe/stages.h"
#include "num/intgemm_reference.h"
#include "num/window_blocks.h"

/* The number of steps must be exact wherever it is counted or used in a name. */
#define MOST_STEPS 999999999999u

static qn_status check_count_of_steps(const qn__recipe *r, qn_error *err) {
    const uint64_t steps = r->batch == 0 ? 1 : r->items / r->batch + (r->items % r->batch != 0);
    if (steps > MOST_STEPS / r->epochs)
        return qn__recipe_refuse(err, "`train.epochs`",
                                 "a run has at most 999999999999 steps: use fewer epochs, "
                                 "or a larger batch",
                                 qn__fail(err, QN_USAGE, "%u epochs of %llu steps are too many",
                                          r->epochs, (unsigned long long)steps));
    return QN_OK;
}

static const char *const smaller =
    "use `train.arith` f32, which has no such limit, or make it smaller";

/* 15.1, 17.12, 25.91: sums of products have to fit 63 bits. */
static qn_status check_sums(const qn__layer *layer, uint32_t l, uint64_t grain, qn_error *err) {
    const int positions = qn__layer_has_window_blocks(layer);
    const uint64_t taps = (uint64_t)layer->window.kernel[0] * layer->window.kernel[1];
    const uint64_t in = positions ? layer->depth : layer->in;
    const uint64_t out = positions ? taps * layer->to.channels : layer->out;
    const uint64_t most = in > out ? in : out;
    const uint64_t pixels = (uint64_t)layer->to.height * layer->to.width;
    if (!qn__layer_is_integer(layer))
        return QN_OK;
    if (most > QN__INTGEMM_LONGEST)
        return qn__recipe_refuse(
            err, "`train.model`, `train.arith`", smaller,
            qn__fail(err, QN_USAGE, "layer %u has %llu %s%s; integer arithmetic takes at most %u",
                     l, (unsigned long long)most, in > out ? "inputs" : "outputs",
                     positions ? " of a position" : "", QN__INTGEMM_LONGEST));
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

static qn_status check_floats(const qn__layer *layer, uint32_t l, qn_error *err) {
    const qn__layer_ops *ops = qn__layer_ops_of(layer->kind);
    if (!ops->floats)
        return QN_OK;
    return qn__recipe_refuse(
        err, "`train.arith`", "leave it out: such a network computes with float32",
        qn__fail(err, QN_USAGE, "layer %u is \"%s\", which has no integer arithmetic", l,
                 ops->word));
}

/* 25.25: integers in attention need it, an arithmetic with integers, and sums that fit 63 bits. */
static qn_status check_attention(const qn__recipe *r, const qn__layer *layer, qn_error *err) {
    uint32_t found = 0, widest = 0;
    if (r->attention_arith == QN__ATTENTION_FLOAT32)
        return QN_OK;
    if (r->arith == QN__ARITH_F32)
        return qn__recipe_refuse(
            err, "`train.attention_arith`", "give `train.arith` i14 too, or leave it out",
            qn__fail(err, QN_USAGE, "attention has the integers of `train.arith`, which is f32"));
    for (uint32_t l = 0; l < r->network.layers; ++l) {
        const int own = layer[l].kind == QN__LAYER_ATTENTION;
        const uint32_t width = own ? layer[l].to.channels / layer[l].heads : 0;
        found += (uint32_t)own;
        widest = width > widest ? width : widest;
    }
    if (!found)
        return qn__recipe_refuse(err, "`train.attention_arith`", "leave it out",
                                 qn__fail(err, QN_USAGE, "the network has no attention"));
    if (widest > QN__INTGEMM_LONGEST)
        return qn__recipe_refuse(
            err, "`train.attention_arith`", "leave it out, or give attention more heads",
            qn__fail(err, QN_USAGE,
                     "a head of attention has %u channels; integer arithmetic takes at most %u",
                     widest, QN__INTGEMM_LONGEST));
    return QN_OK;
}

static qn_status check_arith(const qn__recipe *r, qn_error *err) {
    qn__layer layer[QN__MAX_LAYERS];
    uint64_t grain = r->batch == 0 || r->grain < r->batch ? r->grain : r->batch, parameters;
    if (r->arith == QN__ARITH_F32)
        return check_attention(r, NULL, err);
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
        status = check_floats(&layer[l], l, err);
    for (uint32_t l = 0; status == QN_OK && l < r->network.layers; ++l)
        status = check_sums(&layer[l], l, grain, err);
    return status == QN_OK ? check_attention(r, layer, err) : status;
}

static qn_status check_init_scale(const qn__recipe *r, qn_error *err) {
    if (r->init_scale == QN__INIT_SCALE_FIT || *r->init_from)
        return QN_OK;
    return qn__recipe_refuse(
        err, "`train.init_scale`", "name the model with `train.init_from`",
        qn__fail(err, QN_USAGE, "there is no model whose scaling could be kept"));
}

static qn_status check_new_last(const qn__recipe *r, qn_error *err) {
    if (!r->new_last || *r->init_from)
        return QN_OK;
    return qn__recipe_refuse(
        err, "`train.new_last`", "name the model with `train.init_from`, or leave it out",
        qn__fail(err, QN_USAGE, "no model is named whose other layers could be taken"));
}

static qn_status check_groups(const qn__recipe *r, qn_error *err) {
    const int embeds = r->network.layer[0].kind == QN__LAYER_EMBEDDING;
    if (r->group_lengths == 0 || (r->tokens && embeds))
        return QN_OK;
    if (r->tokens)
        return qn__recipe_refuse(
            err, "`train.group_lengths`", "leave it out, or take a network such as text-cnn",
            qn__fail(err, QN_USAGE, "without an embedding no number is the end of a text"));
    return qn__recipe_refuse(
        err, "`train.group_lengths`", "leave it out, or read the data as tokens (`data.tokens`)",
        qn__fail(err, QN_USAGE, "only texts that are tokens have lengths to sort by"));
}

static qn_status check_mix(const qn__recipe *r, qn_error *err) {
    const char *which = r->mixup > 0.0f ? "`train.mixup`" : "`train.cutmix`";
    if (r->mixup == 0.0f && r->cutmix == 0.0f)
        return QN_OK;
    if (r->mixup > 0.0f && r->cutmix > 0.0f)
        return qn__recipe_refuse(err, which, "leave one of the two out",
                                 qn__fail(err, QN_USAGE, "items are mixed in one way only"));
    if (r->weight || r->class_weight)
        return qn__recipe_refuse(
            err, which, "leave it out, or the weights",
            qn__fail(err, QN_USAGE, "a mixture of two items has no weight of an item or a class"));
    return QN_OK;
}

/* Numbers of tokens are names: what makes other values of them has no meaning. */
static qn_status check_tokens(const qn__recipe *r, qn_error *err) {
    if (!qn__tokens_are_known(r->tokens))
        return qn__recipe_refuse(
            err, "`data.tokens`", "give ids, for arrays of numbers of tokens",
            qn__fail(err, QN_USAGE, "\"%.40s\" does not say how tokens are made", r->tokens));
    if (r->scale != QN__SCALE_NONE)
        return qn__recipe_refuse(
            err, "`train.scale`", "use `train.scale` none, or leave it out",
            qn__fail(err, QN_USAGE, "the values are numbers of tokens, which are not scaled"));
    if (r->augment || r->mixup > 0.0f || r->cutmix > 0.0f)
        return qn__recipe_refuse(
            err,
            r->augment        ? "`train.augment`"
            : r->mixup > 0.0f ? "`train.mixup`"
                              : "`train.cutmix`",
            "leave it out",
            qn__fail(err, QN_USAGE,
                     "the values are numbers of tokens, which cannot be mixed or moved"));
    return QN_OK;
}

/* Inputs of texts are many, most of them 0, and stand for words. */
static qn_status check_texts(const qn__recipe *r, qn_error *err) {
    if (qn__schema_texts(r->table) > 0 && r->network.layer[0].kind != QN__LAYER_DENSE)
        return qn__recipe_refuse(
            err, "`train.model`",
            "begin with a dense layer, or leave out the texts: `data.text` none",
            qn__fail(err, QN_USAGE, "the data has a column of texts, which a dense layer takes"));
    if (qn__schema_texts(r->table) == 0 || !(r->augment || r->mixup > 0.0f || r->cutmix > 0.0f))
        return QN_OK;
    return qn__recipe_refuse(
        err,
        r->augment        ? "`train.augment`"
        : r->mixup > 0.0f ? "`train.mixup`"
                          : "`train.cutmix`",
        "leave it out, or read the texts as categories or not at all: `data.text` none",
        qn__fail(err, QN_USAGE, "the data has a column of texts, which cannot be mixed or moved"));
}

/* The rules of wide columns and of texts are named where there are some, and nowhere else. */
static qn_status check_rules(const qn__recipe *r, qn_error *err) {
    uint32_t rules = 0;
    const qn_status status = r->rules ? qn__rules_parse(r->rules, &rules, err) : QN_OK;
    if (status != QN_OK || (!(rules & QN__RULE_EXACT) == !qn__wide_features(r->table) &&
                            !(rules & QN__RULE_TEXT) == !qn__schema_texts(r->table)))
        return status;
    qn__fail(err, QN_USAGE, "the rules of reading \"%s\" do not fit the columns of the table",
             r->rules ? r->rules : "");
    return qn__remedy(err, QN_USAGE, "the recipe was changed: make it again with quern train");
}

static qn_status check_gamma(const qn__recipe *r, qn_error *err) {
    if (!qn__table_takes(&qn__schedules, (int)r->schedule, "lr_gamma") ||
        qn__gamma_fits((int)r->schedule, r->lr_gamma))
        return QN_OK;
    return qn__recipe_refuse(
        err, "`train.lr_gamma`", QN__GAMMA_REMEDY,
        qn__fail(err, QN_USAGE, "the factor of a reduction is %g", (double)r->lr_gamma));
}

static qn_status check_least_rate(const qn__recipe *r, qn_error *err) {
    if (r->lr_min <= r->learning_rate || r->stages)
        return QN_OK;
    return qn__recipe_refuse(
        err, "`train.lr_min`", "give at most the learning rate, such as a tenth of it",
        qn__fail(err, QN_USAGE, "the least learning rate, %g, is above the learning rate, %g",
                 (double)r->lr_min, (double)r->learning_rate));
}

qn_status qn__recipe_check(const qn__recipe *recipe, qn_error *err) {
    qn_status status = qn__recipe_check_items(recipe, err);
    if (status == QN_OK)
        status = qn__recipe_check_table(recipe, err);
    if (status == QN_OK)
        status = qn__options_check(recipe, err);
    if (status == QN_OK)
        status = check_gamma(recipe, err);
    if (status == QN_OK)
        status = check_least_rate(recipe, err);
    if (status == QN_OK)
        status = check_count_of_steps(recipe, err);
    if (status == QN_OK)
        status = qn__recipe_check_nesterov(recipe, err);
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
        status = check_mix(recipe, err);
    if (status == QN_OK)
        status = check_texts(recipe, err);
    if (status == QN_OK)
        status = check_groups(recipe, err);
    if (status == QN_OK)
        status = qn__recipe_check_several(recipe, err);
    if (status == QN_OK)
        status = check_new_last(recipe, err);
    if (status == QN_OK)
        status = qn__recipe_check_lora(recipe, err);
    if (status == QN_OK)
        status = qn__recipe_check_freeze(recipe, err);
    if (status == QN_OK)
        status = qn__recipe_check_depth(recipe, err);
    if (status == QN_OK)
        status = qn__recipe_check_resize(recipe, err);
    if (status == QN_OK)
        status = qn__recipe_check_scale_numbers(recipe, err);
    if (status == QN_OK)
        status = check_rules(recipe, err);
    if (status == QN_OK && recipe->date_format)
        status = qn__date_format_check(recipe->date_format, err);
    if (status == QN_OK && recipe->tokens)
        status = check_tokens(recipe, err);
    if (status == QN_OK && recipe->context &&
        (!recipe->tokens || recipe->context != recipe->features - 1))
        status = qn__fail(err, QN_USAGE, "items of a corpus have one token more than its context");
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
