/* What models of all kinds have in common: networks, and models that are fitted from sums.
 *
 * Each kind has a struct of its own that begins with qn_model, and a constant qn__model_kind.
 * `src/predict/model_kinds.c` has one row for each kind, with what needs higher floors. */
#ifndef QN_MODEL_FORMATS_MODEL_KIND_H
#define QN_MODEL_FORMATS_MODEL_KIND_H

#include "data/prepare/encode.h"
#include "model/formats/safetensors.h"
#include "num/program.h"
#include <quern/device.h>
#include <quern/fit.h>
#include <quern/model.h>
#include <stdatomic.h>

/* What another part of the library keeps with a model: the first member of its struct. */
typedef struct qn__model_extra {
    void (*release)(struct qn__model_extra *extra);
} qn__model_extra;

/* A number that a fit takes, as text "NAME=NUMBER". */
typedef struct qn__fit_parameter {
    const char *name;
    int whole;            /* 1: a whole number */
    uint64_t least, most; /* of a whole number; others are finite and from 0 */
    const char *usual, *help;
} qn__fit_parameter;

typedef struct qn__model_kind {
    const char *name;   /* in the public API and in recipes: "kmeans" */
    const char *title;  /* in messages: "a k-means model" */
    const char *format; /* the format's name and version in a file of this kind */
    const char
        *output; /* the prefix of the names of its output columns, before a number from 0: "p" */
    qn_predicted predicted;
    /* Makes a model of a file whose tensors are sound by themselves; `path` for messages. */
    qn_status (*read)(const struct qn__model_kind *kind, const qn__tensors *file, const char *path,
                      qn_model **out, qn_error *err);
    /* NULL: a training makes it. `parameters` and `compute` as in qn_fit_options, not NULL. */
    qn_status (*fit)(const struct qn__model_kind *kind, const qn_data *data, const char *parameters,
                     const qn_compute *compute, qn_model **out, qn_fit_report *report,
                     qn_error *err);
    const qn__fit_parameter *parameter; /* the last one has no name */
    const char *help;                   /* a line for a person; NULL without `fit` */
    /* Frees the struct of the kind with all that it owns. */
    void (*release)(qn_model *model);
} qn__model_kind;

/* Texts and tables belong to the struct of the kind. */
struct qn_model {
    const qn__model_kind *kind;
    const char *recipe; /* as JSON */
    char digest[65];
    uint32_t features, outputs, classes; /* classes: 0 for real numbers */
    uint32_t layers;                     /* of a network */
    uint32_t answers; /* to an item, where there are several (docs/exactness.md 24.70); 0: one */
    qn__shape mask;   /* of answers for pixels: rows, columns; else all are 0 */
    int next;         /* 1: it tells which token comes next, at `answers` positions */
    uint64_t parameters;
    const qn__schema *table; /* NULL: `features` unnamed columns of numbers */
    const char *weight, *resize, *rules, *date_format; /* as qn_model_weight_name and so on */
    const char *tokens, *tokenizer;
    uint32_t context;                  /* of a corpus */
    const char *data, *parameter_text; /* of `fit`: the digest of its data, and what it took */
    int probabilities;                 /* 1: the outputs are */
    int drops;                         /* 1: an item that lacks a value has no prediction */
    const char *base; /* of adapters alone: the digest of the model that they are for; else NULL */
    uint32_t tensors, left_out;
    const qn__tensor *tensor; /* in the order of the file; then those that adapters alone lack */
    _Atomic(qn__model_extra *) extra;
};

/* Where the results of all items go, as of qn_predict; each may be NULL. */
typedef struct qn__model_results {
    int32_t *classes;
    float *scores, *outputs;
    double *inertia; /* of k-means: the sum of the squares of the distances */
    double *squares; /* of k-means: the same of each item */
    int flips;       /* 1: of a network: means with those of the mirror images (24.64) */
    /* Of networks with several answers to an item, `answers` for each: 255 where it lacks a value.
     * What is counted of them needs the targets. */
    uint8_t *answers;
    struct qn__answer_counts *counts;
    struct qn__next_counts *tokens;  /* of networks that tell the next token; else NULL */
    const struct qn__layer_cut *cut; /* of a network: `outputs` are those of a layer; else NULL */
} qn__model_results;

/* Applies a model to all items of `data`, which is matched by names already. `status` is the result
 * of this rank's own checks, with `err` filled if it is not QN_OK: ranks call this together, and
 * fail together. */
typedef qn_status qn__model_apply(const qn_model *model, const qn_data *data,
                                  const qn_compute *compute, const qn__model_results *results,
                                  qn_status status, qn_error *err);

/* Sets `digest` to that of the model's file, without writing it. Fails with QN_MEMORY. */
qn_status qn__model_seal(qn_model *model, qn_error *err);

/* Refuses a number of the tensors that is NaN or infinite: QN_NUMERIC for a result, QN_FORMAT for a
 * file. */
qn_status qn__model_check_numbers(const qn_model *model, qn_status status, qn_error *err);

/* Reads the numbers of tensors that have places already, which the model owns. Each must be in the
 * file with its shape and its type. Fails with QN_FORMAT. */
qn_status qn__model_copy_tensors(const qn__tensors *file, const char *path, const qn_model *model,
                                 qn_error *err);

/* QN_FORMAT about the file at `path`. */
qn_status qn__model_refuse_file(qn_error *err, const char *path, const char *what,
                                const char *remedy);

/* Puts the path of the file into err->where, before a place that does not name it. */
void qn__model_name_file(qn_error *err, const char *path);

/* Fails with QN_UNSUPPORTED unless the model is a network. `what` needs one: "an ONNX file". */
qn_status qn__model_need_network(const qn_model *model, const char *what, qn_error *err);

/* Fails with QN_MISMATCH when the data has another number of features. */
qn_status qn__model_check_features(const qn_model *model, const qn_data *data, qn_error *err);

/* How tables are matched with the model's; `what` is the table in messages. */
qn__fitting qn__model_fitting(const qn_model *model, const char *what);

/* Stores `extra` (NULL: nothing) in the model, and returns what was stored before. The model
 * releases what it keeps at its end. Several threads may call this at once, for a constant model
 * too. */
qn__model_extra *qn__model_exchange(const qn_model *model, qn__model_extra *extra);

/* qn_model_save with a callback before the final rename, as in qn__writer_ask: QN_BUSY if it
 * returns 0. */
qn_status qn__model_save_asking(const qn_model *model, const char *path, int (*may)(void *user),
                                void *user, qn_error *err);

#endif
