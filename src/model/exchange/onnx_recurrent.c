#include "model/exchange/onnx_recurrent.h"

#include "base/memory.h"
#include "layer/layer.h"
#include "layer/recurrent.h"
#include "model/exchange/onnx_lengths.h"
#include <stdio.h>

/* The gates here, in the order of the operators: input, output, forget, cell; update, reset, new.
 */
static const uint32_t order[][4] = {[QN__CELL_LSTM] = {0, 3, 1, 2}, [QN__CELL_GRU] = {1, 0, 2, 0}};

static void name_of(const qn__onnx_graph *g, const char *what, char name[QN__ONNX_NAME]) {
    snprintf(name, QN__ONNX_NAME, "%.31s.%.15s", g->part, what);
}

static const float *tensor_of(const qn__onnx_graph *g, uint32_t layer, const char *what) {
    char name[QN__ONNX_NAME];
    snprintf(name, sizeof name, "layer%u.%.15s", layer, what);
    return qn_model_tensor(g->model, name, NULL, NULL);
}

/* A constant of 1 x rows x columns, whose numbers are made in `values`. */
static void add_matrix(qn__onnx_graph *g, const char *what, uint64_t rows, uint64_t columns,
                       const float *values, char name[QN__ONNX_NAME]) {
    name_of(g, what, name);
    qn__onnx_floats(
        g, name, columns ? (const uint64_t[]){1, rows, columns, 0} : (const uint64_t[]){1, rows, 0},
        values);
}

/* The weights of what comes from outside: those of the convolution, or 1 for each channel itself.
 */
static void add_outside(qn__onnx_graph *g, const qn__layer *layers, uint32_t l, int taken,
                        float *space, char name[QN__ONNX_NAME]) {
    const qn__layer *own = &layers[l];
    const uint32_t width = own->to.channels, all = own->from.channels;
    const uint32_t in = taken ? layers[l - 1].from.channels : all;
    const float *weights = taken ? tensor_of(g, l - 1, "weight") : NULL;
    for (uint32_t row = 0; row < all; ++row) {
        const uint32_t from = order[own->cell][row / width] * width + row % width;
        for (uint32_t k = 0; k < in; ++k)
            space[(size_t)row * in + k] =
                weights ? weights[(size_t)from * in + k] : (float)(k == from);
    }
    add_matrix(g, "outside", all, in, space, name);
}

/* Those of the states before. */
static void add_inside(qn__onnx_graph *g, const qn__layer *own, uint32_t l, float *space,
                       char name[QN__ONNX_NAME]) {
    const uint32_t width = own->to.channels, all = own->from.channels;
    const float *weights = tensor_of(g, l, "weight");
    for (uint32_t row = 0; row < all; ++row)
        for (uint32_t k = 0; k < width; ++k)
            space[(size_t)row * width + k] =
                weights[(size_t)(row % width) * all + order[own->cell][row / width] * width + k];
    add_matrix(g, "inside", all, width, space, name);
}

/* The biases of both. */
static void add_biases(qn__onnx_graph *g, const qn__layer *layers, uint32_t l, int taken,
                       float *space, char name[QN__ONNX_NAME]) {
    const qn__layer *own = &layers[l];
    const uint32_t width = own->to.channels, all = own->from.channels;
    const float *outside = taken && !layers[l - 1].no_biases ? tensor_of(g, l - 1, "bias") : NULL;
    const float *inside = own->no_biases ? NULL : tensor_of(g, l, "bias");
    for (uint32_t row = 0; row < all; ++row) {
        const uint32_t gate = order[own->cell][row / width], n = row % width;
        space[row] = outside ? outside[gate * width + n] : 0.0f;
        space[all + row] = inside && gate == 2 ? inside[n] : 0.0f;
    }
    add_matrix(g, "biases", 2 * (uint64_t)all, 0, space, name);
}

/* The lengths of items, as the operators want them: whole numbers from 1. */
static void add_lengths(qn__onnx_graph *g, char name[QN__ONNX_NAME]) {
    const qn__onnx_attribute whole[] = {{.name = "to", .value = {QN__ONNX_INT32}}, {.name = NULL}};
    const qn__onnx_value x = g->at;
    const int64_t shape[1] = {-1};
    char one[QN__ONNX_NAME];
    qn__onnx_take_length(g);
    qn__onnx_constant(g, "shortest", 1.0f, one);
    qn__onnx_step(g, "Max", one, "lengths", QN__ONNX_NONE);
    name_of(g, "one_row", name);
    qn__onnx_integers(g, name, shape, 1);
    qn__onnx_step(g, "Reshape", name, "in_line", QN__ONNX_NONE);
    qn__onnx_step(g, "Cast", "", "whole", whole);
    snprintf(name, QN__ONNX_NAME, "%s", g->at.name);
    g->at = x;
}

static void transpose(qn__onnx_graph *g, const int64_t *to, size_t count, const char *what) {
    qn__onnx_attribute perm[] = {{.name = "perm", .form = QN__ONNX_INTS, .count = count},
                                 {.name = NULL}};
    for (size_t i = 0; i < count; ++i)
        perm[0].value[i] = to[i];
    qn__onnx_step(g, "Transpose", "", what, perm);
}

/* Numbers of the largest of the three constants. */
static size_t space_of(const qn__layer *layers, uint32_t l, int taken) {
    const size_t all = layers[l].from.channels;
    const size_t in = taken ? layers[l - 1].from.channels : all, width = layers[l].to.channels;
    const size_t most = in > width ? in : width;
    return all * (most > 2 ? most : 2);
}

void qn__onnx_recurrent(qn__onnx_graph *g, const qn__layer *layers, uint32_t l, int taken) {
    const qn__layer *own = &layers[l];
    const int64_t across[3] = {0, taken ? layers[l - 1].from.channels : own->from.channels, -1};
    const int64_t sides[4] = {-1, own->to.channels, own->to.height, own->to.width};
    const qn__onnx_attribute words[] = {
        {.name = "hidden_size", .value = {own->to.channels}},
        {.name = "direction", .form = QN__ONNX_TEXT, .text = own->reverse ? "reverse" : "forward"},
        {.name = own->cell == QN__CELL_GRU ? "linear_before_reset" : NULL, .value = {1}},
        {.name = NULL}};
    float *space = qn__alloc(space_of(layers, l, taken), sizeof *space, NULL);
    char name[4][QN__ONNX_NAME], all[5 * QN__ONNX_NAME], shape[QN__ONNX_NAME];
    if (!space) {
        g->body.failed = 1;
        return;
    }
    add_outside(g, layers, l, taken, space, name[0]);
    add_inside(g, own, l, space, name[1]);
    add_biases(g, layers, l, taken, space, name[2]);
    qn__free(space);
    qn__onnx_unflatten(g, taken ? layers[l - 1].from : own->from);
    name_of(g, "across", shape);
    qn__onnx_integers(g, shape, across, 3);
    qn__onnx_step(g, "Reshape", shape, "line", QN__ONNX_NONE);
    transpose(g, (const int64_t[]){2, 0, 1}, 3, "steps");
    if (own->by_length)
        add_lengths(g, name[3]);
    snprintf(all, sizeof all, "%s %s %s%s%s", name[0], name[1], name[2], own->by_length ? " " : "",
             own->by_length ? name[3] : "");
    qn__onnx_step(g, own->cell == QN__CELL_GRU ? "GRU" : "LSTM", all, "states", words);
    transpose(g, (const int64_t[]){2, 3, 1, 0}, 4, "channels");
    name_of(g, "sides", shape);
    qn__onnx_integers(g, shape, sides, 4);
    qn__onnx_step(g, "Reshape", shape, "placed", QN__ONNX_NONE);
    if (own->by_length)
        qn__onnx_clear_rest(g);
}
