/* The tensors of another program's file as modules: "conv1.weight" and "conv1.bias" are two parts
 * of the module "conv1". The names of the parts are PyTorch's. Each layer and direction of its
 * LSTM and GRU is a module: "lstm.weight_ih_l0", "lstm.weight_hh_l0" and their biases are one. */
#ifndef QN_MODEL_EXCHANGE_STATE_DICT_H
#define QN_MODEL_EXCHANGE_STATE_DICT_H

#include "model/formats/shards.h"

enum {
    QN__PART_WEIGHT,
    QN__PART_BIAS,
    QN__PART_MEAN,     /* running_mean */
    QN__PART_VARIANCE, /* running_var */
    QN__PART_BATCHES,  /* num_batches_tracked */
    QN__PART_STATES,   /* weight_hh; weight_ih is the weight, bias_ih the bias */
    QN__PART_SHIFT,    /* bias_hh */
    QN__PARTS
};

/* NULL: the module does not have the part. */
typedef struct qn__module {
    const qn__tensor_view *part[QN__PARTS];
    int used;   /* the caller's */
    int states; /* 1: of an LSTM or a GRU */
} qn__module;

typedef struct qn__state_dict {
    qn__shards shards;
    const qn__tensor_view
        *skipped; /* the first tensor of whole numbers that is not part; or NULL */
    size_t modules;
    qn__module *module; /* ascending by name; numbers in names are compared by value */
} qn__state_dict;

/* Reads what qn__shards_read reads and checks that parameters are finite numbers. The caller
 * releases *out, which is empty after a failure. Fails with QN_IO, QN_MEMORY, QN_FORMAT (no such
 * file) or QN_INPUT (a tensor of floats that is not part of a module, a parameter of another type
 * than floats of 16 to 64 bits, or a number that is not finite; it is named). */
qn_status qn__state_dict_read(const char *path, qn__state_dict *out, qn_error *err);
void qn__state_dict_release(qn__state_dict *state);

/* Bytes of the module's name in the name of a tensor: up to the last point. "a.layer_scale" and
 * "a.gamma" are modules of this name, with this tensor as their weight. */
size_t qn__module_size(const char *tensor);

/* The module of this name; NULL: there is none. */
qn__module *qn__module_find(const qn__state_dict *state, const char *name);

/* The first part that it has. */
const qn__tensor_view *qn__module_any(const qn__module *module);

/* Whether the order of two modules follows from words, not from numbers, in their names. */
int qn__modules_by_words(const qn__module *a, const qn__module *b);

/* Fails with QN_INPUT where the elements are not floats, or not finite; `path` is the file. */
qn_status qn__tensor_check(const qn__tensor_view *view, const char *path, qn_error *err);

/* "64x3x7x7" of a tensor; "1" without dimensions. */
const char *qn__tensor_shape(const qn__tensor_view *view, char text[96]);

#endif
