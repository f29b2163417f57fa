#include "model/exchange/onnx_layers.h"

#include "layer/embedding.h"
#include "model/exchange/onnx_attention.h"
#include "model/exchange/onnx_lengths.h"
#include "model/exchange/onnx_pools.h"
#include "model/exchange/onnx_position.h"
#include "model/exchange/onnx_recurrent.h"
#include "model/exchange/recurrent_pairs.h"
#include <stdio.h>

/* A tensor of the model's file as a constant of the same name: "layer3.weight". */
static void add_tensor(qn__onnx_graph *g, const char *what, const uint64_t *shape, char *name) {
    snprintf(name, QN__ONNX_NAME, "%.31s.%.15s", g->part, what);
    const float *values = qn_model_tensor(g->model, name, NULL, NULL);
    if (values)
        qn__onnx_floats(g, name, shape, values);
}

/* Weights and biases, whose names are written to `names` with a blank between. */
static void add_product(qn__onnx_graph *g, const qn__layer *l, const uint64_t *shape,
                        char names[2 * QN__ONNX_NAME]) {
    char weight[QN__ONNX_NAME], bias[QN__ONNX_NAME] = "";
    add_tensor(g, "weight", shape, weight);
    if (!l->no_biases)
        add_tensor(g, "bias", (const uint64_t[]){l->to.channels, 0}, bias);
    snprintf(names, 2 * QN__ONNX_NAME, l->no_biases ? "%s" : "%s %s", weight, bias);
}

/* Rows of weights have the order of a flattened item (docs/exactness.md 16.9). */
static void add_dense(qn__onnx_graph *g, const qn__layer *l) {
    const qn__onnx_attribute transposed[] = {{.name = "transB", .value = {1}}, {.name = NULL}};
    char names[2 * QN__ONNX_NAME];
    qn__onnx_flatten(g);
    add_product(g, l, (const uint64_t[]){l->out, l->depth, 0}, names);
    qn__onnx_step(g, "Gemm", names, "sum", transposed);
}

/* The embedding's table as weights of a convolution. */
static void add_tied(qn__onnx_graph *g, const qn__layer *l, char names[2 * QN__ONNX_NAME]) {
    const int64_t sides[4] = {l->to.channels, l->from.channels, 1, 1};
    const qn__onnx_value x = g->at;
    char name[QN__ONNX_NAME];
    snprintf(name, sizeof name, "%.31s.sides", g->part);
    qn__onnx_integers(g, name, sides, 4);
    snprintf(g->at.name, sizeof g->at.name, "layer0.weight");
    qn__onnx_step(g, "Reshape", name, "tied", QN__ONNX_NONE);
    snprintf(names, 2 * QN__ONNX_NAME, "%s", g->at.name);
    g->at = x;
}

static void add_conv(qn__onnx_graph *g, const qn__layer *l) {
    const qn__window *w = &l->window;
    const uint32_t reads = qn__layer_reads(l);
    char names[2 * QN__ONNX_NAME];
    const qn__onnx_attribute attributes[] = {
        qn__onnx_pair("dilations", w->dilation),
        {.name = "group", .value = {l->conv_groups ? l->conv_groups : 1}},
        qn__onnx_pair("kernel_shape", w->kernel),
        {.name = "pads",
         .form = QN__ONNX_INTS,
         .count = 4,
         .value = {w->pad[0], w->pad[1], w->pad[0], w->pad[1]}},
        qn__onnx_pair("strides", w->stride),
        {.name = NULL}};
    qn__onnx_unflatten(g, l->from);
    if (l->tied)
        add_tied(g, l, names);
    else
        add_product(g, l, (const uint64_t[]){l->to.channels, reads, w->kernel[0], w->kernel[1], 0},
                    names);
    qn__onnx_step(g, "Conv", names, "sum", attributes);
}

/* The weights have PyTorch's order, which is ONNX's. */
static void add_convtranspose(qn__onnx_graph *g, const qn__layer *l) {
    const qn__window *w = &l->window;
    const uint32_t from[2] = {l->from.height, l->from.width}, to[2] = {l->to.height, l->to.width};
    uint32_t pad[2], more[2];
    for (int d = 0; d < 2; ++d) {
        const uint32_t reach = w->dilation[d] * (w->kernel[d] - 1);
        pad[d] = reach - w->pad[d];
        more[d] = to[d] + 2 * pad[d] - ((from[d] - 1) * l->spread[d] + reach + 1);
    }
    const uint64_t shape[] = {l->from.channels, l->to.channels, w->kernel[0], w->kernel[1], 0};
    const qn__onnx_attribute attributes[] = {qn__onnx_pair("dilations", w->dilation),
                                             qn__onnx_pair("kernel_shape", w->kernel),
                                             qn__onnx_pair("output_padding", more),
                                             {.name = "pads",
                                              .form = QN__ONNX_INTS,
                                              .count = 4,
                                              .value = {pad[0], pad[1], pad[0], pad[1]}},
                                             qn__onnx_pair("strides", l->spread),
                                             {.name = NULL}};
    char names[2 * QN__ONNX_NAME];
    qn__onnx_unflatten(g, l->from);
    add_product(g, l, shape, names);
    qn__onnx_step(g, "ConvTranspose", names, "sum", attributes);
}

static void add_batchnorm(qn__onnx_graph *g, const qn__layer *l) {
    static const char *const what[4] = {"weight", "bias", "running_mean", "running_var"};
    const qn__onnx_attribute attributes[] = {
        {.name = "epsilon", .form = QN__ONNX_REAL, .real = l->norm_epsilon}, {.name = NULL}};
    const uint64_t shape[] = {l->vector, 0};
    char names[4 * QN__ONNX_NAME] = "", name[QN__ONNX_NAME];
    size_t used = 0;
    for (int i = 0; i < 4; ++i) {
        add_tensor(g, what[i], shape, name);
        used += (size_t)snprintf(names + used, sizeof names - used, "%s ", name);
    }
    qn__onnx_step(g, "BatchNormalization", names, "norm", attributes);
}

/* Each group of an item as one channel, which InstanceNormalization gives mean 0 and variance 1;
 * then weight and bias of each channel. (GroupNormalization is a younger operator, and its first
 * form had weights of groups.) */
static void add_groupnorm(qn__onnx_graph *g, const qn__layer *l) {
    const qn__onnx_attribute attributes[] = {
        {.name = "epsilon", .form = QN__ONNX_REAL, .real = l->norm_epsilon}, {.name = NULL}};
    const int64_t groups[3] = {0, l->norm_groups, -1};
    const int64_t back[4] = {0, l->to.channels, l->to.height, l->to.width};
    const uint64_t sides[] = {l->to.channels, g->at.flat ? 0 : 1, 1, 0};
    char ones[QN__ONNX_NAME], zeros[QN__ONNX_NAME], name[2 * QN__ONNX_NAME];
    snprintf(name, QN__ONNX_NAME, "%s.groups", g->part);
    qn__onnx_integers(g, name, groups, 3);
    qn__onnx_step(g, "Reshape", name, "grouped", QN__ONNX_NONE);
    snprintf(ones, sizeof ones, "%s.ones", g->part);
    snprintf(zeros, sizeof zeros, "%s.zeros", g->part);
    qn__onnx_fill(g, ones, l->norm_groups, 1.0f);
    qn__onnx_fill(g, zeros, l->norm_groups, 0.0f);
    snprintf(name, sizeof name, "%s %s", ones, zeros);
    qn__onnx_step(g, "InstanceNormalization", name, "standard", attributes);
    snprintf(name, QN__ONNX_NAME, "%s.channels", g->part);
    qn__onnx_integers(g, name, back, g->at.flat ? 2 : 4);
    qn__onnx_step(g, "Reshape", name, "back", QN__ONNX_NONE);
    add_tensor(g, "weight", sides, name);
    qn__onnx_step(g, "Mul", name, "weighted", QN__ONNX_NONE);
    add_tensor(g, "bias", sides, name);
    qn__onnx_step(g, "Add", name, "norm", QN__ONNX_NONE);
}

/* The channels of each pixel; LayerNormalization is younger, and of the last axes alone. */
static void add_channel_norm(qn__onnx_graph *g, const qn__layer *l) {
    const qn__onnx_attribute channels[] = {
        {.name = "axes", .form = QN__ONNX_INTS, .value = {1}, .count = 1},
        {.name = "keepdims", .value = {1}},
        {.name = NULL}};
    const uint64_t sides[] = {l->to.channels, 1, 1, 0};
    const qn__onnx_value x = g->at;
    char name[QN__ONNX_NAME];
    qn__onnx_step(g, "ReduceMean", "", "mean", channels);
    const qn__onnx_value mean = g->at;
    g->at = x;
    qn__onnx_step(g, "Sub", mean.name, "centred", QN__ONNX_NONE);
    const qn__onnx_value centred = g->at;
    qn__onnx_step(g, "Mul", centred.name, "squares", QN__ONNX_NONE);
    qn__onnx_step(g, "ReduceMean", "", "variance", channels);
    snprintf(name, sizeof name, "%.31s.eps", g->part);
    qn__onnx_scalar(g, name, l->norm_epsilon);
    qn__onnx_step(g, "Add", name, "above", QN__ONNX_NONE);
    qn__onnx_step(g, "Sqrt", "", "root", QN__ONNX_NONE);
    const qn__onnx_value root = g->at;
    g->at = centred;
    qn__onnx_step(g, "Div", root.name, "standard", QN__ONNX_NONE);
    add_tensor(g, "weight", sides, name);
    qn__onnx_step(g, "Mul", name, "weighted", QN__ONNX_NONE);
    add_tensor(g, "bias", sides, name);
    qn__onnx_step(g, "Add", name, "norm", QN__ONNX_NONE);
}

/* The channels of each pixel; RMSNormalization is younger. */
static void add_rmsnorm(qn__onnx_graph *g, const qn__layer *l) {
    const qn__onnx_attribute channels[] = {
        {.name = "axes", .form = QN__ONNX_INTS, .value = {1}, .count = 1},
        {.name = "keepdims", .value = {1}},
        {.name = NULL}};
    const uint64_t sides[] = {l->to.channels, g->at.flat ? 0 : 1, 1, 0};
    const qn__onnx_value x = g->at;
    char name[QN__ONNX_NAME];
    qn__onnx_step(g, "Mul", x.name, "squares", QN__ONNX_NONE);
    qn__onnx_step(g, "ReduceMean", "", "mean", channels);
    snprintf(name, sizeof name, "%.31s.eps", g->part);
    qn__onnx_scalar(g, name, l->norm_epsilon);
    qn__onnx_step(g, "Add", name, "above", QN__ONNX_NONE);
    qn__onnx_step(g, "Sqrt", "", "root", QN__ONNX_NONE);
    const qn__onnx_value root = g->at;
    g->at = x;
    qn__onnx_step(g, "Div", root.name, "standard", QN__ONNX_NONE);
    add_tensor(g, "weight", sides, name);
    qn__onnx_step(g, "Mul", name, "norm", QN__ONNX_NONE);
}

static void add_factors(qn__onnx_graph *g, const qn__layer *l) {
    const uint64_t sides[] = {l->to.channels, g->at.flat ? 0 : 1, 1, 0};
    char name[QN__ONNX_NAME];
    add_tensor(g, "weight", sides, name);
    qn__onnx_step(g, "Mul", name, "scaled", QN__ONNX_NONE);
}

/* The rows of the weights, with the channels before the positions. */
static void add_embedding(qn__onnx_graph *g, const qn__layer *l) {
    const qn__onnx_attribute order[] = {
        {.name = "perm", .form = QN__ONNX_INTS, .value = {0, 2, 1}, .count = 3}, {.name = NULL}};
    const int64_t sides[4] = {0, l->to.channels, 1, l->to.width};
    char name[QN__ONNX_NAME];
    qn__onnx_lengths(g, l);
    const qn__onnx_value tokens = g->at;
    add_tensor(g, "weight", (const uint64_t[]){qn__layer_tokens(l), l->to.channels, 0}, name);
    snprintf(g->at.name, sizeof g->at.name, "%s", name);
    qn__onnx_step(g, "Gather", tokens.name, "rows", QN__ONNX_NONE);
    qn__onnx_step(g, "Transpose", "", "positions", order);
    snprintf(name, sizeof name, "%.31s.sides", g->part);
    qn__onnx_integers(g, name, sides, 4);
    qn__onnx_step(g, "Reshape", name, "sequence", QN__ONNX_NONE);
    g->at.flat = 0;
    qn__onnx_tokens_only(g);
}

/* Makes both values of the end of a block flat, or both not: one of them may be, with one pixel. */
static void make_alike(qn__onnx_graph *g, const qn__layer *l, qn__onnx_value *other) {
    const qn__onnx_value first = g->at;
    if (first.flat == other->flat)
        return;
    const int pixels = l->to.height * l->to.width > 1;
    const int turn = pixels ? other->flat : first.flat; /* whether the other one is changed */
    g->at = turn ? *other : first;
    if (pixels)
        qn__onnx_unflatten(g, turn ? l->second : l->from);
    else
        qn__onnx_flatten(g);
    if (turn) {
        *other = g->at;
        g->at = first;
    }
}

static void add_join(qn__onnx_graph *g, const qn__layer *l, const qn__onnx_value *second) {
    const qn__onnx_attribute channels[] = {{.name = "axis", .value = {1}}, {.name = NULL}};
    qn__onnx_value other = *second;
    make_alike(g, l, &other);
    if (l->kind == QN__LAYER_CONCAT)
        qn__onnx_step(g, "Concat", other.name, "joined", channels);
    else if (l->kind == QN__LAYER_MULTIPLY)
        qn__onnx_step(g, "Mul", other.name, "product", QN__ONNX_NONE);
    else
        qn__onnx_step(g, "Add", other.name, "sum", QN__ONNX_NONE);
}

/* z / 2 * (1 + erf(z / sqrt(2))); the operator Gelu is younger. */
static void add_gelu(qn__onnx_graph *g) {
    const qn__onnx_value z = g->at;
    char name[QN__ONNX_NAME];
    qn__onnx_constant(g, "root_half", 0.70710678f, name);
    qn__onnx_step(g, "Mul", name, "scaled", QN__ONNX_NONE);
    qn__onnx_step(g, "Erf", "", "erf", QN__ONNX_NONE);
    qn__onnx_constant(g, "one", 1.0f, name);
    qn__onnx_step(g, "Add", name, "twice", QN__ONNX_NONE);
    qn__onnx_constant(g, "half", 0.5f, name);
    qn__onnx_step(g, "Mul", name, "normal", QN__ONNX_NONE);
    qn__onnx_step(g, "Mul", z.name, "gelu", QN__ONNX_NONE);
}

/* z times the sigmoid of z * (a + b * z * z). */
static void add_gelu_tanh(qn__onnx_graph *g) {
    const qn__onnx_value z = g->at;
    char name[QN__ONNX_NAME];
    qn__onnx_step(g, "Mul", z.name, "square", QN__ONNX_NONE);
    qn__onnx_constant(g, "cubic", 0x1.2444f2p-4f, name);
    qn__onnx_step(g, "Mul", name, "curved", QN__ONNX_NONE);
    qn__onnx_constant(g, "linear", 0x1.988454p+0f, name);
    qn__onnx_step(g, "Add", name, "steep", QN__ONNX_NONE);
    qn__onnx_step(g, "Mul", z.name, "bent", QN__ONNX_NONE);
    qn__onnx_step(g, "Sigmoid", "", "gate", QN__ONNX_NONE);
    qn__onnx_step(g, "Mul", z.name, "gelu_tanh", QN__ONNX_NONE);
}

/* (z + 3) / 6, from 0 to 1. */
static void add_hardsigmoid(qn__onnx_graph *g, const char *what) {
    const qn__onnx_attribute line[] = {
        {.name = "alpha", .form = QN__ONNX_REAL, .real = 1.0f / 6.0f},
        {.name = "beta", .form = QN__ONNX_REAL, .real = 0.5f},
        {.name = NULL}};
    qn__onnx_step(g, "HardSigmoid", "", what, line);
}

static void add_relu6(qn__onnx_graph *g) {
    char low[QN__ONNX_NAME], high[QN__ONNX_NAME], both[2 * QN__ONNX_NAME];
    qn__onnx_constant(g, "zero", 0.0f, low);
    qn__onnx_constant(g, "six", 6.0f, high);
    snprintf(both, sizeof both, "%s %s", low, high);
    qn__onnx_step(g, "Clip", both, "relu6", QN__ONNX_NONE);
}

static void add_activation(qn__onnx_graph *g, qn__activation activation) {
    const qn__onnx_attribute slope[] = {{.name = "alpha", .form = QN__ONNX_REAL, .real = 0.01f},
                                        {.name = NULL}};
    const qn__onnx_attribute last[] = {{.name = "axis", .value = {-1}}, {.name = NULL}};
    const qn__onnx_value z = g->at;
    switch (activation) {
    case QN__ACT_NONE:
        break;
    case QN__ACT_RELU:
        qn__onnx_step(g, "Relu", "", "relu", QN__ONNX_NONE);
        break;
    case QN__ACT_TANH:
        qn__onnx_step(g, "Tanh", "", "tanh", QN__ONNX_NONE);
        break;
    case QN__ACT_SIGMOID:
        qn__onnx_step(g, "Sigmoid", "", "sigmoid", QN__ONNX_NONE);
        break;
    case QN__ACT_SOFTMAX:
        qn__onnx_step(g, "Softmax", "", "softmax", last);
        break;
    case QN__ACT_LEAKY_RELU:
        qn__onnx_step(g, "LeakyRelu", "", "leaky_relu", slope);
        break;
    case QN__ACT_GELU:
        add_gelu(g);
        break;
    case QN__ACT_GELU_TANH:
        add_gelu_tanh(g);
        break;
    case QN__ACT_SILU:
        qn__onnx_step(g, "Sigmoid", "", "gate", QN__ONNX_NONE);
        qn__onnx_step(g, "Mul", z.name, "silu", QN__ONNX_NONE);
        break;
    case QN__ACT_RELU6:
        add_relu6(g);
        break;
    case QN__ACT_HARDSWISH: /* the operator HardSwish is younger */
        add_hardsigmoid(g, "gate");
        qn__onnx_step(g, "Mul", z.name, "hardswish", QN__ONNX_NONE);
        break;
    case QN__ACT_HARDSIGMOID:
        add_hardsigmoid(g, "hardsigmoid");
        break;
    }
}

static const qn__onnx_value *value_of(const qn__onnx_graph *g, int32_t layer) {
    return layer < 0 ? &g->input : &g->layer[layer];
}

static void add_layer(qn__onnx_graph *g, const qn__program *program, uint32_t index) {
    const qn__layer *layers = program->layer, *l = &layers[index];
    switch (l->kind) {
    case QN__LAYER_DENSE:
        add_dense(g, l);
        break;
    case QN__LAYER_CONV:
        add_conv(g, l);
        break;
    case QN__LAYER_CONVTRANSPOSE:
        add_convtranspose(g, l);
        break;
    case QN__LAYER_MAXPOOL:
        qn__onnx_pool(g, l, "MaxPool");
        break;
    case QN__LAYER_AVGPOOL:
        qn__onnx_pool(g, l, "AveragePool");
        break;
    case QN__LAYER_GLOBALPOOL:
        qn__onnx_unflatten(g, l->from);
        qn__onnx_step(g, "GlobalAveragePool", "", "pool", QN__ONNX_NONE);
        break;
    case QN__LAYER_UPSAMPLE:
        qn__onnx_upsample(g, l);
        break;
    case QN__LAYER_BATCHNORM:
        add_batchnorm(g, l);
        break;
    case QN__LAYER_GROUPNORM:
    case QN__LAYER_LAYERNORM:
        if (l->norm_alone && !g->at.flat)
            add_channel_norm(g, l);
        else
            add_groupnorm(g, l);
        break;
    case QN__LAYER_RMSNORM:
        add_rmsnorm(g, l);
        break;
    case QN__LAYER_LAYERSCALE:
        add_factors(g, l);
        break;
    case QN__LAYER_EMBEDDING:
        add_embedding(g, l);
        break;
    case QN__LAYER_ATTENTION:
        qn__onnx_attention(g, l);
        break;
    case QN__LAYER_POOL:
        qn__onnx_pooled(g, l);
        break;
    case QN__LAYER_RECURRENT:
        qn__onnx_recurrent(g, layers, index,
                           qn__recurrent_pair(layers, program->layers, index - 1));
        break;
    case QN__LAYER_POSITION:
        qn__onnx_position(g, l);
        break;
    case QN__LAYER_SINUSOID:
        qn__onnx_sinusoid(g, l);
        break;
    case QN__LAYER_ROTARY:
        qn__onnx_rotary(g, l);
        break;
    case QN__LAYER_ADD:
    case QN__LAYER_MULTIPLY:
    case QN__LAYER_CONCAT:
        add_join(g, l, value_of(g, qn__layer_other(layers, index)));
        break;
    }
    add_activation(g, l->activation);
}

void qn__onnx_layers(qn__onnx_graph *g, const qn__program *program) {
    g->input = g->at;
    for (uint32_t l = 0; l < program->layers; ++l) {
        g->at = *value_of(g, qn__layer_source(program->layer, l));
        if (qn__recurrent_pair(program->layer, program->layers, l)) {
            g->layer[l] = g->at;
            continue;
        }
        snprintf(g->part, sizeof g->part, "layer%u", l);
        add_layer(g, program, l);
        g->layer[l] = g->at;
    }
}
