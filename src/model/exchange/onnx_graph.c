#include "model/exchange/onnx_graph.h"

#include <stdio.h>
#include <string.h>

/* Fields of onnx.proto. */
enum {
    GRAPH_NODE = 1,
    GRAPH_TENSOR = 5,
    NODE_INPUT = 1,
    NODE_OUTPUT = 2,
    NODE_NAME = 3,
    NODE_OP = 4,
    NODE_ATTRIBUTE = 5,
    ATTRIBUTE_NAME = 1,
    ATTRIBUTE_FLOAT = 2,
    ATTRIBUTE_INT = 3,
    ATTRIBUTE_TEXT = 4,
    ATTRIBUTE_INTS = 8,
    ATTRIBUTE_TYPE = 20,
    TENSOR_DIMENSION = 1,
    TENSOR_TYPE = 2,
    TENSOR_INTEGER = 7,
    TENSOR_NAME = 8,
    TENSOR_BYTES = 9,
    VALUE_NAME = 1,
    VALUE_TYPE = 2
};

/* Values of ATTRIBUTE_TYPE. */
enum { TYPE_FLOAT = 1, TYPE_INT = 2, TYPE_TEXT = 3, TYPE_INTS = 7 };

static void add_attribute(qn__protobuf *node, const qn__onnx_attribute *a) {
    qn__protobuf m = {0};
    qn__protobuf_text(&m, ATTRIBUTE_NAME, a->name);
    if (a->form == QN__ONNX_REAL)
        qn__protobuf_float(&m, ATTRIBUTE_FLOAT, a->real);
    if (a->form == QN__ONNX_INT)
        qn__protobuf_number(&m, ATTRIBUTE_INT, (uint64_t)a->value[0]);
    if (a->form == QN__ONNX_TEXT)
        qn__protobuf_text(&m, ATTRIBUTE_TEXT, a->text);
    for (size_t i = 0; a->form == QN__ONNX_INTS && i < a->count; ++i)
        qn__protobuf_number(&m, ATTRIBUTE_INTS, (uint64_t)a->value[i]);
    qn__protobuf_number(&m, ATTRIBUTE_TYPE,
                        a->form == QN__ONNX_REAL   ? TYPE_FLOAT
                        : a->form == QN__ONNX_INT  ? TYPE_INT
                        : a->form == QN__ONNX_TEXT ? TYPE_TEXT
                                                   : TYPE_INTS);
    qn__protobuf_message(node, NODE_ATTRIBUTE, &m);
}

qn__onnx_attribute qn__onnx_pair(const char *name, const uint32_t value[2]) {
    return (qn__onnx_attribute){
        .name = name, .form = QN__ONNX_INTS, .value = {value[0], value[1]}, .count = 2};
}

void qn__onnx_node(qn__onnx_graph *g, const char *op, const char *inputs, const char *output,
                   const qn__onnx_attribute *attributes) {
    qn__protobuf node = {0};
    while (*inputs) {
        const size_t length = strcspn(inputs, " ");
        qn__protobuf_bytes(&node, NODE_INPUT, inputs, *inputs == '-' ? 0 : length);
        inputs += length + strspn(inputs + length, " ");
    }
    qn__protobuf_text(&node, NODE_OUTPUT, output);
    qn__protobuf_text(&node, NODE_NAME, output);
    qn__protobuf_text(&node, NODE_OP, op);
    for (; attributes->name; ++attributes)
        add_attribute(&node, attributes);
    qn__protobuf_message(&g->body, GRAPH_NODE, &node);
}

void qn__onnx_step(qn__onnx_graph *g, const char *op, const char *others, const char *what,
                   const qn__onnx_attribute *attributes) {
    char inputs[6 * QN__ONNX_NAME], output[QN__ONNX_NAME];
    snprintf(inputs, sizeof inputs, "%s %s", g->at.name, others);
    snprintf(output, sizeof output, "%.31s.%.15s", g->part, what);
    qn__onnx_node(g, op, inputs, output, attributes);
    memcpy(g->at.name, output, sizeof output);
}

/* The fields before the values; returns the number of elements. */
static uint64_t begin_tensor(qn__protobuf *m, const char *name, const uint64_t *shape, int type) {
    uint64_t count = 1;
    for (; *shape; ++shape) {
        qn__protobuf_number(m, TENSOR_DIMENSION, *shape);
        count *= *shape;
    }
    qn__protobuf_number(m, TENSOR_TYPE, (uint64_t)type);
    qn__protobuf_text(m, TENSOR_NAME, name);
    return count;
}

void qn__onnx_floats(qn__onnx_graph *g, const char *name, const uint64_t *shape,
                     const float *values) {
    qn__protobuf m = {0};
    const uint64_t count = begin_tensor(&m, name, shape, QN__ONNX_FLOAT);
    qn__protobuf_little(&m, TENSOR_BYTES, values, (size_t)count);
    qn__protobuf_message(&g->body, GRAPH_TENSOR, &m);
}

void qn__onnx_fill(qn__onnx_graph *g, const char *name, uint64_t count, float value) {
    enum { FLOATS = 4 }; /* the field float_data */
    qn__protobuf m = {0};
    begin_tensor(&m, name, (const uint64_t[]){count, 0}, QN__ONNX_FLOAT);
    for (uint64_t i = 0; i < count; ++i)
        qn__protobuf_float(&m, FLOATS, value);
    qn__protobuf_message(&g->body, GRAPH_TENSOR, &m);
}

void qn__onnx_scalar(qn__onnx_graph *g, const char *name, float value) {
    qn__onnx_floats(g, name, (const uint64_t[]){0}, &value);
}

void qn__onnx_constant(qn__onnx_graph *g, const char *what, float value, char name[QN__ONNX_NAME]) {
    snprintf(name, QN__ONNX_NAME, "%.31s.%.15s", g->part, what);
    qn__onnx_scalar(g, name, value);
}

void qn__onnx_integers(qn__onnx_graph *g, const char *name, const int64_t *values, size_t count) {
    qn__protobuf m = {0};
    begin_tensor(&m, name, (const uint64_t[]){count, 0}, QN__ONNX_INT64);
    for (size_t i = 0; i < count; ++i)
        qn__protobuf_number(&m, TENSOR_INTEGER, (uint64_t)values[i]);
    qn__protobuf_message(&g->body, GRAPH_TENSOR, &m);
}

void qn__onnx_flatten(qn__onnx_graph *g) {
    if (!g->at.flat)
        qn__onnx_step(g, "Flatten", "", "flat", QN__ONNX_NONE); /* from the second dimension on */
    g->at.flat = 1;
}

void qn__onnx_unflatten(qn__onnx_graph *g, qn__shape shape) {
    char name[QN__ONNX_NAME];
    /* 0: the dimension of the input, here the number of items */
    const int64_t sides[4] = {0, shape.channels, shape.height, shape.width};
    if (!g->at.flat)
        return;
    snprintf(name, sizeof name, "%s.shape", g->part);
    qn__onnx_integers(g, name, sides, 4);
    qn__onnx_step(g, "Reshape", name, "pixels", QN__ONNX_NONE);
    g->at.flat = 0;
}

void qn__onnx_declare(qn__onnx_graph *g, uint32_t field, const char *name, int type,
                      const uint64_t *shape) {
    enum { DIMENSION = 1, SIZE = 1, SYMBOL = 2, ELEMENT = 1, SHAPE = 2, TENSOR = 1 };
    qn__protobuf value = {0}, kind = {0}, tensor = {0}, sides = {0}, items = {0};
    qn__protobuf_text(&items, SYMBOL, "items");
    qn__protobuf_message(&sides, DIMENSION, &items);
    for (; *shape; ++shape) {
        qn__protobuf side = {0};
        qn__protobuf_number(&side, SIZE, *shape);
        qn__protobuf_message(&sides, DIMENSION, &side);
    }
    qn__protobuf_number(&tensor, ELEMENT, (uint64_t)type);
    qn__protobuf_message(&tensor, SHAPE, &sides);
    qn__protobuf_message(&kind, TENSOR, &tensor);
    qn__protobuf_text(&value, VALUE_NAME, name);
    qn__protobuf_message(&value, VALUE_TYPE, &kind);
    qn__protobuf_message(&g->body, field, &value);
}
