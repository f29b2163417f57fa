#include "model/recipe/tables.h"

#include "model/recipe/recipe.h"

#define ROWS(array) sizeof(array) / sizeof((array)[0]), array

static const qn__choice losses[] = {
    {"cross-entropy", QN__LOSS_CROSS_ENTROPY, "minus the log of the correct class's probability",
     "ce xent nll nllloss logloss crossentropyloss softmaxcrossentropy categoricalcrossentropy "
     "sparsecategoricalcrossentropy negativeloglikelihood multisoftprob"},
    {"mse", QN__LOSS_MSE, "squared error of the outputs",
     "mseloss meansquarederror squarederror l2 l2loss rmse regsquarederror"},
    {"mae", QN__LOSS_MAE, "absolute error of the outputs",
     "maeloss meanabsoluteerror absoluteerror l1 l1loss regabsoluteerror"},
    {"huber", QN__LOSS_HUBER, "squared error up to delta, absolute error beyond it",
     "huberloss smoothl1 smoothl1loss pseudohuber regpseudohubererror"},
    {"binary", QN__LOSS_BINARY,
     "cross-entropy of two classes with one sigmoid output, or of several labels",
     "bce bceloss bcewithlogits bcewithlogitsloss binarycrossentropy binarylogistic logistic"},
};
const qn__table qn__losses = {"loss", "`train.loss`", ROWS(losses)};

static const qn__choice optimizers[] = {
    {"sgd", QN__OPT_SGD, "stochastic gradient descent", "gd gradientdescent | asgd rprop"},
    {"momentum", QN__OPT_MOMENTUM, "gradient descent with momentum",
     "sgdm sgdmomentum sgdwithmomentum nesterov nag heavyball | lars"},
    {"adam", QN__OPT_ADAM, "Adam, with a running mean and variance",
     "| nadam adamax radam rmsprop adagrad adadelta amsgrad adabelief yogi ftrl"},
    {"adamw", QN__OPT_ADAMW, "Adam with decoupled weight decay",
     "adamweightdecay "
     "| nadamw lamb lion adafactor muon sophia shampoo"},
    {"lbfgs", QN__OPT_LBFGS, "L-BFGS over all items at once; its epochs are iterations",
     "bfgs lbfgsb owlqn | newton newtoncg newtoncholesky liblinear saga sag"},
};
const qn__table qn__optimizers = {"optimizer", "`train.optimizer`", ROWS(optimizers)};

static const qn__choice initialisations[] = {
    {"auto", QN__INIT_AUTO,
     "he for relu and its kind, gelu, gelu-tanh, silu and hardswish, glorot for others", "default"},
    {"glorot", QN__INIT_GLOROT, "uniform up to sqrt(6 / (inputs + outputs))",
     "xavier xavieruniform glorotuniform"},
    {"he", QN__INIT_HE, "uniform up to sqrt(6 / inputs)", "kaiming kaiminguniform heuniform"},
    {"lecun", QN__INIT_LECUN, "uniform up to sqrt(3 / inputs)", "lecununiform"},
};
const qn__table qn__initialisations = {"initialisation", "`train.init`", ROWS(initialisations)};

static const qn__choice scalings[] = {
    {"none", QN__SCALE_NONE, "values unchanged", "identity off"},
    {"unit", QN__SCALE_UNIT, "bytes divided by 255", "totensor rescale 255"},
    {"fraction", QN__SCALE_FRACTION, "bytes divided by 256, which i14 and i21 hold exactly", "256"},
    {"standard", QN__SCALE_STANDARD,
     "each feature shifted to mean 0 and scaled to standard deviation 1",
     "zscore standardize standardise standardscaler normalize normalise"},
    {"channel", QN__SCALE_CHANNEL,
     "each channel of images shifted to mean 0 and scaled to standard deviation 1",
     "channels perchannel channelwise rgb"},
    /* In a recipe this is `channel` with numbers (24.51). */
    {"imagenet", QN__SCALE_CHANNEL,
     "each channel by the mean and the deviation of ImageNet, as networks of torchvision",
     "imagenet1k torchvision"},
    {"minmax", QN__SCALE_MINMAX, "each feature shifted and scaled to reach from 0 to 1",
     "minmaxscaler range zeroone 01"},
    {"robust", QN__SCALE_ROBUST,
     "each feature shifted by its median and divided by the distance of its quartiles",
     "robustscaler iqr interquartile quantile quartiles median"},
};
const qn__table qn__scalings = {"scaling", "`train.scale`", ROWS(scalings)};

static const qn__choice arithmetics[] = {
    {"f32", QN__ARITH_F32, "float32, added in a fixed order", "float32 fp32 float single 32"},
    {"i7", QN__ARITH_I7, "exact integer products of 7-bit operands", "i8 int8 int7 fp8"},
    {"i14", QN__ARITH_I14, "exact integer products of 14-bit operands",
     "i16 int16 int14 fp16 float16 half bf16 bfloat16 16 mixed"},
    {"i21", QN__ARITH_I21, "exact integer products of 21-bit operands", "int21 int24 i24 tf32"},
};
const qn__table qn__arithmetics = {"arithmetic", "`train.arith`", ROWS(arithmetics)};

static const qn__choice schedules[] = {
    {"constant", QN__SCHEDULE_CONSTANT, "the same learning rate throughout", "none fixed off"},
    {"step", QN__SCHEDULE_STEP, "multiplied by a factor every few epochs",
     "steplr multistep multisteplr exponentiallr"},
    {"cosine", QN__SCHEDULE_COSINE, "falls to 0 along half a cosine wave",
     "cosineannealing cosineannealinglr cosinedecay cosinelr"},
    {"exponential", QN__SCHEDULE_EXPONENTIAL, "multiplied by a factor after every step",
     "exponentialdecay geometric"},
};
const qn__table qn__schedules = {"schedule", "`train.schedule`", ROWS(schedules)};

static const qn__choice decays[] = {
    {"weights", QN__DECAY_WEIGHTS, "weights of dense layers and convolutions", "products"},
    {"matrices", QN__DECAY_MATRICES,
     "those, and the tables of embeddings and positions: neither biases nor normalisations",
     "tables nanogpt transformers nonorms nobiases"},
    {"all", QN__DECAY_ALL, "every parameter, as AdamW(model.parameters()) of PyTorch",
     "pytorch torch parameters everything"},
};
const qn__table qn__decays = {"kind of parameters that decay", "`train.decay_on`", ROWS(decays)};

static const qn__choice attention_ariths[] = {
    {"float32", QN__ATTENTION_FLOAT32, "float32, added in a fixed order",
     "f32 fp32 float single none"},
    {"integers", QN__ATTENTION_INTEGERS, "exact integer products, of the width of the arithmetic",
     "int integer exact same"},
};
const qn__table qn__attention_ariths = {"arithmetic of attention", "`train.attention_arith`",
                                        ROWS(attention_ariths)};

int qn__gamma_fits(int schedule, float gamma) {
    return schedule == QN__SCHEDULE_EXPONENTIAL ? gamma >= 0.5f && gamma <= 10.0f
                                                : gamma > 0.0f && gamma <= 1.0f;
}

static const qn__choice tasks[] = {
    {"classify", QN__TASK_CLASSIFY, "a label is one of some classes", "classification classifier"},
    {"regress", QN__TASK_REGRESS, "a label is a real number", "regression regressor"},
    {"segment", QN__TASK_SEGMENT, "each pixel, or each token, has a class", "segmentation"},
    {"multilabel", QN__TASK_MULTILABEL, "an item has several labels, each 0 or 1", NULL},
    {"next", QN__TASK_NEXT, "after each token of an item comes the next one", "lm causal_lm"},
};
const qn__table qn__tasks = {"task", NULL, ROWS(tasks)};

static const qn__choice missing_rules[] = {
    {"error", QN__MISSING_ERROR, "a missing value is an error", "none raise fail"},
    {"mean", QN__MISSING_MEAN, "the mean of the column", "average avg"},
    {"median", QN__MISSING_MEDIAN, "the median of the column", "middle"},
    {"zero", QN__MISSING_ZERO, "the value 0", "0 constant"},
    {"drop", QN__MISSING_DROP, "items with a missing value are left out", "dropna omit remove"},
};
const qn__table qn__missing_rules = {"rule for missing values", "`train.missing`",
                                     ROWS(missing_rules)};

static const qn__choice keeps[] = {
    {"last", QN__KEEP_LAST, "the parameters after the last epoch", "latest final"},
    {"best", QN__KEEP_BEST, "the parameters of the epoch with the lowest validation loss",
     "minimum"},
};
const qn__table qn__keeps = {"choice of parameters", "`train.keep`", ROWS(keeps)};

static const qn__choice init_scales[] = {
    {"fit", QN__INIT_SCALE_FIT, "fitted to the training items", "new refit"},
    {"keep", QN__INIT_SCALE_KEEP, "those of the model that the training starts from",
     "model same old"},
};
const qn__table qn__init_scales = {"choice of the scaling", "`train.init_scale`",
                                   ROWS(init_scales)};
