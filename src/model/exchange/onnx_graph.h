/* An ONNX graph under construction: nodes, constant tensors, and the value that the next node
 * reads. The field numbers are those of onnx.proto (IR version 7). */
#ifndef QN_MODEL_EXCHANGE_ONNX_GRAPH_H
#define QN_MODEL_EXCHANGE_ONNX_GRAPH_H

#include "base/binary/protobuf.h"
#include "model/formats/model.h"

/* Of the default operators; onnxruntime has it from version 1.6 (2020) on. */
enum { QN__ONNX_IR = 7, QN__ONNX_OPSET = 13 };

/* Types of elements. */
enum { QN__ONNX_FLOAT = 1, QN__ONNX_INT32 = 6, QN__ONNX_INT64 = 7, QN__ONNX_BOOL = 9 };

/* The name of a value, such as "layer0.weight". */
enum { QN__ONNX_NAME = 48 };

typedef struct qn__onnx_value {
    char name[QN__ONNX_NAME];
    int flat; /* 1: items x features; 0: items x channels x height x width */
} qn__onnx_value;

typedef struct qn__onnx_graph {
    const qn_model *model;
    qn__protobuf body;    /* fields of a GraphProto */
    qn__onnx_value at;    /* the value that the next node reads */
    char part[32];        /* the beginning of new names: "layer3" */
    int incomplete;       /* 1: the value "input.incomplete" says which items lack a value */
    qn__onnx_value input; /* of the first layer */
    qn__onnx_value layer[QN__MAX_LAYERS];
} qn__onnx_graph;

/* An attribute of a node: a whole number, several (`count` of them), a float, or a text. */
typedef struct qn__onnx_attribute {
    const char *name; /* NULL: none */
    int64_t value[4];
    size_t count;
    enum { QN__ONNX_INT, QN__ONNX_INTS, QN__ONNX_REAL, QN__ONNX_TEXT } form;
    float real;
    const char *text;
} qn__onnx_attribute;

/* Two numbers, for rows and columns. */
qn__onnx_attribute qn__onnx_pair(const char *name, const uint32_t value[2]);

#define QN__ONNX_NONE ((const qn__onnx_attribute[]){{.name = NULL}})

/* Adds a node that reads `inputs`, separated by blanks, and makes the value `output`. The input "-"
 * is one that is left out. `attributes` end with one without a name. */
void qn__onnx_node(qn__onnx_graph *g, const char *op, const char *inputs, const char *output,
                   const qn__onnx_attribute *attributes);

/* The same for a node that reads g->at and then `others` ("": none). Its output is "PART.WHAT",
 * and becomes g->at, with as many dimensions as before. */
void qn__onnx_step(qn__onnx_graph *g, const char *op, const char *others, const char *what,
                   const qn__onnx_attribute *attributes);

/* Constants, in row-major order; the shape ends with a 0. Floats are copied; for `value` several
 * elements of one value. */
void qn__onnx_floats(qn__onnx_graph *g, const char *name, const uint64_t *shape,
                     const float *values);
void qn__onnx_fill(qn__onnx_graph *g, const char *name, uint64_t count, float value);
void qn__onnx_integers(qn__onnx_graph *g, const char *name, const int64_t *values, size_t count);
/* A single float without dimensions. */
void qn__onnx_scalar(qn__onnx_graph *g, const char *name, float value);
/* The same, with a name made of the part's and `what`. */
void qn__onnx_constant(qn__onnx_graph *g, const char *what, float value, char name[QN__ONNX_NAME]);

/* Adds a node that makes g->at items x features, or items x channels x height x width; adds nothing
 * where it has that form. */
void qn__onnx_flatten(qn__onnx_graph *g);
void qn__onnx_unflatten(qn__onnx_graph *g, qn__shape shape);

/* Declares an input or an output (`field` 11 or 12): any number of items, then the dimensions of
 * `shape`, which ends with a 0. */
void qn__onnx_declare(qn__onnx_graph *g, uint32_t field, const char *name, int type,
                      const uint64_t *shape);

#endif
