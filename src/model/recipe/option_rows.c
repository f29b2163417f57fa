#include "model/recipe/option_rows.h"

#include "model/recipe/tables.h"
#include <quern/defaults.h>
#include <string.h>

#define FINITE_MAX 0x1.fffffep+127f
#define FROM_ZERO                                                                                  \
    { 0.0f, FINITE_MAX, 0, 0 }
#define ABOVE_ZERO                                                                                 \
    { 0.0f, FINITE_MAX, 1, 0 }
#define BELOW_ONE                                                                                  \
    { 0.0f, 1.0f, 0, 1 }
#define UP_TO_ONE                                                                                  \
    { 0.0f, 1.0f, 1, 0 }

#define MIXTURE "give a number above 0, up to 1, or leave it out"

#define KEY(text, number, shape, member)                                                           \
    .key = (text), .contract = (number), .form = QN__FORM_##shape,                                 \
    .place = offsetof(qn__recipe, member)

/* An option: the member of qn_train_options, its type, and what the command calls it. */
#define OPTION(member, word, kind)                                                                 \
    .open.size = sizeof(qn_option), .open.field = "train." #member,                                \
    .open.offset = offsetof(qn_train_options, member), .open.type = QN_OPTION_##kind,              \
    .open.name = (word)
#define HELP(heading, number, shown, text)                                                         \
    .open.group = QN_OPTIONS_##heading, .open.line = (number), .open.value = (shown),              \
    .open.help = (text)
#define NAMES(names, choices) .table = &(names), .open.from = QN_CHOICE_##choices
#define ONLY(choices, names) .open.only = QN_CHOICE_##choices, .takers = (names)
#define COUNTS(least, most) .open.low = (least), .open.high = (most)
#define CHECK(named, advice) .what = (named), .remedy = (advice)
#define ALSO(names) .open.also = (names)

static const char SHARE[] = "give a number from 0 to below 1, such as 0.9";
static const char PENALTY[] = "give 0 or a small number, such as 1e-4";

const qn__option qn__options[] = {
    {KEY("contract", 1, COUNT, contract)},
    {KEY("arith", 1, NAME, arith), OPTION(arith, "arith", NAME), .first = 1,
     NAMES(qn__arithmetics, ARITH),
     HELP(TRAINING, 17, "NAME",
          "arithmetic of matrix products; the integer forms use the matrix units of the CPU and "
          "GPU"),
     ALSO("precision dtype amp fp16 bf16 half mixedprecision quantize quantization")},
    {KEY("data", 1, DIGEST, data)},
    {KEY("items", 1, LONG, items)},
    {KEY("features", 1, COUNT, features)},
    {KEY("valid", 1, FLOAT, valid), OPTION(valid_fraction, NULL, FLOAT),
     CHECK("the fraction of validation items",
           "give a number between 0 and 1, such as 0.1, or a file"),
     .range = BELOW_ONE},
    {KEY("scale", 1, NAME, scale), OPTION(scale, "scale", NAME), .ruled = 1,
     NAMES(qn__scalings, SCALE),
     HELP(DATA, 1, "NAME",
          "how inputs are scaled; or means and deviations of channels, of values from 0 to 1: "
          "0.5,0.5,0.5/0.25,0.25,0.25"),
     ALSO("normalize normalise normalization standardize standardise scaler scaling rescale")},
    {KEY("model", 1, NETWORK, network), OPTION(model, "model", TEXT),
     .open.from = QN_CHOICE_ACTIVATION,
     HELP(NETWORK, 1, "TEXT|NAME|@PATH",
          "layers from first to last, such as \"dense 500 tanh dropout 0.2; dense 10 softmax\", or "
          "for images \"conv 32 3x3 relu; maxpool 2; globalpool; dense 10 softmax\"; @PATH is a "
          "file of them, NAME one that \"quern\tmodel\tlist\" lists; the list below has the "
          "activations")},
    {KEY("init", 1, NAME, init), OPTION(init, "init", NAME), .first = 1,
     NAMES(qn__initialisations, INIT),
     HELP(ADVANCED, 12, "NAME", "distribution of the initial weights"),
     ALSO("initializer initialiser kernelinitializer weightinit winit initialization")},
    {KEY("loss", 1, NAME, loss), OPTION(loss, "loss", NAME), .ruled = 1, NAMES(qn__losses, LOSS),
     HELP(NETWORK, 2, "NAME", "loss to minimise"),
     ALSO("criterion objective lossfunction lossfn lossname")},
    {KEY("optimizer", 1, NAME, optimizer), OPTION(optimizer, "optimizer", NAME), .ruled = 1,
     NAMES(qn__optimizers, OPTIMIZER),
     HELP(TRAINING, 4, "NAME",
          "rule that updates the weights; `train.momentum`\tX alone means momentum"),
     ALSO("optim opt solver optimiser updater algorithm")},
    {KEY("momentum", 1, FLOAT, momentum), OPTION(momentum, "momentum", FLOAT),
     .usual = QN_BY_OPTIMIZER, .ruled = 1, ONLY(OPTIMIZER, "momentum"), .dropped = 1,
     .open.steps = 1, HELP(ADVANCED, 1, "X", "how much of the previous step is kept"),
     CHECK("the momentum", SHARE), .range = BELOW_ONE},
    {KEY("beta1", 1, FLOAT, beta1), OPTION(beta1, "beta1", FLOAT), .usual = 0.9f,
     ONLY(OPTIMIZER, "adam adamw"), .dropped = 1,
     HELP(ADVANCED, 6, "X", "decay of the mean of gradients"), CHECK("beta1", SHARE),
     .range = BELOW_ONE, ALSO("beta adambeta1 betas")},
    {KEY("beta2", 1, FLOAT, beta2), OPTION(beta2, "beta2", FLOAT), .usual = 0.999f,
     ONLY(OPTIMIZER, "adam adamw"), .dropped = 1,
     HELP(ADVANCED, 7, "X", "decay of the mean of squared gradients"), CHECK("beta2", SHARE),
     .range = BELOW_ONE, ALSO("adambeta2")},
    {KEY("epsilon", 1, FLOAT, epsilon), OPTION(epsilon, "epsilon", FLOAT), .usual = 1e-8f,
     ONLY(OPTIMIZER, "adam adamw"), .dropped = 1,
     HELP(ADVANCED, 8, "X", "added to the denominator"),
     CHECK("epsilon", "give a number greater than 0, such as 1e-8"), .range = ABOVE_ZERO,
     ALSO("eps adamepsilon")},
    {KEY("weight_decay", 1, FLOAT, weight_decay), OPTION(weight_decay, "weight-decay", FLOAT),
     .usual = QN_BY_OPTIMIZER, .ruled = 1,
     HELP(TRAINING, 5, "X", "weight decay (L2); it acts on weights, not on biases"),
     CHECK("the weight decay", PENALTY), .range = FROM_ZERO,
     ALSO("l2 wd decay alpha lambda reglambda regularization regularisation l2regularization "
          "kernelregularizer penalty")},
    {KEY("lr", 1, FLOAT, learning_rate), OPTION(learning_rate, "lr", FLOAT),
     .usual = QN_BY_OPTIMIZER, .ruled = 1, .open.steps = 1, .dropped = 1,
     HELP(TRAINING, 3, "X", "learning rate"),
     CHECK("the learning rate", "give a number greater than 0, such as 0.1"), .range = ABOVE_ZERO,
     ALSO("learningrate eta lr0 learningrateinit initiallr baselr stepsize")},
    {KEY("schedule", 1, NAME, schedule), OPTION(schedule, "schedule", NAME), .ruled = 1,
     NAMES(qn__schedules, SCHEDULE), .open.steps = 1,
     HELP(TRAINING, 9, "NAME", "change of the learning rate over the run"), CHECK("schedule", NULL),
     ALSO("scheduler lrscheduler lrschedule lrschedulertype")},
    {KEY("lr_step", 1, COUNT, lr_step), OPTION(lr_step, "lr-step", COUNT), .usual = 10,
     COUNTS(1, UINT32_MAX), ONLY(SCHEDULE, "step"), .dropped = 1,
     HELP(ADVANCED, 10, "N", "epochs between two reductions"),
     CHECK("the number of epochs between two reductions",
           "give the number of epochs between two reductions, such as 10")},
    {KEY("lr_gamma", 1, FLOAT, lr_gamma), OPTION(lr_gamma, "lr-gamma", FLOAT), .usual = 0.1f,
     ONLY(SCHEDULE, "step exponential"), .dropped = 1,
     HELP(ADVANCED, 11, "X",
          "factor of a reduction; with the schedule exponential that of every step, such as 0.999"),
     CHECK("the factor of a reduction", QN__GAMMA_REMEDY), .range = ABOVE_ZERO},
    {KEY("warmup", 1, COUNT, warmup), OPTION(warmup, "warmup", COUNT), COUNTS(0, UINT32_MAX),
     .open.steps = 1,
     HELP(ADVANCED, 9, "N", "steps during which the learning rate rises to its full value"),
     CHECK("warm-up", NULL)},
    {KEY("batch", 1, COUNT, batch), OPTION(batch, "batch", COUNT), .usual = QN_BY_DATA, .ruled = 1,
     COUNTS(1, 1 << 24), .open.steps = 1, .dropped = 1,
     HELP(TRAINING, 2, "N", "items of one step (batch size)"),
     CHECK("the batch", "give the number of items in a step, such as 64; the largest batch is "
                        "16777216 items"),
     ALSO("batchsize bs minibatch minibatchsize trainbatchsize perdevicetrainbatchsize b")},
    {KEY("grain", 1, COUNT, grain), OPTION(grain, "grain", COUNT), .usual = QN_BY_DATA, .ruled = 1,
     COUNTS(1, UINT32_MAX),
     HELP(ADVANCED, 13, "N",
          "items of one grain, the unit of work that devices share; changes the model"),
     CHECK("the grain", "give the number of items in a grain, such as 32")},
    {KEY("epochs", 1, COUNT, epochs), OPTION(epochs, "epochs", COUNT), .usual = QN_BY_DATA,
     .ruled = 1, COUNTS(1, UINT32_MAX),
     HELP(TRAINING, 1, "N",
          "passes over the training data; with `train.optimizer` lbfgs the most iterations"),
     CHECK("the number of epochs", "give the number of passes over the data, such as 10"),
     ALSO("numepochs nepochs epoch maxepochs maxiter niter iterations numtrainepochs rounds "
          "numboostround nestimators e")},
    {KEY("seed", 1, LONG, seed), OPTION(seed, "seed", LONG), .usual = 1, COUNTS(0, UINT64_MAX),
     HELP(TRAINING, 16, "N", "seed of all random numbers"),
     ALSO("randomstate randomseed manualseed rngseed")},
    {KEY("unit", 1, COUNT, gradient_scale), OPTION(gradient_scale, "unit", COUNT), .usual = 44,
     COUNTS(0, 60),
     HELP(ADVANCED, 14, "N", "gradients are added as multiples of 2^-N; changes the model"),
     CHECK("the exponent of the unit of gradients",
           "give a whole number from 0 to 60; 44 is the usual one")},

    {KEY("task", 2, NAME, task), .table = &qn__tasks},
    {KEY("delta", 2, FLOAT, delta), OPTION(delta, "delta", FLOAT), .usual = 1, ONLY(LOSS, "huber"),
     .dropped = 1,
     HELP(ADVANCED, 3, "X",
          "an error greater than X counts by its absolute value, not its square; for real labels, "
          "in their standard deviations"),
     CHECK("delta of the loss \"huber\"", "give a number greater than 0, such as 1"),
     .range = ABOVE_ZERO},
    {KEY("missing", 2, NAME, missing), OPTION(missing, "missing", NAME), .first = 1,
     NAMES(qn__missing_rules, MISSING),
     HELP(DATA, 2, "RULE",
          "what replaces a missing value; computed from the training items, stored in the model"),
     ALSO("impute imputer simpleimputer fillna dropna missingvalues nan na handlemissing")},
    {KEY("table", 2, TABLE, table)},
    {KEY("keep", 2, NAME, keep), OPTION(keep, "keep", NAME), .ruled = 1, NAMES(qn__keeps, KEEP),
     HELP(TRAINING, 11, "WHICH",
          "which parameters the model gets; best needs `train.valid_fraction`"),
     .open.fallback = "best with `train.patience`, else last",
     ALSO("restorebestweights savebestonly loadbestmodelatend usebestmodel")},
    {KEY("patience", 2, COUNT, patience), OPTION(patience, "early-stopping", COUNT),
     COUNTS(1, UINT32_MAX),
     HELP(TRAINING, 10, "EPOCHS",
          "stop when the validation loss was not below its lowest value for so many epochs; needs "
          "`train.valid_fraction`"),
     .open.fallback = ""},
    {KEY("init_from", 2, DIGEST, init_from)},

    {KEY("weight", 3, MAYBE, weight)},
    {KEY("class_weight", 3, TEXT, class_weight), OPTION(class_weight, "class-weight", TEXT),
     HELP(TRAINING, 13, "TEXT",
          "how much the items of each class count: balanced (all classes have the same total), or "
          "\"cat=2,dog=0.5\"; others 1"),
     .open.fallback = "all 1"},
    {KEY("init_scale", 3, NAME, init_scale), OPTION(init_scale, "init-scale", NAME), .ruled = 1,
     NAMES(qn__init_scales, INIT_SCALE),
     HELP(TRAINING, 12, "WHICH",
          "with `train.init_from`: scaling of inputs and real labels, and numbers for missing "
          "values"),
     .open.fallback = "fit"},

    {KEY("valid_data", 4, DIGEST, valid_data)},

    {KEY("shape", 5, SHAPE, shape)},

    {KEY("smoothing", 6, FLOAT, smoothing), OPTION(smoothing, "smoothing", FLOAT),
     ONLY(LOSS, "cross-entropy"), .open.steps = 1,
     HELP(ADVANCED, 4, "X",
          "label smoothing: the part of a target that all classes share; losses are shown without "
          "it"),
     CHECK("the label smoothing", "give a number from 0 to below 1, such as 0.1"),
     .range = BELOW_ONE, ALSO("labelsmoothing labelsmooth smooth labelsmoothingfactor")},
    {KEY("clip", 6, FLOAT, clip), OPTION(clip, "clip", FLOAT), .open.steps = 1,
     HELP(ADVANCED, 5, "NORM",
          "the largest norm of a step's gradient over all parameters; a longer one is shortened"),
     .open.fallback = "any norm",
     CHECK("the largest norm of the gradient",
           "give a number greater than 0, such as 1, or leave it out"),
     .range = FROM_ZERO,
     ALSO("gradclip clipnorm clipgradnorm maxgradnorm maxnorm gradientclipping gradientclipval "
          "globalclipnorm")},
    {KEY("nesterov", 6, FLAG, nesterov), OPTION(nesterov, "nesterov", FLAG),
     ONLY(OPTIMIZER, "momentum"), .open.steps = 1,
     HELP(ADVANCED, 2, NULL, "Nesterov's form, which looks ahead along the momentum"),
     CHECK("Nesterov's form", NULL)},
    {KEY("augment", 6, TEXT, augment), OPTION(augment, "augment", TEXT), .open.steps = 1,
     HELP(
         TRAINING, 14, "TEXT",
         "change training images randomly in each epoch: \"pad 4; crop; flip; cutout 8\", or other "
         "words of docs/images.md"),
     .open.fallback = "nothing", CHECK("augmentation", NULL)},
    {KEY("resize", 6, TEXT, resize)},
    {KEY("l1", 6, FLOAT, l1), OPTION(l1, "l1", FLOAT), ONLY(OPTIMIZER, "lbfgs"), .dropped = 1,
     HELP(TRAINING, 6, "X", "L1 penalty; it acts on weights, not on biases"),
     CHECK("the L1 penalty", PENALTY), .range = FROM_ZERO},
    {KEY("tolerance", 6, FLOAT, tolerance), OPTION(tolerance, "tolerance", FLOAT), .usual = 1e-4f,
     ONLY(OPTIMIZER, "lbfgs"), .dropped = 1,
     HELP(TRAINING, 7, "X", "stop when no component of the gradient is greater"),
     CHECK("the tolerance", "give a number greater than 0, such as 1e-4"), .range = ABOVE_ZERO},
    {KEY("no_intercept", 6, FLAG, no_intercept), OPTION(no_intercept, "no-intercept", FLAG),
     ONLY(OPTIMIZER, "lbfgs"), HELP(TRAINING, 8, NULL, "leave the biases of the last layer at 0")},
    {KEY("stages", 6, TEXT, stages), OPTION(stages, "stages", TEXT), .open.steps = 1,
     HELP(TRAINING, 15, "TEXT",
          "train in stages, each of which continues the one before: \"epochs 5 lr 0.1; epochs 5 lr "
          "0.01\"; a stage may also set schedule, lr-step, lr-gamma, lr-min and warmup"),
     .open.fallback = "one stage", CHECK("stages", NULL)},

    {KEY("rules", 7, TEXT, rules)},
    {KEY("date_format", 7, TEXT, date_format)},

    {KEY("scale_numbers", 8, TEXT, scale_numbers)},
    {KEY("freeze", 8, TEXT, freeze), OPTION(freeze, "freeze", TEXT),
     HELP(TRAINING, 19, "LAYERS",
          "with `train.init_from`: the layers that do not train: \"0..14\", \"0..3,7\", counted "
          "from "
          "0, or all-but-last"),
     .open.fallback = "none", CHECK("the layers that do not train", NULL),
     ALSO("frozen freezelayers freezebackbone freezeencoder freezeat")},
    {KEY("new_last", 8, FLAG, new_last), OPTION(new_last, "new-last", FLAG),
     .latest = QN__NEW_LAST_BY_START,
     HELP(TRAINING, 18, NULL,
          "with `train.init_from`: the last layer begins with new weights, for other classes; "
          "without `train.model` it gets as many outputs as there are"),
     CHECK("a new last layer", NULL), ALSO("newhead replacehead resetclassifier resethead")},
    {KEY("lr_depth", 8, FLOAT, lr_depth), OPTION(lr_depth, "lr-depth", FLOAT), .open.steps = 1,
     HELP(ADVANCED, 15, "X",
          "multiply the learning rate by X from each layer with weights, or block, to the one "
          "before it; the last one has the whole rate"),
     .open.fallback = "all layers have the same rate",
     CHECK("the factor of the learning rate",
           "give a number greater than 0 and below 1, such as 0.8, or leave it out"),
     .range = BELOW_ONE,
     ALSO("layerdecay layerwisedecay layerwiselrdecay lrdecaybylayer llrd discriminativelr")},
    {KEY("mixup", 8, FLOAT, mixup), OPTION(mixup, "mixup", FLOAT), ONLY(LOSS, "cross-entropy"),
     .open.steps = 1,
     HELP(TRAINING, 20, "X",
          "train on mixtures of two items: their shares are drawn from a beta distribution with "
          "this parameter, such as 0.2"),
     .open.fallback = "none", CHECK("the mixture of items", MIXTURE), .range = {0.0f, 1.0f, 0, 0},
     ALSO("mixupalpha mix")},
    {KEY("cutmix", 8, FLOAT, cutmix), OPTION(cutmix, "cutmix", FLOAT), ONLY(LOSS, "cross-entropy"),
     .open.steps = 1,
     HELP(TRAINING, 21, "X",
          "train on images with a box of another one: the area is drawn from a beta distribution "
          "with this parameter, such as 1"),
     .open.fallback = "none", CHECK("the mixture of images", MIXTURE), .range = {0.0f, 1.0f, 0, 0},
     ALSO("cutmixalpha")},
    {KEY("ema", 8, FLOAT, ema), OPTION(ema, "ema", FLOAT), .open.steps = 1,
     HELP(ADVANCED, 16, "X",
          "validate and save averages of the weights over the steps; X, such as 0.999, is what an "
          "average keeps of itself in a step"),
     .open.fallback = "the last weights",
     CHECK("the share that an average keeps", "give a number from 0 to below 1, such as 0.999"),
     .range = BELOW_ONE,
     ALSO("emadecay modelema weightaveraging averagedecay movingaverage polyak")},

    {KEY("tokens", 9, TEXT, tokens)},
    {KEY("context", 9, COUNT, context)},
    {KEY("decay_on", 9, NAME, decay_on), OPTION(decay_on, "decay-on", NAME), .ruled = 1,
     NAMES(qn__decays, DECAY), .open.steps = 1,
     HELP(ADVANCED, 18, "NAME", "the parameters that weight decay acts on"),
     .open.fallback = "matrices with an embedding, else weights",
     CHECK("the parameters that decay", NULL), ALSO("decaykinds decayfilter nodecay")},
    {KEY("lr_min", 9, FLOAT, lr_min), OPTION(lr_min, "lr-min", FLOAT), ONLY(SCHEDULE, "cosine"),
     .open.steps = 1, HELP(ADVANCED, 17, "X", "the learning rate to which it falls"),
     CHECK("the least learning rate", "give a number from 0 to the learning rate, such as 1e-5"),
     .range = FROM_ZERO, ALSO("minlr etamin minimumlr finallr endlr alphamin")},
    {KEY("lora", 9, TEXT, lora), OPTION(lora, "lora", TEXT),
     HELP(TRAINING, 22, "RANK",
          "with `train.init_from`: train low-rank adapters beside its layers, which stay as they "
          "are: 8, \"8 alpha 16\", or \"8 on all\", on attention, on 3,9..12; the model file has "
          "the adapters alone"),
     .open.fallback = "none", CHECK("the adapters", NULL),
     ALSO("loraalpha lorarank lorar loraon adapter adapters peft qlora lowrank")},
    {KEY("attention_arith", 9, NAME, attention_arith),
     OPTION(attention_arith, "attention-arith", NAME), .ruled = 1,
     NAMES(qn__attention_ariths, ATTENTION_ARITH),
     HELP(
         ADVANCED, 19, "NAME",
         "how attention computes with an integer `train.arith`: its scores and its sums of values"),
     .open.fallback = "float32", CHECK("the arithmetic of attention", NULL),
     ALSO("attentionprecision attentiondtype integerattention")},
    {KEY("group_lengths", 9, COUNT, group_lengths), OPTION(group_lengths, "group-lengths", COUNT),
     COUNTS(0, 1 << 16), .open.steps = 1,
     HELP(
         ADVANCED, 20, "N",
         "with tokens: sort the texts of N batches at a time, such as 16, by their length: a batch "
         "takes the time of its longest text"),
     .open.fallback = "the order is drawn alone",
     CHECK("the number of batches", "give a number of batches from 0 to 65536, such as 16"),
     ALSO("groupbylength bucket buckets bucketing lengthgrouping sortbylength sortishsampler "
          "bucketbylength")},
    {.key = NULL},
};

const qn_option *qn_train_option(uint32_t index) {
    for (const qn__option *o = qn__options; o->key; ++o)
        if (o->open.name && index-- == 0)
            return &o->open;
    return NULL;
}

static const qn__table *chooser(const qn__option *o) {
    return o->open.only == QN_CHOICE_LOSS        ? &qn__losses
           : o->open.only == QN_CHOICE_OPTIMIZER ? &qn__optimizers
                                                 : &qn__schedules;
}

static int is_member(const qn__option *o, const char *member) {
    return o->open.field && strcmp(strchr(o->open.field, '.') + 1, member) == 0;
}

int qn__table_takes(const qn__table *table, int value, const char *member) {
    for (const qn__option *o = qn__options; o->key; ++o)
        if (o->takers && chooser(o) == table && is_member(o, member))
            return qn__word_listed(o->takers, qn__table_name(table, value));
    return 0;
}

int qn__option_set(const qn__option *o, const qn__recipe *r) {
    switch (o->form) {
    case QN__FORM_COUNT:
    case QN__FORM_FLAG:
        return *(const uint32_t *)qn__option_in(o, r) != 0;
    case QN__FORM_LONG:
        return *(const uint64_t *)qn__option_in(o, r) != 0;
    case QN__FORM_FLOAT:
        return *(const float *)qn__option_in(o, r) != 0.0f;
    case QN__FORM_NAME:
        return *(const int *)qn__option_in(o, r) != o->table->row[0].value;
    case QN__FORM_TEXT:
    case QN__FORM_MAYBE:
        return *(char *const *)qn__option_in(o, r) != NULL;
    case QN__FORM_DIGEST:
        return *(const char *)qn__option_in(o, r) != '\0';
    case QN__FORM_TABLE:
        return !qn__schema_is_trivial(r->table);
    case QN__FORM_NETWORK:
    case QN__FORM_SHAPE:
        break;
    }
    return 1;
}

int qn__option_taken(const qn__option *o, const qn__recipe *r) {
    const int value = o->open.only == QN_CHOICE_LOSS        ? (int)r->loss
                      : o->open.only == QN_CHOICE_OPTIMIZER ? (int)r->optimizer
                                                            : (int)r->schedule;
    if (o->open.steps && r->optimizer == QN__OPT_LBFGS)
        return 0;
    return !o->takers || qn__word_listed(o->takers, qn__table_name(chooser(o), value));
}
